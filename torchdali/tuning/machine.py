"""Measure the speed of a pipeline with different settings: build the pipeline again, and run it for a short time."""

from __future__ import annotations

import functools
import operator
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torchdali.pipeline import Pipeline
from torchdali.tuning.search import Settings
from torchdali.tuning.usage import Usage

__all__ = ["Machine", "TimedRun", "count_processes", "format_settings"]

SECONDS = 0.4  # minimum duration of a measurement
_MAX_OPEN = 2  # number of pipelines that are open at the same time
_BATCHES = 4  # minimum number of batches in a measurement
_PROCESSES = re.compile(r"^(\d+) worker processes", re.MULTILINE)
_REASON = re.compile(r"^one process: (.*)", re.MULTILINE)


@dataclass(frozen=True)
class TimedRun:
    """One measurement.

    Attributes:
        settings: Settings of the pipeline.
        rate: Rate in samples/s.
        usage: Processor time and bytes read during the measurement.
        waited: Fraction of the time for which the loop waited for batches.
        operators: For each operator, its name, its line in the user's code, and its fraction of all operators' time.
            The slowest operator is first.
        memory: Total size in bytes of all batches that exist at the same time, estimated from the last batch.
        fast_path: The lines of `Pipeline.explain` about operators that the native library runs.
    """

    settings: Settings
    rate: float
    usage: Usage
    waited: float
    operators: tuple[tuple[str, str, float], ...]
    memory: int
    fast_path: tuple[str, ...]

    @classmethod
    def merge(cls, runs: Sequence[TimedRun]) -> TimedRun:
        """Combine several measurements of the same settings into one measurement."""
        shares = defaultdict[tuple[str, str], float](float)
        for run in runs:
            for name, line, share in run.operators:
                shares[name, line] += share / len(runs)
        operators = tuple((*key, shares[key]) for key in sorted(shares, key=shares.__getitem__, reverse=True))
        return cls(
            runs[0].settings, statistics.median(run.rate for run in runs),
            functools.reduce(operator.add, [run.usage for run in runs]),
            statistics.fmean(run.waited for run in runs), operators, max(run.memory for run in runs), runs[0].fast_path,
        )  # fmt: skip


def count_processes(pipe: Pipeline) -> int:
    """Return the number of worker processes of a pipeline; 1 for a pipeline without worker processes."""
    match = _PROCESSES.search(pipe.explain())
    return int(match[1]) if match else 1


class Machine:
    """A callable that measures a pipeline with any settings.

    Pipelines with two different settings are open at the same time, so that their measurements can alternate quickly.
    But if a pipeline's worker processes must be forked, the other pipeline is closed first, because a process with
    threads can't be forked.

    Args:
        factory: Function that creates the pipeline and accepts the options of `Pipeline`.
        step: Duration of the training step in seconds.
        memory: Largest allowed size in bytes of all batches in flight; None for no limit.

    Attributes:
        runs: All measurements.
        refusals: Reasons why some settings cannot be used, as the keys of a dictionary.
    """

    def __init__(self, factory: Callable[..., Pipeline], step: float = 0.0, memory: int | None = None) -> None:
        self._factory, self._step, self._memory = factory, step, memory
        self._has_processes, self._exclusive = True, False
        self._open: list[tuple[Settings, Pipeline]] = []
        self._spent = 0.0
        self.runs: list[TimedRun] = []
        self.refusals: dict[str, None] = {}

    def __call__(self, settings: Settings) -> float | None:
        """Return the rate in samples/s; None if the pipeline or the memory limit doesn't allow the settings."""
        processes = settings.get("num_processes", 1)
        if processes > 1 and not self._has_processes:
            return None
        began = time.perf_counter()
        try:
            pipe = self._open_pipeline(settings, processes)
            if pipe is None:
                return None
            for _ in range(1 + _batches_in_flight(pipe, processes)):  # skip the batches that may be finished already
                _run_batch(pipe)
            run = self._measure(pipe, settings, processes)
        except MemoryError as error:
            self.close()
            self.refusals[f"{format_settings(settings)}: {error}"] = None
            return None
        self._spent += time.perf_counter() - began
        if self._memory is not None and run.memory > self._memory:
            self.close()
            self.refusals[f"more than {self._memory >> 20} MiB in flight: {format_settings(settings)}"] = None
            return None
        self.runs.append(run)
        return run.rate

    @property
    def seconds(self) -> float:
        """Average seconds per measurement, including the creation of the pipeline; 0 before the first measurement."""
        return self._spent / max(1, len(self.runs))

    def close(self) -> None:
        """Close the open pipelines."""
        for _, pipe in self._open:
            pipe.close()
        self._open.clear()

    def _open_pipeline(self, settings: Settings, processes: int) -> Pipeline | None:
        """Return an open pipeline with these settings; None if the pipeline can't use worker processes."""
        for open_settings, pipe in self._open:
            if open_settings == settings:
                return pipe
        if self._exclusive or len(self._open) == _MAX_OPEN:
            self.close()
        pipe = self._factory(**settings)
        self._open.append((settings, pipe))
        pipe.build()
        if processes == 1 or count_processes(pipe) > 1:
            return pipe
        was_only, reason = len(self._open) == 1, _REASON.search(pipe.explain())
        self.close()
        # If the user's script declares operators, worker processes must be forked. This is possible only if no other
        # pipeline has threads.
        if not was_only:
            self._exclusive = True
            return self._open_pipeline(settings, processes)
        self._has_processes = False
        self.refusals[f"no worker processes: {reason[1] if reason else 'the pipeline has none'}"] = None
        return None

    def _measure(self, pipe: Pipeline, settings: Settings, processes: int) -> TimedRun:
        stats, usage_before = pipe.stats(), Usage.now()
        min_batches, waited, batches = max(_BATCHES, 2 * processes), 0.0, 0
        while batches < min_batches or time.perf_counter() - usage_before.wall < SECONDS:
            start = time.perf_counter()
            batch = _run_batch(pipe)
            waited += time.perf_counter() - start
            batches += 1
            if self._step:
                time.sleep(self._step)
        wall = time.perf_counter() - usage_before.wall
        usage, after = Usage.now().since(usage_before), pipe.stats()
        size = sum(sample.nbytes for output in batch for sample in output.samples())
        return TimedRun(
            settings, (after.samples - stats.samples) / wall, usage, waited / wall,
            tuple((each.operator, each.line, each.share) for each in after.operators),
            size * _batches_in_flight(pipe, processes),
            tuple(line for line in pipe.explain().splitlines() if line.startswith("fast path: ")),
        )  # fmt: skip


def _batches_in_flight(pipe: Pipeline, processes: int) -> int:
    """Return the number of batches in flight: the depth of the queue, plus one batch per worker process."""
    depth = pipe.prefetch_queue_depth
    return (depth if isinstance(depth, int) else max(depth.values())) + (processes if processes > 1 else 0)


def _run_batch(pipe: Pipeline) -> tuple[Any, ...]:
    try:
        return pipe.run()
    except StopIteration:  # the end of a source's epoch
        pipe.reset()
    try:
        return pipe.run()
    except StopIteration:
        raise RuntimeError(
            "a source of this pipeline ended and does not start again; pass cycle to external_source"
        ) from None


def format_settings(settings: Settings) -> str:
    """Return settings as the arguments of a call."""
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())
