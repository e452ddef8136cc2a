"""Distort a batch of images of any sizes as JPEG does, on an accelerator, in three launches."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import table, upload
from torchdali.kernels.jpeg import constants, distort
from torchdali.kernels.memory import Array

__all__ = ["COLUMNS", "distort_batch"]

COLUMNS = ("offset", "height", "width", "result", "percent", "luma", "chroma", "quality")
"""Of the table: where an image starts, in elements, its extents, where the result goes, by how much its tables are
scaled, where its planes of whole blocks are on the way, and the quality."""


def distort_batch(flat: Tensor, offsets: Array, sides: Array, qualities: Array) -> Tensor:
    """Distort images, as `distort` does.

    Args:
        flat: uint8, the elements of RGB images, on a device.
        offsets: Where each image starts.
        sides: ``(2, N)``: heights and widths.
        qualities: Of each image, 1 to 100.

    Returns:
        The elements of all results, one after the other.
    """
    counts = sides.prod(0) * 3
    blocks, halves = (-(-sides // 8)).prod(0), (-(-sides // 16)).prod(0)
    sizes = (blocks + 2 * halves) * 64
    starts = np.cumsum(sizes) - sizes
    percents = np.where(qualities < 50, 5000 // qualities, 200 - 2 * qualities)
    rows = table(
        [offsets, *sides, np.cumsum(counts) - counts, percents, starts, starts + blocks * 64, qualities]
    )  # fmt: skip
    made: Tensor = torch.ops.torchdali.distort_batch(
        flat, upload(rows, flat.device), constants(flat.device), int(counts.sum()), int(counts.max()), int(sizes.sum()),
        int(blocks.max()), int(halves.max()),
    )  # fmt: skip
    return made


@define("distort")
def distort_in_torch(
    flat: Tensor, samples: Tensor, numbers: Tensor, results: int, largest: int, room: int, blocks: int, halves: int
) -> Tensor:  # fmt: skip
    """Do `distort_batch` on the CPU."""
    out = torch.empty(results, dtype=torch.uint8)
    for start, h, w, result, *_, quality in samples.tolist():
        made = distort(flat[start : start + h * w * 3].view(h, w, 3), quality)
        out[result : result + made.numel()].view(made.shape).copy_(made)
    return out
