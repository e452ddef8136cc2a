"""Copy batches that share memory, so that a write to one batch doesn't change another batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from torchdali.tensors._batch import TensorList

__all__ = ["separate"]


def separate(batches: Sequence[TensorList], others: Iterable[TensorList] = ()) -> list[TensorList]:
    """Copy each batch that shares memory with an earlier batch or with a batch of `others`; return all batches."""
    owned = [(0, batch) for batch in others] + list(enumerate(batches, 1))
    extents = sorted((*_extent(tensor), i) for i, batch in owned for tensor in _tensors(batch) if tensor.numel())
    shared: set[int] = set()
    owners, end = {0}, 0  # indices of the overlapping batches so far, and the end of their memory
    for low, high, i in extents:
        owners, end = {i} if low >= end else owners | {i}, max(end, high)
        shared |= owners - {min(owners)}
    return [_copy_batch(batch) if i in shared else batch for i, batch in enumerate(batches, 1)]


def _tensors(batch: TensorList) -> list[torch.Tensor]:
    dense = batch.dense()
    return batch.samples() if dense is None else [dense]


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    low = tensor.data_ptr()
    last = sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return low, low + (last + 1) * tensor.itemsize


def _copy_batch(batch: TensorList) -> TensorList:
    dense, infos = batch.dense(), batch.source_infos
    if dense is not None:
        return TensorList.from_dense(dense.clone(), batch.layout(), infos)
    samples = [sample.clone() for sample in batch.samples()]
    return TensorList.from_samples(samples, batch.layout(), source_info=infos)
