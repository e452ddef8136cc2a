"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from os import PathLike
from typing import Any, Literal, TypeVar, overload

import numpy as np
import torch

from torchdali.graph.nodes import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


def max(
    data: _T,
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    device: Literal['cpu', 'gpu'] | None = None,
    keep_dims: bool = False,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Return the largest value over axes, of the input's type.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

def mean(
    data: _T,
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    keep_dims: bool = False,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Average over axes; float32.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        dtype: Of the output; float32 when None.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

def mean_square(
    data: _T,
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    keep_dims: bool = False,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Average the squares over axes; float32.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        dtype: Of the output; float32 when None.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

def min(
    data: _T,
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    device: Literal['cpu', 'gpu'] | None = None,
    keep_dims: bool = False,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Return the smallest value over axes, of the input's type.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

def rms(
    data: _T,
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    keep_dims: bool = False,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Return the root of the average square over axes; float32.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        dtype: Of the output; float32 when None.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

def std_dev(
    data: _T,
    mean: _T | abc.Sequence[float] | float | np.ndarray[Any, Any],
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    ddof: int = 0,
    device: Literal['cpu', 'gpu'] | None = None,
    keep_dims: bool = False,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Return the standard deviation over axes around a given mean; float32.

    Args:
        data: Any shape.
        mean: A scalar, or the mean over the same axes.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        ddof: Subtracted from the number of values in the divisor.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

def sum(
    data: _T,
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    keep_dims: bool = False,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Sum over axes.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        dtype: Of the output; int64, uint64 or float32, by the input, when None. Integers wrap.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

def variance(
    data: _T,
    mean: _T | abc.Sequence[float] | float | np.ndarray[Any, Any],
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    ddof: int = 0,
    device: Literal['cpu', 'gpu'] | None = None,
    keep_dims: bool = False,
    name: str | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Return the variance over axes around a given mean; float32.

    Args:
        data: Any shape.
        mean: A scalar, or the mean over the same axes.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        ddof: Subtracted from the number of values in the divisor.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...
