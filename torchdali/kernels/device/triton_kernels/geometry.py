"""Kernels that move pixels: warps, windows, erased and pasted regions."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton reads annotations of kernels: theirs are for it alone.

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from torchdali.kernels.device.triton_kernels._common import BLOCK, bordered, nearest_even, number

__all__ = [
    "compose", "compose_kernel", "copy_windows", "erase", "erase_kernel", "take", "take_kernel", "turn", "turn_kernel",
    "warp", "warp_kernel", "windows_kernel",
]  # fmt: skip


@triton.jit
def _pixel(source, y, x, height, width, channels, border: tl.constexpr, fill, mask):
    """Load pixels, which may lie outside."""
    inside = mask
    if border == 4:
        inside = mask & (y >= 0) & (y < height) & (x >= 0) & (x < width)
    place = bordered(y, height, border) * width + bordered(x, width, border)
    value = tl.load(source + place * channels, mask=inside, other=0).to(tl.float32)
    return tl.where(inside, value, fill)


@triton.jit
def _share(distance, mode: tl.constexpr):
    """Return the weight of pixels so far away, of at most as many pixels as `mode` is."""
    if mode == 1:
        weight = 1 - distance
    else:  # a = -0.75
        near = (1.25 * distance - 2.25) * distance * distance + 1
        far = ((3.75 - 0.75 * distance) * distance - 6) * distance + 3
        weight = tl.where(distance <= 1, near, far)
    return weight


@triton.jit
def warp_kernel(
    flat, table, extra, out, half, channels: tl.constexpr, fields: tl.constexpr, kind: tl.constexpr,
    mode: tl.constexpr, border: tl.constexpr, as_bytes: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Sample an image where the pixels of the output come from; a program does a piece of one output.

    Kinds are affine maps, perspectives, waves, the sphere and single moves.
    """
    row = table + tl.program_id(1).to(tl.int64) * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    out_width = tl.load(row + 5).to(tl.int32)
    mask = place < tl.load(row + 4).to(tl.int32) * out_width * channels
    height = tl.load(row + 1).to(tl.int32)
    width = tl.load(row + 2).to(tl.int32)
    result = tl.load(row + 3)
    u = (place // channels) % out_width
    v = place // (out_width * channels)
    px = u.to(tl.float32)
    py = v.to(tl.float32)
    if kind != 1 and kind != 2:
        px += 0.5
        py += 0.5
    if kind < 2:
        x = px * number(row, 6) + (py * number(row, 7) + number(row, 8))
        y = px * number(row, 9) + (py * number(row, 10) + number(row, 11))
        if kind == 1:
            w = px * number(row, 12) + (py * number(row, 13) + number(row, 14))
            scale = tl.where(w == 0, 0.0, 1 / tl.where(w == 0, 1.0, w))
            x *= scale
            y *= scale
    elif kind == 2:
        x = px + tl.load(extra + v, mask=mask, other=0)
        y = py + tl.load(extra + half + u, mask=mask, other=0)
        px += 0.5
        py += 0.5
    elif kind == 3:
        x = px - width.to(tl.float32) / 2
        y = py - height.to(tl.float32) / 2
        longer = tl.maximum(tl.maximum(width // 2, height // 2), 1).to(tl.float32)
        scale = tl.sqrt(x * x + y * y) / longer
        x = scale * x + width.to(tl.float32) / 2
        y = scale * y + height.to(tl.float32) / 2
    else:
        moves = extra + (result + place) // channels
        x = px + tl.load(moves, mask=mask, other=0).to(tl.float32)
        y = py + tl.load(moves + half, mask=mask, other=0).to(tl.float32)
    if kind > 1:
        displaced = number(row, 6) != 0
        x = tl.where(displaced, x, px)
        y = tl.where(displaced, y, py)
    # Numbers that no integer holds are kept away; far outside all is alike, unless the image repeats.
    reach = 1.0e9 if border < 2 or border == 3 else 8.0
    x = tl.minimum(tl.maximum(x, -reach), width.to(tl.float32) + reach)
    y = tl.minimum(tl.maximum(y, -reach), height.to(tl.float32) + reach)
    source = flat + tl.load(row) + place % channels
    fill = number(row, 15 + place % channels)
    if mode == 0:
        x0 = (nearest_even(x) if kind == 1 else tl.floor(x)).to(tl.int32)
        y0 = (nearest_even(y) if kind == 1 else tl.floor(y)).to(tl.int32)
        value = _pixel(source, y0, x0, height, width, channels, border, fill, mask)
    else:
        if kind != 1:
            x -= 0.5
            y -= 0.5
        x0 = tl.floor(x)
        y0 = tl.floor(y)
        value = tl.zeros((block,), tl.float32)
        for i in tl.static_range(1 - mode, 1 + mode):
            for j in tl.static_range(1 - mode, 1 + mode):
                weight = _share(tl.abs(y - y0 - i), mode) * _share(tl.abs(x - x0 - j), mode)
                v = y0.to(tl.int32) + i
                u = x0.to(tl.int32) + j
                value += weight * _pixel(source, v, u, height, width, channels, border, fill, mask)
    if as_bytes:
        value = tl.minimum(tl.maximum(value + 0.5, 0.0), 255.0)
    tl.store(out + result + place, value.to(out.dtype.element_ty), mask=mask)


@triton.jit
def windows_kernel(flat, table, out, fill, channels: tl.constexpr, fields: tl.constexpr, block: tl.constexpr):
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
    value = tl.where(inside, tl.load(source, mask=inside, other=0).to(tl.float32), fill)
    tl.store(out + tl.load(row + 3) + place, value.to(out.dtype.element_ty), mask=mask)


@triton.jit
def erase_kernel(flat, table, out, channels: tl.constexpr, fields: tl.constexpr, block: tl.constexpr):
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


@triton.jit
def take_kernel(flat, table, out, channels: tl.constexpr, fields: tl.constexpr, block: tl.constexpr):
    """Take rows and columns of an image; a program does a piece of one result."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    out_height = tl.load(row + 3).to(tl.int32)
    out_width = tl.load(row + 4).to(tl.int32)
    mask = place < out_height * out_width * channels
    rows = table + tl.load(row + 5)
    y = tl.load(rows + place // (out_width * channels), mask=mask, other=0)
    x = tl.load(rows + out_height + (place // channels) % out_width, mask=mask, other=0)
    source = flat + tl.load(row) + (y * tl.load(row + 1) + x) * channels + place % channels
    tl.store(out + tl.load(row + 2) + place, tl.load(source, mask=mask, other=0), mask=mask)


@triton.jit
def turn_kernel(flat, table, out, fields: tl.constexpr, block: tl.constexpr):
    """Transpose a matrix; a program does a piece of one."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    place = tl.program_id(0) * block + tl.arange(0, block)
    rows = tl.load(row + 1).to(tl.int32)
    columns = tl.load(row + 2).to(tl.int32)
    mask = place < rows * columns
    source = flat + tl.load(row) + place % rows * columns + place // rows
    tl.store(out + tl.load(row + 3) + place, tl.load(source, mask=mask, other=0), mask=mask)


def warp(
    flat: Tensor, samples: Tensor, extra: Tensor | None, results: int, largest: int, channels: int, kind: int,
    mode: int, border: int, as_bytes: bool,
) -> Tensor:  # fmt: skip
    """Do what `device.warp.warp_in_torch` does."""
    count, fields = samples.shape
    dtype = torch.uint8 if as_bytes else torch.float32
    out = torch.empty(results, dtype=dtype, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    half = 0 if extra is None else extra.shape[1]
    warp_kernel[grid](
        flat, samples, samples if extra is None else extra, out, half, channels, fields, kind, mode, border, as_bytes,
        BLOCK,
    )  # fmt: skip
    return out


def copy_windows(flat: Tensor, samples: Tensor, results: int, largest: int, channels: int, fill: float) -> Tensor:
    """Do what `device.window.copy_windows_in_torch` does."""
    count, fields = samples.shape
    out = torch.empty(results, dtype=flat.dtype, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    windows_kernel[grid](flat, samples, out, fill, channels, fields, BLOCK)
    return out


def erase(flat: Tensor, block: Tensor, count: int, results: int, largest: int, channels: int) -> Tensor:
    """Do what `device.erase.erase_in_torch` does."""
    out = torch.empty(results, dtype=torch.uint8, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    erase_kernel[grid](flat, block, out, channels, 7, BLOCK)
    return out


def compose(flat: Tensor, block: Tensor, count: int, period: int, results: int, largest: int) -> Tensor:
    """Do what `device.compose.compose_in_torch` does."""
    out = torch.empty(results, dtype=torch.uint8, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    fills = block[len(block) - period :]
    compose_kernel[grid](flat, block, fills, out, period, 5, BLOCK)
    return out


def take(flat: Tensor, block: Tensor, count: int, results: int, largest: int, channels: int) -> Tensor:
    """Do what `device.take.take_in_torch` does."""
    out = torch.empty(results, dtype=flat.dtype, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    take_kernel[grid](flat, block, out, channels, 6, BLOCK)
    return out


def turn(flat: Tensor, samples: Tensor, results: int, largest: int) -> Tensor:
    """Do what `device.turn.turn_in_torch` does."""
    count, fields = samples.shape
    out = torch.empty(results, dtype=flat.dtype, device=flat.device)
    turn_kernel[triton.cdiv(largest, BLOCK), count](flat, samples, out, fields, BLOCK)
    return out
