"""Draw random numbers for AutoAugment, RandAugment and TrivialAugment, one number per sample."""

from __future__ import annotations

from typing import Any

from torchdali import fn, types
from torchdali.rng import mix

__all__ = ["draw_fraction", "draw_number", "step_seed"]


def draw_number(count: int, seed: int | None = None, shape: tuple[int, ...] | None = None) -> Any:
    """Draw an int32 from ``0..count - 1`` for each sample, with equal probabilities."""
    options: dict[str, Any] = {"seed": seed, "shape": shape}
    return fn.random.uniform(values=list(range(count)), dtype=types.INT32, **options)


def draw_fraction(seed: int | None = None) -> Any:
    """Draw a float32 from [0, 1) for each sample."""
    options: dict[str, Any] = {"seed": seed}
    return fn.random.uniform(range=[0.0, 1.0], **options)


def step_seed(seed: int | None, number: int) -> int | None:
    """Derive a seed for each random operator, because operators with the same seed draw the same numbers."""
    return None if seed is None else mix(seed, number) >> 2
