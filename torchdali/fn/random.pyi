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


def beta(
    shape_like: _T | abc.Sequence[float] | float | None = None,
    /,
    *,
    alpha: float | DataNode | TensorList = 1.0,
    beta: float | DataNode | TensorList = 1.0,
    device: Literal['cpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    seed: int = -1,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> DataNode:
    """Draw numbers in [0, 1] from the beta distribution, of density ``~ x^(alpha - 1) (1 - x)^(beta - 1)``.

    Args:
        shape_like: Take the shape from this input.
        alpha: Positive; greater values push towards 1.
        beta: Positive; greater values push towards 0.
        dtype: float32 or float64; float32 when None.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        shape: Of each sample; 0D by default.

    Raises:
        RuntimeError: ``alpha`` or ``beta`` is not positive, another dtype, or both ``shape`` and ``shape_like``.
    """
    ...

def choice(
    a: _T | abc.Sequence[float] | float,
    shape_like: _T | abc.Sequence[float] | float | np.ndarray[Any, Any] | None = None,
    /,
    *,
    device: Literal['cpu'] | None = None,
    name: str | None = None,
    p: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    seed: int = -1,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> _T:
    """Draw elements of a sample, with replacement.

    Args:
        a: A number ``n``, to draw from ``0 .. n - 1``; or what has at least one dimension, to draw slices along
            the first one.
        shape_like: Take the shape from this input.
        p: Probability of each element; all the same when None.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        shape: How many to draw; one, without a dimension for it, by default.

    Returns:
        ``(*shape, *element)``, of the type of ``a``; it keeps the layout where the number of dimensions allows.

    Raises:
        RuntimeError: nothing to draw from, ``n`` is not an integer, ``p`` has a wrong length, has values outside
            [0, 1] or does not sum to 1, or both ``shape`` and ``shape_like`` are given.
    """
    ...

def coin_flip(
    shape_like: _T | abc.Sequence[float] | float | None = None,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    probability: float | DataNode | TensorList = 0.5,
    seed: int = -1,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> DataNode:
    """Draw 1 with a probability, otherwise 0.

    Args:
        shape_like: Take the shape from this input.
        dtype: bool, uint8 or int32; int32 when None.
        probability: Of 1; always 0 below 0, always 1 above 1.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        shape: Of each sample; 0D by default.

    Raises:
        RuntimeError: another dtype, or both ``shape`` and ``shape_like``.
    """
    ...

def normal(
    shape_like: _T | abc.Sequence[float] | float | None = None,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    mean: float | DataNode | TensorList = 0.0,
    name: str | None = None,
    seed: int = -1,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    stddev: float | DataNode | TensorList = 1.0,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> DataNode:
    """Draw numbers from the normal distribution.

    Args:
        shape_like: Take the shape from this input.
        dtype: Any integer type (rounded, saturated), float32 or float64; float32 when None.
        mean: Of the distribution.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        shape: Of each sample; 0D by default.
        stddev: Its standard deviation.

    Raises:
        RuntimeError: another dtype, or both ``shape`` and ``shape_like``.
    """
    ...

def uniform(
    shape_like: _T | abc.Sequence[float] | float | None = None,
    /,
    *,
    device: Literal['cpu', 'gpu'] | None = None,
    dtype: DALIDataType | torch.dtype | None = None,
    name: str | None = None,
    range: abc.Sequence[float] | float | DataNode | TensorList = [-1.0, 1.0],
    seed: int = -1,
    shape: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    values: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    preserve: Any = ...,
) -> DataNode:
    """Draw numbers from a range, or from a list of values, all equally likely.

    Args:
        shape_like: Take the shape from this input.
        dtype: Any integer type, float32 or float64; float32 when None.
        range: ``[low, high)``. With an integer ``dtype`` the ends are converted first (truncated; what does not
            fit wraps, so that -1 is 255 in uint8), and the numbers between them are rounded: both ends occur,
            half as often as the others.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        shape: Of each sample; 0D by default.
        values: Draw from these instead, converted with rounding and saturation.

    Raises:
        RuntimeError: an empty range or list, another dtype, or both ``shape`` and ``shape_like``.
    """
    ...
