"""Ten minutes on a GPU: what runs, whether it is right, how fast it is. ``python -m benchmarks.gpu DIR [--parts ...]``.

Each part is a process of its own with a time limit, so that one which hangs costs no other; after each, its result is
appended to a file of JSON lines. Nothing here has been run on real hardware by the project yet: see docs/gpu.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

__all__ = ["PARTS", "main"]

BATCH = 256
BATCHES = 20

Result = dict[str, Any]


def about(folder: str) -> Result:
    """Tell versions and the device, and measure copies of 256 MB: page-locked, pageable, on the device."""
    import torchdali

    host, device = torch.empty(1 << 28, dtype=torch.uint8), torch.device("cuda", 0)
    locked, there = host.pin_memory(), host.to(device)
    copies = {
        "pinned": lambda: there.copy_(locked, non_blocking=True),
        "pageable": lambda: there.copy_(host),
        "on the device": lambda: there.clone(),
    }
    rates = {f"{name} GB/s": 0.268 / _seconds(copy) for name, copy in copies.items()}
    versions = {"torch": torch.__version__, "torchdali": torchdali.__version__}
    return {"device": torch.cuda.get_device_name(0), **versions, **rates}


def kernels(folder: str) -> Result:
    """Compare the kernels for batches with their bodies in torch, on ragged images; and time them."""
    import numpy as np

    from torchdali.kernels.device.resize import Regions, resize_batch
    from torchdali.kernels.resample.weights import RADIUS

    rng = np.random.default_rng(0)
    found: Result = {}
    for name in RADIUS:
        sides = rng.integers(64, 500, (2, 64))
        sizes = sides.prod(0) * 3
        offsets = np.cumsum(sizes) - sizes
        flat = torch.from_numpy(rng.integers(0, 256, int(sizes.sum()), np.uint8))
        low = rng.uniform(0, 0.4, sides.shape) * sides
        what = Regions(low, low + 0.5 * sides, np.full((2, 64), 224), (name, name), True)
        expected = resize_batch(flat, offsets, sides, 3, what, torch.uint8)
        there = flat.cuda()
        ours = resize_batch(there, offsets, sides, 3, what, torch.uint8)
        assert expected is not None and ours is not None
        apart = (ours.cpu().int() - expected.int()).abs().max().item()
        seconds = _seconds(
            lambda t=there, o=offsets, s=sides, w=what: resize_batch(t, o, s, 3, w, torch.uint8)  # type: ignore[misc]
        )
        found[name] = {"levels": apart, "ms of 64 images": 1e3 * seconds}
    return found


def _pipeline(folder: str, where: str, threads: int) -> Any:
    from benchmarks import pipelines
    from torchdali import fn, pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=threads, device_id=0, seed=1)
    def define() -> Any:
        files, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="Reader")
        images = fn.decoders.image(files, device="mixed" if where == "mixed" else "cpu")
        images = fn.random_resized_crop(images, size=224)
        images = images.gpu() if where == "bytes" else images
        mirror = fn.random.coin_flip()
        images = fn.crop_mirror_normalize(
            images, dtype=types.FLOAT, mean=pipelines.MEAN, std=pipelines.STD, mirror=mirror
        )
        return images.gpu(), labels.gpu()

    pipe = define()
    pipe.build()
    return pipe


def training(folder: str) -> Result:
    """Count images a second of the training pipeline: decoded "mixed", bytes up, floats up."""
    import os

    found: Result = {}
    for where in ("mixed", "bytes", "floats"):
        pipe = _pipeline(folder, where, os.cpu_count() or 1)
        for _ in range(5):
            pipe.run()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(BATCHES):
            pipe.run()
        torch.cuda.synchronize()
        found[f"{where} images/s"] = BATCH * BATCHES / (time.perf_counter() - start)
        pipe.close()
    return found


def launches(folder: str) -> Result:
    """Count kernels, copies and waits of a batch by torch's profiler."""
    from torch.profiler import ProfilerActivity, profile

    pipe = _pipeline(folder, "mixed", 8)
    for _ in range(5):
        pipe.run()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
        for _ in range(3):
            pipe.run()
        torch.cuda.synchronize()
    pipe.close()
    names = [event.name for event in seen.events() if event.device_type.name == "CUDA"]
    copies = sum(name.startswith("Memcpy") for name in names)
    waits = sum("Synchronize" in event.name for event in seen.events())
    return {
        "kernels a batch": (len(names) - copies) / 3,
        "copies a batch": copies / 3,
        "waits": waits,
    }


def streams(folder: str) -> Result:
    """Run two pipelines beside a stream that is busy, drop tensors at once, and compare checksums."""
    reference: list[float] = []
    pipe = _pipeline(folder, "mixed", 4)
    for _ in range(10):
        images, _ = pipe.run()
        reference.append(float(images.as_tensor().torch().double().sum()))
    pipe.close()
    pipes = [_pipeline(folder, "mixed", 4) for _ in range(2)]
    cuda: Any = torch.cuda
    busy, sums = cuda.Stream(), []
    for _ in range(10):
        for pipe in pipes:
            with cuda.stream(busy):
                cuda._sleep(100_000_000)
                images, _ = pipe.run()
                sums.append(images.as_tensor().torch().double().sum())
                del images
    found = [float(s) for s in sums]
    wrong = sum(a != b for a, b in zip(found, [r for r in reference for _ in pipes], strict=True))
    for pipe in pipes:
        pipe.close()
    return {"batches": len(found), "wrong": wrong}


PARTS: dict[str, tuple[Callable[[str], Result], int]] = {
    "about": (about, 40), "kernels": (kernels, 120), "training": (training, 150), "launches": (launches, 90),
    "streams": (streams, 120),
}  # fmt: skip
"""Parts, and the seconds that each may take."""


def _seconds(work: Callable[[], Any], times: int = 10) -> float:
    """Return the seconds that one piece of work takes on the device."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(times):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / times


def _run(part: str, folder: str) -> Result:
    """Run a part in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.gpu", folder, "--inside", part]
    start = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PARTS[part][1])
        lines = done.stdout.splitlines()
        found: Result = json.loads(lines[-1]) if not done.returncode and lines else {}
        if not found:
            found = {"failed": done.stderr[-2000:]}
    except subprocess.TimeoutExpired:
        found = {"failed": f"took more than {PARTS[part][1]} s"}
    return {"part": part, "seconds": round(time.perf_counter() - start, 1), **found}


def main() -> int:
    """Run the parts; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="with a folder of images for each class")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--out", type=Path, default=Path("gpu.jsonl"))
    parser.add_argument("--inside", choices=PARTS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        print(json.dumps(PARTS[given.inside][0](given.folder)))
        return 0
    if not torch.cuda.is_available():
        print("torch sees no CUDA device: there is nothing to measure")
        return 1
    sound = True
    for part in given.parts:
        result = _run(part, given.folder)
        sound &= "failed" not in result
        with given.out.open("a") as file:
            file.write(json.dumps(result) + "\n")
        print(json.dumps(result, indent=1), flush=True)
    return int(not sound)


if __name__ == "__main__":
    sys.exit(main())
