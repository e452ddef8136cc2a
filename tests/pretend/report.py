"""Report of a mock accelerator: counts by line, and races."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from pathlib import Path

PROJECT = str(Path(__file__).resolve().parents[2])
OWN = tuple(str(Path(__file__).with_name(f"{name}.py")) for name in ("report", "streams", "tensor", "device"))


class Report:
    """Counts of operations that cost time on a GPU, by kind and source line, and races.

    Kinds: ``launch``; ``upload`` and ``download`` with the words pinned or pageable, and ``waiting`` where the host
    waits for the copy; ``sync`` for other waits of the host for a stream.
    """

    def __init__(self) -> None:
        self.sites: Counter[tuple[str, str]] = Counter()
        self.bytes: Counter[str] = Counter()
        self.operations: Counter[str] = Counter()
        self.races: Counter[str] = Counter()
        self._lock = threading.Lock()

    def count(self, kind: str, times: int = 1, nbytes: int = 0) -> None:
        with self._lock:
            self.sites[kind, line()] += times
            self.bytes[kind] += nbytes

    def race(self, text: str) -> None:
        with self._lock:
            self.races[f"{text} at {line()}"] += 1

    def total(self, *words: str) -> int:
        """Return the count of kinds whose name contains one of the words; of all kinds without a word."""
        with self._lock:
            seen = list(self.sites.items())
        return sum(n for (kind, _), n in seen if not words or any(word in kind.split() for word in words))

    @property
    def launches(self) -> int:
        return self.total("launch")

    @property
    def copies(self) -> int:
        return self.total("upload", "download")

    @property
    def waits(self) -> int:
        """Return how often the host waited for a stream, in a copy or otherwise."""
        return self.total("sync", "waiting")

    @property
    def pageable(self) -> int:
        return self.total("pageable")

    def clear(self) -> None:
        with self._lock:
            for counter in (self.sites, self.bytes, self.operations, self.races):
                counter.clear()  # type: ignore[attr-defined]

    def lines(self, *words: str) -> str:
        """Return the counted lines, most frequent first, for messages of failed tests."""
        found = [
            f"{n:6} {kind:26} {where}" for (kind, where), n in self.sites.most_common()
            if not words or any(word in kind.split() for word in words)
        ]
        return "\n".join(found)


def line() -> str:
    """Return the innermost running line of the project outside of the mock."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        ours = name.startswith(PROJECT) and "site-packages" not in name and name not in OWN
        if ours or name.startswith("<torchdali"):
            return f"{name.removeprefix(PROJECT).lstrip('/')}:{frame.f_lineno} {frame.f_code.co_name}"
        frame = frame.f_back  # type: ignore[assignment]
    return "elsewhere"
