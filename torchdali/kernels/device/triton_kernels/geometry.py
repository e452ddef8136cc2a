"""Kernels that move pixels: warps, windows, erased and pasted regions."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton reads annotations of kernels: theirs are for it alone.

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from torchdali.kernels.device.triton_kernels._common import BLOCK, number

__all__ = [
    "compose", "compose_kernel", "copy_windows", "erase", "erase_kernel", "warp", "warp_kernel", "windows_kernel",
]  # fmt: skip


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
    x = px * number(row, 6) + number(row, 8) + py * number(row, 7)
    y = px * number(row, 9) + number(row, 11) + py * number(row, 10)
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
def compose_kernel(flat, table, fills, out, period, fields: tl.constexpr, block: tl.constexpr):
    """Copy regions to a canvas of bytes; a program does a piece of one."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    width = tl.load(row + 2).to(tl.int32)
    mask = place < tl.load(row + 1).to(tl.int32) * width
    y = place // width
    x = place % width
    found = tl.full((block,), -1, tl.int64)
    regions = table + tl.load(row + 3)
    for k in range(0, tl.load(row + 4).to(tl.int32)):
        region = regions + 6 * k
        v = y - tl.load(region + 2)
        u = x - tl.load(region + 3)
        inside = (v >= 0) & (u >= 0) & (v < tl.load(region + 4)) & (u < tl.load(region + 5))
        found = tl.where(inside, tl.load(region) + v * tl.load(region + 1) + u, found)
    fill = tl.load(fills + x % period).to(tl.uint8)
    value = tl.load(flat + found, mask=mask & (found >= 0), other=0)
    tl.store(out + tl.load(row) + place, tl.where(found >= 0, value, fill), mask=mask)


def warp(
    flat: Tensor, samples: Tensor, results: int, largest: int, channels: int, linear: bool, filled: bool, fill: float
) -> Tensor:  # fmt: skip
    """Do what `device.warp.warp_in_torch` does."""
    count, fields = samples.shape
    out = torch.empty(results, dtype=torch.uint8, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    warp_kernel[grid](flat, samples, out, fill, channels, fields, linear, filled, BLOCK)
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


def erase(
    flat: Tensor, block: Tensor, count: int, results: int, largest: int, channels: int
) -> Tensor:
    """Do what `device.erase.erase_in_torch` does."""
    out = torch.empty(results, dtype=torch.uint8, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    erase_kernel[grid](flat, block, out, channels, 7, BLOCK)
    return out


def compose(
    flat: Tensor, block: Tensor, count: int, period: int, results: int, largest: int
) -> Tensor:
    """Do what `device.compose.compose_in_torch` does."""
    out = torch.empty(results, dtype=torch.uint8, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    fills = block[len(block) - period :]
    compose_kernel[grid](flat, block, fills, out, period, 5, BLOCK)
    return out
