"""Resize by separable resampling: any filter, any region, any number of spatial axes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from torchdali.kernels.convert import convert
from torchdali.kernels.resample_weights import FILTERS, Axis, Taps, nearest, resize_axes, taps

__all__ = ["FILTERS", "resample", "resize"]


def resize(
    x: Tensor,
    size: Sequence[int],
    *,
    roi: Sequence[tuple[float, float]] | None = None,
    min_filter: str = "linear",
    mag_filter: str = "linear",
    antialias: bool = True,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Resize the last spatial axes of a channel-last tensor.

    Args:
        x: ``(..., *spatial, C)``, as many spatial axes as `size` has entries; any real dtype.
        size: Extent of every spatial axis of the output.
        roi: ``(low, high)`` for every spatial axis, in input pixels, edges at whole numbers; the
            whole image when None. ``high < low`` flips the axis.
        min_filter: Filter of the axes that shrink: one of `FILTERS`.
        mag_filter: Filter of the axes that grow or stay.
        antialias: Stretch the filter where the image shrinks.
        dtype: Of the output, rounded and saturated; the input's own when None.

    Returns:
        A contiguous tensor ``(..., *size, C)``.

    Raises:
        ValueError: An unknown filter, or a region for another number of axes.
    """
    lengths = x.shape[x.dim() - 1 - len(size) : -1]
    axes = resize_axes(lengths, size, roi, min_filter, mag_filter, antialias)
    return resample(x, axes, dtype or x.dtype)


def resample(x: Tensor, axes: Sequence[Axis], dtype: torch.dtype) -> Tensor:
    """Resample the spatial axes of ``(..., *spatial, C)`` in float32, rounding once at the end.

    The axis that shrinks most goes first.

    Returns:
        A contiguous tensor ``(..., *size, C)`` of type `dtype`.
    """
    first = x.dim() - 1 - len(axes)
    if 0 in (*x.shape, *(axis.size for axis in axes)):
        sizes = [axis.size if axis.length else 0 for axis in axes]
        return x.new_zeros((*x.shape[:first], *sizes, x.shape[-1]), dtype=dtype)
    passes = sorted(enumerate(axes, first), key=lambda item: (item[1].growth, -item[0]))
    todo = [(dim, axis, i == 0) for i, (dim, axis) in enumerate(passes) if not axis.is_identity]
    sums = []
    for dim, axis, is_first in todo:
        if axis.filter == "nn":
            x = _select(x, dim, nearest(axis, dim == x.dim() - 2, is_first, x.device))
        else:
            sums.append((dim, taps(axis, is_first, x.device)))
    for dim, t in sums:
        x = x.narrow(dim, t.start, t.extent)
    for dim, t in sums:
        x = _weighted_sum(x.to(torch.float32), dim, t)
    return convert(x, dtype).contiguous()


def _select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    if x.dtype == torch.uint16:  # not every PyTorch selects from it
        return x.view(torch.int16).index_select(dim, index).view(torch.uint16)
    return x.index_select(dim, index)


def _weighted_sum(x: Tensor, dim: int, t: Taps) -> Tensor:
    """Apply taps along `dim`; the result may be a permuted view."""
    front = x.movedim(dim, 0)
    rows = front.reshape(front.shape[0], -1)
    out = embedding_bag(t.pixels, rows, per_sample_weights=t.weights, mode="sum")
    return out.view(-1, *front.shape[1:]).movedim(0, dim)
