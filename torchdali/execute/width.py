"""How many of a pipeline's threads share the samples of a chain.

Python runs in one thread at a time, and every call of torch lets the others try. Two threads with samples of a
millisecond hardly notice; with samples of some ten microseconds they mostly wake and wait for each other, and one
of them alone is faster. Where that turns depends on the operators, the images and the machine, so it is found by
trial: now and then a few batches run with half or twice the threads, and the faster number stays.
"""

from __future__ import annotations

import sys
import threading

__all__ = ["Width"]

_FAST = 3000.0  # samples/s; below, Python is not the limit, and all threads are used
_ROUND = 256  # samples that a measurement takes
_WORTH = 1.15  # by so much must more threads be faster; else they only take the time of others
_FIRST_PAUSE, _LONGEST_PAUSE = 2, 256  # rounds between trials


class Width:
    """The number of threads for a chain.

    Args:
        threads: Of the pipeline: the most.

    Attributes:
        now: For the next batch.
    """

    def __init__(self, threads: int) -> None:
        self.now = threads
        self._threads, self._lock = threads, threading.Lock()
        self._fixed = threads == 1 or not getattr(sys, "_is_gil_enabled", lambda: True)()
        self._known: tuple[int, float] | None = None  # width and speed before the trial in progress
        self._narrower = True  # the direction of the next trial
        self._pause = self._left = _FIRST_PAUSE
        self._begin()

    def _begin(self) -> None:
        self._samples = -1  # the first batch overlaps with those before the change
        self._seconds = 0.0

    def note(self, width: int, samples: int, seconds: float) -> None:
        """Take notice of a batch.

        Args:
            width: That it ran with.
            samples: That it had.
            seconds: That its threads took together.
        """
        if self._fixed:
            return
        with self._lock:
            if width == self.now:
                self._count(samples, seconds)

    def _count(self, samples: int, seconds: float) -> None:
        if self._samples < 0:
            self._samples = 0
            return
        self._samples += samples
        self._seconds += seconds
        if self._samples >= _ROUND:
            self._decide(self._seconds / self._samples)
            self._begin()

    def _decide(self, cost: float) -> None:
        """Choose the width for the next round, from the seconds of one thread a sample in this one."""
        speed = self.now / cost
        if self._known is not None:
            self._settle(speed)
        elif speed < _FAST:
            self.now = self._threads
        else:
            self._left -= 1
            if self._left <= 0:
                self._known = self.now, speed
                self.now = self._other()

    def _settle(self, speed: float) -> None:
        """Keep the width that was tried, or return to the one before."""
        assert self._known is not None
        width, known = self._known
        if speed >= (known * _WORTH if self.now > width else known / _WORTH):
            self._pause = self._left = 1  # go on in this direction
        else:
            self.now = width
            self._narrower = not self._narrower
            self._pause = self._left = min(2 * self._pause, _LONGEST_PAUSE)
        self._known = None

    def _other(self) -> int:
        """Return a width to try."""
        if self.now == 1:
            self._narrower = False
        elif self.now == self._threads:
            self._narrower = True
        return max(1, self.now // 2) if self._narrower else min(self._threads, self.now * 2)
