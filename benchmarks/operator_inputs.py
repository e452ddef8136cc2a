"""Data of the sources of `benchmarks.operators`: batches made once, each sample different."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["BATCH", "FEEDS", "SIZED", "SIZES", "Batches", "batches"]

BATCH = 32
SIZES = {"224": (224, 224), "720p": (720, 1280)}

Array = npt.NDArray[Any]
Batches = tuple["Array | list[Array]", ...]
"""A batch an output: one array where all samples have one shape, otherwise one a sample."""


def _images(height: int, width: int, dtype: str) -> Batches:
    """Smooth images with some grain."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32) / 40
    phases = rng.uniform(0, 6, (3, 1, 1)).astype(np.float32)
    pattern = 110 + 60 * np.sin(x + phases) + 50 * np.cos(y * phases)
    noisy = pattern.transpose(1, 2, 0) + rng.normal(0, 8, (height, width, 3))
    one = np.clip(noisy, 0, 255).astype(dtype)
    return (np.stack([np.roll(one, 5 * i, 1) for i in range(BATCH)]),)


def _masks(height: int, width: int, dtype: str) -> Batches:
    """Label maps with a dozen ellipses of five labels on a background of zeros."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32) / (height, width)[0]
    one = np.zeros((height, width), dtype)
    for i in range(12):
        cy, cx, ry, rx = rng.uniform((0, 0, 0.05, 0.05), (1, width / height, 0.15, 0.15))
        one[((y - cy) / ry) ** 2 + ((x - cx) / rx) ** 2 < 1] = 1 + i % 5
    return (np.stack([np.roll(one, 5 * i, 1) for i in range(BATCH)]),)


def _boxes(*_: Any) -> Batches:
    """From 4 to 16 boxes, left, top, right and bottom, and their labels."""
    rng = np.random.default_rng(0)
    counts = rng.integers(4, 17, BATCH)
    starts = [rng.uniform(0, 0.7, (n, 2)) for n in counts]
    boxes = [np.hstack((s, s + rng.uniform(0.05, 0.3, s.shape))) for s in starts]
    labels = [rng.integers(1, 81, n).astype(np.int32) for n in counts]
    return [each.astype(np.float32) for each in boxes], labels


def _points(*_: Any) -> Batches:
    """17 points, as of a body."""
    return (np.random.default_rng(0).uniform(0, 1, (BATCH, 17, 2)).astype(np.float32),)


def _polygons(*_: Any) -> Batches:
    """Masks to take, the polygons of more, and their vertices."""
    rng = np.random.default_rng(0)
    counts = rng.integers(4, 13, BATCH)
    ends = [np.cumsum(rng.integers(10, 60, n)) for n in counts]
    polygons = [np.stack((np.arange(len(e)), np.append(0, e[:-1]), e), 1) for e in ends]
    ids = [rng.permutation(n)[: n // 2 + 1].astype(np.int32) for n in counts]
    vertices = [rng.uniform(0, 500, (e[-1], 2)).astype(np.float32) for e in ends]
    return ids, [each.astype(np.int32) for each in polygons], vertices


def _numbers(*_: Any) -> Batches:
    """A class number a sample, and a vector of 16 floats."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 1000, (BATCH, 1)).astype(np.int32)
    return classes, rng.uniform(0.1, 1, (BATCH, 16)).astype(np.float32)


def _shapes(*_: Any) -> Batches:
    """Height and width of images."""
    return (np.random.default_rng(0).integers(200, 800, (BATCH, 2)),)


def _frames(*_: Any) -> Batches:
    """Eight small frames."""
    return (np.random.default_rng(0).integers(0, 256, (BATCH, 8, 64, 64, 3), np.uint8),)


def _volumes(*_: Any) -> Batches:
    return (np.random.default_rng(0).uniform(0, 1, (BATCH, 48, 48, 48, 1)).astype(np.float32),)


Feed = tuple[tuple[Callable[..., Batches], ...], tuple[str, ...]]
"""Makers of the batches, and the layouts of all outputs."""

FEEDS: dict[str, Feed] = {
    "image": ((_images,), ("HWC",)),
    "image and boxes": ((_images, _boxes), ("HWC", "", "")),
    "mask": ((_masks,), ("HW",)),
    "boxes": ((_boxes,), ("", "")),
    "points": ((_points,), ("",)),
    "polygons": ((_polygons,), ("", "", "")),
    "numbers": ((_numbers,), ("", "")),
    "shapes": ((_shapes,), ("",)),
    "frames": ((_frames,), ("FHWC",)),
    "volumes": ((_volumes,), ("DHWC",)),
    "nothing": ((), ()),
}
SIZED = ("image", "image and boxes", "mask")
"""Of these there is one of each size; the others are small."""


@functools.lru_cache(maxsize=4)
def batches(feed: str, height: int, width: int, dtype: str) -> Batches:
    """Return a batch an output of the source."""
    return tuple(batch for make in FEEDS[feed][0] for batch in make(height, width, dtype))
