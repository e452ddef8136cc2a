"""Modules of a library, and pipelines that return their random draws, for the tests of `auto_aug`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.helpers.libraries import batches

Array = npt.NDArray[Any]
MODULES = ("augmentations", "auto_augment", "core", "rand_augment", "trivial_augment")


def modules(name: str) -> Any:
    """Return the modules of ``auto_aug`` of ``"torchdali"`` or ``"nvidia.dali"``, and their contents."""
    found = {m: importlib.import_module(f"{name}.auto_aug.{m}") for m in MODULES}
    names = {k: getattr(m, k) for m in found.values() for k in dir(m) if not k.startswith("__")}
    return SimpleNamespace(**{**names, "augmentations": found["augmentations"]})


def compute(
    name: str,
    define: Callable[[Any, Any, Any], Any],
    inputs: list[Array],
    layout: str = "",
    **settings: Any,
) -> Any:
    """Run ``define(lib, auto_aug, data)`` on samples; return the samples of each output."""

    def outputs(lib: Any) -> Any:
        return define(lib, modules(name), lib.source(inputs, layout or None))

    settings = {"batch_size": len(inputs), "enable_conditionals": True, **settings}
    found = [[result.samples for result in run] for run in batches(name, outputs, **settings)]
    return found[0] if settings.get("runs", 1) == 1 else found


def marks(auto_aug: Any, count: int, negated: int = 0, **options: Any) -> list[Any]:
    """Create augmentations that encode their arguments in a number: ``10000 * data + 100 * (1 + number) + magnitude``.

    Magnitudes are from 0 to 30; the first ``negated`` augmentations negate them at random.
    """

    def make(number: int) -> Any:
        def mark(data: Any, magnitude: Any) -> Any:
            return data * 10000 + (100 * (1 + number) + magnitude)

        return auto_aug.augmentation(
            mark,
            mag_range=(0, 30),
            randomly_negate=number < negated,
            name=f"mark_{number}",
            **options,
        )

    return [make(number) for number in range(count)]


def noted(values: Any) -> list[tuple[int, int]]:
    """Return ``(number, magnitude)`` of each augmentation of a sample, the last one first."""
    found, rest = [], round(float(values))
    while rest:
        number = (rest % 10000 + 50) // 100
        magnitude = rest % 10000 - 100 * number
        found.append((number - 1, magnitude))
        rest //= 10000
    return found


def drawn(
    name: str, apply: Callable[[Any, Any], Any], samples: int = 500, runs: int = 4, **settings: Any
) -> list[list[tuple[int, int]]]:
    """Return each sample's augmentations, for many samples of ``apply(auto_aug, data)``."""
    zeros = [np.float64(0)] * samples
    found = compute(
        name, lambda lib, auto_aug, data: apply(auto_aug, data), zeros, runs=runs, **settings
    )
    return [noted(value) for run in found for value in run[0]]


def chi_square(counts: Any, expected: Any) -> float:
    """Return the statistic of observed counts against expected ones, in standard deviations above its mean."""
    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    degrees = len(counts) - 1
    statistic = ((counts - expected) ** 2 / expected).sum()
    return float((statistic - degrees) / np.sqrt(2 * degrees))


def two_samples(first: Any, second: Any) -> float:
    """Return the statistic for two samples of one size: how unlikely it is that they have one distribution."""
    first, second = np.asarray(first, float), np.asarray(second, float)
    statistic = ((first - second) ** 2 / (first + second)).sum()
    degrees = len(first) - 1
    return float((statistic - degrees) / np.sqrt(2 * degrees))
