"""Rank filters: the largest, smallest or median value in a window around each element."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from torchdali.kernels.filters.linear import extend

__all__ = ["median", "rank"]


def rank(
    x: Tensor,
    axes: Sequence[int],
    sizes: Sequence[int],
    anchor: Sequence[int],
    border: str,
    largest: bool,
) -> Tensor:
    """Return the largest (dilation) or smallest (erosion) value in a rectangular window around each element.

    Args:
        x: Tensor of any real dtype.
        axes: Axes of the window.
        sizes: Extents of the window, one per axis.
        anchor: Index of the window's element that is placed on the pixel, one per axis; -1 for the middle.
        border: One of `linear.BORDERS`; "constant" ignores elements outside of the tensor.
        largest: True for the largest value, False for the smallest.
    """
    choose = torch.maximum if largest else torch.minimum
    neutral = _extreme(x.dtype, not largest)
    for axis, size, position in zip(axes, sizes, anchor, strict=True):
        before = size // 2 if position < 0 else position
        padded = extend(x, axis, before, size - 1 - before, border, neutral)
        out = padded.narrow(axis, 0, x.shape[axis])
        for k in range(1, size):
            out = choose(out, padded.narrow(axis, k, x.shape[axis]))
        x = out
    return x


def _extreme(dtype: torch.dtype, largest: bool) -> float:
    info = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    return info.max if largest else info.min


def median(x: Tensor, axes: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Return the median in a rectangular window around each element. Outside of the tensor, the edge is repeated.

    Args:
        x: Tensor of any real dtype.
        axes: Axes of the window.
        sizes: Extents of the window, one odd number per axis.
    """
    if not x.numel():
        return x
    for axis, size in zip(axes, sizes, strict=True):
        x = extend(x, axis, size // 2, size // 2, "clamp")
    for axis, size in zip(axes, sizes, strict=True):
        x = x.unfold(axis, size, 1)
    return x.flatten(-len(sizes)).median(-1).values
