"""Compare the speed of ``torchdali.DataLoader`` and PyTorch's, with equal datasets, transforms and arguments."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

import torch

from torchdali import DataLoader
from torchdali._demo.training import AREA, BATCH, MEAN, SIZE, STD

ROUNDS = 5
REPEATS = 4  # times that each image is loaded per epoch, so that an epoch is long enough to measure


def compare(root: Path, threads: int) -> tuple[float, float]:
    """Return the images/s of torchdali's loader and of PyTorch's loader. Both are medians over several epochs."""
    torch.manual_seed(2)
    ours, theirs = (_loader(kind, root, threads) for kind in (DataLoader, torch.utils.data.DataLoader))
    rates = [(_rate(ours), _rate(theirs)) for _ in range(1 + ROUNDS)][1:]  # the first epoch starts threads and workers
    return median(rate for rate, _ in rates), median(rate for _, rate in rates)


def _loader(kind: Any, root: Path, workers: int) -> Any:
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2

    steps = v2.Compose(
        [
            v2.RandomResizedCrop(SIZE, scale=AREA, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([MEAN] * 3, [STD] * 3),
        ]
    )
    data = ImageFolder(str(root), steps)
    sampler = torch.utils.data.RandomSampler(data, num_samples=REPEATS * len(data))
    return kind(data, BATCH, sampler=sampler, num_workers=workers, persistent_workers=True)


def _rate(loader: Any) -> float:
    start = time.perf_counter()
    count = sum(len(labels) for _, labels in loader)
    return count / (time.perf_counter() - start)
