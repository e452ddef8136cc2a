"""Fill rectangular regions of several samples of the same shape.

The number of operations doesn't depend on the number of samples.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.tables import upload
from torchdali.kernels.rearrange import select
from torchdali.kernels.window import fill_number

__all__ = ["fill_spans"]

Region = tuple[slice, ...]


def fill_spans(
    x: Tensor, regions: Iterable[Sequence[Region]], fills: Sequence[Sequence[float]], channel: int
) -> Tensor:
    """Fill regions of each ``x[i]``.

    Args:
        x: Samples ``(N, ...)``.
        regions: Regions of each ``x[i]``; a region has one slice per axis.
        fills: Fill values of each ``x[i]``: one value, or one value per channel. See `fill_number`.
        channel: Channel axis of a sample.
    """
    extents = x.shape[1:]
    spans = [
        [[part.indices(n)[:2] for part, n in zip(region, extents, strict=True)] for region in sample_regions]
        for sample_regions in regions
    ]
    empty = [(0, 0), *[(0, n) for n in extents[1:]]]
    table = np.array(list(itertools.zip_longest(*spans, fillvalue=empty)), np.int64)
    if not table.size:
        return x
    axes = [k for k, n in enumerate(extents) if not k or (table[:, :, k] != (0, n)).any()]
    inside = functools.reduce(torch.logical_or, [_region_mask(ends, extents, axes) for ends in upload(table, x.device)])
    return select(inside, _values(fills, x, channel), x)


def _region_mask(ends: Tensor, extents: Sequence[int], axes: Sequence[int]) -> Tensor:
    """Return a mask of the elements inside one region of each sample.

    Args:
        ends: Start and end of the region on every axis, ``(N, axes, 2)``.
        axes: Axes on which the region may be shorter than the sample.
    """
    hits = []
    for axis in axes:
        index = torch.arange(extents[axis], device=ends.device)
        inside = (index >= ends[:, axis, :1]) & (index < ends[:, axis, 1:])
        hits.append(inside.view(-1, *[n if k == axis else 1 for k, n in enumerate(extents)]))
    return functools.reduce(torch.logical_and, hits)


def _values(fills: Sequence[Sequence[float]], x: Tensor, channel: int) -> Tensor:
    """Return the fill values of samples, in a shape that broadcasts against `x`."""
    max_count = max(map(len, fills))
    rows = [[fill_number(value, x.dtype) for value in fill or [0.0]] for fill in fills]
    rows = [row * max(max_count, 1) if len(row) == 1 else row for row in rows]
    values = upload(torch.tensor(rows, dtype=x.dtype), x.device)
    shape = [values.shape[1] if axis == channel else 1 for axis in range(x.ndim - 1)]
    return values.view(len(x), *shape)
