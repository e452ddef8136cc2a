"""Synchronization primitives: stages in order, one caller at a time, tasks for the waiting thread."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator

__all__ = ["CallerQueue", "Sequencer", "SingleCaller"]


class SingleCaller:
    """A lock that raises an error instead of waiting."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def lock(self) -> threading.Lock:
        """Return the lock for a `with` statement of the caller; its C code can't be interrupted and leave it held.

        Raises:
            RuntimeError: Another thread holds the lock.
        """
        if self._lock.locked():
            raise RuntimeError(
                "another thread is taking a batch of this pipeline at this moment; batches have an order, so "
                "let one thread take them, or share a lock"
            )
        return self._lock


class Sequencer:
    """Admits batches one at a time, in order, without blocking a thread.

    Args:
        first: Index of the first batch.
    """

    def __init__(self, first: int = 0) -> None:
        self._lock = threading.Lock()
        self._next = first
        self._parked: dict[int, Callable[[], None]] = {}

    def enter(self, index: int, run: Callable[[], None]) -> None:
        """Call `run` now if it is this batch's turn; otherwise, `leave` of the previous batch calls it."""
        with self._lock:
            # A previous batch is still inside. The thread that calls its `leave` also calls `run`, so this thread is
            # free for other work.
            if index != self._next:
                self._parked[index] = run
                return
        # Without the lock: `run` may take long, and enters other sequencers.
        run()

    def leave(self) -> None:
        """Admit the next batch: if it is already waiting, run it in this thread."""
        with self._lock:
            self._next += 1
            # Under the lock: either the next batch is already waiting and runs below, or its `enter` runs it.
            run = self._parked.pop(self._next, None)
        if run is not None:
            run()


class CallerQueue:
    """Tasks from other threads for a waiting thread.

    Attributes:
        interrupted: True if a task was interrupted, so that its batch is in an unknown state.
    """

    def __init__(self) -> None:
        self.interrupted = False
        self._tasks: deque[Callable[[], None]] = deque()
        self._arrived: queue.SimpleQueue[None] = queue.SimpleQueue()

    def put(self, task: Callable[[], None]) -> None:
        """Add a task for the waiting thread."""
        # In this order: when the waiting thread wakes up, it must find the task.
        self._tasks.append(task)
        self._arrived.put(None)

    @contextlib.contextmanager
    def own(self) -> Iterator[None]:
        """Mark a task of the waiting thread: `interrupted` stays set if an exception ends it."""
        self.interrupted = True
        yield
        self.interrupted = False

    def run_next(self, timeout: float) -> None:
        """Wait for a task, and run the oldest task."""
        with contextlib.suppress(queue.Empty):
            self._arrived.get(timeout=timeout)
        if self._tasks:  # after an interrupt there may be more tasks than signals
            with self.own():
                self._tasks.popleft()()
