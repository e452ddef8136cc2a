"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections.abc import Sequence
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


class Dilate:
    """Replace each pixel by the largest value of a rectangle around it."""
    def __init__(
        self,
        *,
        anchor: Sequence[int] | int | DataNode | TensorList = ...,
        border_mode: str = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        iterations: int = ...,
        mask_size: Sequence[int] | int | DataNode | TensorList = ...,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Erode:
    """Replace each pixel by the smallest value of a rectangle around it; see `dilate`."""
    def __init__(
        self,
        *,
        anchor: Sequence[int] | int | DataNode | TensorList = ...,
        border_mode: str = ...,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        iterations: int = ...,
        mask_size: Sequence[int] | int | DataNode | TensorList = ...,
        name: str | None = None,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class MedianBlur:
    """Replace each pixel by the median of a window around it; the edge is repeated outside."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
        window_size: Sequence[int] | int | DataNode | TensorList = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
