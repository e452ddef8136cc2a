"""Set squares of a grid to zero in a batch of images of any sizes, on an accelerator, in one launch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import bits, floats, table, upload
from torchdali.kernels.grid import mask_of, steps_of
from torchdali.kernels.memory import Array

__all__ = ["COLUMNS", "mask_grid_batch"]

COLUMNS = ("offset", "height", "line", "result", "channels", "cosine", "sine", "x", "y", "ratio")
"""Of the table: where an image starts, in elements, its lines, the elements of one, where the result goes, channels,
and the grid: see `kernels.grid.steps_of`."""


def mask_grid_batch(flat: Tensor, offsets: Array, shapes: Array, grids: Array) -> Tensor:
    """Set squares to zero, as `kernels.grid.grid_mask` does.

    Args:
        flat: The elements of all images, on a device.
        offsets: Where each image starts.
        shapes: ``(N, 3)``: heights, widths and channels.
        grids: ``(N, 5)``: tile, ratio, angle and shifts.

    Returns:
        The elements of all results, one after the other.
    """
    counts = shapes.prod(1)
    height, width, channels = shapes.T
    rows = table(
        [offsets, height, width * channels, np.cumsum(counts) - counts, channels, *bits(np.array(steps_of(*grids.T)))]
    )  # fmt: skip
    made: Tensor = torch.ops.torchdali.mask_grid_batch(
        flat, upload(rows, flat.device), int(counts.sum()), int(counts.max())
    )
    return made


@define("mask_grid")
def mask_grid_in_torch(flat: Tensor, samples: Tensor, results: int, largest: int) -> Tensor:
    """Do `mask_grid_batch` on the CPU."""
    out = torch.empty(results, dtype=flat.dtype)
    for row in samples.numpy():
        start, height, line, result, channels = row[:5].tolist()
        keep = mask_of(height, line // channels, floats(row[5:]).tolist(), flat.device)
        image = flat[start : start + height * line].view(height, -1, channels)
        out[result : result + height * line].view(image.shape).copy_(image * keep[..., None])
    return out
