"""Connected parts of a labelled array: runs along the last axis, joined where they touch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["blobs"]

Array = npt.NDArray[Any]


def blobs(
    labels: Array, background: int, classes: Sequence[int] | None = None
) -> tuple[Array, Array, Array]:
    """Find the parts of one label that hang together by faces.

    Args:
        labels: Integers or bools of any shape.
        background: Label that belongs to no part.
        classes: Labels to look at; all but the background when None.

    Returns:
        Label ``(n,)``, start ``(n, ndim)`` and exclusive end ``(n, ndim)`` of each part, in the order of their
        first elements.
    """
    wide = [axis for axis, extent in enumerate(labels.shape) if extent != 1]
    shape = [labels.shape[axis] for axis in wide] or [1]
    values, starts, ends = _runs(np.ascontiguousarray(labels).reshape(-1), shape[-1])
    chosen = values != background if classes is None else np.isin(values, classes)
    values, starts, ends = values[chosen], starts[chosen], ends[chosen]
    parents = _roots(len(values), *_touching(values, starts, ends, shape))
    order = np.argsort(parents, kind="stable")
    firsts = np.flatnonzero(np.diff(parents[order], prepend=-1))
    low = np.zeros((len(firsts), labels.ndim), np.int64)
    high = np.ones_like(low)
    for axis, (start, end) in zip(wide, _extents(starts, ends, shape), strict=False):
        low[:, axis] = np.minimum.reduceat(start[order], firsts) if len(firsts) else 0
        high[:, axis] = np.maximum.reduceat(end[order], firsts) if len(firsts) else 0
    return values[order[firsts]], low, high


def _runs(flat: Array, width: int) -> tuple[Array, Array, Array]:
    """Return label, start and end of the runs of equal elements that do not cross lines of a width."""
    new = np.empty(len(flat), np.bool_)
    np.not_equal(flat[1:], flat[:-1], out=new[1:])
    new[:: width or 1] = True
    starts = np.flatnonzero(new)
    return flat[starts], starts, np.append(starts[1:], len(flat))


def _touching(values: Array, starts: Array, ends: Array, shape: list[int]) -> tuple[Array, Array]:
    """Return pairs of runs with one label that lie side by side; the first of a pair comes first."""
    pairs = [np.empty((2, 0), np.int64)]
    for axis in range(len(shape) - 1):
        stride = math.prod(shape[axis + 1 :])
        (inner,) = np.nonzero(starts // stride % shape[axis] < shape[axis] - 1)
        first = np.searchsorted(ends, starts[inner] + stride, "right")
        count = np.searchsorted(starts, ends[inner] + stride, "left") - first
        one = np.repeat(inner, count)
        other = np.repeat(first - np.cumsum(count) + count, count) + np.arange(len(one))
        same = values[one] == values[other]
        pairs.append(np.stack((one[same], other[same])))
    joined = np.concatenate(pairs, axis=1)
    return joined[0], joined[1]


def _roots(count: int, one: Array, other: Array) -> Array:
    """Return the smallest member of the set that each of `count` elements is in, when pairs are joined."""
    parents = np.arange(count)
    while len(one):
        a, b = parents[one], parents[other]
        apart = a != b
        one, other = np.minimum(a, b)[apart], np.maximum(a, b)[apart]
        np.minimum.at(parents, other, one)
        while not np.array_equal(above := parents[parents], parents):
            parents = above
    return parents


def _extents(starts: Array, ends: Array, shape: list[int]) -> list[tuple[Array, Array]]:
    """Return start and end of each run on every axis."""
    lines = np.unravel_index(starts, shape)
    last = lines[-1]
    return [*((line, line + 1) for line in lines[:-1]), (last, last + ends - starts)]
