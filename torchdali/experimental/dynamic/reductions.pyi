"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from builtins import bool as _bool
from collections import abc
from os import PathLike
from typing import Any, Literal, overload

import torch as _torch

from torchdali.experimental.dynamic._batch import Batch
from torchdali.experimental.dynamic._context import EvalContext
from torchdali.experimental.dynamic._device import DeviceLike
from torchdali.experimental.dynamic._dtypes import DType
from torchdali.experimental.dynamic._readers import Reader
from torchdali.experimental.dynamic._rng import RNG
from torchdali.experimental.dynamic._tensor import Tensor
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

@overload
def max(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    keep_dims: _bool = False,
    torch: Literal[False] = False,
) -> Batch:
    """Return the largest value over axes, of the input's type.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

@overload
def max(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    keep_dims: _bool = False,
    torch: _bool = False,
) -> Any:
    """Return the largest value over axes, of the input's type.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

@overload
def mean(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    keep_dims: _bool = False,
    torch: Literal[False] = False,
) -> Batch:
    """Average over axes; float32.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        dtype: Of the output; float32 when None.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

@overload
def mean(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    keep_dims: _bool = False,
    torch: _bool = False,
) -> Any:
    """Average over axes; float32.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        dtype: Of the output; float32 when None.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

@overload
def mean_square(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    keep_dims: _bool = False,
    torch: Literal[False] = False,
) -> Batch:
    """Average the squares over axes; float32.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        dtype: Of the output; float32 when None.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

@overload
def mean_square(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    keep_dims: _bool = False,
    torch: _bool = False,
) -> Any:
    """Average the squares over axes; float32.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        dtype: Of the output; float32 when None.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

@overload
def min(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    keep_dims: _bool = False,
    torch: Literal[False] = False,
) -> Batch:
    """Return the smallest value over axes, of the input's type.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

@overload
def min(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    keep_dims: _bool = False,
    torch: _bool = False,
) -> Any:
    """Return the smallest value over axes, of the input's type.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

@overload
def rms(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    keep_dims: _bool = False,
    torch: Literal[False] = False,
) -> Batch:
    """Return the root of the average square over axes; float32.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        dtype: Of the output; float32 when None.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

@overload
def rms(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    keep_dims: _bool = False,
    torch: _bool = False,
) -> Any:
    """Return the root of the average square over axes; float32.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        dtype: Of the output; float32 when None.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

@overload
def std_dev(
    data: Batch,
    mean: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    ddof: int = 0,
    keep_dims: _bool = False,
    torch: Literal[False] = False,
) -> Batch:
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

@overload
def std_dev(
    data: Any,
    mean: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    ddof: int = 0,
    keep_dims: _bool = False,
    torch: _bool = False,
) -> Any:
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

@overload
def sum(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    keep_dims: _bool = False,
    torch: Literal[False] = False,
) -> Batch:
    """Sum over axes.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        dtype: Of the output; int64, uint64 or float32, by the input, when None. Integers wrap.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

@overload
def sum(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    keep_dims: _bool = False,
    torch: _bool = False,
) -> Any:
    """Sum over axes.

    Args:
        data: Any shape.
        axes: To reduce; all when neither these nor ``axis_names`` are given, none for an empty list.
        axis_names: The same, as letters of the layout.
        dtype: Of the output; int64, uint64 or float32, by the input, when None. Integers wrap.
        keep_dims: Keep reduced axes with extent 1.
    """
    ...

@overload
def variance(
    data: Batch,
    mean: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    ddof: int = 0,
    keep_dims: _bool = False,
    torch: Literal[False] = False,
) -> Batch:
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

@overload
def variance(
    data: Any,
    mean: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    ddof: int = 0,
    keep_dims: _bool = False,
    torch: _bool = False,
) -> Any:
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
