"""Dtypes of the dynamic mode: `DType` and its instances ``int8`` ... ``float64``, ``bool``."""

from __future__ import annotations

import builtins
import enum
from collections.abc import Callable
from typing import Any, ClassVar

import torch

from torchdali import types
from torchdali.types import DALIDataType

__all__ = [
    "DType", "DataType", "ImageType", "InterpType", "as_torch_dtype", "bfloat16", "bool", "dtype", "float16", "float32",
    "float64", "int8", "int16", "int32", "int64", "type_id", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip


class _DTypeFamily(enum.Enum):
    signed = 1
    unsigned = 2
    float = 3
    bool = 4
    enum = 5


_DEFAULT_BITS = {16: (5, 10), 32: (8, 23), 64: (11, 52)}  # IEEE 754: exponent, significand


class DType:
    """A dtype of the dynamic mode.

    Two dtypes are equal if their families and widths are equal. Calling a dtype converts data: ``float32([1, 2])``
    returns a `Tensor`.

    Args:
        kind: Family of the dtype.
        bits: Width of an element in bits.
        exponent_bits: Number of exponent bits of a float; by default, IEEE 754's number for 16, 32 or 64 bits.
        significand_bits: Number of significand bits of a float, with the same default.
        bytes: Size of an element in bytes; by default, ``bits / 8`` rounded up.
        type_id: The equivalent `DALIDataType`, or None.
        name: Short name, for example ``"i8"``.
        docs: Description.
    """

    bits: int
    type_id: DALIDataType | None
    exponent_bits: int | None
    significand_bits: int | None
    bytes: int
    name: str

    Kind: ClassVar[type[_DTypeFamily]] = _DTypeFamily
    _convert: ClassVar[Callable[..., Any]]  # set by `_batch`, which imports this module
    _by_id: ClassVar[dict[DALIDataType, DType]] = {}
    _by_name: ClassVar[dict[str, DType]] = {}

    def __init__(
        self,
        kind: _DTypeFamily,
        bits: int,
        exponent_bits: int | None = None,
        significand_bits: int | None = None,
        bytes: int | None = None,
        type_id: DALIDataType | None = None,
        name: str | None = None,
        docs: str | None = None,
    ) -> None:
        if kind is _DTypeFamily.float and exponent_bits is None:
            exponent_bits, significand_bits = _DEFAULT_BITS[bits]
        self.kind, self.bits, self.type_id = kind, bits, type_id
        self.exponent_bits, self.significand_bits = exponent_bits, significand_bits
        self.bytes = (bits + 7) // 8 if bytes is None else bytes
        self.name = name or f"{kind.name[0]}{bits}"
        self.__doc__ = docs or f"The element type {self.name}."

    def _key(self) -> tuple[Any, ...]:
        named = self.name if self.kind is _DTypeFamily.enum else None
        return self.kind, self.bits, self.exponent_bits, self.significand_bits, named

    def __eq__(self, other: object) -> builtins.bool:
        return isinstance(other, DType) and self._key() == other._key()

    def __ne__(self, other: object) -> builtins.bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"DType({self.name!r})"

    def __str__(self) -> str:
        return self.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Convert data to this dtype: a batch to a `Batch`, other data to a `Tensor`."""
        return DType._convert(self, *args, **kwargs)

    @staticmethod
    def from_type_id(type_id: DALIDataType) -> DType:
        """Return the dtype of a `DALIDataType`; raise TypeError for other values."""
        try:
            return DType._by_id[DALIDataType(type_id)]
        except (KeyError, ValueError):
            raise TypeError(f"{type_id!r} is not a supported dtype") from None

    @staticmethod
    def from_fw_type(numpy_type: Any) -> DType:
        """Convert a dtype of NumPy, torch or Python; raise TypeError if it has no equivalent."""
        if isinstance(numpy_type, builtins.type) and issubclass(numpy_type, builtins.bool):
            return bool
        if numpy_type is builtins.float:
            return float32
        if numpy_type is builtins.int:
            return int32
        try:
            return DType.from_type_id(types.to_dali_type(numpy_type))
        except (TypeError, ValueError, KeyError):
            raise TypeError(f"{numpy_type!r} is not a supported dtype") from None

    @staticmethod
    def parse(name: str) -> DType:
        """Return the dtype with a name, such as ``"f32"``, ``"float32"`` or ``"DataType"``.

        Raises:
            ValueError: The name is unknown.
        """
        found = DType._by_name.get(name)
        if found is None:
            raise ValueError(f"unknown dtype name {name!r}; expected one of {', '.join(DType._by_name)}")
        return found


def _define(
    name: str, long_name: str, kind: _DTypeFamily, bits: int, type_id: DALIDataType | None, **options: Any
) -> DType:
    dtype = DType(kind, bits, type_id=type_id, name=name, **options)
    if type_id is not None:
        DType._by_id[type_id] = dtype
    DType._by_name[name] = DType._by_name[long_name] = dtype
    return dtype


int8: DType = _define("i8", "int8", _DTypeFamily.signed, 8, DALIDataType.INT8)
int16: DType = _define("i16", "int16", _DTypeFamily.signed, 16, DALIDataType.INT16)
int32: DType = _define("i32", "int32", _DTypeFamily.signed, 32, DALIDataType.INT32)
int64: DType = _define("i64", "int64", _DTypeFamily.signed, 64, DALIDataType.INT64)
uint8: DType = _define("u8", "uint8", _DTypeFamily.unsigned, 8, DALIDataType.UINT8)
uint16: DType = _define("u16", "uint16", _DTypeFamily.unsigned, 16, DALIDataType.UINT16)
uint32: DType = _define("u32", "uint32", _DTypeFamily.unsigned, 32, DALIDataType.UINT32)
uint64: DType = _define("u64", "uint64", _DTypeFamily.unsigned, 64, DALIDataType.UINT64)
float16: DType = _define("f16", "float16", _DTypeFamily.float, 16, DALIDataType.FLOAT16)
float32: DType = _define("f32", "float32", _DTypeFamily.float, 32, DALIDataType.FLOAT)
float64: DType = _define("f64", "float64", _DTypeFamily.float, 64, DALIDataType.FLOAT64)
bfloat16: DType = _define("bfloat16", "bf16", _DTypeFamily.float, 16, None, exponent_bits=8, significand_bits=7)
bool: DType = _define("bool", "boolean", _DTypeFamily.bool, 1, DALIDataType.BOOL, bytes=1)
DataType: DType = _define("DataType", "data_type", _DTypeFamily.enum, 32, DALIDataType.DATA_TYPE)
ImageType: DType = _define("ImageType", "image_type", _DTypeFamily.enum, 32, DALIDataType.IMAGE_TYPE)
InterpType: DType = _define("InterpType", "interp_type", _DTypeFamily.enum, 32, DALIDataType.INTERP_TYPE)


def dtype(obj: Any) -> DType:
    """Convert an object to a dtype.

    Args:
        obj: A `DType`, its name, a `DALIDataType`, or a dtype of NumPy, torch or Python.

    Raises:
        TypeError, ValueError: The object isn't a dtype.
    """
    if isinstance(obj, DType):
        return obj
    if isinstance(obj, str):
        return DType.parse(obj)
    if isinstance(obj, DALIDataType):
        return DType.from_type_id(obj)
    return DType.from_fw_type(obj)


def type_id(dtype: Any) -> DALIDataType:
    """Return the `DALIDataType` of a dtype.

    Raises:
        ValueError: The dtype has no `DALIDataType`.
    """
    dali_type = dtype.type_id if isinstance(dtype, DType) else dtype
    if not isinstance(dali_type, DALIDataType):
        raise ValueError(f"{dtype!r} has no DALIDataType")
    return dali_type


def as_torch_dtype(obj: Any) -> torch.dtype:
    """Return the torch dtype for any object that `dtype` accepts; enumerations are stored as int32."""
    if isinstance(obj, torch.dtype):
        return obj
    kind = dtype(obj)
    if kind == bfloat16:
        return torch.bfloat16
    if kind.kind is _DTypeFamily.enum:
        return torch.int32
    return types.to_torch_dtype(type_id(kind))


def from_torch(obj: torch.dtype) -> DType:
    """Return the dynamic mode's dtype for a torch dtype."""
    return bfloat16 if obj == torch.bfloat16 else DType.from_type_id(types.from_torch_dtype(obj))
