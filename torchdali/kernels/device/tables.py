"""Tables of kernel arguments with one row per sample, which are copied to the device in one transfer."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import sys
import sysconfig
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.memory import Array

__all__ = ["bits", "factors", "floats", "has_kernels", "missing_kernel_requirement", "table", "upload"]


def has_kernels(device: torch.device) -> bool:
    """Return whether the kernels of this package run on a device: on CUDA, if Triton can compile them."""
    return device.type == "cuda" and _can_compile()


def missing_kernel_requirement() -> str | None:
    """Return the name of the kernels' missing requirement; None if the kernels can be compiled.

    For its first kernel, Triton compiles a Python module with a C compiler. Linux containers often have no C compiler.
    """
    if importlib.util.find_spec("triton") is None:
        return "Triton"
    if sys.platform != "linux":  # Triton for Windows brings a compiler
        return None
    if not os.environ.get("CC") and not any(map(shutil.which, ("gcc", "clang"))):
        return "a C compiler (gcc or clang)"
    scheme = sysconfig.get_default_scheme().replace("posix_local", "posix_prefix")
    header = os.path.join(sysconfig.get_paths(scheme)["include"], "Python.h")
    return None if os.path.exists(header) else f"Python.h, at {header}"


@functools.cache
def _can_compile() -> bool:
    missing = missing_kernel_requirement()
    if missing not in (None, "Triton"):
        warnings.warn(
            f"batched GPU kernels need {missing}. Without it, operators process samples one by one, which is slow. "
            f"Install the compiler, for example with `apt install gcc python3-dev`.",
            stacklevel=3,
        )
    return missing is None


def upload(values: Array | Tensor, device: torch.device) -> Tensor:
    """Copy an array, or a tensor on the CPU, to a device without waiting for the copy.

    The data is first copied to pinned memory, which PyTorch allocates and reuses after the copy.
    """
    tensor = values if isinstance(values, Tensor) else torch.from_numpy(values)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


def factors(values: Any, x: Tensor) -> Tensor:
    """Return float32 factors for each ``x[i]``, on the device of `x`, in a shape that broadcasts against `x`."""
    array = np.ascontiguousarray(values, np.float32)
    return upload(array, x.device).view(len(array), *[1] * (x.ndim - array.ndim), *array.shape[1:])


def table(columns: Sequence[Array | int]) -> Array:
    """Return an int64 array of columns with one value per sample. Floats must be converted by `bits`."""
    size = max(len(c) for c in columns if isinstance(c, np.ndarray))
    result = np.empty((size, len(columns)), np.int64)
    for i, column in enumerate(columns):
        result[:, i] = column
    return result


def bits(values: Array) -> Array:
    """Return the bits of float32 values as int64 numbers, to store them in a `table`."""
    return np.ascontiguousarray(values, np.float32).view(np.int32).astype(np.int64)


def floats(column: Array) -> npt.NDArray[np.float32]:
    """Return the float32 values of a column that `bits` returned."""
    return column.astype(np.int32).view(np.float32)
