"""Compute where `multi_paste` pastes image regions, for a whole batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchdali.kernels.memory import Array

__all__ = ["regions"]

Given = tuple[Array, bool]
"""Values ``(batch or 1, regions or 1, 2 or 1)``, and True if they are fractions instead of pixels."""


def regions(
    *,
    in_anchors: Given | None,
    out_anchors: Given | None,
    shapes: Given | None,
    inside: Array,
    outside: Array,
) -> Array:
    """Return the start in the image, the start on the canvas, and the extent of all regions, y before x.

    Args:
        in_anchors: Starts of the regions in the images; None for (0, 0).
        out_anchors: Starts of the regions on the canvases; None for (0, 0).
        shapes: Extents of the regions; None for regions up to the end of the image.
        inside: Height and width of the image of each region, ``(batch, regions, 2)``.
        outside: Height and width of the canvases, ``(batch, 2)``.

    Returns:
        ``(batch, regions, 6)``.

    Raises:
        ValueError: a region isn't within its image or canvas, or a fraction isn't in [0, 1].
    """
    outside = outside[:, None]
    start = _pixels(in_anchors, inside, np.floor)
    target = _pixels(out_anchors, outside, np.floor)
    extent = inside - start if shapes is None else _pixels(shapes, inside, np.ceil)
    wrong = (start < 0) | (target < 0) | (extent < 0)
    wrong = wrong | (start + extent > inside) | (target + extent > outside)
    if np.count_nonzero(wrong):
        raise ValueError("a region must be within the image")
    table = np.empty((*inside.shape[:2], 6), np.int64)
    table[..., 0:2], table[..., 2:4], table[..., 4:6] = start, target, extent
    return table


def _pixels(positions: Given | None, lengths: Array, whole: Any) -> Array:
    if positions is None:
        return np.zeros((1, 1, 2), np.int64)
    values, relative = positions
    if relative and values.size and not 0 <= values.min() <= values.max() <= 1:
        raise ValueError("a relative position must be in [0, 1]")
    if relative:  # in float32, as in DALI, so that 0.3 * 10 is 3, not 3.0000001
        values = whole(values.astype(np.float32) * lengths.astype(np.float32))
    return values.astype(np.int64)
