"""Checks of the transforms' arguments."""

from __future__ import annotations

import enum
import numbers
from collections.abc import Sequence
from typing import Any

from torchdali.types import DALIInterpType

__all__ = [
    "InterpolationMode", "checked_fill", "checked_interpolation", "checked_padding", "checked_probability",
    "checked_range", "checked_size", "interp_type",
]  # fmt: skip


class InterpolationMode(enum.Enum):
    """torchvision's interpolation modes; of these, NEAREST, BILINEAR, BICUBIC and LANCZOS can be computed."""

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


def checked_interpolation(value: Any) -> InterpolationMode:
    """Return a mode from itself, torchvision's own, or Pillow's number.

    Raises:
        ValueError: it is none of them.
    """
    if isinstance(value, InterpolationMode):
        return value
    if isinstance(value, int) and value in _BY_NUMBER:
        return _BY_NUMBER[value]
    if type(value).__name__ == "InterpolationMode" and isinstance(value, enum.Enum):
        return InterpolationMode(value.value)
    raise ValueError(
        f"interpolation is an InterpolationMode or Pillow's number for one ({sorted(_BY_NUMBER)}), not {value!r}"
    )


def interp_type(mode: InterpolationMode) -> DALIInterpType:
    """Return the filter of a mode.

    Raises:
        NotImplementedError: there is none.
    """
    dali_filter = _FILTERS.get(mode)
    if dali_filter is None:
        names = ", ".join(each.name for each in _FILTERS)
        raise NotImplementedError(f"interpolation {mode} is not supported: it is one of {names}")
    return dali_filter


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def checked_size(size: Any, name: str = "size") -> list[int]:
    """Return height and width from one number or from one or two of them.

    Raises:
        TypeError: it is neither an int nor a sequence of ints. ValueError: a wrong number of them, or one below 1.
    """
    if isinstance(size, bool) or not (isinstance(size, int) or _is_sequence(size)):
        raise TypeError(f"{name} is an int or a sequence of one or two, not {type(size).__name__}")
    values = [size] if isinstance(size, int) else list(size)
    if len(values) not in (1, 2):
        raise ValueError(f"{name} has one or two values, not {len(values)}: {size!r}")
    if not all(isinstance(v, int) for v in values):
        raise TypeError(f"{name} is made of ints, not {size!r}")
    if min(values) <= 0:
        raise ValueError(f"{name} must be positive, not {size!r}")
    return [values[0], values[-1]]


def checked_padding(padding: Any, lengths: tuple[int, ...] = (2, 4)) -> list[int]:
    """Return left, top, right and bottom from one number, or from (left and right, top and bottom), or from four.

    Raises:
        TypeError, ValueError: it is none of these, or negative.
    """
    values = [padding] if isinstance(padding, int) else padding
    counts = (1, *lengths) if isinstance(padding, int) else lengths
    if isinstance(padding, bool) or not _is_sequence(values):
        raise TypeError(f"padding is an int or a sequence of {_either(lengths)} ints, not {padding!r}")
    if len(values) not in counts:
        error = ValueError if 1 in lengths else TypeError
        raise error(f"padding is an int or a sequence of {_either(lengths)} ints, not {padding!r}")
    if not all(isinstance(v, int) for v in values):
        raise TypeError(f"padding is made of ints, not {padding!r}")
    if min(values) < 0:
        raise ValueError(f"padding must not be negative, and is {padding!r}")
    sides = list(values)
    return sides if len(sides) == 4 else [sides[0], sides[-1]] * 2


def _either(lengths: tuple[int, ...]) -> str:
    return ", ".join(map(str, lengths[:-1])) + f" or {lengths[-1]}"


def checked_fill(fill: Any) -> list[float]:
    """Return the values of a fill: one, or one per channel; None is 0.

    Raises:
        TypeError: it holds something else than numbers.
    """
    values = [0 if fill is None else fill] if not _is_sequence(fill) else list(fill)
    if not values or not all(map(_is_number, values)):
        raise TypeError(f"fill is a number or a sequence of numbers, not {fill!r}")
    return [float(v) for v in values]


def checked_probability(p: Any) -> float:
    """Return a probability.

    Raises:
        ValueError: it is not a number from 0 to 1.
    """
    if not _is_number(p) or not 0 <= p <= 1:
        raise ValueError(f"p is a number from 0 to 1, not {p!r}")
    return float(p)


def checked_range(values: Any, name: str, error: type[Exception] = ValueError) -> tuple[float, float]:
    """Return least and greatest value.

    Raises:
        ValueError: they are not in order. ``error``: they are not two numbers.
    """
    if not _is_sequence(values) or len(values) != 2 or not all(map(_is_number, values)):
        raise error(f"{name} is a sequence of two numbers, (min, max), not {values!r}")
    low, high = values
    if low > high:
        raise ValueError(f"{name} is (min, max), not {values!r}")
    return float(low), float(high)
