"""Find the connected components of a label map, which is an array of integer labels.

The algorithm splits the label map into runs of equal labels along the last axis. Then it joins runs that touch
(union-find).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from torchdali.kernels.memory import Array

__all__ = ["blobs"]


def blobs(labels: Array, background: int, classes: Sequence[int] | None = None) -> tuple[Array, Array, Array]:
    """Find connected components of equal labels.

    Two elements touch if their indices differ by 1 on a single axis.

    Args:
        labels: Label map: integers or bools of any shape.
        background: Label of the background, which isn't a component.
        classes: Labels to search; None for all labels except the background.

    Returns:
        Label ``(n,)``, start ``(n, ndim)`` and exclusive end ``(n, ndim)`` of each component, in the order of the
        components' first elements.
    """
    axes = [axis for axis, extent in enumerate(labels.shape) if extent != 1]
    shape = [labels.shape[axis] for axis in axes] or [1]
    values, starts, ends = _find_runs(np.ascontiguousarray(labels).reshape(-1), shape[-1])
    indices = _mask_labels(values, background, classes).nonzero()[0]
    values, starts, ends = (each.take(indices) for each in (values, starts, ends))
    parents = _join_pairs(len(values), *_find_touching(values, starts, ends, shape))
    roots = (parents == np.arange(len(parents))).nonzero()[0]
    order = parents.argsort(kind="stable")
    firsts = parents.take(order).searchsorted(roots)
    low = np.zeros((len(roots), labels.ndim), np.int64)
    high = np.ones_like(low)
    for axis, (start, end) in zip(axes, _extents(starts, ends, shape), strict=False):
        low[:, axis] = np.minimum.reduceat(start.take(order), firsts) if len(roots) else 0
        high[:, axis] = np.maximum.reduceat(end.take(order), firsts) if len(roots) else 0
    return values[roots], low, high


def _mask_labels(values: Array, background: int, classes: Sequence[int] | None) -> Array:
    """Return a mask of the labels that are searched."""
    flags: Array
    if classes is None:
        flags = values != background
    elif values.dtype == np.uint8:
        table = np.zeros(256, np.bool_)
        table[[label for label in classes if 0 <= label < 256]] = True
        flags = table.take(values)
    else:
        flags = np.isin(values, classes)
    return flags


def _find_runs(flat: Array, width: int) -> tuple[Array, Array, Array]:
    """Return label, start and end of all runs of equal elements. A run ends at the end of a row of `width` elements."""
    starts_run = np.empty(len(flat), np.bool_)
    np.not_equal(flat[1:], flat[:-1], out=starts_run[1:])
    starts_run[:: width or 1] = True
    starts = starts_run.nonzero()[0]
    ends = np.empty_like(starts)
    ends[:-1], ends[-1:] = starts[1:], len(flat)
    return flat.take(starts), starts, ends


def _find_touching(values: Array, starts: Array, ends: Array, shape: list[int]) -> tuple[Array, Array]:
    """Return the pairs of touching runs with equal labels, as two arrays of indices. The first index is smaller."""
    if len(shape) == 1:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    pairs: list[tuple[Array, Array]] = []
    for axis in range(len(shape) - 1):
        stride = math.prod(shape[axis + 1 :])
        if axis == 0:  # runs at the end of the first axis have the largest indices
            inner = np.arange(starts.searchsorted((shape[0] - 1) * stride))
        else:
            inner = (starts // stride % shape[axis] < shape[axis] - 1).nonzero()[0]
        first = ends.searchsorted(starts.take(inner) + stride, "right")
        count = starts.searchsorted(ends.take(inner) + stride) - first
        lower = inner.repeat(count)
        upper = (first - count.cumsum() + count).repeat(count)
        upper += np.arange(len(lower))
        equal = (values.take(lower) == values.take(upper)).nonzero()[0]
        pairs.append((lower.take(equal), upper.take(equal)))
    if len(pairs) == 1:
        return pairs[0]
    return np.concatenate([lower for lower, _ in pairs]), np.concatenate([upper for _, upper in pairs])


def _join_pairs(count: int, lower: Array, upper: Array) -> Array:
    """Join pairs of `count` elements into sets, and return the smallest member of each element's set."""
    parents = np.arange(count)
    while len(lower):
        a, b = parents.take(lower), parents.take(upper)
        separate = (a != b).nonzero()[0]
        a, b = a.take(separate), b.take(separate)
        lower, upper = np.minimum(a, b), np.maximum(a, b)
        np.minimum.at(parents, upper, lower)
        while True:
            grandparents = parents.take(parents)
            grandparents = grandparents.take(grandparents)
            if (grandparents == parents).all():
                break
            parents = grandparents
    return parents


def _extents(starts: Array, ends: Array, shape: list[int]) -> list[tuple[Array, Array]]:
    """Return the start and exclusive end of each run on every axis."""
    coordinates = np.unravel_index(starts, shape)
    last = coordinates[-1]
    return [*((coordinate, coordinate + 1) for coordinate in coordinates[:-1]), (last, last + ends - starts)]
