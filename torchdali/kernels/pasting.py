"""Where regions of images come to lie on canvases, for a batch at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["covered", "regions"]

Array = npt.NDArray[Any]
Given = tuple[Array, bool]
"""Values ``(batch or 1, regions or 1, 2 or 1)``, and whether they are relative."""


def regions(
    anchors: Given | None, targets: Given | None, extents: Given | None, inside: Array, outside: Array
) -> Array | None:  # fmt: skip
    """Return start in the image, start on the canvas, and extent of all regions, y before x.

    Args:
        anchors: Starts in the images; (0, 0) when None.
        targets: Starts on the canvases; (0, 0) when None.
        extents: Up to the end of the image when None.
        inside: Height and width of the image of each region, ``(batch, regions, 2)``.
        outside: Height and width of the canvases, ``(batch, 1, 2)``.

    Returns:
        ``(batch, regions, 6)``; None where one reaches outside.
    """
    start = _pixels(anchors, inside, np.floor)
    target = _pixels(targets, outside, np.floor)
    extent = inside - start if extents is None else _pixels(extents, inside, np.ceil)
    wrong = (start < 0) | (target < 0) | (extent < 0)
    wrong = wrong | (start + extent > inside) | (target + extent > outside)
    if np.count_nonzero(wrong):
        return None
    found = np.empty((*inside.shape[:2], 6), np.int64)
    found[..., 0:2], found[..., 2:4], found[..., 4:6] = start, target, extent
    return found


def _pixels(given: Given | None, lengths: Array, whole: Any) -> Array:
    if given is None:
        return np.zeros((1, 1, 2), np.int64)
    values, relative = given
    if relative:  # in single precision, as DALI does, so that 0.3 of 10 is 3 and not 3.0000001
        values = whole(values.astype(np.float32) * lengths.astype(np.float32))
    return values.astype(np.int64)


def covered(found: Array, outside: Array) -> Array:
    """Return for each canvas whether its regions cover it; False also where that takes long to find out.

    Args:
        found: What `regions` returned.
        outside: Height and width of the canvases, ``(batch, 1, 2)``.
    """
    extent = found[..., 4:6]
    full: Array = extent.prod(-1).sum(1) == outside.prod(-1)[:, 0]
    if full.any() and found.shape[1] <= 16:
        low, high = found[..., 2:4], found[..., 2:4] + extent
        meet = np.maximum(low[:, :, None], low[:, None]) < np.minimum(high[:, :, None], high[:, None])
        # Each meets itself, unless it is empty.
        full &= meet.all(-1).sum((1, 2)) == extent.all(-1).sum(1)
        return full
    return np.zeros_like(full)
