"""Share the memory of other libraries' objects, copy to memory addresses, and use CUDA streams."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.dlpack import from_dlpack

from torchdali.tensors.dtypes import from_torch_dtype, to_dali_type

Array = np.ndarray[Any, Any]


def as_torch(object: Any, device: str) -> torch.Tensor:
    """Return a torch tensor that shares the memory of an object.

    Args:
        object: Data on the device; see `TensorCPU` and `TensorGPU`.
        device: ``"cpu"`` or ``"gpu"``.

    Raises TypeError (cpu) or RuntimeError (gpu) for an object that isn't data on this device, and RuntimeError for
    strided data and for dtypes that DALI does not have.
    """
    tensor = _share(object, device)
    if tensor is None or (tensor.device.type == "cpu") != (device == "cpu"):
        message = f"a {type(object).__name__} isn't data on the {device}"
        raise TypeError(message) if device == "cpu" else RuntimeError(message)
    if not tensor.is_contiguous():
        raise RuntimeError(f"the data must be contiguous, got strides {tensor.stride()}. Pass a copy by contiguous()")
    try:
        from_torch_dtype(tensor.dtype)
    except TypeError as reason:
        raise RuntimeError(str(reason)) from None
    return tensor


def _share(object: Any, device: str) -> torch.Tensor | None:
    if isinstance(object, torch.Tensor):
        return object.detach()
    if type(object).__name__ == "PyCapsule":
        return from_dlpack(object)
    if device == "gpu" and hasattr(object, "__cuda_array_interface__"):
        return torch.as_tensor(object, device=_device_of(object))
    array = _buffer(object) if device == "cpu" else None
    if array is not None:
        return _from_numpy(array)
    return from_dlpack(object) if hasattr(object, "__dlpack__") else None


def _device_of(object: Any) -> torch.device:
    """Return the GPU of an object's data. If the object does not specify a GPU, return the current GPU."""
    device = getattr(object, "device", None)
    if isinstance(device, torch.device):
        return device
    if hasattr(object, "__dlpack_device__"):
        return torch.device("cuda", object.__dlpack_device__()[1])
    return torch.device("cuda")


def _buffer(object: Any) -> Array | None:
    if isinstance(object, np.ndarray) or hasattr(object, "__array_interface__"):
        return np.asarray(object)
    try:
        return np.asarray(memoryview(object))
    except TypeError:
        return None


def _from_numpy(array: Array) -> torch.Tensor:
    if not array.flags.c_contiguous:
        raise RuntimeError(f"the data must be contiguous, got strides of {array.strides} bytes")
    try:
        to_dali_type(array.dtype)
    except TypeError as reason:
        raise RuntimeError(str(reason)) from None
    if array.dtype.char in "qQ":  # `long long`, which PyTorch doesn't accept although it has 64 bits like `long`
        array = array.view(array.dtype.str)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _address(ptr: int | ctypes.c_void_p) -> int:
    address = ptr.value or 0 if isinstance(ptr, ctypes.c_void_p) else ptr
    if not isinstance(address, int):
        raise TypeError(f"an address must be an int or a c_void_p, got a {type(ptr).__name__}")
    if address == 0:
        raise ValueError("the address must not be null")
    return address


def copy_to_memory(tensor: torch.Tensor, ptr: int | ctypes.c_void_p) -> None:
    """Copy a tensor's elements in row-major order, without gaps, to an address in main memory."""
    dense = tensor.contiguous()
    ctypes.memmove(_address(ptr), dense.data_ptr(), dense.nbytes)


class _DeviceMemory:
    """Raw memory of a CUDA device, described by ``__cuda_array_interface__``."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3,
        }  # fmt: skip


def copy_to_device(tensor: torch.Tensor, ptr: int | ctypes.c_void_p, cuda_stream: Any, non_blocking: bool) -> None:
    """Copy a tensor's elements in row-major order, without gaps, to an address on the tensor's device.

    `cuda_stream`, on which the copy runs, first waits for the current stream, on which the tensor was computed. The
    tensor's memory isn't reused before the copy has finished.
    """
    if tensor.device.type == "cpu":  # "device" data of a pipeline with device_id="cpu"
        return copy_to_memory(tensor, ptr)
    source = tensor.contiguous().view(-1).view(torch.uint8)
    target = torch.as_tensor(_DeviceMemory(_address(ptr), source.numel()), device=source.device)
    source_stream = torch.cuda.current_stream(source.device)
    stream = source_stream if cuda_stream is None else to_torch_stream(cuda_stream, source.device)
    stream.wait_stream(source_stream)
    with on_stream(stream):
        target.copy_(source, non_blocking=True)
    source.record_stream(stream)
    if not non_blocking:
        stream.synchronize()


@contextlib.contextmanager
def on_stream(stream: Any) -> Iterator[None]:
    """Make a torch stream and its device current in this thread in a `with` block.

    `torch.cuda.stream` alone isn't enough: at the end of its block, it makes the previous device current again. If that
    device wasn't used before, CUDA then creates a context on that device, which takes half a gigabyte.
    """
    with torch.cuda.device(stream.device), torch.cuda.stream(stream):
        yield


def to_torch_stream(stream: Any, device: torch.device) -> torch.cuda.Stream:
    """Convert a stream to a torch stream.

    Args:
        stream: A torch stream, the handle of a CUDA stream, or an object with the handle as attribute ``ptr``.
        device: Device of the stream.

    Raises:
        TypeError: The object isn't a stream.
    """
    if isinstance(stream, torch.cuda.Stream):
        return stream
    handle = stream if isinstance(stream, int) else getattr(stream, "ptr", None)
    if handle is None:
        raise TypeError(f"a stream must be a torch stream or its handle, got a {type(stream).__name__}")
    if handle == 0:
        return torch.cuda.default_stream(device)
    return torch.cuda.ExternalStream(handle, device=device)


def wait_for(stream: Any, device: torch.device) -> None:
    """Make a CUDA device's current stream wait for all work that was already submitted to another stream."""
    if stream is not None and device.type == "cuda":
        torch.cuda.current_stream(device).wait_stream(to_torch_stream(stream, device))


def current_stream(device: torch.device) -> int | None:
    """Return the handle of a CUDA device's current stream; None for other devices."""
    return torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else None
