"""``torchdali bench DIR``: how fast a folder of images loads, and where the time goes.

The training pipeline runs with a clock after each operator. A clock is an operator of its own on
the path of the labels: it passes them on and notes the CPU time of its thread, so that what it sees
is the fused chain as it always runs.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchdali import Pipeline, fn, operator, pipeline_def, types
from torchdali._commands.bar import Bar
from torchdali.containers import IMAGES

__all__ = ["build", "find", "run"]

STEPS = ("readers.file", "decoders.image", "random_resized_crop", "crop_mirror_normalize")
READ_AT_MOST = 2000
WARMUP = 5


class _Thread(threading.local):
    """End of this thread's last step, and the nanoseconds that each step took so far."""

    def __init__(self) -> None:
        self.mark = time.thread_time_ns()
        self.steps = [0] * len(STEPS)
        self.samples = [0]
        _threads.append(self.steps)
        _samples.append(self.samples)


_threads: list[list[int]] = []
_samples: list[list[int]] = []
_here = _Thread()


@operator(name="_bench_clock")
def _clock(label: Any, seen: Any, /, *, step: int = 0) -> Any:
    """Note that a step has ended on this sample, and return the label."""
    now, here = time.thread_time_ns(), _here
    here.steps[step] += now - here.mark
    here.samples[0] += step == len(STEPS) - 1
    here.mark = now
    return label


@pipeline_def
def _training(size: int, source: dict[str, Any]) -> Any:
    files, labels = fn.readers.file(random_shuffle=True, name="Reader", **source)
    labels = _clock(labels, files, step=0)
    images = fn.decoders.image(files, output_type=types.RGB)
    labels = _clock(labels, images, step=1)
    images = fn.random_resized_crop(images, size=size)
    labels = _clock(labels, images, step=2)
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        mirror=fn.random.coin_flip(),
    )
    return images, _clock(labels, images, step=3)


@dataclass(frozen=True)
class Usage:
    """Cost of some batches.

    ``wall``, ``cpu`` and ``waited`` (by the consumer, for batches) are seconds; ``steps`` are CPU
    nanoseconds, of ``samples`` samples.
    """

    batches: int
    wall: float
    cpu: float
    waited: float
    steps: tuple[int, ...]
    samples: int

    def share(self, threads: int) -> float:
        """Part of the time in which the threads computed, of 1; others wait for files, or for cores."""
        return min(1.0, self.cpu / self.wall / threads)

    def milliseconds(self) -> tuple[float, ...]:
        """CPU milliseconds a sample of each step, and last those of everything else."""
        steps = [nanoseconds / 1e6 / self.samples for nanoseconds in self.steps]
        return (*steps, max(0.0, 1e3 * self.cpu / self.samples - sum(steps)))


def find(root: Path) -> list[Path]:
    """All image files below a folder, by suffix, in order."""
    return sorted(path for path in root.rglob("*") if path.suffix.lower() in IMAGES)


def read_rate(files: list[Path], threads: int) -> float:
    """Files a second when they are only read, from wherever they are now."""
    chosen = files[:READ_AT_MOST]
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(Path.read_bytes, chosen):
            pass
    return len(chosen) / (time.perf_counter() - start)


def measure(
    pipeline: Pipeline, batches: int, step: float = 0.0, progress: Callable[[int, int], None] | None = None
) -> Usage:
    """Take some batches, with a consumer that rests ``step`` seconds after each."""
    steps, samples = [sum(column) for column in zip(*_threads, strict=True)], _count()
    start, cpu, waited = time.perf_counter(), time.process_time(), 0.0
    for done in range(1, batches + 1):
        asked = time.perf_counter()
        pipeline.run()
        waited += time.perf_counter() - asked
        if step:
            time.sleep(step)
        if progress is not None:
            progress(done, batches)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    after = [sum(column) for column in zip(*_threads, strict=True)]
    taken = tuple(b - a for a, b in zip(steps, after, strict=True))
    return Usage(batches, wall, cpu, waited, taken, _count() - samples)


def _count() -> int:
    return sum(count[0] for count in _samples)


def build(files: list[Path], batch: int, threads: int, size: int) -> Pipeline:
    """The training pipeline on some files; a label is the number of the file's folder."""
    folders = {folder: k for k, folder in enumerate(sorted({path.parent for path in files}))}
    labels = [folders[path.parent] for path in files]
    source = {"files": [str(path) for path in files], "labels": labels}
    # Threads alone: what the steps take is measured in this process.
    settings = {"batch_size": batch, "num_threads": threads, "device_id": None, "seed": 1, "num_processes": 1}
    pipeline: Pipeline = _training(size, source, bad_samples="skip", **settings)
    pipeline.build()
    return pipeline


def _print_steps(usage: Usage) -> None:
    figures = usage.milliseconds()
    print(f"  {'where the CPU time goes':32} ms/image  share")
    for name, milliseconds in zip((*STEPS, "everything else"), figures, strict=True):
        print(f"  {name:32} {milliseconds:8.3f} {milliseconds / sum(figures):6.0%}")


def _print_consumer(pipeline: Pipeline, batches: int, step: float, threads: int) -> None:
    usage = measure(pipeline, batches, step)
    idle = 1 - usage.share(threads)
    waited = usage.waited / usage.wall
    print(f"With a consumer that takes {step * 1e3:.0f} ms a batch:")
    print(f"  the consumer waits for the loader {waited:.0%} of the time,")
    print(f"  the loader's threads wait for the consumer {idle:.0%} of the time.")
    print(f"  Limited by the {'loader' if waited > 0.05 else 'consumer'}.")


def _load() -> float:
    """Return how many threads of all programs computed during the last minute; 0 on systems that do not say."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _cores() -> int:
    return os.cpu_count() or 1


def _print_verdict(usage: Usage, rate: float, batch: int, threads: int, load: float) -> None:
    if load > _LOADED * _cores() and usage.share(min(threads, _cores())) < _WELL_SERVED:
        print(
            f"This machine is busy (load {load:.1f} on {_cores()} cores): the threads had "
            f"{usage.share(threads):.0%} of the cores' time. Stop other programs, and measure again."
        )
    else:
        print(f"A training step of {1e3 * batch / rate:.0f} ms a batch or more hides all of it.")


_LOADED = 0.5  # of the cores, at the start, by other programs
_WELL_SERVED = 0.8  # of the time


def _print_bad(pipeline: Pipeline) -> None:
    report = pipeline.bad_sample_report()
    if report:
        print(f"Skipped {len(report)} images that failed, the first in {report[0].operator}:")
        print(f"  {report[0].file}\n  {report[0].reason}")


def run(root: Path, batch: int, threads: int, batches: int, size: int, step: float) -> int:
    """Measure a folder and print what was found; return the exit status."""
    files, load = find(root), _load()
    if not files:
        print(f"{root}: no images here ({', '.join(sorted(IMAGES))})")
        return 1
    total = sum(path.stat().st_size for path in files)
    print(f"{len(files)} images, {total / len(files) / 1e3:.0f} KB each on average")
    print(f"Read alone, {threads} threads: {read_rate(files, threads):.0f} images/s", end=", ")
    print(f"once in memory {read_rate(files, threads):.0f} images/s", flush=True)
    pipeline = build(files, batch, threads, size)
    measure(pipeline, WARMUP)
    bar = Bar("batches")
    usage = measure(pipeline, batches, progress=bar)
    bar.close()
    rate = batch * batches / usage.wall
    print(f"Training pipeline, crops of {size}, batches of {batch}: {rate:.0f} images/s")
    _print_steps(usage)
    _print_verdict(usage, rate, batch, threads, load)
    if step:
        _print_consumer(pipeline, batches, step, threads)
    _print_bad(pipeline)
    pipeline.close()
    return 0
