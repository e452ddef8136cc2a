"""Iterators over the batches of a loader: torch's own, and the one of accelerated loaders."""

from __future__ import annotations

import contextlib
import copy
import itertools
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data._utils import pin_memory
from torch.utils.data._utils.collate import default_collate
from torch.utils.data.dataloader import (
    _BaseDataLoaderIter,
    _DatasetKind,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)

from torchdali.dataloader._generators import Snapshot, draws_early, generators_of, is_of_torch, snapshot
from torchdali.dataloader._lazy_opening import FetchLazily, InitWorker
from torchdali.dataloader._plan import Plan
from torchdali.dataloader._pristine import find_collate_change
from torchdali.dataloader._rows import Engine, answer_of, integers
from torchdali.dataloader._states import Progress, bare, seek, starting
from torchdali.dataloader._worker_blocks import BlockCollate, ReceivedBlocks
from torchdali.forks import process
from torchdali.rng import mix
from torchdali.threads import close_abandoned

__all__ = ["AcceleratedIterator", "SingleProcessIterator", "WorkerIterator"]


class Counting(_BaseDataLoaderIter):
    """An iterator that counts its batches, and the time that a loop waits for them.

    Args:
        loader: Its arguments mean what they mean for torch's iterators.
        progress: Where the loop begins.
    """

    def __init__(self, loader: Any, progress: Progress) -> None:
        self.progress = progress
        self._generators = generators_of(loader)
        self._is_drawing, self._begun, self._drawn = False, progress.batches, 0
        self._after_start: Snapshot | None = None
        with starting(self._generators, progress):
            super().__init__(loader)
            if not progress.is_resumed:
                progress.base_seed = int(self._base_seed)
            self._base_seed = progress.base_seed
            self._prime(loader)
            self._after_start = snapshot(self._generators)

    def _prime(self, loader: Any) -> None:
        """Do nothing: torch's iterators draw their first indices themselves."""

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        if not first_iter:  # the workers persist for another epoch
            self.progress = loader._start(self, self.progress)
            self._is_drawing, self._begun, self._drawn, self._after_start = False, 0, 0, None
        super()._reset(loader, first_iter)

    def _begin_drawing(self) -> None:
        """Note the states in which the sampler begins to draw, or continue where a state was taken."""
        progress, self._is_drawing = self.progress, True
        states = progress.first or (self._after_start if progress.is_resumed else None) or snapshot(self._generators)
        if progress.is_resumed:
            self._sampler_iter = seek(self._sampler_iter, self._generators, states, self._begun)
        progress.first = states

    def _next_index(self) -> Any:
        if not self._is_drawing:
            self._begin_drawing()
        index: Any = super()._next_index()  # type: ignore[no-untyped-call]
        self._drawn += 1
        return index

    def __next__(self) -> Any:
        started, progress = time.perf_counter(), self.progress
        try:
            data = super().__next__()
        except StopIteration:
            progress.finished = True
            raise
        except Exception:
            self._fail()
            raise
        progress.ended = time.perf_counter()
        progress.waited += progress.ended - started
        batches = self._position()
        # Last, and without a call before the return: an interrupt leaves the batch either undelivered or with the user.
        progress.batches = batches
        return data

    def _fail(self) -> None:
        """Count a batch that failed: the loop continues after it."""
        self.progress.batches = self._position()

    def _position(self) -> int:
        """Return the number of batches that were delivered or failed."""
        return self.progress.batches + 1


class SingleProcessIterator(Counting, _SingleProcessDataLoaderIter):
    """torch's own, which counts.

    Args:
        is_lazy: JPEGs that the dataset opens are lazy images.
    """

    def __init__(self, loader: Any, progress: Progress, is_lazy: bool) -> None:
        super().__init__(loader, progress)
        if is_lazy:
            self._dataset_fetcher: Any = FetchLazily(self._dataset_fetcher)
        self._profile_name = f"enumerate(DataLoader)#{_SingleProcessDataLoaderIter.__name__}.__next__"

    def _position(self) -> int:
        is_iterable = self._dataset_kind == _DatasetKind.Iterable
        return super()._position() if is_iterable else self._begun + self._drawn


class WorkerIterator(Counting, _MultiProcessingDataLoaderIter):
    """torch's own, which counts.

    Args:
        is_lazy: JPEGs that the dataset opens are lazy images.
    """

    def __init__(self, loader: Any, progress: Progress, is_lazy: bool) -> None:
        loader = copy.copy(loader)
        if is_lazy:
            vars(loader)["worker_init_fn"] = InitWorker(loader.worker_init_fn)
        if loader._auto_collation and not find_collate_change(loader.collate_fn):
            self._received_blocks = ReceivedBlocks(loader.num_workers, loader.prefetch_factor + _SPARE_BLOCKS)
            vars(loader)["collate_fn"] = BlockCollate(self._received_blocks)
        super().__init__(loader, progress)
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
        by_number = self._dataset_kind != _DatasetKind.Iterable and getattr(self, "_in_order", True)
        return self._begun + self._rcvd_idx if by_number else super()._position()


_SPARE_BLOCKS = 4  # of each worker, for batches that the program has


def _restore_class(data: Any, error: RuntimeError) -> RuntimeError:
    """Return a worker's error with its own class, which torch loses if the constructor takes several arguments."""
    kind = getattr(data, "exc_type", RuntimeError)
    if isinstance(error, kind):
        return error
    text = str(data.exc_msg).rpartition(f"{kind.__name__}: ")[2].strip()
    restored: Any = type(
        kind.__name__, (kind, RuntimeError), {"__module__": kind.__module__, "__str__": lambda self: text}
    )
    return restored.__new__(restored, text)  # type: ignore[no-any-return]


class AcceleratedIterator(Counting):
    """Takes indices from torch's sampler, and the samples from an engine.

    Each batch has a number, and is requested and answered by it. An exception may leave `__next__` between any two
    instructions. The next call then closes the engine, and requests all undelivered batches from another one.

    Args:
        loader: Its arguments mean what they mean for torch's iterators.
        progress: Where the loop begins.
        plan: It opens the engine.
    """

    def __init__(self, loader: Any, progress: Progress, plan: Plan) -> None:
        self._loader, self._plan = loader, plan
        self._engine: Engine | None = None
        self._requests: deque[tuple[Any, int]] = deque()  # indices of undelivered batches, and their numbers
        self._rows: dict[int, list[int] | None] = {}  # as integers, of the requests that the engine has
        self._valid = -1  # the number that the engine answers next, unless an exception left it in another state
        super().__init__(loader, progress)

    def _prime(self, loader: Any) -> None:
        self._draws_early, self._is_rebuildable = draws_early(self._index_sampler), is_of_torch(self._index_sampler)
        self._window = (loader.prefetch_factor or 2) * self._num_workers
        self._fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )
        self._restart_sampler()
        if self._num_workers:
            self._reset(loader, first_iter=True)  # as torch's worker iterator, which begins its sampler twice
        else:
            self._restart()
            self._valid = self.progress.batches

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self._release()
        super()._reset(loader, first_iter)
        self._requests.clear()
        self._restart_sampler()
        number = self.progress.batches
        self._draw_ahead(number)
        self._restart()
        self._submit()
        self._valid = number

    # ------------------------------------------------------------ indices

    def _restart_sampler(self) -> None:
        self._exhausted, self._interrupted, self._attempts = False, False, 0
        self._numbered: Iterator[Any] | None = None

    def _draw(self) -> None:
        """Take the next indices from the sampler, if it has more."""
        if self._numbered is None:
            self._interrupted = True
            self._begin_drawing()
            self._numbered = zip(bare(self._sampler_iter), itertools.count(self.progress.batches))
        before = len(self._requests)
        self._interrupted = True
        # One call: an interrupt finds the indices in the sampler or in the queue, unless the sampler is in Python.
        self._requests.extend(itertools.islice(self._numbered, 1))
        self._exhausted = len(self._requests) == before
        self._interrupted = False

    def _repair_sampler(self) -> None:
        """Begin torch's sampler again where an exception left its generator."""
        if not self._interrupted or not self._is_rebuildable:
            return
        number, states = self._end, self.progress.first
        self._sampler_iter, self._exhausted = iter(self._index_sampler), False
        if states is not None:
            self._sampler_iter = seek(self._sampler_iter, self._generators, states, number)
            self._is_drawing = True
            self._numbered = zip(bare(self._sampler_iter), itertools.count(number))
        else:
            self._numbered = None
        self._interrupted = False

    @property
    def _end(self) -> int:
        """The number of the next batch to draw."""
        return self._requests[-1][1] + 1 if self._requests else self.progress.batches

    def _draw_ahead(self, number: int) -> None:
        """Draw as many index lists as torch's iterators have drawn when they wait for a batch."""
        if self._num_workers:
            self._attempt(self._window + number - self._begun)
        elif self._draws_early and self._engine is not None:
            end = number + self._engine.depth
            if len(self._generators) > 1:  # the program may see when the last numbers are drawn from its generator
                end = min(end, len(self._index_sampler) - 1)
            while self._end < end and not self._exhausted:
                self._draw()
        while not self._requests and not self._exhausted:
            self._draw()

    def _attempt(self, count: int) -> None:
        """Ask the sampler for indices until it was asked so often in this epoch."""
        while self._attempts < count:
            self._attempts += 1
            self._draw()

    # ------------------------------------------------------------ batches

    def _restart(self) -> None:
        """Open an engine, and let it make all undelivered batches."""
        engine, self._engine = self._engine, None
        if engine is not None and engine.process == process():
            close_abandoned(engine)
        self._repair_sampler()
        self._rows.clear()
        self._engine = self._loader._engine(self._plan)

    def _submit(self) -> None:
        """Request the batches that the engine makes ahead."""
        assert self._engine is not None
        for indices, number in itertools.islice(self._requests, self._engine.depth):
            if number in self._rows:
                continue
            rows = integers(indices)
            if rows is not None:
                self._engine.submit(number, rows, mix(int(self._base_seed), self.progress.epoch, number))
            self._rows[number] = rows

    def _next_data(self) -> Any:
        progress, valid = self.progress, self._valid
        number, self._valid = progress.batches, -1
        if progress.finished:
            raise StopIteration
        if self._engine is None or valid != number or self._engine.process != process():
            self._restart()
        while self._requests and self._requests[0][1] < number:
            self._rows.pop(self._requests.popleft()[1], None)
        self._draw_ahead(number)
        if not self._requests:
            self._valid = number
            self._release()
            raise StopIteration
        self._submit()
        data = self._answer(*self._requests[0])
        if self._num_workers:
            self._attempt(self._window + number + 1 - self._begun)
        self._valid = number + 1
        if isinstance(data, Exception):
            progress.batches = number + 1
            try:
                raise data
            finally:
                del data  # the exception's frames would hold the exception
        return data

    def _answer(self, indices: Any, number: int) -> Any:
        """Return a batch, or the error that belongs to it."""
        assert self._engine is not None
        rows = self._rows[number]
        if rows is None:  # lists, slices: torch knows their meaning
            return answer_of(lambda: self._fetcher.fetch(indices))
        try:
            values = self._engine.take(number)
        except Exception as error:
            values = self._ask_again(number, error)
        return values if isinstance(values, Exception) else answer_of(lambda: self._collate(rows, values))

    def _ask_again(self, number: int, error: Exception) -> Exception:
        """Return a batch's own error, which another engine repeats; raise one that came from outside."""
        self._restart()
        self._submit()
        assert self._engine is not None
        try:
            values = self._engine.take(number)
        except Exception as repeated:
            values = repeated
        if type(values) is type(error):
            return error
        raise error

    def _collate(self, indices: list[int], values: list[Any]) -> Any:
        leaves, data = self._plan.leaves, values
        if leaves is not None:
            (images,) = values
            targets = [leaves.target(index) for index in indices]
            if isinstance(images, torch.Tensor):
                data = [images, default_collate(targets)]
            else:
                data = default_collate(list(zip(images, targets, strict=True)))  # of several sizes: torch's error
        return pin_memory.pin_memory(data, self._pin_memory_device) if self._pin_memory else data

    def _position(self) -> int:
        return max(self._valid, self.progress.batches)

    def _fail(self) -> None:
        """Do nothing: `_next_data` counts a batch whose error is its own."""

    # ------------------------------------------------------------ the end

    def _shutdown_workers(self) -> None:
        """End the threads, as torch's iterator ends its workers."""
        engine, self._engine, self._valid = self._engine, None, -1
        if engine is not None:
            close_abandoned(engine)

    def _release(self) -> None:
        """Give the engine back, if it is in a known state."""
        engine, self._engine = self._engine, None
        if engine is None or engine.process != process():
            return
        if self._valid == self.progress.batches:
            self._loader._keep(self._plan.key, engine)
        else:
            close_abandoned(engine)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the program may be ending
            self._release()
