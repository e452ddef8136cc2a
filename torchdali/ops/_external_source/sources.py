"""The runtime of `external_source`: where its batches come from, and its position.

`InProcess` calls the user's code in this process, as a rule in the thread that schedules the batch; `InWorkers` has
worker processes call it, ahead of time; `FedByUser` waits for `Pipeline.feed_input`.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import torch

from torchdali.ops._external_source.callbacks import BatchLoader, Position, SampleRange
from torchdali.ops._external_source.convert import Expected, to_batch
from torchdali.reading.sources import Source, SourceBatch, SourceSettings, WorkResult
from torchdali.tensors import TensorList
from torchdali.tensors._foreign import wait_for

__all__ = ["FedByUser", "InProcess", "InWorkers"]


class _Positioned(Source):
    """A source that keeps its position, and checks the batches that it delivers."""

    def __init__(self, expected: Sequence[Expected]) -> None:
        self._expected = expected
        self._epoch = self._iteration = self._sample = 0

    def _checked(self, batches: tuple[TensorList, ...], batch_size: int) -> tuple[TensorList, ...]:
        """Return the batch of each output, which must fit the declaration, the batches before, and each other."""
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

    def reset(self) -> None:
        """Start the next epoch: the numbers restart; an iterable goes on where it is."""
        self._epoch, self._iteration, self._sample = self._epoch + 1, 0, 0

    def state(self) -> dict[str, Any]:
        """Return the position of the next batch."""
        return {
            "epoch": self._epoch,
            "iteration": self._iteration,
            "sample": self._sample,
            **self._extra_state(),
        }

    def _extra_state(self) -> Mapping[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue at a position; an iterable restarts, and the items before it are skipped.

        Raises:
            ValueError: a position that cannot be.
        """
        for name, value in state.items():
            if type(value) is not int or value < 0:
                raise ValueError(f"{name!r} of a source is {value!r}")
        self._epoch, self._iteration = state["epoch"], state["iteration"]
        self._sample = state["sample"]
        self._go_to(Position(state.get("items", 0), state.get("stops", 0), state.get("starts", 0)))

    def _go_to(self, position: Position) -> None:
        """No-op: the caller of `feed_input` decides about the next batch."""


class InProcess(_Positioned):
    """Calls the user's code in this process.

    Args:
        background: Call it in the scheduler thread; otherwise in the thread that schedules the batch, as DALI does, so
            that state which the code shares with the user's loop does not race.
    """

    def __init__(self, loader: BatchLoader, expected: Sequence[Expected], *, background: bool = False) -> None:
        super().__init__(expected)
        self._loader, self._background = loader, background
        self._reached: Mapping[str, Any] = super().state()

    def prepare(self, batch_size: int) -> SourceBatch | None:
        """Take the next batch, unless it is for the scheduler thread."""
        return None if self._background else self._draw(batch_size)

    def next(self, batch_size: int, prepared: SourceBatch | None) -> tuple[TensorList, ...]:
        """Return the next batch of each output."""
        batch = prepared or self._draw(batch_size)
        self._reached = batch.state
        if batch.error is not None:
            raise batch.error
        return batch.outputs

    def _draw(self, batch_size: int) -> SourceBatch:
        try:
            columns = self._loader.data.draw(self._range(batch_size))
            self._advance(batch_size)
            with torch.no_grad():
                outputs = self._checked(self._loader.batches(columns), batch_size)
        except StopIteration as stop:
            # Without its traceback: the frames lead to those of the caller, whose variables hold the pipeline.
            return SourceBatch(state=super().state(), error=StopIteration(*stop.args))
        except Exception as error:
            return SourceBatch(state=super().state(), error=error)
        return SourceBatch(outputs, super().state())

    def reset(self) -> None:
        """Start the next epoch."""
        super().reset()
        self._reached = super().state()

    def state(self) -> dict[str, Any]:
        """Return the position after the last batch that `next` returned; those that are prepared count no more."""
        return dict(self._reached)

    def _extra_state(self) -> Mapping[str, Any]:
        return dict(vars(self._loader.data.position))  # of plain numbers

    def _go_to(self, position: Position) -> None:
        self._loader.data.go_to(position)
        self._reached = super().state()


class InWorkers(_Positioned):
    """Requests batches from worker processes, ahead of time.

    The samples of a batch are divided among the workers; an iterable stays in one of them.

    Args:
        depth: Batches made ahead of the one that is asked for.
    """

    def __init__(self, loader: BatchLoader, expected: Sequence[Expected], depth: int) -> None:
        super().__init__(expected)
        self.work, self.stateful = loader, loader.data.stateful
        self._divisible, self._depth = loader.data.divisible, depth
        self._ahead: deque[list[Future[WorkResult]]] = deque()
        self._reached: Mapping[str, Any] = {}

    def open(self, settings: SourceSettings) -> None:
        """Take the worker processes of the pipeline."""
        assert settings.workers is not None
        self._workers = settings.workers

    def next(self, batch_size: int, prepared: SourceBatch | None) -> tuple[TensorList, ...]:
        """Return the next batch of each output."""
        return self._checked(self._take(batch_size), batch_size)

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
        return tuple(map(_joined, zip(*parts, strict=True)))

    def _ask(self, samples: SampleRange) -> list[Future[WorkResult]]:
        pieces = min(samples.stop, 2 * self._workers.count) if self._divisible else 1
        cuts = [samples.stop * i // pieces for i in range(pieces + 1)]
        return [
            self._workers.submit(SampleRange(samples.epoch, samples.iteration, samples.sample, start, stop))
            for start, stop in itertools.pairwise(cuts)
        ]

    def _forget(self) -> None:
        """Drop the requests that an error or the end of the epoch makes useless.

        Items that a worker has drawn ahead from an iterable cannot be drawn again: they stay in line, and
        the items after the end belong to the next epoch.
        """
        if self.stateful:
            self._ahead.popleft()
        else:
            self._drop_ahead()

    def _drop_ahead(self) -> None:
        for future in (future for futures in self._ahead for future in futures):
            future.cancel()
        self._ahead.clear()

    def reset(self) -> None:
        """Start the next epoch."""
        super().reset()
        if not self.stateful:
            self._drop_ahead()

    def _extra_state(self) -> Mapping[str, Any]:
        return self._reached

    def _go_to(self, position: Position) -> None:
        self._drop_ahead()
        if self.stateful:
            self._reached = self._workers.submit(position).result()[1]

    def reseed(self, seed: int) -> None:
        """Take another seed for random numbers of the user's code."""
        self._workers.seed = seed

    def close(self) -> None:
        """End the workers."""
        self._workers.close()


def _joined(parts: Sequence[TensorList]) -> TensorList:
    if len(parts) == 1:
        return parts[0]
    samples = [sample for part in parts for sample in part.samples()]
    return TensorList.from_samples(samples, parts[0].layout())


class FedByUser(_Positioned):
    """Waits for `Pipeline.feed_input`.

    Args:
        layout: Layout of a sample, where the data do not say.
        repeat_last: Deliver the last batch again when no other was fed.
        blocking: Wait for data; otherwise a missing batch is an IndexError.
        copy: Copy the fed data.
    """

    def __init__(self, expected: Expected, layout: str, *, repeat_last: bool, blocking: bool, copy: bool) -> None:
        super().__init__([expected])
        self._layout, self._copy = layout, copy
        self._repeat_last, self._blocking = repeat_last, blocking
        self._fed: deque[TensorList] = deque()
        self._last: TensorList | None = None
        self._changed = threading.Condition()
        self._closed = False

    def open(self, settings: SourceSettings) -> None:
        """Learn how large a batch may be."""
        self._batch_size = settings.batch_size

    def feed(self, data: Any, layout: str | None = None, cuda_stream: Any = None) -> None:
        """Queue one batch (on the user's thread).

        Raises:
            RuntimeError: the data isn't a batch, or is larger than the pipeline's.
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
        with self._changed:
            self._fed.append(batch)
            self._changed.notify_all()

    def prepare(self, batch_size: int) -> SourceBatch | None:
        """Choose the batch now: a run must not depend on data that is fed after it."""
        if self._blocking:
            return None
        with self._changed:
            return SourceBatch((self._fed.popleft(),) if self._fed else ())

    def next(self, batch_size: int, prepared: SourceBatch | None) -> tuple[TensorList, ...]:
        """Return the batch that was chosen, or wait for one."""
        return self._checked(self._take(batch_size, prepared), batch_size)

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
        with self._changed:
            if self._repeat_last and self._last is not None and not self._fed:
                return None
            self._changed.wait_for(lambda: self._fed or self._closed)
            if self._closed:
                raise RuntimeError("the pipeline was closed while it waited for feed_input")
            return self._fed.popleft()

    def take_back(self, prepared: SourceBatch) -> None:
        """Queue a batch again that no run took, in front of the others."""
        with self._changed:
            self._fed.extendleft(prepared.outputs)

    def close(self) -> None:
        """Wake a waiting run."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
