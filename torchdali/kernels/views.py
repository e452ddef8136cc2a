"""Views of tensors made by NumPy, where that is possible.

A view of a tensor that PyTorch makes gives the interpreter's lock away, for a microsecond of work; where another thread
waits for the lock, it costs ten. NumPy keeps the lock, and takes half the time.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["is_plain", "narrowed", "permuted"]


def narrowed(
    x: Tensor, axes: Sequence[int], starts: Sequence[int], extents: Sequence[int]
) -> Tensor:
    """Return the part of a tensor from a start to ``start + extent`` along some axes."""
    if x.dtype != torch.uint8 or not is_plain(x):
        for axis, start, extent in zip(axes, starts, extents, strict=True):
            x = x.narrow(axis, start, extent)
        return x
    part = [slice(None)] * x.ndim
    for axis, start, extent in zip(axes, starts, extents, strict=True):
        part[axis] = slice(start, start + extent)
    return torch.from_numpy(x.numpy()[tuple(part)])


def permuted(x: Tensor, order: Sequence[int]) -> Tensor:
    """Return a tensor with its axes in another order; one that is written to, and not differentiated."""
    if x.dtype not in (torch.uint8, torch.float32) or not is_plain(x):
        return x.permute(tuple(order))
    return torch.from_numpy(x.numpy().transpose(order))


def is_plain(x: Tensor) -> bool:
    """Whether a tensor is an array in memory and nothing else."""
    return x.is_cpu and not x.requires_grad and not torch.compiler.is_compiling()
