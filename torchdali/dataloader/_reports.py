"""Reports on loaders: waiting time, skipped samples, and the fastest number of workers."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from torchdali.cores import cores
from torchdali.dataloader._notes import accelerated_names, is_fast_path_note, is_not_accelerated, shorten
from torchdali.dataloader._states import Progress
from torchdali.errors import Site

__all__ = ["LoaderStats", "WorkerReport", "describe_site", "explain", "measure_workers", "record_loop", "summary"]


@dataclass(frozen=True)
class LoaderStats:
    """Times of a loop over a loader. Print the object for a table.

    Attributes:
        batches: Number of batches that the loop has received so far.
        seconds: Seconds from ``iter()`` to the last received batch.
        waited: Seconds that the loop waited for data, including start-up.
        notes: Notes on the accelerated parts of the loader; see `DataLoader.notes`.
        pipeline: Times of each operator, from `Pipeline.stats`; None if the loader isn't accelerated.
        startup: Seconds from ``iter()`` until the loader was ready.
        skipped: Descriptions of the samples that ``bad_samples="skip"`` has skipped in this loop.
    """

    batches: int
    seconds: float
    waited: float
    notes: tuple[str, ...]
    pipeline: Any = None
    startup: float = 0.0
    skipped: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, progress: Progress | None, notes: tuple[str, ...], pipeline: Any, skipped: Sequence[str] = ()
    ) -> LoaderStats:
        """Return the times of a loop, from its progress; all times are 0 before the first batch."""
        if progress is None or not progress.ended:
            return cls(0, 0.0, 0.0, notes, pipeline, skipped=tuple(skipped))
        seconds = progress.ended - progress.began
        return cls(progress.batches, seconds, progress.waited, notes, pipeline, progress.startup, tuple(skipped))

    @property
    def share(self) -> float:
        """Fraction of the loop's time, from 0 to 1, for which the loop waited for data."""
        return self.waited / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        head = f"{self.batches} batches in {self.seconds:.1f} s; the loop waited {self.share:.0%} of it for data"
        startup = f", {self.startup:.1f} s for start-up" if self.startup >= _MIN_SHOWN_SECONDS else ""
        reasons = [note for note in self.notes if is_not_accelerated(note) or is_fast_path_note(note)]
        if self.skipped and self.pipeline is None:
            reasons.append(f"{len(self.skipped)} bad samples were skipped, the first: {self.skipped[0]}")
        return "\n".join([head + startup, *reasons, *([str(self.pipeline)] if self.pipeline is not None else [])])


_MIN_SHOWN_SECONDS = 0.1


def describe_site(site: Site) -> str:
    """Return the file and line at which a loader was created."""
    return f"{Path(site.file).name}:{site.line}"


def _describe_steps(notes: Sequence[str], max_names: int = 100) -> str:
    names = accelerated_names(notes)
    return " + ".join(["decode", *(names if len(names) <= max_names else [names[0], "...", names[-1]])])


def operator_names(dataset: str, notes: Sequence[str]) -> dict[str, str]:
    """Return descriptions of the operators in an accelerated loader's pipeline, by the operators' names."""
    return {"_requests": f"read {dataset}", "_picture": _describe_steps(notes, 3), "_still_picture": _FIXED_STEPS}


_FIXED_STEPS, _RANDOM_STEPS = (
    "decode, and transforms before the first random one",
    "transforms from the first random one on",
)


def rename_operators(stats: Any, names: dict[str, str]) -> Any:
    """Return `Pipeline.stats` with the names from `operator_names` in place of the operators' names."""
    if any("_still_picture" in each.operator for each in stats.operators):
        names = names | {"_picture": _RANDOM_STEPS}

    def rename(rows: Sequence[Any]) -> tuple[Any, ...]:
        titles = (" + ".join(names.get(part, part) for part in row.operator.split(" + ")) for row in rows)
        return tuple(replace(row, operator=title) for row, title in zip(rows, titles, strict=True))

    return replace(stats, operators=rename(stats.operators), fallbacks=rename(stats.fallbacks))


def explain(dataset: str, notes: Sequence[str], threads: int, cache: Any, site: Site) -> list[str]:
    """Return lines of text that list the processing steps of each image in an accelerated loader."""
    steps = [_describe_steps(notes)] if cache is None else [_FIXED_STEPS, f"cache={cache!r}", _RANDOM_STEPS]
    lines = [f"  {number}. {step}" for number, step in enumerate([f"read {dataset}", *steps], 1)]
    return [f"For each image, in {threads} threads ({describe_site(site)}):", *lines]


@dataclass(frozen=True)
class WorkerReport:
    """Speed of a loader with different numbers of workers. Print the object to see the recommended number.

    Attributes:
        rates: Median batches/s for each ``num_workers``.
        present: The loader's current ``num_workers``.
        noise: Largest deviation of a measurement from its median, relative to the median.
        where: File and line at which the loader was created.
    """

    rates: dict[int, float]
    present: int
    noise: float = 0.0
    where: str = ""

    @property
    def best(self) -> int:
        """Recommended number of workers.

        If no other number is faster by more than the measurements' noise, the current number is recommended. If several
        numbers are equally fast, the smallest of them is recommended.
        """
        min_rate = max(self.rates.values()) * (1 - max(_MIN_GAIN, self.noise))
        fast = [number for number, rate in self.rates.items() if rate >= min_rate]
        return self.present if self.present in fast else min(fast)

    def __str__(self) -> str:
        lines = [
            f"num_workers={number}: {rate:.1f} batches/s{'  (now)' if number == self.present else ''}"
            for number, rate in sorted(self.rates.items())
        ]
        return "\n".join([*lines, f"Measurements of one setting differ by up to {self.noise:.0%}.", self._advice()])

    def _advice(self) -> str:
        if self.best == self.present:
            busy = " Stop other programs and measure again to see more." if self.noise > _NOISY else ""
            return f"Keep num_workers={self.present}; no other number is clearly faster.{busy}"
        gain = self.rates[self.best] / self.rates[self.present] if self.rates[self.present] else 0.0
        return f"Write: DataLoader(..., num_workers={self.best})  # {self.where}, {gain:.1f} times as fast"


_MIN_GAIN = 0.05
_NOISY = 0.2


class _LoaderRecord:
    """All loops over one loader in this process."""

    def __init__(self, name: str, accelerated: bool, notes: Sequence[str]) -> None:
        self.name, self.accelerated, self.notes = name, accelerated, notes
        self.progress: list[Progress] = []

    @property
    def reason(self) -> str:
        """The reason why the loader isn't accelerated, with the name of the dataset."""
        reason = next((shorten(note) for note in self.notes if is_not_accelerated(note)), self.name)
        return reason if self.name in reason else f"{self.name}: {reason}"


recording = False  # `torchdali run` sets it to True
_records: dict[int, _LoaderRecord] = {}  # loaders are numbered in the order of their first loops


def record_loop(loader: Any, progress: Progress, plan: Any = None) -> None:
    """Record a loop for `summary`, if `torchdali run` has switched recording on.

    Args:
        progress: Progress of the loop.
        plan: The loader's plan; None for another epoch of persistent workers.
    """
    if not recording:
        return
    number = loader.__dict__.setdefault("_number", len(_records))
    if number not in _records and plan is not None:
        _records[number] = _LoaderRecord(type(loader.dataset).__name__, plan.open is not None, plan.notes)
    if number in _records:
        _records[number].progress.append(progress)


def summary() -> str:
    """Return a summary of all recorded loops of this process; "" if no loop was recorded."""
    loops = list(_records.values())
    if not loops:
        return ""
    fast = [each.name for each in loops if each.accelerated]
    rest = [each.reason for each in loops if not each.accelerated]
    names = f" ({', '.join(dict.fromkeys(fast))})" if fast else ""
    parts = [f"{len(fast)} of {len(loops)} loaders accelerated{names}"]
    if rest:
        parts.append(f"not accelerated: {', '.join(dict.fromkeys(rest))}")
    if any(is_fast_path_note(note) for loop in loops for note in loop.notes):
        parts.append("the fast path isn't built: run `torchdali doctor`")
    return "; ".join([*parts, _summarize_waiting([each for loop in loops for each in loop.progress])])


def _summarize_waiting(loops: Sequence[Progress]) -> str:
    ended = [each for each in loops if each.ended]
    seconds, waited = sum(each.ended - each.began for each in ended), sum(each.waited for each in ended)
    share, startup = waited / seconds if seconds else 0.0, sum(each.startup for each in ended)
    first = f", {startup:.1f} s of it for start-up" if startup >= _MIN_SHOWN_SECONDS else ""
    return f"the loops waited {waited:.1f} s of their {seconds:.1f} s ({share:.0%}) for data{first}"


def measure_workers(
    create: Callable[[int], Any], present: int, seconds: float, numbers: Sequence[int] = (), where: str = ""
) -> WorkerReport:
    """Measure the speed of a loader with different numbers of workers. Each number is measured several times.

    Args:
        create: Function that creates the loader with a given number of workers.
        present: The loader's current number of workers.
        seconds: Duration of all measurements together.
        numbers: Numbers of workers to measure; by default powers of two, up to the number of cores.
        where: File and line at which the loader was created.
    """
    chosen = sorted({present, *(numbers or _powers_of_two(cores()))})
    measured: dict[int, list[float]] = {number: [] for number in chosen}
    with torch.random.fork_rng(devices=[]):
        for turn in range(_ROUNDS):
            for number in chosen if turn % 2 == 0 else reversed(chosen):
                loader = create(number)
                measured[number].append(_measure_rate(loader, seconds / len(chosen) / _ROUNDS))
                loader.close()
    rates = {number: statistics.median(each) for number, each in measured.items()}
    noise = max(abs(rate - rates[number]) / (rates[number] or 1.0) for number in chosen for rate in measured[number])
    return WorkerReport(rates, present, noise, where)


_ROUNDS = 3


def _powers_of_two(limit: int) -> list[int]:
    return [*itertools.takewhile(lambda n: n < limit, (1 << i for i in range(16))), limit]


def _measure_rate(loader: Any, seconds: float) -> float:
    """Return the batches/s of a loop that does nothing with the batches. The first batch is not counted."""
    batches, iterator = 0, iter(loader)
    next(iterator, None)
    started = time.perf_counter()
    while (took := time.perf_counter() - started) < seconds:
        if next(iterator, None) is None:
            break
        batches += 1
    return batches / (time.perf_counter() - started if batches else took or 1.0)
