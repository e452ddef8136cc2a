"""Transpose a batch of matrices of any sizes, on an accelerator, in one launch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import table, upload
from torchdali.kernels.memory import Array

__all__ = ["COLUMNS", "turn_batch"]

COLUMNS = ("offset", "rows", "columns", "result")
"""Of the table: where a matrix starts, in elements, its extents, and where the result goes."""


def turn_batch(flat: Tensor, offsets: Array, sides: Array) -> Tensor:
    """Transpose matrices.

    Args:
        flat: The elements of all matrices, on a device.
        offsets: Where each starts.
        sides: ``(2, N)``: rows and columns.

    Returns:
        The elements of all results, one after the other.
    """
    counts = sides.prod(0)
    rows = upload(table([offsets, *sides, np.cumsum(counts) - counts]), flat.device)
    made: Tensor = torch.ops.torchdali.turn_batch(flat, rows, int(counts.sum()), int(counts.max()))
    return made


@define("turn")
def turn_in_torch(flat: Tensor, samples: Tensor, results: int, largest: int) -> Tensor:
    """Do `turn_batch` on the CPU."""
    out = torch.empty(results, dtype=flat.dtype)
    for start, rows, columns, result in samples.tolist():
        matrix = flat[start : start + rows * columns].view(rows, columns)
        out[result : result + rows * columns].view(columns, rows).copy_(matrix.t())
    return out
