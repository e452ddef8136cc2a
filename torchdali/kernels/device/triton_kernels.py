"""The kernels in Triton. Import this only where they are launched: Triton comes with torch for CUDA."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton reads annotations of kernels: theirs are for it alone.

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = [
    "BLOCK", "add_normal", "copy_windows", "correlate", "count_values", "erase", "filter", "map_colors",
    "map_values", "normalize", "reduce", "replace_pixels", "resize", "warp",
]  # fmt: skip

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


@triton.jit
def _pixel(source, y, x, height, width, channels, filled, fill, mask):
    """Load pixels, which may lie outside."""
    inside = mask
    if filled:
        inside = mask & (y >= 0) & (y < height) & (x >= 0) & (x < width)
    else:
        y = tl.minimum(tl.maximum(y, 0), height - 1)
        x = tl.minimum(tl.maximum(x, 0), width - 1)
    value = tl.load(source + (y * width + x) * channels, mask=inside, other=0).to(tl.float32)
    return tl.where(inside, value, fill)


@triton.jit
def warp_kernel(
    flat, table, out, fill, channels: tl.constexpr, fields: tl.constexpr, linear: tl.constexpr,
    filled: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Sample an image where its map takes the pixels of the output; a program does a piece of one output."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    out_width = tl.load(row + 5).to(tl.int32)
    mask = place < tl.load(row + 4).to(tl.int32) * out_width * channels
    height = tl.load(row + 1).to(tl.int32)
    width = tl.load(row + 2).to(tl.int32)
    px = ((place // channels) % out_width).to(tl.float32) + 0.5
    py = (place // (out_width * channels)).to(tl.float32) + 0.5
    x = px * _number(row, 6) + _number(row, 8) + py * _number(row, 7)
    y = px * _number(row, 9) + _number(row, 11) + py * _number(row, 10)
    # Far outside all is alike; numbers that no integer holds are kept away.
    x = tl.minimum(tl.maximum(x, -4.0), width.to(tl.float32) + 4.0)
    y = tl.minimum(tl.maximum(y, -4.0), height.to(tl.float32) + 4.0)
    source = flat + tl.load(row) + place % channels
    if linear:
        x -= 0.5
        y -= 0.5
        left = tl.floor(x)
        top = tl.floor(y)
        x -= left
        y -= top
        x0 = left.to(tl.int32)
        y0 = top.to(tl.int32)
        value = (
            _pixel(source, y0, x0, height, width, channels, filled, fill, mask) * (1 - x) * (1 - y)
        )
        value += (
            _pixel(source, y0, x0 + 1, height, width, channels, filled, fill, mask) * x * (1 - y)
        )
        value += (
            _pixel(source, y0 + 1, x0, height, width, channels, filled, fill, mask) * (1 - x) * y
        )
        value += _pixel(source, y0 + 1, x0 + 1, height, width, channels, filled, fill, mask) * x * y
        value += 0.5
    else:
        x0 = tl.floor(x).to(tl.int32)
        y0 = tl.floor(y).to(tl.int32)
        value = _pixel(source, y0, x0, height, width, channels, filled, fill, mask)
    tl.store(out + tl.load(row + 3) + place, value.to(tl.uint8), mask=mask)


@triton.jit
def _reflected(pixel, length):
    """Return which pixel stands beyond the borders, reflected without repeating the edge."""
    period = tl.maximum(2 * length - 2, 1)
    pixel = tl.abs(pixel) % period
    return tl.minimum(pixel, period - pixel) * (length > 1).to(tl.int32)


@triton.jit
def filter_kernel(
    source, block_of_rows, out, channels: tl.constexpr, fields: tl.constexpr, last: tl.constexpr,
    block: tl.constexpr,
):  # fmt: skip
    """Correlate the columns of an image, or the rows of what that gave, which makes bytes."""
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
        there = (_reflected(first + k, length) - pixel) * step
        total += tl.load(begin + there, mask=mask, other=0).to(tl.float32) * _number(weights, k)
    if last:
        total = tl.minimum(tl.maximum(total + 0.5, 0.0), 255.0)
    tl.store(out + result + place, total.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _bordered(pixel, length, border: tl.constexpr):
    """Return which pixel stands beyond the borders; see `BORDERS` of the filters."""
    if border == 0:
        pixel = _reflected(pixel, length)
    elif border == 1:
        pixel = (pixel % (2 * length) + 2 * length) % (2 * length)
        pixel = tl.minimum(pixel, 2 * length - 1 - pixel)
    elif border == 3:
        pixel = (pixel % length + length) % length
    return tl.minimum(tl.maximum(pixel, 0), length - 1)


@triton.jit
def correlate_kernel(
    flat, table, windows, out, rows, columns, anchor_y, anchor_x, channels: tl.constexpr, fields: tl.constexpr,
    border: tl.constexpr, block: tl.constexpr,
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
        begin = source + _bordered(there_y, height, border) * line
        for j in range(0, columns):
            there_x = x + j - anchor_x
            inside = mask
            if border == 4:
                inside = mask & (there_y >= 0) & (there_y < height) & (there_x >= 0)
                inside = inside & (there_x < width)
            value = tl.load(
                begin + _bordered(there_x, width, border) * channels, mask=inside, other=0
            )
            total += value.to(tl.float32) * tl.load(weights + i * columns + j)
    # A float of this size has no place for fractions: the sum is rounded to the even number.
    total = tl.minimum(tl.maximum(total, 0.0), 255.0) + 8388608.0 - 8388608.0
    tl.store(out + tl.load(row + 3) + place, total.to(tl.uint8), mask=mask)


@triton.jit
def erase_kernel(
    flat, table, out, channels: tl.constexpr, fields: tl.constexpr, block: tl.constexpr
):
    """Copy an image, with its regions filled; a program does a piece of one."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    width = tl.load(row + 2).to(tl.int32)
    mask = place < tl.load(row + 1).to(tl.int32) * width * channels
    y = place // (width * channels)
    x = (place // channels) % width
    value = tl.load(flat + tl.load(row) + place, mask=mask, other=0).to(tl.int32)
    fill = tl.load(table + tl.load(row + 4) + place % channels).to(tl.int32)
    regions = table + tl.load(row + 5)
    for k in range(0, tl.load(row + 6).to(tl.int32)):
        region = regions + 4 * k
        inside = (y >= tl.load(region)) & (x >= tl.load(region + 1))
        inside = inside & (y < tl.load(region + 2)) & (x < tl.load(region + 3))
        value = tl.where(inside, fill, value)
    tl.store(out + tl.load(row + 3) + place, value.to(tl.uint8), mask=mask)


@triton.jit
def windows_kernel(
    flat, table, out, fill, channels: tl.constexpr, fields: tl.constexpr, block: tl.constexpr
):
    """Copy a window; a program does a piece of one."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    out_height = tl.load(row + 4).to(tl.int32)
    out_width = tl.load(row + 5).to(tl.int32)
    mask = place < out_height * out_width * channels
    x = (place // channels) % out_width
    y = place // (out_width * channels)
    mirror = tl.load(row + 8).to(tl.int32)
    x = tl.where(mirror & 1 != 0, out_width - 1 - x, x) + tl.load(row + 7).to(tl.int32)
    y = tl.where(mirror & 2 != 0, out_height - 1 - y, y) + tl.load(row + 6).to(tl.int32)
    height = tl.load(row + 1).to(tl.int32)
    width = tl.load(row + 2).to(tl.int32)
    inside = mask & (y >= 0) & (y < height) & (x >= 0) & (x < width)
    source = flat + tl.load(row) + (y * width + x) * channels + place % channels
    value = tl.where(inside, tl.load(source, mask=inside, other=0).to(tl.int32), fill)
    tl.store(out + tl.load(row + 3) + place, value.to(tl.uint8), mask=mask)


def warp(
    flat: Tensor, samples: Tensor, results: int, largest: int, channels: int, linear: bool, filled: bool, fill: float
) -> Tensor:  # fmt: skip
    """Do what `device.warp.warp_in_torch` does."""
    count, fields = samples.shape
    out = torch.empty(results, dtype=torch.uint8, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    warp_kernel[grid](flat, samples, out, fill, channels, fields, linear, filled, BLOCK)
    return out


def filter(
    flat: Tensor, block: Tensor, count: int, results: int, largest: int, channels: int
) -> Tensor:
    """Do what `device.separable.filter_in_torch` does."""
    wide = torch.empty(results, device=flat.device)
    out = torch.empty(results, dtype=torch.uint8, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    filter_kernel[grid](flat, block, wide, channels, 8, False, BLOCK)
    filter_kernel[grid](wide, block, out, channels, 8, True, BLOCK)
    return out


def correlate(
    flat: Tensor, samples: Tensor, windows: Tensor, results: int, largest: int, channels: int, y: int, x: int,
    border: int,
) -> Tensor:  # fmt: skip
    """Do what `device.correlate.correlate_in_torch` does."""
    count, fields = samples.shape
    _, rows, columns = windows.shape
    out = torch.empty(results, dtype=torch.uint8, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    correlate_kernel[grid](flat, samples, windows, out, rows, columns, y, x, channels, fields, border, BLOCK)
    return out


def erase(
    flat: Tensor, block: Tensor, count: int, results: int, largest: int, channels: int
) -> Tensor:
    """Do what `device.erase.erase_in_torch` does."""
    out = torch.empty(results, dtype=torch.uint8, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    erase_kernel[grid](flat, block, out, channels, 7, BLOCK)
    return out


def copy_windows(
    flat: Tensor, samples: Tensor, results: int, largest: int, channels: int, fill: int
) -> Tensor:
    """Do what `device.window.copy_windows_in_torch` does."""
    count, fields = samples.shape
    out = torch.empty(results, dtype=torch.uint8, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    windows_kernel[grid](flat, samples, out, fill, channels, fields, BLOCK)
    return out


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
        counts -= tl.where(
            bins == 0, block - tl.sum(mask.to(tl.int32), 0), 0
        )  # those outside were counted as 0
    place = out + (sample * channels + channel) * 256 + bins
    tl.atomic_add(place, counts, mask=counts > 0)


@triton.jit
def values_kernel(
    flat, table, tables, out, channels: tl.constexpr, fields: tl.constexpr, block: tl.constexpr
):
    """Look up the values of an image; a program does a piece of one."""
    sample = tl.program_id(1).to(tl.int64)
    row = table + sample * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    mask = place < tl.load(row + 1).to(tl.int32) * channels
    value = tl.load(flat + tl.load(row) + place, mask=mask, other=0).to(tl.int32)
    maps = tables + (sample * channels + place % channels) * 256
    tl.store(out + tl.load(row + 2) + place, tl.load(maps + value, mask=mask, other=0), mask=mask)


@triton.jit
def _random(row, place):
    """Draw the number at a place from [0, 1): Philox4x64-10, as NumPy has it, eight numbers a block."""
    key0 = tl.load(row + 3).to(tl.uint64, bitcast=True)
    key1 = tl.load(row + 4).to(tl.uint64, bitcast=True)
    c0 = (place // 8 + 1).to(tl.uint64)
    c1 = tl.zeros_like(c0)
    c2 = tl.zeros_like(c0)
    c3 = tl.zeros_like(c0)
    first = tl.full(c0.shape, 0xD2E7470EE14C6C93, tl.uint64)
    second = tl.full(c0.shape, 0xCA5A826395121157, tl.uint64)
    for _ in tl.static_range(10):
        high0 = tl.umulhi(first, c0)
        high1 = tl.umulhi(second, c2)
        low0 = first * c0
        low1 = second * c2
        c0 = high1 ^ c1 ^ key0
        c1 = low1
        c2 = high0 ^ c3 ^ key1
        c3 = low0
        key0 += 0x9E3779B97F4A7C15
        key1 += 0xBB67AE8584CAA73B
    word = (place % 8) // 2
    wide = tl.where(word < 2, tl.where(word == 0, c0, c1), tl.where(word == 2, c2, c3))
    drawn = tl.where(place % 2 == 0, wide & 0xFFFFFFFF, wide >> 32)
    return (drawn >> 8).to(tl.int32).to(tl.float32) * 5.9604644775390625e-08


@triton.jit
def normal_kernel(flat, table, out, fields: tl.constexpr, block: tl.constexpr):
    """Add normal numbers (Box-Muller): the first half of an image takes the cosines, the other the sines."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    size = tl.load(row + 1).to(tl.int32)
    place = tl.program_id(0) * block + tl.arange(0, block)
    mask = place < size
    half = (size + 1) // 2
    later = place >= half
    pair = tl.where(later, place - half, place)
    radius = tl.sqrt(-2.0 * tl.log(1.0 - _random(row, pair)))
    angle = _random(row, half + pair) * 6.2831854820251465
    noise = radius * tl.where(later, tl.sin(angle), tl.cos(angle))
    value = tl.load(flat + tl.load(row) + place, mask=mask, other=0).to(tl.float32)
    value = noise * _number(row, 5) + value + _number(row, 6)
    value = tl.minimum(tl.maximum(value + 0.5, 0.0), 255.0)
    tl.store(out + tl.load(row + 2) + place, value.to(tl.uint8), mask=mask)


@triton.jit
def spots_kernel(flat, table, out, step: tl.constexpr, fields: tl.constexpr, block: tl.constexpr):
    """Replace random pixels by the light or the dark value."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    mask = place < tl.load(row + 1).to(tl.int32)
    draw = _random(row, place // step)
    value = tl.load(flat + tl.load(row) + place, mask=mask, other=0).to(tl.int32)
    ends = tl.where(draw < _number(row, 6), tl.load(row + 7), tl.load(row + 8)).to(tl.int32)
    value = tl.where(draw < _number(row, 5), ends, value)
    tl.store(out + tl.load(row + 2) + place, value.to(tl.uint8), mask=mask)


PIECES = 8


def count_values(flat: Tensor, samples: Tensor, longest: int, channels: int) -> Tensor:
    """Do what `device.counts.count_in_torch` does."""
    count, fields = samples.shape
    out = torch.zeros((count, channels, 256), dtype=torch.int32, device=flat.device)
    grid = (triton.cdiv(longest, BLOCK * PIECES), count, channels)
    counts_kernel[grid](flat, samples, out, channels, fields, PIECES, BLOCK)
    return out


def map_values(
    flat: Tensor, samples: Tensor, tables: Tensor, results: int, longest: int, channels: int
) -> Tensor:
    """Do what `device.counts.map_in_torch` does."""
    count, fields = samples.shape
    out = torch.empty(results, dtype=torch.uint8, device=flat.device)
    grid = (triton.cdiv(longest * channels, BLOCK), count)
    values_kernel[grid](flat, samples, tables, out, channels, fields, BLOCK)
    return out


def add_normal(flat: Tensor, samples: Tensor, results: int, longest: int) -> Tensor:
    """Do what `device.noise.normal_in_torch` does."""
    count, fields = samples.shape
    out = torch.empty(results, dtype=torch.uint8, device=flat.device)
    normal_kernel[(triton.cdiv(longest, BLOCK), count)](flat, samples, out, fields, BLOCK)
    return out


def replace_pixels(flat: Tensor, samples: Tensor, results: int, longest: int, step: int) -> Tensor:
    """Do what `device.noise.replace_in_torch` does."""
    count, fields = samples.shape
    out = torch.empty(results, dtype=torch.uint8, device=flat.device)
    spots_kernel[(triton.cdiv(longest, BLOCK), count)](flat, samples, out, step, fields, BLOCK)
    return out


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
        value = tl.load(source + place.to(tl.int64) * channels, mask=mask, other=0.0)
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
        result = tl.sum(found, 0) / _number(row, 2)
    else:
        result = tl.min(found, 0) if kind == 2 else tl.max(found, 0)
        result = tl.where(tl.max(no_numbers, 0) > 0, float("nan"), result)
    tl.store(out + sample * channels + channel, result)


def reduce(flat: Tensor, samples: Tensor, means: Tensor | None, channels: int, kind: int) -> Tensor:
    """Do what `device.reduce.reduce_in_torch` does."""
    count, fields = samples.shape
    out = torch.empty((count, channels), device=flat.device)
    each = means is not None and means.numel() == count * channels
    steps = (channels, 1) if each else (1, 0)
    has_means = means is not None
    reduce_kernel[(channels, count)](
        flat, samples, means, out, channels, *steps, fields, kind, has_means, 2 * BLOCK
    )
    return out
