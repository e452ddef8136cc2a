"""The runtime of `external_source`: where its batches come from, and the place in them.

`Pulled` asks the user's code in this process; `Remote` asks worker processes, ahead of time; `Fed` waits for
`Pipeline.feed_input`.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import torch

from torchdali.operator import Made, Source, SourceSettings
from torchdali.ops._source_calls import Maker, Part, Place
from torchdali.ops._source_data import Expected, to_batch
from torchdali.tensors import TensorList
from torchdali.tensors._foreign import wait_for

__all__ = ["Fed", "Pulled", "Remote"]


class _Placed(Source):
    """A source that knows its place, and checks what it delivers."""

    def __init__(self, expected: Sequence[Expected]) -> None:
        self._expected = expected
        self._epoch = self._iteration = self._sample = 0

    def next(self, batch_size: int) -> tuple[TensorList, ...]:
        """Return the next batch of each output."""
        batches = self._take(batch_size)
        sizes = [len(batch) for batch in batches]
        if max(sizes) > batch_size:
            raise RuntimeError(
                f"the source gave a batch of {max(sizes)} samples; the pipeline's batch_size is {batch_size}"
            )
        if len(set(sizes)) > 1:
            raise RuntimeError(f"batch size clash: the outputs of the source have {sizes} samples")
        for batch, expected in zip(batches, self._expected, strict=True):
            expected.check(batch)
        return batches

    def _take(self, batch_size: int) -> tuple[TensorList, ...]:
        raise NotImplementedError

    def _part(self, batch_size: int, ahead: int = 0) -> Part:
        first = self._sample + ahead * batch_size
        return Part(self._epoch, self._iteration + ahead, first, 0, batch_size)

    def _advance(self, batch_size: int) -> None:
        self._iteration += 1
        self._sample += batch_size

    def reset(self) -> None:
        """Start the next epoch: the numbers restart; an iterable goes on where it is."""
        self._epoch, self._iteration, self._sample = self._epoch + 1, 0, 0

    def state(self) -> dict[str, Any]:
        """Return the place of the next batch."""
        return {
            "epoch": self._epoch,
            "iteration": self._iteration,
            "sample": self._sample,
            **self._place(),
        }

    def _place(self) -> Mapping[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue at a place; an iterable starts anew, and what comes before is skipped."""
        self._epoch, self._iteration = state["epoch"], state["iteration"]
        self._sample = state["sample"]
        self._go_to(Place(state.get("items", 0), state.get("stops", 0)))

    def _go_to(self, place: Place) -> None:
        """Do nothing: who feeds goes on by himself."""


class Pulled(_Placed):
    """Asks the user's code, on the thread that starts the batches."""

    def __init__(self, maker: Maker, expected: Sequence[Expected]) -> None:
        super().__init__(expected)
        self._maker = maker

    def _take(self, batch_size: int) -> tuple[TensorList, ...]:
        columns = self._maker.data.draw(self._part(batch_size))
        self._advance(batch_size)
        return self._maker.batches(columns)

    def _place(self) -> Mapping[str, Any]:
        place = self._maker.data.place
        return {"items": place.items, "stops": place.stops}

    def _go_to(self, place: Place) -> None:
        self._maker.data.go_to(place)


class Remote(_Placed):
    """Asks worker processes, and keeps the next batches coming.

    The samples of a batch are divided among the workers; an iterable stays in one of them.

    Args:
        depth: Batches made ahead of the one that is asked for.
    """

    def __init__(self, maker: Maker, expected: Sequence[Expected], depth: int) -> None:
        super().__init__(expected)
        self.work, self.stateful = maker, maker.data.stateful
        self._divisible, self._depth = maker.data.divisible, depth
        self._ahead: deque[list[Future[Made]]] = deque()
        self._reached: Mapping[str, Any] = {}

    def open(self, settings: SourceSettings) -> None:
        """Learn which workers to ask."""
        assert settings.workers is not None
        self._workers = settings.workers

    def _take(self, batch_size: int) -> tuple[TensorList, ...]:
        while len(self._ahead) <= self._depth:
            self._ahead.append(self._ask(self._part(batch_size, len(self._ahead))))
        try:
            made = [future.result() for future in self._ahead[0]]
        except BaseException:
            self._forget()
            raise
        self._reached = made[-1][1]
        parts = [batches for batches, _ in made if batches is not None]
        if len(parts) < len(made):
            self._forget()
            raise StopIteration
        self._ahead.popleft()
        self._advance(batch_size)
        return tuple(map(_joined, zip(*parts, strict=True)))

    def _ask(self, part: Part) -> list[Future[Made]]:
        pieces = min(part.stop, 2 * self._workers.count) if self._divisible else 1
        cuts = [part.stop * i // pieces for i in range(pieces + 1)]
        return [
            self._workers.submit(Part(part.epoch, part.iteration, part.sample, start, stop))
            for start, stop in itertools.pairwise(cuts)
        ]

    def _forget(self) -> None:
        """Drop what an error or the end of the epoch makes useless.

        What a worker has drawn ahead from an iterable cannot be drawn again: it stays in line, and what
        follows the end in it is the next epoch.
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

    def _place(self) -> Mapping[str, Any]:
        return self._reached

    def _go_to(self, place: Place) -> None:
        self._drop_ahead()
        if self.stateful:
            self._reached = self._workers.submit(place).result()[1]

    def close(self) -> None:
        """End the workers."""
        self._workers.close()


def _joined(parts: Sequence[TensorList]) -> TensorList:
    if len(parts) == 1:
        return parts[0]
    samples = [sample for part in parts for sample in part.samples()]
    return TensorList.from_samples(samples, parts[0].layout())


class Fed(_Placed):
    """Waits for `Pipeline.feed_input`.

    Args:
        layout: Of a sample, where the data do not say.
        repeat_last: Deliver the last batch again when no other was fed.
        blocking: Wait for data; otherwise a missing batch is an IndexError.
        copy: Take a copy of what is fed.
    """

    def __init__(
        self, expected: Expected, layout: str, *, repeat_last: bool, blocking: bool, copy: bool
    ) -> None:
        super().__init__([expected])
        self._layout, self._copy = layout, copy
        self._repeat_last, self._blocking = repeat_last, blocking
        self._fed: deque[TensorList] = deque()
        self._planned: deque[TensorList | None] = deque()
        self._last: TensorList | None = None
        self._changed = threading.Condition()
        self._closed = False

    def open(self, settings: SourceSettings) -> None:
        """Learn how large a batch may be."""
        self._batch_size = settings.batch_size

    def feed(self, data: Any, layout: str | None = None, cuda_stream: Any = None) -> None:
        """Queue one batch (on the user's thread).

        Raises:
            RuntimeError: data that is no batch, or a larger one than the pipeline's.
        """
        if isinstance(getattr(data, "device", None), torch.device):
            wait_for(cuda_stream, data.device)
        batch = to_batch(data, layout or self._layout, copy=self._copy)
        if len(batch) > self._batch_size:
            raise RuntimeError(
                f"a batch of {len(batch)} samples was fed; the pipeline's batch_size is {self._batch_size}"
            )
        with self._changed:
            self._fed.append(batch)
            self._changed.notify_all()

    def schedule(self) -> None:
        """Choose the batch now: a run must not depend on what is fed after it."""
        with self._changed:
            if not self._blocking:
                self._planned.append(self._fed.popleft() if self._fed else None)

    def _take(self, batch_size: int) -> tuple[TensorList, ...]:
        with self._changed:
            if not self._planned:  # a run in debug mode, or one that waits
                self.schedule()
            batch = self._wait() if self._blocking else self._planned.popleft()
        if batch is None:
            if not self._repeat_last or self._last is None:
                raise IndexError(
                    "the external_source has no data: call feed_input once for every run, and "
                    "Pipeline.input_feed_count() times before the first"
                )
            batch = self._last
        self._last = batch
        self._advance(batch_size)
        return (batch,)

    def _wait(self) -> TensorList | None:
        if self._repeat_last and self._last is not None and not self._fed:
            return None
        self._changed.wait_for(lambda: self._fed or self._closed)
        if self._closed:
            raise RuntimeError("the pipeline was closed while it waited for feed_input")
        return self._fed.popleft()

    def reset(self) -> None:
        """Start the next epoch with what the runs after the end did not take."""
        super().reset()
        with self._changed:
            self._fed.extendleft(b for b in reversed(self._planned) if b is not None)
            self._planned.clear()

    def close(self) -> None:
        """Wake a waiting run."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
