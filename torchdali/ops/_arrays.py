"""Access to the samples of a batch as NumPy arrays.

For small arrays, NumPy's functions are faster than PyTorch's. NumPy keeps the GIL, so threads needn't wait to get it
back.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from torchdali.kernels.memory import Array, is_array
from torchdali.tensors import TensorList

__all__ = ["arrays_of"]


def arrays_of(batch: TensorList) -> Sequence[Array] | None:
    """Return a batch's samples as NumPy arrays without copying; None if NumPy can't access the memory."""
    dense, rows = batch.dense(), batch.rows()
    if dense is not None:
        stacked = dense.numpy() if is_array(dense) else None
        return None if stacked is None else [stacked[i, ...] for i in range(len(stacked))]
    if rows is not None and is_array(rows[0]):
        all_rows = rows[0].numpy()
        return [all_rows[begin:end] for begin, end in pairwise(accumulate(rows[1], initial=0))]
    samples = batch.samples()
    return [sample.numpy() for sample in samples] if all(map(is_array, samples)) else None
