"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


class Combine:
    """Combine transforms: the first input is applied first."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
        reverse_order: bool = False,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Crop:
    """Make a matrix that maps one box to another: ``from_start`` to ``to_start``, ``from_end`` to ``to_end``."""
    def __init__(
        self,
        *,
        absolute: bool = False,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        from_end: abc.Sequence[float] | float | DataNode | TensorList = [1.0],
        from_start: abc.Sequence[float] | float | DataNode | TensorList = [0.0],
        name: str | None = None,
        preserve: Any = ...,
        reverse_order: bool = False,
        to_end: abc.Sequence[float] | float | DataNode | TensorList = [1.0],
        to_start: abc.Sequence[float] | float | DataNode | TensorList = [0.0],
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Rotation:
    """Make a matrix that turns points, from x to y in the plane, or right-handed around an axis in space."""
    def __init__(
        self,
        *,
        angle: float | DataNode | TensorList,
        axis: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        bytes_per_sample_hint: Any = ...,
        center: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
        reverse_order: bool = False,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Scale:
    """Make a matrix that scales."""
    def __init__(
        self,
        *,
        scale: abc.Sequence[float] | float | DataNode | TensorList,
        bytes_per_sample_hint: Any = ...,
        center: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        device: str | None = None,
        name: str | None = None,
        ndim: int | None = None,
        preserve: Any = ...,
        reverse_order: bool = False,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Shear:
    """Make a matrix that shears: ones on the diagonal, and the factors around it, row by row."""
    def __init__(
        self,
        *,
        angles: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        bytes_per_sample_hint: Any = ...,
        center: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
        reverse_order: bool = False,
        shear: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Translation:
    """Make a matrix that moves points."""
    def __init__(
        self,
        *,
        offset: abc.Sequence[float] | float | DataNode | TensorList,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        name: str | None = None,
        preserve: Any = ...,
        reverse_order: bool = False,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
