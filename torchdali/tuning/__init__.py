"""`tune`: measure which settings of a pipeline are the fastest on this machine.

The module `search` compares settings. `machine` measures the speed of a pipeline, `usage` measures processor time and
the number of bytes read, and `report` describes the bottleneck.

The search changes one setting in each *step*, and compares it with the old setting in several *pairs* of measurements,
one with each of the settings. Finally it compares the result of all steps with the settings at the start.
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
from torchdali.tuning.machine import Machine, TimedRun, count_processes
from torchdali.tuning.report import Report, describe_bottleneck, format_call
from torchdali.tuning.search import Measure, SearchResult, Setting, Settings, compare, search

__all__ = ["Report", "cores_here", "full_settings", "list_settings", "tune"]

_STEPS, _LAST = 0.8, 0.9  # fractions of the time after which the steps and the final comparison must end
_PAIRS = 3  # the steps end when there isn't enough time for this number of pairs
_DEPTHS = (2, 3, 4, 6, 8)  # depths of the queue; without 1, whose slowness shows only in real training loops
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
    """Measure which settings of a pipeline are the fastest, and find its bottleneck. The pipeline isn't changed.

    Args:
        factory: Function that creates the pipeline and accepts the options of `Pipeline`, such as `Pipeline.factory`.
        seconds: Duration of all measurements together. The current settings are always measured once. Other
            measurements start only if they fit into this time.
        step: Duration of the training step in seconds; 0 for a loop that only takes batches.
        cores: Largest number of threads and largest number of processes; by default, the number of cores of this
            process.
        memory: Largest allowed size in bytes of all batches in flight; by default, there is no limit.
        progress: Function that is called with the elapsed seconds and the total seconds.

    Raises:
        ValueError: The pipeline has no ``batch_size`` or ``num_threads``.
        RuntimeError: The pipeline raises an error, or its source has no data or waits for `Pipeline.feed_input`.
    """
    began, load = time.monotonic(), os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    machine, max_cores = Machine(factory, step, memory), cores or cores_here()

    def make_deadline(fraction: float, pairs: int = 1) -> Callable[[], bool]:
        """Return a function that returns True if `pairs` more pairs would exceed a fraction of the time."""
        return lambda: time.monotonic() - began + 2 * pairs * machine.seconds > fraction * seconds

    def measure(settings: Settings) -> float | None:
        progress(min(int(seconds), int(time.monotonic() - began)), int(seconds))
        return machine(settings)

    start = _current_settings(factory)
    scaled = None
    with contextlib.closing(machine):
        measure(start)  # `make_deadline` needs the duration of a measurement
        machine.close()
        result = search(
            measure,
            list_settings(start, max_cores),
            start,
            full_settings(start, max_cores),
            make_deadline(_STEPS, _PAIRS),
            make_deadline(_LAST),
        )
        if not make_deadline(1.0)() and _may_scale(factory, machine.runs):
            scaled = compare(measure, result.best, {**result.best, "scaled_decode": True}, make_deadline(1.0))
        runs = _merge_runs(machine, result.best, measure, make_deadline(1.0))
    changes = _changes(start, result.best)
    notes = [*_notes(machine, runs, result), *_time_notes(machine, result, seconds, time.monotonic() - began)]
    return Report(
        getattr(getattr(factory, "func", factory), "__name__", "pipeline"), start, result.best, changes,
        format_call(factory, changes), runs.rate, result.comparisons, result.last, scaled,
        describe_bottleneck(runs, cores_here(), step, load), tuple(notes),
    )  # fmt: skip


def _current_settings(factory: Callable[..., Pipeline]) -> dict[str, Any]:
    """Return the current settings of a pipeline, including the number of processes that the pipeline has chosen."""
    pipe = factory()
    for name in ("batch_size", "num_threads"):
        if getattr(pipe, name) is None:
            raise ValueError(
                f"{name} must be set before a pipeline is tuned; pass it to the function that creates the pipeline"
            )
    pipe.build()
    processes = count_processes(pipe)
    pipe.close()
    settings: dict[str, Any] = {"num_threads": pipe.num_threads, "num_processes": processes}
    if isinstance(pipe.prefetch_queue_depth, int):
        settings["prefetch_queue_depth"] = pipe.prefetch_queue_depth
    return settings


def list_settings(start: Settings, max_cores: int) -> list[Setting]:
    """Return the settings to try, with their values."""
    values = {
        "num_processes": _powers_of_two(max_cores),
        "num_threads": _powers_of_two(max_cores),
        "prefetch_queue_depth": _DEPTHS,
    }
    return [Setting(name, tuple(sorted({*values[name], start[name]}))) for name in values if name in start]


def full_settings(start: Settings, max_cores: int) -> list[Settings]:
    """Return two settings that use all cores, one without worker processes and one with worker processes."""
    return [{**start, "num_threads": max_cores, "num_processes": count} for count in dict.fromkeys((1, max_cores))]


def _powers_of_two(max_cores: int) -> list[int]:
    return [*(1 << k for k in range(max_cores.bit_length()) if 1 << k < max_cores), max_cores]


def _may_scale(factory: Callable[..., Pipeline], runs: Sequence[TimedRun]) -> bool:
    """Return whether the pipeline decodes images for a random crop, but doesn't use the option ``scaled_decode``."""
    names = [name for name, _, _ in runs[-1].operators] if runs else []
    return any("decoders.image" in name and "random" in name for name in names) and not factory().scaled_decode


def _merge_runs(machine: Machine, settings: Settings, measure: Measure, out_of_time: Callable[[], bool]) -> TimedRun:
    """Merge the last measurements with these settings into one measurement."""
    runs = [run for run in machine.runs if run.settings == settings]
    while ((len(runs) < _VERDICT_RUNS and not out_of_time()) or not runs) and measure(settings) is not None:
        runs.append(machine.runs[-1])
    if not runs:
        raise RuntimeError(f"this pipeline cannot be measured: {'; '.join(machine.refusals)}")
    return TimedRun.merge(runs[-12:])


def _changes(start: Settings, best: Settings) -> dict[str, Any]:
    changes = {name: value for name, value in best.items() if value != start[name]}
    if "num_threads" in changes:  # the default of `num_processes` depends on `num_threads`
        changes["num_processes"] = best["num_processes"]
    return changes


def _notes(machine: Machine, run: TimedRun, result: SearchResult) -> list[str]:
    notes = [f"Not possible: {each}." for each in machine.refusals]
    megabytes = run.usage.read / run.usage.wall / 1e6
    if megabytes >= 1 and run.usage.from_disk < 0.1 * run.usage.read:
        notes.append(
            f"The files came from memory, {megabytes:.0f} MB/s: to reach the same speed from disk, the disk must be "
            f"as fast."
        )
    notes += [f"{line[0].upper()}{line[1:]}." for line in run.fast_path]
    noise = statistics.median([statistics.stdev(c.ratios) for c in result.comparisons if len(c.ratios) > 1] or [0.0])
    if noise > _NOISY:
        notes.append(f"Consecutive measurements differ by {noise:.0%}, so gains that aren't much larger can't be seen.")
    return notes


def _time_notes(machine: Machine, result: SearchResult, seconds: float, duration: float) -> list[str]:
    """Return notes about the time limit, if the search was incomplete or took too long."""
    notes, duration_text = [], f"one measurement of this pipeline takes {machine.seconds:.1f} s"
    if not (result.is_complete or result.comparisons):
        min_seconds = math.ceil((2 * _PAIRS + 1) * machine.seconds / _STEPS)
        notes.append(f"There was no time to try other settings: {duration_text}. Pass more than {min_seconds} seconds.")
    elif not result.is_complete:
        notes.append("The time limit ended before all settings were tried; a longer limit may find faster settings.")
    if duration > 1.2 * seconds + 1:
        notes.append(
            f"It took {duration:.0f} s, and not {seconds:g}: {duration_text}, and the current measurement is finished."
        )
    return notes
