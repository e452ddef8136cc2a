"""Windows of an image: where a crop lies, and cutting it out, with padding where it reaches outside."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from torchdali.kernels.convert import convert_number

__all__ = ["anchor", "cut", "round_half_away_number"]


def round_half_away_number(value: float) -> int:
    """Round to the nearest integer, halves away from zero."""
    return math.floor(value + 0.5) if value >= 0 else math.ceil(value - 0.5)


def anchor(position: float, extent: int, window: int, rounding: str = "round") -> int:
    """Return where a window starts: ``position * (extent - window)``, rounded or truncated.

    Raises:
        ValueError: ``position`` is outside [0, 1], or ``rounding`` is unknown.
    """
    if not 0.0 <= position <= 1.0:
        raise ValueError(f"crop position {position} is outside [0, 1]")
    place = position * (extent - window)
    if rounding == "round":
        return round_half_away_number(place)
    if rounding == "truncate":
        return int(place)
    raise ValueError(f"rounding={rounding!r}: it is 'round' or 'truncate'")


def cut(
    x: Tensor,
    axes: Sequence[int],
    starts: Sequence[int],
    extents: Sequence[int],
    *,
    policy: str = "error",
    fill: Sequence[float] = (0.0,),
    channel: int = -1,
) -> Tensor:
    """Cut a window out of a tensor; a view where it lies inside.

    Args:
        x: Any shape.
        axes: Which axes are cut.
        starts: First element of the window, one an axis; may be negative.
        extents: Elements of the window, one an axis.
        policy: For windows that reach outside: ``"error"``, ``"pad"`` with ``fill``, or ``"trim_to_shape"``.
        fill: One value, or one a channel.
        channel: Axis of the channels, for ``fill``; -1 for none.

    Raises:
        RuntimeError: the window reaches outside and the policy is ``"error"``.
        ValueError: an unknown policy.
    """
    outside = False
    ends = []
    for k, axis in enumerate(axes):
        end = starts[k] + extents[k]
        ends.append(end)
        outside |= starts[k] < 0 or end > x.shape[axis]
    if not outside:
        for axis, start, extent in zip(axes, starts, extents, strict=True):
            x = x.narrow(axis, start, extent)
        return x
    if policy == "error":
        box = ", ".join(f"axis {a}: {s}:{e} of {x.shape[a]}" for a, s, e in zip(axes, starts, ends, strict=True))
        raise RuntimeError(
            f"the window is out of bounds ({box}); see out_of_bounds_policy for padding or trimming"
        )
    if policy not in ("pad", "trim_to_shape"):
        raise ValueError(f"out_of_bounds_policy={policy!r}: it is 'error', 'pad' or 'trim_to_shape'")
    return _cut_outside(x, axes, starts, ends, fill if policy == "pad" else None, channel)


def _cut_outside(
    x: Tensor, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int],
    fill: Sequence[float] | None, channel: int,
) -> Tensor:  # fmt: skip
    shape = list(x.shape)
    source, place = [slice(None)] * x.ndim, [slice(None)] * x.ndim
    for axis, start, end in zip(axes, starts, ends, strict=True):
        low = min(max(start, 0), x.shape[axis])
        high = max(min(end, x.shape[axis]), low)
        source[axis] = slice(low, high)
        place[axis] = slice(low - start, high - start)
        shape[axis] = end - start
    inside = x[tuple(source)]
    if fill is None:
        return inside
    out = filled(shape, fill, x.dtype, channel, x.device)
    out[tuple(place)] = inside
    return out


def filled(
    shape: Sequence[int], fill: Sequence[float], dtype: torch.dtype, channel: int, device: torch.device
) -> Tensor:
    """Return a tensor of one value, or of one value a channel; fill values are truncated to integers.

    Raises:
        RuntimeError: the number of values is neither one nor the number of channels.
    """
    values = [convert_number(float(v), dtype, rounding="truncate") for v in fill]
    if len(values) == 1:
        return torch.full(tuple(shape), values[0], dtype=dtype, device=device)
    if channel < 0 or len(values) != shape[channel]:
        raise RuntimeError(f"{len(values)} fill values for {shape[channel] if channel >= 0 else 'no'} channels")
    row = torch.tensor(values, dtype=dtype, device=device)
    return row.reshape([-1 if a == channel else 1 for a in range(len(shape))]).expand(*shape).clone()
