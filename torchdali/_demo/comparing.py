"""Measure torchdali beside ``torch.utils.data.DataLoader``: same pictures, same transforms."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from torchdali._demo.training import AREA, BATCH, MEAN, SIZE, STD, augmented

ROUNDS = 5
BATCHES = 60
WARMUP = 10
AHEAD = 8  # batches that are taken before the clock starts: more than any queue holds
REFILL = 0.3  # seconds in which the other loader fills its queues again


@dataclass(frozen=True)
class Side:
    """One loader: pictures a second in each round, and CPU milliseconds a picture over all."""

    rates: list[float]
    cpu: float


@dataclass(frozen=True)
class Comparison:
    """Both loaders; ``cpu`` counts their workers too, and does not mind a busy machine."""

    torchdali: Side
    dataloader: Side

    @property
    def ratio(self) -> float:
        """Speed of torchdali relative to the other side, of the medians over the rounds."""
        return median(self.torchdali.rates) / median(self.dataloader.rates)


class _Turns:
    """Rounds of one loader, and the CPU time of this process meanwhile."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.cpu = 0.0

    def run(self, take: Callable[[], object], batches: int) -> None:
        time.sleep(REFILL)
        cpu = time.process_time()
        for _ in range(AHEAD):
            take()
        start = time.perf_counter()
        for _ in range(batches):
            take()
        self.rates.append(batches * BATCH / (time.perf_counter() - start))
        self.cpu += time.process_time() - cpu

    def side(self, workers: float = 0.0) -> Side:
        """Sum up; the first round was the warm-up, ``workers`` is CPU time of other processes."""
        pictures = BATCH * (AHEAD + WARMUP + ROUNDS * (AHEAD + BATCHES))
        return Side(self.rates[1:], 1e3 * (self.cpu + workers) / pictures)


def _of_children() -> float:
    """CPU seconds of the child processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _dataloader(root: Path, workers: int) -> Iterator[Any]:
    """The demo's augmentation in torchvision v2, in one epoch that is long enough for all."""
    from torchvision import datasets, io
    from torchvision.transforms import v2

    steps = v2.Compose(
        [
            v2.RandomResizedCrop(SIZE, scale=AREA, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([MEAN] * 3, [STD] * 3),
        ]
    )

    def decode(path: str) -> Tensor:
        image: Tensor = io.decode_image(path, mode=io.ImageReadMode.RGB)
        return image

    data = datasets.ImageFolder(root, steps, loader=decode)
    total = BATCH * (AHEAD + WARMUP + ROUNDS * (AHEAD + BATCHES))
    sampler = torch.utils.data.RandomSampler(data, num_samples=total)
    context = "fork" if "fork" in torch.multiprocessing.get_all_start_methods() else None
    loader = torch.utils.data.DataLoader(
        data, BATCH, sampler=sampler, num_workers=workers, multiprocessing_context=context
    )
    return iter(loader)


def _alternate(root: Path, threads: int) -> tuple[_Turns, _Turns]:
    """Run both loaders in turn; their threads and workers end with this function."""
    pipeline = augmented(str(root), batch_size=BATCH, num_threads=threads, device_id=None, seed=2)
    peer = _dataloader(root, threads)
    ours, theirs = _Turns(), _Turns()
    for batches in (WARMUP, *[BATCHES] * ROUNDS):
        ours.run(pipeline.run, batches)
        theirs.run(peer.__next__, batches)
    pipeline.close()
    return ours, theirs


def compare(root: Path, threads: int) -> Comparison:
    """Measure both loaders with as many workers as threads; the consumer only takes batches.

    While one is measured the other's queues are full and it rests. What a loader has ready when its turn
    begins is taken before the clock starts.
    """
    ended = _of_children()
    ours, theirs = _alternate(root, threads)
    return Comparison(ours.side(), theirs.side(_of_children() - ended))
