"""Resize uint8 images linearly with PyTorch's vectorized interpolation, and correct the borders.

If an image is resized along y, a *line* is a row; if it is resized along x, a *line* is a column.

`torch.nn.functional.interpolate` differs from DALI by at most one level, except at the borders of the resized region,
where the filter reads pixels outside of the region. PyTorch ignores the outside pixels and normalizes the remaining
weights. DALI reads the outside pixels if the region is part of a larger image, and repeats the edge otherwise. If ``f``
is the total weight of the outside pixels, DALI's line is

    dali = (1 - f) * torch + weighted sum of the outside pixels

Only a few lines must be corrected. If an axis shrinks by a factor of up to three, only the first and the last line must
be corrected, and the correction of each line reads only one line outside of the region.

The images are passed to PyTorch with a batch dimension whose stride is the size of an image. With any other stride (in
NumPy, ``x[None]`` has stride 0), PyTorch treats the images as planar and transposes them. This module doesn't support
bicubic interpolation, because PyTorch clips to uint8 between the resizes of the two axes, which changes results by up
to 24 levels.
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
    "MIN_SIZE", "ByteLines", "byte_lines", "resample_bytes", "supports_axis", "supports_bytes",
]  # fmt: skip

Bytes = npt.NDArray[np.uint8]

_UP = 1e-4  # added to values so that OpenCV rounds halves up, as DALI does, and not to even numbers
MIN_SIZE = 32  # output pixels; on shorter axes, the borders may overlap and speed matters little


class _BorderReach(NamedTuple):
    """Weights of the input lines outside of the region, for the output lines that read these input lines.

    Attributes:
        lines: Number of output lines at each border that read input lines outside of the region.
        pixels: Number of input lines outside of each border that are read.
        weights: ``weights[i][j]`` is the weight of input line j in output line i; i and j count from the border.
    """

    lines: int
    pixels: int
    weights: list[list[float]]


class ByteLines(NamedTuple):
    """The resize of one axis.

    Attributes:
        start, extent: First input line that is read, and number of lines that are read.
        low, high: Start and end of the resized region, relative to `start`.
        size: Number of output lines.
        antialias: True to widen the filter if the axis shrinks.
        flip: True if the output lines are in reverse order.
        reach: Correction of the lines at the borders; None if they need no correction.
        scale: If only the first output lines are computed, the number of output lines per input line; else None.
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


def supports_bytes(x: Tensor, axis: Axis) -> bool:
    """Return whether `resample_bytes` supports an image (uint8, on the CPU) and an axis; see `supports_axis`."""
    return _has_bytes(x) and supports_axis(axis)


def _has_bytes(x: Tensor) -> bool:
    is_supported = x.dtype == torch.uint8 and x.is_cpu and x.shape[-1] <= 4
    return is_supported and not is_traced()


def supports_axis(axis: Axis) -> bool:
    """Return whether `resample_bytes` supports an axis.

    The filter must be linear, the output must have at least `MIN_SIZE` lines, the region must be inside of the image
    and start and end at whole pixels, and the pipeline must not have the option ``exact=True``.
    """
    if exactness.on:
        return False
    low, high = sorted((axis.low, axis.high))
    inside = 0 <= low < high <= axis.length and low % 1 == high % 1 == 0
    return inside and axis.size >= MIN_SIZE and axis.filter in ("linear", "triangular")


@lru_cache(maxsize=256)
def byte_lines(axis: Axis, border: bool, end: int | None = None) -> ByteLines:
    """Prepare the resize of an axis for which `supports_axis` returns True.

    Args:
        border: True to correct the lines at the borders, False to keep PyTorch's values.
        end: Number of output lines that the caller needs, counted from the first line; None for all lines. The result
            may have more lines.
    """
    low, high = int(min(axis.low, axis.high)), int(max(axis.low, axis.high))
    flip = axis.high < axis.low
    whole = low == 0 and high == axis.length
    reach = _border_reach((high - low) / axis.size, axis.antialias, whole) if border else None
    if reach is None and not flip and end is not None and end < axis.size:
        scale = axis.size / (high - low)
        stretch = max(1.0, 1 / scale) if axis.antialias else 1.0
        last = min(high, low + math.ceil((end - 0.5) / scale + stretch) + 1)
        if last - low != end:  # if input and output have the same extent, PyTorch ignores the scale
            return ByteLines(low, last - low, 0, last - low, end, axis.antialias, flip, reach, scale)
    margin = 0 if reach is None else reach.pixels
    start, end = max(0, low - margin), min(axis.length, high + margin)
    return ByteLines(start, end - start, low - start, high - start, axis.size, axis.antialias, flip, reach)


def resample_bytes(x: Tensor, lines: dict[int, ByteLines]) -> Tensor:
    """Resize images ``(..., H, W, C)``, uint8.

    Images are resized along x before y. So rows outside of the region are also resized along x before they are mixed
    into the first and last rows.

    Args:
        x: Images, which contain only the rows and columns that the resizes read.
        lines: Maps an axis (0 for y, 1 for x) to its resize.
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
    """Resize images ``(N, H, W, C)`` along the axes in `by_axis`: 1 for y, 2 for x."""
    size, scales = list(images.shape[1:3]), [None, None]  # type: list[int], list[float | None]
    for axis, t in by_axis.items():
        size[axis - 1], scales[axis - 1] = t.size, t.scale
        if t.high - t.low != images.shape[axis]:
            part = slice(t.low, t.high)
            images = images[:, part] if axis == 1 else images[:, :, part]
    return _interpolate(images, size, t.antialias, scales)


def _interpolate(images: Bytes, size: Sequence[int], antialias: bool, scales: Sequence[float | None]) -> Bytes:
    """Resize images ``(N, H, W, C)`` with PyTorch's internal functions.

    `torch.nn.functional.interpolate` calls the same functions, but accepts either sizes or scales, not both. Calling
    the functions by `torch.ops` takes longer. NumPy creates the views, because NumPy doesn't release the GIL for them.
    """
    images = np.ascontiguousarray(images)
    count, height, width, channels = images.shape
    row = width * channels
    planar = torch.from_numpy(
        np.ndarray((count, channels, height, width), np.uint8, images, 0, (height * row, 1, row, channels))
    )  # fmt: skip
    operators: Any = torch._C._nn
    upsample = operators._upsample_bilinear2d_aa if antialias else operators.upsample_bilinear2d
    result: Bytes = upsample(planar, size, False, *scales).numpy().transpose(0, 2, 3, 1)
    return result


def _mix_border(out: Bytes, source: Bytes, axis: int, low: int, high: int, reach: _BorderReach) -> None:
    """Correct the first and last lines of `out` with the lines of `source` outside of the region."""
    last = source.shape[axis] - 1
    if reach.lines == reach.pixels == 1:
        _mix_outermost(out, source, axis, max(low - 1, 0), min(high, last), reach.weights[0][0])
        return
    lines = [
        *range(reach.lines),
        *range(out.shape[axis] - 1, out.shape[axis] - 1 - reach.lines, -1),
    ]
    source_lines = [max(low - 1 - j, 0) for j in range(reach.pixels)]
    source_lines += [min(high + j, last) for j in range(reach.pixels)]
    indices = torch.tensor(lines)
    front = torch.from_numpy(out).movedim(axis, 0)
    old = front.index_select(0, indices)
    outside = torch.from_numpy(source).movedim(axis, 0).index_select(0, torch.tensor(source_lines))
    weights = torch.tensor(reach.weights)
    added = weights @ outside.view(2, reach.pixels, -1).float()
    mixed = added.add_((1 - weights.sum(1, keepdim=True)) * old.view(2, reach.lines, -1))
    front.index_copy_(0, indices, convert(mixed, torch.uint8).view_as(old))


def _mix_outermost(out: Bytes, source: Bytes, axis: int, before: int, after: int, weight: float) -> None:
    """Mix the line `before` of `source` into the first line of `out`, and the line `after` into the last line."""
    end, cv2 = out.shape[axis] - 1, opencv() if len(out) == 1 else None
    # Both lines are mixed in one step. Only for columns, OpenCV needs one call per line.
    ends = (
        [((0, end), (before, after))]
        if cv2 is None or axis == 1
        else [((0, 0), (before, before)), ((end, end), (after, after))]
    )
    for lines, source_lines in ends:
        edge, beyond = _select_lines(out, axis, *lines), _select_lines(source, axis, *source_lines)
        if cv2 is not None:
            cv2.addWeighted(edge[0], 1 - weight, beyond[0], weight, _UP, edge[0])
            continue
        # The weights sum to 1, so the mix is in the range of uint8. 0.5 is added because the conversion truncates.
        weighted = beyond * np.float32(weight) + np.float32(0.5)
        np.add(edge * np.float32(1 - weight), weighted, out=edge, casting="unsafe")


def _select_lines(images: Bytes, axis: int, first: int, last: int) -> Bytes:
    """Return the lines `first` and `last` of images, or a single line if `first` equals `last`."""
    part = slice(first, last + 1, max(last - first, 1))
    return images[:, part] if axis == 1 else images[:, :, part]


@lru_cache(maxsize=256)
def _border_reach(scale: float, antialias: bool, whole: bool) -> _BorderReach | None:
    """Return the weights of the lines outside of a region; None if no output line must be corrected.

    Args:
        scale: Number of input pixels per output pixel.
        antialias: True if the filter is widened when the axis shrinks.
        whole: True if the region is the whole axis.
    """
    stretch = max(1.0, scale) if antialias else 1.0
    lines = math.ceil((stretch - 0.5) / scale - 0.5)
    pixels = math.ceil(stretch - 0.5 - 0.5 * scale)
    if lines < 1 or pixels < 1 or (whole and stretch == 1):
        return None  # only the edge pixel gets a weight, so PyTorch's and DALI's results are equal
    outside = [_outside_weights((i + 0.5) * scale, stretch, pixels) for i in range(lines)]
    if whole:  # the edge pixel is repeated, so its weights are added
        outside, pixels = [[sum(weights)] for weights in outside], 1
    return _BorderReach(lines, pixels, outside)


def _outside_weights(position: float, stretch: float, pixels: int) -> list[float]:
    """Return the weights of `pixels` lines outside of the border, for an output line at `position` from the border.

    The weight of the line next to the border is first.
    """
    last = math.ceil(position + stretch)
    values = [max(0.0, stretch - abs(k + 0.5 - position)) for k in range(-pixels, last)]
    total = sum(values)
    return [value / total for value in values[pixels - 1 :: -1]]
