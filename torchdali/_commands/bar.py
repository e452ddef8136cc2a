"""A progress bar for long commands."""

from __future__ import annotations

import sys
import time

__all__ = ["Bar"]

_INTERVAL = 0.1  # seconds between two drawings


class Bar:
    """A progress bar on stderr, on one line of a terminal. It prints nothing if stderr isn't a terminal."""

    def __init__(self, unit: str) -> None:
        self._unit, self._terminal = unit, sys.stderr.isatty()
        self._start = self._last_drawn = time.monotonic()

    def __call__(self, position: int, count: int) -> None:
        now = time.monotonic()
        if not self._terminal or (now - self._last_drawn < _INTERVAL and position < count):
            return
        self._last_drawn = now
        share, rate = position / max(count, 1), position / max(now - self._start, 1e-6)
        bar = "#" * int(30 * share)
        text = f"\r  [{bar:30}] {share:4.0%}  {position:,} of {count:,} {self._unit}, {rate:,.0f}/s "
        print(text, end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._terminal:
            print(file=sys.stderr)
