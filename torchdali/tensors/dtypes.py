"""DALI's enumerations, data types, layouts and sample infos, with DALI's names and values.

The public module `torchdali.types` exports these classes.
"""

from __future__ import annotations

import warnings
from enum import Enum, IntEnum
from typing import Any

import numpy as np
import torch

__all__ = [
    "ANY_DATA", "BGR", "BOOL", "CPU_ONLY_DEVICE_ID", "DATA_TYPE", "FEATURE", "FLOAT", "FLOAT16", "FLOAT64", "GRAY",
    "IMAGE_TYPE", "INT8", "INT16", "INT32", "INT64", "INTERP_CUBIC", "INTERP_GAUSSIAN", "INTERP_LANCZOS3",
    "INTERP_LINEAR", "INTERP_NN", "INTERP_TRIANGULAR", "INTERP_TYPE", "NCHW", "NFCHW", "NFHWC", "NHWC", "NO_TYPE",
    "PYTHON_OBJECT", "RGB", "SAME", "STRING", "TENSOR_LAYOUT", "UINT8", "UINT16", "UINT32", "UINT64", "BatchInfo",
    "CUDAStream", "DALIDataType", "DALIImageType", "DALIInterpType", "OperatorConcurrency", "PipelineAPIType",
    "SampleInfo", "StreamPolicy", "TensorLayout", "YCbCr", "from_torch_dtype", "to_dali_type", "to_numpy_type",
    "to_torch_dtype",
]  # fmt: skip


class NamedInt(IntEnum):
    """An integer that prints as ``Class.MEMBER`` and is always true, as in DALI."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self._name_}"

    def __format__(self, format_spec: str) -> str:
        return format(str(self), format_spec)

    def __bool__(self) -> bool:
        return True


class DALIDataType(NamedInt):
    """Data type of a tensor's elements, or of an argument."""

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

    def __call__(self) -> DALIDataType:
        """Return the data type itself, because ``tensor.dtype()`` is the deprecated form of ``tensor.dtype``."""
        warnings.warn("Calling '.dtype()' is deprecated, please use '.dtype' instead", DeprecationWarning, stacklevel=2)
        return self


class DALIImageType(NamedInt):
    """Color space of an image; ``ANY_DATA`` keeps the channels of the file."""

    RGB = 0
    BGR = 1
    GRAY = 2
    YCbCr = 3
    ANY_DATA = 4


class DALIInterpType(NamedInt):
    """Interpolation methods."""

    INTERP_NN = 0
    INTERP_LINEAR = 1
    INTERP_CUBIC = 2
    INTERP_LANCZOS3 = 3
    INTERP_TRIANGULAR = 4
    INTERP_GAUSSIAN = 5


class PipelineAPIType(Enum):
    """The styles of running a pipeline: ``run``, an iterator, or ``schedule_run`` and ``outputs``."""

    BASIC = 0
    ITERATOR = 1
    SCHEDULED = 2


class StreamPolicy(Enum):
    """The assignment of device operators to streams."""

    UNSPECIFIED = 0
    SINGLE = 16
    PER_BACKEND = 32
    PER_OPERATOR = 48


class OperatorConcurrency(Enum):
    """The concurrency of the operators of one iteration."""

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
"""The device id that DALI uses internally for a pipeline with ``device_id=None``."""

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
    """Return the NumPy scalar type of a data type; raise KeyError if NumPy has none (as for ``STRING``)."""
    return _NUMPY_OF[dali_type]


def from_torch_dtype(dtype: torch.dtype) -> DALIDataType:
    """Return the data type of a torch dtype; raise TypeError if DALI has none (bfloat16, complex)."""
    try:
        return _DALI_OF_TORCH[dtype]
    except KeyError:
        raise _unknown_type(dtype) from None


def to_torch_dtype(dtype: DALIDataType | torch.dtype | np.dtype[Any] | type) -> torch.dtype:
    """Return the torch dtype of a data type, a torch dtype, or a NumPy dtype or scalar type.

    Raises TypeError for types that torch tensors cannot have.
    """
    if isinstance(dtype, torch.dtype):
        return dtype
    if not isinstance(dtype, DALIDataType):
        dtype = to_dali_type(dtype)
    try:
        return _TORCH_OF[dtype]
    except KeyError:
        raise TypeError(f"{dtype} has no equivalent dtype in torch") from None


def to_dali_type(framework_type: Any) -> DALIDataType:
    """Return the data type of a torch dtype, a NumPy dtype or scalar type, a Python type, or a type's name.

    ``float`` is FLOAT (float32) and ``bool`` is BOOL. Raises TypeError for ``int``, which is ambiguous, and for types
    that DALI does not have.
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
    return TypeError(f"{framework_type!s} isn't a supported dtype of tensors")


class TensorLayout:
    """The names of a tensor's axes, one letter each, for example ``"HWC"``. A layout can be compared with a str."""

    __slots__ = ("_axes",)

    def __init__(self, axes: str, /) -> None:
        if not isinstance(axes, str):
            raise TypeError(f"a layout must be created from a str, got a {type(axes).__name__}")
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
    raise TypeError(f"a layout can only be compared with a layout or a str, got a {type(layout).__name__}")


class SampleInfo:
    """The position of a sample. `external_source` passes this object to callbacks that return single samples.

    Args:
        idx_in_epoch: Index of the sample in the epoch.
        idx_in_batch: Index of the sample in its batch.
        iteration: Index of the batch in the epoch.
        epoch_idx: Index of the epoch.
    """

    def __init__(self, idx_in_epoch: int, idx_in_batch: int, iteration: int, epoch_idx: int) -> None:
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
    """The position of a batch. `external_source` passes this object to callbacks that return whole batches.

    Args:
        iteration: Index of the batch in the epoch.
        epoch_idx: Index of the epoch.
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
        """The handle of the stream, which is an address."""
        return self._ptr
