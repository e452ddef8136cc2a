"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.kernels.convert import convert
from torchdali.kernels.reduce import extreme, moments, resolve_axes, spread, total
from torchdali.operator import operator
from torchdali.schema import Data, DType, Layout, Takes

__all__ = ["max", "mean", "mean_square", "min", "rms", "std_dev", "sum", "variance"]

_NUMBERS = (
    torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32, torch.uint64, torch.int64,
    torch.float32,
)  # fmt: skip
Numbers = Annotated[Tensor, Takes((), _NUMBERS)]


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
    axes: list[int] | None = None,
    axis_names: str | None = None,
    dtype: DType | None = None,
    keep_dims: bool = False,
    layout: Layout,
) -> Data:
    """Sum over axes.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        dtype: Of the output; int64, uint64 or float32, by the input, when None. Integers wrap.
        keep_dims: Keep reduced axes with extent 1.
    """
    result = total(data, resolve_axes(axes, axis_names, layout, data.ndim), keep_dims)
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
    axes: list[int] | None = None,
    axis_names: str | None = None,
    dtype: DType | None = None,
    keep_dims: bool = False,
    layout: Layout,
) -> Data:
    """Average over axes; float32.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        dtype: Of the output; float32 when None.
        keep_dims: Keep reduced axes with extent 1.
    """
    return _as(moments(data, resolve_axes(axes, axis_names, layout, data.ndim), keep_dims), dtype)


@operator(name="reductions.mean_square", layout=_reduced_layout)
def mean_square(
    data: Numbers,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    dtype: DType | None = None,
    keep_dims: bool = False,
    layout: Layout,
) -> Data:
    """Average the squares over axes; float32.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        dtype: Of the output; float32 when None.
        keep_dims: Keep reduced axes with extent 1.
    """
    where = resolve_axes(axes, axis_names, layout, data.ndim)
    return _as(moments(data, where, keep_dims, squared=True), dtype)


@operator(name="reductions.rms", layout=_reduced_layout, class_name="RMS")
def rms(
    data: Numbers,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    dtype: DType | None = None,
    keep_dims: bool = False,
    layout: Layout,
) -> Data:
    """Return the root of the average square over axes; float32.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        dtype: Of the output; float32 when None.
        keep_dims: Keep reduced axes with extent 1.
    """
    where = resolve_axes(axes, axis_names, layout, data.ndim)
    return _as(moments(data, where, keep_dims, squared=True).sqrt(), dtype)


@operator(name="reductions.max", layout=_reduced_layout)
def max(
    data: Numbers,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    keep_dims: bool = False,
    layout: Layout,
) -> Data:
    """Return the largest value over axes, of the input's type.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        keep_dims: Keep reduced axes with extent 1.
    """
    return extreme(data, resolve_axes(axes, axis_names, layout, data.ndim), keep_dims, largest=True)


@operator(name="reductions.min", layout=_reduced_layout)
def min(
    data: Numbers,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    keep_dims: bool = False,
    layout: Layout,
) -> Data:
    """Return the smallest value over axes, of the input's type.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        keep_dims: Keep reduced axes with extent 1.
    """
    return extreme(
        data, resolve_axes(axes, axis_names, layout, data.ndim), keep_dims, largest=False
    )


@operator(name="reductions.variance", layout=_reduced_layout)
def variance(
    data: Numbers,
    mean: Data,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    ddof: int = 0,
    keep_dims: bool = False,
    layout: Layout,
) -> Data:
    """Return the variance over axes around a given mean; float32.

    Args:
        data: Any shape.
        mean: A scalar, or the mean over the same axes.
        axes: To reduce; all by default.
        axis_names: The same, as letters of the layout.
        ddof: Subtracted from the number of values in the divisor.
        keep_dims: Keep reduced axes with extent 1.
    """
    where = resolve_axes(axes, axis_names, layout, data.ndim)
    return spread(data, mean, where, ddof, keep_dims)


@operator(name="reductions.std_dev", layout=_reduced_layout)
def std_dev(
    data: Numbers,
    mean: Data,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    ddof: int = 0,
    keep_dims: bool = False,
    layout: Layout,
) -> Data:
    """Return the standard deviation over axes around a given mean; float32.

    Args:
        data: Any shape.
        mean: A scalar, or the mean over the same axes.
        axes: To reduce; all by default.
        axis_names: The same, as letters of the layout.
        ddof: Subtracted from the number of values in the divisor.
        keep_dims: Keep reduced axes with extent 1.
    """
    where = resolve_axes(axes, axis_names, layout, data.ndim)
    return spread(data, mean, where, ddof, keep_dims).sqrt()
