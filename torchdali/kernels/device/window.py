"""Copy windows of a batch of images of any sizes on an accelerator, in one kernel launch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import table, upload
from torchdali.kernels.memory import Array

__all__ = ["COLUMNS", "copy_windows"]

COLUMNS = ("offset", "height", "width", "result", "out_height", "out_width", "y", "x")
"""Columns of the kernel's table, which has one row per image. The columns are the image's offset in elements and the
image's extents, the output's offset and extents, and the first row and column of the window."""


def copy_windows(
    flat: Tensor, offsets: Array, sides: Array, channels: int, starts: Array, sizes: Array, fill: float
) -> Tensor:
    """Copy a window of each image. Windows may reach outside of the images.

    Args:
        flat, offsets, sides, channels: See `kernels.device.resize.resize_batch`.
        starts: First rows and columns ``(2, N)`` of the windows.
        sizes: Heights and widths ``(2, N)`` of the windows.
        fill: Value outside of the images.

    Returns:
        The concatenated elements of all windows.
    """
    counts = sizes.prod(0) * channels
    rows = table([offsets, *sides, np.cumsum(counts) - counts, *sizes, *starts])
    result: Tensor = torch.ops.torchdali.copy_windows_batch(
        flat, upload(rows, flat.device), int(counts.sum()), int(counts.max()), channels, fill
    )
    return result


@define("copy_windows")
def copy_windows_in_torch(
    flat: Tensor, samples: Tensor, results: int, largest: int, channels: int, fill: float
) -> Tensor:
    """Copy windows on the CPU. This is the reference implementation for the device's kernel."""
    out = torch.full((results,), fill, dtype=flat.dtype)
    for start, h, w, result, height, width, y, x in samples.tolist():
        image = flat[start : start + h * w * channels].view(h, w, channels)
        window = out[result : result + height * width * channels].view(height, width, channels)
        top, left = max(y, 0), max(x, 0)
        part = image[top : max(y + height, top), left : max(x + width, left)]
        inside = window[top - y : top - y + len(part), left - x : left - x + part.shape[1]]
        inside.copy_(part)
    return out
