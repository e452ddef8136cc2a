"""`LoaderPlan` and `BatchEngine`, the interface of accelerated loaders, and the engine for a `TensorDataset`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, Subset, TensorDataset

from torchdali.dataloader._notes import Notes

__all__ = [
    "BatchEngine",
    "Indices",
    "LoaderPlan",
    "Seeds",
    "TensorEngine",
    "as_integers",
    "find_leaf_datasets",
    "is_plain_tensor_dataset",
]

Indices = Sequence[int]
Seeds = tuple[int, int]
"""Seeds of an epoch: PyTorch's base seed, and the number of earlier epochs of the same persistent workers."""


class BatchEngine(Protocol):
    """Object that creates batches for an accelerated loader.

    The loader requests each batch by `submit` and gets it by `receive`, both in the order of the batches.

    Attributes:
        depth: Number of batches that the loader should request ahead.
        process: Id of the process that created the engine; a forked process doesn't have the engine's threads.
    """

    depth: int
    process: int

    def refresh(self, tree: Any) -> None:
        """Read the samples of the datasets again, because the user may have changed them since the last loop."""
        ...

    def submit(self, batch_index: int, indices: Indices, seeds: Seeds) -> None:
        """Request a batch.

        Args:
            batch_index: Index of the batch.
            indices: Indices of the batch's samples in the dataset.
            seeds: Seeds of the epoch. The seeds and `batch_index` determine the batch's random numbers.
        """
        ...

    def receive(self, batch_index: int) -> list[Any] | Exception:
        """Wait for a batch and return the batch, or return the error that the batch has raised.

        The batch is a list with one element for each value of a sample: a tensor ``(N, ...)``, or a list of N values.

        If `receive` raises an exception, the engine can't be used again.
        """
        ...

    def reset(self) -> None:
        """Drop all requested batches."""
        ...

    def close(self) -> None:
        """Stop the engine's threads."""
        ...


@dataclass(frozen=True)
class LoaderPlan:
    """Decision on whether and how a loader is accelerated.

    Attributes:
        open: Function that creates the engine; None if the loader isn't accelerated.
        notes: Notes on the accelerated parts, and the reasons why other parts aren't accelerated.
        key: Key of the plan. Plans with equal keys may use the same engine.
        tree: The dataset, with its torchvision datasets; None if the engine doesn't decode images.
        is_lazy: True if JPEGs that the dataset opens with Pillow become lazy images; see `_lazy_images`.
    """

    open: Callable[[], BatchEngine] | None
    notes: Notes
    key: Any = None
    tree: Any = field(default=None, compare=False)
    is_lazy: bool = False


def as_integers(indices: Any) -> list[int] | None:
    """Convert indices to a list of integers; None if `indices` is empty or contains anything but integer scalars."""
    try:
        values = list(indices)
    except TypeError:
        return None
    if set(map(type, values)) == {int}:
        return values
    return [int(value) for value in values] if values and all(map(_is_integer, values)) else None


_INTEGERS = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}


def _is_integer(value: Any) -> bool:
    if isinstance(value, Tensor):
        return (
            value.dim() == 0 and not value.is_floating_point() and not value.is_complex() and value.dtype != torch.bool
        )
    return type(value) is int or isinstance(value, np.integer)


def find_leaf_datasets(dataset: Any) -> list[Any]:
    """Return the datasets that nested subsets and concatenations consist of; ``[dataset]`` for other datasets."""
    if type(dataset) is Subset:
        return find_leaf_datasets(dataset.dataset)
    if type(dataset) is ConcatDataset:
        return [leaf for each in dataset.datasets for leaf in find_leaf_datasets(each)]
    return [dataset]


class TensorEngine:
    """Engine for a `TensorDataset` or a subset of it. `receive` creates the batch."""

    depth = 1

    def __init__(self, dataset: Any) -> None:
        self._dataset, self.process = dataset, os.getpid()
        self._requests: dict[int, Indices] = {}

    def refresh(self, tree: Any) -> None:
        """Do nothing, because each batch reads the dataset's current tensors."""

    def submit(self, batch_index: int, indices: Indices, seeds: Seeds) -> None:
        self._requests[batch_index] = indices

    def reset(self) -> None:
        self._requests.clear()

    def close(self) -> None:
        """Do nothing, because this engine has no threads."""

    def receive(self, batch_index: int) -> list[Any]:
        """Return a batch: one tensor with the requested rows for each tensor of the dataset."""
        dataset, rows = self._dataset, self._requests.pop(batch_index)
        while not isinstance(dataset, TensorDataset):
            dataset, rows = dataset.dataset, [dataset.indices[i] for i in rows]
        row_indices = rows if dataset is self._dataset else as_integers(rows)
        if row_indices is None:
            return _stack([dataset[row] for row in rows])
        row_array = np.asarray(row_indices)
        return [_select(tensor, row_array) for tensor in dataset.tensors]


def _stack(samples: Sequence[Any]) -> list[Tensor]:
    return [torch.stack(values) for values in zip(*samples, strict=True)]


def _select(tensor: Tensor, rows: npt.NDArray[np.int64]) -> Tensor:
    if tensor.dtype in _NUMPY_DTYPES and not tensor.is_conj() and not tensor.is_neg():
        # NumPy uses a single thread; waking PyTorch's threads for each batch would take longer.
        return torch.from_numpy(np.asarray(tensor.numpy().take(rows, 0)))
    if tensor.dtype is torch.bfloat16:
        return tensor[torch.from_numpy(rows)]
    return torch.stack([tensor[row] for row in rows.tolist()])


_NUMPY_DTYPES = {
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32,
    torch.float64, torch.complex64, torch.complex128,
}  # fmt: skip


def is_plain_tensor_dataset(dataset: Any) -> bool:
    """Return True for a `TensorDataset` of plain CPU tensors, or for a subset of it."""
    leaf, *rest = find_leaf_datasets(dataset)
    return not rest and type(leaf) is TensorDataset and all(map(_is_plain, leaf.tensors))


def _is_plain(tensor: Tensor) -> bool:
    common = type(tensor) is Tensor and tensor.layout == torch.strided and not tensor.is_quantized
    return common and tensor.is_cpu and not tensor.requires_grad
