"""COCO masks from polygons and run-length codes.

The run-length codes, their compressed text, and the filling of polygons follow the reference implementation,
``maskApi.c`` in https://github.com/cocodataset/cocoapi. A polygon's outline is traced in steps of a fifth of a pixel. A
pixel is inside if, in the pixel's column, the outline passes an odd number of times above the pixel.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Mask", "draw", "fill_polygon", "fill_runs", "uncompress"]

Mask: TypeAlias = npt.NDArray[np.bool_]
"""A mask, ``(H, W)`` bool."""

Steps: TypeAlias = npt.NDArray[np.int64]
"""Coordinates along an outline, in fifths of a pixel."""

_MAX_PIXELS = 1 << 30
_SCALE = 5  # steps per pixel along the outline of a polygon
STEPS = 1 << 20  # maximum number of steps of an outline that are processed together


def draw(size: tuple[int, int], segmentations: Sequence[Any], labels: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Draw the masks of an image into an ``(H, W)`` array.

    A pixel's value is the largest label whose mask covers the pixel, or 0 if no mask covers the pixel.

    Args:
        size: Height and width of the image.
        segmentations: For each box, the mask as polygons or as a run-length code, or None.

    Raises:
        ValueError: The image is empty or too large, or a mask is invalid or has another size.
    """
    height, width = size
    if height < 1 or width < 1 or height * width > _MAX_PIXELS:
        raise ValueError(f"an image with masks must have 1 to {_MAX_PIXELS} pixels, got {height} by {width}")
    canvas = np.zeros((height, width), np.int32)
    pairs = zip(segmentations, labels.tolist(), strict=True)
    for segmentation, label in sorted(pairs, key=operator.itemgetter(1)):
        if segmentation:
            canvas[_draw_mask(segmentation, height, width)] = label
    return canvas


def _draw_mask(segmentation: Any, height: int, width: int) -> Mask:
    if isinstance(segmentation, list):
        with np.errstate(over="ignore"):
            polygons = [np.array(polygon[: len(polygon) // 2 * 2], np.float32) for polygon in segmentation]
        if not all(np.isfinite(polygon).all() for polygon in polygons):
            raise ValueError("the vertices of a polygon must be finite")
        filled = [fill_polygon(polygon.reshape(-1, 2), height, width) for polygon in polygons]
        return functools.reduce(np.logical_or, filled, np.zeros((height, width), np.bool_))
    runs, size = segmentation.get("counts"), segmentation.get("size")
    if isinstance(runs, str):
        runs = uncompress(runs)
    if not isinstance(runs, list) or size != [height, width]:
        raise ValueError(f"a mask must have the image's size, {[height, width]}, got {size}")
    return fill_runs(runs, height, width)


def fill_runs(runs: Sequence[int], height: int, width: int) -> Mask:
    """Create a mask from the lengths of alternating runs of zeros and ones, column by column.

    Raises:
        ValueError: A run is negative, or the runs are longer than the mask.
    """
    lengths = np.array(runs, np.int64)
    if len(lengths) and (lengths.min() < 0 or lengths.max() > height * width or lengths.sum() > height * width):
        raise ValueError(f"the runs of a mask must fit into {height} by {width} pixels")
    flat = np.zeros(height * width, np.bool_)
    ones = np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)
    flat[: len(ones)] = ones
    return flat.reshape(width, height).T


def uncompress(text: str) -> list[int]:
    """Decode the compressed text of a run-length code to the lengths of the runs.

    Each character has six bits: five bits of a number, and a bit that says whether the number continues. For the first
    three runs, the number is the run's length. For each later run, the number is the difference between the run's
    length and the length of the run before the previous run.

    Raises:
        ValueError: The text ends within a number, or a number is too long.
    """
    runs: list[int] = []
    value = shift = 0
    for letter in text:
        bits = ord(letter) - 48
        value |= (bits & 31) << shift
        shift += 5
        if shift > 60:
            raise ValueError("the compressed mask is damaged: a number in it has too many characters")
        if not bits & 32:
            value -= (bits & 16 and 1) << shift
            runs.append(value + (runs[-2] if len(runs) > 2 else 0))
            value = shift = 0
    if shift:
        raise ValueError("the compressed mask is truncated: it ends within a number")
    return runs


def fill_polygon(points: npt.NDArray[np.float32], height: int, width: int) -> Mask:
    """Create a mask from a polygon with the vertices ``(n, 2)``, x and y in pixels."""
    crossings = np.zeros(height * width, np.int64)
    if len(points):
        limit = _SCALE * 4 * (height + width)  # vertices this far outside of the image can be clipped
        corners = np.clip(_SCALE * points.astype(np.float64) + 0.5, -limit, limit).astype(np.int64)
        for u, v in _trace_outline(corners):
            crossings += _count_crossings(u, v, height, width)
    filled: Mask = np.cumsum(crossings) % 2 == 1
    return filled.reshape(width, height).T


def _count_crossings(u: Steps, v: Steps, height: int, width: int) -> Steps:
    """Count how often a section of the outline crosses each column of pixels at each row."""
    steps = np.flatnonzero(u[1:] != u[:-1]) + 1
    x = (np.where(u[steps] < u[steps - 1], u[steps], u[steps] - 1) + 0.5) / _SCALE - 0.5
    y = (np.minimum(v[steps], v[steps - 1]) + 0.5) / _SCALE - 0.5
    inside = (np.floor(x) == x) & (x >= 0) & (x <= width - 1)
    columns = x[inside].astype(np.int64)
    rows = np.ceil(np.clip(y[inside], 0, height)).astype(np.int64)
    return np.bincount(columns * height + rows, minlength=height * width + 1)[: height * width]


def _trace_outline(corners: Steps) -> Iterator[tuple[Steps, Steps]]:
    """Trace the edges of a polygon. On each edge, move in steps along the edge's longer axis.

    Yield sections of the outline. Each section begins with the last position of the previous section.
    """
    ends = np.roll(corners, -1, 0)
    counts = np.abs(ends - corners).max(1) + 1
    blocks = np.cumsum(counts) // STEPS
    last = np.empty((2, 0), np.int64)
    for begin, end in itertools.pairwise([0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(corners)]):
        section = np.concatenate([last, _walk_edges(corners[begin:end], ends[begin:end], counts[begin:end])], 1)
        last = section[:, -1:]
        yield section[0], section[1]


def _walk_edges(starts: Steps, ends: Steps, counts: Steps) -> Steps:
    """Return all positions on edges of a polygon, ``(2, n)``."""
    extent = np.abs(ends - starts)
    is_horizontal = extent[:, 0] >= extent[:, 1]
    axis = np.where(is_horizontal, 0, 1)
    edges = np.arange(len(starts))
    is_flipped = starts[edges, axis] > ends[edges, axis]
    low, high = (np.where(is_flipped[:, None], one, other) for one, other in ((ends, starts), (starts, ends)))
    slope = (high[edges, 1 - axis] - low[edges, 1 - axis]) / np.maximum(counts - 1, 1)
    edge_indices = np.repeat(edges, counts)
    steps = np.arange(len(edge_indices)) - np.repeat(np.cumsum(counts) - counts, counts)
    steps = np.where(is_flipped[edge_indices], counts[edge_indices] - 1 - steps, steps)
    along = steps + low[edges, axis][edge_indices]
    across = (low[edges, 1 - axis][edge_indices] + slope[edge_indices] * steps + 0.5).astype(np.int64)
    return np.where(is_horizontal[edge_indices], (along, across), (across, along))
