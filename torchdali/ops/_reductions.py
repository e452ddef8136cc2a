"""Reductions over axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import Arguments, Data, DType, Layout, Takes, shares
from torchdali.kernels.convert import convert
from torchdali.kernels.device.counts import count_values
from torchdali.kernels.device.reduce import MOST_CHANNELS, reduce_batch
from torchdali.kernels.reduce import extreme, moments, resolve_axes, spread, total
from torchdali.ops._on_device import floats_of, images_of
from torchdali.tensors import TensorList

__all__ = ["max", "mean", "mean_square", "min", "rms", "std_dev", "sum", "variance"]

_NUMBERS = (
    torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32, torch.uint64, torch.int64,
    torch.float32,
)  # fmt: skip
Numbers = Annotated[Tensor, Takes((), _NUMBERS)]


def reduced(
    layout: str,
    ndim: int,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    keep_dims: bool = False,
) -> tuple[tuple[int, ...], bool]:
    """Return which axes are reduced, and whether they stay.

    Args:
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        keep_dims: Keep reduced axes with extent 1.
    """
    return resolve_axes(axes, axis_names, layout, ndim), keep_dims


def _reduced_layout(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> str:
    layout = layouts[0]
    if arguments["keep_dims"] or not layout:
        return layout
    gone = resolve_axes(arguments["axes"], arguments["axis_names"], layout, len(layout))
    return "".join(name for i, name in enumerate(layout) if i not in gone)


def _as(result: Tensor, dtype: torch.dtype | None) -> Tensor:
    return result if dtype is None else convert(result, dtype)


@operator(name="reductions.sum", layout=_reduced_layout)
def sum(
    data: Numbers,
    /,
    *,
    dtype: DType | None = None,
    layout: Layout,
    **where: Annotated[Any, shares(reduced)],
) -> Data:
    """Sum over axes.

    Args:
        data: Any shape.
        dtype: Of the output; int64, uint64 or float32, by the input, when None. Integers wrap.
    """
    result = total(data, *reduced(layout, data.ndim, **where))
    if dtype is not None and data.dtype.is_floating_point and dtype != data.dtype:
        raise RuntimeError(f"reductions.sum of {data.dtype} cannot be {dtype}")
    return result if dtype is None else result.view(_signed(result.dtype)).to(dtype)


def _signed(dtype: torch.dtype) -> torch.dtype:
    return torch.int64 if dtype == torch.uint64 else dtype


@operator(name="reductions.mean", layout=_reduced_layout)
def mean(
    data: Numbers,
    /,
    *,
    dtype: DType | None = None,
    layout: Layout,
    **where: Annotated[Any, shares(reduced)],
) -> Data:
    """Average over axes; float32.

    Args:
        data: Any shape.
        dtype: Of the output; float32 when None.
    """
    return _as(moments(data, *reduced(layout, data.ndim, **where)), dtype)


@operator(name="reductions.mean_square", layout=_reduced_layout)
def mean_square(
    data: Numbers,
    /,
    *,
    dtype: DType | None = None,
    layout: Layout,
    **where: Annotated[Any, shares(reduced)],
) -> Data:
    """Average the squares over axes; float32.

    Args:
        data: Any shape.
        dtype: Of the output; float32 when None.
    """
    return _as(moments(data, *reduced(layout, data.ndim, **where), squared=True), dtype)


@operator(name="reductions.rms", layout=_reduced_layout)
def rms(
    data: Numbers,
    /,
    *,
    dtype: DType | None = None,
    layout: Layout,
    **where: Annotated[Any, shares(reduced)],
) -> Data:
    """Return the root of the average square over axes; float32.

    Args:
        data: Any shape.
        dtype: Of the output; float32 when None.
    """
    return _as(moments(data, *reduced(layout, data.ndim, **where), squared=True).sqrt(), dtype)


@operator(name="reductions.max", layout=_reduced_layout)
def max(
    data: Numbers,
    /,
    *,
    layout: Layout,
    **where: Annotated[Any, shares(reduced)],
) -> Data:
    """Return the largest value over axes, of the input's type.

    Args:
        data: Any shape.
    """
    return extreme(data, *reduced(layout, data.ndim, **where), largest=True)


@operator(name="reductions.min", layout=_reduced_layout)
def min(
    data: Numbers,
    /,
    *,
    layout: Layout,
    **where: Annotated[Any, shares(reduced)],
) -> Data:
    """Return the smallest value over axes, of the input's type.

    Args:
        data: Any shape.
    """
    return extreme(data, *reduced(layout, data.ndim, **where), largest=False)


@operator(name="reductions.variance", layout=_reduced_layout)
def variance(
    data: Numbers,
    mean: Data,
    /,
    *,
    ddof: int = 0,
    layout: Layout,
    **where: Annotated[Any, shares(reduced)],
) -> Data:
    """Return the variance over axes around a given mean; float32.

    Args:
        data: Any shape.
        mean: A scalar, or the mean over the same axes.
        ddof: Subtracted from the number of values in the divisor.
    """
    axes, keep_dims = reduced(layout, data.ndim, **where)
    return spread(data, mean, axes, ddof, keep_dims)


@operator(name="reductions.std_dev", layout=_reduced_layout)
def std_dev(
    data: Numbers,
    mean: Data,
    /,
    *,
    ddof: int = 0,
    layout: Layout,
    **where: Annotated[Any, shares(reduced)],
) -> Data:
    """Return the standard deviation over axes around a given mean; float32.

    Args:
        data: Any shape.
        mean: A scalar, or the mean over the same axes.
        ddof: Subtracted from the number of values in the divisor.
    """
    axes, keep_dims = reduced(layout, data.ndim, **where)
    return spread(data, mean, axes, ddof, keep_dims).sqrt()


# ---------------------------------------------------------------- on an accelerator


def _of_floats(
    data: TensorList,
    kind: str,
    layout: str,
    where: Mapping[str, Any],
    mean: TensorList | None = None,
    ddof: int | None = 0,
) -> Any:
    """Reduce the leading axes of float32 samples, of which the others are alike; NotImplemented for what else there is.

    Args:
        kind: See `reduce_batch`.
        mean: What distances are measured from.
        ddof: Subtracted from the number of values, by which a sum is divided; None: it is not.
    """
    found = floats_of(data)
    if found is None:
        return NotImplemented
    axes, keep_dims = reduced(layout, data.ndim(), **where)
    if not axes or set(axes) != set(range(len(axes))):
        return NotImplemented
    (flat, offsets, shapes), rest = found, len(axes)
    kept, channels = shapes[0][rest:], math.prod(shapes[0][rest:])
    counts = np.array([math.prod(shape[:rest]) for shape in shapes], np.int64)
    middle = None if mean is None else mean.dense()
    if (
        any(shape[rest:] != kept for shape in shapes)
        or not 1 <= channels <= MOST_CHANNELS
        or counts.min() <= (ddof or 0)
        or counts.max() >= 1 << 31
        or (mean is not None and middle is None)
        or (middle is not None and middle.numel() not in (len(shapes), len(shapes) * channels))
    ):
        return NotImplemented
    divisors = np.ones(len(shapes)) if ddof is None else counts - ddof
    means = None if middle is None else middle.to(torch.float32).contiguous()
    result = reduce_batch(flat, offsets, counts, channels, kind, divisors, means)
    return result.view([len(shapes), *[1] * (rest * keep_dims), *kept])


def _done(result: Any, *last: Callable[[Tensor], Tensor]) -> Any:
    """Apply functions to a result, if there is one."""
    if result is not NotImplemented:
        for function in last:
            result = function(result)
    return result


# ---------------------------------------------------------------- bytes there: their values are counted


class _Counted(NamedTuple):
    """Histograms of what is reduced, ``(N, channels or 1, 256)``, and the shape of the result."""

    counts: Tensor
    shape: list[int]

    def average(self, values: Tensor) -> Tensor:
        """Return the average of a function of the values, in float64."""
        counts = self.counts.to(torch.float64)
        return (counts * values).sum(-1) / counts.sum(-1)

    def values(self) -> Tensor:
        """Return all values of a byte."""
        return torch.arange(256, device=self.counts.device)


def _counted(data: TensorList, layout: str, where: Mapping[str, Any]) -> _Counted | None:
    images = images_of(data, layout)
    if images is None:
        return None
    (axes, keep_dims), count = reduced(layout, 3, **where), len(data)
    if not {0, 1} <= {*axes}:
        return None
    counts, _ = count_values(images.flat, images.offsets, images.sides.prod(0), images.channels)
    channels = [images.channels] if 2 not in axes else []
    if not channels:
        counts = counts.sum(1, keepdim=True)
    return _Counted(counts, [count, 1, 1, *(channels or [1])] if keep_dims else [count, *channels])


@chunk(sum, "device")
def _sum_on_device(data: TensorList, a: Arguments) -> Any:
    if a.dtype in (None, data.torch_dtype) and data.torch_dtype == torch.float32:
        return _of_floats(data, "sum", a.layout, a.of(reduced), ddof=None)
    found = _counted(data, a.layout, a.of(reduced))
    if found is None:
        return NotImplemented
    total = (found.counts.to(torch.int64) * found.values()).sum(-1).view(found.shape)
    return total.view(torch.uint64) if a.dtype is None else total.to(a.dtype)


@chunk(mean, "device")
def _mean_on_device(data: TensorList, a: Arguments) -> Any:
    found = _counted(data, a.layout, a.of(reduced))
    if found is None:
        result = _of_floats(data, "sum", a.layout, a.of(reduced))
        return _done(result, lambda each: _as(each, a.dtype))
    return _as(found.average(found.values()).to(torch.float32).view(found.shape), a.dtype)


def _average_square(data: TensorList, layout: str, where: Mapping[str, Any]) -> Any:
    found = _counted(data, layout, where)
    if found is None:
        return _of_floats(data, "squares", layout, where)
    return found.average(found.values().square()).to(torch.float32).view(found.shape)


@chunk(mean_square, "device")
def _mean_square_on_device(data: TensorList, a: Arguments) -> Any:
    found = _average_square(data, a.layout, a.of(reduced))
    return _done(found, lambda each: _as(each, a.dtype))


@chunk(rms, "device")
def _rms_on_device(data: TensorList, a: Arguments) -> Any:
    found = _average_square(data, a.layout, a.of(reduced))
    return _done(found, Tensor.sqrt, lambda each: _as(each, a.dtype))


@chunk(max, "device")
def _max_on_device(data: TensorList, a: Arguments) -> Any:
    found = _counted(data, a.layout, a.of(reduced))
    if found is None:
        return _of_floats(data, "max", a.layout, a.of(reduced))
    return torch.where(found.counts > 0, found.values(), 0).amax(-1).to(torch.uint8).view(found.shape)


@chunk(min, "device")
def _min_on_device(data: TensorList, a: Arguments) -> Any:
    found = _counted(data, a.layout, a.of(reduced))
    if found is None:
        return _of_floats(data, "min", a.layout, a.of(reduced))
    return torch.where(found.counts > 0, found.values(), 255).amin(-1).to(torch.uint8).view(found.shape)


def _variance(
    data: TensorList,
    mean: TensorList,
    ddof: int,
    layout: str,
    where: Mapping[str, Any],
) -> Any:
    if data.torch_dtype == torch.float32:
        return _of_floats(data, "squares", layout, where, mean, ddof)
    middle = mean.dense()
    found = None if middle is None else _counted(data, layout, where)
    if middle is None or found is None or middle.numel() not in (len(data), found.counts[..., 0].numel()):
        return NotImplemented
    distance = found.values() - middle.reshape(len(data), -1, 1).to(torch.float64)
    pixels = found.counts.sum(-1)
    share = torch.where(pixels > ddof, pixels / (pixels - ddof), 0.0)
    return (found.average(distance.square()) * share).to(torch.float32).view(found.shape)


@chunk(variance, "device")
def _variance_on_device(data: TensorList, mean: TensorList, a: Arguments) -> Any:
    return _variance(data, mean, a.ddof, a.layout, a.of(reduced))


@chunk(std_dev, "device")
def _std_dev_on_device(data: TensorList, mean: TensorList, a: Arguments) -> Any:
    found = _variance(data, mean, a.ddof, a.layout, a.of(reduced))
    return _done(found, Tensor.sqrt)
