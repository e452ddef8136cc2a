"""Kernels that look at windows: correlation and medians."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton reads annotations of kernels: theirs are for it alone.

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from torchdali.kernels.device.triton_kernels._common import BLOCK, bordered, number, reflected

__all__ = [
    "correlate", "correlate_kernel", "filter", "filter_kernel", "median", "median_kernel",
]  # fmt: skip


@triton.jit
def filter_kernel(
    source, block_of_rows, out, channels: tl.constexpr, fields: tl.constexpr, last: tl.constexpr,
    as_bytes: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Correlate the columns of an image, or the rows of what that gave."""
    row = block_of_rows + tl.program_id(1).to(tl.int64) * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    height = tl.load(row + 1).to(tl.int32)
    width = tl.load(row + 2).to(tl.int32)
    line = width * channels
    mask = place < height * line
    result = tl.load(row + 3)
    if last:
        pixel = (place % line) // channels
        length = width
        step = channels
        taps = tl.load(row + 6).to(tl.int32)
        weights = block_of_rows + tl.load(row + 7)
        begin = source + result + place
    else:
        pixel = place // line
        length = height
        step = line
        taps = tl.load(row + 4).to(tl.int32)
        weights = block_of_rows + tl.load(row + 5)
        begin = source + tl.load(row) + place
    total = tl.zeros((block,), tl.float32)
    first = pixel - taps // 2
    for k in range(0, taps):
        there = (reflected(first + k, length) - pixel) * step
        total += tl.load(begin + there, mask=mask, other=0).to(tl.float32) * number(weights, k)
    if as_bytes:
        total = tl.minimum(tl.maximum(total + 0.5, 0.0), 255.0)
    tl.store(out + result + place, total.to(out.dtype.element_ty), mask=mask)


@triton.jit
def correlate_kernel(
    flat, table, windows, out, rows, columns, anchor_y, anchor_x, channels: tl.constexpr, fields: tl.constexpr,
    border: tl.constexpr, as_bytes: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Correlate an image with its window; a program does a piece of one image."""
    sample = tl.program_id(1).to(tl.int64)
    row = table + sample * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    height = tl.load(row + 1).to(tl.int32)
    width = tl.load(row + 2).to(tl.int32)
    line = width * channels
    mask = place < height * line
    y = place // line
    x = (place % line) // channels
    source = flat + tl.load(row) + place % channels
    weights = windows + sample * rows * columns
    total = tl.zeros((block,), tl.float32)
    for i in range(0, rows):
        there_y = y + i - anchor_y
        begin = source + bordered(there_y, height, border) * line
        for j in range(0, columns):
            there_x = x + j - anchor_x
            inside = mask
            if border == 4:
                inside = mask & (there_y >= 0) & (there_y < height) & (there_x >= 0)
                inside = inside & (there_x < width)
            value = tl.load(begin + bordered(there_x, width, border) * channels, mask=inside, other=0)
            total += value.to(tl.float32) * tl.load(weights + i * columns + j)
    if as_bytes:
        # A float of this size has no place for fractions: the sum is rounded to the even number.
        total = tl.minimum(tl.maximum(total, 0.0), 255.0) + 8388608.0 - 8388608.0
    tl.store(out + tl.load(row + 3) + place, total.to(out.dtype.element_ty), mask=mask)


@triton.jit
def median_kernel(flat, table, out, channels: tl.constexpr, fields: tl.constexpr, block: tl.constexpr):
    """Find the bits of medians from the first on: the greatest byte that at most half of a window is less than."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    height = tl.load(row + 1).to(tl.int32)
    width = tl.load(row + 2).to(tl.int32)
    rows = tl.load(row + 4).to(tl.int32)
    columns = tl.load(row + 5).to(tl.int32)
    mask = place < height * width * channels
    y = place // (width * channels) - rows // 2
    x = (place // channels) % width - columns // 2
    source = flat + tl.load(row) + place % channels
    value = tl.zeros((block,), tl.int32)
    for bit in tl.static_range(8):
        candidate = value | (128 >> bit)
        less = tl.zeros((block,), tl.int32)
        for i in range(0, rows):
            line = source + bordered(y + i, height, 2) * width * channels
            for j in range(0, columns):
                seen = tl.load(line + bordered(x + j, width, 2) * channels, mask=mask, other=0)
                less += (seen.to(tl.int32) < candidate).to(tl.int32)
        value = tl.where(less <= rows * columns // 2, candidate, value)
    tl.store(out + tl.load(row + 3) + place, value.to(tl.uint8), mask=mask)


def filter(
    flat: Tensor, block: Tensor, count: int, results: int, largest: int, channels: int, as_bytes: bool
) -> Tensor:  # fmt: skip
    """Do what `device.separable.filter_in_torch` does."""
    wide = torch.empty(results, device=flat.device)
    out = torch.empty_like(wide, dtype=torch.uint8 if as_bytes else torch.float32)
    grid = (triton.cdiv(largest, BLOCK), count)
    filter_kernel[grid](flat, block, wide, channels, 8, False, False, BLOCK)
    filter_kernel[grid](wide, block, out, channels, 8, True, as_bytes, BLOCK)
    return out


def correlate(
    flat: Tensor, samples: Tensor, windows: Tensor, results: int, largest: int, channels: int, y: int, x: int,
    border: int, as_bytes: bool,
) -> Tensor:  # fmt: skip
    """Do what `device.correlate.correlate_in_torch` does."""
    count, fields = samples.shape
    _, rows, columns = windows.shape
    kind = torch.uint8 if as_bytes else torch.float32
    out = torch.empty(results, dtype=kind, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    correlate_kernel[grid](flat, samples, windows, out, rows, columns, y, x, channels, fields, border, as_bytes, BLOCK)
    return out


def median(flat: Tensor, samples: Tensor, results: int, largest: int, channels: int) -> Tensor:
    """Do what `device.median.median_in_torch` does."""
    count, fields = samples.shape
    out = torch.empty(results, dtype=torch.uint8, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    median_kernel[grid](flat, samples, out, channels, fields, BLOCK)
    return out
