"""Kernels that warp images and copy windows of images.

A kernel is launched as many programs. Each program computes a block of one output's elements.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton interprets type annotations of kernels, so kernels have no annotations for type checkers.

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from torchdali.kernels.device.triton_kernels._common import BLOCK, border_index, nearest_even, number

__all__ = ["copy_windows", "warp", "warp_kernel", "windows_kernel"]


@triton.jit
def _pixel(source, y, x, height, width, channels, border: tl.constexpr, fill, mask):
    """Load the values at integer positions, which may be outside of the image."""
    inside = mask
    if border == 4:
        inside = mask & (y >= 0) & (y < height) & (x >= 0) & (x < width)
    index = border_index(y, height, border) * width + border_index(x, width, border)
    value = tl.load(source + index * channels, mask=inside, other=0).to(tl.float32)
    return tl.where(inside, value, fill)


@triton.jit
def _share(distance, mode: tl.constexpr):
    """Return the interpolation weight of a pixel at a distance of at most `mode` pixels (1: linear, 2: cubic)."""
    if mode == 1:
        weight = 1 - distance
    else:  # a = -0.75
        near = (1.25 * distance - 2.25) * distance * distance + 1
        far = ((3.75 - 0.75 * distance) * distance - 6) * distance + 3
        weight = tl.where(distance <= 1, near, far)
    return weight


@triton.jit
def warp_kernel(
    flat, table, out, channels: tl.constexpr, fields: tl.constexpr, projective: tl.constexpr, mode: tl.constexpr,
    border: tl.constexpr, as_bytes: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Warp an image by an affine map, or by a perspective map if `projective` is True."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    index = tl.program_id(0) * block + tl.arange(0, block)
    out_width = tl.load(row + 5).to(tl.int32)
    mask = index < tl.load(row + 4).to(tl.int32) * out_width * channels
    height = tl.load(row + 1).to(tl.int32)
    width = tl.load(row + 2).to(tl.int32)
    px = ((index // channels) % out_width).to(tl.float32)
    py = (index // (out_width * channels)).to(tl.float32)
    if not projective:
        px += 0.5
        py += 0.5
    x = px * number(row, 6) + (py * number(row, 7) + number(row, 8))
    y = px * number(row, 9) + (py * number(row, 10) + number(row, 11))
    if projective:
        w = px * number(row, 12) + (py * number(row, 13) + number(row, 14))
        scale = tl.where(w == 0, 0.0, 1 / tl.where(w == 0, 1.0, w))
        x *= scale
        y *= scale
    # Clamp positions to the range of integers. If the border mode doesn't repeat or reflect the image, all positions
    # far outside of the image have the same value, so they are clamped to 8 pixels outside of the image.
    reach = 1.0e9 if border < 2 or border == 3 else 8.0
    x = tl.minimum(tl.maximum(x, -reach), width.to(tl.float32) + reach)
    y = tl.minimum(tl.maximum(y, -reach), height.to(tl.float32) + reach)
    source = flat + tl.load(row) + index % channels
    fill = number(row, 15 + index % channels)
    if mode == 0:
        x0 = (nearest_even(x) if projective else tl.floor(x)).to(tl.int32)
        y0 = (nearest_even(y) if projective else tl.floor(y)).to(tl.int32)
        value = _pixel(source, y0, x0, height, width, channels, border, fill, mask)
    else:
        if not projective:
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
    tl.store(out + tl.load(row + 3) + index, value.to(out.dtype.element_ty), mask=mask)


@triton.jit
def windows_kernel(flat, table, out, fill, channels: tl.constexpr, fields: tl.constexpr, block: tl.constexpr):
    """Copy a window of an image, and use `fill` for pixels outside of the image."""
    row = table + tl.program_id(1).to(tl.int64) * fields
    index = tl.program_id(0) * block + tl.arange(0, block)
    out_height = tl.load(row + 4).to(tl.int32)
    out_width = tl.load(row + 5).to(tl.int32)
    mask = index < out_height * out_width * channels
    x = (index // channels) % out_width + tl.load(row + 7).to(tl.int32)
    y = index // (out_width * channels) + tl.load(row + 6).to(tl.int32)
    height = tl.load(row + 1).to(tl.int32)
    width = tl.load(row + 2).to(tl.int32)
    inside = mask & (y >= 0) & (y < height) & (x >= 0) & (x < width)
    source = flat + tl.load(row) + (y * width + x) * channels + index % channels
    value = tl.where(inside, tl.load(source, mask=inside, other=0).to(tl.float32), fill)
    tl.store(out + tl.load(row + 3) + index, value.to(out.dtype.element_ty), mask=mask)


def warp(
    flat: Tensor, samples: Tensor, results: int, largest: int, channels: int, projective: bool, mode: int, border: int,
    as_bytes: bool,
) -> Tensor:  # fmt: skip
    """Return the same result as `device.warp.warp_in_torch`, computed by the kernel."""
    count, fields = samples.shape
    out = torch.empty(results, dtype=torch.uint8 if as_bytes else torch.float32, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    warp_kernel[grid](flat, samples, out, channels, fields, projective, mode, border, as_bytes, BLOCK)
    return out


def copy_windows(flat: Tensor, samples: Tensor, results: int, largest: int, channels: int, fill: float) -> Tensor:
    """Return the same result as `device.window.copy_windows_in_torch`, computed by the kernel."""
    count, fields = samples.shape
    out = torch.empty(results, dtype=flat.dtype, device=flat.device)
    grid = (triton.cdiv(largest, BLOCK), count)
    windows_kernel[grid](flat, samples, out, fill, channels, fields, BLOCK)
    return out
