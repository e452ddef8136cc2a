"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


def combine(
    first: _T,
    second: _T,
    *others: _T,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    reverse_order: bool = False,
) -> _T:
    """Combine transforms: the first input is applied first."""
    ...

def crop(
    mtx: _T | None = None,
    /,
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
) -> DataNode:
    """Make a matrix that maps one box to another: ``from_start`` to ``to_start``, ``from_end`` to ``to_end``."""
    ...

def rotation(
    mtx: _T | None = None,
    /,
    *,
    angle: float | DataNode | TensorList,
    axis: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    center: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    reverse_order: bool = False,
) -> DataNode:
    """Make a matrix that turns points, from x to y in the plane, or right-handed around an axis in space."""
    ...

def scale(
    mtx: _T | None = None,
    /,
    *,
    scale: abc.Sequence[float] | float | DataNode | TensorList,
    bytes_per_sample_hint: Any = ...,
    center: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    device: str | None = None,
    name: str | None = None,
    ndim: int | None = None,
    preserve: Any = ...,
    reverse_order: bool = False,
) -> DataNode:
    """Make a matrix that scales."""
    ...

def shear(
    mtx: _T | None = None,
    /,
    *,
    angles: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    bytes_per_sample_hint: Any = ...,
    center: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    reverse_order: bool = False,
    shear: abc.Sequence[float] | float | DataNode | TensorList | None = None,
) -> DataNode:
    """Make a matrix that shears: ones on the diagonal, and the factors around it, row by row."""
    ...

def translation(
    mtx: _T | None = None,
    /,
    *,
    offset: abc.Sequence[float] | float | DataNode | TensorList,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    reverse_order: bool = False,
) -> DataNode:
    """Make a matrix that moves points."""
    ...
