"""The sources of batches that implement `external_source` while a pipeline runs.

`InProcessSource` calls the user's code in the main process, by default in the user's thread. `WorkerSource` requests
batches from worker processes in advance. `FeedSource` delivers the data that the user passes to
`Pipeline.feed_input`. Each source can return its position and continue at a saved position. The scheduler thread,
which belongs to the pipeline, starts the batches.
"""

from __future__ import annotations

import itertools
import queue
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import torch

from torchdali.ops._external_source.callbacks import BatchLoader, Position, SampleRange
from torchdali.ops._external_source.convert import Expected, to_batch
from torchdali.reading.sources import BatchSource, SourceBatch, SourceSettings, WorkResult, wait_for_data
from torchdali.tensors import TensorList
from torchdali.tensors._foreign import wait_for

__all__ = ["FeedSource", "InProcessSource", "WorkerSource"]


class _Positioned(BatchSource):
    """Base class of the sources: counts batches and samples, and checks the batches that are delivered."""

    def __init__(self, expected: Sequence[Expected]) -> None:
        self._expected = expected
        self._epoch = self._iteration = self._sample = 0
        self._epoch_key: object = None

    def _check_outputs(self, batches: tuple[TensorList, ...], batch_size: int) -> tuple[TensorList, ...]:
        """Check the sizes, dtypes and numbers of axes of the outputs' batches; return the batches.

        Raises:
            RuntimeError: a batch is larger than the batch size, or the outputs have different numbers of samples.
        """
        sizes = [len(batch) for batch in batches]
        if max(sizes) > batch_size:
            raise RuntimeError(
                "The external source callback returned an unexpected batch size. Expected batch_size <= "
                f"{batch_size}, actual: {max(sizes)}"
            )
        if len(set(sizes)) > 1:
            raise RuntimeError(
                "External source must return outputs with consistent batch size. Batch size clash: the outputs of this "
                f"source have {sizes} samples"
            )
        for batch, expected in zip(batches, self._expected, strict=True):
            expected.check(batch)
        return batches

    def _next_range(self, batch_size: int, ahead: int = 0) -> SampleRange:
        first = self._sample + ahead * batch_size
        return SampleRange(self._epoch, self._iteration + ahead, first, 0, batch_size)

    def _advance(self, batch_size: int) -> None:
        self._iteration += 1
        self._sample += batch_size

    def reset(self, epoch: object = None) -> None:
        """Start the next epoch: the counts of batches and samples restart at 0.

        Args:
            epoch: Object that identifies the epoch. Another call with the same object has no effect.
        """
        if epoch is None or self._epoch_key is not epoch:
            self._iteration = self._sample = 0
            self._epoch_key, self._epoch = epoch, self._epoch + 1

    def state(self) -> dict[str, Any]:
        """Return the position of the next batch as integers."""
        return {
            "epoch": self._epoch,
            "iteration": self._iteration,
            "sample": self._sample,
            **self._extra_state(),
        }

    def _extra_state(self) -> Mapping[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue at a saved position. An iterable restarts and skips the items before the position.

        Raises:
            ValueError: a value of the position isn't an integer of at least 0.
        """
        for name, value in state.items():
            if type(value) is not int or value < 0:
                raise ValueError(f"{name!r} of a source must be an integer of at least 0, got {value!r}")
        self._epoch, self._iteration = state["epoch"], state["iteration"]
        self._sample = state["sample"]
        self._seek(Position(state.get("items", 0), state.get("stops", 0), state.get("starts", 0)))

    def _seek(self, position: Position) -> None:
        """Do nothing, because the user's calls of `feed_input` determine the next batch."""


@dataclass
class _LoadedBatch:
    """The batch that a source has loaded last, and the object that identifies the batch."""

    key: object = None
    batch: SourceBatch | None = None


class InProcessSource(_Positioned):
    """Source that calls the user's code in the main process.

    Args:
        loader: Loads batches from the user's code.
        expected: Expected dtype and number of axes of each output.
        background: True to call the user's code in the scheduler thread. False to call the code in the user's thread,
            as DALI does. Then, the code and the user's loop can share data without a race.
    """

    def __init__(self, loader: BatchLoader, expected: Sequence[Expected], *, background: bool = False) -> None:
        super().__init__(expected)
        self._loader, self._background = loader, background
        self._delivered_state: Mapping[str, Any] = super().state()
        self._loaded = _LoadedBatch()

    def prepare(self, batch_size: int, batch: object) -> SourceBatch | None:
        """Load the next batch in this thread; return None if the scheduler thread will load the batch.

        Args:
            batch_size: Maximum number of samples.
            batch: Object that identifies the batch. Another call with the same object returns the same batch.
        """
        if self._background:
            return None
        if self._loaded.key is not batch:
            self._skip_loaded()
            self._loaded = _LoadedBatch(batch, self._load(batch_size, batch))
        return self._loaded.batch

    def _skip_loaded(self) -> None:
        """Set the position to the end of the batch that was loaded last."""
        loaded = self._loaded.batch
        if loaded is not None:
            self._iteration, self._sample = loaded.state["iteration"], loaded.state["sample"]

    def next(self, batch_size: int, prepared: SourceBatch | None) -> tuple[TensorList, ...]:
        """Return the next batch of each output."""
        batch, loaded = prepared, self._loaded
        if batch is None:
            self._skip_loaded()
            batch = self._load(batch_size, None)
            loaded = self._loaded = _LoadedBatch(None, batch)
        if loaded.batch is batch:  # the batch won't be requested again: free its memory
            loaded.batch = SourceBatch(state=batch.state)
            self._loader.data.release(loaded.key)
        self._delivered_state = batch.state
        if batch.error is not None:
            raise batch.error
        return batch.outputs

    def _load(self, batch_size: int, batch: object) -> SourceBatch:
        """Load the next batch without advancing the position."""
        outputs: tuple[TensorList, ...] = ()
        failure: Exception | None = None
        is_repeated = batch is not None and not self._loader.data.stateful  # only used if the function raises an error
        next_state = {"iteration": self._iteration + 1, "sample": self._sample + batch_size}
        try:
            columns = self._loader.data.fetch(self._next_range(batch_size), batch)
            is_repeated = False
            with torch.no_grad():
                outputs = self._check_outputs(self._loader.batches(columns), batch_size)
        except StopIteration as stop:
            # A new exception without a traceback: the original's frames would keep the caller's pipeline alive.
            failure, next_state, is_repeated = StopIteration(*stop.args), {}, False
        except Exception as error:
            if not self._loader.data.is_own_error(self._next_range(batch_size), batch):
                raise
            failure = error
            if is_repeated:
                next_state = {}
        try:
            return SourceBatch(outputs, {**super().state(), **next_state}, failure, is_repeated)
        finally:
            del failure  # avoids a reference cycle, because the exception's traceback refers to this frame

    def reset(self, epoch: object = None) -> None:
        """Start the next epoch."""
        self._loaded = _LoadedBatch()
        super().reset(epoch)
        self._delivered_state = super().state()

    def state(self) -> dict[str, Any]:
        """Return the position after the last batch that `next` has returned, even if later batches are prepared."""
        return dict(self._delivered_state)

    def _extra_state(self) -> Mapping[str, Any]:
        return dict(vars(self._loader.data.position))  # values are integers

    def _seek(self, position: Position) -> None:
        self._loaded = _LoadedBatch()
        self._loader.data.seek(position)
        self._delivered_state = super().state()


class WorkerSource(_Positioned):
    """Source that requests batches from worker processes in advance.

    If the user's function returns samples, the samples of a batch are divided among the workers. An iterable is read by
    one worker only.

    Args:
        loader: Loads batches from the user's code. The loader is sent to the workers.
        expected: Expected dtype and number of axes of each output.
        depth: Number of batches that are requested ahead of the current batch.
    """

    def __init__(self, loader: BatchLoader, expected: Sequence[Expected], depth: int) -> None:
        super().__init__(expected)
        self.work, self.stateful = loader, loader.data.stateful
        self._divisible, self._depth = loader.data.divisible, depth
        self._requests: deque[list[Future[WorkResult]]] = deque()
        self._delivered_state: Mapping[str, Any] = {}

    def open(self, settings: SourceSettings) -> None:
        """Store the pipeline's worker processes."""
        assert settings.workers is not None
        self._workers = settings.workers

    def next(self, batch_size: int, prepared: SourceBatch | None) -> tuple[TensorList, ...]:
        """Return the next batch of each output."""
        return self._check_outputs(self._wait_for_batch(batch_size), batch_size)

    def _wait_for_batch(self, batch_size: int) -> tuple[TensorList, ...]:
        while len(self._requests) <= self._depth:
            self._requests.append(self._request(self._next_range(batch_size, len(self._requests))))
        try:
            results = [future.result() for future in self._requests[0]]
        except BaseException:
            self._drop_failed()
            raise
        self._delivered_state = results[-1][1]
        parts = [batches for batches, _ in results if batches is not None]
        if len(parts) < len(results):
            self._drop_failed()
            raise StopIteration
        self._requests.popleft()
        self._advance(batch_size)
        return tuple(map(_concatenate, zip(*parts, strict=True)))

    def _request(self, samples: SampleRange) -> list[Future[WorkResult]]:
        pieces = min(samples.stop, 2 * self._workers.count) if self._divisible else 1
        bounds = [samples.stop * i // pieces for i in range(pieces + 1)]
        return [
            self._workers.submit(SampleRange(samples.epoch, samples.iteration, samples.sample, start, stop))
            for start, stop in itertools.pairwise(bounds)
        ]

    def _drop_failed(self) -> None:
        """Drop requests after an error or the end of the epoch.

        For an iterable, only the current request is dropped. A worker has already read items for the later requests
        and cannot read them again; these items belong to the next batches, or to the next epoch.
        """
        if self.stateful:
            self._requests.popleft()
        else:
            self._cancel_requests()

    def _cancel_requests(self) -> None:
        for future in (future for futures in self._requests for future in futures):
            future.cancel()
        self._requests.clear()

    def reset(self, epoch: object = None) -> None:
        """Start the next epoch."""
        super().reset(epoch)
        if not self.stateful:
            self._cancel_requests()

    def _extra_state(self) -> Mapping[str, Any]:
        return self._delivered_state

    def _seek(self, position: Position) -> None:
        self._cancel_requests()
        if self.stateful:
            self._delivered_state = self._workers.submit(position).result()[1]

    def reseed(self, seed: int) -> None:
        """Set the seed of the random numbers that the user's code draws in the workers."""
        self._workers.seed = seed

    def close(self) -> None:
        """Stop the worker processes."""
        self._workers.close()


def _concatenate(parts: Sequence[TensorList]) -> TensorList:
    if len(parts) == 1:
        return parts[0]
    samples = [sample for part in parts for sample in part.samples()]
    return TensorList.from_samples(samples, parts[0].layout())


class FeedSource(_Positioned):
    """Source that delivers the data that the user passes to `Pipeline.feed_input`.

    Args:
        layout: Layout of a sample if `feed_input` is called without a layout; "" for the data's own layout.
        repeat_last: True to deliver the last batch again if no new batch was fed.
        blocking: True to wait for data; False to raise IndexError if no batch was fed.
        copy: True to copy the data that the user passes.
    """

    def __init__(self, expected: Expected, layout: str, *, repeat_last: bool, blocking: bool, copy: bool) -> None:
        super().__init__([expected])
        self._layout, self._copy = layout, copy
        self._repeat_last, self._blocking = repeat_last, blocking
        self._queue: deque[TensorList] = deque()
        self._prepared: tuple[object, list[TensorList]] = None, []
        self._last: TensorList | None = None
        self._wakeups = queue.SimpleQueue[None]()  # an interrupt of the user's thread could leave a Condition locked
        self._closed = False

    def open(self, settings: SourceSettings) -> None:
        """Store the maximum batch size."""
        self._batch_size = settings.batch_size

    def feed(self, data: Any, layout: str | None = None, cuda_stream: Any = None) -> None:
        """Add one batch to the queue. The user's thread calls this method.

        Args:
            layout: Layout of a sample; None for the layout from the constructor.
            cuda_stream: CUDA stream on which the data is computed.
        """
        batch = self.convert(data, layout, cuda_stream)
        self._queue.append(batch)
        self._wakeups.put(None)

    def convert(self, data: Any, layout: str | None = None, cuda_stream: Any = None) -> TensorList:
        """Convert the user's data to a batch.

        Raises:
            RuntimeError: the data isn't a batch, or has more samples than the pipeline's batch size.
        """
        samples = data if isinstance(data, (list, tuple)) else [data]
        devices = [getattr(each, "device", None) for each in samples]
        for device in {d for d in devices if isinstance(d, torch.device)}:
            wait_for(cuda_stream, device)
        batch = to_batch(data, layout or self._layout, copy=self._copy)
        if len(batch) > self._batch_size:
            raise RuntimeError(
                "The external source was fed an unexpected batch size. Expected batch_size <= "
                f"{self._batch_size}, actual: {len(batch)}"
            )
        return batch

    def prepare(self, batch_size: int, batch: object) -> SourceBatch | None:
        """Take the next batch from the queue now, so that the run doesn't depend on data that is fed later.

        Return None if `next` must wait for data.
        """
        if self._blocking:
            return None
        if self._prepared[0] is not batch:
            self._prepared = batch, []
        batches = self._prepared[1]
        if not batches and self._queue:
            batches.extend(map(deque.popleft, (self._queue,)))  # one C call, so that an interrupt loses no batch
        return SourceBatch(tuple(batches))

    def next(self, batch_size: int, prepared: SourceBatch | None) -> tuple[TensorList, ...]:
        """Return the batch that `prepare` has taken, or wait for a batch if `prepare` has returned None."""
        return self._check_outputs(self._choose_batch(batch_size, prepared), batch_size)

    def _choose_batch(self, batch_size: int, prepared: SourceBatch | None) -> tuple[TensorList, ...]:
        batch = self._wait() if prepared is None else next(iter(prepared.outputs), None)
        if batch is None:
            if not self._repeat_last or self._last is None:
                raise IndexError(
                    "the external_source has no data batch for this run. Add more elements to the DALI input operator: "
                    "call feed_input once for every run, and Pipeline.input_feed_count() times before the first"
                )
            batch = self._last
        self._last = batch
        self._advance(batch_size)
        return (batch,)

    def _wait(self) -> TensorList | None:
        if self._repeat_last and self._last is not None and not self._queue:
            return None
        return wait_for_data(self._queue, self._wakeups, lambda: self._closed)

    def take_back(self, prepared: SourceBatch) -> None:
        """Put a batch that `prepare` has taken, but no run has used, back at the front of the queue."""
        if self._queue and prepared.outputs and self._queue[0] is prepared.outputs[0]:
            return  # an interrupted call has already returned the batch
        self._queue.extendleft(prepared.outputs)

    def close(self) -> None:
        """Make a run that waits for data raise an error."""
        self._closed = True
        self._wakeups.put(None)
