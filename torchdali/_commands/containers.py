"""``torchdali index``, ``pack`` and ``check``."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from torchdali import containers

__all__ = ["check", "index", "pack"]

_EVERY = 0.1  # seconds between two drawings


class _Bar:
    """A progress bar on one line of a terminal; elsewhere nothing."""

    def __init__(self, unit: str) -> None:
        self._unit, self._terminal = unit, sys.stderr.isatty()
        self._began = self._drawn = time.monotonic()

    def __call__(self, done: int, count: int) -> None:
        now = time.monotonic()
        if not self._terminal or (now - self._drawn < _EVERY and done < count):
            return
        self._drawn = now
        share, rate = done / max(count, 1), done / max(now - self._began, 1e-6)
        bar = "#" * int(30 * share)
        text = f"\r  [{bar:30}] {share:4.0%}  {done:,} of {count:,} {self._unit}, {rate:,.0f}/s "
        print(text, end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the line."""
        if self._terminal:
            print(file=sys.stderr)


def index(kind: str, paths: Sequence[str], folder: str | None, force: bool) -> int:
    """Write indices, and return 1 if one could not be written."""
    status = 0
    for path in paths:
        bar = _Bar("bytes")
        try:
            target, count = containers.index(kind, path, folder, force, bar)
        except (RuntimeError, OSError) as error:
            bar.close()
            print(error, file=sys.stderr)
            status = 1
        else:
            bar.close()
            print(f"{target}: {count} samples")
    return status


def pack(source: str, target: str, jobs: int, options: dict[str, Any]) -> int:
    """Pack, and return 1 if that failed."""
    bar = _Bar("samples")
    try:
        report = containers.pack(source, target, containers.PackOptions(**options), jobs, bar)
    except (RuntimeError, OSError) as error:
        bar.close()
        print(error, file=sys.stderr)
        return 1
    bar.close()
    print(report)
    return 0


def check(paths: Sequence[str], decode: bool) -> int:
    """List what is broken, and return 1 if anything is."""
    bar = _Bar("bytes")
    try:
        problems, counts = containers.check(paths, decode, bar)
    except (RuntimeError, OSError) as error:
        bar.close()
        print(error, file=sys.stderr)
        return 1
    bar.close()
    for problem in problems:
        print(problem)
    unknown = f", {counts['unknown']} files of unknown kinds" if counts["unknown"] else ""
    print(f"{counts['samples']} samples in {counts['files']} files{unknown}: {len(problems)} problems")
    return int(bool(problems))
