"""Boxes and their overlaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def f32(*values: Any) -> Array:
    return np.array(values, np.float32)


def i32(*values: Any) -> Array:
    return np.array(values, np.int32)


def some_boxes(count: int, seed: int, axes: int = 2) -> Array:
    """Return boxes inside of the image, by corners."""
    rng = np.random.default_rng(seed)
    center, half = rng.random((count, axes)), rng.uniform(0.02, 0.3, (count, axes))
    return np.concatenate([center - half, center + half], axis=1).clip(0, 1).astype(np.float32)


def overlap(a: Array, b: Array) -> float:
    """Return intersection over union of two boxes."""
    half = len(a) // 2
    sides = np.minimum(a[half:], b[half:]) - np.maximum(a[:half], b[:half])
    inside = float(np.prod(sides.clip(0)))
    union = float(np.prod(a[half:] - a[:half]) + np.prod(b[half:] - b[:half])) - inside
    return inside / union if union else 0.0
