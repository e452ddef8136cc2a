"""Functions that convert or copy a pipeline's outputs to PyTorch tensors."""

from __future__ import annotations

from typing import Any

import torch

from torchdali.tensors import Tensor, TensorList
from torchdali.types import DALIDataType

__all__ = ["feed_ndarray", "to_torch_tensor", "to_torch_type"]

to_torch_type = {
    DALIDataType.FLOAT: torch.float32,
    DALIDataType.FLOAT64: torch.float64,
    DALIDataType.FLOAT16: torch.float16,
    DALIDataType.UINT8: torch.uint8,
    DALIDataType.INT8: torch.int8,
    DALIDataType.BOOL: torch.bool,
    DALIDataType.INT16: torch.int16,
    DALIDataType.INT32: torch.int32,
    DALIDataType.INT64: torch.int64,
    DALIDataType.UINT16: torch.uint16,
    DALIDataType.UINT32: torch.uint32,
    DALIDataType.UINT64: torch.uint64,
}


def feed_ndarray(
    dali_tensor: Tensor | TensorList,
    arr: torch.Tensor,
    cuda_stream: Any = None,
    non_blocking: bool = False,
) -> torch.Tensor:
    """Copy a pipeline's tensor, or a batch whose samples have the same shape, into a PyTorch tensor.

    Args:
        dali_tensor: The tensor or batch to copy, on any device.
        arr: Destination with the same shape and dtype, on any device, with any strides.
        cuda_stream: CUDA stream of the copy: a ``torch.cuda.Stream``, a stream's handle as an integer, or a ctypes
            object with the handle. Default: PyTorch's current stream. If both tensors are on the CPU, the stream is
            ignored.
        non_blocking: True to return before a copy between pinned and device memory has finished.

    Returns:
        The destination `arr`.

    Raises:
        AssertionError: the shapes or the dtypes differ.
    """
    source = to_torch_tensor(dali_tensor, copy=False)
    if source.dtype != arr.dtype:
        raise AssertionError(
            "The element type of DALI Tensor/TensorList doesn't match the element type of the target PyTorch Tensor: "
            f"{source.dtype} and {arr.dtype}."
        )
    if source.shape != arr.shape:
        raise AssertionError(
            "The shape of DALI Tensor/TensorList doesn't match the shape of the target PyTorch Tensor: "
            f"{list(source.shape)} and {list(arr.shape)}."
        )
    device = next((tensor.device for tensor in (source, arr) if tensor.is_cuda), None)
    if cuda_stream is None or device is None:
        return arr.copy_(source, non_blocking=non_blocking)
    stream = _to_stream(cuda_stream, device)
    stream.wait_stream(torch.cuda.current_stream(device))  # the pipeline's output is ready on the current stream
    with torch.cuda.device(stream.device), torch.cuda.stream(stream):  # the device must be set before the stream
        arr.copy_(source, non_blocking=non_blocking)
    if source.is_cuda:
        source.record_stream(stream)
    return arr


def to_torch_tensor(dali_tensor: Tensor | TensorList, copy: bool) -> torch.Tensor:
    """Return a pipeline's tensor, or a batch whose samples have the same shape, as a PyTorch tensor.

    Args:
        dali_tensor: The tensor or batch.
        copy: True to copy the data; False to return a tensor that shares the pipeline's memory.
    """
    single = dali_tensor.as_tensor() if isinstance(dali_tensor, TensorList) else dali_tensor
    tensor: torch.Tensor = single.torch()
    return tensor.clone() if copy else tensor


def _to_stream(stream: Any, device: torch.device) -> torch.cuda.Stream:
    if isinstance(stream, torch.cuda.Stream):
        return stream
    number = getattr(stream, "value", stream)
    return torch.cuda.ExternalStream(number, device=device)
