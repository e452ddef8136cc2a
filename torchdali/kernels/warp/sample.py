"""Sample images and volumes at the positions of a map.

Positions are in pixels, x before y before z, with pixel centers at one half: the first pixel spans 0 to 1.
Images are channel-last with free leading dimensions, ``(..., [D,] H, W, C)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from torchdali.kernels.convert import convert, integer_limits
from torchdali.kernels.window import round_half_away_number

__all__ = [
    "TIE",
    "Matrix",
    "fill_in",
    "grid_of",
    "interpolate",
    "nearest_index",
    "sample",
    "sample_linear",
    "sample_nearest",
]

TIE = 1e-4  # carries a position between two pixels into the second one, where OpenCV would take the even one

Matrix = Sequence[Sequence[float]]
"""Rows ``[a b t]`` (or ``[a b c t]``): the affine map of a position, x first."""


def sample(
    x: Tensor,
    positions: Sequence[Tensor],
    *,
    linear: bool,
    fill: float | None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Sample an image at given positions.

    Args:
        x: ``(..., *spatial, C)``.
        positions: One tensor a spatial axis, x first, all of the output's spatial shape.
        linear: Interpolate linearly; otherwise take the pixel that the position is in.
        fill: Value of everything outside; None repeats the edge.
        dtype: Dtype of the output, rounded and saturated; the input's own when None.

    Returns:
        ``(..., *output, C)``.
    """
    lengths = x.shape[-1 - len(positions) : -1]
    if linear:
        return sample_linear(x, grid_of(positions, lengths), fill, dtype or x.dtype)
    return sample_nearest(x, nearest_index(positions, lengths, fill is not None), fill, dtype or x.dtype)


def grid_of(positions: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
    """Return positions as `grid_sample` takes them: ``(..., axes)`` in -1 to 1."""
    scaled = [p * (2 / n) - 1 for p, n in zip(positions, reversed(lengths), strict=True)]
    return torch.stack(scaled, -1)


def sample_linear(x: Tensor, grid: Tensor, fill: float | None, dtype: torch.dtype) -> Tensor:
    """Interpolate linearly at the positions of a grid ``(*output, axes)`` (see `grid_of`)."""
    if fill is None:
        return interpolate(x, grid, padding="border", dtype=dtype)
    return interpolate(x, grid, base=fill_in(fill, x.dtype), dtype=dtype)


def interpolate(
    x: Tensor, grid: Tensor, *, mode: str = "bilinear", padding: str = "zeros", corners: bool = False,
    base: float = 0.0, dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    """Interpolate at the positions of a grid ``(*output, axes)``.

    Args:
        x: ``(..., *spatial, C)``.
        grid: -1 and 1 are the outer edges of the image, x first.
        mode: ``"bilinear"`` or ``"bicubic"``.
        padding: Padding of `torch.nn.functional.grid_sample`.
        corners: -1 and 1 are the centres of the outermost pixels instead.
        base: With ``"zeros"``: the value outside.
        dtype: Dtype of the result, rounded and saturated.
    """
    axes, channels = grid.shape[-1], x.shape[-1]
    lead = x.shape[: x.dim() - 1 - axes]
    kind = torch.float64 if x.dtype == torch.float64 else torch.float32
    # Frames become channels, so that positions are looked at once. The memory stays channel-last: of what a
    # position needs of the channels, all is in one place.
    planes = x.to(kind).movedim(-1, -1 - axes)
    planes = planes.reshape(1, -1, *planes.shape[-axes:])
    if base:  # pixels outside are zero for `grid_sample`
        planes = planes - base
    out = grid_sample(planes, grid[None].to(kind), mode=mode, padding_mode=padding, align_corners=corners)
    if dtype == x.dtype == torch.uint8 and mode == "bilinear":
        # Nothing leaves the range: adding a half and truncating rounds; the way over int16 is the fastest.
        out = out.add_(base + 0.5).to(torch.int16).to(dtype)
    else:
        out = convert(out + base if base else out, dtype)
    return _channel_last(out.view(*lead, channels, *grid.shape[:-1]), axes)


def fill_in(value: float, dtype: torch.dtype) -> float:
    """Return a fill value as `convert_number` does, without tensors: floats are unchanged."""
    if dtype.is_floating_point:
        return float(value)
    if math.isnan(value):
        return 0
    low, high = integer_limits(dtype)
    return round_half_away_number(min(max(value, low), high))


def _channel_last(planes: Tensor, axes: int) -> Tensor:
    channels = planes.shape[-1 - axes]
    if 1 < channels <= 4:  # several times faster than a permuted copy
        return torch.stack(planes.unbind(-1 - axes), -1)
    return planes.movedim(-1 - axes, -1).contiguous()


def nearest_index(positions: Sequence[Tensor], lengths: Sequence[int], bordered: bool) -> Tensor:
    """Return the number of the pixel that each position is in, flat, int32 if that suffices.

    Args:
        bordered: The image has a border of one pixel around it, which holds the value outside.
    """
    extra = 2 if bordered else 0
    kind = torch.int32 if math.prod([n + extra for n in lengths]) < 2**31 else torch.int64
    index: Tensor | None = None
    for position, length in zip(reversed(positions), lengths, strict=True):
        low, high = (-1, length) if bordered else (0, length - 1)
        pixel = position.floor().clamp_(low, high).to(kind)
        if bordered:
            pixel.add_(1)
        index = pixel if index is None else index.mul_(length + extra).add_(pixel)
    assert index is not None
    return index


def sample_nearest(x: Tensor, index: Tensor, fill: float | None, dtype: torch.dtype) -> Tensor:
    """Take the pixels of `nearest_index` (made with a border when there is a fill value)."""
    axes = index.dim()
    if x.dtype != dtype:
        x = convert(x, dtype)
    if dtype == torch.uint16:  # not every PyTorch selects from it
        signed = None if fill is None else _as_signed(int(fill_in(fill, dtype)))
        return sample_nearest(x.view(torch.int16), index, signed, torch.int16).view(dtype)
    if fill is not None:
        x = _add_border(x, axes, fill)
    lead, channels = x.shape[: x.dim() - 1 - axes], x.shape[-1]
    if not lead:
        return x.reshape(-1, channels).index_select(0, index.flatten()).view(*index.shape, channels)
    pixels = x.reshape(*lead, -1, channels)
    return pixels.index_select(len(lead), index.flatten()).view(*lead, *index.shape, channels)


def _as_signed(value: int) -> int:
    return value - 2**16 if value >= 2**15 else value


def _add_border(x: Tensor, axes: int, fill: float) -> Tensor:
    """Put a border of one pixel around an image."""
    first = x.dim() - 1 - axes
    shape = [n + 2 if first <= a < x.dim() - 1 else n for a, n in enumerate(x.shape)]
    wide = torch.full(shape, fill_in(fill, x.dtype), dtype=x.dtype, device=x.device)
    inner = wide
    for axis in range(first, x.dim() - 1):
        inner = inner.narrow(axis, 1, x.shape[axis])
    inner.copy_(x)
    return wide


Positions = tuple[Tensor, Tensor]
