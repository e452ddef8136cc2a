"""The actor that runs a pipeline."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from torchdali.pipeline import Pipeline
from torchdali.plugin.ray._sending import Sent, portable, sent

__all__ = ["Place", "PipelineActor"]

Place = dict[str, Any]


class PipelineActor:
    """Runs a pipeline in an actor; its calls are answered in their order.

    Args:
        make: Makes the pipeline.
    """

    def __init__(self, make: Callable[[], Pipeline]) -> None:
        self._make = make
        self._era, self._drawn = 0, 0  # the place that numbers count from, the next number
        # Written by the actor's event loop, read by the one thread below; a deque needs no lock for that.
        self._waiting: deque[tuple[int, Place, int]] = deque()
        self._flying = 0
        self._thread = ThreadPoolExecutor(1)

    async def hello(self) -> dict[str, Any]:
        """Make the pipeline, and return what the loader must know of it."""
        # Not in the constructor: errors of calls arrive as they are, and not as those of a dead actor.
        self._pipe = pipe = self._make()
        pipe.build()
        return {
            "place": pipe.state_dict(),
            "readers": pipe.reader_meta(),
            "batch_size": pipe.max_batch_size,
            "restored": pipe.is_restored_from_checkpoint,
            "context": dict(pipe.external_context),
        }

    async def answer(self) -> int:
        """Return at once, also while a batch is computed: the number of the process."""
        return os.getpid()

    async def batch(self, era: int, place: Place, number: int) -> tuple[Exception | None, list[Sent], Place]:
        """Return batch `number`, counted from a place, or its error; and the place after it."""
        self._waiting.append((era, place, number))
        return await asyncio.wrap_future(self._thread.submit(self._take))

    def _take(self) -> tuple[Exception | None, list[Sent], Place]:
        self._schedule()
        try:
            outputs, error = [sent(each) for each in self._pipe.outputs()], None
        except Exception as caught:
            outputs, error = [], portable(caught)
        self._flying -= 1
        place = self._pipe.state_dict()  # first: the next batch may make the pipeline go back
        self._schedule()  # before this batch is pickled
        return error, outputs, place

    def _schedule(self) -> None:
        """Start the batches that wait, as long as their numbers go up: then the pipeline need not go back."""
        while self._waiting:
            era, place, number = self._waiting[0]
            if self._flying and (era != self._era or number < self._drawn):
                return
            self._waiting.popleft()
            if era != self._era or number < self._drawn:
                self._pipe.load_state_dict(place)
                self._era, self._drawn = era, 0
            self._pipe.skip(number - self._drawn)
            self._pipe.submit()
            self._drawn, self._flying = number + 1, self._flying + 1
