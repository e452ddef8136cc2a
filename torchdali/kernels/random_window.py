"""Draw windows of random area, aspect ratio and position, for random crops."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from torchdali.kernels.memory import Array

__all__ = ["random_window", "random_windows", "window_ranges"]

_POSITION_COLUMNS = np.array([[2], [3]])  # the two random numbers after an attempt's two numbers determine the position


def random_window(
    draw: Callable[[], float],
    height: int,
    width: int,
    attempts: int,
    area: Sequence[float],
    ratio: Sequence[float],
) -> tuple[int, int, int, int]:
    """Draw a random window of an image.

    Each attempt draws an area uniformly, and an aspect ratio uniformly on a logarithmic scale. The result is the first
    window that fits into the image and whose aspect ratio, after rounding to pixels, is allowed. If all attempts fail,
    the result is the largest window of allowed area with the allowed aspect ratio that is nearest to the image's aspect
    ratio. The position of the window is drawn uniformly.

    Args:
        draw: Function that returns a random number in [0, 1). It is called twice per attempt, and twice for the
            position.
        height: Height of the image.
        width: Width of the image.
        attempts: Maximum number of attempts.
        area: Minimum and maximum area, as fractions of the image's area, or one value for both.
        ratio: Minimum and maximum ratio of width to height, or one value for both.

    Returns:
        y, x, height and width of the window.

    Raises:
        RuntimeError: a range is empty or has more than two values, or a ratio is not positive.
    """
    smallest, largest, narrowest, widest, low, high = window_ranges(tuple(area), tuple(ratio))
    for _ in range(attempts):
        pixels = max(0.0, smallest + (largest - smallest) * draw()) * height * width
        aspect = math.exp(low + (high - low) * draw())
        w = int(math.sqrt(pixels * aspect) + 0.5) or 1
        h = int(math.sqrt(pixels / aspect) + 0.5) or 1
        if w <= width and h <= height and narrowest <= w / h <= widest:
            break
    else:
        h, w = _largest_window(height, width, largest, min(max(width / height, narrowest), widest))
    return int(draw() * (height - h + 1)), int(draw() * (width - w + 1)), h, w


def random_windows(
    draws: Array,
    sides: Array,
    attempts: int,
    area: Sequence[float],
    ratio: Sequence[float],
) -> tuple[Array, Array]:
    """Draw the windows of a batch. For the same random numbers, the windows are the same as in `random_window`.

    Args:
        draws: Random numbers in [0, 1), ``(batch, 2 + 2 * attempts)``.
        sides: Heights and widths of the images, ``(2, batch)``.
        attempts, area, ratio: See `random_window`.

    Returns:
        Positions (y and x) and extents (height and width) of the windows, ``(2, batch)`` each.
    """
    smallest, largest, narrowest, widest, low, high = window_ranges(tuple(area), tuple(ratio))
    rows = _row_indices(len(draws))
    windows = np.empty((2, len(rows)))
    first = has_window = np.zeros(len(rows), np.bool_)
    if attempts:
        pixels = draws[:, :-2:2] * (largest - smallest)
        pixels += smallest
        if smallest < 0:
            np.maximum(pixels, 0, out=pixels)
        pixels *= (sides[0] * sides[1])[:, None]
        aspect = draws[:, 1:-2:2] * (high - low)
        aspect += low
        np.exp(aspect, out=aspect)
        tall = _round_extents(pixels / aspect)
        wide = _round_extents(np.multiply(pixels, aspect, out=pixels))
        shape = np.divide(wide, tall, out=aspect)
        fits = tall <= sides[0, :, None]
        fits &= wide <= sides[1, :, None]
        fits &= narrowest <= shape
        fits &= shape <= widest
        first = fits.argmax(1)
        indices = rows * attempts + first  # NumPy keeps the GIL for one index array, but not for two
        has_window = fits.ravel()[indices]
        windows[0], windows[1] = tall.ravel()[indices], wide.ravel()[indices]
    if not has_window.all():
        for i in np.flatnonzero(~has_window).tolist():
            height, width = sides[:, i].tolist()
            nearest = min(max(width / height, narrowest), widest)
            windows[:, i] = _largest_window(height, width, largest, nearest)
        first = np.where(has_window, first, attempts - 1)
    positions = draws[rows, 2 * first + _POSITION_COLUMNS]
    positions *= sides - windows + 1
    return np.floor(positions, out=positions), windows


def _round_extents(areas: Array) -> Array:
    """Return the square roots of areas, rounded to whole pixels, but at least 1. `areas` is overwritten."""
    sides = np.sqrt(areas, out=areas)
    sides += 0.5
    np.floor(sides, out=sides)
    return np.maximum(sides, 1, out=sides)


@functools.lru_cache(maxsize=16)
def _row_indices(count: int) -> Array:
    indices = np.arange(count)
    indices.flags.writeable = False
    return indices


@functools.lru_cache(maxsize=64)
def window_ranges(area: tuple[float, ...], ratio: tuple[float, ...]) -> tuple[float, float, float, float, float, float]:
    """Check the ranges, and return minimum and maximum of areas, ratios and logarithms of ratios."""
    if not (1 <= len(area) <= 2 and 1 <= len(ratio) <= 2):
        raise RuntimeError(
            f"random_area and random_aspect_ratio must have one or two values, got {list(area)} and {list(ratio)}"
        )
    is_finite = all(map(math.isfinite, (*area, *ratio)))
    if not is_finite or not area[0] <= area[-1] or not 0 < ratio[0] <= ratio[-1]:
        raise RuntimeError(
            f"random_area and random_aspect_ratio must be ranges [min, max], with positive ratios, got {list(area)} "
            f"and {list(ratio)}"
        )
    return area[0], area[-1], ratio[0], ratio[-1], math.log(ratio[0]), math.log(ratio[-1])


def _largest_window(height: int, width: int, area: float, aspect: float) -> tuple[int, int]:
    """Return height and width of the largest window with an aspect ratio and at most a share `area` of the image."""
    h = min(height, int(width / aspect))
    w = min(width, int(height * aspect))
    shrink = math.sqrt(min(1.0, max(area, 0.0) * height * width / max(h * w, 1)))
    return max(1, int(h * shrink)), max(1, int(w * shrink))
