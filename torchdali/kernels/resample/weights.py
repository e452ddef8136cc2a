"""Positions and weights of the input pixels for every output pixel of a resized axis.

Output pixel ``i`` of an axis is at the input position ``low + (i + 0.5) * (high - low) / size``
(pixel edges are at whole numbers). Its value is the sum of the input pixels around that position,
weighted by the filter at their distance. When shrinking with antialiasing the filter is stretched
by the scale. The weights are normalized to one, and pixels outside of the image repeat the image's edge;
pixels outside of the region of interest but inside of the image are read unchanged.

The positions are computed in float32 and in the same order of operations as in DALI: rounding decides which pixel is
the nearest neighbor, and how many pixels a Gaussian reads. DALI counts positions from the start of the region that a
pass reads: for the first pass the image, for later passes the region of interest.
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
    "inside_of",
    "nearest",
    "passes",
    "resize_axes",
    "stretch_taps",
    "taps",
]

FILTERS = ("nn", "linear", "cubic", "triangular", "gaussian", "lanczos3")

RADIUS = {"linear": 1, "triangular": 1, "cubic": 2, "gaussian": 1, "lanczos3": 3}
OVERSHOOT = ("cubic", "lanczos3")  # filters with negative weights
_KNOTS = 32  # table entries per unit of the filter
_f32 = np.float32
_STRETCHED: dict[str, tuple[Any, Any]] = {  # arrays: with Python numbers, NumPy is half as fast
    name: (np.array(radius, np.float64), np.array(_KNOTS * radius, _f32)) for name, radius in RADIUS.items()
}
_Floats = npt.NDArray[np.float32]


class Axis(NamedTuple):
    """Resizing of one spatial axis.

    Attributes:
        length: Extent of the input.
        size: Extent of the output.
        low: Start of the region of interest, in input pixels.
        high: End of the region of interest; if below `low`, the axis is flipped.
        filter: One of `FILTERS`, already chosen for this axis.
        antialias: Stretch the filter when shrinking.
    """

    length: int
    size: int
    low: float
    high: float
    filter: str
    antialias: bool

    @property
    def growth(self) -> float:
        """Output pixels per input pixel."""
        return self.size / abs(self.high - self.low)

    @property
    def is_identity(self) -> bool:
        """True if the output equals the input."""
        whole = self.low == 0 and self.high == self.length == self.size
        return whole and self.filter != "gaussian"


Fields = tuple[int, int, float, float, str, bool]


class Taps(NamedTuple):
    """Weighted sums along an axis: ``out[i] = sum_k weights[i, k] * x[start + pixels[i, k]]``.

    The sums read the input from ``start`` to ``start + extent``.
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
    """Describe every spatial axis. An axis that shrinks has `min_filter`, other axes have `mag_filter`."""
    for name in (min_filter, mag_filter):
        if name not in FILTERS:
            raise ValueError(f"no filter {name!r}: one of {', '.join(FILTERS)}")
    if len(lengths) != len(size) or (roi is not None and len(roi) != len(size)):
        raise ValueError(f"{len(lengths)} spatial axes, {len(size)} sizes, region {roi}")
    axes = []
    for i, (length, out) in enumerate(zip(lengths, size, strict=True)):
        low, high = roi[i] if roi is not None else (0.0, float(length))
        if abs(high - low) < 1e-3:  # a nearly empty region: DALI extends it by this amount
            half = 5e-4 if high >= low else -5e-4
            low, high = low - half, high + half
        chosen = min_filter if abs(high - low) > out else mag_filter
        axes.append(Axis(length, out, float(_f32(low)), float(_f32(high)), chosen, antialias))
    return tuple(axes)


PIXEL, TAP, TAP_OF_ROWS = 3.0, 1.0, 1.4  # DALI's estimates of the cost of an output pixel


def passes(axes: tuple[Axis, ...]) -> tuple[int, ...]:
    """Return the order in which DALI resamples the axes: the order with the lowest estimated cost.

    The cost estimates were fitted to 259 images of random sizes; for three of these images, DALI uses another order.
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
        seen = 1.0
        if axis.filter != "nn":
            stretch = max(1.0, 1 / axis.growth) if axis.antialias else 1.0
            seen = math.ceil(2 * _stretch(axis.filter, stretch)[1])
        tap = TAP_OF_ROWS if i == len(axes) - 1 else TAP
        cost += math.prod(extents) * (PIXEL + tap * seen)
    return cost


def nearest(axis: Axis, innermost: bool, first_pass: bool, device: torch.device) -> Tensor:
    """Return the index of the nearest input pixel for every output pixel.

    Along the innermost axis, DALI multiplies the index by the scale; along other axes, it adds up the scale, including
    the rounding errors.
    """
    return _nearest(tuple(axis), innermost, first_pass, device)


@device_cache(maxsize=64)
@fold  # requires that the axis is a plain tuple
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
    """Return input pixels and weights of every output pixel, or of the output pixels in a window (start, extent)."""
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
    """Return where a pass starts reading, each output pixel's first input pixel relative to that, and the weights.

    All operations are in float32 and in DALI's order, so that the weights of linear and cubic filters are
    bit-identical.
    """
    scale = (_f32(axis.high) - _f32(axis.low)) / _f32(max(axis.size, 1))
    density, reach = _stretch(axis.filter, max(1.0, float(abs(scale))) if axis.antialias else 1.0)
    start = 0 if first_pass else max(0, math.floor(min(axis.low, axis.high) - float(reach)))
    if not axis.size * 2 * reach <= MAX_TAPS:
        raise RuntimeError(
            f"resizing {axis.high - axis.low:g} pixels to {axis.size} sees {axis.size * 2 * reach:g} pixels; at most "
            f"{MAX_TAPS} are allowed"
        )
    step = scale
    origin = _f32(axis.low - start) + (_f32(0.5) * step - _f32(0.5) - reach)
    position = origin + np.arange(axis.size, dtype=_f32) * step
    lowest = np.ceil(position).astype(np.int64)
    pixel = lowest[:, None] + np.arange(math.ceil(2 * reach))
    weight = _lookup(axis.filter, (pixel.astype(_f32) - position[:, None]) * density)
    total: _Floats = np.add.accumulate(weight, 1)[:, -1:]  # adds sequentially, as DALI does
    # Far from the start, float32 cannot distinguish neighboring pixels, and all weights are 0: use the first pixel
    # then.
    weight[:, :1][total == 0] = total[total == 0] = 1
    weight /= total
    return start, lowest, weight


def inside_of(axis: Axis) -> tuple[int, int]:
    """Return start and end of the output pixels that read only pixels inside of the input."""
    _, lowest, weight = _input_range(axis, True)
    within = np.flatnonzero((lowest >= 0) & (lowest + weight.shape[1] <= axis.length))
    return (int(within[0]), int(within[-1]) + 1) if len(within) else (0, 0)


def bags(
    axis: Axis,
    first_pass: bool,
    device: torch.device,
    window: tuple[int, int] | None,
    planes: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the taps of an axis in the form of `torch.embedding_bag`, for consecutive planes.

    Returns:
        Pixels, start index of each output pixel's pixels, and weights; all one-dimensional.
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
    every = (pixels + origins[:, None, None]).flatten()
    starts = torch.arange(0, len(every), pixels.shape[1], device=device)
    return every, starts, weights.repeat(planes, 1).flatten()


_LARGEST_RADIUS = 4096  # input pixels; DALI stretches filters up to this radius


def _stretch(name: str, scale: float) -> tuple[np.float32, np.float32]:
    """Return a stretched filter's table entries per input pixel, and its radius in input pixels."""
    radius = _f32(min(RADIUS[name] * scale, _LARGEST_RADIUS))
    knots = _f32(_KNOTS * RADIUS[name])
    if name == "gaussian":  # computed from its standard deviation, which changes the last bit
        sigma = _f32(float(radius) * 0.5 / math.sqrt(2))
        density = _f32(2) * knots / (_f32(4 * math.sqrt(2)) * sigma)
    else:
        density = knots / radius
    return density, knots / density


def stretch_taps(name: str, scales: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return a filter's table entries per pixel, and its radii in pixels, for several scales."""
    times, knots = _STRETCHED[name]
    radius = np.minimum((times * scales).astype(_f32), _f32(_LARGEST_RADIUS))
    if name == "gaussian":
        sigma = (radius.astype(np.float64) * 0.5 / math.sqrt(2)).astype(_f32)
        density = _f32(2) * knots / (_f32(4 * math.sqrt(2)) * sigma)
    else:
        density = knots / radius
    return density, knots / density


def filter_table(name: str) -> npt.NDArray[np.float64]:
    """Return the values of a filter at multiples of 1/32 of its unit, with a zero at each end."""
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
    """Compute the values of a filter at multiples of 1/32, with a zero at each end."""
    knots = range(-RADIUS[name] * _KNOTS, RADIUS[name] * _KNOTS + 1)
    values = np.array([filter_value(name, knot / _KNOTS) for knot in knots], dtype=_f32)
    return np.pad(values.astype(np.float64), 1)


def filter_value(name: str, t: float) -> float:
    """Return the value of a filter, not normalized, at a distance in the filter's own units."""
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
