"""Ten minutes on a GPU: what runs, whether it is right, how fast it is. ``python -m benchmarks.gpu DIR [--parts ...]``.

The parts of ``torchdali bench DIR --gpu``, and those for developers: every operator, and the kernels for batches, on
CUDA and on the CPU. What an H100 gave is in benchmarks/measurements_machines.md.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torchdali._commands.gpu import PARTS, Found, Measurement, Sizes, inside, measure, seconds

__all__ = ["ALL", "main"]


def operators(folder: Path, sizes: Sizes) -> Found:
    """Compare every operator on CUDA with the CPU: levels or shares of the greatest value, or how it fails."""
    from tests.calls import calls
    from tests.pretend.cases import NOT_HERE, run
    from tests.pretend.cases import operators as names

    chosen = [call for name in names() if name not in NOT_HERE for call in calls(name)]
    for call in chosen:
        try:
            with _scratch():
                expected, found = run(call, "cpu")[0], run(call, 0)[0]
            apart = max((_apart(a, b) for a, b in zip(expected, found, strict=True)), default=0)
            if apart > 1e-4:
                yield call, apart
        except Exception as error:
            yield call, f"{type(error).__name__}: {error}"[:300]
    yield "calls", len(chosen)


@contextlib.contextmanager
def _scratch() -> Iterator[None]:
    """Work in an empty folder: `dump_image` writes where it is called."""
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(home)


def _apart(a: Any, b: Any) -> float:
    """Return the greatest difference: levels for integers, a share of the greatest value for floats."""
    worst = 0.0
    for one, other in zip(a.as_cpu().samples(), b.as_cpu().samples(), strict=True):
        scale = max(1.0, float(one.abs().max())) if one.is_floating_point() and one.numel() else 1.0
        if one.numel():
            worst = max(worst, float((one.double() - other.double()).abs().max()) / scale)
    return worst


def kernels(folder: Path, sizes: Sizes) -> Found:
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
        what = Regions(low, low + 0.5 * sides, shape, (name, name), True)
        expected = resize_batch(flat, offsets, sides, 3, what, torch.uint8)
        there = flat.to("cuda:0")
        ours = resize_batch(there, offsets, sides, 3, what, torch.uint8)
        assert expected is not None and ours is not None
        yield f"{name} levels", (ours.cpu().int() - expected.int()).abs().max().item()
        given = (there, offsets, sides, 3, what, torch.uint8)
        yield f"{name} ms of {count} images", 1e3 * seconds(partial(resize_batch, *given))


ALL = {
    **PARTS, "kernels": Measurement(kernels, 120), "operators": Measurement(operators, 240),
}  # fmt: skip


def _given(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="with images, at any depth")
    parser.add_argument("--parts", nargs="+", choices=ALL, default=list(ALL))
    parser.add_argument("--out", type=Path, default=Path("gpu.jsonl"))
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the parts; return 1 if one failed."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) == 2 and arguments[1] in ALL:  # started by `measure`
        inside(ALL[arguments[1]], Path(arguments[0]), Sizes())
        return 0
    given = _given(arguments)
    chosen = {name: ALL[name] for name in given.parts}
    return measure(given.folder, given.out, chosen, "benchmarks.gpu")


if __name__ == "__main__":
    sys.exit(main())
