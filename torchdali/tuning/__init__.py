"""Find the fastest settings of a pipeline on this machine by measuring: `tune`.

`search` compares settings, and knows no pipelines; `machine` measures a pipeline with settings, `usage` the processor
time and bytes meanwhile; `report` names the bottleneck.
"""

from __future__ import annotations

import contextlib
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from torchdali.cores import cores as cores_here
from torchdali.pipeline import Pipeline
from torchdali.tuning.machine import Machine, TimedRun, processes_of
from torchdali.tuning.report import Report, call_of, limits
from torchdali.tuning.search import Measure, SearchResult, Setting, Settings, compare, search

__all__ = ["Report", "choices_of", "cores_here", "full", "tune"]

_STEPS, _LAST = 0.8, 0.9  # parts of the time after which the steps of the search end, and its last comparison
_PAIRS = 3  # number of measurements for which time must remain after the steps: the last comparison takes at least two
_DEPTHS = (2, 3, 4, 6, 8)  # depths of the queue; only training would show that a depth of 1 is too short
_VERDICT_RUNS = 3
_NOISY = 0.1


def tune(
    factory: Callable[..., Pipeline],
    seconds: float = 60.0,
    *,
    step: float = 0.0,
    cores: int | None = None,
    memory: int | None = None,
    progress: Callable[[int, int], None] = lambda position, count: None,
) -> Report:
    """Find the fastest settings of a pipeline by measuring, and its bottleneck. The pipeline itself is unchanged.

    Args:
        factory: Makes the pipeline, and takes the options of `Pipeline`: `Pipeline.factory`.
        seconds: For all measurements together. The present settings are measured once, however long that takes;
            measurements that would exceed them are not begun.
        step: Seconds of the training step; 0 for a loop that does nothing with the batches.
        cores: The most threads, and processes; as many as this process has cores by default.
        memory: The most bytes of the batches in flight.
        progress: Called with the seconds that are over, and all.

    Raises:
        ValueError: the pipeline has no ``batch_size`` or ``num_threads``. RuntimeError: errors of the pipeline; a
            source that delivers nothing, or waits for `Pipeline.feed_input`.
    """
    began, load = time.monotonic(), os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    machine, most = Machine(factory, step, memory), cores or cores_here()

    def over(part: float, pairs: int = 1) -> Callable[[], bool]:
        """Return a function that tells whether that many more pairs would take longer than a part of the time."""
        return lambda: time.monotonic() - began + 2 * pairs * machine.seconds > part * seconds

    def measure(settings: Settings) -> float | None:
        progress(min(int(seconds), int(time.monotonic() - began)), int(seconds))
        return machine(settings)

    start = _present(factory)
    scaled = None
    with contextlib.closing(machine):
        measure(start)  # tells how long a measurement takes: others begin only if they fit
        machine.close()
        result = search(measure, choices_of(start, most), start, full(start, most), over(_STEPS, _PAIRS), over(_LAST))
        if not over(1.0)() and _may_scale(factory, machine.runs):
            scaled = compare(measure, result.best, {**result.best, "scaled_decode": True}, over(1.0))
        runs = _runs_of(machine, result.best, measure, over(1.0))
    changes = _changes(start, result.best)
    notes = [*_notes(machine, runs, result), *_on_time(machine, result, seconds, time.monotonic() - began)]
    return Report(
        getattr(getattr(factory, "func", factory), "__name__", "pipeline"), start, result.best, changes,
        call_of(factory, changes), runs.rate, result.comparisons, result.last, scaled,
        limits(runs, cores_here(), step, load), tuple(notes),
    )  # fmt: skip


def _present(factory: Callable[..., Pipeline]) -> dict[str, Any]:
    """Return the present settings of a pipeline; the number of processes is the one that it chooses."""
    pipe = factory()
    for name in ("batch_size", "num_threads"):
        if getattr(pipe, name) is None:
            raise ValueError(f"{name} must be set before a pipeline is tuned: give it to the function that makes it")
    pipe.build()
    processes = processes_of(pipe)
    pipe.close()
    settings: dict[str, Any] = {"num_threads": pipe.num_threads, "num_processes": processes}
    if isinstance(pipe.prefetch_queue_depth, int):
        settings["prefetch_queue_depth"] = pipe.prefetch_queue_depth
    return settings


def choices_of(start: Settings, most: int) -> list[Setting]:
    """Return the settings to try. A new setting is one more line here, and its present value in `_present`."""
    values = {"num_processes": _double(most), "num_threads": _double(most), "prefetch_queue_depth": _DEPTHS}
    return [Setting(name, tuple(sorted({*values[name], start[name]}))) for name in values if name in start]


def full(start: Settings, most: int) -> list[Settings]:
    """Return the settings that use all cores, by threads and by processes."""
    return [{**start, "num_threads": most, "num_processes": count} for count in dict.fromkeys((1, most))]


def _double(most: int) -> list[int]:
    return [*(1 << k for k in range(most.bit_length()) if 1 << k < most), most]


def _may_scale(factory: Callable[..., Pipeline], runs: Sequence[TimedRun]) -> bool:
    """Return whether images are decoded for a random crop, and at their full scale."""
    names = [name for name, _, _ in runs[-1].operators] if runs else []
    return any("decoders.image" in name and "random" in name for name in names) and not factory().scaled_decode


def _runs_of(machine: Machine, settings: Settings, measure: Measure, enough: Callable[[], bool]) -> TimedRun:
    """Return the last measurements with some settings, as one."""
    runs = [run for run in machine.runs if run.settings == settings]
    while ((len(runs) < _VERDICT_RUNS and not enough()) or not runs) and measure(settings) is not None:
        runs.append(machine.runs[-1])
    if not runs:
        raise RuntimeError(f"this pipeline cannot be measured: {'; '.join(machine.refusals)}")
    return TimedRun.merge(runs[-12:])


def _changes(start: Settings, best: Settings) -> dict[str, Any]:
    changes = {name: value for name, value in best.items() if value != start[name]}
    if "num_threads" in changes:  # the pipeline would choose another number of processes by itself
        changes["num_processes"] = best["num_processes"]
    return changes


def _notes(machine: Machine, run: TimedRun, result: SearchResult) -> list[str]:
    notes = [f"Not possible: {each}." for each in machine.refusals]
    megabytes = run.usage.read / run.usage.wall / 1e6
    if megabytes >= 1 and run.usage.from_disk < 0.1 * run.usage.read:
        notes.append(
            f"Files came from memory, {megabytes:.0f} MB/s of them: a disk from which they come must be as fast."
        )
    notes += [f"{line[0].upper()}{line[1:]}." for line in run.fast_path]
    noise = statistics.median([statistics.stdev(c.ratios) for c in result.comparisons if len(c.ratios) > 1] or [0.0])
    if noise > _NOISY:
        notes.append(f"Measurements in a row differ by {noise:.0%}: gains that are not far above cannot be seen.")
    return notes


def _on_time(machine: Machine, result: SearchResult, seconds: float, duration: float) -> list[str]:
    """List the measurements that did not fit into the time, and why it took longer than it should."""
    notes, one = [], f"one measurement of this pipeline takes {machine.seconds:.1f} s"
    if not (result.is_complete or result.comparisons):
        least = math.ceil((2 * _PAIRS + 1) * machine.seconds / _STEPS)
        notes.append(f"There was no time to try anything else: {one}. Give it more than {least} seconds.")
    elif not result.is_complete:
        notes.append("The time was over before everything was tried: more seconds may find more.")
    if duration > 1.2 * seconds + 1:
        notes.append(f"It took {duration:.0f} s, and not {seconds:g}: {one}, and what has begun is finished.")
    return notes
