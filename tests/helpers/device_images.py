"""Images of noise as the kernels for batches take them, and arguments of these kernels, at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from torchdali.kernels.device.resize import Regions
from torchdali.kernels.resample.weights import RADIUS

FILTERS = [("triangular", "linear"), *[(name, name) for name in RADIUS]]


def images(rng: np.random.Generator, count: int, channels: int = 3, side: int = 40) -> tuple[list[torch.Tensor], Any, Any]:
    """Return images of noise, where each starts in the flat tensor, and their sides."""
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
    """Return affine maps that turn, shear, scale and move."""
    made = rng.uniform(-1.5, 1.5, (count, 2, 3))
    made[:, :, 2] = rng.uniform(-20, 30, (count, 2))
    return made


def displacements(rng: np.random.Generator, sides: Any) -> list[tuple[Any, ...]]:
    """Return arguments of `displace_batch`: waves, the sphere, moves."""
    masks, mode = rng.integers(0, 4, sides.shape[1]) > 0, ["nearest", "bilinear"][int(rng.integers(2))]
    lines = torch.from_numpy(rng.normal(0, 5, (2, 64)).astype(np.float32))
    moves = torch.from_numpy(rng.integers(-3, 4, (2, int(sides.prod(0).sum())), np.int8))
    return [("waves", masks, lines, mode, 70.0), ("sphere", masks, None, mode, 9.0), ("moves", masks, moves, "nearest", 80.0)]


def perspectives(rng: np.random.Generator, count: int) -> Any:
    """Return perspectives whose horizon is outside."""
    made = np.concatenate((maps(rng, count), np.zeros((count, 1, 3))), 1)
    made[:, 2] = np.stack((*rng.uniform(-0.005, 0.02, (2, count)), np.ones(count)), 1)
    return made


def some_regions(rng: np.random.Generator, count: int) -> list[list[tuple[int, int, int, int]]]:
    """Return regions, none to four of each image, some of them empty or beyond the edge."""
    return [list(map(tuple, rng.integers(0, 20, (int(rng.integers(5)), 4)).tolist())) for _ in range(count)]


def lines(rng: np.random.Generator, sides: Any) -> list[tuple[Any, Any]]:
    """Return some rows and columns of each image."""
    return [(rng.integers(0, h, rng.integers(1, 9)), rng.integers(0, w, rng.integers(1, 9))) for h, w in sides.T.tolist()]


def grids(rng: np.random.Generator, count: int) -> Any:
    """Return tiles, ratios, angles and shifts, some of which put edges of squares on pixels."""
    made = np.stack((rng.integers(2, 20, count), rng.uniform(0.1, 0.9, count), rng.uniform(-4, 4, count), *rng.normal(0, 9, (2, count))), 1)
    made[::2, 1:] = 0.5, 0.0, 0.0, 3.0
    return made


def composition(rng: np.random.Generator, offsets: Any, sides: Any, channels: int) -> tuple[Any, Any, Any, Any]:
    """Return canvases, counts and regions of `compose_batch`: of each canvas none to three, some beyond its edges."""
    counts = rng.integers(0, 4, len(offsets))
    chosen = rng.integers(0, len(offsets), int(counts.sum()))
    high, wide = sides[:, chosen]
    y, x = rng.integers(0, high), rng.integers(0, wide)
    h, w = rng.integers(0, high - y + 1), rng.integers(0, wide - x + 1)
    v, u = rng.integers(0, 9, (2, len(chosen)))
    height = np.array([max([1, *(v + h)[np.repeat(np.arange(len(counts)), counts) == i]]) for i in range(len(counts))])
    width = np.array([max([1, *(u + w)[np.repeat(np.arange(len(counts)), counts) == i]]) for i in range(len(counts))])
    regions = [offsets[chosen] + (y * wide + x) * channels, wide * channels, v, u * channels, h, w * channels]
    return np.stack((height, width * channels), 1), counts, np.stack(regions, 1), (y, x, chosen)


def noise_keys(rng: np.random.Generator, count: int) -> Any:
    return rng.integers(0, 1 << 64, (2, count), np.uint64)
