"""Represent all points or boxes of a batch as rows of a single tensor, so that one call processes all samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchdali.declaration.schema import Column
from torchdali.kernels.memory import Array
from torchdali.tensors import TensorList

__all__ = ["BatchRows", "column", "count_remaining", "rows_of", "width_of"]


def column(value: Any) -> Array:
    """Return an argument as an array ``(batch, 1)``, or ``(1, 1)`` if all samples share its value."""
    rows = value.rows(np.float64) if isinstance(value, Column) else np.array([value], np.float64)
    return rows.reshape(-1, 1)


def width_of(batch: TensorList) -> int:
    """Return the extent of the samples' last axis.

    Raises:
        RuntimeError: the samples have different extents.
    """
    dense = batch.dense()
    if dense is not None:
        return dense.shape[-1]
    widths = [sample.shape[-1] for sample in batch.samples()]
    for i, width in enumerate(widths):
        if width != widths[0]:
            raise RuntimeError(
                f"the last axis must have the same length in all samples, got {width} in sample {i} "
                f"and {widths[0]} in sample 0"
            )
    return widths[0]


def rows_of(batch: TensorList) -> tuple[Tensor, Sequence[int]]:
    """Concatenate the samples along their first axis; return all rows, and the number of rows of each sample."""
    dense, stored = batch.dense(), batch.rows()
    if dense is not None:
        return dense.flatten(0, 1), [dense.shape[1]] * dense.shape[0]
    if stored is not None:
        return stored
    samples = batch.samples()
    return torch.cat(samples), [sample.shape[0] for sample in samples]


def count_remaining(keep: Array, counts: Sequence[int] | Array, owner: Array | None = None) -> list[int]:
    """Return the number of remaining rows of each sample.

    Args:
        keep: Mask, or indices, of the rows that remain.
        counts: Number of rows of each sample.
        owner: For each row, the index of the sample that has the row. By default this is computed from `counts`.
    """
    if owner is None:
        owner = np.arange(len(counts)).repeat(counts)
    rest: list[int] = np.bincount(owner[keep], minlength=len(counts)).tolist()
    return rest


class BatchRows:
    """All rows of a batch, such as boxes with 4 values each.

    Args:
        batch: A float32 batch with at least one sample. The extent of the last axis must be a multiple of `width`.
        width: Number of values per row.

    Attributes:
        rows: The rows of all samples, ``(n, width)``.

    Raises:
        RuntimeError: the batch isn't float32, or the extent of a sample's last axis isn't a multiple of `width`.
    """

    def __init__(self, batch: TensorList, width: int) -> None:
        if batch.torch_dtype != torch.float32:
            raise RuntimeError(f"points and boxes must be float32, got {batch.dtype}")
        self._layout, self._dense = batch.layout(), batch.dense()
        for i, shape in enumerate(batch.shape() if self._dense is None else [self._dense.shape]):
            if shape[-1] % width:
                raise RuntimeError(f"boxes must have {width} numbers each, got {shape[-1]} (sample {i})")
        if self._dense is not None:
            self.rows = self._dense.reshape(-1, width)
            return
        self._counts: Sequence[int]
        stored = batch.rows()
        if stored is not None and stored[0].shape[1:] == (width,):
            self._has_row_shape, (self.rows, self._counts) = True, stored
            return
        samples = batch.samples()
        self._shapes = [sample.shape for sample in samples]
        self._counts = [math.prod(shape) // width for shape in self._shapes]
        self._has_row_shape = all(len(shape) == 2 and shape[1] == width for shape in self._shapes)
        self.rows = torch.cat(samples if self._has_row_shape else [sample.reshape(-1, width) for sample in samples])

    def repeat_rows(self, values: Array) -> Tensor:
        """Repeat each sample's values for all rows of the sample.

        If `values` has a single row, all samples share this row, and the row isn't repeated.
        """
        return torch.from_numpy(self.repeat_rows_array(values)).to(self.rows.device)

    def repeat_rows_array(self, values: Array) -> Array:
        """Do the same as `repeat_rows` with an array ``(..., batch, n)`` or ``(..., 1, n)``, and return an array."""
        values = values.astype(np.float32) if values.dtype == np.float64 else values
        if values.shape[-2] == 1:
            return values
        dense = self._dense
        counts: Any = self._counts if dense is None else len(self.rows) // values.shape[-2]
        return values.repeat(counts, axis=-2)

    def batch(self, rows: Tensor) -> TensorList:
        """Build a batch of new rows, with the shapes and the layout of the original batch."""
        if self._dense is not None:
            return TensorList.from_dense(rows.view(self._dense.shape), self._layout)
        if self._has_row_shape:
            return TensorList.from_rows(rows, self._counts, self._layout)
        samples: Sequence[Tensor] = rows.split_with_sizes(self._counts)
        samples = [sample.view(shape) for sample, shape in zip(samples, self._shapes, strict=True)]
        return TensorList.from_samples(list(samples), self._layout)
