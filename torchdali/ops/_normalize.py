"""Normalization by mean and standard deviation."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import (
    Arguments,
    BatchOutput,
    Column,
    Data,
    DType,
    Layout,
    Out,
    PerSample,
    Takes,
    per_sample,
)
from torchdali.kernels.color.affine import affine_intensities, affine_intensity
from torchdali.kernels.convert import convert
from torchdali.kernels.device.reduce import MOST_CHANNELS, reduce_batch
from torchdali.kernels.device.standardize import standardize_batch
from torchdali.kernels.device.tables import upload
from torchdali.kernels.memory import Array
from torchdali.kernels.moments_opencv import moments_of, pooled
from torchdali.kernels.reduce import float_mean, float_sum, resolve_axes
from torchdali.kernels.standardize import standardize
from torchdali.ops._on_device import each_element, elements_of, in_turn
from torchdali.tensors import TensorList

__all__ = ["normalize"]

_NUMBERS = (
    torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32, torch.float32,
)  # fmt: skip
Numbers = Annotated[Tensor, Takes((), _NUMBERS)]
Batch = Annotated[TensorList, Takes((), _NUMBERS)]


def _over_batch(arguments: Mapping[str, Any]) -> str | None:
    return "_normalize_batch" if arguments.get("batch") else None


def _affine(mean: float, stddev: float, epsilon: float, scale: float, shift: float) -> tuple[float, float]:
    """Return factor and offset of the normalization by given numbers."""
    variance = stddev * stddev + epsilon
    factor = scale / math.sqrt(variance) if variance else 0.0
    return factor, shift - mean * factor


@operator(variant=_over_batch)
def normalize(
    data: Numbers,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    batch: bool = False,
    ddof: int = 0,
    dtype: DType = torch.float32,
    epsilon: float = 0.0,
    mean: PerSample[Any] | None = None,
    scale: float = 1.0,
    shift: float = 0.0,
    stddev: PerSample[Any] | None = None,
    layout: Layout,
    out: Out = None,
) -> Data:
    """Subtract the mean, divide by the standard deviation.

    ``out = (in - mean) / sqrt(variance + epsilon) * scale + shift``; a zero divisor gives ``shift``.

    Args:
        data: Any shape.
        axes: Over which mean and deviation are taken. By default all; if one of them is given as an array, those in
            which that has the extent 1: ``(1, 1, 3)`` for a value a channel of ``HWC``.
        axis_names: The same, as letters of the layout.
        batch: Pool the samples of the batch.
        ddof: Subtracted from the number of values when the variance is computed.
        dtype: Of the output; integers are rounded and saturated.
        epsilon: Added to the variance, also to the square of a given ``stddev``.
        mean: Given instead of computed: a number, or an array of as many axes as the data, 1 in each of ``axes``.
        scale: Multiplies the result.
        shift: Is added to it.
        stddev: Given instead of computed.
    """
    if isinstance(mean, (int, float)) and isinstance(stddev, (int, float)):
        numbers = _affine(mean, stddev, epsilon, scale, shift)
        return affine_intensity(data, *numbers, dtype, out)
    where = _reduced(axes, axis_names, layout, data.ndim, mean, stddev)
    found = moments_of(data, where) if mean is stddev is None else None
    if found is not None:
        made = standardize(data, found, found.count - ddof, epsilon, scale, shift, dtype, out)
        if made is not None:
            return made
    x = data.to(torch.float32)
    count = math.prod([data.shape[a] for a in where])
    center = _given(mean, x, where, "mean")
    if center is None:
        center = float_mean(x, where, True) if where else x
    deviation = _given(stddev, x, where, "stddev")
    return _finish(x - center, where, count - ddof, deviation, epsilon, scale, shift, dtype)


@chunk(normalize)
def _normalize_together(data: Tensor, a: Arguments) -> Any:
    rows = list(zip(per_sample(a["mean"], len(data)), per_sample(a["stddev"], len(data)), strict=True))
    if not all(isinstance(number, (int, float)) for row in rows for number in row):
        return NotImplemented
    numbers = [_affine(*row, a.epsilon, a.scale, a.shift) for row in rows]
    if isinstance(a["mean"], Column) or isinstance(a["stddev"], Column) or not rows:
        return affine_intensities(data, numbers, a.dtype, a.out)
    return affine_intensity(data, *numbers[0], a.dtype, a.out)


def _finish(
    centred: Tensor, where: tuple[int, ...], divisor: int, deviation: Tensor | None,
    epsilon: float, scale: float, shift: float, dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    if deviation is None:
        squares = _total(centred.square(), where)
        variance = squares / divisor if divisor > 0 else torch.zeros_like(squares)
    else:
        variance = deviation.square()
    factor = _inverse_root(variance, epsilon) * scale
    result = centred * factor
    return convert(result.add_(shift) if shift else result, dtype)


def _reduced(axes: list[int] | None, axis_names: str | None, layout: str, ndim: int, *numbers: Any) -> tuple[int, ...]:
    """Return the axes over which mean and deviation are taken: as named, or those of extent 1 in given arrays."""
    if axes is None and axis_names is None:
        firsts = [per_sample(each, 1)[0] if isinstance(each, Column) else each for each in numbers]
        shapes = {tuple(np.shape(first)) for first in firsts if first is not None and np.size(first) > 1}
        if len(shapes) > 1:
            raise RuntimeError(f"mean and stddev have different shapes, {' and '.join(map(str, sorted(shapes)))}")
        for shape in shapes:
            if len(shape) != ndim:
                raise RuntimeError(
                    f"mean or stddev has the shape {shape}; without axes it has as many axes as the data, {ndim}, and "
                    "an extent of 1 where they are taken together"
                )
            return tuple(i for i, extent in enumerate(shape) if extent == 1)
    return resolve_axes(axes, axis_names, layout, ndim)


def _inverse_root(variance: Tensor, epsilon: float) -> Tensor:
    """Return ``1 / sqrt(variance + epsilon)``, and 0 where that is infinite."""
    root = (variance + epsilon).rsqrt()
    return torch.where(torch.isinf(root), torch.zeros_like(root), root)


def _given(value: Any, x: Tensor, where: tuple[int, ...], name: str) -> Tensor | None:
    """Return a given mean or deviation as a tensor that broadcasts against a sample."""
    if value is None:
        return None
    tensor = _tensor(value) if isinstance(value, (int, float)) else torch.as_tensor(value, dtype=torch.float32)
    tensor = tensor.reshape(()) if tensor.numel() == 1 else tensor
    shape = [1 if i in where else extent for i, extent in enumerate(x.shape)]
    if tensor.ndim and list(tensor.shape) != shape:
        raise RuntimeError(f"{name} has the shape {list(tensor.shape)}; it must be a number or have the shape {shape}")
    return tensor.to(x.device)


@functools.lru_cache(maxsize=64)
def _tensor(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float32)


@operator(over="batch", separable=True)
def _normalize_batch(
    data: Batch,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    batch: bool = False,
    ddof: int = 0,
    dtype: DType = torch.float32,
    epsilon: float = 0.0,
    mean: PerSample[Any] | None = None,
    scale: float = 1.0,
    shift: float = 0.0,
    stddev: PerSample[Any] | None = None,
    layout: Layout,
) -> BatchOutput:
    """Normalize by the mean and deviation of all samples of the batch together; see `normalize`."""
    where = _reduced(axes, axis_names, layout, data.ndim(), mean, stddev)
    made: BatchOutput = _together(data, where, True, ddof, dtype, epsilon, mean, scale, shift, stddev)
    if made is not NotImplemented:
        return made
    if mean is stddev is None:
        fast = _pooled(data, where, ddof, epsilon, scale, shift, dtype)
        if fast is not None:
            return fast
    samples = [s.to(torch.float32) for s in data.samples()]
    count = sum(math.prod(s.shape[a] for a in where) for s in samples)
    centers = _centers(samples, where, count, mean)
    centred = [s - c for s, c in zip(samples, centers, strict=True)]
    deviations = [_given(d, s, where, "stddev") for d, s in zip(per_sample(stddev, len(samples)), samples, strict=True)]
    if stddev is None:
        squares = sum(_total(c.square(), where) for c in centred)
        assert isinstance(squares, Tensor)
        divisor = count - ddof
        deviations = [(squares / divisor).sqrt() if divisor > 0 else torch.zeros_like(squares)] * len(samples)
    return [_finish(c, where, 1, d, epsilon, scale, shift, dtype) for c, d in zip(centred, deviations, strict=True)]


def _pooled(
    data: TensorList, where: tuple[int, ...], ddof: int, epsilon: float, scale: float, shift: float,
    dtype: torch.dtype,
) -> BatchOutput | None:  # fmt: skip
    samples = data.samples()
    each = [m for m in (moments_of(s, where) for s in samples) if m is not None]
    if not each or len(each) < len(samples):
        return None
    moments = pooled(each)
    dense = data.dense()
    out = None if dense is None else torch.empty(dense.shape, dtype=dtype)
    slots: Sequence[Any] = [None] * len(samples) if out is None else out.unbind(0)
    made = [
        standardize(s, moments, moments.count - ddof, epsilon, scale, shift, dtype, slot)
        for s, slot in zip(samples, slots, strict=True)
    ]
    done = [m for m in made if m is not None]
    if len(done) < len(made):
        return None
    if out is None:
        return done
    for slot, result in zip(slots, done, strict=True):
        if result is not slot:
            slot.copy_(result)
    return out


def _centers(samples: Sequence[Tensor], where: tuple[int, ...], count: int, mean: Any) -> list[Tensor]:
    if mean is not None:
        found = [_given(m, s, where, "mean") for m, s in zip(per_sample(mean, len(samples)), samples, strict=True)]
        return [f for f in found if f is not None]
    pooled = sum(_total(s, where) for s in samples)
    assert isinstance(pooled, Tensor)
    return [pooled / count] * len(samples)


def _total(x: Tensor, where: tuple[int, ...]) -> Tensor:
    return float_sum(x, where, True) if where else x


# ---------------------------------------------------------------- whole batches on an accelerator

_MOST_GROUPS = (1 << 16) - 1  # of a launch


@chunk(normalize, "device")
def _normalize_on_device(data: TensorList, a: Arguments) -> Any:
    if isinstance(a["mean"], (int, float)) and isinstance(a["stddev"], (int, float)):
        numbers = _affine(a["mean"], a["stddev"], a.epsilon, a.scale, a.shift)
        return each_element(data, lambda x: affine_intensity(x, *numbers, a.dtype))
    where = _reduced(a.axes, a.axis_names, a.layout, data.ndim(), a["mean"], a["stddev"])
    return _together(data, where, False, a.ddof, a.dtype, a.epsilon, a["mean"], a.scale, a.shift, a["stddev"])


def _together(
    data: TensorList, where: tuple[int, ...], pooled: bool, ddof: int, dtype: torch.dtype, epsilon: float, mean: Any,
    scale: float, shift: float, stddev: Any,
) -> Any:  # fmt: skip
    found = _groups_of(data, where, pooled)
    if found is None or min(found.counts) <= max(ddof, 0):
        return NotImplemented
    form = [[1 if i in where else n for i, n in enumerate(shape)] for shape in found.shapes]
    centers = _uploaded(mean, form, found.channels, found.flat.device)
    deviations = _uploaded(stddev, form, found.channels, found.flat.device)
    if centers is NotImplemented or deviations is NotImplemented:
        return NotImplemented
    centers = found.total("sum", pooled, 0) if centers is None else centers
    if deviations is None:
        variances = found.total("squares", pooled, ddof, centers)
    else:
        variances = deviations.square()
    factors = _inverse_root(variances, epsilon) * scale
    lengths = found.counts * found.channels
    made = standardize_batch(found.flat, found.offsets, found.groups, lengths, centers, factors, shift)
    return in_turn(convert(made, dtype), found.shapes, data.layout())


class _Groups(NamedTuple):
    """Samples ``(groups, count, channels)``, of which the middle axis is normalized.

    Attributes:
        flat: All elements, uint8 or float32.
        offsets: Where each sample starts.
        shapes: Of the samples, as they were.
        groups: Of each sample.
        counts: Of each sample.
        channels: Of all samples.
    """

    flat: Tensor
    offsets: Array
    shapes: list[tuple[int, ...]]
    groups: Array
    counts: Array
    channels: int

    def total(self, kind: str, pooled: bool, ddof: int, means: Tensor | None = None) -> Tensor:
        """Return sums or squares of all groups, divided by the number of values: ``(all groups, channels)``."""
        counts, lengths = np.repeat(self.counts, self.groups), self.counts * self.channels
        number = np.concatenate([np.arange(n) for n in self.groups.tolist()])
        starts = np.repeat(self.offsets, self.groups) + number * np.repeat(lengths, self.groups)
        divisors = np.full_like(counts, self.counts.sum()) if pooled else counts
        each = reduce_batch(self.flat, starts, counts, self.channels, kind, divisors - ddof, means)
        if not pooled:
            return each
        size = len(self.groups)
        return each.view(size, -1).sum(0).repeat(size).view(each.shape)


def _groups_of(data: TensorList, where: tuple[int, ...], pooled: bool) -> _Groups | None:
    """Return what kernels take of samples; None where the axes are not neighbors, or there are too many numbers."""
    found = elements_of(data)
    first, last = min(where, default=0), max(where, default=-1) + 1
    if found is None or not where or len(where) != last - first:
        return None
    flat, offsets, shapes = found
    parts = (slice(first), slice(first, last), slice(last, None))
    groups, counts, widths = (np.array(shapes, np.int64)[:, part].prod(1) for part in parts)
    if (
        (widths != widths[0]).any()
        or not 1 <= widths[0] <= MOST_CHANNELS
        or not 1 <= groups.min() <= groups.sum() <= _MOST_GROUPS
        or (pooled and (groups != groups[0]).any())
    ):
        return None
    if flat.dtype not in (torch.uint8, torch.float32):
        flat = flat.to(torch.float32)
    return _Groups(flat, offsets, shapes, groups, counts, int(widths[0]))


def _uploaded(value: Any, shapes: list[list[int]], channels: int, device: torch.device) -> Any:
    """Return given numbers on a device, ``(all groups, channels)``; NotImplemented where they do not fit."""
    if value is None:
        return None
    rows: list[Array] = []
    for given, shape in zip(per_sample(value, len(shapes)), shapes, strict=True):
        row = np.asarray(given, np.float32)
        row = row.reshape(()) if row.size == 1 else row
        if row.ndim and list(row.shape) != shape:
            return NotImplemented
        rows.append(np.broadcast_to(row, shape).reshape(-1, channels))
    return upload(np.concatenate(rows), device)
