"""The framework's own Python cost: ``python -m benchmarks.overhead [--images DIR]``.

Chains of operators that do nothing run over a batch of 64; what each further operator costs a sample,
in CPU microseconds, is the framework's. The cost with none is that of reading and delivering.

With ``--images``, the training pipeline runs on a folder of class folders, driven by `Pipeline.run` and
by the iterators of the PyTorch plugin in turn: the whole rate and CPU time of each, and the CPU time of the
thread that asks, which is where an iterator's own cost is.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from torchdali import Pipeline, fn, operator, pipeline_def
from torchdali.declaration.schema import PerSample
from torchdali.plugin.pytorch import DALIClassificationIterator, DALIGenericIterator

from .pipelines import build

BATCH = 64
LENGTH = 10


@operator
def _plain(data: Any, /) -> Any:
    """Return the input."""
    return data


@operator
def _constant(data: Any, /, *, size: list[float] | None = None, dtype: int = 0) -> Any:
    """Return the input, having taken constant arguments."""
    return data


@operator
def _per_sample(data: Any, /, *, factor: PerSample[float] = 1.0) -> Any:
    """Return the input, having taken an argument of its own for each sample."""
    return data


LINKS: dict[str, Callable[[Any, Any], Any]] = {
    "no arguments": lambda data, factor: _plain(data),
    "constant arguments": lambda data, factor: _constant(data, size=[2, 3], dtype=1),
    "an argument per sample": lambda data, factor: _per_sample(data, factor=factor),
}


@pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, seed=1)
def _chain(root: str, link: Callable[[Any, Any], Any], length: int) -> Any:
    data, _ = fn.readers.file(file_root=root)
    factor = fn.random.uniform()
    for _ in range(length):
        data = link(data, factor)
    return data, factor


def _cost(pipeline: Pipeline, batches: int) -> float:
    """CPU microseconds a sample."""
    start = time.process_time()
    for _ in range(batches):
        pipeline.run()
    return 1e6 * (time.process_time() - start) / (batches * BATCH)


def measure(root: Path, name: str, batches: int, rounds: int) -> tuple[float, float]:
    """CPU microseconds a sample of an empty chain, and of each operator added to it."""
    empty, full = (_chain(str(root), LINKS[name], length) for length in (0, LENGTH))
    for pipeline in (empty, full):
        _cost(pipeline, batches)
    pairs = [(_cost(empty, batches), _cost(full, batches)) for _ in range(rounds)]
    for pipeline in (empty, full):
        pipeline.close()
    return median(a for a, _ in pairs), median((b - a) / LENGTH for a, b in pairs)


# ---------------------------------------------------------------- iterators


class DriverCost(NamedTuple):
    """Cost of a sample: wall and CPU milliseconds, and CPU microseconds of the thread that asks."""

    wall: float
    cpu: float
    asking: float


def _runs(pipe: Pipeline) -> Iterator[Any]:
    while True:
        yield pipe.run()


DRIVERS: dict[str, Callable[[Pipeline], Iterator[Any]]] = {
    "pipe.run()": _runs,
    "DALIGenericIterator": lambda pipe: chain.from_iterable(
        repeat(DALIGenericIterator(pipe, ["data", "label"], reader_name="Reader", auto_reset=True))
    ),
    "DALIClassificationIterator": lambda pipe: chain.from_iterable(
        repeat(DALIClassificationIterator(pipe, reader_name="Reader", auto_reset=True))
    ),
}


def _settle() -> None:
    """Wait until nothing works ahead any more."""
    previous = -1.0
    while time.process_time() - previous > 1e-3:
        previous = time.process_time()
        time.sleep(0.05)


def _drive(source: Iterator[Any], batches: int) -> DriverCost:
    """Take batches from a source whose queue is full, and let it fill up again."""
    _settle()
    start, cpu, asking = time.perf_counter(), time.process_time(), time.thread_time()
    for _ in range(batches):
        next(source)
    wall, asking = time.perf_counter() - start, time.thread_time() - asking
    _settle()
    samples = batches * BATCH
    cpu = time.process_time() - cpu
    return DriverCost(1e3 * wall / samples, 1e3 * cpu / samples, 1e6 * asking / samples)


def drive(root: str, threads: int, batches: int, rounds: int) -> dict[str, list[DriverCost]]:
    """Measure the drivers in turn, each with a pipeline of its own."""
    settings: dict[str, Any] = {"batch_size": BATCH, "num_threads": threads, "seed": 1}
    sources = {name: make(build("torchdali", "train", root, **settings)) for name, make in DRIVERS.items()}
    for source in sources.values():
        _drive(source, 3)
    found: dict[str, list[DriverCost]] = {name: [] for name in sources}
    for _ in range(rounds):
        for name, source in sources.items():
            found[name].append(_drive(source, batches))
    return found


def _print_drivers(found: dict[str, list[DriverCost]]) -> None:
    print(f"{'':28}{'samples/s':>10}{'CPU ms':>9}{'asking, us':>12}   CPU, times that of run()")
    plain = found["pipe.run()"]
    for name, values in found.items():
        wall, cpu, asking = (median(column) for column in zip(*values, strict=True))
        ratio = median(cost.cpu / base.cpu for cost, base in zip(values, plain, strict=True))
        print(f"{name:28}{1e3 / wall:10.0f}{cpu:9.3f}{asking:12.2f}   {ratio:.3f}")


def main(argv: list[str] | None = None) -> None:
    """Measure each kind of operator and print the costs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", help="measure the iterators on this folder of class folders")
    parser.add_argument("--threads", type=int, default=2, help="of the pipelines on images")
    options = parser.parse_args(argv)
    if options.images:
        _print_drivers(drive(options.images, options.threads, options.batches, options.rounds))
        return
    with tempfile.TemporaryDirectory() as folder:
        for number in range(BATCH):
            path = Path(folder) / "class" / f"{number}.jpg"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"0123456789abcdef")
        for name in LINKS:
            fixed, each = measure(Path(folder), name, options.batches, options.rounds)
            print(f"{name:24} {each:6.3f} us an operator and sample; {fixed:.1f} us a sample without")


if __name__ == "__main__":
    main()
