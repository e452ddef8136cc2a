"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


class Max:
    """Return the largest value over axes, of the input's type."""
    def __init__(
        self,
        *,
        axes: abc.Sequence[int] | int | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        keep_dims: bool = False,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Mean:
    """Average over axes; float32."""
    def __init__(
        self,
        *,
        axes: abc.Sequence[int] | int | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        keep_dims: bool = False,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class MeanSquare:
    """Average the squares over axes; float32."""
    def __init__(
        self,
        *,
        axes: abc.Sequence[int] | int | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        keep_dims: bool = False,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Min:
    """Return the smallest value over axes, of the input's type."""
    def __init__(
        self,
        *,
        axes: abc.Sequence[int] | int | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        keep_dims: bool = False,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class RMS:
    """Return the root of the average square over axes; float32."""
    def __init__(
        self,
        *,
        axes: abc.Sequence[int] | int | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        keep_dims: bool = False,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class StdDev:
    """Return the standard deviation over axes around a given mean; float32."""
    def __init__(
        self,
        *,
        axes: abc.Sequence[int] | int | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: Any = ...,
        ddof: int = 0,
        device: str | None = None,
        keep_dims: bool = False,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Sum:
    """Sum over axes."""
    def __init__(
        self,
        *,
        axes: abc.Sequence[int] | int | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        keep_dims: bool = False,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Variance:
    """Return the variance over axes around a given mean; float32."""
    def __init__(
        self,
        *,
        axes: abc.Sequence[int] | int | None = None,
        axis_names: str | None = None,
        bytes_per_sample_hint: Any = ...,
        ddof: int = 0,
        device: str | None = None,
        keep_dims: bool = False,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
