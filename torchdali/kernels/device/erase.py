"""Fill regions of a batch of images of any sizes, on an accelerator, in one launch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import table, upload
from torchdali.kernels.memory import Array

__all__ = ["COLUMNS", "erase_batch"]

COLUMNS = ("offset", "height", "width", "result", "fill", "regions", "count")
"""Of the table: where an image starts, in elements, its extents, where the result goes; behind the rows of all samples,
where the values of its channels are and where its regions, four numbers each, and how many."""

Region = tuple[int, int, int, int]


def erase_batch(
    flat: Tensor, offsets: Array, sides: Array, channels: int, regions: Sequence[Sequence[Region]],
    fills: Sequence[Sequence[int]],
) -> Tensor:  # fmt: skip
    """Fill regions of images.

    Args:
        flat: uint8, the elements of all images, on a device.
        offsets: Where each image starts.
        sides: ``(2, N)``: heights and widths.
        channels: Of all images.
        regions: Of each image: first line and column, and those behind the last.
        fills: Of each image, one value a channel.

    Returns:
        The elements of all results, one after the other.
    """
    counts = sides.prod(0) * channels
    behind = [(*fill, *itertools.chain(*each)) for fill, each in zip(fills, regions, strict=True)]
    sizes = np.array(list(map(len, behind)), np.int64)
    starts = len(behind) * len(COLUMNS) + np.cumsum(sizes) - sizes
    many = (sizes - channels) // 4
    rows = table([offsets, *sides, np.cumsum(counts) - counts, starts, starts + channels, many])
    block = np.concatenate((rows.reshape(-1), np.array([*itertools.chain(*behind)], np.int64)))
    made: Tensor = torch.ops.torchdali.erase_batch(
        flat, upload(block, flat.device), len(behind), int(counts.sum()), int(counts.max()), channels
    )
    return made


@define("erase")
def erase_in_torch(flat: Tensor, block: Tensor, count: int, results: int, largest: int, channels: int) -> Tensor:
    """Do `erase_batch` on the CPU."""
    out = torch.empty(results, dtype=torch.uint8)
    numbers = block.numpy()
    for row in numbers[: count * len(COLUMNS)].reshape(count, -1).tolist():
        start, h, w, result, fill, first, many = row
        made = out[result : result + h * w * channels].view(h, w, channels)
        made.copy_(flat[start : start + made.numel()].view(made.shape))
        values = torch.from_numpy(numbers[fill : fill + channels].astype(np.uint8))
        for top, left, bottom, right in numbers[first : first + 4 * many].reshape(-1, 4).tolist():
            made[top:bottom, left:right] = values
    return out
