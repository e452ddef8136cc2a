"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


def gaussian(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    mean: float | DataNode | TensorList = 0.0,
    name: str | None = None,
    preserve: Any = ...,
    seed: int = -1,
    stddev: float | DataNode | TensorList = 1.0,
) -> _T:
    """Add normally distributed noise: ``out = in + normal(mean, stddev)``, rounded and saturated."""
    ...

def salt_and_pepper(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    pepper_val: float | DataNode | TensorList | None = None,
    per_channel: bool = False,
    preserve: Any = ...,
    prob: float | DataNode | TensorList = 0.05,
    salt_val: float | DataNode | TensorList | None = None,
    salt_vs_pepper: float | DataNode | TensorList = 0.5,
    seed: int = -1,
) -> _T:
    """Replace some pixels by the lightest or darkest value."""
    ...

def shot(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    factor: float | DataNode | TensorList = 20.0,
    name: str | None = None,
    preserve: Any = ...,
    seed: int = -1,
) -> _T:
    """Add shot noise: ``out = factor * poisson(in / factor)``, rounded and saturated; 0 keeps the data."""
    ...
