"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections.abc import Sequence
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


def dilate(
    data: _T,
    /,
    *,
    anchor: Sequence[int] | int | DataNode | TensorList = ...,
    border_mode: str = ...,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    iterations: int = ...,
    mask_size: Sequence[int] | int | DataNode | TensorList = ...,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Replace each pixel by the largest value of a rectangle around it."""
    ...

def erode(
    data: _T,
    /,
    *,
    anchor: Sequence[int] | int | DataNode | TensorList = ...,
    border_mode: str = ...,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    iterations: int = ...,
    mask_size: Sequence[int] | int | DataNode | TensorList = ...,
    name: str | None = None,
    preserve: Any = ...,
) -> _T:
    """Replace each pixel by the smallest value of a rectangle around it; see `dilate`."""
    ...

def median_blur(
    data: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    window_size: Sequence[int] | int | DataNode | TensorList = ...,
) -> _T:
    """Replace each pixel by the median of a window around it; the edge is repeated outside."""
    ...
