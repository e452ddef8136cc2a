"""``python -m benchmarks.proxy DIR``: `ImageFolder(transform=server.proxy)` beside what it replaces.

The same training work (decode, random crop to 224, mirror, normalize) with two worker processes or
threads: through the proxy, through torch's `DataLoader` with torchvision's transforms on tensors,
as a plain pipeline, and through the real DALI's proxy. One process a side and round, in turn.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import processes
from .pipelines import MEAN, STD

SIDES = ("proxy", "loader", "plain", "dali")
_ROOT = Path(__file__).resolve().parents[1]
_DEADLINE = 900


def _read(path: str) -> Any:
    import numpy as np

    return np.fromfile(path, np.uint8)


def _train(fn: Any, types: Any) -> Any:
    images = fn.external_source(name="images", no_copy=True)
    images = fn.decoders.image(images, output_type=types.RGB)
    images = fn.random_resized_crop(images, size=224)
    options = {"dtype": types.FLOAT, "output_layout": "CHW", "mean": MEAN, "std": STD}
    return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), **options)


def _run_proxy(package: str, job: argparse.Namespace) -> Iterator[Any]:
    from torch.utils.data import RandomSampler
    from torchvision.datasets import ImageFolder

    fn, types = (importlib.import_module(f"{package}.{name}") for name in ("fn", "types"))
    proxy = importlib.import_module(f"{package}.plugin.pytorch.experimental.proxy")
    define = importlib.import_module(package).pipeline_def(_train)
    pipe = define(fn, types, batch_size=job.batch, num_threads=job.threads, device_id=None, seed=1)
    with proxy.DALIServer(pipe) as server:
        loader = str if package == "torchdali" else _read  # the real one takes no paths
        data = ImageFolder(job.root, transform=server.proxy, loader=loader)
        sampler = RandomSampler(data, num_samples=job.batch * job.batches)
        settings = {"batch_size": job.batch, "num_workers": job.workers, "sampler": sampler}
        yield from proxy.DataLoader(server, data, **settings)


def _plain(job: argparse.Namespace) -> Iterator[Any]:
    from .pipelines import build

    sizes = {"batch_size": job.batch, "num_threads": job.threads, "seed": 1}
    pipe = build("torchdali", "train", job.root, **sizes)
    for _ in range(job.batches):
        images, labels = pipe.run()
        yield images.dense(), labels.dense()


def _loader(job: argparse.Namespace) -> Iterator[Any]:
    from .loaders import batches

    sizes = {"batch": job.batch, "threads": job.workers, "total": job.batches, "seed": 1}
    return batches("loader_tensor", "train", job.root, **sizes)


_MAKE: Mapping[str, Callable[[argparse.Namespace], Iterator[Any]]] = {
    "proxy": lambda job: _run_proxy("torchdali", job),
    "dali": lambda job: _run_proxy("nvidia.dali", job),
    "loader": _loader,
    "plain": _plain,
}


def measure(side: str, job: argparse.Namespace) -> tuple[float, float]:
    """Return samples a second and CPU milliseconds a sample of one side, after a few batches."""
    source = _MAKE[side](job)
    for _ in range(job.warmup):
        next(source)
    family = processes.family(os.getpid())
    start, start_cpu, count = time.perf_counter(), processes.cpu_seconds(family), 0
    while count < (job.batches - 2 * job.warmup) * job.batch:
        images, labels = next(source)
        count += len(labels)
        images[0, 0, 0, 0].item()
    wall, cpu = time.perf_counter() - start, processes.cpu_seconds(family) - start_cpu
    return count / wall, 1000 * cpu / count


def rounds(sides: Sequence[str], arguments: Sequence[str], count: int) -> dict[str, list[Any]]:
    """Run the sides in turn, each in a process of its own."""
    found: dict[str, list[Any]] = {side: [] for side in sides}
    for number in range(count):
        for side in sides:
            command = [sys.executable, "-W", "ignore", "-m", "benchmarks.proxy", *arguments]
            done = subprocess.run(
                [*command, "--side", side],
                stdout=subprocess.PIPE,
                text=True,
                cwd=_ROOT,
                timeout=_DEADLINE,
                check=True,
            )
            found[side].append(json.loads(done.stdout.splitlines()[-1]))
            print(f"round {number}  {side:7} {done.stdout.splitlines()[-1]}", flush=True)
    return found


def report(found: Mapping[str, Sequence[Sequence[float]]]) -> str:
    """Return medians, and the ratios to the proxy taken within each round."""
    lines = ["side      samples/s   CPU ms/sample   proxy's rate / this   this CPU / proxy's"]
    for side, values in found.items():
        rate, cpu = (statistics.median(column) for column in zip(*values, strict=True))
        pairs = list(zip(found["proxy"], values, strict=True))
        faster = statistics.median(ours[0] / theirs[0] for ours, theirs in pairs)
        cheaper = statistics.median(theirs[1] / ours[1] for ours, theirs in pairs)
        lines.append(f"{side:7} {rate:11.1f} {cpu:15.2f} {faster:21.2f} {cheaper:20.2f}")
    return "\n".join(lines)


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.proxy", description=__doc__)
    parser.add_argument("root", help="folder with one folder a class")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--batches", type=int, default=24, help="with the first and last of each epoch")
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2, help="worker processes")
    parser.add_argument("--threads", type=int, default=2, help="threads of the pipeline")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=None)
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> None:
    """Measure one side, or all of them and print the table."""
    job = _arguments(argv)
    if job.side:
        print(json.dumps(measure(job.side, job)), flush=True)
        os._exit(0)  # the workers of an epoch that is cut short need not be waited for
    has_dali = importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.dali")
    sides = job.sides or [side for side in SIDES if side != "dali" or has_dali]
    print(report(rounds(sides, argv, job.rounds)))


if __name__ == "__main__":
    main(sys.argv[1:])
