"""Kernels that resize images, and kernels that cut and normalize windows of images.

A kernel is launched as many programs. Each program computes a block of one image's elements.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton interprets type annotations of kernels, so kernels have no annotations for type checkers.

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from torchdali.kernels.device.triton_kernels._common import BLOCK, number

__all__ = [
    "columns_kernel", "finished_columns_kernel", "normalize", "normalize_kernel", "resize", "resize_normalize",
    "rows_kernel",
]  # fmt: skip


@triton.jit
def _weight(filters, packed, knot, mask):
    """Look up a filter in its table, with linear interpolation."""
    start = (packed >> 32).to(tl.int32)
    count = (packed & 0xFFFFFFFF).to(tl.int32)
    inside = tl.minimum(tl.maximum(knot + 1.0, 0.0), (count - 1).to(tl.float32))
    left = tl.minimum(inside.to(tl.int32), count - 2)
    low = tl.load(filters + start + left, mask=mask, other=0.0)
    high = tl.load(filters + start + left + 1, mask=mask, other=0.0)
    return low + (inside - left.to(tl.float32)) * (high - low)


@triton.jit
def rows_kernel(
    flat,
    table,
    filters,
    wide,
    channels: tl.constexpr,
    fields: tl.constexpr,
    block: tl.constexpr,
):
    """Resize those rows of an image along x that `columns_kernel` reads."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    rows = tl.load(row + 4).to(tl.int32)
    row_size = tl.load(row + 8).to(tl.int32) * channels
    index = tl.program_id(0) * block + tl.arange(0, block)
    mask = index < rows * row_size
    y = index // row_size
    x = (index % row_size) // channels
    channel = index % channels
    source_width = tl.load(row + 2).to(tl.int32)
    density = number(row, 17)
    taps = tl.load(row + 18).to(tl.int32)
    start = tl.load(row + 19).to(tl.int32)
    filter = tl.load(row + 20)
    position = number(row, 15) + x.to(tl.float32) * number(row, 16)
    lowest = tl.ceil(position).to(tl.int32)
    begin = flat + tl.load(row) + (tl.load(row + 3) + y) * source_width * channels + channel
    total = tl.zeros((block,), tl.float32)
    sum = tl.zeros((block,), tl.float32)
    for k in range(0, taps):
        pixel = lowest + k
        weight = _weight(filters, filter, (pixel.to(tl.float32) - position) * density, mask)
        pixel = tl.minimum(tl.maximum(pixel + start, 0), source_width - 1)
        value = tl.load(begin + pixel * channels, mask=mask, other=0).to(tl.float32)
        sum += weight * value
        total += weight
    tl.store(wide + tl.load(row + 5) + index, sum / total, mask=mask)


@triton.jit
def _column(wide, row, filters, y, within, row_size, mask):
    """Compute weighted sums of `rows_kernel`'s results for the output rows `y`. `within` has the indices in a row."""
    source_height = tl.load(row + 1).to(tl.int32)
    first = tl.load(row + 3).to(tl.int32)
    density = number(row, 11)
    taps = tl.load(row + 12).to(tl.int32)
    start = tl.load(row + 13).to(tl.int32)
    filter = tl.load(row + 14)
    position = number(row, 9) + y.to(tl.float32) * number(row, 10)
    lowest = tl.ceil(position).to(tl.int32)
    begin = wide + tl.load(row + 5) + within
    total = tl.zeros(y.shape, tl.float32)
    sum = tl.zeros(y.shape, tl.float32)
    for k in range(0, taps):
        pixel = lowest + k
        weight = _weight(filters, filter, (pixel.to(tl.float32) - position) * density, mask)
        pixel = tl.minimum(tl.maximum(pixel + start, 0), source_height - 1) - first
        sum += weight * tl.load(begin + pixel.to(tl.int64) * row_size, mask=mask, other=0.0)
        total += weight
    return sum / total


@triton.jit
def _as_byte(value):
    """Change a value so that truncating it returns the nearest uint8 value."""
    return tl.minimum(tl.maximum(value + 0.49999997, 0.0), 255.0)


@triton.jit
def columns_kernel(
    wide, table, filters, out, channels: tl.constexpr, fields: tl.constexpr, as_float: tl.constexpr,
    block: tl.constexpr,
):  # fmt: skip
    """Resize the result of `rows_kernel` along y."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    index = tl.program_id(0) * block + tl.arange(0, block)
    row_size = tl.load(row + 8).to(tl.int32) * channels
    mask = index < tl.load(row + 7).to(tl.int32) * row_size
    value = _column(wide, row, filters, index // row_size, index % row_size, row_size, mask)
    if not as_float:
        value = _as_byte(value)
    tl.store(out + tl.load(row + 6) + index, value.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _split_index(
    index, sample, flags, height, width, channels: tl.constexpr, channel_first: tl.constexpr, has_flags: tl.constexpr,
    mirror: tl.constexpr,
):  # fmt: skip
    """Return row, column and channel of the image for an index into a normalized output."""
    if channel_first:
        channel = index // (height * width)
        y = (index // width) % height
        x = index % width
    else:
        channel = index % channels
        x = (index // channels) % width
        y = index // (channels * width)
    if has_flags:
        x = tl.where(tl.load(flags + sample) != 0, width - 1 - x, x)
    elif mirror:
        x = width - 1 - x
    return y, x, channel


@triton.jit
def _normalize(value, numbers, channel, channels: tl.constexpr, mask):
    centre = tl.load(numbers + channel, mask=mask, other=0.0)
    factor = tl.load(numbers + channels + channel, mask=mask, other=0.0)
    offset = tl.load(numbers + 2 * channels + channel, mask=mask, other=0.0)
    return (value - centre) * factor + offset


@triton.jit
def finished_columns_kernel(
    wide, table, filters, flags, numbers, out, height, width, channels: tl.constexpr, fields: tl.constexpr,
    channel_first: tl.constexpr, has_flags: tl.constexpr, mirror: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Resize the result of `rows_kernel` along y, round it to uint8, and mirror and normalize it."""
    sample = tl.program_id(1).to(tl.int64)
    row = table + sample * fields
    index = tl.program_id(0) * block + tl.arange(0, block)
    mask = index < height * width * channels
    y, x, channel = _split_index(index, sample, flags, height, width, channels, channel_first, has_flags, mirror)
    value = _column(wide, row, filters, y, x * channels + channel, width * channels, mask)
    value = _as_byte(value).to(tl.uint8).to(tl.float32)
    value = _normalize(value, numbers, channel, channels, mask)
    index += sample * height * width * channels
    tl.store(out + index, value.to(out.dtype.element_ty), mask=mask)


@triton.jit
def normalize_kernel(
    flat, table, flags, numbers, out, height, width, channels: tl.constexpr,
    channel_first: tl.constexpr, has_flags: tl.constexpr, mirror: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Cut a window out of an image, and mirror and normalize the window."""
    sample = tl.program_id(1).to(tl.int64)
    row = table + sample * 4
    index = tl.program_id(0) * block + tl.arange(0, block)
    mask = index < height * width * channels
    y, x, channel = _split_index(index, sample, flags, height, width, channels, channel_first, has_flags, mirror)
    pixel = (tl.load(row + 2) + y) * tl.load(row + 1) + tl.load(row + 3) + x
    value = tl.load(flat + tl.load(row) + pixel * channels + channel, mask=mask, other=0).to(tl.float32)
    value = _normalize(value, numbers, channel, channels, mask)
    tl.store(out + sample * height * width * channels + index, value.to(out.dtype.element_ty), mask=mask)


def resize(
    flat: Tensor, samples: Tensor, filters: Tensor, intermediate_size: int, largest_intermediate: int, results: int,
    largest: int, channels: int, as_float: bool,
) -> Tensor:  # fmt: skip
    """Return the same result as `device.resize.resize_in_torch`, computed by the kernels."""
    count, fields = samples.shape
    wide = torch.empty(intermediate_size, device=flat.device)
    out = torch.empty(results, dtype=torch.float32 if as_float else torch.uint8, device=flat.device)
    grid = (triton.cdiv(largest_intermediate, BLOCK), count)
    rows_kernel[grid](flat, samples, filters, wide, channels, fields, BLOCK)
    grid = (triton.cdiv(largest, BLOCK), count)
    columns_kernel[grid](wide, samples, filters, out, channels, fields, as_float, BLOCK)
    return out


def resize_normalize(
    flat: Tensor, samples: Tensor, filters: Tensor, intermediate_size: int, largest_intermediate: int,
    flags: Tensor | None, mirror: bool, numbers: Tensor, height: int, width: int, channels: int, channel_first: bool,
    half: bool,
) -> Tensor:  # fmt: skip
    """Return the same result as `device.resize_normalize.resize_normalize_in_torch`, computed by the kernels."""
    count, fields = samples.shape
    wide = torch.empty(intermediate_size, device=flat.device)
    out = _empty(flat, count, height, width, channels, channel_first, half)
    rows_kernel[triton.cdiv(largest_intermediate, BLOCK), count](flat, samples, filters, wide, channels, fields, BLOCK)
    finished_columns_kernel[triton.cdiv(height * width * channels, BLOCK), count](
        wide, samples, filters, samples if flags is None else flags, numbers, out, height, width, channels, fields,
        channel_first, flags is not None, mirror, BLOCK,
    )  # fmt: skip
    return out


def _empty(flat: Tensor, count: int, height: int, width: int, channels: int, channel_first: bool, half: bool) -> Tensor:
    shape = (count, channels, height, width) if channel_first else (count, height, width, channels)
    return torch.empty(shape, dtype=torch.float16 if half else torch.float32, device=flat.device)


def normalize(
    flat: Tensor, samples: Tensor, flags: Tensor | None, mirror: bool, numbers: Tensor, height: int, width: int,
    channels: int, channel_first: bool, half: bool,
) -> Tensor:  # fmt: skip
    """Return the same result as `device.normalize.normalize_in_torch`, computed by the kernel."""
    count = len(samples)
    out = _empty(flat, count, height, width, channels, channel_first, half)
    if count and out.numel():
        grid = (triton.cdiv(height * width * channels, BLOCK), count)
        normalize_kernel[grid](
            flat, samples, samples if flags is None else flags, numbers, out, height, width, channels,
            channel_first, flags is not None, mirror, BLOCK,
        )  # fmt: skip
    return out
