"""Tables: what a kernel must know of each sample of a batch, in one copy from page-locked memory."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.memory import Array

__all__ = ["bits", "factors", "floats", "has_kernels", "table", "upload"]


def has_kernels(device: torch.device) -> bool:
    """Return whether the kernels of this package run on a device: on CUDA where Triton is installed."""
    return device.type == "cuda" and importlib.util.find_spec("triton") is not None


def upload(values: Array | Tensor, device: torch.device) -> Tensor:
    """Copy an array, or a tensor on the CPU, to a device without waiting for it.

    The page-locked memory is torch's, which uses it again when the copy is done.
    """
    tensor = values if isinstance(values, Tensor) else torch.from_numpy(values)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


def factors(values: Any, x: Tensor) -> Tensor:
    """Return float32 numbers for each ``x[i]`` on the device of `x`: one, or one for each place of its last axes."""
    array = np.ascontiguousarray(values, np.float32)
    return upload(array, x.device).view(len(array), *[1] * (x.ndim - array.ndim), *array.shape[1:])


def table(columns: Sequence[Array | int]) -> Array:
    """Return columns, one value a sample each, as an array ``(N, columns)`` int64; floats as `bits`."""
    size = max(len(c) for c in columns if isinstance(c, np.ndarray))
    result = np.empty((size, len(columns)), np.int64)
    for i, column in enumerate(columns):
        result[:, i] = column
    return result


def bits(values: Array) -> Array:
    """Return float32 values as the integers of the same bits."""
    return np.ascontiguousarray(values, np.float32).view(np.int32).astype(np.int64)


def floats(column: Array) -> npt.NDArray[np.float32]:
    """Return the values of a column of `bits`."""
    return column.astype(np.int32).view(np.float32)
