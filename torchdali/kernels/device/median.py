"""Take medians of windows of a batch of images of any sizes, on an accelerator, in one launch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import table, upload
from torchdali.kernels.filters.rank import median
from torchdali.kernels.memory import Array

__all__ = ["COLUMNS", "median_batch"]

COLUMNS = ("offset", "height", "width", "result", "rows", "columns")
"""Of the table: where an image starts, in elements, its extents, where the result goes, and those of its window."""


def median_batch(flat: Tensor, offsets: Array, sides: Array, channels: int, windows: Array) -> Tensor:
    """Take the median of a window around each pixel; the edge is repeated outside.

    Args:
        flat: uint8, the elements of all images, on a device.
        offsets: Where each image starts.
        sides: ``(2, N)``: heights and widths.
        channels: Of all images.
        windows: ``(2, N)``: odd heights and widths.

    Returns:
        The elements of all results, one after the other.
    """
    counts = sides.prod(0) * channels
    rows = table([offsets, *sides, np.cumsum(counts) - counts, *windows])
    made: Tensor = torch.ops.torchdali.median_batch(
        flat, upload(rows, flat.device), int(counts.sum()), int(counts.max()), channels
    )
    return made


@define("median")
def median_in_torch(flat: Tensor, samples: Tensor, results: int, largest: int, channels: int) -> Tensor:
    """Do `median_batch` on the CPU."""
    out = torch.empty(results, dtype=torch.uint8)
    for start, h, w, result, *window in samples.tolist():
        image = flat[start : start + h * w * channels].view(h, w, channels)
        made = median(image, (0, 1), window)
        out[result : result + made.numel()].view(made.shape).copy_(made)
    return out
