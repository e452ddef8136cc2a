"""Where a slice lies along one axis."""

from __future__ import annotations

import numpy as np

from torchdali.kernels.window import round_half_away_number

__all__ = ["anchored", "interval"]


def anchored(
    extent: int, anchor: float, size: float, normalized_anchor: bool, normalized_shape: bool
) -> tuple[int, int]:
    """Return start and end of what begins at an anchor; both are rounded, halves away from zero.

    Args:
        extent: Of the axis.
        anchor: Start.
        size: From the start to the end.
        normalized_anchor: The anchor is a share of the extent.
        normalized_shape: The size is.
    """
    start = anchor * extent if normalized_anchor else anchor
    length = size * extent if normalized_shape else size
    return round_half_away_number(start), round_half_away_number(start + length)


def interval(
    extent: int,
    *,
    start: float | None = None,
    rel_start: float | None = None,
    end: float | None = None,
    rel_end: float | None = None,
    shape: float | None = None,
    rel_shape: float | None = None,
) -> tuple[int, int]:
    """Return start and end along one axis; both are rounded, halves away from zero.

    Args:
        extent: Of the axis.
        start: In elements; 0 when neither start is given.
        rel_start: As a share of the extent.
        end: In elements; the extent when nothing says where it ends.
        rel_end: As a share of the extent.
        shape: From start to end, in elements.
        rel_shape: The same as a share of the extent.

    Raises:
        RuntimeError: two of them say the same, or the end lies before the start.
    """
    if start is not None and rel_start is not None:
        raise RuntimeError("start and rel_start exclude each other")
    if sum(given is not None for given in (end, rel_end, shape, rel_shape)) > 1:
        raise RuntimeError("end, rel_end, shape and rel_shape exclude each other")
    first = float(start or 0) if rel_start is None else _share(rel_start, extent)
    if rel_start is not None and rel_shape is not None:
        last = (float(np.float32(rel_start)) + float(np.float32(rel_shape))) * extent
    elif shape is not None or rel_shape is not None:
        length = float(shape or 0) if rel_shape is None else _share(rel_shape, extent)
        last = float(np.float32(first) + np.float32(length))
    elif rel_end is not None:
        last = _share(rel_end, extent)
    else:
        last = float(extent if end is None else end)
    first, last = round_half_away_number(first), round_half_away_number(last)
    if last < first:
        raise RuntimeError(f"the end {last} lies before the start {first}")
    return first, last


def _share(part: float, extent: int) -> float:
    """Multiply in single precision as DALI does: it decides where a product ends in one half."""
    return float(np.float32(part) * np.float32(extent))
