"""The interface of sources, the objects other than readers that provide batches to a pipeline.

The user's thread calls the pipeline's methods. The scheduler thread, which belongs to the pipeline, starts the batches.
"""

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
"""Result of a worker process: one batch per output, and the source's position after the batch.

At the end of the data, None replaces the batches.
"""

Work = Callable[[Any], WorkResult]
"""Function that a worker process calls with each request."""


class SourceWorkers(Protocol):
    """The worker processes of a pipeline for one source."""

    count: int
    seed: int

    def submit(self, request: Any) -> Future[WorkResult]:
        """Queue a request. A worker process calls the source's function `work` with the request."""

    def close(self) -> None:
        """Stop the processes."""


@dataclass(frozen=True)
class SourceSettings:
    """Settings of the pipeline that a source needs.

    Attributes:
        batch_size: Maximum number of samples in a batch.
        workers: The worker processes, if the source has the attribute `work`; otherwise None.
    """

    batch_size: int
    workers: SourceWorkers | None = None


@dataclass(frozen=True)
class SourceBatch:
    """The next batch of a source, taken in the user's thread and passed to the scheduler thread.

    Attributes:
        outputs: One `TensorList` per output; empty if the source has no more batches.
        state: Position of the source after this batch.
        error: Exception that `next` must raise for this batch.
        is_repeated: True if the source raised an exception and will return the same batch again. The pipeline's other
            sources must then also return their batches again.
    """

    outputs: tuple[TensorList, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    error: Exception | None = None
    is_repeated: bool = False


class BatchSource:
    """A source of batches that is not a reader.

    A `source` operator creates this object when the pipeline is built. The pipeline calls `open` once, before it starts
    its threads. For each batch, the pipeline calls `prepare` in the user's thread, and then passes the result to `next`
    in the scheduler thread. Any thread may call `close` at any time.

    Attributes:
        work: Function that worker processes call with this source's requests; None without worker processes.
        stateful: True if a single process must handle all requests, in order.
    """

    work: Work | None = None
    stateful: bool = False

    def open(self, settings: SourceSettings) -> None:
        """Store the pipeline's settings, and do the work that must precede the start of the pipeline's threads."""

    def prepare(self, batch_size: int, batch: object) -> SourceBatch | None:
        """Take the next batch in the user's thread; return None if `next` should take the batch.

        Exceptions of the user's code are returned in the result. Only an interrupt (Ctrl-C) is raised; the same batch
        is then requested again.

        Args:
            batch_size: Maximum number of samples in the batch.
            batch: Object that identifies the batch. If `prepare` is called again with the same object, `prepare`
                must return the same data.
        """
        return None

    def next(self, batch_size: int, prepared: SourceBatch | None) -> tuple[TensorList, ...]:
        """Return the next batch, one `TensorList` per output; raise StopIteration at the end."""
        raise NotImplementedError

    def take_back(self, prepared: SourceBatch) -> None:
        """Put an unused batch back into the source after the end of the epoch.

        A second call with the same batch must have no effect.
        """

    def reset(self, epoch: object = None) -> None:
        """Start the next epoch.

        Args:
            epoch: Object that identifies the epoch. A second call with the same object must have no effect.
        """

    def reseed(self, seed: int) -> None:
        """Set the seed of the random numbers that the user's code draws in worker processes.

        See `user_random`.
        """

    def state(self) -> dict[str, Any]:
        """Return the position, as JSON values."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue at a position that `state` returned."""

    def close(self) -> None:
        """Release all resources. If a thread is waiting in `next`, make `next` raise an error."""


def wait_for_data(fed: deque[T], changed: queue.SimpleQueue[None], is_closed: Callable[[], bool]) -> T:
    """Wait until the user's thread has fed a batch, and return the oldest batch.

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
