"""Where a random crop lies: a window of random area and aspect ratio."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["random_window", "random_windows"]

Array = npt.NDArray[Any]
_NEXT = np.array([[2], [3]])  # where the numbers after those of an attempt are


def random_window(
    draw: Callable[[], float],
    height: int,
    width: int,
    attempts: int,
    area: Sequence[float],
    ratio: Sequence[float],
) -> tuple[int, int, int, int]:
    """Choose a random window by area and aspect ratio.

    Each attempt takes an area, a share of the image's, and an aspect ratio, evenly on a logarithmic scale. The
    first window that fits, and whose ratio is still allowed after rounding, is placed anywhere. If none does, it
    is the largest allowed one of the ratio nearest to the image's, also placed anywhere.

    Args:
        draw: Returns a random number in [0, 1); called at least twice, twice more an attempt.
        height: Of the image.
        width: Of the image.
        attempts: Windows to try.
        area: Least and greatest share, or one value for both.
        ratio: Least and greatest ratio of width to height, or one value for both.

    Returns:
        y, x, height and width.

    Raises:
        RuntimeError: a range is empty or has more than two values, or a ratio is not positive.
    """
    (smallest, largest), (narrowest, widest) = _ranges(area, ratio)
    low, high = math.log(narrowest), math.log(widest)
    for _ in range(attempts):
        pixels = max(0.0, smallest + (largest - smallest) * draw()) * height * width
        aspect = math.exp(low + (high - low) * draw())
        w = int(math.sqrt(pixels * aspect) + 0.5) or 1
        h = int(math.sqrt(pixels / aspect) + 0.5) or 1
        if w <= width and h <= height and narrowest <= w / h <= widest:
            break
    else:
        h, w = _largest(height, width, largest, min(max(width / height, narrowest), widest))
    return int(draw() * (height - h + 1)), int(draw() * (width - w + 1)), h, w


def random_windows(
    draws: Array,
    height: Array,
    width: Array,
    attempts: int,
    area: Sequence[float],
    ratio: Sequence[float],
) -> Array:
    """Do the same as `random_window` for a batch.

    Args:
        draws: ``(batch, 2 + 2 * attempts)``, in [0, 1).
        height: ``(batch,)``, of the images.
        width: The same.

    Returns:
        ``(4, batch)``: y, x, height and width.
    """
    (smallest, largest), (narrowest, widest) = _ranges(area, ratio)
    low, high = math.log(narrowest), math.log(widest)
    rows, image = np.arange(len(draws)), np.stack((height, width))
    found, first = np.zeros((2, len(draws)), np.int64)
    windows = np.zeros((2, len(draws)), np.int64)
    if attempts:
        pixels = np.maximum(smallest + (largest - smallest) * draws[:, :-2:2], 0)
        pixels *= (height * width)[:, None]
        aspect = np.exp(low + (high - low) * draws[:, 1:-2:2])
        tried = np.empty((2, *aspect.shape))
        np.divide(pixels, aspect, out=tried[0])
        np.multiply(pixels, aspect, out=tried[1])
        np.sqrt(tried, out=tried)
        tried += 0.5
        np.maximum(np.floor(tried, out=tried), 1, out=tried)
        shape = tried[1] / tried[0]
        inside = tried <= image[:, :, None]
        fits = inside[0] & inside[1] & (narrowest <= shape) & (shape <= widest)
        first = fits.argmax(1)
        found = fits[rows, first]
        windows = tried[:, rows, first].astype(np.int64)
    if not found.all():
        for i in np.flatnonzero(found == 0).tolist():
            one, other = int(height[i]), int(width[i])
            windows[:, i] = _largest(one, other, largest, min(max(other / one, narrowest), widest))
        first = np.where(found, first, attempts - 1)
    places = draws[rows, 2 * first + _NEXT] * (image - windows + 1)
    return np.concatenate((places.astype(np.int64), windows))


def _ranges(
    area: Sequence[float], ratio: Sequence[float]
) -> tuple[tuple[float, float], tuple[float, float]]:
    if not (1 <= len(area) <= 2 and 1 <= len(ratio) <= 2):
        raise RuntimeError(
            f"random_area {list(area)} and random_aspect_ratio {list(ratio)} have one value, or two"
        )
    if area[0] > area[-1] or not 0 < ratio[0] <= ratio[-1]:
        raise RuntimeError(
            f"random_area {list(area)} and random_aspect_ratio {list(ratio)} must be ranges [least, greatest], the "
            "ratios positive"
        )
    return (area[0], area[-1]), (ratio[0], ratio[-1])


def _largest(height: int, width: int, area: float, aspect: float) -> tuple[int, int]:
    """Return height and width of the largest window of a ratio and of no more than a share of the area."""
    h = min(height, int(width / aspect))
    w = min(width, int(height * aspect))
    shrink = math.sqrt(min(1.0, max(area, 0.0) * height * width / max(h * w, 1)))
    return max(1, int(h * shrink)), max(1, int(w * shrink))
