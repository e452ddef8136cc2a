"""Sources of batches that are not readers: the interface for an executor, and the source's view of its pipeline."""

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
    """The worker processes of a pipeline, as one source sees them."""

    count: int
    seed: int

    def submit(self, request: Any) -> Future[WorkResult]:
        """Let a process run the source's `work` on a request."""

    def close(self) -> None:
        """End the processes."""


@dataclass(frozen=True)
class SourceSettings:
    """Settings of the pipeline that a source needs.

    Attributes:
        workers: Processes, for a source that has `work` for them.
    """

    batch_size: int
    workers: SourceWorkers | None = None


@dataclass(frozen=True)
class SourceBatch:
    """The next batch of a source, taken in the user's thread for the scheduler thread.

    Attributes:
        outputs: One `TensorList` per output; empty if the source has ended.
        state: Position of the source after this batch.
        error: Raised in place of the outputs by the `Source.next` that gets this.
        is_repeated: The source failed and returns the same batch next time; the other sources must wait for it.
    """

    outputs: tuple[TensorList, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    error: Exception | None = None
    is_repeated: bool = False


class BatchSource:
    """A source of batches that is not a reader: the runtime side of a `source` operator.

    First comes `open`, once, before the pipeline's threads start; then for every batch `prepare`, in the user's thread,
    and `next`, in the thread that starts batches, with the result of `prepare`; `close` at any time, from any thread.

    Attributes:
        work: Work of worker processes, on the requests that this source submits; None without them.
        stateful: All requests must go to one process, in their order.
    """

    work: Work | None = None
    stateful: bool = False

    def open(self, settings: SourceSettings) -> None:
        """Learn of the pipeline."""

    def prepare(self, batch_size: int, batch: object) -> SourceBatch | None:
        """Take the next batch in the user's thread; None if `next` shall take it.

        Exceptions of the user's code are part of the result. Only an interrupt of the user's thread is raised, and then
        the same batch is asked for again.

        Args:
            batch_size: Most samples of it.
            batch: Identifies it, among all sources: a second call returns the same data.
        """
        return None

    def next(self, batch_size: int, prepared: SourceBatch | None) -> tuple[TensorList, ...]:
        """Return the next batch, one `TensorList` an output; raise StopIteration at the end."""
        raise NotImplementedError

    def take_back(self, prepared: SourceBatch) -> None:
        """Take back the work prepared for a batch after the end of the epoch; the second call does nothing."""

    def reset(self, epoch: object = None) -> None:
        """Start the next epoch.

        Args:
            epoch: Identifies it: the second call does nothing.
        """

    def reseed(self, seed: int) -> None:
        """Take another seed for random numbers of the user's code in worker processes, see `user_random`."""

    def state(self) -> dict[str, Any]:
        """Return the position, as JSON values."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a position."""

    def close(self) -> None:
        """Let go of everything, and make a `next` that waits fail."""


def wait_for_data(fed: deque[T], changed: queue.SimpleQueue[None], is_closed: Callable[[], bool]) -> T:
    """Wait until the user's thread has fed something, and return it.

    Args:
        fed: Fed batches, oldest first.
        changed: Gets a signal for each change.
        is_closed: Returns whether nothing will come any more.

    Raises:
        RuntimeError: the pipeline was closed.
    """
    while not is_closed():
        if fed:
            return fed.popleft()
        with contextlib.suppress(queue.Empty):
            changed.get(timeout=1.0)
    raise RuntimeError("the pipeline was closed while it waited for feed_input")
