"""Kernels that equalize images by tiles."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton reads annotations of kernels: theirs are for it alone.

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from torchdali.kernels.device.triton_kernels._common import BLOCK, bordered, nearest_even

__all__ = ["count_tiles", "count_tiles_kernel", "map_tiles", "map_tiles_kernel"]


@triton.jit
def count_tiles_kernel(
    flat, table, counts, down, across, channels: tl.constexpr, fields: tl.constexpr, block: tl.constexpr
):  # fmt: skip
    """Count the values of an image, continued to whole tiles; a program does a piece of one."""
    sample = tl.program_id(1).to(tl.int64)
    row = table + sample * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    height = tl.load(row + 1).to(tl.int32)
    width = tl.load(row + 2).to(tl.int32)
    tile_height = tl.load(row + 3).to(tl.int32)
    tile_width = tl.load(row + 4).to(tl.int32)
    line = tile_width * across * channels
    mask = place < tile_height * down * line
    y = place // line
    x = (place % line) // channels
    pixel = bordered(y, height, 0) * width + bordered(x, width, 0)
    source = flat + tl.load(row) + pixel * channels + place % channels
    value = tl.load(source, mask=mask, other=0).to(tl.int64)
    tile = (sample * down + y // tile_height) * across + x // tile_width
    bins = counts + (tile * channels + place % channels) * 256 + value
    tl.atomic_add(bins, 1, mask=mask)


@triton.jit
def _neighbors(pixel, extent, tiles):
    """Return the two tiles nearest to a pixel, and the weight of the second."""
    position = pixel.to(tl.float32) * (1.0 / extent.to(tl.float32)) - 0.5
    before = tl.floor(position)
    first = before.to(tl.int32)
    return tl.maximum(first, 0), tl.minimum(first + 1, tiles - 1), position - before


@triton.jit
def map_tiles_kernel(
    flat, table, tables, out, down, across, channels: tl.constexpr, fields: tl.constexpr, block: tl.constexpr
):  # fmt: skip
    """Map an image by the tables of the four tiles around each pixel; a program does a piece of one."""
    sample = tl.program_id(1).to(tl.int64)
    row = table + sample * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    width = tl.load(row + 2).to(tl.int32)
    mask = place < tl.load(row + 1).to(tl.int32) * width * channels
    top, bottom, low = _neighbors(place // (width * channels), tl.load(row + 3), down)
    left, right, far = _neighbors((place // channels) % width, tl.load(row + 4), across)
    value = tl.load(flat + tl.load(row) + place, mask=mask, other=0).to(tl.int32)
    maps = tables + sample * down * across * channels * 256 + (place % channels) * 256 + value
    step = channels * 256
    above = tl.load(maps + (top * across + left) * step, mask=mask, other=0.0) * (1 - far)
    above += tl.load(maps + (top * across + right) * step, mask=mask, other=0.0) * far
    below = tl.load(maps + (bottom * across + left) * step, mask=mask, other=0.0) * (1 - far)
    below += tl.load(maps + (bottom * across + right) * step, mask=mask, other=0.0) * far
    found = nearest_even(above * (1 - low) + below * low)
    tl.store(out + tl.load(row) + place, found.to(tl.uint8), mask=mask)


def count_tiles(flat: Tensor, samples: Tensor, largest: int, channels: int, down: int, across: int) -> Tensor:
    """Do what `device.tiles.count_in_torch` does."""
    count, fields = samples.shape
    shape = count, down * across, channels, 256
    out = torch.zeros(shape, dtype=torch.int32, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    count_tiles_kernel[grid](flat, samples, out, down, across, channels, fields, BLOCK)
    return out


def map_tiles(
    flat: Tensor, samples: Tensor, tables: Tensor, largest: int, channels: int, down: int, across: int
) -> Tensor:  # fmt: skip
    """Do what `device.tiles.map_in_torch` does."""
    count, fields = samples.shape
    out = torch.empty_like(flat)
    grid = (triton.cdiv(largest, BLOCK), count)
    map_tiles_kernel[grid](flat, samples, tables, out, down, across, channels, fields, BLOCK)
    return out
