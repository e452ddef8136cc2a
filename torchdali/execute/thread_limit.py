"""The number of a pipeline's threads that work on a chain at once.

Python runs in one thread at a time, and every call of torch lets another thread try. Threads with samples of a
millisecond hardly notice; with samples of some ten microseconds they mostly wake and wait for each other, and one
alone is faster. Where that turns depends on operators, images and machine, so it is found by trial: now and then a few
batches run with half or twice the threads, and the faster number stays.
"""

from __future__ import annotations

import sys
import threading

__all__ = ["ThreadLimit"]

_FAST = 3000.0  # samples/s that the processor time would allow; below, the GIL is not the limit
_FAST_IDLE = 1500.0  # the same where threads wait for each other: to wake them is processor time too
_IDLE = 0.8  # processor time over time, below which they do
_ROUND, _ROUND_SECONDS = 64, 0.02  # samples and processor time that a measurement takes at least
_WORTH = 1.05  # by so much must more threads be faster: they take more processor time
_FIRST_PAUSE, _PAUSE_AT_END, _LONGEST_PAUSE = 2, 8, 256  # rounds between trials; the first one warms up


class ThreadLimit:
    """The most threads for the samples of one chain.

    Args:
        threads: Of the pipeline.

    Attributes:
        now: For the next batch.
    """

    def __init__(self, threads: int) -> None:
        self.now = threads
        self._threads, self._lock = threads, threading.Lock()
        self._fixed = threads == 1 or not getattr(sys, "_is_gil_enabled", lambda: True)()
        self._before: tuple[int, float] | None = None  # limit and speed before the trial in progress
        self._fewer = True  # the direction of the next trial
        self._pause = self._left = _FIRST_PAUSE
        self._begin()

    def _begin(self) -> None:
        self._samples = -1  # the first batch overlaps with those before the change
        self._seconds = self._cpu_seconds = 0.0

    def note(self, limit: int, samples: int, seconds: float, cpu_seconds: float) -> None:
        """Take notice of a batch; called by the thread that finished it.

        Args:
            limit: That it ran with.
            samples: That it had.
            seconds: That its threads took, together.
            cpu_seconds: Of these, those of the processor.
        """
        if self._fixed:
            return
        with self._lock:  # batches in flight end in several threads
            if limit != self.now:
                return
            if self._samples < 0:
                self._samples = 0
                return
            self._samples += samples
            self._seconds += seconds
            self._cpu_seconds += cpu_seconds
            if self._samples >= _ROUND and self._cpu_seconds >= _ROUND_SECONDS:
                self._decide()
                self._begin()

    def _decide(self) -> None:
        """Choose the limit of the next round."""
        speed = self.now * self._samples / max(self._seconds, 1e-9)
        if self._before is not None:
            self._settle(*self._before, speed)
            return
        waits = self._cpu_seconds < _IDLE * self._seconds
        fast = _FAST_IDLE if waits or self.now < self._threads else _FAST
        if self._threads * self._samples < fast * self._cpu_seconds:
            self.now = self._threads
            return
        self._left -= 1
        if self._left <= 0:
            self._fewer = self.now == self._threads or (self._fewer and self.now > 1)
            self._before = self.now, speed
            self.now = max(1, self.now // 2) if self._fewer else min(self._threads, self.now * 2)

    def _settle(self, limit: int, known: float, speed: float) -> None:
        """Keep the limit that was tried, or return to the one before."""
        self._before = None
        if speed * _WORTH > known if self.now < limit else speed > known * _WORTH:
            # Go on in this direction; at its end, there is only the number that was left just now.
            self._pause = self._left = _PAUSE_AT_END if self.now in (1, self._threads) else 1
            return
        self.now, self._fewer = limit, not self._fewer
        self._pause = self._left = min(2 * self._pause, _LONGEST_PAUSE)
