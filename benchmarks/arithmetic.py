"""Ten arithmetic nodes against the real DALI: ``python -m benchmarks.arithmetic``.

For each kind of value, two pipelines of a batch of 64 run with each package: one without arithmetic and one with
ten nodes of it. What the ten nodes cost a batch, in CPU milliseconds, is the difference; both packages take turns
in one process.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

BATCH = 64
PACKAGES = ("torchdali", "nvidia.dali")
Values = Callable[[Any, Any], Any]


def _images(side: int, dtype: Any) -> list[np.ndarray[Any, Any]]:
    shape = (side, side, 3)
    rng = np.random.default_rng(0)
    return [rng.integers(0, 255, shape, dtype=np.uint8).astype(dtype) for _ in range(BATCH)]


def _compute_from(side: int, dtype: Any, values: Values) -> Values:
    """Return what computes values from images."""
    data = _images(side, dtype)
    return lambda fn, types: values(fn, fn.external_source(source=lambda: data))


@dataclass(frozen=True)
class Case:
    """One kind of values.

    Attributes:
        values: Makes them, with ``fn`` and ``types``.
        factor: What they are multiplied by, five times; it decides in which type that is done.
        argument: What is computed is an argument of an operator on the same images.
    """

    values: Values
    factor: float
    argument: bool = False


def _crop(fn: Any, images: Any) -> Any:
    return fn.crop(images, crop=(12, 12))


CASES = {
    "random numbers": Case(lambda fn, types: fn.random.uniform(range=[0.0, 1.0]), 1.5),
    "small batches of a source": Case(_compute_from(2, np.float32, lambda fn, x: x), 1.5),
    "shapes of crops": Case(_compute_from(16, np.uint8, lambda fn, x: _crop(fn, x).shape()), 1.5),
    "means of crops": Case(_compute_from(16, np.uint8, lambda fn, x: fn.reductions.mean(_crop(fn, x))), 1.5),
    "means, for small images": Case(_compute_from(16, np.uint8, _crop), 1.5, argument=True),
    "means, for large images": Case(_compute_from(96, np.uint8, lambda fn, x: fn.flip(x)), 1.5, argument=True),
    "images of uint8": Case(_compute_from(224, np.uint8, lambda fn, x: fn.flip(x)), 3),
    "images of float32": Case(_compute_from(224, np.float32, lambda fn, x: fn.flip(x)), 1.5),
}


def _add_nodes(x: Any, factor: float) -> Any:
    for _ in range(5):
        x = x * factor - 2
    return x


def build(package: str, case: Case, arithmetic: bool) -> Any:
    """Build a pipeline with ten arithmetic nodes, or without."""
    dali, fn, types = (importlib.import_module(package + end) for end in ("", ".fn", ".types"))

    @dali.pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, seed=1)  # type: ignore[untyped-decorator]
    def define() -> Any:
        values = case.values(fn, types)
        if not case.argument:
            return _add_nodes(values, case.factor) if arithmetic else values
        mean = fn.reductions.mean(values)
        mean = _add_nodes(mean, case.factor) if arithmetic else mean
        return fn.flip(values, horizontal=fn.cast(mean > 1e9, dtype=types.INT32))

    pipe = define()
    pipe.build()
    return pipe


def _cost(pipe: Any, batches: int) -> float:
    """CPU milliseconds a batch."""
    start = time.process_time()
    for _ in range(batches):
        pipe.run()
    return 1e3 * (time.process_time() - start) / batches


def measure(case: Case, batches: int, rounds: int) -> dict[str, float]:
    """CPU milliseconds that ten nodes cost a batch, per package."""
    pipes = {p: [build(p, case, arithmetic) for arithmetic in (False, True)] for p in PACKAGES}
    for pair in pipes.values():
        for pipe in pair:
            _cost(pipe, 10)
    found: dict[str, list[float]] = {package: [] for package in PACKAGES}
    for _ in range(rounds):
        for package, (plain, arithmetic) in pipes.items():
            first = _cost(plain, batches)
            found[package].append(_cost(arithmetic, batches) - first)
    return {package: median(each) for package, each in found.items()}


def main(argv: list[str] | None = None) -> None:
    """Measure each kind of values and print the costs and their ratio."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arithmetic", description=__doc__)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(argv)
    print(f"{'ten nodes, batch 64':28}{'torchdali':>12}{'DALI':>12}   DALI / torchdali")
    for name, case in CASES.items():
        batches = options.batches // (10 if name.startswith("images") else 1)
        ours, theirs = measure(case, max(1, batches), options.rounds).values()
        print(f"{name:28}{ours:>9.2f} ms{theirs:>9.2f} ms{theirs / ours:>10.2f}", flush=True)


if __name__ == "__main__":
    main()
