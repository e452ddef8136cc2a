"""Compute the positions of windows in a tensor, and cut windows out. Windows may reach outside of the tensor."""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.convert import convert, integer_limits
from torchdali.kernels.folding import fold
from torchdali.kernels.limits import check_pixels
from torchdali.kernels.memory import narrow

__all__ = [
    "anchor", "anchors", "check_fill", "check_rounding", "cut", "fill_into", "fill_number", "fill_tensor", "intersect",
    "resolve_policy", "round_half_away_number", "to_float32",
]  # fmt: skip

_FLOAT = struct.Struct("f")


@fold
def to_float32(value: float) -> float:
    """Round to float32, the type of DALI's arguments: 0.7 becomes 0.69999998."""
    try:
        return float(_FLOAT.unpack(_FLOAT.pack(value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def round_half_away_number(value: float) -> int:
    """Round to the nearest integer, halves away from zero."""
    return math.floor(value + 0.5) if value >= 0 else math.ceil(value - 0.5)


ROUNDINGS = ("round", "truncate")
"""Names of the methods that convert the start of a window to an integer."""


def check_rounding(rounding: str) -> None:
    """Raise RuntimeError if `rounding` isn't one of `ROUNDINGS`."""
    if rounding not in ROUNDINGS:
        raise RuntimeError(f"rounding must be 'round' or 'truncate', got {rounding!r}")


def anchor(position: float, extent: int, window: int, rounding: str = "round", axis: int | None = None) -> int:
    """Return the start of a window on one axis: ``position * (extent - window)``, rounded or truncated.

    Args:
        position: Relative position of the window, from 0 (start of the axis) to 1 (end of the axis).
        extent: Extent of the axis.
        window: Extent of the window.
        rounding: One of `ROUNDINGS`.
        axis: Index of the axis, for error messages.

    Raises:
        RuntimeError: ``position`` is outside [0, 1], or ``rounding`` is unknown.
    """
    if not 0.0 <= position <= 1.0:
        suffix = "" if axis is None else f" of dimension {axis}"
        raise RuntimeError(f"crop position {position:g}{suffix} is out of range [0, 1]")
    check_rounding(rounding)
    offset = to_float32(position) * (extent - window)
    return round_half_away_number(offset) if rounding == "round" else int(offset)


def anchors(positions: Sequence[float], extent: int, window: int, rounding: str = "round") -> list[int]:
    """Return `anchor` for several positions."""
    if not (len(positions) and 0.0 <= min(positions) <= max(positions) <= 1.0 and window <= extent):
        return [anchor(position, extent, window, rounding) for position in positions]
    offsets = np.array(positions, np.float32).astype(np.float64) * (extent - window)
    starts: list[int] = np.floor(offsets + 0.5 * (rounding == "round")).astype(np.int64).tolist()
    return starts


_EXTENSIONS = {
    "pad": "pad", "constant": "pad", "fill": "pad",
    "clamp": "clamp", "edge": "clamp", "wrap": "wrap",
    "reflect": "reflect_1001", "reflect_1001": "reflect_1001", "reflect1001": "reflect_1001",
    "reflect_101": "reflect_101", "reflect101": "reflect_101",
}  # fmt: skip
_BASIC_POLICIES = ("error", "trim_to_shape")

POLICIES = (*_BASIC_POLICIES, *(name for name, first in _EXTENSIONS.items() if first == "pad"))
"""Names of the policies for windows that reach outside of the tensor, without the policies that repeat its pixels."""

BORDER_POLICIES = (*_BASIC_POLICIES, *_EXTENSIONS)
"""Names of all policies for windows that reach outside of the tensor."""


def resolve_policy(policy: str, borders: bool = True) -> str:
    """Replace a synonym of a policy's name by the policy's main name: "edge" by "clamp", for example.

    Args:
        policy: One of the names "error", "pad" or "trim_to_shape"; one of "clamp", "wrap", "reflect_101" or
            "reflect_1001", which repeat pixels of the tensor; or a synonym of one of these names.
        borders: True to allow the policies that repeat pixels.

    Raises:
        RuntimeError: the policy is unknown or not allowed.
    """
    if policy in _BASIC_POLICIES:
        return policy
    extension = _EXTENSIONS.get(policy.lower())
    if extension is None or (extension != "pad" and not borders):
        extra = ", 'clamp', 'wrap', 'reflect_101', 'reflect_1001'" if borders else ""
        raise RuntimeError(
            f"out_of_bounds_policy must be one of 'error', 'trim_to_shape', 'pad'{extra}, got {policy!r}"
        )
    return extension


def cut(
    x: Tensor,
    axes: Sequence[int],
    starts: Sequence[int],
    extents: Sequence[int],
    *,
    policy: str = "error",
    fill: Sequence[float] = (),
    channel: int = -1,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Cut a window out of a tensor. If the window is inside the tensor and the dtype is kept, the result is a view.

    Args:
        x: Tensor of any shape.
        axes: Axes that are cut.
        starts: Index of the window's first element, one per axis; may be negative.
        extents: Number of the window's elements, one per axis.
        policy: Policy for windows that reach outside of the tensor; see `resolve_policy`.
        fill: Fill values: empty for 0, one value, or one value per channel.
        channel: Axis of the channels, for ``fill``; -1 for no channel axis.
        dtype: Dtype of the result, converted by truncation; None for the dtype of ``x``.

    Raises:
        RuntimeError: the window reaches outside of the tensor and the policy is ``"error"``, the policy is unknown, or
            the number of fill values is wrong.
    """
    policy = resolve_policy(policy)
    if policy in ("error", "pad", "trim_to_shape"):
        inside, shape, position = intersect(x, axes, starts, extents, policy)
    else:
        inside, shape, position = _extend(x, axes, starts, extents, policy), x.shape, None
    if dtype is not None:
        inside = convert(inside, dtype, rounding="truncate")
    if policy != "pad":
        return inside
    check_fill(fill, shape, channel)
    if position is None:
        return inside
    out = fill_tensor(shape, fill, inside.dtype, channel, x.device)
    out[position] = inside
    return out


def intersect(
    x: Tensor, axes: Sequence[int], starts: Sequence[int], extents: Sequence[int], policy: str
) -> tuple[Tensor, Sequence[int], tuple[slice, ...] | None]:
    """Return the intersection of a tensor and a window, the cut's shape, and the intersection's position in the cut.

    The cut is the result of `cut`. The intersection is a view. If the window is inside the tensor, or the policy is
    ``"trim_to_shape"``, the intersection is the whole cut, and the position is None.

    Args:
        x, axes, starts, extents: See `cut`.
        policy: ``"error"``, ``"pad"`` or ``"trim_to_shape"``.

    Raises:
        RuntimeError: the window reaches outside of the tensor and the policy is ``"error"``.
    """
    for axis, start, extent in zip(axes, starts, extents, strict=True):
        if start < 0 or start + extent > x.shape[axis]:
            break
    else:
        if axes:
            x = narrow(x, dict(zip(axes, zip(starts, extents, strict=True), strict=True)))
        return x, x.shape, None
    if policy == "error":
        raise RuntimeError(_out_of_bounds_message(x.shape, axes, starts, extents))
    return _intersect_outside(x, axes, starts, extents, policy)


def _intersect_outside(
    x: Tensor, axes: Sequence[int], starts: Sequence[int], extents: Sequence[int], policy: str
) -> tuple[Tensor, Sequence[int], tuple[slice, ...] | None]:
    if policy == "pad":
        check_pixels(extents, "the window")
    shape = list(x.shape)
    position = [slice(None)] * x.ndim
    for axis, start, extent in zip(axes, starts, extents, strict=True):
        low = min(max(start, 0), x.shape[axis])
        high = max(min(start + extent, x.shape[axis]), low)
        x = x.narrow(axis, low, high - low)
        # If the window is completely outside of the tensor, the intersection is empty, but its position must still be
        # inside the window.
        offset = min(max(low - start, 0), extent)
        position[axis] = slice(offset, offset + high - low)
        shape[axis] = extent
    return (x, x.shape, None) if policy == "trim_to_shape" else (x, shape, tuple(position))


def _out_of_bounds_message(
    shape: Sequence[int], axes: Sequence[int], starts: Sequence[int], extents: Sequence[int]
) -> str:
    box = ", ".join(
        f"{start}:{start + extent} of {shape[axis]} on axis {axis}"
        for axis, start, extent in zip(axes, starts, extents, strict=True)
    )
    return (
        f"slice can't be placed out of bounds with current policy. Got: {box}; out_of_bounds_policy='pad' or "
        f"'trim_to_shape' allows it"
    )


def _extend(x: Tensor, axes: Sequence[int], starts: Sequence[int], extents: Sequence[int], policy: str) -> Tensor:
    check_pixels(extents, "the window")
    for axis, start, extent in zip(axes, starts, extents, strict=True):
        length = x.shape[axis]
        if start >= 0 and start + extent <= length:
            x = x.narrow(axis, start, extent)
        elif length:
            indices = torch.arange(start, start + extent, device=x.device)
            x = x.index_select(axis, _repeat_indices(indices, length, policy))
        else:
            raise RuntimeError(f"the extent of axis {axis} must be positive to repeat its border, got 0")
    return x


def _repeat_indices(indices: Tensor, length: int, policy: str) -> Tensor:
    """Replace indices outside of an axis by the indices of the pixels that the policy repeats there."""
    if policy == "clamp":
        return indices.clamp(0, length - 1)
    if policy == "wrap":
        return indices.remainder(length)
    last = 2 * length - 1 if policy == "reflect_1001" else max(2 * (length - 1), 1)
    period = 2 * length if policy == "reflect_1001" else last
    indices = indices.remainder(period)
    return torch.minimum(indices, last - indices)


# ---------------------------------------------------------------- fill values


def check_fill(fill: Sequence[float], shape: Sequence[int], channel: int) -> None:
    """Raise RuntimeError unless there is at most one fill value, or one per channel."""
    if len(fill) > 1 and (channel < 0 or len(fill) != shape[channel]):
        kind = f"{shape[channel]} channels" if channel >= 0 else "data without a channel axis"
        raise RuntimeError(f"the number of fill values must match the data, got {len(fill)} values for {kind}")


def fill_tensor(
    shape: Sequence[int],
    fill: Sequence[float],
    dtype: torch.dtype,
    channel: int,
    device: torch.device,
) -> Tensor:
    """Return a tensor filled with one value, or with one value per channel; see `fill_into`."""
    return fill_into(torch.empty(tuple(shape), dtype=dtype, device=device), fill, channel)


def fill_into(out: Tensor, fill: Sequence[float], channel: int) -> Tensor:
    """Fill a tensor with one value, or with one value per channel; see `fill_number` and `check_fill`."""
    values = [fill_number(value, out.dtype) for value in fill] or [0]
    if len(values) == 1:
        return out.fill_(values[0])
    row = torch.tensor(values, dtype=out.dtype, device=out.device)
    return out.copy_(row.view((-1,) + (1,) * (out.ndim - 1 - channel)))


@functools.lru_cache(maxsize=256)
@fold
def fill_number(value: float, dtype: torch.dtype) -> float | int:
    """Convert a fill value as C does: truncate it, and wrap it around to the dtype's range (300 is 44 in uint8)."""
    value = to_float32(value)
    if dtype.is_floating_point:
        return value
    if dtype == torch.bool:
        return value != 0
    bits = dtype.itemsize * 8
    # The processor converts floats to integers of 32 or 64 bits. Values that don't fit become the smallest integer.
    carrier = torch.int32 if bits < 32 or dtype == torch.int32 else torch.int64
    low, high = integer_limits(carrier)
    number = int(value) if low <= value <= high else low
    number %= 1 << bits
    return number - (1 << bits) if dtype.is_signed and number >= 1 << (bits - 1) else number
