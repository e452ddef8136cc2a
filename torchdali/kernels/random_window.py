"""Where a random crop lies: a window of random area and aspect ratio."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torchdali.kernels.window import round_half_away_number

__all__ = ["random_window"]


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
    if not (1 <= len(area) <= 2 and 1 <= len(ratio) <= 2):
        raise RuntimeError(
            f"random_area {list(area)} and random_aspect_ratio {list(ratio)} have one value, or two"
        )
    smallest, largest = area[0], area[-1]
    narrowest, widest = ratio[0], ratio[-1]
    if smallest > largest or not 0 < narrowest <= widest:
        raise RuntimeError(
            f"random_area {list(area)} and random_aspect_ratio {list(ratio)} must be ranges [least, greatest], the "
            "ratios positive"
        )
    low, high = math.log(narrowest), math.log(widest)
    for _ in range(attempts):
        pixels = max(0.0, smallest + (largest - smallest) * draw()) * height * width
        aspect = math.exp(low + (high - low) * draw())
        w = max(1, round_half_away_number(math.sqrt(pixels * aspect)))
        h = max(1, round_half_away_number(math.sqrt(pixels / aspect)))
        if w <= width and h <= height and narrowest <= w / h <= widest:
            break
    else:
        h, w = _largest(height, width, largest, min(max(width / height, narrowest), widest))
    return int(draw() * (height - h + 1)), int(draw() * (width - w + 1)), h, w


def _largest(height: int, width: int, area: float, aspect: float) -> tuple[int, int]:
    """Return height and width of the largest window of a ratio and of no more than a share of the area."""
    h = min(height, int(width / aspect))
    w = min(width, int(height * aspect))
    shrink = math.sqrt(min(1.0, max(area, 0.0) * height * width / max(h * w, 1)))
    return max(1, int(h * shrink)), max(1, int(w * shrink))
