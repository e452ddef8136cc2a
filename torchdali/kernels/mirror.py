"""Reverse axes of a tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.memory import SMALL, is_array, place
from torchdali.kernels.opencv import opencv_for

__all__ = ["mirror", "mirror_each"]

_TYPES = (torch.uint8, torch.uint16, torch.int16, torch.int32, torch.float32, torch.float64)
_CHANNELS = 4  # of pixels that OpenCV reverses rows of
_PLANES = 4  # for which it is called one by one
_LONG = 256  # bytes of a row that NumPy copies as fast as any


def mirror(x: Tensor, axes: Sequence[int], out: Tensor | None = None) -> Tensor:
    """Return a tensor with some axes reversed; in `out`, if it fits and that saves a copy."""
    if len(axes) == 1 and x.dtype in _TYPES and (cv2 := opencv_for(x)) is not None:
        axis = axes[0]
        if x.dim() == 3 and axis < 2 and x.shape[2] <= _CHANNELS:
            made = place(out, x.shape, x.dtype, x.device)
            dense = x if x.stride()[1:] == (x.shape[2], 1) else x.contiguous()
            cv2.flip(dense.numpy(), axis, made.numpy())
            return made
        before, after = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
        if after * x.dtype.itemsize >= _LONG:
            made = place(out, x.shape, x.dtype, x.device)
            made.numpy()[...] = np.flip(x.numpy(), axis)
            return made
        rows = after <= _CHANNELS
        if rows or before <= _PLANES:
            made = place(out, x.shape, x.dtype, x.device)
            shape = (1, before, x.shape[axis], after) if rows else (before, x.shape[axis], after)
            planes = (t.view(shape).numpy() for t in (x.contiguous(), made))
            for source, target in zip(*planes, strict=True):
                cv2.flip(source, int(rows), target)
            return made
    return x.flip(list(axes))


def mirror_each(x: Tensor, axes: Sequence[Sequence[int]], out: Tensor | None = None) -> Tensor:
    """Return a tensor of which each ``x[i]`` has some axes reversed; in `out`, if it fits and that saves a copy."""
    if x.requires_grad:
        return torch.stack([each.flip(list(some)) for each, some in zip(x, axes, strict=True)])
    made = place(out, x.shape, x.dtype, x.device)
    if is_array(x) and 0 < x[0].nbytes <= SMALL:
        _mirror_small(x, axes, made)
        return made
    for source, target, some in zip(x.unbind(0), made.unbind(0), axes, strict=True):
        result = mirror(source, some, target) if some else source
        if result is not target:
            target.copy_(result)
    return made


def _mirror_small(x: Tensor, axes: Sequence[Sequence[int]], made: Tensor) -> None:
    """Write small samples with some axes reversed: in one call those with the same axes."""
    source, target = x.numpy(), made.numpy()
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, some in enumerate(axes):
        groups.setdefault(tuple(some), []).append(i)
    for some, chosen in groups.items():
        part = torch.from_numpy(source[chosen])
        for axis in some:
            part = mirror(part, [axis + 1])
        target[chosen] = part
