"""The dynamic mode: operators called one by one on tensors and batches, without a pipeline.

A `Tensor` is one sample, and a `Batch` is several samples. Calls on batches are recorded, and computed together like a
pipeline when a result is requested; `EvalMode` changes this behavior. Inputs and results share memory with torch
tensors.

    import torchdali.experimental.dynamic as ndd

    reader = ndd.readers.File(file_root=root, random_shuffle=True)
    for jpegs, labels in reader.next_epoch(batch_size=64):
        images = ndd.decoders.image(jpegs)
        images = ndd.random_resized_crop(images, size=[224, 224])
        train(ndd.as_tensor(images).torch(), labels.torch())
"""

from __future__ import annotations

import torchdali.ops  # noqa: F401  declares the operators
from torchdali.experimental.dynamic import capture, checkpoint, math, random
from torchdali.experimental.dynamic._batch import Batch, as_batch, batch
from torchdali.experimental.dynamic._context import EvalContext
from torchdali.experimental.dynamic._device import Device, DeviceLike, device
from torchdali.experimental.dynamic._dtypes import (
    DataType,
    DType,
    ImageType,
    InterpType,
    bfloat16,
    bool,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    type_id,
    uint8,
    uint16,
    uint32,
    uint64,
)  # fmt: skip
from torchdali.experimental.dynamic._external_source import ExternalSource
from torchdali.experimental.dynamic._imread import imread
from torchdali.experimental.dynamic._mode import EvalMode
from torchdali.experimental.dynamic._publish import publish_operators
from torchdali.experimental.dynamic._stream import (
    Stream,
    get_current_stream,
    get_default_stream,
    set_current_stream,
    set_default_stream,
    stream,
)  # fmt: skip
from torchdali.experimental.dynamic._tensor import Tensor, as_tensor, tensor
from torchdali.experimental.dynamic._threads import ThreadPool, get_num_threads, set_num_threads

__all__ = [
    "Batch", "DType", "DataType", "Device", "DeviceLike", "EvalContext", "EvalMode", "ExternalSource", "ImageType",
    "InterpType", "Stream", "Tensor", "ThreadPool", "as_batch", "as_tensor", "batch", "bfloat16", "bool", "capture",
    "checkpoint", "device", "dtype", "float16", "float32", "float64", "get_current_stream", "get_default_stream",
    "get_num_threads", "imread", "int8", "int16", "int32", "int64", "math", "random", "set_current_stream",
    "set_default_stream", "set_num_threads", "stream", "tensor", "type_id", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip

publish_operators(__name__)
