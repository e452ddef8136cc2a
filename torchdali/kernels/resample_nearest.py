"""Nearest pixels of whole images by OpenCV, where it is installed: both axes in one pass."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.opencv import opencv_for
from torchdali.kernels.resample_weights import Axis, nearest

__all__ = ["nearest_by_opencv"]

_LONGEST = 2**15 - 1  # axis whose positions int16 holds


def nearest_by_opencv(x: Tensor, axes: Sequence[Axis], first: int) -> Tensor | None:
    """Take the nearest pixels of ``(H, W, C)`` along both axes, or return None if OpenCV cannot.

    Args:
        x: uint8 or float32, at most 4 channels.
        axes: Of rows and columns.
        first: Which of them DALI resizes first.
    """
    if (
        axes[0].filter != "nn"
        or axes[-1].filter != "nn"
        or x.dim() != 3
        or len(axes) != 2
        or x.shape[-1] > 4
        or x.dtype not in (torch.uint8, torch.float32)
    ):
        return None
    cv2 = opencv_for(x)
    if cv2 is None or (places := _places(axes[0], axes[1], first)) is None:
        return None
    found = cv2.remap(x.contiguous().numpy(), places, None, cv2.INTER_NEAREST)
    return torch.from_numpy(found).view(axes[0].size, axes[1].size, x.shape[-1])


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
