"""Synchronisation primitives: in-order stages, one caller at a time, tasks for the calling thread."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator

__all__ = ["CallerQueue", "Sequencer", "SingleCaller"]


class SingleCaller:
    """A lock that raises instead of waiting: one thread may be inside at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def lock(self) -> threading.Lock:
        """Return the lock, for a `with` statement of the caller: written in C, it can't be left held by an interrupt.

        Raises:
            RuntimeError: another thread holds it.
        """
        if self._lock.locked():
            raise RuntimeError(
                "another thread is taking a batch of this pipeline at this moment; batches have an order, so "
                "let one thread take them, or share a lock"
            )
        return self._lock


class Sequencer:
    """Lets batches through one at a time, in order, without blocking a thread.

    Args:
        first: Index of the first batch.
    """

    def __init__(self, first: int = 0) -> None:
        self._lock = threading.Lock()
        self._next = first
        self._parked: dict[int, Callable[[], None]] = {}

    def enter(self, index: int, run: Callable[[], None]) -> None:
        """Run now if it is this batch's turn; otherwise in the thread in which the batch before it exits."""
        with self._lock:
            # The batch before it is still inside. Whoever it leaves with runs ours; this thread is free for other
            # work.
            if index != self._next:
                self._parked[index] = run
                return
        # Outside of the lock: it may take long, and enters further sequencers.
        run()

    def leave(self) -> None:
        """Let the next batch in; run what it parked, in this thread."""
        with self._lock:
            self._next += 1
            # Under the lock: a batch either parked before this line, and is run below, or will find that it is next.
            run = self._parked.pop(self._next, None)
        if run is not None:
            run()


class CallerQueue:
    """Tasks that other threads leave for a thread that waits.

    Attributes:
        interrupted: A task was interrupted; its batch is in an unknown state.
    """

    def __init__(self) -> None:
        self.interrupted = False
        self._tasks: deque[Callable[[], None]] = deque()
        self._arrived: queue.SimpleQueue[None] = queue.SimpleQueue()

    def put(self, task: Callable[[], None]) -> None:
        """Leave a task for the thread that waits."""
        # In this order: the waiting thread, once woken, must find the task.
        self._tasks.append(task)
        self._arrived.put(None)

    @contextlib.contextmanager
    def own(self) -> Iterator[None]:
        """Mark a task of the waiting thread: `interrupted` stays set if an exception ends it."""
        self.interrupted = True
        yield
        self.interrupted = False

    def run_next(self, timeout: float) -> None:
        """Wait for a task, and run the oldest."""
        with contextlib.suppress(queue.Empty):
            self._arrived.get(timeout=timeout)
        if self._tasks:  # after an interrupt there may be more tasks than signals
            with self.own():
                self._tasks.popleft()()
