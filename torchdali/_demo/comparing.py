"""Measure torchdali beside ``torch.utils.data.DataLoader``: same pictures, same transforms."""

from __future__ import annotations

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
BATCHES = 40
WARMUP = 10


@dataclass(frozen=True)
class Comparison:
    """Samples a second of both loaders, round by round, and the median of their ratios."""

    torchdali: list[float]
    dataloader: list[float]

    @property
    def ratio(self) -> float:
        """How many times faster torchdali is: the median over the rounds."""
        pairs = zip(self.torchdali, self.dataloader, strict=True)
        return median(ours / theirs for ours, theirs in pairs)


def _dataloader(root: Path, workers: int) -> Iterator[Any]:
    """The demo's augmentation in torchvision v2, in one epoch that is long enough for all."""
    from torchvision import datasets, io
    from torchvision.transforms import v2

    steps = v2.Compose(
        [
            v2.RandomResizedCrop(SIZE, scale=AREA, antialias=True),
            v2.RandomVerticalFlip(),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([MEAN] * 3, [STD] * 3),
        ]
    )

    def decode(path: str) -> Tensor:
        image: Tensor = io.decode_image(path, mode=io.ImageReadMode.RGB)
        return image

    data = datasets.ImageFolder(root, steps, loader=decode)
    total = BATCH * (WARMUP + (ROUNDS + 1) * BATCHES)
    sampler = torch.utils.data.RandomSampler(data, num_samples=total)
    context = "fork" if "fork" in torch.multiprocessing.get_all_start_methods() else None
    loader = torch.utils.data.DataLoader(
        data, BATCH, sampler=sampler, num_workers=workers, multiprocessing_context=context
    )
    return iter(loader)


def _rate(take: Callable[[], object], batches: int) -> float:
    start = time.perf_counter()
    for _ in range(batches):
        take()
    return batches * BATCH / (time.perf_counter() - start)


def compare(root: Path, threads: int) -> Comparison:
    """Run both loaders in turn, with as many workers as threads; the consumer only takes batches.

    While one is measured the other's queues are full and it rests.
    """
    pipeline = augmented(str(root), batch_size=BATCH, num_threads=threads, device_id=None, seed=2)
    peer = _dataloader(root, threads)
    takes: tuple[Callable[[], object], ...] = (pipeline.run, lambda: next(peer))
    for take in takes:
        _rate(take, WARMUP)
    rounds = [[_rate(take, BATCHES) for take in takes] for _ in range(ROUNDS)]
    pipeline.close()
    return Comparison([ours for ours, _ in rounds], [theirs for _, theirs in rounds])
