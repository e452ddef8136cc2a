"""Sources of batches that aren't readers: their interface, and the pipeline's settings that they need."""

from __future__ import annotations

import contextlib
import queue
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from torchdali.tensors import TensorList

__all__ = ["BatchSource", "SourceBatch", "SourceSettings", "SourceWorkers", "Work", "WorkResult", "wait_for_data"]

T = TypeVar("T")

WorkResult = tuple["tuple[TensorList, ...] | None", Mapping[str, Any]]
"""Result of a worker process: a batch an output (None at the end of the data), and the place after it."""

Work = Callable[[Any], WorkResult]
"""Answers a request, in a worker process."""


class SourceWorkers(Protocol):
    """The interface of a pipeline's worker processes for one source."""

    count: int
    seed: int

    def submit(self, request: Any) -> Future[WorkResult]:
        """Queue a request, for which a process runs the source's `work`."""

    def close(self) -> None:
        """End the processes."""


@dataclass(frozen=True)
class SourceSettings:
    """Settings of the pipeline that a source needs.

    Attributes:
        batch_size: Largest number of samples of a batch.
        workers: The worker processes, for a source with `work`.
    """

    batch_size: int
    workers: SourceWorkers | None = None


@dataclass(frozen=True)
class SourceBatch:
    """The next batch of a source, taken in the user's thread for the scheduler thread.

    Attributes:
        outputs: One `TensorList` per output; empty if the source has ended.
        state: Position of the source after this batch.
        error: The error that `next` raises for this batch.
        is_repeated: True if the source failed and will return the same batch again; other sources must wait for it.
    """

    outputs: tuple[TensorList, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    error: Exception | None = None
    is_repeated: bool = False


class BatchSource:
    """A source of batches that is not a reader: the runtime side of a `source` operator.

    The pipeline calls `open` once, before its threads start. For every batch, it calls `prepare` in the user's thread,
    and then `next` with the result of `prepare` in the thread that starts batches. Any thread may call `close`, at any
    time.

    Attributes:
        work: The function that worker processes run on this source's requests; None without worker processes.
        stateful: True if one process must run all requests, in order.
    """

    work: Work | None = None
    stateful: bool = False

    def open(self, settings: SourceSettings) -> None:
        """Store the pipeline's settings, and start work that must precede the pipeline's threads."""

    def prepare(self, batch_size: int, batch: object) -> SourceBatch | None:
        """Take the next batch in the user's thread; return None if `next` should take it.

        Exceptions of the user's code are part of the result. Only an interrupt of the user's thread is raised. After
        an interrupt, the same batch is requested again.

        Args:
            batch_size: Largest number of samples of the batch.
            batch: Object that identifies the batch for all sources: a second call with it returns the same data.
        """
        return None

    def next(self, batch_size: int, prepared: SourceBatch | None) -> tuple[TensorList, ...]:
        """Return the next batch, one `TensorList` per output; raise StopIteration at the end."""
        raise NotImplementedError

    def take_back(self, prepared: SourceBatch) -> None:
        """Take back the work prepared for a batch after the end of the epoch; the second call does nothing."""

    def reset(self, epoch: object = None) -> None:
        """Start the next epoch.

        Args:
            epoch: Object that identifies the epoch: a second call with it does nothing.
        """

    def reseed(self, seed: int) -> None:
        """Set the seed for random numbers of the user's code in worker processes, see `user_random`."""

    def state(self) -> dict[str, Any]:
        """Return the position, as JSON values."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a position."""

    def close(self) -> None:
        """Release all resources, and make a waiting `next` raise an error."""


def wait_for_data(fed: deque[T], changed: queue.SimpleQueue[None], is_closed: Callable[[], bool]) -> T:
    """Wait until the user's thread has fed something, and return it.

    Args:
        fed: Fed batches, oldest first.
        changed: Queue that receives a signal for each change.
        is_closed: Function that returns whether the source is closed.

    Raises:
        RuntimeError: The pipeline was closed.
    """
    while not is_closed():
        if fed:
            return fed.popleft()
        with contextlib.suppress(queue.Empty):
            changed.get(timeout=1.0)
    raise RuntimeError("the pipeline was closed while it waited for feed_input")
