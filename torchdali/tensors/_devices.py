"""The two kinds of batches: `TensorListCPU` and `TensorListGPU`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import torch

from torchdali.tensors._batch import CLASSES, TensorList, sample_index
from torchdali.tensors._foreign import copy_to_device, copy_to_memory, current_stream, wait_for
from torchdali.tensors._single import TensorCPU, TensorGPU


class TensorListCPU(TensorList):
    """A batch of samples in main memory.

    Args:
        object: A `TensorListCPU` or an array-like object as for `TensorCPU`, whose first dimension
            is the batch, either shared; or a list of tensors.
        layout: Names of the axes of a sample, one letter each.
        contiguous: Whether samples of a list are copied into one piece of memory or shared.
        is_pinned: Accepted for compatibility; torch knows whether memory is pinned.

    Raises TypeError for other objects and for samples of different types, numbers of axes or
    layouts, RuntimeError for strided data, ValueError for a layout of a wrong length.
    """

    __slots__ = ()
    _kind = TensorCPU

    def __init__(
        self,
        object: Any,
        layout: str | None = None,
        contiguous: bool = True,
        *,
        is_pinned: bool = False,
    ) -> None:
        super().__init__(object, layout, contiguous)

    def at(self, i: int, /) -> np.ndarray[Any, Any]:
        """Return a copy of sample `i`, counted from 0; RuntimeError if there is none."""
        samples = self.samples()
        if not 0 <= sample_index(i) < len(samples):
            raise RuntimeError(f"sample index {i} is out of range for a batch of {len(samples)}")
        return samples[i].numpy().copy()

    def as_array(self) -> np.ndarray[Any, Any]:
        """Return a copy ``(batch, ...)``; RuntimeError if the shapes of the samples differ."""
        return self.stacked().numpy().copy()

    def as_cpu(self) -> TensorListCPU:
        """Return the batch itself."""
        return self

    def copy_to_external(self, ptr: int | ctypes.c_void_p, /) -> None:
        """Copy all elements, densely sample by sample, to an address in main memory."""
        copy_to_memory(self._pack(), ptr)

    @staticmethod
    def broadcast(sample: Any, num_samples: int, /) -> TensorListCPU:
        """Return a batch of one sample repeated `num_samples` times, sharing its memory."""
        return _broadcast(TensorListCPU, sample, num_samples)

    @staticmethod
    def from_dlpack_list(
        list_of_objects: Sequence[Any], layout: str | None = None, contiguous: bool = False
    ) -> TensorListCPU:
        """Return a batch of objects with ``__dlpack__``, sharing their memory unless contiguous."""
        return TensorListCPU(_exporting(list_of_objects), layout, contiguous)


class TensorListGPU(TensorList):
    """A batch of samples in the memory of an accelerator.

    Args:
        object: A `TensorListGPU` or an object as for `TensorGPU`, whose first dimension is the
            batch, either shared; or a list of tensors. Without it, the batch is empty.
        layout: Names of the axes of a sample, one letter each.
        contiguous: Whether samples of a list are copied into one piece of memory or shared.
        stream: A stream (torch's, or a raw handle) that may still be writing the data.
        device_id: Accepted for compatibility; the object knows its device.

    Raises RuntimeError for an object that is not on an accelerator and for strided data.
    """

    __slots__ = ()
    _kind = TensorGPU
    _home = torch.device("cuda")

    def __init__(
        self,
        object: Any = None,
        layout: str | None = None,
        contiguous: bool = True,
        *,
        stream: Any = None,
        device_id: int = -1,
    ) -> None:
        super().__init__([] if object is None else object, layout, contiguous)
        wait_for(stream, self.device)

    @property
    def stream(self) -> int | None:
        """Handle of the stream that the data are ordered on: the current one; None without CUDA."""
        return current_stream(self.device)

    def device_id(self) -> int:
        """Return the index of the device."""
        return self.device.index or 0

    def at(self, i: int, /) -> TensorGPU:
        """Return sample `i`, counted from 0, sharing memory; RuntimeError if there is none."""
        if not 0 <= sample_index(i) < len(self):
            raise RuntimeError(f"sample index {i} is out of range for a batch of {len(self)}")
        sample: TensorGPU = self[i]
        return sample

    def as_cpu(self) -> TensorListCPU:
        """Return a copy in main memory, made in one transfer."""
        stored = self._stored.on_cpu()
        return TensorListCPU._of(stored, True, self._layout, self._source_info)

    def copy_to_external(
        self,
        ptr: int | ctypes.c_void_p,
        cuda_stream: Any = None,
        non_blocking: bool = False,
        use_copy_kernel: bool = False,
    ) -> None:
        """Copy all elements, densely sample by sample, to an address on the same device.

        Args:
            ptr: The address.
            cuda_stream: Stream to copy on; the current one when None.
            non_blocking: Return before the copy has finished.
            use_copy_kernel: Accepted for compatibility.
        """
        copy_to_device(self._pack(), ptr, cuda_stream, non_blocking)

    @staticmethod
    def broadcast(sample: Any, num_samples: int, /) -> TensorListGPU:
        """Return a batch of one sample repeated `num_samples` times, sharing its memory."""
        return _broadcast(TensorListGPU, sample, num_samples)

    @staticmethod
    def from_dlpack_list(
        list_of_objects: Sequence[Any],
        layout: str | None = None,
        stream: Any = None,
        contiguous: bool = False,
    ) -> TensorListGPU:
        """Return a batch of objects with ``__dlpack__``, sharing their memory unless contiguous."""
        return TensorListGPU(_exporting(list_of_objects), layout, contiguous, stream=stream)


CLASSES.update({True: TensorListCPU, False: TensorListGPU})

_L = TypeVar("_L", TensorListCPU, TensorListGPU)


def _broadcast(kind: type[_L], sample: Any, num_samples: int) -> _L:
    if num_samples < 0:
        raise ValueError(f"a batch cannot have {num_samples} samples")
    one = kind([sample], contiguous=False)
    infos = list(one.source_infos or ()) * num_samples
    samples = one.samples() * num_samples
    return kind.from_samples(samples, one.layout(), one.torch_dtype, one.ndim(), infos or None)


def _exporting(objects: Sequence[Any]) -> list[Any]:
    for i, each in enumerate(objects):
        if not hasattr(each, "__dlpack__"):
            raise TypeError(f"sample {i}, a {type(each).__name__}, has no __dlpack__")
    return list(objects)
