"""The dynamic mode beside a pipeline, and beside the real DALI's: ``python -m benchmarks.dynamic [--images DIR]``.

Train: files are read, decoded, cut at random, resized to 224 x 224, mirrored and normalized, batch 64. Of a few images
each has several names, so that an epoch is not over after some batches. One process a side, all of which stay;
rounds take them in turn, so that a disturbance meets every side. Printed are images a CPU second (time of all
threads), images a second, and ratios within each round: their median, least and greatest.

Small: CPU microseconds of the calling thread of one call on a tensor of 4 x 4 x 3, in turn.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from .pipelines import build

SIDES = ("pipeline", "dynamic", "capture", "dali", "dali_dynamic", "dali_capture")
BATCH = 64
_MEAN, _STD = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]


def _package(side: str) -> str:
    return "nvidia.dali" if side.startswith("dali") else "torchdali"


def _dynamic(package: str) -> Any:
    import importlib

    return importlib.import_module(f"{package}.experimental.dynamic")


def _batches(side: str, root: str, threads: int) -> Iterator[Any]:
    """Yield something of each batch that proves that it was computed."""
    if side in ("pipeline", "dali"):
        pipe = build(_package(side), "train", root, batch_size=BATCH, num_threads=threads, seed=1)
        while True:
            yield pipe.run()[0].at(0)[0, 0, 0].item()
    ndd = _dynamic(_package(side))
    ndd.set_num_threads(threads)
    reader = ndd.readers.File(file_root=root, random_shuffle=True)
    rng = ndd.random.RNG(1)
    options = {"capture": True} if side.endswith("capture") else {}
    while True:
        for jpegs, _labels in reader.next_epoch(batch_size=BATCH, **options):
            if jpegs.batch_size < BATCH:
                continue
            images = ndd.decoders.image(jpegs)
            images = ndd.random_resized_crop(images, size=[224, 224], rng=rng)
            mirror = ndd.random.coin_flip(batch_size=BATCH, rng=rng)
            images = ndd.crop_mirror_normalize(images, mean=_MEAN, std=_STD, mirror=mirror)
            yield images.evaluate().tensors[0].torch()[0, 0, 0].item()


def _small(side: str) -> dict[str, Callable[[], Any]]:
    import numpy as np

    ndd = _dynamic(_package(side))
    x = ndd.tensor(np.ones((4, 4, 3), np.float32), layout="HWC")
    mode = getattr(ndd.EvalMode, "sync_cpu", None)
    assert mode is not None
    return {
        "flip": lambda: ndd.flip(x).evaluate(),
        "brightness": lambda: ndd.brightness(x, brightness=1.5).evaluate(),
        "add": lambda: (x + 1).evaluate(),
    }


def _serve(side: str, root: str, threads: int) -> None:
    """Answer questions, one JSON a line: a number of batches, or the name of a call."""
    source: Iterator[Any] | None = None
    calls: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        message = json.loads(line)
        if isinstance(message, str):
            calls = calls or _small(side)
            print(json.dumps(_call_cost(calls[message])), flush=True)
            continue
        source = source or _batches(side, root, threads)
        _settle()
        start, start_cpu = time.perf_counter(), time.process_time()
        for _ in range(message):
            next(source)
        end = _settle()
        print(json.dumps([end - start, time.process_time() - start_cpu]), flush=True)


_PAUSE = 0.02


def _settle() -> float:
    """Wait until nothing is computed ahead any more; return since when.

    Queues are as full before a round as after it, so that a round computes as many batches as it takes.
    """
    busy = time.process_time()
    while True:
        since = time.perf_counter()
        time.sleep(_PAUSE)
        now = time.process_time()
        if now - busy < _PAUSE / 10:
            return since
        busy = now


def _call_cost(call: Callable[[], Any], count: int = 1000) -> float:
    for _ in range(100):
        call()
    start = time.thread_time()
    for _ in range(count):
        call()
    return 1e6 * (time.thread_time() - start) / count


class _Side:
    def __init__(self, name: str, root: str, threads: int) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.dynamic", "--serve", name, "--images", root,
                   "--threads", str(threads)]  # fmt: skip
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def request(self, message: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(message), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a measuring process ended: see its message above")
        return json.loads(line)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


def _show(name: str, values: list[float], peer: str, peer_values: list[float]) -> None:
    ratios = [a / b for a, b in zip(values, peer_values, strict=True)]
    print(f"  {name} / {peer}: {median(ratios):.3f} ({min(ratios):.3f} .. {max(ratios):.3f})")


def measure_train(sides: dict[str, _Side], batches: int, rounds: int) -> None:
    """Print the rates of all sides, and what is asked of them."""
    for side in sides.values():
        side.request(8)
    wall: dict[str, list[float]] = {name: [] for name in sides}
    cpu: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        names = list(sides)[:: -1 if number % 2 else 1]
        for name in names:
            seconds, busy = sides[name].request(batches)
            wall[name].append(BATCH * batches / seconds)
            cpu[name].append(BATCH * batches / busy)
    for name in sides:
        print(f"{name:14} {median(wall[name]):7.0f} images/s {median(cpu[name]):7.0f} images/CPU s")
    pairs = [
        ("dynamic", "pipeline"),
        ("capture", "pipeline"),
        ("dynamic", "dali_dynamic"),
        ("capture", "dali_capture"),
    ]
    for kind, rates in (("wall time", wall), ("CPU time", cpu)):
        print(f"Ratios by {kind}, median of {rounds} rounds (least .. greatest):")
        for name, other in pairs:
            if name in sides and other in sides:
                _show(name, rates[name], other, rates[other])


def measure_small(sides: dict[str, _Side], rounds: int) -> None:
    """Print what one call on a small tensor costs."""
    for call in ("flip", "brightness", "add"):
        costs = {name: [side.request(call) for _ in range(rounds)] for name, side in sides.items()}
        print(
            f"{call:12}",
            *(f"{name} {median(c):.1f} us ({min(c):.1f})" for name, c in costs.items()),
        )


def _photos(folder: Path) -> Path:
    """Make photos of about ImageNet's size in two class folders."""
    import numpy as np
    import PIL.Image

    rng = np.random.default_rng(0)
    for i in range(256):
        target = folder / "ab"[i % 2]
        target.mkdir(exist_ok=True)
        coarse = rng.integers(0, 256, (24, 32, 3), np.uint8)
        photo = PIL.Image.fromarray(coarse).resize((500, 375), PIL.Image.Resampling.BICUBIC)
        noise = rng.normal(0, 6, (375, 500, 3))
        pixels = (np.asarray(photo) + noise).clip(0, 255).astype(np.uint8)
        PIL.Image.fromarray(pixels).save(target / f"{i:03}.jpg", quality=90)
    return folder


def _long_epoch(root: str, folder: Path, count: int = 50 * BATCH) -> Path:
    """Link the files of class folders under so many names that an epoch has at least ``count`` images."""
    files = sorted(path for path in Path(root).resolve().glob("*/*") if path.is_file())
    for copy in range(-(-count // max(1, len(files)))):
        for path in files:
            target = folder / path.parent.name
            target.mkdir(exist_ok=True)
            (target / f"{copy:04}_{path.name}").symlink_to(path)
    return folder


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", help="folder of class folders with JPEGs; made photos by default")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batches", type=int, default=25, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sides", nargs="*", default=list(SIDES), choices=SIDES)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        _serve(options.serve, options.images, options.threads)
        return
    with tempfile.TemporaryDirectory() as scratch:
        photos, links = Path(scratch, "photos"), Path(scratch, "links")
        photos.mkdir()
        links.mkdir()
        root = str(_long_epoch(options.images or str(_photos(photos)), links))
        sides = {name: _Side(name, root, options.threads) for name in options.sides}
        try:
            measure_train(sides, options.batches, options.rounds)
            small = {n: sides[n] for n in ("dynamic", "dali_dynamic") if n in sides}
            measure_small(small, options.rounds)
        finally:
            for side in sides.values():
                side.close()


if __name__ == "__main__":
    main()
