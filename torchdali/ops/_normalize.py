"""The operator `normalize`: normalization by mean and standard deviation."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, narrows, operator
from torchdali.declaration.narrowing import Edit
from torchdali.declaration.schema import (
    Arguments,
    BatchOutput,
    Column,
    Data,
    DType,
    InputConstraints,
    Layout,
    Out,
    PerSample,
    per_sample,
)
from torchdali.kernels.color.affine import affine_intensities, affine_intensity
from torchdali.kernels.convert import convert
from torchdali.kernels.device.tables import upload
from torchdali.kernels.moments_opencv import compute_moments, pool
from torchdali.kernels.reduce import float_mean, float_sum, resolve_axes
from torchdali.kernels.standardize import standardize
from torchdali.ops._crop import output_of
from torchdali.tensors import TensorList

__all__ = ["normalize"]

_NUMBERS = (
    torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32, torch.float32,
)  # fmt: skip
Numbers = Annotated[Tensor, InputConstraints((), _NUMBERS)]
Batch = Annotated[TensorList, InputConstraints((), _NUMBERS)]


def _over_batch(arguments: Mapping[str, Any]) -> str | None:
    return "_normalize_batch" if arguments.get("batch") else None


def _affine(mean: float, stddev: float, epsilon: float, scale: float, shift: float) -> tuple[float, float]:
    """Return the factor and the offset that normalize a value: ``out = factor * in + offset``."""
    variance = stddev * stddev + epsilon
    factor = scale / math.sqrt(variance) if variance else 0.0
    return factor, shift - mean * factor


@operator(variant=_over_batch, marks=("pixels",))
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
    """Subtract the mean and divide by the standard deviation.

    ``out = (in - mean) / sqrt(variance + epsilon) * scale + shift``. If the divisor is 0, the output is ``shift``.

    Args:
        data: Integers or float32, any shape.
        axes: Axes over which mean and standard deviation are computed. By default all axes, or, if ``mean`` or
            ``stddev`` is an array, the axes in which the array has extent 1. For example, an array ``(1, 1, 3)``
            normalizes each channel of ``HWC`` data.
        axis_names: Letters of the axes in the layout, instead of ``axes``.
        batch: If True, mean and standard deviation are computed over all samples of the batch. By default each sample
            is normalized separately.
        ddof: Delta degrees of freedom: the sum of squares is divided by the number of values minus ``ddof``. By default
            0.
        dtype: Output dtype; integers are rounded and saturated. By default float32.
        epsilon: Value added to the variance, or to the square of ``stddev`` if ``stddev`` is passed. By default 0.
        mean: Mean to subtract: a number, or an array that has the axes of the data, with extent 1 in each of ``axes``.
            By default the mean of the data.
        scale: Factor by which the normalized values are multiplied. By default 1.
        shift: Value added to the scaled values. By default 0.
        stddev: Standard deviation to divide by, a number or an array like ``mean``. By default the standard deviation
            of the data.
    """
    if isinstance(mean, (int, float)) and isinstance(stddev, (int, float)):
        numbers = _affine(mean, stddev, epsilon, scale, shift)
        return affine_intensity(data, *numbers, dtype, out)
    reduced_axes = _reduced_axes(axes, axis_names, layout, data.ndim, mean, stddev)
    statistics = compute_moments(data, reduced_axes) if mean is stddev is None else None
    if statistics is not None:
        result = standardize(data, statistics, statistics.count - ddof, epsilon, scale, shift, dtype, out)
        if result is not None:
            return result
    x = data.to(torch.float32)
    count = math.prod([data.shape[a] for a in reduced_axes])
    center = _broadcast_parameter(mean, x, reduced_axes, "mean")
    if center is None:
        center = float_mean(x, reduced_axes, True) if reduced_axes else x
    deviation = _broadcast_parameter(stddev, x, reduced_axes, "stddev")
    return _scale_and_shift(x - center, reduced_axes, count - ddof, deviation, epsilon, scale, shift, dtype)


_CONSTANT_ARGUMENTS = ("axes", "axis_names", "dtype", "epsilon", "mean", "scale", "shift", "stddev")


@narrows(normalize, _CONSTANT_ARGUMENTS)
def _edit(constants: Mapping[str, Any]) -> Edit | None:
    """Return the edit that adds `normalize` to image programs.

    An image program describes the region of an image to compute, and how to resize, flip and convert the region. Return
    None unless ``mean`` and ``stddev`` are passed, each as one number or one number per channel.
    """
    dtype = constants.get("dtype", torch.float32)
    if not {"mean", "stddev"} <= constants.keys() or dtype not in _NORMALIZED:
        return None
    mean, deviation = (np.asarray(constants[name], np.float64) for name in ("mean", "stddev"))
    is_per_channel = (
        constants.get("axes") in ([0, 1], (0, 1))
        or constants.get("axis_names") == "HW"
        or not constants.keys() & {"axes", "axis_names"}  # the axes follow from the shape (1, 1, 3)
    )
    if any(values.size != 1 and not (is_per_channel and values.shape == (1, 1, 3)) for values in (mean, deviation)):
        return None
    divisor = np.sqrt(deviation**2 + constants.get("epsilon", 0.0))
    if not (divisor > 0).all():
        return None
    affine = {name: constants[name] for name in ("scale", "shift") if name in constants}
    output = output_of(
        dtype=dtype, output_layout="HWC", mean=mean.ravel().tolist(), std=divisor.ravel().tolist(), **affine
    )
    return Edit(options=lambda options: options.convert(output))


_NORMALIZED = (torch.float32, torch.float16, torch.uint8, torch.int8)


@chunk(normalize, per_sample=("mean", "stddev"))
def _normalize_stacked(data: Tensor, a: Arguments) -> Any:
    rows = list(zip(per_sample(a.mean, len(data)), per_sample(a.stddev, len(data)), strict=True))
    if not all(isinstance(number, (int, float)) for row in rows for number in row):
        if data.is_cpu:
            return NotImplemented
        reduced_axes = _reduced_axes(a.axes, a.axis_names, a.layout, data.ndim - 1, a.mean, a.stddev)
        numbers = a.ddof, a.dtype, a.epsilon, a.mean, a.scale, a.shift, a.stddev
        return _normalize_equal_shapes(data, reduced_axes, False, *numbers)
    pairs = [_affine(*row, a.epsilon, a.scale, a.shift) for row in rows]
    if isinstance(a.mean, Column) or isinstance(a.stddev, Column) or not rows:
        return affine_intensities(data, pairs, a.dtype, a.out)
    return affine_intensity(data, *pairs[0], a.dtype, a.out)


def _scale_and_shift(
    centred: Tensor, reduced_axes: tuple[int, ...], divisor: int, deviation: Tensor | None,
    epsilon: float, scale: float, shift: float, dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    if deviation is None:
        squares = _sum_over(centred.square(), reduced_axes)
        variance = squares / divisor if divisor > 0 else torch.zeros_like(squares)
    else:
        variance = deviation.square()
    factor = _inverse_root(variance, epsilon) * scale
    result = centred * factor
    return convert(result.add_(shift) if shift else result, dtype)


def _reduced_axes(
    axes: list[int] | None, axis_names: str | None, layout: str, ndim: int, *numbers: Any
) -> tuple[int, ...]:
    """Return the axes over which mean and standard deviation are computed; see `normalize`."""
    if axes is None and axis_names is None:
        firsts = [per_sample(value, 1)[0] if isinstance(value, Column) else value for value in numbers]
        shapes = {tuple(np.shape(first)) for first in firsts if first is not None and np.size(first) > 1}
        if len(shapes) > 1:
            raise RuntimeError(
                f"mean and stddev must have the same shape, got {' and '.join(map(str, sorted(shapes)))}"
            )
        for shape in shapes:
            if len(shape) != ndim:
                raise RuntimeError(
                    f"without axes, mean and stddev must have {ndim} axes like the data, with extent 1 on each "
                    f"reduced axis, got the shape {shape}"
                )
            return tuple(i for i, extent in enumerate(shape) if extent == 1)
    return resolve_axes(axes, axis_names, layout, ndim)


def _inverse_root(variance: Tensor, epsilon: float) -> Tensor:
    """Return ``1 / sqrt(variance + epsilon)``, or 0 if the divisor is 0."""
    root = (variance + epsilon).rsqrt()
    return torch.where(torch.isinf(root), torch.zeros_like(root), root)


def _broadcast_parameter(value: Any, x: Tensor, reduced_axes: tuple[int, ...], name: str) -> Tensor | None:
    """Convert a mean or standard deviation to a tensor that can be broadcast to a sample; None if `value` is None."""
    if value is None:
        return None
    tensor = _cached_tensor(value) if isinstance(value, (int, float)) else torch.as_tensor(value, dtype=torch.float32)
    tensor = tensor.reshape(()) if tensor.numel() == 1 else tensor
    shape = [1 if i in reduced_axes else extent for i, extent in enumerate(x.shape)]
    if tensor.ndim and list(tensor.shape) != shape:
        raise RuntimeError(f"{name} must be a number or have the shape {shape}, got {list(tensor.shape)}")
    return tensor.to(x.device)


@functools.lru_cache(maxsize=64)
def _cached_tensor(value: float) -> Tensor:
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
    """Normalize by the mean and standard deviation of all samples of the batch; see `normalize`."""
    reduced_axes = _reduced_axes(axes, axis_names, layout, data.ndim(), mean, stddev)
    if data.device.type != "cpu" and data.is_dense_tensor():
        return _normalize_equal_shapes(
            data.stack(), reduced_axes, True, ddof, dtype, epsilon, mean, scale, shift, stddev
        )
    if mean is stddev is None:
        fast = _normalize_pooled(data, reduced_axes, ddof, epsilon, scale, shift, dtype)
        if fast is not None:
            return fast
    samples = [s.to(torch.float32) for s in data.samples()]
    count = sum(math.prod(s.shape[a] for a in reduced_axes) for s in samples)
    centers = _sample_centers(samples, reduced_axes, count, mean)
    centred = [s - c for s, c in zip(samples, centers, strict=True)]
    deviations = [
        _broadcast_parameter(d, s, reduced_axes, "stddev")
        for d, s in zip(per_sample(stddev, len(samples)), samples, strict=True)
    ]
    if stddev is None:
        squares = sum(_sum_over(c.square(), reduced_axes) for c in centred)
        assert isinstance(squares, Tensor)
        divisor = count - ddof
        deviations = [(squares / divisor).sqrt() if divisor > 0 else torch.zeros_like(squares)] * len(samples)
    return [
        _scale_and_shift(c, reduced_axes, 1, d, epsilon, scale, shift, dtype)
        for c, d in zip(centred, deviations, strict=True)
    ]


def _normalize_pooled(
    data: TensorList, reduced_axes: tuple[int, ...], ddof: int, epsilon: float, scale: float, shift: float,
    dtype: torch.dtype,
) -> BatchOutput | None:  # fmt: skip
    samples = data.samples()
    sample_moments = [m for m in (compute_moments(s, reduced_axes) for s in samples) if m is not None]
    if not sample_moments or len(sample_moments) < len(samples):
        return None
    moments = pool(sample_moments)
    dense = data.dense()
    out = None if dense is None else torch.empty(dense.shape, dtype=dtype)
    slots: Sequence[Any] = [None] * len(samples) if out is None else out.unbind(0)
    results = [
        standardize(s, moments, moments.count - ddof, epsilon, scale, shift, dtype, slot)
        for s, slot in zip(samples, slots, strict=True)
    ]
    tensors = [m for m in results if m is not None]
    if len(tensors) < len(results):
        return None
    if out is None:
        return tensors
    for slot, result in zip(slots, tensors, strict=True):
        if result is not slot:
            slot.copy_(result)
    return out


def _sample_centers(samples: Sequence[Tensor], reduced_axes: tuple[int, ...], count: int, mean: Any) -> list[Tensor]:
    if mean is not None:
        centers = [
            _broadcast_parameter(m, s, reduced_axes, "mean")
            for m, s in zip(per_sample(mean, len(samples)), samples, strict=True)
        ]
        return [f for f in centers if f is not None]
    pooled = sum(_sum_over(s, reduced_axes) for s in samples)
    assert isinstance(pooled, Tensor)
    return [pooled / count] * len(samples)


def _sum_over(x: Tensor, reduced_axes: tuple[int, ...]) -> Tensor:
    return float_sum(x, reduced_axes, True) if reduced_axes else x


# ---------------------------------------------------------------- batches of equal shapes, on a device


def _normalize_equal_shapes(
    data: Tensor, reduced_axes: tuple[int, ...], pooled: bool, ddof: int, dtype: torch.dtype, epsilon: float, mean: Any,
    scale: float, shift: float, stddev: Any,
) -> Tensor:  # fmt: skip
    """Compute `normalize` for samples of the same shape.

    Args:
        data: Samples ``(N, ...)``.
        reduced_axes: Axes of a sample over which mean and standard deviation are computed.
        pooled: True to compute one mean and one standard deviation over all samples; False to compute both for each
            sample.
        ddof, dtype, epsilon, mean, scale, shift, stddev: See `normalize`.
    """
    axes = (*[0] * pooled, *[axis + 1 for axis in reduced_axes])
    x = data.to(torch.float32)
    count = math.prod([x.shape[axis] for axis in axes])
    center, deviation = (
        _broadcast_parameters(mean, x, reduced_axes, "mean"),
        _broadcast_parameters(stddev, x, reduced_axes, "stddev"),
    )
    if center is None:
        center = float_mean(x, axes, True) if axes else x
    return _scale_and_shift(x - center, axes, count - ddof, deviation, epsilon, scale, shift, dtype)


def _broadcast_parameters(value: Any, x: Tensor, reduced_axes: tuple[int, ...], name: str) -> Tensor | None:
    """Convert the samples' means or standard deviations to a tensor that can be broadcast to a batch."""
    if value is None:
        return None
    template = torch.empty(()).expand(x.shape[1:])
    rows = [
        _broadcast_parameter(sample_value, template, reduced_axes, name) for sample_value in per_sample(value, len(x))
    ]
    numbers = upload(torch.stack([row for row in rows if row is not None]), x.device)
    return numbers if numbers.ndim > 1 else numbers.view(-1, *[1] * (x.ndim - 1))
