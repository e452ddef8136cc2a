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

__all__ = ["BatchEngine", "Indices", "LoaderPlan", "Seeds", "TensorRows", "bases_of", "integers", "is_rows"]

Indices = Sequence[int]
Seeds = tuple[int, int]
"""Seeds of an epoch: PyTorch's base seed, and the number of earlier epochs of the same persistent workers."""


class BatchEngine(Protocol):
    """Object that creates batches for an accelerated loader.

    The loader requests each batch by `submit` and gets it by `take`, both in the order of the batches' numbers.

    Attributes:
        depth: Number of batches that the loader should request ahead.
        process: Id of the process that created the engine; a forked process doesn't have the engine's threads.
    """

    depth: int
    process: int

    def renew(self, leaves: Any) -> None:
        """Read the samples of the datasets again, because the user may have changed them since the last loop."""
        ...

    def submit(self, number: int, indices: Indices, seeds: Seeds) -> None:
        """Request a batch.

        Args:
            number: Index of the batch.
            indices: Indices of the batch's samples in the dataset.
            seeds: Seeds of the epoch. The seeds and `number` determine the batch's random numbers.
        """
        ...

    def take(self, number: int) -> list[Any] | Exception:
        """Wait for a batch and return the batch, or return the error that the batch has raised.

        The batch is a list with one element for each value of a sample: a tensor ``(N, ...)``, or a list of N values.

        If `take` raises an exception, the engine can't be used again.
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
        leaves: The torchvision datasets that contain the images; None if the engine doesn't decode images.
        is_lazy: True if JPEGs that the dataset opens with Pillow become lazy images; see `_lazy_images`.
    """

    open: Callable[[], BatchEngine] | None
    notes: Notes
    key: Any = None
    leaves: Any = field(default=None, compare=False)
    is_lazy: bool = False


def integers(indices: Any) -> list[int] | None:
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


def bases_of(dataset: Any) -> list[Any]:
    """Return the datasets that nested subsets and concatenations consist of; ``[dataset]`` for other datasets."""
    if type(dataset) is Subset:
        return bases_of(dataset.dataset)
    if type(dataset) is ConcatDataset:
        return [base for each in dataset.datasets for base in bases_of(each)]
    return [dataset]


class TensorRows:
    """Engine for a `TensorDataset` or a subset of it. `take` creates the batch."""

    depth = 1

    def __init__(self, dataset: Any) -> None:
        self._dataset, self.process = dataset, os.getpid()
        self._requests: dict[int, Indices] = {}

    def renew(self, leaves: Any) -> None:
        """Do nothing, because each batch reads the dataset's current tensors."""

    def submit(self, number: int, indices: Indices, seeds: Seeds) -> None:
        self._requests[number] = indices

    def reset(self) -> None:
        self._requests.clear()

    def close(self) -> None:
        """Do nothing, because this engine has no threads."""

    def take(self, number: int) -> list[Any]:
        """Return a batch: one tensor with the requested rows for each tensor of the dataset."""
        dataset, rows = self._dataset, self._requests.pop(number)
        while not isinstance(dataset, TensorDataset):
            dataset, rows = dataset.dataset, [dataset.indices[i] for i in rows]
        numbers = rows if dataset is self._dataset else integers(rows)
        if numbers is None:
            return _stack([dataset[row] for row in rows])
        where = np.asarray(numbers)
        return [_select(tensor, where) for tensor in dataset.tensors]


def _stack(samples: Sequence[Any]) -> list[Tensor]:
    return [torch.stack(values) for values in zip(*samples, strict=True)]


def _select(tensor: Tensor, rows: npt.NDArray[np.int64]) -> Tensor:
    if tensor.dtype in _OF_NUMPY and not tensor.is_conj() and not tensor.is_neg():
        # NumPy uses a single thread; waking PyTorch's threads for each batch would take longer.
        return torch.from_numpy(np.asarray(tensor.numpy().take(rows, 0)))
    if tensor.dtype is torch.bfloat16:
        return tensor[torch.from_numpy(rows)]
    return torch.stack([tensor[row] for row in rows.tolist()])


_OF_NUMPY = {
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32,
    torch.float64, torch.complex64, torch.complex128,
}  # fmt: skip


def is_rows(dataset: Any) -> bool:
    """Return True for a `TensorDataset` of plain CPU tensors, or for a subset of it."""
    base, *others = bases_of(dataset)
    return not others and type(base) is TensorDataset and all(map(_is_plain, base.tensors))


def _is_plain(tensor: Tensor) -> bool:
    common = type(tensor) is Tensor and tensor.layout == torch.strided and not tensor.is_quantized
    return common and tensor.is_cpu and not tensor.requires_grad
