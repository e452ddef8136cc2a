"""Reduce axes of a tensor: sum, mean, variance and extremes, with the same result dtypes as in DALI."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from torchdali.kernels.memory import is_plain
from torchdali.kernels.moments_opencv import Moments, compute_moments
from torchdali.kernels.torch_threads import on_one_thread

__all__ = ["extreme", "float_mean", "float_sum", "moments", "resolve_axes", "total", "variance_of"]

_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
_UNDIVIDED = 1 << 15  # PyTorch sums up to this number of values on one thread
_MAX_INT32_COUNT = 1 << 23  # int32 can represent the sum of fewer than this number of 8-bit values
_CARRIER = {torch.uint16: torch.int32, torch.uint32: torch.int64, torch.uint64: torch.int64}


def resolve_axes(axes: Sequence[int] | None, axis_names: str | None, layout: str, ndim: int) -> tuple[int, ...]:
    """Return the nonnegative indices of the axes to reduce.

    Args:
        axes: Indices of the axes, which may be negative.
        axis_names: Letters of the axes in the layout, instead of `axes`. If both are None, all axes are reduced.
        layout: Layout of the tensor.
        ndim: Number of axes of the tensor.

    Raises:
        IndexError: an axis is out of range.
        ValueError: an axis is passed twice.
        RuntimeError: a name is not in the layout, or both `axes` and `axis_names` are passed.
    """
    if axes is not None and axis_names is not None:
        raise RuntimeError("arguments `axes` and `axis_names` are mutually exclusive")
    if axis_names is not None:
        missing = [name for name in axis_names if name not in layout]
        if missing:
            raise RuntimeError(f"axis {missing[0]!r} is not present in the input layout {layout!r}")
        axes = [layout.index(name) for name in axis_names]
    if axes is None:
        return tuple(range(ndim))
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise IndexError(f"axis index out of range: {axis} is not in [{-ndim}, {ndim - 1}]")
    indices = tuple(axis % ndim for axis in axes)
    for axis in indices:
        if indices.count(axis) > 1:
            raise ValueError(f"duplicate axis index {axis}")
    return indices


def total(x: Tensor, axes: tuple[int, ...], keepdim: bool) -> Tensor:
    """Return the sum over axes.

    The dtype is int64 for signed integers, uint64 for unsigned integers, and the input's dtype for floats.
    """
    if not axes:
        return x.to(_sum_type(x.dtype))
    if x.dtype.is_floating_point:
        return float_sum(x, axes, keepdim)
    if (statistics := _byte_moments(x, axes)) is not None:  # the float64 means are exact enough to compute the sums
        sums = [round(mean * statistics.count) for mean in statistics.means]
        return _shape_like_reduction(sums, x, axes, keepdim, torch.int64).view(torch.uint64)
    wide = x.to(_CARRIER.get(x.dtype, x.dtype))
    narrow = x.dtype.itemsize == 1 and x.numel() < _MAX_INT32_COUNT  # int32 can represent the sum and is much faster
    summed = wide.sum(axes, keepdim=keepdim, dtype=torch.int32 if narrow else torch.int64)
    summed = summed.to(torch.int64)
    return summed.view(torch.uint64) if x.dtype in _UNSIGNED else summed


def float_sum(x: Tensor, axes: tuple[int, ...], keepdim: bool) -> Tensor:
    """Sum floats over one or more axes. The result is bit-identical for any number of threads."""
    if not _is_divided(x, axes):
        return x.sum(axes, keepdim=keepdim)
    return on_one_thread(Tensor.sum, x, axes, keepdim=keepdim)


def float_mean(x: Tensor, axes: tuple[int, ...], keepdim: bool) -> Tensor:
    """Average floats over one or more axes. The result is bit-identical for any number of threads."""
    if not _is_divided(x, axes):
        return x.mean(axes, keepdim=keepdim)
    return on_one_thread(Tensor.mean, x, axes, keepdim=keepdim)


def _is_divided(x: Tensor, axes: tuple[int, ...]) -> bool:
    """Return whether PyTorch would split a sum among threads. It splits a long sum whose result is a single number."""
    return x.numel() > _UNDIVIDED and x.numel() == math.prod([x.shape[axis] for axis in axes])


def _sum_type(dtype: torch.dtype) -> torch.dtype:
    if dtype.is_floating_point:
        return dtype
    return torch.uint64 if dtype in _UNSIGNED else torch.int64


def moments(x: Tensor, axes: tuple[int, ...], keepdim: bool, *, squared: bool = False) -> Tensor:
    """Return the mean over axes as float32, or the mean of the squares if `squared` is True."""
    if (statistics := _byte_moments(x, axes)) is not None:
        if squared:
            statistics = statistics.about([0.0] * len(statistics.means))
        return _shape_like_reduction(statistics.variances if squared else statistics.means, x, axes, keepdim)
    values = x if x.dtype.is_floating_point else x.to(torch.float32)
    values = values.square() if squared else values
    return float_mean(values, axes, keepdim) if axes else values


def variance_of(x: Tensor, mean: Tensor, axes: tuple[int, ...], ddof: int, keepdim: bool) -> Tensor:
    """Return the variance as float32. The caller passes the mean.

    Args:
        x: Tensor of any shape.
        mean: Scalar, or the mean over the same axes.
        axes: Axes to reduce.
        ddof: The sum of squares is divided by the number of values minus `ddof`.
        keepdim: True to keep the reduced axes with extent 1.

    Raises:
        RuntimeError: the mean was computed over other axes.
    """
    count = math.prod([x.shape[axis] for axis in axes])
    shape = [1 if i in axes else extent for i, extent in enumerate(x.shape)]
    if mean.numel() not in (1, math.prod(shape)):
        raise RuntimeError(
            f"the mean must be one value or have the shape {tuple(shape)}, with or without the axes of extent 1, got "
            f"{tuple(mean.shape)}. The input has the shape {tuple(x.shape)}, and is reduced over the axes {list(axes)}"
        )
    if count > ddof and is_plain(mean) and (statistics := _byte_moments(x, axes)) is not None:
        means = mean.flatten().tolist()
        if len(means) in (1, len(statistics.means)):
            statistics = statistics.about(means * (len(statistics.means) // len(means)))
            factor = count / (count - ddof)
            return _shape_like_reduction([v * factor for v in statistics.variances], x, axes, keepdim)
    if mean.ndim:
        mean = mean.reshape(shape if mean.numel() > 1 else ())
    distance = (x.to(torch.float32) - mean).square()
    summed = float_sum(distance, axes, keepdim) if axes else distance
    return summed / (count - ddof) if count > ddof else torch.zeros_like(summed)


def _byte_moments(x: Tensor, axes: tuple[int, ...]) -> Moments | None:
    """Return the moments of uint8 values if OpenCV can compute them, else None."""
    return compute_moments(x, axes) if x.dtype == torch.uint8 and axes else None


def _shape_like_reduction(
    values: Sequence[float], x: Tensor, axes: tuple[int, ...], keepdim: bool, dtype: torch.dtype = torch.float32
) -> Tensor:  # fmt: skip
    """Return one value, or one value per channel, in the shape of the reduction's result."""
    result = torch.tensor(values, dtype=dtype)
    if keepdim:
        return result.view([1 if i in axes else extent for i, extent in enumerate(x.shape)])
    return result if len(axes) < x.dim() else result.view(())


def extreme(x: Tensor, axes: tuple[int, ...], keepdim: bool, *, largest: bool) -> Tensor:
    """Return the largest or smallest value over axes, in the input's dtype. NaN is skipped.

    As in DALI, the search for the maximum starts with the smallest finite value, and the search for the minimum with
    the largest finite value. If an axis is empty, or all values are NaN, the result is this start value.
    """
    if not axes:
        return x
    limits = torch.finfo(x.dtype) if x.is_floating_point() else torch.iinfo(x.dtype)
    first = limits.min if largest else limits.max
    if any(x.shape[axis] == 0 for axis in axes):
        shape = x.to(torch.float32).sum(axes, keepdim=keepdim).shape
        return torch.full(shape, first, dtype=x.dtype, device=x.device)
    if x.is_floating_point():
        return _float_extreme(x, axes, keepdim, largest, first)
    if x.dtype == torch.uint64:  # flipping the sign bit keeps the order
        flipped = x.view(torch.int64) ^ (-(2**63))
        return (extreme(flipped, axes, keepdim, largest=largest) ^ (-(2**63))).view(torch.uint64)
    return _amax_or_amin(x.to(_CARRIER.get(x.dtype, x.dtype)), axes, keepdim, largest).to(x.dtype)


def _float_extreme(x: Tensor, axes: tuple[int, ...], keepdim: bool, largest: bool, first: float) -> Tensor:
    result = _amax_or_amin(x, axes, keepdim, largest) if is_plain(x) else None
    if result is None or result.isnan().any():
        result = _amax_or_amin(torch.where(x.isnan(), first, x), axes, keepdim, largest)
    return result.clamp(min=first) if largest else result.clamp(max=first)


def _amax_or_amin(x: Tensor, axes: tuple[int, ...], keepdim: bool, largest: bool) -> Tensor:
    if len(axes) == x.dim():
        return (x.amax if largest else x.amin)(axes, keepdim=keepdim)
    for axis in sorted(axes):  # reducing axis by axis is several times as fast as reducing all axes in one call
        x = (x.amax if largest else x.amin)(axis, keepdim=True)
    return x if keepdim else x.squeeze(axes)
