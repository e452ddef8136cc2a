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


class Combine:
    """Combine transforms: the first input is applied first.

    Args:
        first: ``(n, n + 1)`` float32.
        second: Of the same shape.
        others: Of the same shape.
        reverse_order: Apply the last input first.
    """
    def __init__(
        self,
        *,
        device: Literal['cpu'] | None = None,
        name: str | None = None,
        reverse_order: bool = False,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Crop:
    """Make a matrix that maps one box to another: ``from_start`` to ``to_start``, ``from_end`` to ``to_end``.

    Args:
        mtx: ``(n, n + 1)`` float32: a transform that is applied first.
        absolute: Sort starts and ends.
        from_end: Upper corner of the box in the input, one value an axis or one for all.
        from_start: Lower corner.
        reverse_order: Apply the input after.
        to_end: Upper corner of the box in the output.
        to_start: Lower corner.
    """
    def __init__(
        self,
        *,
        absolute: bool = False,
        device: Literal['cpu'] | None = None,
        from_end: abc.Sequence[float] | float | DataNode | TensorList = [1.0],
        from_start: abc.Sequence[float] | float | DataNode | TensorList = [0.0],
        name: str | None = None,
        reverse_order: bool = False,
        to_end: abc.Sequence[float] | float | DataNode | TensorList = [1.0],
        to_start: abc.Sequence[float] | float | DataNode | TensorList = [0.0],
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Rotation:
    """Make a matrix that turns points, from x to y in the plane, or right-handed around an axis in space.

    Args:
        mtx: ``(n, n + 1)`` float32: a transform that is applied first.
        angle: Degrees.
        axis: ``(x, y, z)``: makes it a turn in space.
        center: Point that stays.
        reverse_order: Apply the input after.
    """
    def __init__(
        self,
        *,
        angle: float | DataNode | TensorList,
        axis: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        center: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        device: Literal['cpu'] | None = None,
        name: str | None = None,
        reverse_order: bool = False,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Scale:
    """Make a matrix that scales.

    Args:
        mtx: ``(n, n + 1)`` float32: a transform that is applied first.
        center: Point that stays.
        ndim: n, where ``scale`` is one number for all axes and there is no input.
        reverse_order: Apply the input after.
        scale: Factors, one an axis or one for all.
    """
    def __init__(
        self,
        *,
        scale: abc.Sequence[float] | float | DataNode | TensorList,
        center: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        device: Literal['cpu'] | None = None,
        name: str | None = None,
        ndim: int | None = None,
        reverse_order: bool = False,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Shear:
    """Make a matrix that shears: ones on the diagonal, and the factors around it, row by row.

    Args:
        mtx: ``(n, n + 1)`` float32: a transform that is applied first.
        angles: Degrees whose tangents are the factors, instead of ``shear``.
        center: Point that stays.
        reverse_order: Apply the input after.
        shear: 2 factors (xy, yx) in the plane, 6 (xy, xz, yx, yz, zx, zy) in space.

    Raises:
        RuntimeError: not exactly one of ``shear`` and ``angles``, or neither 2 nor 6 factors.
    """
    def __init__(
        self,
        *,
        angles: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        center: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        device: Literal['cpu'] | None = None,
        name: str | None = None,
        reverse_order: bool = False,
        shear: abc.Sequence[float] | float | DataNode | TensorList | None = None,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...

class Translation:
    """Make a matrix that moves points.

    Args:
        mtx: ``(n, n + 1)`` float32: a transform that is applied first.
        offset: ``(x, y, ...)``: its length is n.
        reverse_order: Apply the input after.
    """
    def __init__(
        self,
        *,
        offset: abc.Sequence[float] | float | DataNode | TensorList,
        device: Literal['cpu'] | None = None,
        name: str | None = None,
        reverse_order: bool = False,
        bytes_per_sample_hint: Any = ...,
        preserve: Any = ...,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
