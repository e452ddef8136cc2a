"""Histogram equalization of whole 8-bit images, or of tiles of the images (CLAHE).

A *plane* is one channel of one image. All planes of a call are processed together. For this, 256 times the plane's
index is added to each value, so that a single histogram and a single table lookup serve all planes. If OpenCV is
installed, OpenCV's functions are used instead, with the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.device_cache import device_cache
from torchdali.kernels.filters.linear import source_index
from torchdali.kernels.memory import byte_planes
from torchdali.kernels.opencv import opencv_for

__all__ = ["equalize", "equalize_tiles"]

_BINS = 256

_Bytes = npt.NDArray[np.uint8]


def equalize(image: Tensor, out: Tensor) -> None:
    """Spread the values of each channel of each image evenly over 0..255.

    A value ``v`` becomes ``round(255 * (n(v) - n0) / (n - n0))``, where ``n(v)`` is the number of pixels with values up
    to ``v``, ``n0`` the number of pixels with the smallest value, and ``n`` the number of all pixels. A channel with
    only one value isn't changed.

    Args:
        image: ``(..., H, W, C)`` uint8. H, W and C must be positive.
        out: Tensor of the same shape and dtype, to which the result is written.
    """
    if (cv2 := opencv_for(image)) is not None:
        for x, target in zip(_frames(image), _frames(out), strict=True):
            _apply_by_plane(cv2, x.numpy(), target.numpy(), cv2.equalizeHist)
        return
    planes = torch.stack(image.unbind(-1))
    bins = _bin_indices(planes.flatten(0, -3).flatten(1))
    equalized = _look_up(_equalizing_tables(_counts(bins)), bins)
    _interleave(equalized.view(planes.shape), out)


def _frames(image: Tensor) -> tuple[Tensor, ...]:
    return image.flatten(0, -4).unbind(0) if image.dim() > 3 else (image,)


def _interleave(planes: Tensor, out: Tensor) -> None:
    """Write planes to the channels of an image. One call per plane is faster than a single call for all planes."""
    for i, plane in enumerate(planes):
        out[..., i] = plane


def _apply_by_plane(cv2: Any, x: _Bytes, out: _Bytes, method: Callable[[_Bytes, _Bytes], Any]) -> None:
    """Apply a method of OpenCV, called as ``method(plane, result)``, to each channel of an image."""
    channels = x.shape[-1]
    if channels > 1 and x.flags.c_contiguous and out.flags.c_contiguous:
        planes = byte_planes(channels, x.shape[0], x.shape[1])
        cv2.split(x, planes)
        for plane in planes:
            method(plane, plane)
        cv2.merge(planes, out)
        return
    for i in range(channels):
        plane = out[..., i]
        if plane.flags.c_contiguous:
            method(np.ascontiguousarray(x[..., i]), plane)
        else:
            plane[:] = method(np.ascontiguousarray(x[..., i]), np.empty(plane.shape, np.uint8))


def _bin_indices(rows: Tensor) -> Tensor:
    """Return ``256 * row + value`` for each value of a uint8 matrix."""
    shift = torch.arange(0, _BINS * len(rows), _BINS, dtype=torch.int32, device=rows.device)
    return rows.to(torch.int32) + shift[:, None]


def _counts(bins: Tensor) -> Tensor:
    """Return the histograms ``(rows, 256)`` of rows, from the result of `_bin_indices`."""
    if bins.is_cpu:
        return torch.bincount(bins.flatten(), minlength=_BINS * len(bins)).view(-1, _BINS)
    counts = bins.new_zeros(_BINS * len(bins), dtype=torch.int64)  # `bincount` would wait for the device
    ones = counts.new_ones(()).expand(bins.numel())
    return counts.scatter_add_(0, bins.flatten().to(torch.int64), ones).view(-1, _BINS)


def _look_up(tables: Tensor, bins: Tensor) -> Tensor:
    return tables.flatten().index_select(0, bins.flatten())


def _equalizing_tables(counts: Tensor) -> Tensor:
    """Return the uint8 lookup tables ``(planes, 256)`` that equalize planes with the histograms `counts`."""
    total = counts.cumsum(1)
    smallest = (total == 0).sum(1, keepdim=True)
    first, pixels = total.gather(1, smallest), total[:, -1:]
    rest = (pixels - first).to(torch.float32)
    scale = torch.full_like(rest, 255.0) / rest  # number / tensor would round twice
    spread = ((total - first).to(torch.float32) * scale).round_().clamp_(min=0.0)
    identity = torch.arange(_BINS, dtype=torch.float32, device=counts.device)
    return torch.where(first == pixels, identity, spread).to(torch.uint8)


# ---------------------------------------------------------------- by tiles


def equalize_tiles(image: Tensor, out: Tensor, tiles_y: int, tiles_x: int, clip_limit: float) -> None:
    """Equalize each channel by tiles, with limited contrast.

    The method is contrast limited adaptive histogram equalization (CLAHE; Zuiderveld, Graphics Gems IV, 1994). The bins
    of a tile's histogram are clipped to ``clip_limit * pixels / 256``, and the clipped pixels are distributed evenly
    over all bins. The tile maps a value ``v`` to ``round(255 * n(v) / pixels)``, where ``n(v)`` is the number of pixels
    with values up to ``v``. A pixel's result is interpolated between the results of the four nearest tiles.

    Args:
        image: ``(H, W, C)`` uint8; all extents must be positive. Leading axes are allowed if OpenCV isn't used, for
            example on a device.
        out: Tensor of the same shape and dtype, to which the result is written.
        tiles_y: Number of tiles along the height. If the height or width isn't divisible by the number of tiles, the
            image is extended by reflection.
        tiles_x: Number of tiles along the width.
        clip_limit: Maximum number of pixels in a histogram's bin, as a multiple of the mean number; 0 or less for no
            limit.
    """
    if (cv2 := opencv_for(image)) is not None:
        _tiles_by_opencv(cv2, image.numpy(), out.numpy(), tiles_y, tiles_x, clip_limit)
        return
    channels = torch.stack(image.unbind(-1))
    planes = channels.flatten(0, -3)
    counts, size = _count_tiles(planes, tiles_y, tiles_x)
    tables = _limited_tables(counts, size[0] * size[1], clip_limit)
    _interleave(_blend(planes, tables, (tiles_y, tiles_x), size).view(channels.shape), out)


def _count_tiles(planes: Tensor, tiles_y: int, tiles_x: int) -> tuple[Tensor, tuple[int, int]]:
    """Return the histograms ``(planes * tiles, 256)`` of all tiles, and the height and width of a tile."""
    padded = _pad_to_tiles(planes, tiles_y, tiles_x)
    height, width = padded.shape[1] // tiles_y, padded.shape[2] // tiles_x
    rows = padded.view(len(planes), tiles_y, height, tiles_x, width).transpose(2, 3)
    return _counts(_bin_indices(rows.reshape(-1, height * width))), (height, width)


def _tiles_by_opencv(cv2: Any, x: _Bytes, out: _Bytes, tiles_y: int, tiles_x: int, limit: float) -> None:
    _apply_by_plane(cv2, x, out, cv2.createCLAHE(limit, (tiles_x, tiles_y)).apply)


def _pad_to_tiles(planes: Tensor, tiles_y: int, tiles_x: int) -> Tensor:
    """Extend planes by reflection to a whole number of tiles.

    As in OpenCV, if only one axis isn't divisible by its number of tiles, both axes are extended by at least one pixel.
    """
    height, width = planes.shape[1:]
    if height % tiles_y == 0 and width % tiles_x == 0:
        return planes.contiguous()
    rows = _reflect(height, tiles_y - height % tiles_y, planes.device)
    columns = _reflect(width, tiles_x - width % tiles_x, planes.device)
    return planes.index_select(1, rows).index_select(2, columns)


@device_cache(maxsize=64)
def _reflect(length: int, extra: int, device: torch.device) -> Tensor:
    indices = [source_index(i, length, "reflect_101") for i in range(length + extra)]
    return torch.tensor(indices, device=device)


def _limited_tables(counts: Tensor, pixels: int, clip_limit: float) -> Tensor:
    """Return the lookup tables ``(tiles, 256)`` of the tiles. `counts` has the tiles' histograms."""
    limit = max(int(clip_limit * pixels / _BINS), 1) if clip_limit > 0 else pixels
    clipped = (counts - limit).clamp_(min=0).sum(-1, keepdim=True)
    counts = counts.clamp(max=limit) + clipped // _BINS + _distribute(clipped % _BINS)
    shares: Tensor = counts.cumsum(-1).to(torch.float32) * (255.0 / pixels)
    return shares.round_().clamp_(max=255.0)


def _distribute(rest: Tensor) -> Tensor:
    """Distribute fewer than 256 pixels, one each, to bins at equal distances, starting with the first bin."""
    step = (_BINS // rest.clamp(min=1)).clamp_(min=1)
    bins = torch.arange(_BINS, device=rest.device)
    return ((bins % step == 0) & (bins // step < rest)).to(rest.dtype)


def _blend(planes: Tensor, tables: Tensor, tiles: tuple[int, int], size: Sequence[int]) -> Tensor:
    """Map each pixel by the tables of the four nearest tiles, and interpolate by distance to the tiles' centers."""
    (above, below, down), (left, right, across) = (
        _neighbours(length, count, extent, planes.device)
        for length, count, extent in zip(planes.shape[1:], tiles, size, strict=True)
    )
    first = torch.arange(len(planes), device=planes.device)[:, None, None] * (tiles[0] * tiles[1])
    values = planes.to(torch.int64) + first * _BINS

    def map_tile(y: Tensor, x: Tensor) -> Tensor:
        tile = (y[:, None] * tiles[1] + x) * _BINS
        return tables.flatten().take(values + tile)

    top = map_tile(above, left) * (1 - across) + map_tile(above, right) * across
    bottom = map_tile(below, left) * (1 - across) + map_tile(below, right) * across
    down = down[:, None]
    return (top * (1 - down) + bottom * down).round_().to(torch.uint8)


@device_cache(maxsize=64)
def _neighbours(length: int, tiles: int, extent: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Return the two nearest tiles of each position on an axis, and the weight of the second tile."""
    inverse = torch.ones((), dtype=torch.float32, device=device) / extent
    position = torch.arange(length, dtype=torch.float32, device=device) * inverse - 0.5
    lower = position.floor()
    near = lower.to(torch.int64)
    return near.clamp(min=0), (near + 1).clamp(max=tiles - 1), position - lower
