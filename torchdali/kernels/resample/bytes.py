"""Resample one axis of uint8 images linearly by PyTorch's vectorised interpolation.

`torch.nn.functional.interpolate` gives DALI's results, to a level of rounding, except where
the filter reaches beyond the region that it gets. There PyTorch drops the pixels outside and
normalizes the remaining weights, while DALI reads them (where the region is a crop of a larger
image) or repeats the edge. If ``f`` is the weight outside of the region, a line (row or column) at the border is

    dali = (1 - f) * torch + weighted sum of the pixels outside

so only a few lines must be corrected: if an axis shrinks up to three times, the first and the last line, each with the
one pixel beyond the border.

The images are passed to PyTorch with a batch dimension whose stride is a whole image (in NumPy, ``x[None]`` has a
stride of 0): otherwise PyTorch treats the images as planar and transposes them. PyTorch's bicubic is not used: it clips
to bytes between the passes, which costs up to 24 levels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.convert import convert
from torchdali.kernels.exactness import exactness
from torchdali.kernels.memory import is_traced
from torchdali.kernels.opencv import opencv
from torchdali.kernels.resample.weights import Axis

__all__ = [
    "SMALLEST", "ByteLines", "byte_lines", "resample_bytes", "suits_axis", "suits_bytes",
]  # fmt: skip

Bytes = npt.NDArray[np.uint8]

_UP = 1e-4  # makes OpenCV round halves up, as DALI does; by default, it rounds halves to even numbers
SMALLEST = 32  # output pixels; on shorter axes, the borders may overlap and speed matters little


class _BorderReach(NamedTuple):
    """Weights of the pixels beyond a border, for the output lines that read them.

    Lines and pixels are counted from the border: ``weights[i][j]`` is the weight of pixel j beyond the border in line
    i.
    """

    lines: int
    pixels: int
    weights: list[list[float]]


class ByteLines(NamedTuple):
    """Resizing of one axis, which reads the input from ``start`` to ``start + extent``.

    Within this range, the region from `low` to `high` is resized to `size` lines, in reverse order if `flip`. `reach`
    is None if the border needs no correction. If lines at the end, and the pixels that only these lines read, were
    skipped, `scale` is the number of output lines per input pixel.
    """

    start: int
    extent: int
    low: int
    high: int
    size: int
    antialias: bool
    flip: bool
    reach: _BorderReach | None
    scale: float | None = None


def suits_bytes(x: Tensor, axis: Axis) -> bool:
    """Return whether `resample_bytes` supports uint8 images on the CPU and an axis; see `suits_axis`."""
    return _has_bytes(x) and suits_axis(axis)


def _has_bytes(x: Tensor) -> bool:
    bytes_here = x.dtype == torch.uint8 and x.is_cpu and x.shape[-1] <= 4
    return bytes_here and not is_traced()


def suits_axis(axis: Axis) -> bool:
    """Return whether `resample_bytes` supports an axis: a whole-pixel region, linear, and no `exact` pipeline."""
    if exactness.on:
        return False
    low, high = sorted((axis.low, axis.high))
    inside = 0 <= low < high <= axis.length and low % 1 == high % 1 == 0
    return inside and axis.size >= SMALLEST and axis.filter in ("linear", "triangular")


@lru_cache(maxsize=256)
def byte_lines(axis: Axis, border: bool, end: int | None = None) -> ByteLines:
    """Prepare an axis for which `suits_axis` holds.

    Args:
        border: Correct the outermost lines; else keep PyTorch's values.
        end: Only the lines before this index are needed; the result may have more lines.
    """
    low, high = int(min(axis.low, axis.high)), int(max(axis.low, axis.high))
    flip = axis.high < axis.low
    whole = low == 0 and high == axis.length
    reach = _reach((high - low) / axis.size, axis.antialias, whole) if border else None
    if reach is None and not flip and end is not None and end < axis.size:
        scale = axis.size / (high - low)
        stretch = max(1.0, 1 / scale) if axis.antialias else 1.0
        last = min(high, low + math.ceil((end - 0.5) / scale + stretch) + 1)
        if last - low != end:  # PyTorch does not touch an axis that keeps its extent
            return ByteLines(low, last - low, 0, last - low, end, axis.antialias, flip, reach, scale)
    margin = 0 if reach is None else reach.pixels
    start, end = max(0, low - margin), min(axis.length, high + margin)
    return ByteLines(start, end - start, low - start, high - start, axis.size, axis.antialias, flip, reach)


def resample_bytes(x: Tensor, lines: dict[int, ByteLines]) -> Tensor:
    """Resample rows (axis 0), columns (axis 1) or both of ``(..., H, W, C)``; the dtype is kept.

    `x` must be narrowed to the region that its axes read. Columns are resampled before rows: the pixels beyond the
    columns' border are then still image pixels, and the columns of the rows beyond the border are corrected, too.
    """
    images: Bytes = x.numpy().reshape(-1, *x.shape[-3:])
    by_axis = {axis + 1: lines[axis] for axis in sorted(lines, reverse=True)}
    if any(t.reach is not None for t in by_axis.values()):
        for axis, t in by_axis.items():
            out = _interpolate_region(images, {axis: t})
            if t.reach is not None:
                _mix_border(out, images, axis, t.low, t.high, t.reach)
            images = out
    else:
        images = _interpolate_region(images, by_axis)
    flips = tuple(axis for axis, t in by_axis.items() if t.flip)
    if flips:
        images = np.ascontiguousarray(np.flip(images, flips))
    return torch.from_numpy(images.reshape(*x.shape[:-3], *images.shape[1:]))


def _interpolate_region(images: Bytes, by_axis: dict[int, ByteLines]) -> Bytes:
    """Resize the regions of some axes of ``(N, H, W, C)``; the other axes are unchanged."""
    size, scales = list(images.shape[1:3]), [None, None]  # type: list[int], list[float | None]
    for axis, t in by_axis.items():
        size[axis - 1], scales[axis - 1] = t.size, t.scale
        if t.high - t.low != images.shape[axis]:
            part = slice(t.low, t.high)
            images = images[:, part] if axis == 1 else images[:, :, part]
    return _interpolate(images, size, t.antialias, scales)


def _interpolate(images: Bytes, size: Sequence[int], antialias: bool, scales: Sequence[float | None]) -> Bytes:
    """Resize ``(N, H, W, C)`` by PyTorch's operators.

    Calls the function inside `torch.nn.functional.interpolate`, which accepts no scales with sizes; `torch.ops` takes
    longer. NumPy creates the views, since it does not release the GIL for them.
    """
    images = np.ascontiguousarray(images)
    count, height, width, channels = images.shape
    row = width * channels
    planar = torch.from_numpy(
        np.ndarray((count, channels, height, width), np.uint8, images, 0, (height * row, 1, row, channels))
    )  # fmt: skip
    operators: Any = torch._C._nn
    run = operators._upsample_bilinear2d_aa if antialias else operators.upsample_bilinear2d
    result: Bytes = run(planar, size, False, *scales).numpy().transpose(0, 2, 3, 1)
    return result


def _mix_border(out: Bytes, source: Bytes, axis: int, low: int, high: int, reach: _BorderReach) -> None:
    """Mix pixels of `source` beyond the region into the border lines of `out`."""
    last = source.shape[axis] - 1
    if reach.lines == reach.pixels == 1:
        _mix_outermost(out, source, axis, max(low - 1, 0), min(high, last), reach.weights[0][0])
        return
    lines = [
        *range(reach.lines),
        *range(out.shape[axis] - 1, out.shape[axis] - 1 - reach.lines, -1),
    ]
    beyond = [max(low - 1 - j, 0) for j in range(reach.pixels)]
    beyond += [min(high + j, last) for j in range(reach.pixels)]
    where = torch.tensor(lines)
    front = torch.from_numpy(out).movedim(axis, 0)
    old = front.index_select(0, where)
    seen = torch.from_numpy(source).movedim(axis, 0).index_select(0, torch.tensor(beyond))
    weights = torch.tensor(reach.weights)
    added = weights @ seen.view(2, reach.pixels, -1).float()
    mixed = added.add_((1 - weights.sum(1, keepdim=True)) * old.view(2, reach.lines, -1))
    front.index_copy_(0, where, convert(mixed, torch.uint8).view_as(old))


def _mix_outermost(out: Bytes, source: Bytes, axis: int, before: int, after: int, weight: float) -> None:
    """Mix one line of `source` into the first, and one into the last line of `out`."""
    end, cv2 = out.shape[axis] - 1, opencv() if len(out) == 1 else None
    # Mix both lines in one step, except columns by OpenCV, which supports one column per call.
    ends = (
        [((0, end), (before, after))]
        if cv2 is None or axis == 1
        else [((0, 0), (before, before)), ((end, end), (after, after))]
    )
    for lines, others in ends:
        edge, beyond = _lines(out, axis, *lines), _lines(source, axis, *others)
        if cv2 is not None:
            cv2.addWeighted(edge[0], 1 - weight, beyond[0], weight, _UP, edge[0])
            continue
        # A convex mix of bytes stays in their range; adding 0.5 makes truncation round.
        seen = beyond * np.float32(weight) + np.float32(0.5)
        np.add(edge * np.float32(1 - weight), seen, out=edge, casting="unsafe")


def _lines(images: Bytes, axis: int, first: int, last: int) -> Bytes:
    """Return the lines `first` and `last`; only one line if both are equal."""
    part = slice(first, last + 1, max(last - first, 1))
    return images[:, part] if axis == 1 else images[:, :, part]


@lru_cache(maxsize=256)
def _reach(scale: float, antialias: bool, whole: bool) -> _BorderReach | None:
    """Return the weights beyond the borders of a region, or None if they change nothing."""
    stretch = max(1.0, scale) if antialias else 1.0
    lines = math.ceil((stretch - 0.5) / scale - 0.5)
    pixels = math.ceil(stretch - 0.5 - 0.5 * scale)
    if lines < 1 or pixels < 1 or (whole and stretch == 1):
        return None  # one of two pixels is inside: normalizing and repeating are equivalent
    outside = [_outside((i + 0.5) * scale, stretch, pixels) for i in range(lines)]
    if whole:  # all pixels beyond are the edge pixel
        outside, pixels = [[sum(weights)] for weights in outside], 1
    return _BorderReach(lines, pixels, outside)


def _outside(position: float, stretch: float, pixels: int) -> list[float]:
    """Return the weights of the first `pixels` beyond the border, for a line at the distance `position`."""
    last = math.ceil(position + stretch)
    values = [max(0.0, stretch - abs(k + 0.5 - position)) for k in range(-pixels, last)]
    total = sum(values)
    return [value / total for value in values[pixels - 1 :: -1]]
