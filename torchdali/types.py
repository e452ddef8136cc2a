"""The types of the API: DALI's enumerations, dtypes and constants, under DALI's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchdali.errors import did_you_mean
from torchdali.graph.constants import Constant, ConstantNode, ScalarConstant
from torchdali.tensors.dtypes import (
    ANY_DATA,
    BGR,
    BOOL,
    CPU_ONLY_DEVICE_ID,
    DATA_TYPE,
    FEATURE,
    FLOAT,
    FLOAT16,
    FLOAT64,
    GRAY,
    IMAGE_TYPE,
    INT8,
    INT16,
    INT32,
    INT64,
    INTERP_CUBIC,
    INTERP_GAUSSIAN,
    INTERP_LANCZOS3,
    INTERP_LINEAR,
    INTERP_NN,
    INTERP_TRIANGULAR,
    INTERP_TYPE,
    NCHW,
    NFCHW,
    NFHWC,
    NHWC,
    NO_TYPE,
    PYTHON_OBJECT,
    RGB,
    SAME,
    STRING,
    TENSOR_LAYOUT,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    BatchInfo,
    CUDAStream,
    DALIDataType,
    DALIImageType,
    DALIInterpType,
    OperatorConcurrency,
    PipelineAPIType,
    SampleInfo,
    StreamPolicy,
    TensorLayout,
    YCbCr,
    from_torch_dtype,
    to_dali_type,
    to_numpy_type,
    to_torch_dtype,
)  # fmt: skip

__all__ = [
    "ANY_DATA", "BGR", "BOOL", "CPU_ONLY_DEVICE_ID", "DATA_TYPE", "FEATURE", "FLOAT", "FLOAT16", "FLOAT64", "GRAY",
    "IMAGE_TYPE", "INT8", "INT16", "INT32", "INT64", "INTERP_CUBIC", "INTERP_GAUSSIAN", "INTERP_LANCZOS3",
    "INTERP_LINEAR", "INTERP_NN", "INTERP_TRIANGULAR", "INTERP_TYPE", "NCHW", "NFCHW", "NFHWC", "NHWC", "NO_TYPE",
    "PYTHON_OBJECT", "RGB", "SAME", "STRING", "TENSOR_LAYOUT", "UINT8", "UINT16", "UINT32", "UINT64", "BatchInfo",
    "CUDAStream", "Constant", "ConstantNode", "DALIDataType", "DALIImageType", "DALIInterpType", "OperatorConcurrency",
    "PipelineAPIType", "SampleInfo", "ScalarConstant", "StreamPolicy", "TensorLayout", "YCbCr", "from_torch_dtype",
    "to_dali_type", "to_numpy_type", "to_torch_dtype",
]  # fmt: skip


if not TYPE_CHECKING:  # with `__getattr__`, type checkers would accept any name

    def __getattr__(name: str) -> Any:
        hint = did_you_mean(name, __all__, 3)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}", name=name)
