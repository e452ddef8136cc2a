"""``torchdali bench DIR --gpu``: test the code that uses the GPU, and measure its speed.

Each measurement in `PARTS` runs in a separate process with a time limit, so that a hanging measurement doesn't block
the others. After each step, a measurement prints its results as a line of JSON, so that results before a hang or a
crash are not lost.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

import torchdali
from torchdali import fn, pipeline_def, types
from torchdali._commands import benching
from torchdali.pipeline import Pipeline

__all__ = ["PARTS", "Measurement", "Sizes", "run_measurement", "measure"]

Results = Iterator[tuple[str, Any]]
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
# The images are copied to the GPU by the decoder ("mixed"), after the crop as uint8 ("bytes"), or after the
# normalization as float32 ("floats").
COPY_POINTS = ("mixed", "bytes", "floats")


@dataclass(frozen=True)
class Sizes:
    """Sizes of the measurements; tests use smaller values.

    Attributes:
        batch: Number of images in a batch.
        batches: Number of batches in a measurement.
        threads: Number of threads of a pipeline.
        size: Height and width of a crop.
        copied: Number of bytes in a copy.
        spin: Number of clock cycles for which `streams` keeps a CUDA stream busy before each batch.
    """

    batch: int = 256
    batches: int = 20
    threads: int = os.cpu_count() or 1
    size: int = 224
    copied: int = 1 << 28
    spin: int = 100_000_000


@dataclass(frozen=True)
class Measurement:
    """A measurement: a function that yields names and results, and its time limit in seconds."""

    run: Callable[[Path, Sizes], Results]
    limit: int


def about(folder: Path, sizes: Sizes) -> Results:
    """Yield the GPU's name, the versions of torch and torchdali, and the speed of copies.

    There are three kinds of copies: from pinned memory to the GPU, from pageable memory to the GPU, and on the GPU.
    """
    yield "device", torch.cuda.get_device_name(0)
    yield "torch", torch.__version__
    yield "torchdali", torchdali.__version__
    host = torch.empty(sizes.copied, dtype=torch.uint8)
    pinned, target = host.pin_memory(), host.to("cuda:0")
    copies: dict[str, Callable[[], Any]] = {
        "pinned": lambda: target.copy_(pinned, non_blocking=True),
        "pageable": lambda: target.copy_(host),
        "on the device": lambda: target.clone(),
    }
    for name, copy in copies.items():
        yield f"{name} GB/s", sizes.copied / 1e9 / seconds(copy)


def pipeline(folder: Path, copy_point: str, sizes: Sizes, seed: int = 1, device_id: int | str = 0) -> Pipeline:
    """Build the training pipeline; ``copy_point`` is one of `COPY_POINTS`."""
    files = benching.find_images(folder)
    classes = {parent: k for k, parent in enumerate(sorted({path.parent for path in files}))}
    labels = [classes[path.parent] for path in files]
    decoder: Literal["mixed", "cpu"] = "mixed" if copy_point == "mixed" else "cpu"

    @pipeline_def(
        batch_size=sizes.batch, num_threads=sizes.threads, device_id=device_id, seed=seed,
        bad_samples="replace",
    )  # fmt: skip
    def define() -> Any:
        encoded, label = fn.readers.file(files=list(map(str, files)), labels=labels, random_shuffle=True, name="Reader")
        images = fn.decoders.image(encoded, device=decoder)
        images = fn.random_resized_crop(images, size=sizes.size)
        images = images.gpu() if copy_point == "bytes" else images
        flip = fn.random.coin_flip()
        images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, mean=MEAN, std=STD, mirror=flip)
        return images.gpu(), label.gpu()

    pipe: Pipeline = define()
    pipe.build()
    return pipe


def training(folder: Path, sizes: Sizes) -> Results:
    """Measure the images/s of the training pipeline for each value of `COPY_POINTS`."""
    for copy_point in COPY_POINTS:
        pipe = pipeline(folder, copy_point, sizes)
        for _ in range(5):
            pipe.run()
        torch.cuda.synchronize()
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(sizes.batches):
            pipe.run()
        torch.cuda.synchronize()
        images = sizes.batch * sizes.batches
        yield f"{copy_point} images/s", images / (time.perf_counter() - start)
        yield f"{copy_point} CPU us/image of this process", 1e6 * (time.process_time() - cpu) / images
        pipe.close()


def launches(folder: Path, sizes: Sizes) -> Results:
    """Count the kernels, copies and waits of a batch with PyTorch's profiler."""
    from torch.profiler import ProfilerActivity, profile

    pipe = pipeline(folder, "mixed", sizes)
    for _ in range(5):
        pipe.run()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
        for _ in range(3):
            pipe.run()
        torch.cuda.synchronize()
    pipe.close()
    names = [event.name for event in profiler.events() if event.device_type.name == "CUDA"]
    copies = sum(name.startswith("Memcpy") for name in names)
    yield "kernels per batch", (len(names) - copies) / 3
    yield "copies per batch", copies / 3
    yield "waits", sum("Synchronize" in event.name for event in profiler.events())


def streams(folder: Path, sizes: Sizes) -> Results:
    """Check that results are right even if the CUDA stream that uses the results is slow.

    The stream first sleeps and then sums the images of a batch. Meanwhile, the program drops the batch, and two
    pipelines compute further batches. The sums must equal the sums that were computed without sleeping.
    """
    count = max(2, sizes.batches // 2)
    pipe = pipeline(folder, "mixed", sizes)
    expected = [_sum(pipe) for _ in range(count)]
    torch.cuda.synchronize()
    pipe.close()
    pipes = [pipeline(folder, "mixed", sizes) for _ in range(2)]
    cuda: Any = torch.cuda
    slow_stream, sums = cuda.Stream(), []
    for _ in range(count):
        for pipe in pipes:
            with cuda.stream(slow_stream):
                if sizes.spin:
                    cuda._sleep(sizes.spin)
                sums.append(_sum(pipe))
    torch.cuda.synchronize()
    references = [float(each) for each in expected for _ in pipes]
    yield "batches", len(sums)
    yield "wrong", sum(float(a) != b for a, b in zip(sums, references, strict=True))
    for pipe in pipes:
        pipe.close()


def _sum(pipe: Pipeline) -> torch.Tensor:
    images: Any = pipe.run()[0]
    total: torch.Tensor = images.as_tensor().torch().double().sum()
    return total


def seconds(function: Callable[[], Any], times: int = 10) -> float:
    """Return the average duration of a function on the device, in seconds."""
    for _ in range(3):
        function()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(times):
        function()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / times


PARTS = {
    "about": Measurement(about, 60), "training": Measurement(training, 180), "launches": Measurement(launches, 90),
    "streams": Measurement(streams, 120),
}  # fmt: skip


def run_measurement(part: Measurement, folder: Path, sizes: Sizes) -> None:
    """Run a measurement; after each step, print all results so far as a line of JSON."""
    figures = {}
    for name, value in part.run(folder, sizes):
        figures[name] = round(value, 3) if isinstance(value, float) else value
        print(json.dumps(figures), flush=True)


def _run_in_process(command: Sequence[str], limit: int) -> dict[str, Any]:
    """Run a measurement's command in a process; return its last results and, if it failed, the error as "failed"."""
    start, failure = time.perf_counter(), None
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    try:
        out, err = process.communicate(timeout=limit)
        if process.returncode:
            failure = err[-2000:] or f"exit status {process.returncode}"
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
        failure = f"took more than {limit} s"
    lines = [line for line in out.splitlines() if line.startswith("{") and line.endswith("}")]
    figures: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    figures["seconds"] = round(time.perf_counter() - start, 1)
    return figures if failure is None else {**figures, "failed": failure}


def measure(
    folder: Path,
    out: Path,
    parts: Mapping[str, Measurement] = PARTS,
    module: str = "torchdali._commands.gpu",
) -> int:
    """Run measurements one after the other; append each result to a file, as a line of JSON.

    Args:
        folder: Folder of images, searched recursively.
        parts: The measurements, by name.
        module: Module that runs one measurement, as ``python -m module folder name``.

    Returns:
        1 if a measurement failed or torch sees no GPU, otherwise 0.
    """
    if not torch.cuda.is_available():
        print("torch finds no CUDA device, so there is nothing to measure")
        return 1
    succeeded = True
    for name, part in parts.items():
        figures = _run_in_process([sys.executable, "-m", module, str(folder), name], part.limit)
        succeeded &= "failed" not in figures
        with out.open("a") as file:
            file.write(json.dumps({"part": name, **figures}) + "\n")
        print(json.dumps({"part": name, **figures}, indent=1), flush=True)
    print(f"written to {out}")
    return int(not succeeded)


if __name__ == "__main__":
    run_measurement(PARTS[sys.argv[2]], Path(sys.argv[1]), Sizes())
