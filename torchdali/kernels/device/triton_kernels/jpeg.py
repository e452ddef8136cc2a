"""Kernels that distort images as JPEG does."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton reads annotations of kernels: theirs are for it alone.

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from torchdali.kernels.device.triton_kernels._common import BLOCK

__all__ = ["BLOCKS", "blocks_kernel", "distort", "rgb_kernel"]

BLOCKS = 4  # that a program transforms


@triton.jit
def _component(source, y, x, width, color, mask):
    """Load pixels and compute luma, or one of the chromas."""
    pixel = source + (y * width + x) * 3
    red = tl.load(pixel, mask=mask, other=0).to(tl.int32)
    green = tl.load(pixel + 1, mask=mask, other=0).to(tl.int32)
    blue = tl.load(pixel + 2, mask=mask, other=0).to(tl.int32)
    a = tl.where(color == 0, 19595, tl.where(color == 1, -11059, 32768))
    b = tl.where(color == 0, 38470, tl.where(color == 1, -21709, -27439))
    c = tl.where(color == 0, 7471, tl.where(color == 1, 32768, -5329))
    offset = tl.where(color == 0, 32768, 8421375)
    return (a * red + b * green + c * blue + offset) >> 16


@triton.jit
def _from_left(matrix, x, bits: tl.constexpr):
    """Multiply blocks by a matrix from the left, and round."""
    product = tl.sum(matrix[None, :, :, None] * x[:, None, :, :], 2)
    return (product + (1 << (bits - 1))) >> bits


@triton.jit
def _from_right(x, matrix, bits: tl.constexpr):
    """Multiply blocks by a transposed matrix from the right, and round."""
    product = tl.sum(x[:, :, None, :] * matrix[None, None, :, :], 3)
    return (product + (1 << (bits - 1))) >> bits


@triton.jit
def blocks_kernel(flat, table, numbers, planes, fields: tl.constexpr, chroma: tl.constexpr, count: tl.constexpr):
    """Transform blocks of luma, or of both chromas, round them to multiples of the table, and transform them back."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    height = tl.load(row + 1).to(tl.int32)
    width = tl.load(row + 2).to(tl.int32)
    plane = tl.program_id(2)
    lines = height
    columns = width
    if chroma:
        lines = (height + 1) // 2
        columns = (width + 1) // 2
    across = (columns + 7) // 8
    total = (lines + 7) // 8 * across
    block = tl.program_id(0) * count + tl.arange(0, count)[:, None, None]
    i = tl.arange(0, 8)[None, :, None]
    j = tl.arange(0, 8)[None, None, :]
    mask = (block < total) & (i < 8) & (j < 8)
    y = tl.minimum(block // across * 8 + i, lines - 1)
    x = block % across * 8 + j
    source = flat + tl.load(row)
    if chroma:
        value = tl.zeros((count, 8, 8), tl.int32)
        for k in tl.static_range(4):
            v = tl.minimum(2 * y + k // 2, height - 1)
            u = tl.minimum(2 * x + k % 2, width - 1)
            value += _component(source, v, u, width, plane + 1, mask)
        value = (value + 1 + x % 2) >> 2
    else:
        value = _component(source, y, tl.minimum(x, width - 1), width, 0, mask)
    rows = tl.arange(0, 8)[:, None]
    places = tl.arange(0, 8)[None, :]
    waves = tl.load(numbers + 128 + rows * 8 + places)
    turned = tl.load(numbers + 128 + places * 8 + rows)
    steps = tl.load(numbers + 64 * chroma + i * 8 + j) * tl.load(row + 4).to(tl.int32)
    steps = tl.minimum(tl.maximum((steps + 50) // 100, 1), 255)
    found = _from_left(waves, _from_right(value - 128, waves, 11), 15)
    levels = (tl.abs(found) + steps * 4) // (steps * 8) * steps
    found = _from_left(turned, tl.where(found < 0, -levels, levels), 11)
    found = _from_right(found.to(tl.int64), turned.to(tl.int64), 18) + 128
    found = tl.minimum(tl.maximum(found, 0), 255).to(tl.uint8)
    place = (block // across * 8 + i) * across * 8 + x
    out = planes + tl.load(row + 5 + chroma) + plane * total * 64
    tl.store(out + place, found, mask=mask)


@triton.jit
def _doubled(plane, y, x, lines, columns, pitch, mask):
    """Return a chroma of pixels: three parts of the nearest, one of the next but nearest, both ways."""
    near_y = y // 2
    near_x = x // 2
    next_y = tl.minimum(tl.maximum(near_y + y % 2 * 2 - 1, 0), lines - 1)
    next_x = tl.minimum(tl.maximum(near_x + x % 2 * 2 - 1, 0), columns - 1)
    nearest = tl.load(plane + near_y * pitch + near_x, mask=mask, other=0).to(tl.int32)
    total = 9 * nearest
    total += 3 * tl.load(plane + next_y * pitch + near_x, mask=mask, other=0).to(tl.int32)
    total += 3 * tl.load(plane + near_y * pitch + next_x, mask=mask, other=0).to(tl.int32)
    total += tl.load(plane + next_y * pitch + next_x, mask=mask, other=0).to(tl.int32)
    return tl.where(columns <= 2, nearest, (total + 8 - x % 2) >> 4) - 128


@triton.jit
def rgb_kernel(planes, table, out, fields: tl.constexpr, block: tl.constexpr):
    """Put luma and enlarged chromas together; a program does a piece of one image."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    height = tl.load(row + 1).to(tl.int32)
    width = tl.load(row + 2).to(tl.int32)
    mask = place < height * width
    y = place // width
    x = place % width
    lines = (height + 1) // 2
    columns = (width + 1) // 2
    pitch = (columns + 7) // 8 * 8
    chroma = planes + tl.load(row + 6)
    blue = _doubled(chroma, y, x, lines, columns, pitch, mask)
    chroma += (lines + 7) // 8 * 8 * pitch
    red = _doubled(chroma, y, x, lines, columns, pitch, mask)
    luma = planes + tl.load(row + 5) + y * ((width + 7) // 8 * 8) + x
    luma = (tl.load(luma, mask=mask, other=0).to(tl.int32) << 16) + 32768
    result = out + tl.load(row + 3) + place * 3
    for channel in tl.static_range(3):
        value = luma
        if channel == 0:
            value += 91881 * red
        elif channel == 1:
            value += -22554 * blue - 46802 * red
        else:
            value += 116130 * blue
        value = tl.minimum(tl.maximum(value >> 16, 0), 255)
        tl.store(result + channel, value.to(tl.uint8), mask=mask)


def distort(
    flat: Tensor, samples: Tensor, numbers: Tensor, results: int, largest: int, room: int, blocks: int, halves: int
) -> Tensor:  # fmt: skip
    """Do what `device.jpeg.distort_in_torch` does."""
    count, fields = samples.shape
    planes = torch.empty(room, dtype=torch.uint8, device=flat.device)
    out = torch.empty(results, dtype=torch.uint8, device=flat.device)
    given = flat, samples, numbers, planes, fields
    blocks_kernel[triton.cdiv(blocks, BLOCKS), count, 1](*given, False, BLOCKS)
    blocks_kernel[triton.cdiv(halves, BLOCKS), count, 2](*given, True, BLOCKS)
    rgb_kernel[triton.cdiv(largest // 3, BLOCK), count](planes, samples, out, fields, BLOCK)
    return out
