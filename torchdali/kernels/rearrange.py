"""Copy tensors to another order of axes in memory, with OpenCV if it supports the two orders."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchdali.kernels.memory import SMALL_SAMPLE, Array
from torchdali.kernels.opencv import opencv_for

__all__ = ["copy_to", "make_contiguous", "select"]

_CHANNELS = 4  # with more channels, OpenCV is not faster
_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.float64}


def make_contiguous(x: Tensor) -> Tensor:
    """Return a contiguous tensor: the tensor itself or a copy."""
    if x.is_contiguous() or x.nbytes < SMALL_SAMPLE or opencv_for(x) is None:
        return x.contiguous()
    return copy_to(torch.empty(x.shape, dtype=x.dtype, device=x.device), x)


def copy_to(target: Tensor, x: Tensor) -> Tensor:
    """Copy `x` to a contiguous tensor of the same shape and dtype, and return `target`.

    If the copy changes interleaved channels to planes, changes planes to interleaved channels, or swaps height and
    width, the copy takes a third of PyTorch's time for float32, and a tenth for uint8.
    """
    cv2 = None if x.nbytes < SMALL_SAMPLE or x.is_contiguous() else opencv_for(x)
    dtype = _SAME_SIZE.get(x.itemsize)
    if cv2 is None or dtype is None or not target.is_contiguous():
        return target.copy_(x)
    copied = _copy(cv2, target.view(dtype).numpy(), x.view(dtype).numpy())
    return target if copied else target.copy_(x)


def _copy(cv2: Any, target: Array, source: Array) -> bool:
    """Copy an array with OpenCV, and return True. If OpenCV doesn't support the memory orders, return False."""
    shape, (first, *rest) = source.shape, (n // source.itemsize for n in source.strides)
    if not rest or first >= max(rest):  # copy image by image, or the axes are already in order
        return source.ndim > 2 and all(map(_copy, [cv2] * len(source), target, source))
    if source.ndim == 2 and first == 1 and rest[0] >= shape[0]:
        cv2.transpose(source.T, target)
    elif source.ndim != 3:
        return False
    elif first == 1 and rest[1] == shape[0] <= _CHANNELS and rest[0] >= shape[0] * shape[2]:
        cv2.split(source.transpose(1, 2, 0), list(target))
    elif rest[0] == 1 and first >= shape[1] and 1 < shape[2] <= _CHANNELS and rest[1] >= shape[0] * first:
        cv2.merge(list(source.transpose(2, 0, 1)), target)
    elif rest[1] == 1 and first == shape[2] <= _CHANNELS and rest[0] >= shape[0] * first:
        cv2.transpose(source.transpose(1, 0, 2), target)
    else:
        return False
    return True


def select(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Compute `torch.where` on two tensors of equal dtype, which may be uint16, uint32 or uint64."""
    if x.dtype not in _UNSIGNED:
        return torch.where(condition, x, y)
    carrier = _SAME_SIZE[x.itemsize]
    return torch.where(condition, x.view(carrier), y.view(carrier)).view(x.dtype)


_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)  # dtypes for which devices support few operations
