"""The kernels in Triton. Import this only where they are launched: Triton comes with torch for CUDA."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton reads annotations of kernels: theirs are for it alone.

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["BLOCK", "map_colors", "normalize", "resize"]

BLOCK = 512


@triton.jit
def _number(table, i):
    """Load a float that was stored as its bits."""
    return tl.load(table + i).to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def _weight(filters, place, knot, mask):
    """Look up a filter, between its entries linearly."""
    start = (place >> 32).to(tl.int32)
    count = (place & 0xFFFFFFFF).to(tl.int32)
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
    """Resize the rows of an image that are needed; a program does a piece of one image."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    rows = tl.load(row + 4).to(tl.int32)
    line = tl.load(row + 8).to(tl.int32) * channels
    place = tl.program_id(0) * block + tl.arange(0, block)
    mask = place < rows * line
    y = place // line
    x = (place % line) // channels
    channel = place % channels
    source_width = tl.load(row + 2).to(tl.int32)
    density = _number(row, 17)
    taps = tl.load(row + 18).to(tl.int32)
    start = tl.load(row + 19).to(tl.int32)
    filter = tl.load(row + 20)
    position = _number(row, 15) + x.to(tl.float32) * _number(row, 16)
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
    tl.store(wide + tl.load(row + 5) + place, sum / total, mask=mask)


@triton.jit
def columns_kernel(
    wide, table, filters, out, channels: tl.constexpr, fields: tl.constexpr, as_float: tl.constexpr,
    block: tl.constexpr,
):  # fmt: skip
    """Resize the columns of what `rows_kernel` computed."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    line = tl.load(row + 8).to(tl.int32) * channels
    mask = place < tl.load(row + 7).to(tl.int32) * line
    y = place // line
    source_height = tl.load(row + 1).to(tl.int32)
    first = tl.load(row + 3).to(tl.int32)
    density = _number(row, 11)
    taps = tl.load(row + 12).to(tl.int32)
    start = tl.load(row + 13).to(tl.int32)
    filter = tl.load(row + 14)
    position = _number(row, 9) + y.to(tl.float32) * _number(row, 10)
    lowest = tl.ceil(position).to(tl.int32)
    begin = wide + tl.load(row + 5) + place % line
    total = tl.zeros((block,), tl.float32)
    sum = tl.zeros((block,), tl.float32)
    for k in range(0, taps):
        pixel = lowest + k
        weight = _weight(filters, filter, (pixel.to(tl.float32) - position) * density, mask)
        pixel = tl.minimum(tl.maximum(pixel + start, 0), source_height - 1) - first
        sum += weight * tl.load(begin + pixel.to(tl.int64) * line, mask=mask, other=0.0)
        total += weight
    value = sum / total
    if not as_float:
        value = tl.minimum(tl.maximum(value + 0.49999997, 0.0), 255.0)
    tl.store(out + tl.load(row + 6) + place, value.to(out.dtype.element_ty), mask=mask)


@triton.jit
def normalize_kernel(
    flat, table, flags, numbers, out, height, width, channels: tl.constexpr,
    channel_first: tl.constexpr, has_flags: tl.constexpr, mirror: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Cut a window, mirror, normalize; a program writes a piece of one output."""
    sample = tl.program_id(1).to(tl.int64)
    row = table + sample * 4
    place = tl.program_id(0) * block + tl.arange(0, block)
    mask = place < height * width * channels
    if channel_first:
        channel = place // (height * width)
        y = (place // width) % height
        x = place % width
    else:
        channel = place % channels
        x = (place // channels) % width
        y = place // (channels * width)
    if has_flags:
        x = tl.where(tl.load(flags + sample) != 0, width - 1 - x, x)
    elif mirror:
        x = width - 1 - x
    pixel = (tl.load(row + 2) + y) * tl.load(row + 1) + tl.load(row + 3) + x
    value = tl.load(flat + tl.load(row) + pixel * channels + channel, mask=mask, other=0).to(
        tl.float32
    )
    centre = tl.load(numbers + channel, mask=mask, other=0.0)
    factor = tl.load(numbers + channels + channel, mask=mask, other=0.0)
    offset = tl.load(numbers + 2 * channels + channel, mask=mask, other=0.0)
    value = (value - centre) * factor + offset
    tl.store(
        out + sample * height * width * channels + place, value.to(out.dtype.element_ty), mask=mask
    )


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
        value = _number(numbers, 0) * red + _number(numbers, 1) * green + _number(numbers, 2) * blue
        value = tl.minimum(tl.maximum(value + _number(numbers, 3) + 0.5, 0.0), 255.0)
        tl.store(result + channel, value.to(tl.uint8), mask=mask)


def map_colors(flat: Tensor, samples: Tensor, values: int, longest: int) -> Tensor:
    """Do what `device.color.map_colors_in_torch` does."""
    count, fields = samples.shape
    out = torch.empty(values, dtype=torch.uint8, device=flat.device)
    colors_kernel[triton.cdiv(longest // 3, BLOCK), count](flat, samples, out, fields, BLOCK)
    return out


def resize(
    flat: Tensor, samples: Tensor, filters: Tensor, lines: int, longest: int, results: int, largest: int, channels: int,
    as_float: bool,
) -> Tensor:  # fmt: skip
    """Do what `device.resize.resize_in_torch` does."""
    count, fields = samples.shape
    wide = torch.empty(lines, device=flat.device)
    out = torch.empty(results, dtype=torch.float32 if as_float else torch.uint8, device=flat.device)
    grid = (triton.cdiv(longest, BLOCK), count)
    rows_kernel[grid](flat, samples, filters, wide, channels, fields, BLOCK)
    grid = (triton.cdiv(largest, BLOCK), count)
    columns_kernel[grid](wide, samples, filters, out, channels, fields, as_float, BLOCK)
    return out


def normalize(
    flat: Tensor, samples: Tensor, flags: Tensor | None, mirror: bool, numbers: Tensor, height: int, width: int,
    channels: int, channel_first: bool, half: bool,
) -> Tensor:  # fmt: skip
    """Do what `device.normalize.normalize_in_torch` does."""
    count = len(samples)
    shape = (count, channels, height, width) if channel_first else (count, height, width, channels)
    out = torch.empty(shape, dtype=torch.float16 if half else torch.float32, device=flat.device)
    if count and out.numel():
        grid = (triton.cdiv(height * width * channels, BLOCK), count)
        normalize_kernel[grid](
            flat, samples, samples if flags is None else flags, numbers, out, height, width, channels,
            channel_first, flags is not None, mirror, BLOCK,
        )  # fmt: skip
    return out
