"""The framework's own Python cost: ``python -m benchmarks.overhead``.

Chains of operators that do nothing run over a batch of 64; what each further operator costs a sample,
in CPU microseconds, is the framework's. The cost with none is that of reading and delivering.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from torchdali import Pipeline, fn, operator, pipeline_def
from torchdali.schema import PerSample

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


def main(given: list[str] | None = None) -> None:
    """Measure each kind of operator and print the costs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(given)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(BATCH):
            path = Path(folder) / "class" / f"{number}.jpg"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"0123456789abcdef")
        for name in LINKS:
            fixed, each = measure(Path(folder), name, options.batches, options.rounds)
            print(
                f"{name:24} {each:6.3f} us an operator and sample; {fixed:.1f} us a sample without"
            )


if __name__ == "__main__":
    main()
