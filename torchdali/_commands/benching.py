"""``torchdali bench DIR``: measure how fast a folder of images loads, and find the bottleneck.

The training pipeline runs for some batches. `Pipeline.stats` times each operator, and `Usage` measures the used cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from torchdali import Pipeline, fn, pipeline_def, types
from torchdali._commands.bar import Bar
from torchdali.containers import IMAGES
from torchdali.cores import cores
from torchdali.tuning.usage import Usage

__all__ = ["build", "find_images", "run"]

MAX_READ_FILES = 2000
WARMUP = 5


@pipeline_def
def _training(size: int, source: dict[str, Any]) -> Any:
    files, labels = fn.readers.file(random_shuffle=True, name="Reader", **source)
    images = fn.decoders.image(files, output_type=types.RGB)
    images = fn.random_resized_crop(images, size=size)
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        mirror=fn.random.coin_flip(),
    )
    return images, labels


def find_images(root: Path) -> list[Path]:
    """Return all image files below a folder, selected by suffix, in sorted order."""
    return sorted(path for path in root.rglob("*") if path.suffix.lower() in IMAGES)


def read_rate(files: list[Path], threads: int) -> float:
    """Return the files/s for reading files without decoding, from disk or from the system's cache."""
    chosen = files[:MAX_READ_FILES]
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(Path.read_bytes, chosen):
            pass
    return len(chosen) / (time.perf_counter() - start)


def measure(
    pipeline: Pipeline, batches: int, step: float = 0.0, progress: Callable[[int, int], None] | None = None
) -> Usage:
    """Run batches, with a pause of ``step`` seconds after each batch; return the usage."""
    before = Usage.now()
    for number in range(1, batches + 1):
        pipeline.run()
        if step:
            time.sleep(step)
        if progress is not None:
            progress(number, batches)
    return Usage.now().since(before)


def build(files: list[Path], batch: int, threads: int, size: int) -> Pipeline:
    """Build the training pipeline for files; each file's label is the index of its folder."""
    folders = {folder: k for k, folder in enumerate(sorted({path.parent for path in files}))}
    labels = [folders[path.parent] for path in files]
    source = {"files": [str(path) for path in files], "labels": labels}
    # A single process, so that only the requested threads compute.
    settings = {"batch_size": batch, "num_threads": threads, "device_id": None, "seed": 1, "num_processes": 1}
    pipeline: Pipeline = _training(size, source, bad_samples="skip", **settings)
    pipeline.build()
    return pipeline


def _print_consumer(pipeline: Pipeline, batches: int, step: float, threads: int) -> None:
    before = pipeline.stats().waited
    usage = measure(pipeline, batches, step)
    waited = (pipeline.stats().waited - before) / usage.wall
    print(f"With a consumer that takes {step * 1e3:.0f} ms per batch:")
    print(f"  the consumer waits for the loader {waited:.0%} of the time,")
    print(f"  the loader's threads wait for the consumer {1 - _share(usage, threads):.0%} of the time.")
    print(f"  Limited by the {'loader' if waited > 0.05 else 'consumer'}.")


def _share(usage: Usage, threads: int) -> float:
    """Return the fraction of the time for which the threads computed, instead of waiting for files or cores."""
    return min(1.0, usage.busy / threads)


def _print_verdict(usage: Usage, rate: float, batch: int, threads: int) -> None:
    other_load = usage.other_cores or 0.0
    if other_load > _BUSY_LOAD * cores() and _share(usage, min(threads, cores())) < _MIN_SHARE:
        print(
            f"This machine is busy (other programs computed on {other_load:.1f} of {cores()} cores): the threads had "
            f"{_share(usage, threads):.0%} of the cores' time. Stop other programs, and measure again."
        )
    else:
        print(f"A training step of {1e3 * batch / rate:.0f} ms per batch or more hides all of it.")


_BUSY_LOAD = 0.25  # the machine is busy if other programs use this fraction of its cores
_MIN_SHARE = 0.8  # fraction of the time for which the threads compute on a machine that isn't busy


def _print_bad(pipeline: Pipeline) -> None:
    report = pipeline.bad_sample_report()
    if report:
        print(f"Skipped {len(report)} images that failed, the first in {report[0].operator}:")
        print(f"  {report[0].file}\n  {report[0].reason}")


def run(root: Path, batch: int, threads: int, batches: int, size: int, step: float) -> int:
    """Measure a folder and print the results; return the exit status."""
    files = find_images(root)
    if not files:
        print(f"{root}: found no images ({', '.join(sorted(IMAGES))})")
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
    print(pipeline.stats())
    _print_verdict(usage, rate, batch, threads)
    if step:
        _print_consumer(pipeline, batches, step, threads)
    _print_bad(pipeline)
    pipeline.close()
    return 0
