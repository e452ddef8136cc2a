"""Pack the values of a pipeline input for all samples of a batch into one block of shared memory."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image

from torchdali.dali.proxy.blocks import OutgoingBytes
from torchdali.tensors import TensorList

__all__ = ["PackedColumn", "as_input"]


class PackedColumn:
    """The values of one pipeline input for all samples of a batch.

    Args:
        samples: One array or CPU tensor per sample.
        name: Name of the input, for error messages.
        origins: Description of each sample, for error messages; None if it is unknown.

    Raises:
        TypeError: the samples differ in dtype or number of axes.
    """

    def __init__(self, samples: Sequence[Any], name: str, origins: Sequence[str | None]) -> None:
        first = samples[0]
        for sample, origin in zip(samples, origins, strict=True):
            if sample.dtype != first.dtype or sample.ndim != first.ndim:
                raise TypeError(
                    f"input {name!r} must have one dtype and one number of axes in a batch, got {first.dtype} with "
                    f"{first.ndim} axes in one sample and {sample.dtype} with {sample.ndim} axes in another "
                    f"({origin or 'of unknown origin'})"
                )
        self._samples: Sequence[Any] | None = samples
        self._shapes = [tuple(sample.shape) for sample in samples]
        tensors = isinstance(first, torch.Tensor)
        self._dtype = first.dtype if tensors else torch_dtype(first.dtype)
        self._packed: Any = None  # an `OutgoingBytes` in the sender, a tensor in the receiver

    def share(self) -> None:
        """Copy all samples into one block of shared memory, so that sending the object copies no data."""
        assert self._samples is not None
        count = sum(map(math.prod, self._shapes))
        self._packed = OutgoingBytes(count * self._dtype.itemsize)
        flat = torch.from_numpy(self._packed.bytes).view(self._dtype)
        if count and isinstance(self._samples[0], torch.Tensor):
            torch.cat([sample.reshape(-1) for sample in self._samples], out=flat)
        elif count:
            np.concatenate([s.reshape(-1) for s in self._samples], out=flat.numpy())
        _buffers.extend(s.base for s in self._samples if isinstance(s, _FileBytes))
        self._samples = None

    def batch(self, origins: Sequence[str | None]) -> TensorList:
        """Return the samples as a batch. If `share` was called, the batch uses the block without a copy.

        Args:
            origins: Description of each sample, which becomes the sample's source info.
        """
        infos = [origin or "" for origin in origins] if any(origins) else None
        uniform = len(set(self._shapes)) == 1
        if self._samples is not None:
            tensors = [_as_tensor(sample) for sample in self._samples]
            if uniform:
                return TensorList.from_dense(torch.stack(tensors), source_info=infos)
            return TensorList.from_samples(tensors, source_info=infos)
        flat = self._packed.view(self._dtype)
        if uniform:
            whole = flat.view(len(self._shapes), *self._shapes[0])
            return TensorList.from_dense(whole, source_info=infos)
        sizes = [math.prod(shape) for shape in self._shapes]
        parts = torch.split(flat, sizes)
        samples = [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]
        return TensorList.from_samples(samples, source_info=infos)


def _as_tensor(sample: Any) -> torch.Tensor:
    if isinstance(sample, torch.Tensor):
        return sample
    array = np.asarray(sample)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


@functools.lru_cache(maxsize=64)
def torch_dtype(dtype: np.dtype[Any]) -> torch.dtype:
    """Convert a NumPy dtype to a PyTorch dtype.

    Raises:
        TypeError: PyTorch doesn't have the dtype.
    """
    return torch.from_numpy(np.empty(0, dtype)).dtype


def as_input(value: Any, name: str) -> Any:
    """Convert an input of a proxy to an array or a tensor.

    Args:
        value: An array, a CPU tensor, a PIL image, bytes, or the path of a file whose bytes are the input.
        name: Name of the input, for error messages.

    Raises:
        TypeError: the value's type isn't supported, or a tensor isn't on the CPU.
        OSError: the file can't be read.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value) if value.ndim else np.asarray(value)
    elif isinstance(value, torch.Tensor):
        return _check_cpu_tensor(value, name)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        array = np.frombuffer(value, np.uint8)
    elif isinstance(value, (str, os.PathLike)):
        return _read_file(value)
    elif isinstance(value, Image.Image) or hasattr(value, "__array__"):
        array = np.ascontiguousarray(value)
    else:
        raise TypeError(
            f"input {name!r} of the proxy must be a NumPy array, a torch tensor, a PIL image, bytes or the path of a "
            f"file, got a {type(value).__name__}; for a number x, pass np.float32(x)"
        )
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    try:
        torch_dtype(array.dtype)
    except TypeError:
        raise TypeError(f"input {name!r} of the proxy has an unsupported dtype, {array.dtype}") from None
    return array


class _FileBytes(np.ndarray[Any, np.dtype[np.uint8]]):
    """Bytes of a file in a buffer of this module. The buffer is reused after the bytes were packed."""


_buffers: list[Any] = []  # reused, because allocating new memory takes as long as reading a file into it


def _read_file(path: str | os.PathLike[str]) -> Any:
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            buffer = _buffers.pop()
        except IndexError:
            buffer = _EMPTY_BUFFER
        if len(buffer) < size:
            buffer = np.empty(size + size // 4, np.uint8).view(_FileBytes)
        if file.readinto(buffer[:size]) == size:
            return buffer[:size]
    return np.fromfile(path, np.uint8)  # the path isn't a plain file


_EMPTY_BUFFER = np.empty(0, np.uint8).view(_FileBytes)


def _check_cpu_tensor(value: torch.Tensor, name: str) -> torch.Tensor:
    if type(value) is not torch.Tensor:
        value = value.as_subclass(torch.Tensor)
    if value.device.type != "cpu":
        raise TypeError(f"input {name!r} of the proxy must be on the CPU, got a tensor on {value.device}; pass .cpu()")
    return value.detach().contiguous()
