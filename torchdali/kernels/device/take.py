"""Take rows and columns of a batch of images of any sizes, on an accelerator, in one launch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import table, upload
from torchdali.kernels.memory import Array

__all__ = ["COLUMNS", "take_batch"]

COLUMNS = ("offset", "width", "result", "out_height", "out_width", "lines")
"""Of the table: where an image starts, in elements, its width, where the result goes and its extents, and where the
indices of rows are, which those of columns follow: behind the rows of all samples."""


def take_batch(
    flat: Tensor,
    offsets: Array,
    widths: Array,
    channels: int,
    indices: Sequence[tuple[Array, Array]],
) -> Tensor:
    """Take ``out(y, x) = in(rows[y], columns[x])``.

    Args:
        flat: The elements of all images, on a device.
        offsets: Where each image starts.
        widths: Of each image.
        channels: Of all images.
        indices: Rows and columns of each image, which it has.

    Returns:
        The elements of all results, one after the other.
    """
    sizes = np.array([(len(rows), len(columns)) for rows, columns in indices], np.int64).T
    counts, lines = sizes.prod(0) * channels, sizes.sum(0)
    starts = len(indices) * len(COLUMNS) + np.cumsum(lines) - lines
    rows = table([offsets, widths, np.cumsum(counts) - counts, *sizes, starts])
    block = np.concatenate([rows.reshape(-1), *(each for pair in indices for each in pair)])
    result: Tensor = torch.ops.torchdali.take_batch(
        flat,
        upload(block, flat.device),
        len(indices),
        int(counts.sum()),
        int(counts.max()),
        channels,
    )
    return result


@define("take")
def take_in_torch(flat: Tensor, block: Tensor, count: int, results: int, largest: int, channels: int) -> Tensor:
    """Do `take_batch` on the CPU."""
    out = torch.empty(results, dtype=flat.dtype)
    for start, width, result, h, w, first in block[: count * len(COLUMNS)].view(count, -1).tolist():
        rows, columns = block[first : first + h], block[first + h : first + h + w]
        index = (rows[:, None] * width + columns)[..., None] * channels + torch.arange(channels)
        out[result : result + index.numel()] = flat[start + index.view(-1)]
    return out
