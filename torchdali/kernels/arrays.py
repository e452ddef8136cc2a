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


def is_array(x: Tensor) -> bool:
    """Whether NumPy can read a tensor."""
    return is_plain(x) and x.dtype not in (torch.bfloat16, torch.complex32)


def inside(
    arrays: Array, axes: Sequence[int], starts: Sequence[Sequence[int]], extents: Sequence[int]
) -> Array | list[Array] | None:
    """Return windows of one shape of several arrays.

    Args:
        arrays: ``(N, ...)``.
        axes: Of an array; those that are cut.
        starts: For each array or, if it is one, for all: one number an axis.
        extents: One number an axis.

    Returns:
        ``(N, ...)``, or a list where the windows lie in several places; None where one reaches outside.
    """
    shape = arrays.shape[1:]
    for axis, extent, places in zip(axes, extents, zip(*starts, strict=True), strict=True):
        if extent < 0 or min(places) < 0 or max(places) + extent > shape[axis]:
            return None
    if len(starts) == 1:
        part = _part(axes, starts[0], extents, len(shape))
        found: Array = arrays[(slice(None), *part)]
        return found
    if sorted(axes) == [0, 1]:
        i, j = axes.index(0), axes.index(1)
        h, w = extents[i], extents[j]
        pairs = zip(arrays, starts, strict=True)
        return [array[at[i] : at[i] + h, at[j] : at[j] + w] for array, at in pairs]
    parts = [_part(axes, at, extents, len(shape)) for at in starts]
    return [array[part] for array, part in zip(arrays, parts, strict=True)]


def _part(
    axes: Sequence[int], starts: Sequence[int], extents: Sequence[int], ndim: int
) -> tuple[slice, ...]:
    part = [slice(None)] * ndim
    for axis, start, extent in zip(axes, starts, extents, strict=True):
        part[axis] = slice(start, start + extent)
    return tuple(part)


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
