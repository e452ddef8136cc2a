"""Kernels of single values: colors, counts, look-up tables, reductions."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton reads annotations of kernels: theirs are for it alone.

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from torchdali.kernels.device.triton_kernels._common import BLOCK, number

__all__ = [
    "PIECES", "colors_kernel", "count_values", "counts_kernel", "grid_kernel", "map_colors", "map_values", "mask_grid",
    "reduce", "reduce_kernel", "standardize", "standardize_kernel", "values_kernel",
]  # fmt: skip

PIECES = 8  # blocks that a program counts


@triton.jit
def colors_kernel(flat, table, out, fields: tl.constexpr, block: tl.constexpr):
    """Multiply the pixels of an image by its matrix; a program does a piece of one image."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    pixel = tl.program_id(0) * block + tl.arange(0, block)
    mask = pixel < tl.load(row + 2).to(tl.int32) // 3
    source = flat + tl.load(row) + pixel * 3
    result = out + tl.load(row + 1) + pixel * 3
    red = tl.load(source, mask=mask, other=0).to(tl.float32)
    green = tl.load(source + 1, mask=mask, other=0).to(tl.float32)
    blue = tl.load(source + 2, mask=mask, other=0).to(tl.float32)
    for channel in tl.static_range(3):
        numbers = row + 3 + 4 * channel
        value = number(numbers, 0) * red + number(numbers, 1) * green + number(numbers, 2) * blue
        value = tl.minimum(tl.maximum(value + number(numbers, 3) + 0.5, 0.0), 255.0)
        tl.store(result + channel, value.to(tl.uint8), mask=mask)


@triton.jit
def counts_kernel(
    flat,
    table,
    out,
    channels: tl.constexpr,
    fields: tl.constexpr,
    pieces: tl.constexpr,
    block: tl.constexpr,
):
    """Count the values of a channel in a piece of an image, and add them to what other programs found."""
    sample = tl.program_id(1).to(tl.int64)
    channel = tl.program_id(2)
    row = table + sample * fields
    pixels = tl.load(row + 1).to(tl.int32)
    source = flat + tl.load(row) + channel
    bins = tl.arange(0, 256)
    counts = tl.zeros((256,), tl.int32)
    first = tl.program_id(0) * block * pieces
    for k in range(0, pieces):
        pixel = first + k * block + tl.arange(0, block)
        mask = pixel < pixels
        value = tl.load(source + pixel * channels, mask=mask, other=0).to(tl.int32)
        counts += tl.histogram(value, 256)
        counts -= tl.where(bins == 0, block - tl.sum(mask.to(tl.int32), 0), 0)  # those outside were counted as 0
    place = out + (sample * channels + channel) * 256 + bins
    tl.atomic_add(place, counts, mask=counts > 0)


@triton.jit
def values_kernel(flat, table, tables, out, channels: tl.constexpr, fields: tl.constexpr, block: tl.constexpr):
    """Look up the values of an image; a program does a piece of one."""
    sample = tl.program_id(1).to(tl.int64)
    row = table + sample * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    mask = place < tl.load(row + 1).to(tl.int32) * channels
    value = tl.load(flat + tl.load(row) + place, mask=mask, other=0).to(tl.int32)
    maps = tables + (sample * channels + place % channels) * 256
    tl.store(out + tl.load(row + 2) + place, tl.load(maps + value, mask=mask, other=0), mask=mask)


@triton.jit
def reduce_kernel(
    flat,
    table,
    means,
    out,
    channels,
    sample_step,
    channel_step,
    fields: tl.constexpr,
    kind: tl.constexpr,
    has_means: tl.constexpr,
    block: tl.constexpr,
):
    """Reduce a channel of a sample; the numbers of `device.reduce.KINDS` are kinds."""
    sample = tl.program_id(1).to(tl.int64)
    channel = tl.program_id(0)
    row = table + sample * fields
    count = tl.load(row + 1).to(tl.int32)
    source = flat + tl.load(row) + channel
    middle = 0.0
    if has_means:
        middle = tl.load(means + sample * sample_step + channel * channel_step)
    first = 0.0
    if kind == 2:
        first = float("inf")
    elif kind == 3:
        first = float("-inf")
    found = tl.full((block,), first, tl.float32)
    no_numbers = tl.zeros((block,), tl.int32)
    for begin in range(0, count, block):
        place = begin + tl.arange(0, block)
        mask = place < count
        value = tl.load(source + place.to(tl.int64) * channels, mask=mask, other=0).to(tl.float32)
        if kind == 0:
            found += value
        elif kind == 1:
            distance = tl.where(mask, value - middle, 0.0)
            found += distance * distance
        else:
            no_numbers |= (value != value).to(tl.int32)
            value = tl.where(mask, value, first)
            found = tl.minimum(found, value) if kind == 2 else tl.maximum(found, value)
    if kind < 2:
        result = tl.sum(found, 0) / number(row, 2)
    else:
        result = tl.min(found, 0) if kind == 2 else tl.max(found, 0)
        result = tl.where(tl.max(no_numbers, 0) > 0, float("nan"), result)
    tl.store(out + sample * channels + channel, result)


@triton.jit
def grid_kernel(flat, table, out, fields: tl.constexpr, block: tl.constexpr):
    """Set the squares of a grid to zero; a program does a piece of one image."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    line = tl.load(row + 2).to(tl.int32)
    mask = place < tl.load(row + 1).to(tl.int32) * line
    x = (place % line // tl.load(row + 4).to(tl.int32)).to(tl.float32)
    y = (place // line).to(tl.float32)
    cosine = number(row, 5)
    sine = number(row, 6)
    across = (x * cosine - number(row, 7)) - y * sine
    down = (x * sine - number(row, 8)) + y * cosine
    across -= tl.floor(across)
    down -= tl.floor(down)
    keep = (across >= number(row, 9)) | (down >= number(row, 9))
    value = tl.load(flat + tl.load(row) + place, mask=mask & keep, other=0)
    tl.store(out + tl.load(row + 3) + place, value, mask=mask)


@triton.jit
def standardize_kernel(flat, table, centers, factors, out, shift, channels, fields: tl.constexpr, block: tl.constexpr):
    """Subtract the centers of a sample's groups and channels, and multiply; a program does a piece of one sample."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    mask = place < tl.load(row + 1)
    group = tl.load(row + 4) + place // tl.load(row + 3).to(tl.int32)
    at = group * channels + place % channels
    value = tl.load(flat + tl.load(row) + place, mask=mask, other=0).to(tl.float32)
    value -= tl.load(centers + at, mask=mask, other=0.0)
    value = value * tl.load(factors + at, mask=mask, other=0.0) + shift
    tl.store(out + tl.load(row + 2) + place, value, mask=mask)


def map_colors(flat: Tensor, samples: Tensor, values: int, longest: int) -> Tensor:
    """Do what `device.color.map_colors_in_torch` does."""
    count, fields = samples.shape
    out = torch.empty(values, dtype=torch.uint8, device=flat.device)
    colors_kernel[triton.cdiv(longest // 3, BLOCK), count](flat, samples, out, fields, BLOCK)
    return out


def count_values(flat: Tensor, samples: Tensor, longest: int, channels: int) -> Tensor:
    """Do what `device.counts.count_in_torch` does."""
    count, fields = samples.shape
    out = torch.zeros((count, channels, 256), dtype=torch.int32, device=flat.device)
    grid = (triton.cdiv(longest, BLOCK * PIECES), count, channels)
    counts_kernel[grid](flat, samples, out, channels, fields, PIECES, BLOCK)
    return out


def map_values(flat: Tensor, samples: Tensor, tables: Tensor, results: int, longest: int, channels: int) -> Tensor:
    """Do what `device.counts.map_in_torch` does."""
    count, fields = samples.shape
    out = torch.empty(results, dtype=torch.uint8, device=flat.device)
    grid = (triton.cdiv(longest * channels, BLOCK), count)
    values_kernel[grid](flat, samples, tables, out, channels, fields, BLOCK)
    return out


def reduce(flat: Tensor, samples: Tensor, means: Tensor | None, channels: int, kind: int) -> Tensor:
    """Do what `device.reduce.reduce_in_torch` does."""
    count, fields = samples.shape
    out = torch.empty((count, channels), device=flat.device)
    each = means is not None and means.numel() == count * channels
    steps = (channels, 1) if each else (1, 0)
    has_means = means is not None
    reduce_kernel[(channels, count)](flat, samples, means, out, channels, *steps, fields, kind, has_means, 2 * BLOCK)
    return out


def standardize(
    flat: Tensor, samples: Tensor, centers: Tensor, factors: Tensor, shift: float, results: int, largest: int
) -> Tensor:  # fmt: skip
    """Do what `device.standardize.standardize_in_torch` does."""
    count, fields = samples.shape
    out = torch.empty(results, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    standardize_kernel[grid](flat, samples, centers, factors, out, shift, centers.shape[1], fields, BLOCK)
    return out


def mask_grid(flat: Tensor, samples: Tensor, results: int, largest: int) -> Tensor:
    """Do what `device.grid.mask_grid_in_torch` does: products are rounded before they are added, a last bit decides."""
    count, fields = samples.shape
    out = torch.empty(results, dtype=flat.dtype, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    grid_kernel[grid](flat, samples, out, fields, BLOCK, enable_fp_fusion=False)
    return out
