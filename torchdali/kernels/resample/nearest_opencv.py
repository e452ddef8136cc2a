"""Nearest pixels of whole images by OpenCV, where it is installed: both axes in one pass."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.memory import Array
from torchdali.kernels.opencv import opencv, opencv_for
from torchdali.kernels.resample.weights import Axis, nearest, passes

__all__ = ["nearest_by_opencv"]

_LONGEST = 2**15 - 1  # axis whose positions int16 holds


def nearest_by_opencv(x: Tensor, axes: Sequence[Axis]) -> Tensor | None:
    """Take the nearest pixels of ``(H, W, C)`` along both axes, or return None if OpenCV cannot.

    Args:
        x: uint8 or float32, at most 4 channels.
        axes: Of rows and columns.
    """
    if x.dim() != 3 or (take := _taking(x, axes)) is None:
        return None
    found = torch.empty(axes[0].size, axes[1].size, x.shape[-1], dtype=x.dtype)
    take(x.contiguous().numpy(), found.numpy())
    return found


def _taking(x: Tensor, axes: Sequence[Axis]) -> Callable[[Array, Array], Any] | None:
    """Return what takes the nearest pixels of an image and writes them, or None if OpenCV cannot."""
    if (
        len(axes) != 2
        or axes[0].filter != "nn"
        or axes[1].filter != "nn"
        or x.shape[-1] > 4
        or x.dtype not in (torch.uint8, torch.float32)
        or (cv2 := opencv_for(x)) is None
    ):
        return None
    rows, columns = axes
    first = passes((rows, columns))[0]
    if _is_exact(rows, False, first == 0) and _is_exact(columns, True, first == 1):
        size, exact = (columns.size, rows.size), cv2.INTER_NEAREST_EXACT
        return lambda image, result: cv2.resize(image, size, result, interpolation=exact)
    if (places := _places(rows, columns, first)) is None:
        return None
    return lambda image, result: cv2.remap(image, places, None, cv2.INTER_NEAREST, result)


@functools.lru_cache(maxsize=64)
def _is_exact(axis: Axis, innermost: bool, first_pass: bool) -> bool:
    """True if OpenCV's exact nearest pixels are those of DALI; it takes two thirds of the time of a map."""
    if (axis.low, axis.high) != (0, axis.length):
        return False
    cv2 = opencv()
    every = np.arange(axis.length, dtype=np.float32)[None]
    found = cv2.resize(every, (axis.size, 1), interpolation=cv2.INTER_NEAREST_EXACT)[0]
    wanted = nearest(axis, innermost, first_pass, torch.device("cpu"))
    return bool(np.array_equal(found, wanted.numpy()))


@functools.lru_cache(maxsize=8)
def _places(rows: Axis, columns: Axis, first: int) -> Any:
    """Return column and row of each pixel of the output, or None if an axis is too long."""
    if max(rows.length, rows.size, columns.length, columns.size) > _LONGEST:
        return None
    places = np.empty((rows.size, columns.size, 2), np.int16)
    for i, axis in enumerate((rows, columns)):
        index = nearest(axis, i == 1, i == first, torch.device("cpu")).numpy()
        places[..., 1 - i] = index if i else index[:, None]
    return places
