"""Constants: numbers with a dtype for arithmetic with nodes, and nodes with the same tensor for all samples."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np
import torch

from torchdali.declaration.registry import lookup
from torchdali.graph.nodes import DataNode, current
from torchdali.graph.unpacking import explain_output_name
from torchdali.tensors import TensorList
from torchdali.tensors.dtypes import (
    BOOL,
    FLOAT,
    FLOAT16,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DALIDataType,
    NamedInt,
    to_dali_type,
    to_numpy_type,
)  # fmt: skip

__all__ = ["Constant", "ConstantNode", "ScalarConstant", "as_node", "explain_text_input", "is_other_array", "to_native"]

_INT_TYPES = frozenset({BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64})
_FLOAT_TYPES = frozenset({FLOAT16, FLOAT, FLOAT64})


class ScalarConstant:
    """A Python number with a dtype, for arithmetic with nodes: ``image * Constant(2).uint8()``.

    The other operand must be a node: a constant can't be added to another constant.

    Args:
        value: A bool, int or float, or a NumPy or torch scalar.
        dtype: Dtype of the constant. By default BOOL, INT32 or FLOAT for Python numbers, and the scalar's dtype for
            NumPy and torch scalars. The value is converted to the matching Python type: for an integer dtype, a float
            is truncated to an int. The dtype's range is applied only when the constant is used.
    """

    __slots__ = ("dtype", "shape", "value")
    __array_ufunc__ = None  # so that ``ndarray + constant`` raises an error instead of creating an object array

    def __init__(self, value: Any, dtype: DALIDataType | None = None) -> None:
        number = _to_number(value)
        self.shape: list[int] = []
        chosen = _dtype_of_number(value) if dtype is None else dtype
        if chosen not in _INT_TYPES | _FLOAT_TYPES:
            raise TypeError(f"a ScalarConstant must have a bool, integer or float type, got {chosen}")
        self.dtype = DALIDataType(chosen)
        self.value: builtins.bool | int | float
        if self.dtype == BOOL:
            self.value = builtins.bool(number)
        else:
            self.value = int(number) if self.dtype in _INT_TYPES else float(number)

    def __eq__(self, other: object) -> builtins.bool:
        if not isinstance(other, ScalarConstant):
            return NotImplemented
        return self.dtype == other.dtype and self.value == other.value

    def __bool__(self) -> builtins.bool:
        return builtins.bool(self.__int__())

    def __int__(self) -> int:
        if self.dtype not in _INT_TYPES:
            raise TypeError(f"convert the constant {self} to bool or an integer type first")
        return int(self.value)

    def __float__(self) -> float:
        if self.dtype not in _FLOAT_TYPES:
            raise TypeError(f"convert the constant {self} to a float type first")
        return float(self.value)

    def __repr__(self) -> str:
        return repr(self.value)

    def __str__(self) -> str:
        return f"{self.value}:{self.dtype}"

    def bool(self) -> ScalarConstant:
        """Return this number as BOOL."""
        return ScalarConstant(self.value, BOOL)

    def int8(self) -> ScalarConstant:
        """Return this number as INT8."""
        return ScalarConstant(self.value, INT8)

    def int16(self) -> ScalarConstant:
        """Return this number as INT16."""
        return ScalarConstant(self.value, INT16)

    def int32(self) -> ScalarConstant:
        """Return this number as INT32."""
        return ScalarConstant(self.value, INT32)

    def int64(self) -> ScalarConstant:
        """Return this number as INT64."""
        return ScalarConstant(self.value, INT64)

    def uint8(self) -> ScalarConstant:
        """Return this number as UINT8."""
        return ScalarConstant(self.value, UINT8)

    def uint16(self) -> ScalarConstant:
        """Return this number as UINT16."""
        return ScalarConstant(self.value, UINT16)

    def uint32(self) -> ScalarConstant:
        """Return this number as UINT32."""
        return ScalarConstant(self.value, UINT32)

    def uint64(self) -> ScalarConstant:
        """Return this number as UINT64."""
        return ScalarConstant(self.value, UINT64)

    def float16(self) -> ScalarConstant:
        """Return this number as FLOAT16."""
        return ScalarConstant(self.value, FLOAT16)

    def float32(self) -> ScalarConstant:
        """Return this number as FLOAT."""
        return ScalarConstant(self.value, FLOAT)

    def float64(self) -> ScalarConstant:
        """Return this number as FLOAT64."""
        return ScalarConstant(self.value, FLOAT64)


_ARRAYS = (np.ndarray, np.generic, torch.Tensor)


def is_other_array(value: Any) -> bool:
    """Return whether a value is an array that isn't from NumPy, torch or torchdali, but that NumPy can convert."""
    known_classes = (DataNode, TensorList, np.ndarray, np.generic, torch.Tensor)
    return hasattr(value, "__array__") and not isinstance(value, known_classes) and not hasattr(value, "torch")


def to_native(value: Any) -> Any:
    """Convert arrays to the machine's byte order, and bfloat16 tensors to float32. Return other values unchanged."""
    if isinstance(value, torch.Tensor):
        return value.detach().float() if value.dtype == torch.bfloat16 else value.detach()
    if not is_other_array(value) and not isinstance(value, np.ndarray):
        return value
    array = np.asarray(value)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _to_number(value: Any) -> bool | int | float:
    number = value.item() if isinstance(value, _ARRAYS) else value
    if not isinstance(number, bool | int | float) or isinstance(number, Enum):
        raise TypeError(f"a constant must be a bool, an int or a float, got {type(value).__name__}")
    return number


def _dtype_of_number(value: Any) -> DALIDataType:
    if isinstance(value, _ARRAYS):
        return to_dali_type(value.dtype)
    if isinstance(value, bool):
        return BOOL
    return INT32 if isinstance(value, int) else FLOAT


def Constant(
    value: Any,
    dtype: DALIDataType | None = None,
    shape: Sequence[int] | int | None = None,
    layout: str | None = None,
    device: str | None = None,
    **kwargs: Any,
) -> Any:
    """Create a constant: a `ScalarConstant` for a number, otherwise a node with the same tensor for all samples.

    A number also becomes a node if you pass `device`, `layout`, another argument of `fn.constant`, or a `shape` other
    than ``()`` and ``(1,)``.

    Args:
        value: A number, a flat list or tuple of numbers, or a NumPy or torch array.
        dtype: Dtype of the constant. The default for Python values is INT32, FLOAT or BOOL. The default for an array is
            the array's dtype, but NumPy's int64, uint64 and float64 become INT32, UINT32 and FLOAT.
        shape: The new shape of an array; for a number, the shape of a tensor that is filled with the number.
        layout: Layout of the node.
        device: ``"cpu"`` or ``"gpu"``.
        kwargs: Further arguments of `fn.constant`.

    Raises TypeError for values other than numbers, ValueError for a shape that does not fit an array, and OverflowError
    for NumPy integers that need more than 32 bits if `dtype` isn't passed.
    """
    value = to_native(value)
    needs_node = device is not None or layout is not None or bool(kwargs)
    if needs_node or not _is_scalar(value) or _to_extents(shape) not in ([], [1]):
        return ConstantNode(device, value, dtype, shape, layout, **kwargs)
    return ScalarConstant(value, dtype)


def _is_scalar(value: Any) -> bool:
    if isinstance(value, _ARRAYS):
        return value.ndim == 0
    return not isinstance(value, list | tuple | Enum)


def _to_extents(shape: Sequence[int] | int | None) -> list[int]:
    if shape is None:
        return []
    return [shape] if isinstance(shape, int) else list(shape)


def ConstantNode(
    device: str | None,
    value: Any,
    dtype: DALIDataType | None,
    shape: Sequence[int] | int | None,
    layout: str | None,
    **kwargs: Any,
) -> Any:
    """Record `fn.constant` with the elements of a number, list or array; see `Constant`."""
    if isinstance(value, _ARRAYS):
        array = np.asarray(value)
        array = array if shape is None else array.reshape(_to_extents(shape))
        dtype = _dtype_of_array(value) if dtype is None else dtype
        shape, value = array.shape, array.ravel().tolist()
    elif isinstance(value, list | tuple):
        value = [_to_element(to_native(each)) for each in value]
        dtype = _dtype_of_list(value) if dtype is None else dtype
    else:
        value, shape = [_to_element(value)], _to_extents(shape)
        dtype = _dtype_of_number(value[0]) if dtype is None else dtype
    data = {"fdata" if _has_float(value) else "idata": value, "dtype": DALIDataType(dtype)}
    return _record(**data, device=device, shape=shape, layout=layout, **kwargs)


def _to_element(value: Any) -> bool | int | float:
    return int(value) if isinstance(value, NamedInt) else _to_number(value)


def _has_float(numbers: list[Any]) -> bool:
    return not numbers or any(isinstance(number, float) for number in numbers)


def _dtype_of_list(numbers: list[Any]) -> DALIDataType:
    if _has_float(numbers):
        return FLOAT
    return BOOL if all(isinstance(number, bool) for number in numbers) else INT32


_NARROWED = {INT64: INT32, UINT64: UINT32, FLOAT64: FLOAT}


def _dtype_of_array(array: Any) -> DALIDataType:
    dtype = to_dali_type(array.dtype)
    if isinstance(array, torch.Tensor) or dtype not in _NARROWED:
        return dtype
    dtype = _NARROWED[dtype]
    if dtype is not FLOAT and not np.array_equal(array, array.astype(to_numpy_type(dtype))):
        raise OverflowError(f"the integers of the constant must fit into {dtype}; pass a dtype")
    return dtype


def _record(**arguments: Any) -> Any:
    values = {name: value for name, value in arguments.items() if value is not None}
    return lookup("constant")(**values)


def as_node(value: Any) -> DataNode:
    """Convert an input to a node. Nodes are returned unchanged, other values become constants."""
    if isinstance(value, DataNode):
        return value
    if hasattr(value, "as_node"):
        node: DataNode = value.as_node()
        return node
    if isinstance(value, TensorList):
        raise TypeError("a TensorList cannot be an input while a pipeline is defined; use external_source")
    if isinstance(value, (str, os.PathLike)):
        raise TypeError(explain_text_input(os.fspath(value)))
    dtype = None
    if isinstance(value, ScalarConstant):
        value, dtype = value.value, value.dtype
    try:
        constant: DataNode = Constant(value, dtype, device="cpu")
    except TypeError as error:
        raise TypeError(
            "expected inputs of type 'DataNode', list of 'DataNode' or convertible to constant nodes. "
            f"Received a {type(value).__name__}: {error}"
        ) from None
    return constant


def explain_text_input(text: str) -> str:
    """Return the error message for text that was passed as an input. The message suggests how to read a file."""
    tracer = current()
    if tracer is not None and (advice := explain_output_name(text, tracer.nodes)):
        return f"{text!r} is text, but operators process data{advice}"
    return (
        f"{text[:60]!r} is text, but operators process data. Read files with fn.readers.file(files=[...]) in a "
        f"pipeline, or one file with np.fromfile(path, np.uint8)"
    )
