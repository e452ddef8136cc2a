"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


def max(
    data: _T,
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    keep_dims: bool = False,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Return the largest value over axes, of the input's type."""
    ...

def mean(
    data: _T,
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    keep_dims: bool = False,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Average over axes; float32."""
    ...

def mean_square(
    data: _T,
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    keep_dims: bool = False,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Average the squares over axes; float32."""
    ...

def min(
    data: _T,
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    keep_dims: bool = False,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Return the smallest value over axes, of the input's type."""
    ...

def rms(
    data: _T,
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    keep_dims: bool = False,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Return the root of the average square over axes; float32."""
    ...

def std_dev(
    data: _T,
    mean: _T,
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: Any = ...,
    ddof: int = 0,
    device: str | None = None,
    keep_dims: bool = False,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Return the standard deviation over axes around a given mean; float32."""
    ...

def sum(
    data: _T,
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    keep_dims: bool = False,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Sum over axes."""
    ...

def variance(
    data: _T,
    mean: _T,
    /,
    *,
    axes: abc.Sequence[int] | int | None = None,
    axis_names: str | None = None,
    bytes_per_sample_hint: Any = ...,
    ddof: int = 0,
    device: str | None = None,
    keep_dims: bool = False,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Return the variance over axes around a given mean; float32."""
    ...
