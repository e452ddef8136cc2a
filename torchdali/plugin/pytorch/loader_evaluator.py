"""Find out whether the loader or the training step is the bottleneck of a training loop."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["LoaderEvaluator", "Rates", "evaluate"]


class LoaderEvaluator:
    """A wrapper of a data loader that measures the loader or simulates an infinitely fast loader.

    Args:
        dataloader: An iterable of batches.
        mode: ``"log"`` yields the loader's batches, and records the time to load each batch. ``"replay"`` loads some
            batches once and yields them repeatedly, as an infinitely fast loader would.
        num_cached_batches: Number of batches that ``"replay"`` loads.
        metrics_file: File to which `save_metrics` writes by default.

    Raises:
        ValueError: the mode is unknown, or `num_cached_batches` is below 1.
    """

    def __init__(
        self,
        dataloader: Any,
        mode: str = "log",
        num_cached_batches: int = 20,
        metrics_file: str | None = None,
    ) -> None:
        if mode not in ("log", "replay"):
            raise ValueError(f"mode must be 'log' or 'replay', got {mode!r}")
        if num_cached_batches < 1:
            raise ValueError(f"num_cached_batches must be positive, got {num_cached_batches}")
        self.dataloader, self.mode, self.metrics_file = dataloader, mode, metrics_file
        self.num_cached_batches = num_cached_batches
        self.cached_batches: list[Any] = []
        self.batch_times: list[float] = []
        self._total = 0.0

    def __len__(self) -> int:
        return len(self.dataloader)

    def __iter__(self) -> Iterator[Any]:
        self.batch_times = []
        started = time.perf_counter()
        yield from self._time(self._replay() if self.mode == "replay" else iter(self.dataloader))
        self._total = time.perf_counter() - started

    def _time(self, batches: Iterator[Any]) -> Iterator[Any]:
        while True:
            started = time.perf_counter()
            try:
                batch = next(batches)
            except StopIteration:
                return
            self.batch_times.append(time.perf_counter() - started)
            yield batch

    def _replay(self) -> Iterator[Any]:
        if not self.cached_batches:
            self.cached_batches = list(itertools.islice(self.dataloader, self.num_cached_batches))
        if not self.cached_batches:
            return iter(())
        return itertools.islice(itertools.cycle(self.cached_batches), len(self))

    def get_metrics(self) -> dict[str, Any]:
        """Return the mode, the number of batches, and the loading times of the last pass over the loader in seconds."""
        times = self.batch_times
        return {
            "mode": self.mode,
            "total_batches": len(times),
            "total_time": self._total,
            "avg_batch_time": sum(times) / len(times) if times else 0.0,
            "min_batch_time": min(times, default=0.0),
            "max_batch_time": max(times, default=0.0),
            "batch_times": list(times),
            "cached_batches": len(self.cached_batches),
            "cache_ready": bool(self.cached_batches),
        }

    def print_summary(self) -> None:
        """Print the loading times of the last pass over the loader."""
        metrics = self.get_metrics()
        print(f"{self.mode} mode: {metrics['total_batches']} batches in {metrics['total_time']:.2f} s")
        for name in ("avg", "min", "max"):
            print(f"  {name}: {metrics[f'{name}_batch_time'] * 1e3:.2f} ms a batch")
        if self.mode == "replay":
            print(f"  {len(self.cached_batches)} cached batches")

    def save_metrics(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Write the result of `get_metrics` to a JSON file.

        Args:
            filename: The file. Default: the constructor's `metrics_file`.

        Raises:
            ValueError: a file name was passed neither here nor to the constructor.
        """
        target = filename or self.metrics_file
        if target is None:
            raise ValueError("save_metrics needs a file name: pass it here, or as metrics_file")
        with open(target, "w", encoding="utf-8") as file:
            json.dump(self.get_metrics(), file, indent=2)


@dataclass(frozen=True)
class Rates:
    """Speed of a training loop and of its components, in batches/s. Print the object to see the bottleneck.

    Attributes:
        loader: Speed of the loader without the training step.
        step: Speed of the training step on one batch that is used repeatedly.
        cached: Speed of the training step on several cached batches, without loading.
        training: Speed of the unchanged training loop.
    """

    loader: float
    step: float
    cached: float
    training: float

    @property
    def verdict(self) -> str:
        """A sentence that names the bottleneck: the loader, the training step, or their competition for cores."""
        if self.loader < 0.9 * self.step:
            gain = self.cached / self.training - 1
            return f"The loader is the bottleneck: with an infinitely fast loader, training would be {gain:.0%} faster."
        if self.training < 0.85 * self.cached:
            return (
                "Loader and training step compete for the same cores: each is fast enough alone, but together they are "
                f"{1 - self.training / self.cached:.0%} slower than the step on cached batches."
            )
        return "The training step is the bottleneck; a faster loader would change nothing."

    def __str__(self) -> str:
        rows = (
            ("loader alone", self.loader),
            ("step alone", self.step),
            ("step on cached batches", self.cached),
            ("training", self.training),
        )
        lines = [f"{name:<24}{rate:>10.2f} batches/s" for name, rate in rows]
        return "\n".join([*lines, self.verdict])


def evaluate(loader: Iterable[Any], step: Callable[[Any], Any], batches: int = 50) -> Rates:
    """Measure the bottleneck of a training loop.

    Args:
        loader: Iterable of batches, which is iterated repeatedly.
        step: Function that trains on one batch.
        batches: Number of batches in each measurement. Before each measurement, a tenth of this number is processed as
            a warm-up.
    """
    source = _repeat(loader)  # all measurements use one source, so that they don't include a loader's start
    cached = list(itertools.islice(source, min(batches, 20)))
    if not cached:
        raise ValueError("the loader must have at least one batch")
    return Rates(
        _measure_rate(source, lambda batch: None, batches),
        _measure_rate(itertools.repeat(cached[0]), step, batches),
        _measure_rate(itertools.cycle(cached), step, batches),
        _measure_rate(source, step, batches),
    )


def _repeat(loader: Iterable[Any]) -> Iterator[Any]:
    has_batches = True
    while has_batches:
        has_batches = False
        for batch in loader:
            has_batches = True
            yield batch


def _measure_rate(batches: Iterator[Any], step: Callable[[Any], Any], count: int) -> float:
    for batch in itertools.islice(batches, max(1, count // 10)):
        step(batch)
    _synchronize()
    started = time.perf_counter()
    for batch in itertools.islice(batches, count):
        step(batch)
    _synchronize()
    return count / (time.perf_counter() - started)


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
