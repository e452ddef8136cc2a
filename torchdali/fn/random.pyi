"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


def beta(
    shape_like: _T | None = None,
    /,
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
) -> DataNode:
    """Draw numbers in [0, 1] from the beta distribution, of density ``~ x^(alpha - 1) (1 - x)^(beta - 1)``."""
    ...

def choice(
    a: _T,
    shape_like: _T | None = None,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    p: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    preserve: Any = ...,
    seed: int = -1,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
) -> _T:
    """Draw elements of a sample, with replacement."""
    ...

def coin_flip(
    shape_like: _T | None = None,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    preserve: Any = ...,
    probability: float | DataNode | TensorList = 0.5,
    seed: int = -1,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
) -> DataNode:
    """Draw 1 with a probability, otherwise 0."""
    ...

def normal(
    shape_like: _T | None = None,
    /,
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
) -> DataNode:
    """Draw numbers from the normal distribution."""
    ...

def uniform(
    shape_like: _T | None = None,
    /,
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
) -> DataNode:
    """Draw numbers from a range, or from a list of values, all equally likely."""
    ...
