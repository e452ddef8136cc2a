"""Functions that several kernels use."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Triton interprets type annotations of kernels, so kernels have no annotations for type checkers.

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["BLOCK", "border_index", "nearest_even", "number", "reflect_index"]

BLOCK = 512  # elements that one Triton program computes


@triton.jit
def number(table, i):
    """Load a float that was stored as its bits."""
    return tl.load(table + i).to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def reflect_index(pixel, length):
    """Map an index beyond the borders to a pixel, by reflection without repeating the edge."""
    period = tl.maximum(2 * length - 2, 1)
    pixel = tl.abs(pixel) % period
    return tl.minimum(pixel, period - pixel) * (length > 1).to(tl.int32)


@triton.jit
def border_index(pixel, length, border: tl.constexpr):
    """Map an index beyond the borders to a pixel, by the border mode ``device.warp.BORDERS[border]``."""
    if border == 0:
        pixel = reflect_index(pixel, length)
    elif border == 1:
        pixel = (pixel % (2 * length) + 2 * length) % (2 * length)
        pixel = tl.minimum(pixel, 2 * length - 1 - pixel)
    elif border == 3:
        pixel = (pixel % length + length) % length
    return tl.minimum(tl.maximum(pixel, 0), length - 1)


@triton.jit
def nearest_even(x):
    """Round to the nearest integers, and halves to even integers."""
    whole = tl.floor(x + 0.5)
    odd = (whole - x == 0.5) & (tl.floor(whole * 0.5) * 2 != whole)
    return tl.where(odd, whole - 1, whole)
