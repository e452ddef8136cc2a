"""Check a GPU in ten minutes: correctness and speed. ``python -m benchmarks.gpu DIR [--parts ...]``.

The module runs the parts of ``torchdali bench DIR --gpu``, and parts for developers: nvJPEG's engine (`path`), a
training loop and a pipeline that share the GPU (`trainer`), every operator, and the batched kernels, on CUDA and on the
CPU. All parts except for the operators also run on the mock GPU, see tests/pretend/test_gpu_bench.py. The results of an
H100 are in benchmarks/measurements_machines.md.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchdali import dynamic
from torchdali._commands import benching
from torchdali._commands.gpu import PARTS, Measurement, Results, Sizes, measure, pipeline, run_measurement, seconds
from torchdali.codecs._native import decode_jpegs, examine
from torchdali.codecs.engines import EngineOptions, NvJpeg
from torchdali.kernels.device.tables import missing_kernel_requirement
from torchdali.kernels.native import ImageOptions

__all__ = ["ALL", "main"]


# ---------------------------------------------------------------- nvJPEG, and what only a GPU shows

_FILES = 96
_STATES = 3
_CUDA: Any = torch.cuda


class _Engine:
    """nvJPEG's engine with a batch of files in pinned memory, and memory for the pixels of each state."""

    def __init__(self, files: Sequence[Tensor], fancy: bool) -> None:
        self.sizes = [len(each) for each in files]
        self.starts = [64 * int(start) for start in np.cumsum([0, *(-(-size // 64) for size in self.sizes)])]
        self.flat = torch.empty(self.starts[-1], dtype=torch.uint8, pin_memory=True)
        for start, each in zip(self.starts, files, strict=False):
            self.flat[start : start + len(each)] = each
        self.table = examine([self.file(i) for i in range(len(files))]).rows
        pixels = 256 * -(-self.table["height"].astype(np.int64) * self.table["width"] * 3 // 256)
        self.offsets = [int(offset) for offset in np.cumsum([0, *pixels.tolist()])]
        self.outputs = [torch.zeros(self.offsets[-1], dtype=torch.uint8, device="cuda:0") for _ in range(_STATES)]
        self._stream = _CUDA.Stream()
        _CUDA.synchronize()
        free = _free_memory()
        self.engine = NvJpeg(EngineOptions(len(files), _STATES, fancy))
        self.held = free - _free_memory()

    def file(self, i: int) -> Tensor:
        return self.flat[self.starts[i] : self.starts[i] + self.sizes[i]]

    def decode(self, state: int) -> Any:
        """Submit all files; return an event behind the pixels."""
        self.table["out"] = self.offsets[:-1]
        with _CUDA.stream(self._stream):
            self.engine.decode(self.table, self.outputs[state], state, self._stream.cuda_stream)
            event = _CUDA.Event(blocking=True)
            event.record()
        return event

    def images(self, state: int) -> list[Tensor | None]:
        """Return the images of a state that was waited for; None for those that the engine did not take."""
        decoded = self.outputs[state].cpu()
        forms = self.table[["height", "width", "code"]].tolist()
        return [
            None if code else decoded[offset : offset + h * w * 3].view(h, w, 3)
            for offset, (h, w, code) in zip(self.offsets, forms, strict=False)
        ]


def _free_memory() -> float:
    """Return the free memory of the GPU, in MB."""
    return float(_CUDA.mem_get_info()[0]) / 1e6


def path(folder: Path, sizes: Sizes) -> Results:
    """Tell if nvJPEG decodes, if its pixels are right, what it holds, and what only a real GPU shows."""
    os.environ.setdefault("TORCHDALI_NVJPEG", "1")
    yield "kernels lack", missing_kernel_requirement() or "nothing"
    files = [torch.from_numpy(np.fromfile(name, np.uint8)) for name in benching.find_images(folder)[:_FILES]]
    yield "files", len(files)
    lots = examine(files, ImageOptions(upright=False)).rows["lot"]
    files = [file for file, lot in zip(files, lots.tolist(), strict=True) if lot >= 0]
    for fancy in (False, True):
        for name, value in _check_nvjpeg(files, fancy, sizes):
            yield f"{'smooth' if fancy else 'repeated'} colors, {name}", value
    yield from _check_damaged_file(files)
    free = _free_memory()
    for where in ("mixed", "bytes"):
        yield f"{where} pipeline, levels from the CPU's", _measure_difference(folder, where, sizes)
    yield "pipelines held MB", free - _free_memory()
    for blocking in (True, False):
        yield f"CPU ms in an event, blocking={blocking}", _measure_wait(blocking, sizes)
    yield "dynamic mode, wrong", sum(_is_copied_early(k + 1, sizes) for k in range(sizes.batches))
    if sizes.spin and _CUDA.device_count() > 1:
        yield "context on the first of two devices", _has_context()
    for mode in ("thread_local", "global"):
        yield f"graphs beside a pipeline, {mode}", _capture_graphs(folder, mode, sizes)


def _check_nvjpeg(files: Sequence[Tensor], fancy: bool, sizes: Sizes) -> Iterator[tuple[str, Any]]:
    engine = _Engine(files, fancy)
    engine.decode(0).synchronize()
    images, expected = engine.images(0), decode_jpegs(files, False, fancy=fancy)
    pairs = [(a, b) for a, b in zip(images, expected, strict=True) if a is not None and b is not None]
    yield "taken", len(pairs)
    yield "of", len(files)
    yield "levels", max(int((a.int() - b.int()).abs().max()) for a, b in pairs)
    yield "held MB", engine.held
    events: list[Any] = [None] * _STATES
    called, start = 0.0, time.perf_counter()
    for k in range(sizes.batches):
        if events[k % _STATES] is not None:
            events[k % _STATES].synchronize()
        submitted = time.perf_counter()
        events[k % _STATES] = engine.decode(k % _STATES)
        called += time.perf_counter() - submitted
    for event in filter(None, events):
        event.synchronize()
    count = len(files) * sizes.batches
    yield "images/s", count / (time.perf_counter() - start)
    yield "us in calls", 1e6 * called / count


def _check_damaged_file(files: Sequence[Tensor]) -> Iterator[tuple[str, Any]]:
    """Tell what becomes of a batch with a file whose codes make no sense, and of the next one in the same state."""
    engine = _Engine(files, False)
    engine.decode(0).synchronize()
    expected = engine.images(0)
    victim = max((i for i, image in enumerate(expected) if image is not None), key=engine.sizes.__getitem__)
    file = engine.file(victim)
    region = file[len(file) // 2 : len(file) // 2 + 400]
    original = region.clone()
    for name in ("damaged file", "good again"):
        region[:] = 0x55 if name == "damaged file" else original
        try:
            engine.decode(0).synchronize()
        except RuntimeError as error:
            yield f"{name}, failed", str(error)
            continue
        yield f"{name}, as before", sum(map(_are_equal, engine.images(0), expected))


def _are_equal(a: Tensor | None, b: Tensor | None) -> bool:
    return a is not None and b is not None and torch.equal(a, b)


def _measure_difference(folder: Path, where: str, sizes: Sizes) -> float:
    """Return the greatest difference of a pipeline from the CPU's, in levels; not at the border of a window."""
    batches = []
    for device in (0, "cpu"):
        pipe = pipeline(folder, where, sizes, device_id=device)
        batches.append([pipe.run()[0].as_cpu().as_tensor().torch().clone() for _ in range(2)])
        pipe.close()
    return max(float((57.5 * (a - b))[..., 4:-4, 4:-4].abs().max()) for a, b in zip(*batches, strict=True))


def _measure_wait(blocking: bool, sizes: Sizes) -> float:
    event = _CUDA.Event(blocking=blocking)
    if sizes.spin:
        _CUDA._sleep(sizes.spin)
    event.record()
    start = time.thread_time()
    event.synchronize()
    return 1e3 * (time.thread_time() - start)


def _is_copied_early(value: int, sizes: Sizes) -> bool:
    """Return whether the dynamic mode hands over a copy that is not done."""
    x = torch.zeros(1 << 16, dtype=torch.uint8, device="cuda")
    if sizes.spin:
        _CUDA._sleep(sizes.spin // 4)
    x.fill_(value)
    copy: Any = dynamic.as_tensor(x).cpu()
    return bool((np.asarray(copy) != value).any())


def _has_context() -> str:
    """Return whether a pipeline on the second device makes a context on the first, as a process of its own tells."""
    code = (
        "import torch; from torchdali import fn, pipeline_def; torch.cuda.set_device(1)\n"
        "@pipeline_def(batch_size=8, num_threads=2, device_id=1)\n"
        "def define(): return fn.external_source(lambda: [torch.ones(9)] * 8).gpu() + 1\n"
        "pipe = define(); [pipe.run() for _ in range(3)]; print(torch._C._cuda_hasPrimaryContext(0))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() or done.stderr[-200:]


def _capture_graphs(folder: Path, mode: str, sizes: Sizes) -> str:
    """Capture CUDA graphs while a pipeline runs in another thread; return what failed, or nothing."""
    stop, failures = threading.Event(), []
    pipe, x = pipeline(folder, "mixed", sizes), torch.zeros(1024, device="cuda")
    pipe.run()

    def drain() -> None:
        try:
            while not stop.is_set():
                pipe.run()
        except Exception as error:
            failures.append(f"the pipeline: {error}"[:160])

    helper = threading.Thread(target=drain)
    helper.start()
    for _ in range(sizes.batches):
        graph = _CUDA.CUDAGraph()
        try:
            with _CUDA.graph(graph, capture_error_mode=mode):
                for _ in range(100):
                    x.add_(1)
            graph.replay()
        except Exception as error:
            failures.append(f"the capture: {error}"[:160])
    stop.set()
    helper.join()
    with contextlib.suppress(Exception):  # it may have failed
        pipe.close()
    return "; ".join(dict.fromkeys(failures))


# ---------------------------------------------------------------- training beside a pipeline


def trainer(folder: Path, sizes: Sizes) -> Results:
    """Tell what a training loop and a pipeline in its process cost each other: launches, and steps of a network."""
    pipe = pipeline(folder, "mixed", sizes)
    for _ in range(3):
        pipe.run()
    yield "pipeline alone images/s", _rate(pipe.run, sizes)
    x, stop = torch.zeros(64, device="cuda"), threading.Event()

    def launch() -> None:
        for _ in range(100):
            x.add_(1)

    yield "us of a launch, alone", 1e4 * seconds(launch, sizes.batches)
    helper = threading.Thread(target=lambda: [pipe.run() for _ in iter(stop.is_set, True)])
    helper.start()
    yield "us of a launch, beside the pipeline", 1e4 * seconds(launch, sizes.batches)
    stop.set()
    helper.join()
    step = _network(sizes)
    images = torch.randn(sizes.batch, 3, sizes.size, sizes.size).cuda()
    labels = torch.zeros(sizes.batch, dtype=torch.long).cuda()
    yield "steps alone images/s", _rate(lambda: step(images, labels), sizes)

    def train_step() -> None:
        pixels, classes = (each.as_tensor().torch() for each in pipe.run())
        step(pixels, classes.long().reshape(-1))

    yield "steps fed by the pipeline images/s", _rate(train_step, sizes)
    pipe.close()


def _rate(work: Callable[[], Any], sizes: Sizes) -> float:
    return sizes.batch / seconds(work, sizes.batches)


def _network(sizes: Sizes) -> Callable[[Tensor, Tensor], None]:
    """Return a step of training: of ResNet-50 in bfloat16, or of a small network for small images."""
    with torch.device("cuda"):
        if sizes.size >= 64:
            import torchvision

            model: torch.nn.Module = torchvision.models.resnet50(weights=None)
        else:
            layers = torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(4 * (sizes.size - 2) ** 2, 1000)
            model = torch.nn.Sequential(*layers)
    model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9)

    def step(images: Tensor, labels: Tensor) -> None:
        with torch.autocast("cuda", torch.bfloat16, enabled=sizes.size >= 64):
            loss = torch.nn.functional.cross_entropy(
                model(images.contiguous(memory_format=torch.channels_last)), labels
            )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


# ---------------------------------------------------------------- operators and kernels


def operators(folder: Path, sizes: Sizes) -> Results:
    """Compare every operator on CUDA with the CPU: levels or shares of the greatest value, or how it fails."""
    from tests.calls import calls
    from tests.pretend.cases import NOT_HERE, run
    from tests.pretend.cases import operators as names

    chosen = [call for name in names() if name not in NOT_HERE for call in calls(name)]
    for call in chosen:
        try:
            with _scratch():
                expected, found = run(call, "cpu")[0], run(call, 0)[0]
            difference = max((_find_difference(a, b) for a, b in zip(expected, found, strict=True)), default=0)
            if difference > 1e-4:
                yield call, difference
        except Exception as error:
            yield call, f"{type(error).__name__}: {error}"[:300]
    yield "calls", len(chosen)


@contextlib.contextmanager
def _scratch() -> Iterator[None]:
    """Work in an empty folder: `dump_image` writes where it is called."""
    previous = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(previous)


def _find_difference(a: Any, b: Any) -> float:
    """Return the greatest difference: levels for integers, a share of the greatest value for floats."""
    worst = 0.0
    for one, other in zip(a.as_cpu().samples(), b.as_cpu().samples(), strict=True):
        scale = max(1.0, float(one.abs().max())) if one.is_floating_point() and one.numel() else 1.0
        if one.numel():
            worst = max(worst, float((one.double() - other.double()).abs().max()) / scale)
    return worst


def kernels(folder: Path, sizes: Sizes) -> Results:
    """Compare the kernels for batches with their bodies in torch, on ragged images; and time them."""
    from torchdali.kernels.device.resize import Regions, resize_batch
    from torchdali.kernels.resample.weights import RADIUS

    rng = np.random.default_rng(0)
    count, largest = min(64, sizes.batch), max(8, 2 * sizes.size)
    for name in RADIUS:
        sides = rng.integers(largest // 8 + 1, largest, (2, count))
        numbers = sides.prod(0) * 3
        offsets = np.cumsum(numbers) - numbers
        flat = torch.from_numpy(rng.integers(0, 256, int(numbers.sum()), np.uint8))
        low = rng.uniform(0, 0.4, sides.shape) * sides
        shape = np.full((2, count), sizes.size)
        regions = Regions(low, low + 0.5 * sides, shape, (name, name), True)
        expected = resize_batch(flat, offsets, sides, 3, regions, torch.uint8)
        device_flat = flat.to("cuda:0")
        found = resize_batch(device_flat, offsets, sides, 3, regions, torch.uint8)
        assert expected is not None and found is not None
        yield f"{name} levels", (found.cpu().int() - expected.int()).abs().max().item()
        inputs = (device_flat, offsets, sides, 3, regions, torch.uint8)
        yield f"{name} ms of {count} images", 1e3 * seconds(partial(resize_batch, *inputs))


ALL = {
    **PARTS, "path": Measurement(path, 120), "trainer": Measurement(trainer, 90), "kernels": Measurement(kernels, 90),
    "operators": Measurement(operators, 150),
}  # fmt: skip


def _parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="with images, at any depth")
    parser.add_argument("--parts", nargs="+", choices=ALL, default=list(ALL))
    parser.add_argument("--out", type=Path, default=Path("gpu.jsonl"))
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the parts; return 1 if one failed."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) == 2 and arguments[1] in ALL:  # started by `measure`
        run_measurement(ALL[arguments[1]], Path(arguments[0]), Sizes())
        return 0
    options = _parse_arguments(arguments)
    chosen = {name: ALL[name] for name in options.parts}
    return measure(options.folder, options.out, chosen, "benchmarks.gpu")


if __name__ == "__main__":
    sys.exit(main())
