"""The iterator of accelerated loaders."""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import default_collate

from torchdali.dataloader._generators import can_draw_early, is_torch_sampler
from torchdali.dataloader._rows import BatchEngine, LoaderPlan, as_integers
from torchdali.dataloader._torch_internals import CountingIterator
from torchdali.errors import note
from torchdali.forks import process
from torchdali.threads import close_abandoned

__all__ = ["AcceleratedIterator"]


class AcceleratedIterator(CountingIterator):
    """Iterator that gets indices from PyTorch's sampler, and batches from an engine's threads.

    An exception such as a keyboard interrupt may end `__next__` at any instruction. The next call then closes the
    engine, and requests all undelivered batches from a new engine. A batch index counts from the start of the epoch.

    Args:
        plan: The loader's plan, which opens the engine.
        arguments: Arguments of `CountingIterator` after ``loader``.
    """

    def __init__(self, loader: Any, plan: LoaderPlan, *arguments: Any) -> None:
        self._loader, self._plan = loader, plan
        self._engine: BatchEngine | None = None
        self._requests: deque[tuple[Any, int]] = deque()  # indices and batch index of each undelivered batch
        self._submitted: dict[int, list[int] | None] = {}  # indices of each batch that was requested from the engine
        self._engine_position = -1  # index of the batch that the engine returns next; -1 after an exception
        super().__init__(loader, *arguments)

    def _prime(self, loader: Any) -> None:
        sampler = self._index_sampler
        self._is_restartable = is_torch_sampler(sampler)
        self._can_draw_early = can_draw_early(sampler) and not self._num_workers
        self._window = (loader.prefetch_factor or 2) * self._num_workers
        self._fetcher = self._create_fetcher()
        if self._num_workers:
            self._reset(loader, first_iter=True)  # creates the sampler's iterator again, as PyTorch does
        else:
            self._begin()

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self._release()
        super()._reset(loader, first_iter)
        self._begin()

    def _begin(self) -> None:
        batch_index = self.progress.batches
        self._requests.clear()
        self._exhausted, self._interrupted, self._attempts = False, False, 0
        self._numbered_indices: Iterator[Any] | None = None
        if self._num_workers:
            self._draw_ahead(batch_index)
        self._restart()
        self._submit()
        self._engine_position = batch_index

    # ------------------------------------------------------------ indices

    def _draw(self) -> None:
        """Draw the next batch's indices from the sampler, unless the sampler is exhausted."""
        self._interrupted = True
        if self._numbered_indices is None:
            self._numbered_indices = zip(self._indices(), itertools.count(self._next_draw))
        before = len(self._requests)
        # This is a single C call. If the sampler isn't Python code, an interrupt can't lose the drawn indices.
        self._requests.extend(itertools.islice(self._numbered_indices, 1))
        self._exhausted = len(self._requests) == before
        self._interrupted = False

    def _repair_sampler(self) -> None:
        """Restart PyTorch's sampler after an exception interrupted it."""
        if self._interrupted and self._is_restartable:
            self._restart_indices(self._next_draw)
            self._numbered_indices, self._exhausted, self._interrupted = None, False, False

    @property
    def _next_draw(self) -> int:
        """Index of the batch whose indices are drawn next."""
        return self._requests[-1][1] + 1 if self._requests else self.progress.batches

    def _draw_ahead(self, batch_index: int) -> None:
        """Draw the indices that PyTorch's iterators draw before they wait for the batch with this index.

        If the program can't observe a difference, draw the indices of all batches that the engine prepares ahead.
        """
        if self._num_workers:
            self._attempt_draws(self._window + batch_index - self._first_batch)
        end = batch_index + 1
        if self._can_draw_early and self._engine is not None and self._engine.depth > 1:
            end = batch_index + self._engine.depth
            if len(self._generators) > 1:  # the program could observe that the last indices are drawn early
                end = max(batch_index + 1, min(end, len(self._index_sampler) - 1))
        while self._next_draw < end and not self._exhausted:
            self._draw()

    def _attempt_draws(self, count: int) -> None:
        """Request indices from the sampler until there were `count` requests in this epoch.

        Like PyTorch, request indices even if the sampler is exhausted.
        """
        while self._attempts < count:
            self._attempts += 1
            self._draw()

    # ------------------------------------------------------------ batches

    def _restart(self) -> None:
        """Close the engine, and open a new one. The new engine has no requests yet."""
        engine, self._engine = self._engine, None
        if engine is not None and engine.process == process():
            close_abandoned(engine)
        self._repair_sampler()
        self._submitted.clear()
        self._engine = self._loader._engine(self._plan)

    def _submit(self) -> None:
        """Request the batches that the engine should prepare ahead, except those that are already requested."""
        assert self._engine is not None
        for indices, batch_index in itertools.islice(self._requests, self._engine.depth):
            if batch_index in self._submitted:
                continue
            sample_indices = as_integers(indices)
            if sample_indices is not None:
                self._engine.submit(batch_index, sample_indices, (self.progress.base_seed, self.progress.epoch))
            self._submitted[batch_index] = sample_indices

    def _next_data(self) -> Any:
        progress, engine_position = self.progress, self._engine_position
        batch_index, self._engine_position = progress.batches, -1
        if progress.finished:
            raise StopIteration
        if self._engine is None or engine_position != batch_index or self._engine.process != process():
            self._restart()
        while self._requests and self._requests[0][1] < batch_index:
            self._submitted.pop(self._requests.popleft()[1], None)
        self._draw_ahead(batch_index)
        if not self._requests:
            self._engine_position = batch_index
            self._release()
            raise StopIteration
        self._submit()
        data = self._create_with_retry(*self._requests[0])
        if self._num_workers:
            self._attempt_draws(self._window + batch_index + 1 - self._first_batch)
        self._engine_position = batch_index + 1
        if isinstance(data, Exception):
            progress.batches = batch_index + 1
            try:
                raise data
            finally:
                del data  # breaks a cycle, because the exception's traceback refers to this frame
        return data

    def _create_with_retry(self, indices: Any, batch_index: int) -> Any:
        """Return a batch, or the error that two attempts have raised.

        If the first attempt raises an error, a new engine tries again. If the second attempt succeeds or raises a
        different error, the first error came from outside, for example from a signal handler, and is raised.
        """
        try:
            return self._create_batch(indices, batch_index)
        except Exception as error:
            self._restart()
            self._submit()
            try:
                repeated = self._create_batch(indices, batch_index)
            except Exception as another:
                repeated = another
            if type(repeated) is not type(error):  # the first error came from outside
                raise
            return error

    def _create_batch(self, indices: Any, batch_index: int) -> Any:
        assert self._engine is not None
        sample_indices = self._submitted[batch_index]
        if sample_indices is None:  # the indices are lists or slices, which PyTorch's fetcher supports
            return self._fetcher.fetch(indices)
        values = self._engine.receive(batch_index)
        return values if isinstance(values, Exception) else self._collate(sample_indices, values)

    def _collate(self, indices: list[int], values: list[Any]) -> Any:
        tree, data = self._plan.tree, values
        if tree is not None:
            (images,) = values
            targets = [tree.target(index) for index in indices]
            if isinstance(images, torch.Tensor):
                data = [images, default_collate(targets)]
            else:
                data = self._collate_images(indices, list(zip(images, targets, strict=True)))
        return self._pin(data)

    def _collate_images(self, indices: list[int], samples: list[Any]) -> Any:
        """Collate images. If their sizes differ, add the files of two differing images to PyTorch's error."""
        try:
            return default_collate(samples)
        except RuntimeError as error:
            for index, (image, _) in zip(indices, samples, strict=True):
                if image.shape != samples[0][0].shape:
                    pair = ((indices[0], samples[0][0]), (index, image))
                    note(error, "; ".join(f"{self._plan.tree.source(i)}: {tuple(each.shape)}" for i, each in pair))
                    break
            raise

    def _position(self) -> int:
        return max(self._engine_position, self.progress.batches)

    def _count_failure(self) -> None:
        """Do nothing, because `_next_data` counts failed batches."""

    # ------------------------------------------------------------ the end

    def _shutdown_workers(self) -> None:
        """Close the engine. PyTorch calls this method to stop an iterator's workers."""
        engine, self._engine, self._engine_position = self._engine, None, -1
        if engine is not None:
            close_abandoned(engine)

    def _release(self) -> None:
        """Give the engine back to the loader, for later loops; after an exception, close the engine instead."""
        engine, self._engine = self._engine, None
        if engine is None or engine.process != process():
            return
        if self._engine_position == self.progress.batches:
            self._loader._idle.add(self._plan.key, engine)
        else:
            close_abandoned(engine)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # errors are expected while the interpreter shuts down
            self._release()
