"""Steps that reproduce torchvision's `RandomErasing`, which fills a rectangle of a tensor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from torchdali.rng import Rng, normals

__all__ = ["Erasing", "Rectangle"]

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Rectangle:
    """A rectangle of random area, aspect ratio and position.

    Attributes:
        p: Probability that the rectangle is filled.
        scale: Minimum and maximum area, as fractions of the image's area.
        ratio: Minimum and maximum ratio of the rectangle's height to its width.
    """

    p: float
    scale: tuple[float, float]
    ratio: tuple[float, float]

    def draw(self, size: tuple[int, int], rng: Rng) -> tuple[int, int, int, int] | None:
        """Choose a random rectangle, and return its top, left, height and width. Return None if nothing is erased."""
        if rng.random() >= self.p:
            return None
        low, high = (math.log(bound) for bound in self.ratio)
        for _ in range(10):
            area = size[0] * size[1] * rng.uniform(*self.scale)
            ratio = math.exp(rng.uniform(low, high))
            height, width = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if height < size[0] and width < size[1]:
                return rng.integer(0, size[0] - height), rng.integer(0, size[1] - width), height, width
        return None


@dataclass(frozen=True)
class Erasing:
    """Fill a random rectangle of a tensor with fixed values or with random normal values.

    The user's transforms fill the rectangle before they normalize the image. This step runs after the normalization, so
    the step normalizes the fill values.

    Attributes:
        rectangle: Ranges of the random rectangle.
        value: Fill values: one value for all channels, or one value per channel; None for random values.
        mean, std: Parameters of the normalization; None without a normalization.
    """

    rectangle: Rectangle
    value: tuple[float, ...] | None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None

    def apply(self, planes: Tensor, rng: Rng) -> None:
        """Choose a random rectangle of a floating-point image ``(C, H, W)``, and fill the rectangle in place."""
        pixels = planes.numpy()
        channels, *size = pixels.shape
        drawn = self.rectangle.draw((size[0], size[1]), rng)
        if drawn is None:
            return
        top, left, height, width = drawn
        if self.value is None:
            values = _normalize(normals(rng.generator(), (channels, height, width)), self.mean, self.std)
        else:
            values = _fill_values(self.value, self.mean, self.std)
        pixels[:, top : top + height, left : left + width] = values


@lru_cache(maxsize=64)
def _fill_values(value: tuple[float, ...], *normalization: Any) -> Floats:
    return _normalize(np.array(value, np.float32)[:, None, None], *normalization)


def _normalize(values: Floats, mean: tuple[float, ...] | None, std: tuple[float, ...] | None) -> Floats:
    if mean is None or std is None:
        return values
    means, deviations = (np.array(numbers, np.float32)[:, None, None] for numbers in (mean, std))
    return (values - means) / deviations
