"""Compute which input pixels each output pixel of a resized axis reads, and with which weights.

Output pixel ``i`` of an axis is at the input position ``low + (i + 0.5) * (high - low) / size``, where pixel edges are
at integers, and ``low`` and ``high`` are the bounds of the resized region (region of interest). The output pixel is a
weighted sum of the input pixels around this position. The weight of an input pixel is the filter's value at the pixel's
distance from the position. If the axis shrinks and antialiasing is on, the filter is widened by the scale. The weights
are normalized to a sum of 1. Pixels outside of the image repeat the image's edge. Pixels outside of the region of
interest, but inside of the image, are read like pixels of the region.

Positions are computed in float32 with DALI's order of operations, because rounding determines the nearest neighbor and
the number of pixels that a Gaussian reads. A resize runs one pass per axis. The first pass reads the image, and later
passes read the region of interest. DALI counts positions from the start of the input of a pass.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.device_cache import device_cache
from torchdali.kernels.folding import fold
from torchdali.kernels.limits import MAX_TAPS

__all__ = [
    "FILTERS",
    "OVERSHOOT",
    "PIXEL",
    "RADIUS",
    "TAP",
    "TAP_OF_ROWS",
    "Axis",
    "Taps",
    "bags",
    "filter_table",
    "filter_value",
    "interior_range",
    "nearest",
    "passes",
    "resize_axes",
    "stretch_taps",
    "taps",
]

FILTERS = ("nn", "linear", "cubic", "triangular", "gaussian", "lanczos3")

RADIUS = {"linear": 1, "triangular": 1, "cubic": 2, "gaussian": 1, "lanczos3": 3}
OVERSHOOT = ("cubic", "lanczos3")  # filters with negative weights
_KNOTS = 32  # entries of a filter's table per unit of distance
_f32 = np.float32
_STRETCHED: dict[str, tuple[Any, Any]] = {  # arrays, because NumPy is half as fast with Python numbers
    name: (np.array(radius, np.float64), np.array(_KNOTS * radius, _f32)) for name, radius in RADIUS.items()
}
_Floats = npt.NDArray[np.float32]


class Axis(NamedTuple):
    """The resize of one spatial axis.

    Attributes:
        length: Extent of the input.
        size: Extent of the output.
        low: Start of the region of interest, in input pixels.
        high: End of the region of interest; if it is below `low`, the axis is flipped.
        filter: Filter of this axis: one of `FILTERS`.
        antialias: True to widen the filter if the axis shrinks.
    """

    length: int
    size: int
    low: float
    high: float
    filter: str
    antialias: bool

    @property
    def growth(self) -> float:
        """Number of output pixels per input pixel."""
        return self.size / abs(self.high - self.low)

    @property
    def is_identity(self) -> bool:
        """True if the resize doesn't change the axis."""
        whole = self.low == 0 and self.high == self.length == self.size
        return whole and self.filter != "gaussian"


Fields = tuple[int, int, float, float, str, bool]


class Taps(NamedTuple):
    """The input pixels of each output pixel of an axis, and their weights.

    The output pixels are ``out[i] = sum_k weights[i, k] * x[start + pixels[i, k]]``.

    Attributes:
        start, extent: First input pixel that is read, and number of input pixels that are read.
        pixels: Indices of input pixels, relative to `start`; ``(size, taps)``.
        weights: Weights of these pixels; ``(size, taps)``.
    """

    start: int
    extent: int
    pixels: Tensor
    weights: Tensor


@lru_cache(maxsize=256)
def resize_axes(
    lengths: tuple[int, ...],
    size: tuple[int, ...],
    roi: tuple[tuple[float, float], ...] | None,
    min_filter: str,
    mag_filter: str,
    antialias: bool,
) -> tuple[Axis, ...]:
    """Return an `Axis` for every spatial axis: with `min_filter` if the axis shrinks, else with `mag_filter`.

    Args:
        lengths: Extents of the input.
        size: Extents of the output.
        roi: Start and end of the region of interest on every axis; None for the whole image.
        min_filter, mag_filter: Names of filters, from `FILTERS`.
        antialias: True to widen the filter of axes that shrink.

    Raises:
        ValueError: a filter is unknown, or the numbers of lengths, sizes and regions differ.
    """
    for name in (min_filter, mag_filter):
        if name not in FILTERS:
            raise ValueError(f"the filter must be one of {', '.join(FILTERS)}, got {name!r}")
    if len(lengths) != len(size) or (roi is not None and len(roi) != len(size)):
        raise ValueError(
            f"size and region must have one entry for each of {len(lengths)} spatial axes, got "
            f"{len(size)} sizes and the region {roi}"
        )
    axes = []
    for i, (length, out) in enumerate(zip(lengths, size, strict=True)):
        low, high = roi[i] if roi is not None else (0.0, float(length))
        if abs(high - low) < 1e-3:  # like DALI, extend a nearly empty region by 0.001 pixels
            half = 5e-4 if high >= low else -5e-4
            low, high = low - half, high + half
        filter_name = min_filter if abs(high - low) > out else mag_filter
        axes.append(Axis(length, out, float(_f32(low)), float(_f32(high)), filter_name, antialias))
    return tuple(axes)


# DALI's cost estimates: PIXEL for each output pixel, and TAP for each input pixel that an output pixel reads. If the
# pass resizes the innermost axis, TAP_OF_ROWS replaces TAP.
PIXEL, TAP, TAP_OF_ROWS = 3.0, 1.0, 1.4


def passes(axes: tuple[Axis, ...]) -> tuple[int, ...]:
    """Return the order in which DALI resamples the axes: the order with the lowest estimated cost.

    The cost estimates were fitted to 259 images of random sizes. For three of these images, DALI uses another order.
    """
    return _passes(tuple(map(tuple, axes)))


@lru_cache(maxsize=256)
@fold
def _passes(fields: tuple[Fields, ...]) -> tuple[int, ...]:
    axes = [Axis(*each) for each in fields]
    return min(itertools.permutations(range(len(axes))), key=lambda order: _cost(axes, order))


def _cost(axes: Sequence[Axis], order: Sequence[int]) -> float:
    extents = [abs(axis.high - axis.low) for axis in axes]
    cost = 0.0
    for i in order:
        axis = axes[i]
        extents[i] = axis.size
        tap_count = 1.0
        if axis.filter != "nn":
            stretch = max(1.0, 1 / axis.growth) if axis.antialias else 1.0
            tap_count = math.ceil(2 * _stretch(axis.filter, stretch)[1])
        tap = TAP_OF_ROWS if i == len(axes) - 1 else TAP
        cost += math.prod(extents) * (PIXEL + tap * tap_count)
    return cost


def nearest(axis: Axis, innermost: bool, first_pass: bool, device: torch.device) -> Tensor:
    """Return the index of the nearest input pixel for every output pixel.

    Along the innermost axis, DALI multiplies the output index by the scale. Along other axes, DALI adds the scale
    repeatedly, so rounding errors accumulate. This function does the same.
    """
    return _nearest(tuple(axis), innermost, first_pass, device)


@device_cache(maxsize=64)
@fold  # requires a plain tuple instead of an `Axis`
def _nearest(fields: Fields, innermost: bool, first_pass: bool, device: torch.device) -> Tensor:
    axis = Axis(*fields)
    step = _f32((axis.high - axis.low) / axis.size)
    start = 0 if first_pass else math.floor(min(axis.low, axis.high))
    low = _f32(axis.low - start)
    if innermost:
        position = (np.arange(axis.size, dtype=_f32) + _f32(0.5)) * step + low
    else:
        steps = np.full(axis.size, step, dtype=_f32)
        steps[0] = low + _f32(0.5) * step
        position = np.add.accumulate(steps, dtype=_f32)
    index = np.floor(position).astype(np.int64) + start
    return torch.from_numpy(index.clip(0, axis.length - 1)).to(device)


def taps(axis: Axis, first_pass: bool, device: torch.device, window: tuple[int, int] | None = None) -> Taps:
    """Return input pixels and weights of all output pixels, or of the output pixels in `window` (start, extent)."""
    return Taps(*_taps(tuple(axis), first_pass, device, window))


@device_cache(maxsize=256)
@fold
def _taps(
    fields: Fields, first_pass: bool, device: torch.device, window: tuple[int, int] | None
) -> tuple[int, int, Tensor, Tensor]:
    axis = Axis(*fields)
    start, lowest, weight = _input_range(axis, first_pass)
    pixel = (lowest[:, None] + np.arange(weight.shape[1]) + start).clip(0, axis.length - 1)
    if window is not None:
        part = slice(window[0], window[0] + window[1])
        pixel, weight = pixel[part], weight[part]
    first = int(pixel.min())
    extent = int(pixel.max()) + 1 - first
    weights = torch.from_numpy(np.ascontiguousarray(weight))
    return first, extent, torch.from_numpy(pixel - first).to(device), weights.to(device)


def _input_range(axis: Axis, first_pass: bool) -> tuple[int, npt.NDArray[np.int64], _Floats]:
    """Return the start of a pass's input, the first input pixel of each output pixel, and the weights.

    The first input pixels are relative to the start. All operations are in float32 and in DALI's order, so the weights
    of linear and cubic filters are bit-identical to DALI's. `first_pass` is True if no other axis was resized before.
    """
    scale = (_f32(axis.high) - _f32(axis.low)) / _f32(max(axis.size, 1))
    density, reach = _stretch(axis.filter, max(1.0, float(abs(scale))) if axis.antialias else 1.0)
    start = 0 if first_pass else max(0, math.floor(min(axis.low, axis.high) - float(reach)))
    if not axis.size * 2 * reach <= MAX_TAPS:
        raise RuntimeError(
            f"resizing must read at most {MAX_TAPS} pixels, got {axis.size * 2 * reach:g} for "
            f"{axis.high - axis.low:g} pixels resized to {axis.size}"
        )
    step = scale
    origin = _f32(axis.low - start) + (_f32(0.5) * step - _f32(0.5) - reach)
    position = origin + np.arange(axis.size, dtype=_f32) * step
    lowest = np.ceil(position).astype(np.int64)
    pixel = lowest[:, None] + np.arange(math.ceil(2 * reach))
    weight = _lookup(axis.filter, (pixel.astype(_f32) - position[:, None]) * density)
    total: _Floats = np.add.accumulate(weight, 1)[:, -1:]  # adds sequentially, as DALI does
    # Far from the start, float32 cannot distinguish neighboring pixels, and all weights are 0. In this case, the output
    # is the first input pixel.
    weight[:, :1][total == 0] = total[total == 0] = 1
    weight /= total
    return start, lowest, weight


def interior_range(axis: Axis) -> tuple[int, int]:
    """Return the range of output pixels that read only pixels inside of the input: start and exclusive end."""
    _, lowest, weight = _input_range(axis, True)
    interior = np.flatnonzero((lowest >= 0) & (lowest + weight.shape[1] <= axis.length))
    return (int(interior[0]), int(interior[-1]) + 1) if len(interior) else (0, 0)


def bags(
    axis: Axis,
    first_pass: bool,
    device: torch.device,
    window: tuple[int, int] | None,
    planes: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the input pixels and weights of an axis as arguments of `torch.embedding_bag`.

    Args:
        axis, first_pass, device, window: See `taps`.
        planes: Number of planes (such as channels) that are stored one after the other in the input.

    Returns:
        Three 1-D tensors: the input pixels, the start index of each output pixel's input pixels, and the weights.
    """
    return _bags(tuple(axis), first_pass, device, window, planes)


@device_cache(maxsize=256)
@fold
def _bags(
    fields: Fields,
    first_pass: bool,
    device: torch.device,
    window: tuple[int, int] | None,
    planes: int,
) -> tuple[Tensor, Tensor, Tensor]:
    _, extent, pixels, weights = _taps(fields, first_pass, device, window)
    origins = torch.arange(planes, device=device) * extent
    indices = (pixels + origins[:, None, None]).flatten()
    starts = torch.arange(0, len(indices), pixels.shape[1], device=device)
    return indices, starts, weights.repeat(planes, 1).flatten()


_LARGEST_RADIUS = 4096  # in input pixels; DALI doesn't widen filters beyond this radius


def _stretch(name: str, scale: float) -> tuple[np.float32, np.float32]:
    """Return the table entries per input pixel, and the radius in input pixels, of a filter widened by `scale`."""
    radius = _f32(min(RADIUS[name] * scale, _LARGEST_RADIUS))
    knots = _f32(_KNOTS * RADIUS[name])
    if name == "gaussian":  # like DALI, use the standard deviation, which changes the last bit
        sigma = _f32(float(radius) * 0.5 / math.sqrt(2))
        density = _f32(2) * knots / (_f32(4 * math.sqrt(2)) * sigma)
    else:
        density = knots / radius
    return density, knots / density


def stretch_taps(name: str, scales: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return `_stretch` for several scales: the table entries per input pixel, and the radii in input pixels."""
    base_radius, knots = _STRETCHED[name]
    radius = np.minimum((base_radius * scales).astype(_f32), _f32(_LARGEST_RADIUS))
    if name == "gaussian":
        sigma = (radius.astype(np.float64) * 0.5 / math.sqrt(2)).astype(_f32)
        density = _f32(2) * knots / (_f32(4 * math.sqrt(2)) * sigma)
    else:
        density = knots / radius
    return density, knots / density


def filter_table(name: str) -> npt.NDArray[np.float64]:
    """Return the values of a filter at distances that are multiples of 1/32, with a zero at each end."""
    return _table(name)


def _lookup(name: str, knot: _Floats) -> _Floats:
    """Interpolate linearly in the table of a filter; the values beyond the table are 0."""
    table = _table(name).astype(_f32)
    whole = np.floor(knot)
    left = np.clip(whole.astype(np.int64) + 1, 0, len(table) - 2)
    value: _Floats = table[left] + (knot - whole) * (table[left + 1] - table[left])
    value[whole >= len(table) - 2] = 0
    return value


@cache
def _table(name: str) -> npt.NDArray[np.float64]:
    knots = range(-RADIUS[name] * _KNOTS, RADIUS[name] * _KNOTS + 1)
    values = np.array([filter_value(name, knot / _KNOTS) for knot in knots], dtype=_f32)
    return np.pad(values.astype(np.float64), 1)


def filter_value(name: str, t: float) -> float:
    """Return the value of a filter at a distance from its center, before normalization and widening."""
    t = abs(t)
    if t > RADIUS[name]:
        return 0.0
    if name == "gaussian":
        return math.exp(-4 * t * t)
    if name == "lanczos3":
        return float(np.sinc(t) * np.sinc(t / 3))
    if name == "cubic":  # Catmull-Rom
        if t < 1:
            return (1.5 * t - 2.5) * t * t + 1
        return ((2.5 - 0.5 * t) * t - 4) * t + 2
    return 1 - t
