"""Compute where `multi_paste` pastes image regions, for a whole batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchdali.kernels.memory import Array

__all__ = ["compute_regions"]

RegionValues = tuple[Array, bool]
"""Values ``(batch or 1, regions or 1, 2 or 1)``, and True if they are fractions instead of pixels."""


def compute_regions(
    *,
    in_anchors: RegionValues | None,
    out_anchors: RegionValues | None,
    shapes: RegionValues | None,
    image_sizes: Array,
    canvas_sizes: Array,
) -> Array:
    """Return the start in the image, the start on the canvas, and the extent of all regions, y before x.

    Args:
        in_anchors: Starts of the regions in the images; None for (0, 0).
        out_anchors: Starts of the regions on the canvases; None for (0, 0).
        shapes: Extents of the regions; None for regions up to the end of the image.
        image_sizes: Height and width of the image of each region, ``(batch, regions, 2)``.
        canvas_sizes: Height and width of the canvases, ``(batch, 2)``.

    Returns:
        ``(batch, regions, 6)``.

    Raises:
        ValueError: a region isn't within its image or canvas, or a fraction isn't in [0, 1].
    """
    canvas_sizes = canvas_sizes[:, None]
    start = _to_pixels(in_anchors, image_sizes, np.floor)
    target = _to_pixels(out_anchors, canvas_sizes, np.floor)
    extent = image_sizes - start if shapes is None else _to_pixels(shapes, image_sizes, np.ceil)
    invalid = (start < 0) | (target < 0) | (extent < 0)
    invalid = invalid | (start + extent > image_sizes) | (target + extent > canvas_sizes)
    if np.count_nonzero(invalid):
        raise ValueError("a region must be within the image")
    table = np.empty((*image_sizes.shape[:2], 6), np.int64)
    table[..., 0:2], table[..., 2:4], table[..., 4:6] = start, target, extent
    return table


def _to_pixels(positions: RegionValues | None, lengths: Array, rounding: Any) -> Array:
    if positions is None:
        return np.zeros((1, 1, 2), np.int64)
    values, relative = positions
    if relative and values.size and not 0 <= values.min() <= values.max() <= 1:
        raise ValueError("a relative position must be in [0, 1]")
    if relative:  # in float32, as in DALI, so that 0.3 * 10 is 3, not 3.0000001
        values = rounding(values.astype(np.float32) * lengths.astype(np.float32))
    return values.astype(np.int64)
