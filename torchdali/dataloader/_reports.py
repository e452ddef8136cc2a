"""Reports on loaders: the time that a loop waited, and the number of workers that is fastest."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torchdali.cores import cores
from torchdali.dataloader._states import Progress

__all__ = ["LoaderStats", "WorkerReport", "measure_workers", "note_loop", "summary"]


@dataclass(frozen=True)
class LoaderStats:
    """Time of a loop over a loader.

    Attributes:
        batches: Delivered so far in this loop.
        seconds: Since it began.
        waited: Seconds of these in which it waited for data.
        notes: See `DataLoader.notes`.
        pipeline: What `Pipeline.stats` returns, if a pipeline makes the samples.
    """

    batches: int
    seconds: float
    waited: float
    notes: tuple[str, ...]
    pipeline: Any = None

    @classmethod
    def of(cls, progress: Progress | None, notes: tuple[str, ...], pipeline: Any) -> LoaderStats:
        """Return the times of a loop."""
        if progress is None or not progress.ended:
            return cls(0, 0.0, 0.0, notes, pipeline)
        return cls(progress.batches, progress.ended - progress.began, progress.waited, notes, pipeline)

    @property
    def share(self) -> float:
        """Part of the time in which the loop waited."""
        return self.waited / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        head = f"{self.batches} batches in {self.seconds:.1f} s, of which the loop waited {self.share:.0%} for data"
        return "\n".join([head, *self.notes, *([str(self.pipeline)] if self.pipeline is not None else [])])


@dataclass(frozen=True)
class WorkerReport:
    """Rates with different numbers of workers.

    Attributes:
        rates: Batches a second by ``num_workers``.
        present: The number that the loader has.
    """

    rates: dict[int, float]
    present: int

    @property
    def best(self) -> int:
        """The least number of workers that comes within 3 % of the highest rate."""
        highest = max(self.rates.values())
        return min(number for number, rate in self.rates.items() if rate >= 0.97 * highest)

    def __str__(self) -> str:
        lines = [
            f"num_workers={number}: {rate:.1f} batches a second{'  (now)' if number == self.present else ''}"
            for number, rate in sorted(self.rates.items())
        ]
        return "\n".join([*lines, f"fastest: num_workers={self.best}"])


class _Loops:
    """Loops of one loader."""

    def __init__(self, name: str, accelerated: bool, why: str) -> None:
        self.name, self.accelerated, self.why = name, accelerated, why
        self.progress: list[Progress] = []

    @property
    def reason(self) -> str:
        """Why it was left to torch."""
        return self.why.removeprefix("left to torch: ").removeprefix(f"{self.name}: ")


recording = False  # `torchdali run` sets it
_loops: dict[int, _Loops] = {}  # by a number of the loader; in the order of their first loops


def note_loop(loader: Any, progress: Progress, accelerated: bool) -> None:
    """Remember a loop, for `summary`, if that is wanted."""
    if not recording:
        return
    number = loader.__dict__.setdefault("_number", len(_loops))
    if number not in _loops:
        _loops[number] = _Loops(type(loader.dataset).__name__, accelerated, loader.notes[-1])
    _loops[number].progress.append(progress)


def summary() -> str:
    """Return a sentence on all loops of this process; empty if there was none."""
    loops = list(_loops.values())
    if not loops:
        return ""
    fast = [each.name for each in loops if each.accelerated]
    left = [f"{each.name} ({each.reason})" for each in loops if not each.accelerated]
    names = f" ({', '.join(dict.fromkeys(fast))})" if fast else ""
    parts = [f"{len(fast)} of {len(loops)} loaders accelerated{names}"]
    if left:
        parts.append(f"left to torch: {', '.join(dict.fromkeys(left))}")
    progress = [each for loop in loops for each in loop.progress if each.ended]
    seconds, waited = sum(each.ended - each.began for each in progress), sum(each.waited for each in progress)
    share = waited / seconds if seconds else 0.0
    parts.append(f"the loops waited {waited:.1f} s of their {seconds:.1f} s ({share:.0%}) for data")
    return "; ".join(parts)


def measure_workers(
    make: Callable[[int], Any], present: int, seconds: float, numbers: Sequence[int] = ()
) -> WorkerReport:
    """Measure a loader with different numbers of workers.

    Args:
        make: Makes a loader with a number of workers.
        present: The number to begin with.
        seconds: For all measurements together.
    """
    chosen = sorted({present, *(numbers or _powers(cores()))})
    rates: dict[int, float] = {}
    with torch.random.fork_rng(devices=[]):
        for number in chosen:
            rates[number] = _rate(make(number), seconds / len(chosen))
    return WorkerReport(rates, present)


def _powers(most: int) -> list[int]:
    return [*itertools.takewhile(lambda n: n < most, (1 << i for i in range(16))), most]


def _rate(loader: Any, seconds: float) -> float:
    """Return the batches a second of a loop that does nothing else; its first batch is not counted."""
    batches, iterator = 0, iter(loader)
    next(iterator)
    started = time.perf_counter()
    while (took := time.perf_counter() - started) < seconds:
        if next(iterator, None) is None:
            break
        batches += 1
    return batches / (time.perf_counter() - started if batches else took or 1.0)
