"""Who goes first: threads that take batches, and batches that pass steps with a state."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["Exclusive", "Turn"]


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


class Turn:
    """Lets batches through one at a time, in their order, without blocking a thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 0
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
