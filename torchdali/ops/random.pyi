"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


class Beta:
    """Draw numbers in [0, 1] from the beta distribution, of density ``~ x^(alpha - 1) (1 - x)^(beta - 1)``."""
    def __init__(
        self,
        *,
        alpha: float | DataNode | TensorList = 1.0,
        beta: float | DataNode | TensorList = 1.0,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        name: str | None = None,
        preserve: Any = ...,
        seed: int = -1,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Choice:
    """Draw elements of a sample, with replacement."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        p: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        preserve: Any = ...,
        seed: int = -1,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class CoinFlip:
    """Draw 1 with a probability, otherwise 0."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        name: str | None = None,
        preserve: Any = ...,
        probability: float | DataNode | TensorList = 0.5,
        seed: int = -1,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Normal:
    """Draw numbers from the normal distribution."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        mean: float | DataNode | TensorList = 0.0,
        name: str | None = None,
        preserve: Any = ...,
        seed: int = -1,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
        stddev: float | DataNode | TensorList = 1.0,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Uniform:
    """Draw numbers from a range, or from a list of values, all equally likely."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dtype: DALIDataType | torch.dtype | None = None,
        name: str | None = None,
        preserve: Any = ...,
        range: abc.Sequence[float] | float | DataNode | TensorList = [-1.0, 1.0],
        seed: int = -1,
        shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
        values: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
