"""Synchronization of threads: process batches in order, allow a single caller, and pass tasks to a waiting thread."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator

__all__ = ["CallerQueue", "Sequencer", "SingleCaller"]


class SingleCaller:
    """A lock that raises an error instead of waiting if another thread holds the lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def lock(self) -> threading.Lock:
        """Return the lock, for a `with` statement of the caller.

        A context manager written in Python isn't used, because an interrupt could prevent it from releasing the lock.

        Raises:
            RuntimeError: Another thread holds the lock.
        """
        if self._lock.locked():
            raise RuntimeError(
                "another thread is taking a batch of this pipeline; take batches in one thread, or protect the calls "
                "with a lock"
            )
        return self._lock


class Sequencer:
    """Admits batches one at a time, in order, without blocking a thread.

    Args:
        first: Index of the batch that is admitted first.
    """

    def __init__(self, first: int = 0) -> None:
        self._lock = threading.Lock()
        self._next = first
        self._parked: dict[int, Callable[[], None]] = {}

    def enter(self, index: int, run: Callable[[], None]) -> None:
        """Call `run` immediately if it is this batch's turn.

        Otherwise, the thread that calls `leave` for the previous batch calls `run`.
        """
        with self._lock:
            # If it isn't this batch's turn, the batch now belongs to the thread that calls `leave` for the previous
            # batch.
            if index != self._next:
                self._parked[index] = run
                return
        # `run` is called without the lock, because `run` may take long and may enter other sequencers.
        run()

    def leave(self) -> None:
        """Admit the next batch. If it is already waiting, run it in this thread."""
        with self._lock:
            self._next += 1
            # If the next batch isn't waiting yet, `enter` runs it later.
            run = self._parked.pop(self._next, None)
        if run is not None:
            run()


class CallerQueue:
    """Tasks that other threads pass to a waiting thread, which runs them.

    Attributes:
        interrupted: True if an exception has ended a task before its end.
    """

    def __init__(self) -> None:
        self.interrupted = False
        self._tasks: deque[Callable[[], None]] = deque()
        self._arrived: queue.SimpleQueue[None] = queue.SimpleQueue()

    def put(self, task: Callable[[], None]) -> None:
        """Add a task for the waiting thread."""
        # Append first: the signal wakes the waiting thread, which must then find the task.
        self._tasks.append(task)
        self._arrived.put(None)

    @contextlib.contextmanager
    def as_task(self) -> Iterator[None]:
        """Run a `with` block as a task of the waiting thread. If an exception ends the block, set `interrupted`."""
        self.interrupted = True
        yield
        self.interrupted = False

    def run_next(self, timeout: float) -> None:
        """Wait for a task, and run the oldest task. Return after `timeout` seconds without a task."""
        with contextlib.suppress(queue.Empty):
            self._arrived.get(timeout=timeout)
        # After an interrupt, `_tasks` may have more entries than `_arrived`.
        if self._tasks:
            with self.as_task():
                self._tasks.popleft()()
