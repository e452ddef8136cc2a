"""Compare torchdali with SPDL, torchcodec and torch's DataLoader on a folder of images.

``python -m benchmarks.peers DIR`` runs the loaders in alternation, each in a fresh process, and prints medians. SPDL
and torchcodec: ``pip install spdl torchcodec``; what is not installed is left out. `benchmarks.imagenet` has DALI.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from torchdali import Loader, fn, pipeline_def, types
from torchdali.tuning.usage import Usage

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
WORKLOADS = ("train", "val")
_WARMUP, _TIMED = 4, 12  # batches


@dataclass(frozen=True)
class Job:
    """Work of a loader: files, batches, threads or workers."""

    workload: str
    files: list[str]
    batch: int
    threads: int

    def endless(self) -> Iterator[str]:
        """Yield the files in random order, again and again."""
        while True:
            yield from random.sample(self.files, len(self.files))


def _transform(workload: str) -> Callable[[torch.Tensor], torch.Tensor]:
    from torchvision.transforms import v2

    crop: list[Any] = [v2.Resize(256, antialias=True), v2.CenterCrop(224)]
    if workload == "train":
        crop = [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()]
    composed: Any = v2.Compose([*crop, v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])
    return composed  # type: ignore[no-any-return]


def _load_with_torchcodec(job: Job) -> Callable[[str], torch.Tensor]:
    from torchcodec.decoders import decode_jpeg

    transform = _transform(job.workload)
    return lambda path: transform(decode_jpeg(path))


def _load_with_torchvision(job: Job) -> Callable[[str], torch.Tensor]:
    from torchvision import io

    transform = _transform(job.workload)
    return lambda path: transform(io.decode_image(path, mode=io.ImageReadMode.RGB))


def _torchdali(job: Job) -> Iterator[Any]:
    @pipeline_def(batch_size=job.batch, num_threads=job.threads, device_id=None)
    def pipeline() -> Any:
        images = fn.decoders.image(fn.readers.file(files=job.files, random_shuffle=True)[0])
        crop: dict[str, Any] = {"crop": (224, 224)}
        if job.workload == "train":
            images, crop = fn.random_resized_crop(images, size=224), {"mirror": fn.random.coin_flip()}
        else:
            images = fn.resize(images, resize_shorter=256)
        crop |= {"mean": [255 * value for value in MEAN], "std": [255 * value for value in STD]}
        return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", **crop)

    return itertools.chain.from_iterable(itertools.repeat(Loader(pipeline(), drop_last=True)))


class _Images(torch.utils.data.Dataset[torch.Tensor]):
    def __init__(self, job: Job, load: Callable[[str], torch.Tensor]) -> None:
        self.files, self.load = job.files, load

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.load(self.files[index])


def _dataloader(job: Job, load: Callable[[Job], Callable[[str], torch.Tensor]]) -> Iterator[Any]:
    loader = torch.utils.data.DataLoader(
        _Images(job, load(job)), job.batch, shuffle=True, num_workers=job.threads, persistent_workers=True,
        drop_last=True, multiprocessing_context="fork",
    )  # fmt: skip
    return itertools.chain.from_iterable(itertools.repeat(loader))


def _spdl(job: Job, load: Callable[[Job], Callable[[str], torch.Tensor]]) -> Iterator[Any]:
    from spdl.pipeline import PipelineBuilder

    torch.set_num_threads(1)
    built = PipelineBuilder().add_source(job.endless()).pipe(load(job), concurrency=job.threads)
    pipeline = built.aggregate(job.batch).pipe(torch.stack).add_sink(3).build(num_threads=job.threads)
    pipeline.start()
    return iter(pipeline)


SIDES: dict[str, Callable[[Job], Iterator[Any]]] = {
    "torchdali": _torchdali,
    "DataLoader, torchvision": lambda job: _dataloader(job, _load_with_torchvision),
    "DataLoader, torchcodec": lambda job: _dataloader(job, _load_with_torchcodec),
    "SPDL, torchvision": lambda job: _spdl(job, _load_with_torchvision),
    "SPDL, torchcodec": lambda job: _spdl(job, _load_with_torchcodec),
}


def measure(side: str, job: Job) -> tuple[float, float]:
    """Return the images a second of a loader, and its milliseconds of CPU time an image, workers included."""
    batches = SIDES[side](job)
    for _ in range(_WARMUP):
        shape = next(batches).shape
    assert shape == (job.batch, 3, 224, 224), shape
    start = Usage.now()
    for _ in range(_TIMED):
        next(batches)
    used, images = Usage.now().since(start), job.batch * _TIMED
    return images / used.wall, 1e3 * used.own / images


def _rounds(options: argparse.Namespace, workload: str) -> None:
    found: dict[str, list[tuple[float, float]]] = {side: [] for side in SIDES}
    for _, side in itertools.product(range(options.rounds), SIDES):
        command = [sys.executable, "-m", "benchmarks.peers", *sys.argv[1:], "--side", side, "--workload", workload]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found[side].append(tuple(json.loads(done.stdout)))
        elif "ModuleNotFoundError" not in done.stderr:
            print(f"  {side}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        time.sleep(0.2)
    print(f"{workload}, images a second (and milliseconds of CPU time for each):")
    for side, rates in found.items():
        if rates:
            rate, cpu = (median(column) for column in zip(*rates, strict=True))
            print(f"  {side:26} {rate:7.0f}   ({cpu:.2f})")


def main() -> None:
    """Measure all loaders, or one of them in this process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("root", type=Path, metavar="DIR", help="searched at any depth for JPEGs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2, help="threads, or worker processes")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--workload", choices=WORKLOADS, help="all by default")
    options = parser.parse_args()
    if options.side is None:
        for workload in [options.workload] if options.workload else WORKLOADS:
            _rounds(options, workload)
        return
    files = [str(path) for path in sorted(options.root.rglob("*")) if path.suffix.lower() in (".jpg", ".jpeg")]
    print(json.dumps(measure(options.side, Job(options.workload, files, options.batch, options.threads))), flush=True)
    os._exit(0)  # some of the loaders have threads that do not end


if __name__ == "__main__":
    main()
