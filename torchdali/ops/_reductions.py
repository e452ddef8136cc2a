"""Operators that reduce axes: sum, means, root mean square, minimum, maximum, variance and standard deviation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.registry import OperatorFunction
from torchdali.declaration.schema import Arguments, Data, DType, InputConstraints, Layout, shares
from torchdali.kernels.convert import convert
from torchdali.kernels.reduce import extreme, moments, resolve_axes, total, variance_of

__all__ = ["max", "mean", "mean_square", "min", "rms", "std_dev", "sum", "variance"]

_NUMBERS = (
    torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32, torch.uint64, torch.int64,
    torch.float32,
)  # fmt: skip
Numbers = Annotated[Tensor, InputConstraints((), _NUMBERS)]


def reduced_axes(
    layout: str,
    ndim: int,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    keep_dims: bool = False,
) -> tuple[tuple[int, ...], bool]:
    """Return the axes to reduce, and whether the output keeps them.

    Args:
        layout: Layout of the data.
        ndim: Number of axes of the data.
        axes: Axes to reduce. By default all axes; an empty list reduces no axis.
        axis_names: Letters of the axes in the layout, instead of ``axes``.
        keep_dims: If True, the output keeps the reduced axes with extent 1. By default the reduced axes are dropped.
    """
    return resolve_axes(axes, axis_names, layout, ndim), keep_dims


def _reduced_layout(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> str:
    layout = layouts[0]
    if arguments["keep_dims"] or not layout:
        return layout
    reduced = resolve_axes(arguments["axes"], arguments["axis_names"], layout, len(layout))
    return "".join(name for i, name in enumerate(layout) if i not in reduced)


def _convert_result(result: Tensor, dtype: torch.dtype | None) -> Tensor:
    return result if dtype is None else convert(result, dtype)


@operator(name="reductions.sum", layout=_reduced_layout)
def sum(
    data: Numbers,
    /,
    *,
    dtype: DType | None = None,
    layout: Layout,
    **where: Annotated[Any, shares(reduced_axes)],
) -> Data:
    """Sum data over axes.

    Args:
        data: Integers or float32, any shape.
        dtype: Output dtype. By default int64 for signed integers, uint64 for unsigned integers, and float32 for
            float32. Integers that don't fit wrap around.
    """
    result = total(data, *reduced_axes(layout, data.ndim, **where))
    if dtype is not None and data.dtype.is_floating_point and dtype != data.dtype:
        raise RuntimeError(f"reductions.sum of {data.dtype} doesn't support the dtype {dtype}")
    return result if dtype is None else result.view(_signed_dtype(result.dtype)).to(dtype)


def _signed_dtype(dtype: torch.dtype) -> torch.dtype:
    return torch.int64 if dtype == torch.uint64 else dtype


@operator(name="reductions.mean", layout=_reduced_layout)
def mean(
    data: Numbers,
    /,
    *,
    dtype: DType | None = None,
    layout: Layout,
    **where: Annotated[Any, shares(reduced_axes)],
) -> Data:
    """Compute the mean over axes, in float32.

    Args:
        data: Integers or float32, any shape.
        dtype: Output dtype; integers are rounded and saturated. By default float32.
    """
    return _convert_result(moments(data, *reduced_axes(layout, data.ndim, **where)), dtype)


@operator(name="reductions.mean_square", layout=_reduced_layout)
def mean_square(
    data: Numbers,
    /,
    *,
    dtype: DType | None = None,
    layout: Layout,
    **where: Annotated[Any, shares(reduced_axes)],
) -> Data:
    """Compute the mean of the squares over axes, in float32.

    Args:
        data: Integers or float32, any shape.
        dtype: Output dtype; integers are rounded and saturated. By default float32.
    """
    return _convert_result(moments(data, *reduced_axes(layout, data.ndim, **where), squared=True), dtype)


@operator(name="reductions.rms", layout=_reduced_layout)
def rms(
    data: Numbers,
    /,
    *,
    dtype: DType | None = None,
    layout: Layout,
    **where: Annotated[Any, shares(reduced_axes)],
) -> Data:
    """Compute the root mean square over axes, in float32.

    Args:
        data: Integers or float32, any shape.
        dtype: Output dtype; integers are rounded and saturated. By default float32.
    """
    return _convert_result(moments(data, *reduced_axes(layout, data.ndim, **where), squared=True).sqrt(), dtype)


@operator(name="reductions.max", layout=_reduced_layout)
def max(
    data: Numbers,
    /,
    *,
    layout: Layout,
    **where: Annotated[Any, shares(reduced_axes)],
) -> Data:
    """Return the largest value over axes, in the input's dtype.

    NaN is ignored. For empty data the result is the smallest value of the dtype.

    Args:
        data: Integers or float32, any shape.
    """
    return extreme(data, *reduced_axes(layout, data.ndim, **where), largest=True)


@operator(name="reductions.min", layout=_reduced_layout)
def min(
    data: Numbers,
    /,
    *,
    layout: Layout,
    **where: Annotated[Any, shares(reduced_axes)],
) -> Data:
    """Return the smallest value over axes, in the input's dtype.

    NaN is ignored. For empty data the result is the largest value of the dtype.

    Args:
        data: Integers or float32, any shape.
    """
    return extreme(data, *reduced_axes(layout, data.ndim, **where), largest=False)


@operator(name="reductions.variance", layout=_reduced_layout)
def variance(
    data: Numbers,
    mean: Data,
    /,
    *,
    ddof: int = 0,
    layout: Layout,
    **where: Annotated[Any, shares(reduced_axes)],
) -> Data:
    """Compute the variance over axes around a given mean, in float32.

    Args:
        data: Integers or float32, any shape.
        mean: Mean of the data: a scalar, or the mean over the same axes.
        ddof: Delta degrees of freedom: the sum of squares is divided by the number of values minus ``ddof``. By default
            0.
    """
    axes, keep_dims = reduced_axes(layout, data.ndim, **where)
    return variance_of(data, mean, axes, ddof, keep_dims)


@operator(name="reductions.std_dev", layout=_reduced_layout)
def std_dev(
    data: Numbers,
    mean: Data,
    /,
    *,
    ddof: int = 0,
    layout: Layout,
    **where: Annotated[Any, shares(reduced_axes)],
) -> Data:
    """Compute the standard deviation over axes around a given mean, in float32.

    Args:
        data: Integers or float32, any shape.
        mean: Mean of the data: a scalar, or the mean over the same axes.
        ddof: Delta degrees of freedom: the sum of squares is divided by the number of values minus ``ddof``. By default
            0.
    """
    axes, keep_dims = reduced_axes(layout, data.ndim, **where)
    return variance_of(data, mean, axes, ddof, keep_dims).sqrt()


# ---------------------------------------------------------------- batches of equal shapes, on a device


def _declare_batch(function: OperatorFunction[..., Any]) -> None:
    """Declare the implementation of a reduction for a batch of samples of the same shape."""

    @chunk(function, only_on_devices=True)
    def reduce_batch(data: Tensor, a: Arguments) -> Any:
        return function.implementation(data, layout="", **a.of(function.implementation), **_shift_axes(data, a))


def _declare_batch_around_means(function: OperatorFunction[..., Any]) -> None:
    """Declare the same implementation as `_declare_batch`, for a reduction with the input ``mean``."""

    @chunk(function, only_on_devices=True)
    def reduce_batch(data: Tensor, mean: Tensor, a: Arguments) -> Any:
        where = _shift_axes(data, a)
        if mean[0].numel() == 1:
            shape = [1 if i in where["axes"] else extent for i, extent in enumerate(data.shape)]
            mean = mean.reshape(-1, *[1] * (data.ndim - 1)).expand(shape)
        return function.implementation(data, mean, layout="", **a.of(function.implementation), **where)


def _shift_axes(data: Tensor, a: Arguments) -> dict[str, Any]:
    """Return a reduction's arguments for a batch tensor, in which the index of every axis is greater by 1."""
    axes, keep_dims = reduced_axes(a.layout, data.ndim - 1, **a.of(reduced_axes))
    return {"axes": [axis + 1 for axis in axes], "keep_dims": keep_dims}


for _reduction in (sum, mean, mean_square, rms, max, min):
    _declare_batch(_reduction)
for _deviation in (variance, std_dev):
    _declare_batch_around_means(_deviation)
