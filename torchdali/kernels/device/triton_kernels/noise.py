"""Kernels that draw noise."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton reads annotations of kernels: theirs are for it alone.

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from torchdali.kernels.device.triton_kernels._common import BLOCK, number

__all__ = ["add_normal", "normal_kernel", "replace_pixels", "spots_kernel"]


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
def _cosine(turns):
    """Return the cosine of angles in turns, by the polynomials of Cephes (Moshier).

    CUDA's own has a path for large angles, which takes memory on the stack.
    """
    quarter = tl.floor(4.0 * turns + 0.5)
    angle = (turns - 0.25 * quarter) * 6.2831854820251465
    square = angle * angle
    sine = ((-1.9515295891e-4 * square + 8.3321608736e-3) * square - 1.6666654611e-1) * square
    sine = sine * angle + angle
    cosine = ((2.443315711809948e-5 * square - 1.388731625493765e-3) * square + 4.166664568298827e-2) * square
    cosine = (cosine - 0.5) * square + 1.0
    number = quarter.to(tl.int32) & 3
    value = tl.where(number % 2 == 1, sine, cosine)
    return tl.where((number == 1) | (number == 2), -value, value)


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
    turns = _random(row, half + pair)
    noise = radius * _cosine(tl.where(later, turns - 0.25, turns))
    value = tl.load(flat + tl.load(row) + place, mask=mask, other=0).to(tl.float32)
    value = noise * number(row, 5) + value + number(row, 6)
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
    ends = tl.where(draw < number(row, 6), tl.load(row + 7), tl.load(row + 8)).to(tl.int32)
    value = tl.where(draw < number(row, 5), ends, value)
    tl.store(out + tl.load(row + 2) + place, value.to(tl.uint8), mask=mask)


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
