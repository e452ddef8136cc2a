"""Tables: what a kernel must know of each sample of a batch, in one copy from page-locked memory."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.memory import Array

__all__ = ["bits", "floats", "has_kernels", "table", "upload"]


def has_kernels(device: torch.device) -> bool:
    """Return whether the kernels of this package run on a device: on CUDA where Triton is installed."""
    return device.type == "cuda" and importlib.util.find_spec("triton") is not None


def upload(array: Array, device: torch.device) -> Tensor:
    """Copy an array to a device without waiting for it.

    The page-locked memory is torch's, which uses it again when the copy is done.
    """
    made = torch.from_numpy(array)
    return made.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else made


def table(columns: Sequence[Array | int]) -> Array:
    """Return columns, one value a sample each, as an array ``(N, columns)`` int64; floats as `bits`."""
    size = max(len(c) for c in columns if isinstance(c, np.ndarray))
    made = np.empty((size, len(columns)), np.int64)
    for i, column in enumerate(columns):
        made[:, i] = column
    return made


def bits(values: Array) -> Array:
    """Return float32 values as the integers of the same bits."""
    return np.ascontiguousarray(values, np.float32).view(np.int32).astype(np.int64)


def floats(column: Array) -> npt.NDArray[np.float32]:
    """Return the values of a column of `bits`."""
    return column.astype(np.int32).view(np.float32)
