"""Map the RGB values of a batch of images of any sizes by a matrix each, on an accelerator, in one launch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import bits, floats, table, upload
from torchdali.kernels.memory import Array

__all__ = ["COLUMNS", "map_colors"]

COLUMNS = ("offset", "result", "values", *[f"number {i}" for i in range(12)])
"""Of the table: where an image and its result start, in elements, how many there are, and the matrix, row by row, the
offset at the end of each."""


def map_colors(flat: Tensor, offsets: Array, sizes: Array, matrices: Array) -> Tensor:
    """Compute ``matrix @ rgb + offset`` for each pixel.

    Args:
        flat: uint8, the elements of RGB images, on a device.
        offsets: Where each image starts.
        sizes: Elements of each.
        matrices: ``(N, 3, 4)``; the last column is the offset.

    Returns:
        The elements of all results, one after the other: uint8, rounded half up, and saturated.
    """
    numbers = bits(matrices.reshape(len(sizes), 12)).T
    rows = table([offsets, np.cumsum(sizes) - sizes, sizes, *numbers])
    there = upload(rows, flat.device)
    made: Tensor = torch.ops.torchdali.map_colors_batch(flat, there, int(sizes.sum()), int(sizes.max()))
    return made


@define("map_colors")
def map_colors_in_torch(flat: Tensor, samples: Tensor, values: int, longest: int) -> Tensor:
    """Do `map_colors` on the CPU."""
    out = torch.empty(values, dtype=torch.uint8)
    for row in samples.numpy():
        start, result, size = row[:3].tolist()
        numbers = torch.from_numpy(floats(row[3:])).view(3, 4)
        pixels = flat[start : start + size].view(-1, 3).float()
        found = pixels @ numbers[:, :3].T + numbers[:, 3]
        place = out[result : result + size].view(-1, 3)
        place.copy_(found.add_(0.5).clamp_(0.0, 255.0))
    return out
