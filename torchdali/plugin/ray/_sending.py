"""Batches on their way from an actor to the trainer."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch

from torchdali.tensors import TensorList, TensorListCPU, TensorListGPU
from torchdali.tensors.buffer_pool import BufferPool

__all__ = ["Sent", "portable", "received", "sent", "size_of"]

Sent = tuple[Any, str]  # an array or a list of arrays or tensors, and the layout


def sent(batch: TensorList) -> Sent:
    """Return a batch as arrays, which Ray keeps in shared memory and does not copy to read."""
    batch = cast("TensorListCPU | TensorListGPU", batch).as_cpu()
    whole = batch.dense()
    if whole is None and batch.is_dense_tensor():
        whole = batch.stacked()
    samples = _array(whole) if whole is not None else [_array(each) for each in batch.samples()]
    return samples, batch.layout()


def _array(tensor: torch.Tensor) -> Any:
    return tensor if tensor.dtype is torch.bfloat16 else tensor.numpy()  # numpy has no such type


def received(sent: Sent, buffers: BufferPool) -> TensorList:
    """Return a batch that is the caller's, in memory of a pool: Ray's memory must not be written to."""
    samples, layout = sent
    if isinstance(samples, list):
        return TensorListCPU([_own(each, buffers) for each in samples], layout or None)
    return TensorListCPU(_own(samples, buffers), layout or None)


def _own(array: Any, buffers: BufferPool) -> torch.Tensor:
    if isinstance(array, torch.Tensor):
        return array
    found = buffers.empty(array.shape, _dtype(array.dtype))
    found.numpy()[...] = array
    return found


@functools.cache
def _dtype(dtype: np.dtype[Any]) -> torch.dtype:
    return torch.from_numpy(np.empty(0, dtype)).dtype


def size_of(outputs: Sequence[Sent]) -> int:
    """Return the bytes of a batch."""
    parts = [
        each for samples, _ in outputs for each in (samples if isinstance(samples, list) else [samples])
    ]  # fmt: skip
    return sum(int(part.nbytes) for part in parts)


def portable(error: Exception) -> Exception:
    """Return an error that can be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
