"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


class Gaussian:
    """Add normally distributed noise: ``out = in + normal(mean, stddev)``, rounded and saturated."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        mean: float | DataNode | TensorList = 0.0,
        name: str | None = None,
        preserve: Any = ...,
        seed: int = -1,
        stddev: float | DataNode | TensorList = 1.0,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class SaltAndPepper:
    """Replace some pixels by the lightest or darkest value."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Shot:
    """Add shot noise: ``out = factor * poisson(in / factor)``, rounded and saturated; 0 keeps the data."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        factor: float | DataNode | TensorList = 20.0,
        name: str | None = None,
        preserve: Any = ...,
        seed: int = -1,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
