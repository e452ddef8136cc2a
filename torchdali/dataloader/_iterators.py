"""Iterators over the batches of a loader: torch's own, and the one of accelerated loaders."""

from __future__ import annotations

import contextlib
import copy
import time
from collections import deque
from typing import Any

import torch
from torch.utils.data._utils import pin_memory
from torch.utils.data._utils.collate import default_collate
from torch.utils.data.dataloader import (
    _BaseDataLoaderIter,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)

from torchdali.dataloader._lazy_opening import FetchLazily, InitWorker
from torchdali.dataloader._plans import Plan
from torchdali.dataloader._rows import Engine
from torchdali.dataloader._states import Progress
from torchdali.rng import mix

__all__ = ["AcceleratedIterator", "SingleProcessIterator", "WorkerIterator"]


class Counting(_BaseDataLoaderIter):
    """An iterator that counts its batches, and the time that a loop waits for them."""

    progress: Progress

    def __next__(self) -> Any:
        started = time.perf_counter()
        progress = self.progress
        try:
            data = super().__next__()
        except StopIteration:
            progress.finished = True
            raise
        progress.ended = time.perf_counter()
        progress.waited += progress.ended - started
        progress.batches += 1
        return data


class SingleProcessIterator(Counting, _SingleProcessDataLoaderIter):
    """torch's own, which counts.

    Args:
        is_lazy: JPEGs that the dataset opens are lazy images.
    """

    def __init__(self, loader: Any, is_lazy: bool) -> None:
        super().__init__(loader)
        if is_lazy:
            self._dataset_fetcher: Any = FetchLazily(self._dataset_fetcher)
        self._profile_name = f"enumerate(DataLoader)#{_SingleProcessDataLoaderIter.__name__}.__next__"


class WorkerIterator(Counting, _MultiProcessingDataLoaderIter):
    """torch's own, which counts.

    Args:
        is_lazy: JPEGs that the dataset opens are lazy images.
    """

    def __init__(self, loader: Any, is_lazy: bool) -> None:
        if is_lazy:
            loader = copy.copy(loader)
            vars(loader)["worker_init_fn"] = InitWorker(loader.worker_init_fn)
        super().__init__(loader)
        self._profile_name = f"enumerate(DataLoader)#{_MultiProcessingDataLoaderIter.__name__}.__next__"


class AcceleratedIterator(Counting):
    """Takes indices from torch's sampler, and the samples from an engine.

    Args:
        loader: Its arguments mean what they mean for torch's iterators.
        plan: What makes the samples.
        engine: That of the plan, which is this iterator's alone until it ends.
        progress: Where it begins.
    """

    def __init__(self, loader: Any, plan: Plan, engine: Engine) -> None:
        self._engine: Engine | None = engine
        super().__init__(loader)
        self._loader, self._plan = loader, plan
        self._requests: deque[list[int]] = deque()
        self._number = 0

    def begin(self, progress: Progress) -> None:
        """Begin at a place; with workers torch's iterators draw from the sampler now, and not with the first batch."""
        self.progress, self._number = progress, progress.batches
        if self._num_workers:
            self._ask_ahead()

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        loader._give_back(self)
        self._engine = loader._engine(self._plan)
        self._requests.clear()

    def _ask_ahead(self) -> None:
        """Ask for as many batches as the engine makes ahead."""
        assert self._engine is not None
        with contextlib.suppress(StopIteration):
            while len(self._requests) < self._engine.depth:
                self._ask()

    def _ask(self) -> None:
        """Ask for a batch, if the sampler has more."""
        assert self._engine is not None
        indices = [int(index) for index in next(self._sampler_iter)]
        self._engine.submit(indices, mix(int(self._base_seed), self.progress.epoch, self._number))
        self._requests.append(indices)
        self._number += 1

    def _next_data(self) -> Any:
        if self._engine is None:
            raise StopIteration
        self._ask_ahead()
        if not self._requests:
            self._loader._give_back(self)
            raise StopIteration
        indices = self._requests.popleft()
        data = self._collated(indices, self._engine.take())
        if self._pin_memory:
            data = pin_memory.pin_memory(data, self._pin_memory_device)
        return data

    def _collated(self, indices: list[int], values: list[Any]) -> Any:
        leaves = self._plan.leaves
        if leaves is None:
            return values  # all that the samples have
        (pictures,) = values
        targets = [leaves.target(index) for index in indices]
        if isinstance(pictures, torch.Tensor):
            return [pictures, default_collate(targets)]
        return default_collate(list(zip(pictures, targets, strict=True)))  # of several sizes: torch's error

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the program may be at its end
            self._loader._give_back(self)
