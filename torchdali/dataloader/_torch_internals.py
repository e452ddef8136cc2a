"""Subclasses of PyTorch's iterators. Only this module uses private names of PyTorch's loader (2.6 to 2.14).

Functions are imported from `torch.utils.data._utils`. The subclasses of PyTorch's iterators override
`_next_data`, `_next_index`, `_process_data`, `_reset` and `_shutdown_workers`, and use the attributes
`_auto_collation`, `_base_seed`, `_collate_fn`, `_dataset`, `_dataset_fetcher`, `_dataset_kind`, `_drop_last`,
`_in_order` (if it exists), `_index_sampler`, `_num_workers`, `_pin_memory`, `_pin_memory_device`, `_profile_name`,
`_rcvd_idx` and `_sampler_iter`. As an exception, the module `_loader` overrides `_get_iterator` and `_index_sampler` of
PyTorch's loader, and sets the loader's `_iterator`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import Any

from torch.utils.data import IterableDataset
from torch.utils.data._utils import collate, fetch
from torch.utils.data._utils.pin_memory import pin_memory
from torch.utils.data.dataloader import (
    _BaseDataLoaderIter,
    _DatasetKind,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)

from torchdali.dataloader._generators import Snapshot, snapshot
from torchdali.dataloader._notes import add_cure
from torchdali.dataloader._states import Progress, iterate_next, seek, starting

__all__ = [
    "CountingIterator", "SingleProcessIterator", "WorkerIterator", "collate", "fetch", "pin_memory",
    "replace_attributes", "wrap_fetcher",
]  # fmt: skip


def replace_attributes(loader: Any, changes: Mapping[str, Any]) -> Any:
    """Return a copy of a loader with changed attributes, even if PyTorch's loader refuses to set them."""
    if not changes:
        return loader
    changed = copy.copy(loader)
    vars(changed).update(changes)
    return changed


def wrap_fetcher(iterator: Any, wrapper: Callable[[Any], Any]) -> None:
    """Replace the fetcher of an iterator without workers by a wrapper. The fetcher loads batches from the dataset."""
    iterator._dataset_fetcher = wrapper(iterator._dataset_fetcher)


class CountingIterator(_BaseDataLoaderIter):
    """Base class of iterators that count the batches, and measure the time that a loop waits for batches.

    Args:
        progress: Position at which the loop begins.
        generators: Random number generators that the loader draws from, by name.
        changes: Values that replace attributes of the loader, by the attributes' names.
    """

    def __init__(
        self, loader: Any, progress: Progress, generators: Mapping[str, Any], changes: Mapping[str, Any]
    ) -> None:
        self.progress, self._generators = progress, generators
        self._has_begun_drawing, self._first_batch, self._drawn = False, progress.batches, 0
        self._is_iterable = isinstance(loader.dataset, IterableDataset)
        self._states_after_start: Snapshot | None = None
        with starting(generators, progress):
            super().__init__(replace_attributes(loader, changes))
            if not progress.is_resumed:
                progress.base_seed = int(self._base_seed)
            self._base_seed = progress.base_seed
            self._prime(loader)
            self._states_after_start = snapshot(generators)

    def _prime(self, loader: Any) -> None:
        """Prepare the iterator before the generators' states are recorded; do nothing for PyTorch's iterators."""

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        if not first_iter:  # the workers persist for another epoch
            self.progress = loader._start_loop(self._generators, self.progress)
            self._has_begun_drawing, self._first_batch, self._drawn, self._states_after_start = False, 0, 0, None
        super()._reset(loader, first_iter)

    def _begin_drawing(self) -> None:
        """Record the generators' states before the sampler draws its first indices.

        In a resumed loop, also skip the indices of batches that were already delivered.
        """
        progress = self.progress
        states = (
            progress.first or (self._states_after_start if progress.is_resumed else None) or snapshot(self._generators)
        )
        if progress.is_resumed:
            self._sampler_iter = seek(self._sampler_iter, self._generators, states, self._first_batch)
        progress.first, self._has_begun_drawing = states, True

    def _indices(self) -> Iterator[Any]:
        if not self._has_begun_drawing:
            self._begin_drawing()
        return iterate_next(self._sampler_iter)

    def _restart_indices(self, batch_index: int) -> None:
        """Restart the sampler, and skip its indices before the batch with this index."""
        states = self.progress.first
        self._sampler_iter, self._has_begun_drawing = iter(self._index_sampler), states is not None
        if states is not None:
            self._sampler_iter = seek(self._sampler_iter, self._generators, states, batch_index)

    def _next_index(self) -> Any:
        if not self._has_begun_drawing:
            self._begin_drawing()
        index = next(self._sampler_iter)
        self._drawn += 1
        return index

    def _create_fetcher(self) -> Any:
        return _DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _pin(self, data: Any) -> Any:
        return pin_memory(data, self._pin_memory_device) if self._pin_memory else data

    def __next__(self) -> Any:
        started, progress = perf_counter(), self.progress
        try:
            data = _next(self)
        except StopIteration:
            progress.finished = True
            raise
        except Exception as error:
            self._count_failure()
            add_cure(error)
            raise
        progress.ended = ended = perf_counter()
        progress.waited += ended - started
        batches = self._position()
        # Nothing is called after this assignment, so an interrupt can't prevent the return of a counted batch.
        progress.batches = batches
        return data

    def _count_failure(self) -> None:
        """Count a failed batch, so that the loop continues with the next batch."""
        self.progress.batches = self._position()

    def _position(self) -> int:
        """Return the number of batches of this epoch that were delivered or have failed."""
        raise NotImplementedError


_next = _BaseDataLoaderIter.__next__  # a call through `super()` would take 2% of a small batch's time


class SingleProcessIterator(CountingIterator, _SingleProcessDataLoaderIter):
    """PyTorch's iterator without workers, extended to count batches."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._profile_name = f"enumerate(DataLoader)#{_SingleProcessDataLoaderIter.__name__}.__next__"

    def _position(self) -> int:
        return self.progress.batches + 1 if self._is_iterable else self._first_batch + self._drawn


class WorkerIterator(CountingIterator, _MultiProcessingDataLoaderIter):
    """PyTorch's iterator with workers, extended to count batches."""

    def __init__(self, *arguments: Any) -> None:
        try:
            super().__init__(*arguments)
        except Exception as error:  # for example, the dataset can't be pickled
            add_cure(error)
            raise
        self._profile_name = f"enumerate(DataLoader)#{_MultiProcessingDataLoaderIter.__name__}.__next__"

    def _process_data(self, data: Any, *worker: Any) -> Any:
        try:
            return super()._process_data(data, *worker)  # type: ignore[no-untyped-call]
        except RuntimeError as error:
            restored = _restore_class(data, error)
            if restored is error:
                raise
            raise restored from error

    def _position(self) -> int:
        is_in_order = not self._is_iterable and getattr(self, "_in_order", True)
        return self._first_batch + self._rcvd_idx if is_in_order else self.progress.batches + 1


def _restore_class(data: Any, error: RuntimeError) -> RuntimeError:
    """Return a worker's error with its original class.

    PyTorch raises a RuntimeError instead if it can't call the constructor of the error's class.
    """
    kind = getattr(data, "exc_type", RuntimeError)
    if isinstance(error, kind):
        return error
    text = str(data.exc_msg).rpartition(f"{kind.__name__}: ")[2].strip()
    restored: Any = type(
        kind.__name__, (kind, RuntimeError), {"__module__": kind.__module__, "__str__": lambda self: text}
    )
    return restored.__new__(restored, text)  # type: ignore[no-any-return]
