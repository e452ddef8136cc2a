"""Sample images and volumes at given positions.

Positions are in pixels, x before y before z, with pixel centers at one half: the first pixel spans 0 to 1. Images are
channel-last and may have any leading axes: ``(..., [D,] H, W, C)``.
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
    "convert_fill",
    "interpolate",
    "nearest_index",
    "sample",
    "sample_linear",
    "sample_nearest",
    "to_grid",
]

TIE = 1e-4  # moves a position midway between two pixels into the second pixel; OpenCV would use the even pixel

Matrix = Sequence[Sequence[float]]
"""Affine map of positions. An image's map has the rows ``[a b t]`` for x and y, and a volume's map has the rows
``[a b c t]`` for x, y and z."""


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
        positions: Coordinates, x first: one tensor per spatial axis, each with the output's spatial shape.
        linear: True to interpolate linearly, False to use the pixel that contains the position.
        fill: Value outside of the image; None to repeat the edge.
        dtype: Dtype of the output, to which values are rounded and saturated; None for the input's dtype.

    Returns:
        ``(..., *output, C)``, where ``output`` is the shape of the positions.
    """
    lengths = x.shape[-1 - len(positions) : -1]
    if linear:
        return sample_linear(x, to_grid(positions, lengths), fill, dtype or x.dtype)
    return sample_nearest(x, nearest_index(positions, lengths, fill is not None), fill, dtype or x.dtype)


def to_grid(positions: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
    """Convert positions to the grid of `grid_sample`: ``(..., axes)``, from -1 to 1 over the image."""
    scaled = [p * (2 / n) - 1 for p, n in zip(positions, reversed(lengths), strict=True)]
    return torch.stack(scaled, -1)


def sample_linear(x: Tensor, grid: Tensor, fill: float | None, dtype: torch.dtype) -> Tensor:
    """Interpolate linearly at the positions of a grid ``(*output, axes)`` (see `to_grid`)."""
    if fill is None:
        return interpolate(x, grid, padding="border", dtype=dtype)
    return interpolate(x, grid, base=convert_fill(fill, x.dtype), dtype=dtype)


def interpolate(
    x: Tensor, grid: Tensor, *, mode: str = "bilinear", padding: str = "zeros", align_corners: bool = False,
    base: float = 0.0, dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    """Interpolate at the positions of a grid ``(*output, axes)``.

    Args:
        x: ``(..., *spatial, C)``.
        grid: Positions, x first, from -1 to 1 over the image.
        mode: "bilinear" or "bicubic".
        padding: Padding mode of `torch.nn.functional.grid_sample`.
        align_corners: True if -1 and 1 are the centers of the outermost pixels, False if they are the image's outer
            edges.
        base: Value outside of the image, for the padding mode "zeros".
        dtype: Dtype of the result, to which values are rounded and saturated.
    """
    axes, channels = grid.shape[-1], x.shape[-1]
    lead = x.shape[: x.dim() - 1 - axes]
    float_dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    # Frames become channels, so that each position is processed once. The memory remains channel-last, so that the
    # values of a pixel's channels are adjacent.
    planes = x.to(float_dtype).movedim(-1, -1 - axes)
    planes = planes.reshape(1, -1, *planes.shape[-axes:])
    if base:  # outside of the image, `grid_sample` returns 0, to which `base` is added below
        planes = planes - base
    out = grid_sample(planes, grid[None].to(float_dtype), mode=mode, padding_mode=padding, align_corners=align_corners)
    if dtype == x.dtype == torch.uint8 and mode == "bilinear":
        # All values are positive, so adding a half and truncating rounds them. Conversion via int16 is fastest.
        out = out.add_(base + 0.5).to(torch.int16).to(dtype)
    else:
        out = convert(out + base if base else out, dtype)
    return _channel_last(out.view(*lead, channels, *grid.shape[:-1]), axes)


def convert_fill(value: float, dtype: torch.dtype) -> float:
    """Convert a fill value like `convert_number` does, but faster; for floating-point dtypes, return it unchanged."""
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
    """Return the index of the pixel that contains each position, in the flattened image.

    Args:
        positions: Coordinates, x first.
        lengths: Spatial extents of the image.
        bordered: True to return indices into the image with a border of one pixel; a position outside of the image then
            gets the index of a border pixel. False to return indices into the image itself; a position outside of the
            image then gets the index of the nearest pixel.

    Returns:
        Indices in the shape of the positions: int32, or int64 for very large images.
    """
    extra = 2 if bordered else 0
    index_dtype = torch.int32 if math.prod([n + extra for n in lengths]) < 2**31 else torch.int64
    index: Tensor | None = None
    for position, length in zip(reversed(positions), lengths, strict=True):
        low, high = (-1, length) if bordered else (0, length - 1)
        pixel = position.floor().clamp_(low, high).to(index_dtype)
        if bordered:
            pixel.add_(1)
        index = pixel if index is None else index.mul_(length + extra).add_(pixel)
    assert index is not None
    return index


def sample_nearest(x: Tensor, index: Tensor, fill: float | None, dtype: torch.dtype) -> Tensor:
    """Select pixels by the indices that `nearest_index` returns.

    Args:
        x: ``(..., *spatial, C)``.
        index: Result of `nearest_index`, which was called with ``bordered=True`` if `fill` isn't None.
        fill: Value outside of the image; None to repeat the edge.
        dtype: Dtype of the result.
    """
    axes = index.dim()
    if x.dtype != dtype:
        x = convert(x, dtype)
    if dtype == torch.uint16:  # not all PyTorch versions can select from uint16
        signed = None if fill is None else _as_signed(int(convert_fill(fill, dtype)))
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
    """Add a border of one pixel with the value `fill` around an image."""
    first = x.dim() - 1 - axes
    shape = [n + 2 if first <= a < x.dim() - 1 else n for a, n in enumerate(x.shape)]
    padded = torch.full(shape, convert_fill(fill, x.dtype), dtype=x.dtype, device=x.device)
    inner = padded
    for axis in range(first, x.dim() - 1):
        inner = inner.narrow(axis, 1, x.shape[axis])
    inner.copy_(x)
    return padded


Positions = tuple[Tensor, Tensor]
