"""Find the foreground elements of a mask, and select an element."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from torchdali.kernels.memory import Array

__all__ = ["above", "equal", "nth"]

Flags = npt.NDArray[np.bool_]

_MAX_SCANNED = 4096


def above(mask: Array, threshold: float) -> Flags:
    """Return which elements of a mask exceed a threshold. Values are compared in float32."""
    if mask.dtype == np.bool_:
        mask = mask.view(np.uint8)
    if mask.itemsize <= 2 and math.isfinite(threshold):  # integers give the same result without a conversion
        return mask > math.floor(threshold)
    return mask.astype(np.float32, copy=False) > np.float32(threshold)


def equal(mask: Array, value: int) -> Flags:
    """Return which elements of a mask equal a value."""
    flags: Flags = mask == (np.float32(value) if mask.dtype == np.float32 else value)
    return flags


def nth(flags: Flags, index: int) -> int:
    """Return the position of the `index`-th True element (counted from 0) of a 1-D array."""
    low, high = 0, len(flags)
    while high - low > _MAX_SCANNED:
        middle = (low + high) // 2
        count = int(np.count_nonzero(flags[low:middle]))
        if index < count:
            high = middle
        else:
            low, index = middle, index - count
    return low + int(np.flatnonzero(flags[low:high])[index])
