"""Noise images in the form that the batch kernels accept, and random arguments of these kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from torchdali.kernels.device.resize import Regions
from torchdali.kernels.resample.weights import RADIUS

FILTERS = [("triangular", "linear"), *[(name, name) for name in RADIUS]]


def images(rng: np.random.Generator, count: int, channels: int = 3, side: int = 40) -> tuple[list[torch.Tensor], Any, Any]:
    """Return noise images in a flat tensor, their offsets, and their sizes."""
    made = [torch.from_numpy(rng.integers(0, 256, (*rng.integers(2, side, 2), channels), np.uint8)) for _ in range(count)]
    sizes = np.array([image.numel() for image in made])
    return made, np.cumsum(sizes) - sizes, np.array([image.shape[:2] for image in made]).T


def regions(rng: np.random.Generator, sides: Any, filters: tuple[str, str], antialias: bool, largest: int = 30) -> Regions:
    """Return random windows, with fractions, some of them flipped, and random sizes."""
    low = rng.uniform(0, 0.5, sides.shape) * sides
    high = low + np.maximum(rng.uniform(0.1, 1, sides.shape) * (sides - low), 1.0)
    flipped = rng.random(sides.shape) < 0.2
    size = rng.integers(1, largest, sides.shape)
    return Regions(np.where(flipped, high, low), np.where(flipped, low, high), size, filters, antialias)


def maps(rng: np.random.Generator, count: int) -> Any:
    """Return affine maps that rotate, shear, scale and translate."""
    made = rng.uniform(-1.5, 1.5, (count, 2, 3))
    made[:, :, 2] = rng.uniform(-20, 30, (count, 2))
    return made


def perspectives(rng: np.random.Generator, count: int) -> Any:
    """Return perspectives whose horizon is outside."""
    made = np.concatenate((maps(rng, count), np.zeros((count, 1, 3))), 1)
    made[:, 2] = np.stack((*rng.uniform(-0.005, 0.02, (2, count)), np.ones(count)), 1)
    return made
