"""Checks of the transforms' arguments."""

from __future__ import annotations

import enum
import numbers
from collections.abc import Sequence
from typing import Any

from torchdali.types import DALIInterpType

__all__ = [
    "InterpolationMode", "check_fill", "check_interpolation", "check_padding", "check_probability",
    "check_range", "check_size", "interp_type",
]  # fmt: skip


class InterpolationMode(enum.Enum):
    """torchvision's interpolation modes; only NEAREST, BILINEAR, BICUBIC and LANCZOS are supported."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


_BY_NUMBER = {
    0: InterpolationMode.NEAREST, 1: InterpolationMode.LANCZOS, 2: InterpolationMode.BILINEAR,
    3: InterpolationMode.BICUBIC, 4: InterpolationMode.BOX, 5: InterpolationMode.HAMMING,
}  # fmt: skip
_FILTERS = {
    InterpolationMode.NEAREST: DALIInterpType.INTERP_NN,
    InterpolationMode.BILINEAR: DALIInterpType.INTERP_LINEAR,
    InterpolationMode.BICUBIC: DALIInterpType.INTERP_CUBIC,
    InterpolationMode.LANCZOS: DALIInterpType.INTERP_LANCZOS3,
}


def check_interpolation(value: Any) -> InterpolationMode:
    """Convert torchvision's mode or Pillow's number of a filter to an `InterpolationMode`.

    Raises:
        ValueError: ``value`` is neither a mode nor the number of a filter.
    """
    if isinstance(value, InterpolationMode):
        return value
    if isinstance(value, int) and value in _BY_NUMBER:
        return _BY_NUMBER[value]
    if type(value).__name__ == "InterpolationMode" and isinstance(value, enum.Enum):
        return InterpolationMode(value.value)
    raise ValueError(
        f"interpolation must be an InterpolationMode or one of Pillow's numbers, {sorted(_BY_NUMBER)}, got {value!r}"
    )


def interp_type(mode: InterpolationMode) -> DALIInterpType:
    """Return DALI's filter for a mode.

    Raises:
        NotImplementedError: the mode is not supported.
    """
    dali_filter = _FILTERS.get(mode)
    if dali_filter is None:
        names = ", ".join(each.name for each in _FILTERS)
        raise NotImplementedError(f"interpolation must be one of {names}, got {mode}")
    return dali_filter


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def check_size(size: Any, name: str = "size") -> list[int]:
    """Return ``[height, width]`` from an int, or from a sequence of one or two ints.

    Raises:
        TypeError: ``size`` is neither an int nor a sequence of ints.
        ValueError: the sequence has another length, or an int is below 1.
    """
    if isinstance(size, bool) or not (isinstance(size, int) or _is_sequence(size)):
        raise TypeError(f"{name} must be an int or a sequence of one or two ints, got {type(size).__name__}")
    values = [size] if isinstance(size, int) else list(size)
    if len(values) not in (1, 2):
        raise ValueError(f"{name} must have one or two values, got {len(values)}: {size!r}")
    if not all(isinstance(v, int) for v in values):
        raise TypeError(f"{name} must contain only ints, got {size!r}")
    if min(values) <= 0:
        raise ValueError(f"{name} must be positive, not {size!r}")
    return [values[0], values[-1]]


def check_padding(padding: Any, lengths: tuple[int, ...] = (2, 4)) -> list[int]:
    """Return the padding as ``[left, top, right, bottom]``.

    Args:
        padding: One int for all sides, or a sequence. Two ints are for left and right, and for top and bottom. Four
            ints are for left, top, right and bottom.
        lengths: Allowed lengths of the sequence.

    Raises:
        TypeError, ValueError: ``padding`` has another type or length, or is negative.
    """
    values = [padding] if isinstance(padding, int) else padding
    counts = (1, *lengths) if isinstance(padding, int) else lengths
    if isinstance(padding, bool) or not _is_sequence(values):
        raise TypeError(f"padding must be an int or a sequence of {_join_lengths(lengths)} ints, got {padding!r}")
    if len(values) not in counts:
        error = ValueError if 1 in lengths else TypeError
        raise error(f"padding must be an int or a sequence of {_join_lengths(lengths)} ints, got {padding!r}")
    if not all(isinstance(v, int) for v in values):
        raise TypeError(f"padding must contain only ints, got {padding!r}")
    if min(values) < 0:
        raise ValueError(f"padding must not be negative, got {padding!r}")
    sides = list(values)
    return sides if len(sides) == 4 else [sides[0], sides[-1]] * 2


def _join_lengths(lengths: tuple[int, ...]) -> str:
    return ", ".join(map(str, lengths[:-1])) + f" or {lengths[-1]}"


def check_fill(fill: Any) -> list[float]:
    """Return a fill color as a list with one value, or one value per channel; None means 0.

    Raises:
        TypeError: ``fill`` is neither a number nor a sequence of numbers.
    """
    values = [0 if fill is None else fill] if not _is_sequence(fill) else list(fill)
    if not values or not all(map(_is_number, values)):
        raise TypeError(f"fill must be a number or a sequence of numbers, got {fill!r}")
    return [float(v) for v in values]


def check_probability(p: Any) -> float:
    """Return a checked probability.

    Raises:
        ValueError: ``p`` isn't a number from 0 to 1.
    """
    if not _is_number(p) or not 0 <= p <= 1:
        raise ValueError(f"p must be a number from 0 to 1, got {p!r}")
    return float(p)


def check_range(values: Any, name: str, error: type[Exception] = ValueError) -> tuple[float, float]:
    """Return a checked range as ``(min, max)``.

    Args:
        error: Class of the exception if ``values`` isn't a sequence of two numbers.

    Raises:
        ValueError: the minimum is above the maximum.
    """
    if not _is_sequence(values) or len(values) != 2 or not all(map(_is_number, values)):
        raise error(f"{name} must be a sequence of two numbers, (min, max), got {values!r}")
    low, high = values
    if low > high:
        raise ValueError(f"{name} must be (min, max), got {values!r}")
    return float(low), float(high)
