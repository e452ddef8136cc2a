"""The words of the API: DALI's enumerations, data types, layouts and constants.

Everything here has DALI's names and integer values. Data types are also mapped to and from torch
and NumPy by plain dictionary lookups, cheap enough to use once a batch.
"""

from __future__ import annotations

import builtins
import difflib
from collections.abc import Sequence
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

__all__ = [
    "ANY_DATA", "BGR", "BOOL", "BatchInfo", "CPU_ONLY_DEVICE_ID", "CUDAStream", "Constant",
    "ConstantNode", "DALIDataType", "DALIImageType", "DALIInterpType", "DATA_TYPE", "FEATURE",
    "FLOAT", "FLOAT16", "FLOAT64", "GRAY", "IMAGE_TYPE", "INT16", "INT32", "INT64", "INT8",
    "INTERP_CUBIC", "INTERP_GAUSSIAN", "INTERP_LANCZOS3", "INTERP_LINEAR", "INTERP_NN",
    "INTERP_TRIANGULAR", "INTERP_TYPE", "NCHW", "NFCHW", "NFHWC", "NHWC", "NO_TYPE",
    "OperatorConcurrency", "PYTHON_OBJECT", "PipelineAPIType", "RGB", "SAME", "STRING",
    "SampleInfo", "ScalarConstant", "StreamPolicy", "TENSOR_LAYOUT", "TensorLayout", "UINT16",
    "UINT32", "UINT64", "UINT8", "YCbCr", "from_torch_dtype", "to_dali_type", "to_numpy_type",
    "to_torch_dtype",
]  # fmt: skip


class _NamedInt(IntEnum):
    """An integer that prints as ``Class.MEMBER`` and is true whatever its value, as in DALI."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self._name_}"

    def __format__(self, format_spec: str) -> str:
        return format(str(self), format_spec)

    def __bool__(self) -> bool:
        return True


class DALIDataType(_NamedInt):
    """Type of the elements of a tensor, or of an argument."""

    NO_TYPE = -1
    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    UINT64 = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    FLOAT16 = 8
    FLOAT = 9
    FLOAT64 = 10
    BOOL = 11
    STRING = 12
    FEATURE = 17
    IMAGE_TYPE = 20
    DATA_TYPE = 21
    INTERP_TYPE = 22
    TENSOR_LAYOUT = 23
    PYTHON_OBJECT = 24


class DALIImageType(_NamedInt):
    """Colour space of an image; ``ANY_DATA`` keeps the channels of the file."""

    RGB = 0
    BGR = 1
    GRAY = 2
    YCbCr = 3
    ANY_DATA = 4


class DALIInterpType(_NamedInt):
    """Interpolation between pixels."""

    INTERP_NN = 0
    INTERP_LINEAR = 1
    INTERP_CUBIC = 2
    INTERP_LANCZOS3 = 3
    INTERP_TRIANGULAR = 4
    INTERP_GAUSSIAN = 5


class PipelineAPIType(Enum):
    """How a pipeline is being driven: ``run``, an iterator, or ``schedule_run`` and ``outputs``."""

    BASIC = 0
    ITERATOR = 1
    SCHEDULED = 2


class StreamPolicy(Enum):
    """How device operators are assigned to streams."""

    UNSPECIFIED = 0
    SINGLE = 16
    PER_BACKEND = 32
    PER_OPERATOR = 48


class OperatorConcurrency(Enum):
    """Which operators of one iteration may run at the same time."""

    UNSPECIFIED = 0
    NONE = 2
    BACKEND = 4
    FULL = 6


NO_TYPE = DALIDataType.NO_TYPE
UINT8 = DALIDataType.UINT8
UINT16 = DALIDataType.UINT16
UINT32 = DALIDataType.UINT32
UINT64 = DALIDataType.UINT64
INT8 = DALIDataType.INT8
INT16 = DALIDataType.INT16
INT32 = DALIDataType.INT32
INT64 = DALIDataType.INT64
FLOAT16 = DALIDataType.FLOAT16
FLOAT = DALIDataType.FLOAT
FLOAT64 = DALIDataType.FLOAT64
BOOL = DALIDataType.BOOL
STRING = DALIDataType.STRING
FEATURE = DALIDataType.FEATURE
IMAGE_TYPE = DALIDataType.IMAGE_TYPE
DATA_TYPE = DALIDataType.DATA_TYPE
INTERP_TYPE = DALIDataType.INTERP_TYPE
TENSOR_LAYOUT = DALIDataType.TENSOR_LAYOUT
PYTHON_OBJECT = DALIDataType.PYTHON_OBJECT

RGB = DALIImageType.RGB
BGR = DALIImageType.BGR
GRAY = DALIImageType.GRAY
YCbCr = DALIImageType.YCbCr
ANY_DATA = DALIImageType.ANY_DATA

INTERP_NN = DALIInterpType.INTERP_NN
INTERP_LINEAR = DALIInterpType.INTERP_LINEAR
INTERP_CUBIC = DALIInterpType.INTERP_CUBIC
INTERP_LANCZOS3 = DALIInterpType.INTERP_LANCZOS3
INTERP_TRIANGULAR = DALIInterpType.INTERP_TRIANGULAR
INTERP_GAUSSIAN = DALIInterpType.INTERP_GAUSSIAN

NHWC = "HWC"
NCHW = "CHW"
NFHWC = "FHWC"
NFCHW = "FCHW"
SAME = ""

CPU_ONLY_DEVICE_ID = -99999
"""Device id that DALI uses inside for a pipeline made with ``device_id=None``."""

_TORCH_OF = {
    UINT8: torch.uint8,
    UINT16: torch.uint16,
    UINT32: torch.uint32,
    UINT64: torch.uint64,
    INT8: torch.int8,
    INT16: torch.int16,
    INT32: torch.int32,
    INT64: torch.int64,
    FLOAT16: torch.float16,
    FLOAT: torch.float32,
    FLOAT64: torch.float64,
    BOOL: torch.bool,
}
_DALI_OF_TORCH = {dtype: name for name, dtype in _TORCH_OF.items()}
_NUMPY_OF: dict[DALIDataType, type[np.generic]] = {
    UINT8: np.uint8,
    UINT16: np.uint16,
    UINT32: np.uint32,
    UINT64: np.uint64,
    INT8: np.int8,
    INT16: np.int16,
    INT32: np.int32,
    INT64: np.int64,
    FLOAT16: np.float16,
    FLOAT: np.float32,
    FLOAT64: np.float64,
    BOOL: np.bool_,
}
_DALI_OF_NAME = {str(np.dtype(scalar)): name for name, scalar in _NUMPY_OF.items()}
_DALI_OF_NAME |= {str(dtype): name for name, dtype in _TORCH_OF.items()}
_DALI_OF_NAME |= {"byte": UINT8, "short": INT16, "long": INT64, "half": FLOAT16, "float": FLOAT}
_DALI_OF_NAME |= {"double": FLOAT64, "bool_": BOOL}


def to_numpy_type(dali_type: DALIDataType) -> type[np.generic]:
    """Return the NumPy scalar type of a data type; KeyError where there is none (``STRING``)."""
    return _NUMPY_OF[dali_type]


def from_torch_dtype(dtype: torch.dtype) -> DALIDataType:
    """Return the data type of a torch dtype; TypeError where DALI has none (bfloat16, complex)."""
    try:
        return _DALI_OF_TORCH[dtype]
    except KeyError:
        raise _unknown_type(dtype) from None


def to_torch_dtype(dtype: DALIDataType | torch.dtype | np.dtype[Any] | type) -> torch.dtype:
    """Return the torch dtype meant by a data type, a torch dtype, or a NumPy dtype or scalar type.

    Raises TypeError for anything that torch tensors cannot hold.
    """
    if isinstance(dtype, torch.dtype):
        return dtype
    if not isinstance(dtype, DALIDataType):
        dtype = to_dali_type(dtype)
    try:
        return _TORCH_OF[dtype]
    except KeyError:
        raise TypeError(f"no torch dtype holds {dtype}") from None


def to_dali_type(framework_type: Any) -> DALIDataType:
    """Return the data type meant by a torch dtype, a NumPy dtype or scalar type, or a type's name.

    ``float`` is FLOAT (float32) and ``bool`` is BOOL; ``int`` is ambiguous and a TypeError, as is a
    type that DALI does not have.
    """
    if isinstance(framework_type, torch.dtype):
        return from_torch_dtype(framework_type)
    name = framework_type
    if isinstance(name, type):
        name = np.dtype(name) if issubclass(name, np.generic) else name.__name__
    if isinstance(name, np.dtype):
        name = str(name)
    if isinstance(name, str) and name in _DALI_OF_NAME:
        return _DALI_OF_NAME[name]
    raise _unknown_type(framework_type)


def _unknown_type(framework_type: object) -> TypeError:
    return TypeError(f"{framework_type!s} is not a type that tensors here can have")


class TensorLayout:
    """Names of the axes of a tensor, one letter each: ``"HWC"``; compares with a str too."""

    __slots__ = ("_axes",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, axes: str, /) -> None:
        if not isinstance(axes, str):
            raise TypeError(f"a layout is made from a str, not from {type(axes).__name__}")
        self._axes = axes

    def __len__(self) -> int:
        return len(self._axes)

    def __str__(self) -> str:
        return self._axes

    def __repr__(self) -> str:
        return f"TensorLayout({self._axes!r})"

    def __eq__(self, other: object, /) -> bool:
        return self._axes == _axes_of(other)

    def __ne__(self, other: object, /) -> bool:
        return self._axes != _axes_of(other)

    def __lt__(self, other: object, /) -> bool:
        return self._axes < _axes_of(other)

    def __le__(self, other: object, /) -> bool:
        return self._axes <= _axes_of(other)

    def __gt__(self, other: object, /) -> bool:
        return self._axes > _axes_of(other)

    def __ge__(self, other: object, /) -> bool:
        return self._axes >= _axes_of(other)


def _axes_of(layout: object) -> str:
    if isinstance(layout, TensorLayout | str):
        return str(layout)
    raise TypeError(f"a layout compares with a layout or a str, not with {type(layout).__name__}")


class SampleInfo:
    """Where a sample stands; what `external_source` passes to its source for one sample.

    Args:
        idx_in_epoch: Number of samples of this epoch before it.
        idx_in_batch: Its index in the batch.
        iteration: Number of batches of this epoch before its batch.
        epoch_idx: Number of epochs before this one.
    """

    def __init__(
        self, idx_in_epoch: int, idx_in_batch: int, iteration: int, epoch_idx: int
    ) -> None:
        self.idx_in_epoch = idx_in_epoch
        self.idx_in_batch = idx_in_batch
        self.iteration = iteration
        self.epoch_idx = epoch_idx

    def __repr__(self) -> str:
        return (
            f"SampleInfo(idx_in_epoch={self.idx_in_epoch}, idx_in_batch={self.idx_in_batch}, "
            f"iteration={self.iteration}, epoch_idx={self.epoch_idx})"
        )


class BatchInfo:
    """Where a batch stands; what `external_source` passes to its source for a whole batch.

    Args:
        iteration: Number of batches of this epoch before it.
        epoch_idx: Number of epochs before this one.
    """

    def __init__(self, iteration: int, epoch_idx: int) -> None:
        self.iteration = iteration
        self.epoch_idx = epoch_idx

    def __repr__(self) -> str:
        return f"BatchInfo(iteration={self.iteration}, epoch_idx={self.epoch_idx})"


class CUDAStream:
    """A raw stream handle."""

    def __init__(self, ptr: int = 0) -> None:
        self._ptr = ptr

    @property
    def ptr(self) -> int:
        """The handle, an address as an integer."""
        return self._ptr


_INT_TYPES = frozenset({BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64})
_FLOAT_TYPES = frozenset({FLOAT16, FLOAT, FLOAT64})


class ScalarConstant:
    """A Python number with a data type, for arithmetic with nodes: ``image * Constant(2).uint8()``.

    It has no arithmetic of its own: the node on the other side of the operator records it.

    Args:
        value: A bool, int or float, or a NumPy or torch scalar, whose data type it then takes.
        dtype: Of the constant; BOOL, INT32 or FLOAT by the kind of the value when None. The value
            is converted to the matching Python type (a float becomes an int by truncation) but
            brought into the range of the data type only where it is used.
    """

    __slots__ = ("dtype", "shape", "value")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # so that ``ndarray + constant`` does not become an object array

    def __init__(self, value: Any, dtype: DALIDataType | None = None) -> None:
        number = _number(value)
        self.shape: list[int] = []
        chosen = _dtype_of_number(value) if dtype is None else dtype
        if chosen not in _INT_TYPES | _FLOAT_TYPES:
            raise TypeError(f"a ScalarConstant is of a bool, integer or float type, not {chosen}")
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


def _number(value: Any) -> bool | int | float:
    number = value.item() if isinstance(value, _ARRAYS) else value
    if not isinstance(number, bool | int | float) or isinstance(number, Enum):
        raise TypeError(f"a constant is a bool, an int or a float, not {type(value).__name__}")
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
    """Make a constant: a `ScalarConstant` for a number, else a node that always has one tensor.

    A number stays a number unless `device`, `layout`, an argument of `fn.constant` or a `shape`
    other than ``()`` and ``(1,)`` asks for a node.

    Args:
        value: A number, a flat list or tuple of numbers, or a NumPy or torch array.
        dtype: Of the constant. By default INT32, FLOAT or BOOL for Python values and the array's
            own for arrays, save that NumPy's int64, uint64 and float64 are narrowed to 32 bits.
        shape: An array is reshaped to it, a number is repeated.
        layout: Of the node.
        device: ``"cpu"`` or ``"gpu"``.
        kwargs: Further arguments of `fn.constant`.

    Raises TypeError for what is not a number, ValueError for a shape that does not fit an array,
    OverflowError for NumPy integers outside 32 bits when `dtype` is None.
    """
    asks_for_node = device is not None or layout is not None or bool(kwargs)
    if asks_for_node or not _is_scalar(value) or _lengths(shape) not in ([], [1]):
        return ConstantNode(device, value, dtype, shape, layout, **kwargs)
    return ScalarConstant(value, dtype)


def _is_scalar(value: Any) -> bool:
    if isinstance(value, _ARRAYS):
        return value.ndim == 0
    return not isinstance(value, list | tuple | Enum)


def _lengths(shape: Sequence[int] | int | None) -> list[int]:
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
        array = array if shape is None else array.reshape(_lengths(shape))
        dtype = _dtype_of_array(value) if dtype is None else dtype
        shape, value = array.shape, array.ravel().tolist()
    elif isinstance(value, list | tuple):
        value = [_element(each) for each in value]
        dtype = _dtype_of_list(value) if dtype is None else dtype
    else:
        value, shape = [_element(value)], _lengths(shape)
        dtype = _dtype_of_number(value[0]) if dtype is None else dtype
    data = {"fdata" if _has_float(value) else "idata": value, "dtype": DALIDataType(dtype)}
    return _record(**data, device=device, shape=shape, layout=layout, **kwargs)


def _element(value: Any) -> bool | int | float:
    return int(value) if isinstance(value, _NamedInt) else _number(value)


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
    if dtype is not FLOAT and not np.array_equal(array, array.astype(_NUMPY_OF[dtype])):
        raise OverflowError(f"the integers of the constant do not fit {dtype}; give a dtype")
    return dtype


def _record(**arguments: Any) -> Any:
    from torchdali.operator import lookup

    given = {name: value for name, value in arguments.items() if value is not None}
    return lookup("constant")(**given)


if not TYPE_CHECKING:  # type checkers would take any name

    def __getattr__(name: str) -> Any:
        near = difflib.get_close_matches(name, __all__, 3)
        hint = f"; did you mean {', '.join(near)}?" if near and not name.startswith("__") else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
