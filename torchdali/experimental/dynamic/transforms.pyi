"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from builtins import bool as _bool
from collections import abc
from os import PathLike
from typing import Any, Literal, overload

import torch as _torch

from torchdali.experimental.dynamic._batch import Batch
from torchdali.experimental.dynamic._context import EvalContext
from torchdali.experimental.dynamic._device import DeviceLike
from torchdali.experimental.dynamic._dtypes import DType
from torchdali.experimental.dynamic._readers import Reader
from torchdali.experimental.dynamic._rng import RNG
from torchdali.experimental.dynamic._tensor import Tensor
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

@overload
def combine(
    input_0: Batch,
    input_1: Any,
    /,
    *inputs: Any,
    batch_size: int | None = None,
    device: DeviceLike = None,
    reverse_order: _bool = False,
    torch: Literal[False] = False,
) -> Batch:
    """Combine transforms: the first input is applied first.

    Args:
        first: ``(n, n + 1)`` float32.
        second: Of the same shape.
        others: Of the same shape.
        reverse_order: Apply the last input first.
    """
    ...

@overload
def combine(
    input_0: Any,
    input_1: Any,
    /,
    *inputs: Any,
    batch_size: int | None = None,
    device: DeviceLike = None,
    reverse_order: _bool = False,
    torch: _bool = False,
) -> Any:
    """Combine transforms: the first input is applied first.

    Args:
        first: ``(n, n + 1)`` float32.
        second: Of the same shape.
        others: Of the same shape.
        reverse_order: Apply the last input first.
    """
    ...

def crop(
    input: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    absolute: _bool = False,
    from_end: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [1.0],
    from_start: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [0.0],
    reverse_order: _bool = False,
    to_end: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [1.0],
    to_start: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [0.0],
    torch: _bool = False,
) -> Any:
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
    ...

def rotation(
    input: Any = None,
    /,
    *,
    angle: float | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    axis: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    center: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    reverse_order: _bool = False,
    torch: _bool = False,
) -> Any:
    """Make a matrix that turns points, from x to y in the plane, or right-handed around an axis in space.

    Args:
        mtx: ``(n, n + 1)`` float32: a transform that is applied first.
        angle: Degrees.
        axis: ``(x, y, z)``: makes it a turn in space.
        center: Point that stays.
        reverse_order: Apply the input after.
    """
    ...

def scale(
    input: Any = None,
    /,
    *,
    scale: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    center: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    ndim: int | None = None,
    reverse_order: _bool = False,
    torch: _bool = False,
) -> Any:
    """Make a matrix that scales.

    Args:
        mtx: ``(n, n + 1)`` float32: a transform that is applied first.
        center: Point that stays.
        ndim: n, where ``scale`` is one number for all axes and there is no input.
        reverse_order: Apply the input after.
        scale: Factors, one an axis or one for all.
    """
    ...

def shear(
    input: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    angles: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    center: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    reverse_order: _bool = False,
    shear: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    torch: _bool = False,
) -> Any:
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
    ...

def translation(
    input: Any = None,
    /,
    *,
    offset: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor,
    batch_size: int | None = None,
    device: DeviceLike = None,
    reverse_order: _bool = False,
    torch: _bool = False,
) -> Any:
    """Make a matrix that moves points.

    Args:
        mtx: ``(n, n + 1)`` float32: a transform that is applied first.
        offset: ``(x, y, ...)``: its length is n.
        reverse_order: Apply the input after.
    """
    ...
