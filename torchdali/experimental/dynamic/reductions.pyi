"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from builtins import bool as _bool
from collections import abc
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
    """Return the largest value over axes, of the input's type."""
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
    """Return the largest value over axes, of the input's type."""
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
    """Average over axes; float32."""
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
    """Average over axes; float32."""
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
    """Average the squares over axes; float32."""
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
    """Average the squares over axes; float32."""
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
    """Return the smallest value over axes, of the input's type."""
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
    """Return the smallest value over axes, of the input's type."""
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
    """Return the root of the average square over axes; float32."""
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
    """Return the root of the average square over axes; float32."""
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
    """Return the standard deviation over axes around a given mean; float32."""
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
    """Return the standard deviation over axes around a given mean; float32."""
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
    """Sum over axes."""
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
    """Sum over axes."""
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
    """Return the variance over axes around a given mean; float32."""
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
    """Return the variance over axes around a given mean; float32."""
    ...
