"""Rows of tensors: data sets whose samples are rows, and the engine that makes batches of them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, Subset, TensorDataset

__all__ = ["Engine", "Indices", "Rows", "bases_of", "is_rows"]

Indices = Sequence[int]


class Engine(Protocol):
    """Makes batches, in the order in which they are asked for.

    Attributes:
        depth: Batches to ask for ahead.
        process: In which it was made: another one has not its threads.
    """

    depth: int
    process: int

    def renew(self, leaves: Any) -> None:
        """Take the data sets as they are now."""
        ...

    def submit(self, indices: Indices, key: int) -> None:
        """Ask for a batch, whose random numbers follow from a key."""
        ...

    def take(self) -> list[Any]:
        """Return the values of the oldest batch: of each a tensor ``(N, ...)``, or a list with an item a sample."""
        ...

    def reset(self) -> None:
        """Forget what was asked for."""
        ...

    def close(self) -> None:
        """End the threads."""
        ...


def bases_of(dataset: Any) -> list[Any]:
    """Return the data sets that a data set is made of."""
    if type(dataset) is Subset:
        return bases_of(dataset.dataset)
    if type(dataset) is ConcatDataset:
        return [base for each in dataset.datasets for base in bases_of(each)]
    return [dataset]


class Rows:
    """Rows of the tensors of a `TensorDataset`, or of a part of one; a batch is made when it is taken."""

    depth = 1

    def __init__(self, dataset: Any) -> None:
        self._dataset, self.process = dataset, os.getpid()
        self._requests: deque[Indices] = deque()

    def renew(self, leaves: Any) -> None:
        """Do nothing: the tensors are asked for with each batch."""

    def submit(self, indices: Indices, key: int) -> None:
        """Note a batch."""
        self._requests.append(indices)

    def reset(self) -> None:
        """Forget what was asked for."""
        self._requests.clear()

    def close(self) -> None:
        """Do nothing: there are no threads."""

    def take(self) -> list[Any]:
        """Return the rows of each tensor."""
        dataset, rows = self._dataset, list(self._requests.popleft())
        while not isinstance(dataset, TensorDataset):
            dataset, rows = dataset.dataset, [dataset.indices[i] for i in rows]
        return [_rows(tensor, np.asarray(rows)) for tensor in dataset.tensors]


def _rows(tensor: Tensor, rows: Any) -> Tensor:
    if tensor.dtype in _NOT_OF_NUMPY:
        return tensor[torch.from_numpy(rows)]
    # By one thread: those of torch would have to be woken for each batch.
    return torch.from_numpy(np.asarray(tensor.numpy().take(rows, 0)))


_NOT_OF_NUMPY = {torch.bfloat16, torch.complex32, torch.float8_e4m3fn, torch.float8_e5m2}


def is_rows(dataset: Any) -> bool:
    """Return True for a data set whose samples are rows of plain tensors."""
    base, *others = bases_of(dataset)
    return not others and type(base) is TensorDataset and all(map(_is_plain, base.tensors))


def _is_plain(tensor: Tensor) -> bool:
    usual = type(tensor) is Tensor and tensor.layout == torch.strided and not tensor.is_quantized
    return usual and tensor.is_cpu and not tensor.requires_grad
