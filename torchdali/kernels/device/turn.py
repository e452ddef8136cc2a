"""Transpose a batch of matrices of any sizes, on an accelerator, in one launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import table, upload

__all__ = ["COLUMNS", "turn_batch"]

COLUMNS = ("offset", "rows", "columns", "result")
"""Of the table: where a matrix starts, in elements, its extents, and where the result goes."""

Array = npt.NDArray[Any]


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


def turn_in_torch(flat: Tensor, samples: Tensor, results: int, largest: int) -> Tensor:
    """Do `turn_batch` on the CPU."""
    out = torch.empty(results, dtype=flat.dtype)
    for start, rows, columns, result in samples.tolist():
        matrix = flat[start : start + rows * columns].view(rows, columns)
        out[result : result + rows * columns].view(columns, rows).copy_(matrix.t())
    return out


define("turn_batch(Tensor flat, Tensor samples, int results, int largest) -> Tensor", turn_in_torch)
