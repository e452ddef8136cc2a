"""Several samples as NumPy arrays, whose views cost less than those of tensors, and keep the interpreter's lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.rounding import place
from torchdali.kernels.views import is_plain

__all__ = ["Array", "copied", "inside", "is_array"]

Array = npt.NDArray[Any]
Window = tuple[Sequence[int], Sequence[int], Sequence[int]]
"""Axes, starts and extents."""


def is_array(x: Tensor) -> bool:
    """Whether NumPy can read a tensor."""
    return is_plain(x) and x.dtype not in (torch.bfloat16, torch.complex32)


def inside(arrays: Array, windows: Sequence[Window]) -> Array | list[Array] | None:
    """Return the windows of several arrays of one shape.

    Args:
        arrays: ``(N, ...)``.
        windows: One, or one for each.

    Returns:
        ``(N, ...)``, or a list where the windows lie in several places; None where there are no arrays, or windows of
        several sizes, or some that reach outside.
    """
    shape = arrays.shape[1:]
    sizes = {(tuple(axes), tuple(extents)) for axes, _, extents in windows}
    if len(sizes) != 1 or not len(arrays):
        return None
    axes, extents = sizes.pop()
    parts = []
    for _, starts, _ in windows:
        part = [slice(None)] * len(shape)
        for axis, start, extent in zip(axes, starts, extents, strict=True):
            if start < 0 or extent < 0 or start + extent > shape[axis]:
                return None
            part[axis] = slice(start, start + extent)
        parts.append(tuple(part))
    if len(parts) == 1:
        found: Array = arrays[(slice(None), *parts[0])]
        return found
    return [array[part] for array, part in zip(arrays, parts, strict=True)]


def copied(windows: Array | list[Array], dtype: torch.dtype, out: Tensor | None) -> Tensor:
    """Return windows of one shape as one tensor; in `out`, if it fits."""
    shape = (len(windows), *windows[0].shape)
    made = place(out, shape, dtype, torch.device("cpu"))
    result = made.numpy()
    if isinstance(windows, np.ndarray):
        result[...] = windows
    else:
        for target, window in zip(result, windows, strict=True):
            target[...] = window
    return made
