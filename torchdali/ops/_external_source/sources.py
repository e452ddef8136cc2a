"""The sources of batches that implement `external_source` while a pipeline runs.

`InProcess` calls the user's code in the main process, by default in the user's thread. `InWorkers` requests
batches from worker processes in advance. `FedByUser` delivers the data that the user passes to
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

__all__ = ["FedByUser", "InProcess", "InWorkers"]


class _Positioned(BatchSource):
    """Base class of the sources: counts batches and samples, and checks the batches that are delivered."""

    def __init__(self, expected: Sequence[Expected]) -> None:
        self._expected = expected
        self._epoch = self._iteration = self._sample = 0
        self._begun: object = None

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

    def _range(self, batch_size: int, ahead: int = 0) -> SampleRange:
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
        if epoch is None or self._begun is not epoch:
            self._iteration = self._sample = 0
            self._begun, self._epoch = epoch, self._epoch + 1

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
        self._go_to(Position(state.get("items", 0), state.get("stops", 0), state.get("starts", 0)))

    def _go_to(self, position: Position) -> None:
        """Do nothing, because the user's calls of `feed_input` determine the next batch."""


@dataclass
class _Drawn:
    """The batch that a source has loaded last, and the object that identifies the batch."""

    key: object = None
    batch: SourceBatch | None = None


class InProcess(_Positioned):
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
        self._reached: Mapping[str, Any] = super().state()
        self._latest = _Drawn()

    def prepare(self, batch_size: int, batch: object) -> SourceBatch | None:
        """Load the next batch in this thread; return None if the scheduler thread will load the batch.

        Args:
            batch_size: Maximum number of samples.
            batch: Object that identifies the batch. Another call with the same object returns the same batch.
        """
        if self._background:
            return None
        if self._latest.key is not batch:
            self._pass_latest()
            self._latest = _Drawn(batch, self._draw(batch_size, batch))
        return self._latest.batch

    def _pass_latest(self) -> None:
        """Set the position to the end of the batch that was loaded last."""
        latest = self._latest.batch
        if latest is not None:
            self._iteration, self._sample = latest.state["iteration"], latest.state["sample"]

    def next(self, batch_size: int, prepared: SourceBatch | None) -> tuple[TensorList, ...]:
        """Return the next batch of each output."""
        batch, latest = prepared, self._latest
        if batch is None:
            self._pass_latest()
            batch = self._draw(batch_size, None)
            latest = self._latest = _Drawn(None, batch)
        if latest.batch is batch:  # the batch won't be requested again: free its memory
            latest.batch = SourceBatch(state=batch.state)
            self._loader.data.forget(latest.key)
        self._reached = batch.state
        if batch.error is not None:
            raise batch.error
        return batch.outputs

    def _draw(self, batch_size: int, batch: object) -> SourceBatch:
        """Load the next batch without advancing the position."""
        outputs: tuple[TensorList, ...] = ()
        failure: Exception | None = None
        is_repeated = batch is not None and not self._loader.data.stateful  # only used if the function raises an error
        after = {"iteration": self._iteration + 1, "sample": self._sample + batch_size}
        try:
            columns = self._loader.data.draw(self._range(batch_size), batch)
            is_repeated = False
            with torch.no_grad():
                outputs = self._check_outputs(self._loader.batches(columns), batch_size)
        except StopIteration as stop:
            # A new exception without a traceback: the original's frames would keep the caller's pipeline alive.
            failure, after, is_repeated = StopIteration(*stop.args), {}, False
        except Exception as error:
            if not self._loader.data.is_past(self._range(batch_size), batch):
                raise
            failure = error
            if is_repeated:
                after = {}
        try:
            return SourceBatch(outputs, {**super().state(), **after}, failure, is_repeated)
        finally:
            del failure  # avoids a reference cycle, because the exception's traceback refers to this frame

    def reset(self, epoch: object = None) -> None:
        """Start the next epoch."""
        self._latest = _Drawn()
        super().reset(epoch)
        self._reached = super().state()

    def state(self) -> dict[str, Any]:
        """Return the position after the last batch that `next` has returned, even if later batches are prepared."""
        return dict(self._reached)

    def _extra_state(self) -> Mapping[str, Any]:
        return dict(vars(self._loader.data.position))  # values are integers

    def _go_to(self, position: Position) -> None:
        self._latest = _Drawn()
        self._loader.data.go_to(position)
        self._reached = super().state()


class InWorkers(_Positioned):
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
        self._ahead: deque[list[Future[WorkResult]]] = deque()
        self._reached: Mapping[str, Any] = {}

    def open(self, settings: SourceSettings) -> None:
        """Store the pipeline's worker processes."""
        assert settings.workers is not None
        self._workers = settings.workers

    def next(self, batch_size: int, prepared: SourceBatch | None) -> tuple[TensorList, ...]:
        """Return the next batch of each output."""
        return self._check_outputs(self._take(batch_size), batch_size)

    def _take(self, batch_size: int) -> tuple[TensorList, ...]:
        while len(self._ahead) <= self._depth:
            self._ahead.append(self._ask(self._range(batch_size, len(self._ahead))))
        try:
            results = [future.result() for future in self._ahead[0]]
        except BaseException:
            self._forget()
            raise
        self._reached = results[-1][1]
        parts = [batches for batches, _ in results if batches is not None]
        if len(parts) < len(results):
            self._forget()
            raise StopIteration
        self._ahead.popleft()
        self._advance(batch_size)
        return tuple(map(_join, zip(*parts, strict=True)))

    def _ask(self, samples: SampleRange) -> list[Future[WorkResult]]:
        pieces = min(samples.stop, 2 * self._workers.count) if self._divisible else 1
        cuts = [samples.stop * i // pieces for i in range(pieces + 1)]
        return [
            self._workers.submit(SampleRange(samples.epoch, samples.iteration, samples.sample, start, stop))
            for start, stop in itertools.pairwise(cuts)
        ]

    def _forget(self) -> None:
        """Drop requests after an error or the end of the epoch.

        For an iterable, only the current request is dropped. A worker has already read items for the later requests
        and cannot read them again; these items belong to the next batches, or to the next epoch.
        """
        if self.stateful:
            self._ahead.popleft()
        else:
            self._drop_ahead()

    def _drop_ahead(self) -> None:
        for future in (future for futures in self._ahead for future in futures):
            future.cancel()
        self._ahead.clear()

    def reset(self, epoch: object = None) -> None:
        """Start the next epoch."""
        super().reset(epoch)
        if not self.stateful:
            self._drop_ahead()

    def _extra_state(self) -> Mapping[str, Any]:
        return self._reached

    def _go_to(self, position: Position) -> None:
        self._drop_ahead()
        if self.stateful:
            self._reached = self._workers.submit(position).result()[1]

    def reseed(self, seed: int) -> None:
        """Set the seed of the random numbers that the user's code draws in the workers."""
        self._workers.seed = seed

    def close(self) -> None:
        """Stop the worker processes."""
        self._workers.close()


def _join(parts: Sequence[TensorList]) -> TensorList:
    if len(parts) == 1:
        return parts[0]
    samples = [sample for part in parts for sample in part.samples()]
    return TensorList.from_samples(samples, parts[0].layout())


class FedByUser(_Positioned):
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
        self._fed: deque[TensorList] = deque()
        self._chosen: tuple[object, list[TensorList]] = None, []
        self._last: TensorList | None = None
        self._changed = queue.SimpleQueue[None]()  # an interrupt of the user's thread could leave a Condition locked
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
        self._fed.append(batch)
        self._changed.put(None)

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
        if self._chosen[0] is not batch:
            self._chosen = batch, []
        chosen = self._chosen[1]
        if not chosen and self._fed:
            chosen.extend(map(deque.popleft, (self._fed,)))  # one C call, so that an interrupt loses no batch
        return SourceBatch(tuple(chosen))

    def next(self, batch_size: int, prepared: SourceBatch | None) -> tuple[TensorList, ...]:
        """Return the batch that `prepare` has taken, or wait for a batch if `prepare` has returned None."""
        return self._check_outputs(self._take(batch_size, prepared), batch_size)

    def _take(self, batch_size: int, prepared: SourceBatch | None) -> tuple[TensorList, ...]:
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
        if self._repeat_last and self._last is not None and not self._fed:
            return None
        return wait_for_data(self._fed, self._changed, lambda: self._closed)

    def take_back(self, prepared: SourceBatch) -> None:
        """Put a batch that `prepare` has taken, but no run has used, back at the front of the queue."""
        if self._fed and prepared.outputs and self._fed[0] is prepared.outputs[0]:
            return  # an interrupted call has already returned the batch
        self._fed.extendleft(prepared.outputs)

    def close(self) -> None:
        """Make a run that waits for data raise an error."""
        self._closed = True
        self._changed.put(None)
