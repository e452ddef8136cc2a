"""A measuring process: ``python -m benchmarks.measuring JOB`` runs one job and prints its measurement.

One process a side and round, so that neither memory nor caches nor thread settings of one side are
seen by another. The consumer does nothing with a batch but look at one number of it.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from . import processes
from .job import Job, Measurement, Snapshot

Next = Callable[[], object]

PACKAGES = {
    "torchdali": ("torch", "torchdali"),
    "dali": ("nvidia.dali",),
    "loader_tensor": ("torch", "torchvision"),
    "loader_pil": ("torch", "torchvision"),
}
DISTRIBUTIONS = {"nvidia.dali": "nvidia-dali-cuda120"}


def import_times(side: str) -> dict[str, float]:
    """Import the packages of a side, one after the other, and return the seconds of each."""
    times = {}
    for package in PACKAGES[side]:
        start = time.perf_counter()
        importlib.import_module(package)
        times[package] = time.perf_counter() - start
    return times


def _versions(side: str) -> dict[str, str]:
    names = {package: DISTRIBUTIONS.get(package, package) for package in PACKAGES[side]}
    return {package: importlib.metadata.version(name) for package, name in names.items()}


def _open_pipeline(job: Job, package: str) -> Next:
    from .pipelines import build

    pipe = build(
        package,
        job.pipeline,
        job.root,
        batch_size=job.batch,
        num_threads=job.threads,
        seed=job.seed,
    )
    return lambda: pipe.run()[0].at(0)[0, 0, 0].item()


def _open_loader(job: Job) -> Next:
    from .loaders import batches

    total = job.warmup + job.batches[-1] + 4 * job.threads
    source: Iterator[Any] = batches(
        job.side,
        job.pipeline,
        job.root,
        batch=job.batch,
        threads=job.threads,
        total=total,
        seed=job.seed,
    )
    return lambda: next(source)[0][0][0, 0, 0].item()


def _open_source(job: Job) -> Next:
    if job.side in ("torchdali", "dali"):
        return _open_pipeline(job, {"dali": "nvidia.dali"}.get(job.side, job.side))
    return _open_loader(job)


def take_snapshots(job: Job, next_batch: Next) -> tuple[tuple[Snapshot, ...], float]:
    """Run the warm-up and the timed batches; return the snapshots and the peak memory."""
    for _ in range(job.warmup):
        next_batch()
    family = processes.family(os.getpid())
    snapshots, done = [], 0
    start, start_cpu = time.perf_counter(), processes.cpu_seconds(family)
    for target in job.batches:
        for _ in range(done, target):
            next_batch()
        done = target
        wall, cpu = time.perf_counter() - start, processes.cpu_seconds(family) - start_cpu
        memory = processes.rss(family), processes.pss(family)
        snapshots.append(Snapshot(done * job.batch, wall, cpu, *memory))
    return tuple(snapshots), processes.peak_rss(family)


def measure(job: Job, number: int = 0) -> Measurement:
    """Run a job in this process."""
    imports = import_times(job.side)
    start = time.perf_counter()
    next_batch = _open_source(job)
    next_batch()
    first = time.perf_counter() - start
    snapshots, peak = take_snapshots(job, next_batch)
    return Measurement(job.side, job.pipeline, number, snapshots, peak, first, imports, _versions(job.side))


if __name__ == "__main__":
    print(measure(Job.from_json(sys.argv[1]), int(sys.argv[2])).to_json(), flush=True)
    os._exit(0)  # the workers of a loader that is cut short need not be waited for
