"""Subtract and scale numbers of the groups of a batch of samples of any sizes, on an accelerator, in one launch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import table, upload
from torchdali.kernels.memory import Array

__all__ = ["COLUMNS", "standardize_batch"]

COLUMNS = ("offset", "size", "result", "length", "group")
"""Of the table: where a sample starts, in elements, how many there are, where the result goes, the elements of each of
its groups, and the number of the first."""


def standardize_batch(
    flat: Tensor, offsets: Array, groups: Array, lengths: Array, centers: Tensor, factors: Tensor, shift: float
) -> Tensor:  # fmt: skip
    """Compute ``(x - center) * factor + shift``.

    Args:
        flat: uint8 or float32, the elements of all samples, on a device.
        offsets: Where each sample starts.
        groups: Of each sample, which follow one another.
        lengths: Elements of each of its groups.
        centers: ``(all groups, channels)`` float32; channels are the last axis of the samples.
        factors: Likewise.
        shift: The same for all.

    Returns:
        The elements of all results, one after the other: float32.
    """
    sizes = groups * lengths
    rows = table([offsets, sizes, np.cumsum(sizes) - sizes, lengths, np.cumsum(groups) - groups])
    made: Tensor = torch.ops.torchdali.standardize_batch(
        flat, upload(rows, flat.device), centers.contiguous(), factors.contiguous(), shift, int(sizes.sum()),
        int(sizes.max()),
    )  # fmt: skip
    return made


@define("standardize")
def standardize_in_torch(
    flat: Tensor,
    samples: Tensor,
    centers: Tensor,
    factors: Tensor,
    shift: float,
    results: int,
    largest: int,
) -> Tensor:
    """Do `standardize_batch` on the CPU."""
    out = torch.empty(results)
    channels = centers.shape[1]
    for start, size, result, length, first in samples.tolist():
        group = slice(first, first + size // length)
        values = flat[start : start + size].view(-1, length // channels, channels)
        made = (values.float() - centers[group, None]) * factors[group, None] + shift
        out[result : result + size] = made.reshape(-1)
    return out
