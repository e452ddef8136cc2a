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


class Gaussian:
    """Add normally distributed noise: ``out = in + normal(mean, stddev)``, rounded and saturated.

    Args:
        data: Any shape.
        mean: Of the noise, in the units of the data.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        stddev: Standard deviation of the noise, in the units of the data.
    """
    def __init__(
        self,
        *,
        device: Literal['cpu', 'gpu'] | None = None,
        mean: float | DataNode | TensorList = 0.0,
        name: str | None = None,
        seed: int = -1,
        stddev: float | DataNode | TensorList = 1.0,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class SaltAndPepper:
    """Replace some pixels by the lightest or darkest value.

    Args:
        data: Any shape; pixels are the elements along a channel axis.
        pepper_val: The dark value; 0 of unsigned, the least of signed integers, -1 of floats when None.
        per_channel: Choose channels of a pixel independently.
        prob: Share of pixels that are replaced.
        salt_val: The light value; the greatest of integers, 1 of floats when None.
        salt_vs_pepper: Share of the light ones among them.
        seed: Of the random numbers; derived from the pipeline's seed by default.

    Raises:
        RuntimeError: a share outside of [0, 1].
    """
    def __init__(
        self,
        *,
        device: Literal['cpu', 'gpu'] | None = None,
        name: str | None = None,
        pepper_val: float | DataNode | TensorList | None = None,
        per_channel: bool = False,
        prob: float | DataNode | TensorList = 0.05,
        salt_val: float | DataNode | TensorList | None = None,
        salt_vs_pepper: float | DataNode | TensorList = 0.5,
        seed: int = -1,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Shot:
    """Add shot noise: ``out = factor * poisson(in / factor)``, rounded and saturated; 0 keeps the data.

    Args:
        data: Any shape; negative values give 0.
        factor: Variance is ``factor * in``; a negative one gives 0.
        seed: Of the random numbers; derived from the pipeline's seed by default.
    """
    def __init__(
        self,
        *,
        device: Literal['cpu', 'gpu'] | None = None,
        factor: float | DataNode | TensorList = 20.0,
        name: str | None = None,
        seed: int = -1,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
