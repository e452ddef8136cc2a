"""Who goes first: threads that take batches, and batches that pass steps with a state."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator

__all__ = ["Errands", "Exclusive", "Signal", "Turn"]


class Exclusive:
    """Refuses a second thread while one is inside."""

    def __init__(self) -> None:
        # Reentrant, since an interrupt may fall before the lock is released: its thread must get in again.
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(
                "another thread is taking a batch of this pipeline at this moment; batches have an order, so "
                "let one thread take them, or share a lock"
            )

    def __exit__(self, *exc: object) -> None:
        self._lock.release()


class Signal:
    """Says once, for good, that something is done: a `threading.Event` in a third of the time."""

    __slots__ = ("_is_set", "_shut")

    def __init__(self) -> None:
        self._is_set, self._shut = False, threading.Lock()
        self._shut.acquire()

    def is_set(self) -> bool:
        """Return whether it was said."""
        return self._is_set

    def set(self) -> None:
        """Say it; may be called again."""
        if not self._is_set:
            self._is_set = True
            self._open()

    def wait(self, timeout: float) -> bool:
        """Wait until it is said, for so many seconds at most; return whether it was."""
        if not self._is_set and self._shut.acquire(timeout=timeout):
            self._open()  # for whoever else waits
        return self._is_set

    def _open(self) -> None:
        with contextlib.suppress(RuntimeError):  # two at a time: it is open
            self._shut.release()


class Turn:
    """Lets batches through one at a time, in their order, without blocking a thread.

    Args:
        first: Index of the first batch.
    """

    def __init__(self, first: int = 0) -> None:
        self._lock = threading.Lock()
        self._next = first
        self._parked: dict[int, Callable[[], None]] = {}

    def enter(self, index: int, run: Callable[[], None]) -> None:
        """Run now if it is this batch's turn; otherwise when the one before it leaves."""
        with self._lock:
            if index != self._next:
                self._parked[index] = run
                return
        run()

    def leave(self) -> None:
        """Give the turn to the next batch."""
        with self._lock:
            self._next += 1
            run = self._parked.pop(self._next, None)
        if run is not None:
            run()


class Errands:
    """What a waiting thread does itself, some of it left there by others.

    Attributes:
        torn: An interrupt fell into an errand: nobody knows how far it came.
    """

    def __init__(self) -> None:
        self.torn = False
        self._left: deque[Callable[[], None]] = deque()
        self._arrived = threading.Event()

    def put(self, errand: Callable[[], None]) -> None:
        """Leave an errand for the thread that waits."""
        self._left.append(errand)
        self._arrived.set()

    @contextlib.contextmanager
    def own(self) -> Iterator[None]:
        """Enclose what the waiting thread does."""
        self.torn = True
        yield
        self.torn = False

    def run_next(self, timeout: float) -> None:
        """Run the errand that was left first, or wait for one."""
        if not self._left:
            self._arrived.clear()
            if not self._left:  # put() may have come in between
                self._arrived.wait(timeout)
            return
        with self.own():
            self._left.popleft()()
