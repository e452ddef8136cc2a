"""Views of tensors made by NumPy, where that is possible.

A view of a tensor that PyTorch makes gives the interpreter's lock away, for a microsecond of work; where another thread
waits for the lock, it costs ten. NumPy keeps the lock, and takes half the time.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["is_plain", "narrowed"]


def narrowed(x: Tensor, parts: dict[int, tuple[int, int]]) -> Tensor:
    """Return the part of a tensor that is given by a start and an extent for some axes."""
    if x.dtype != torch.uint8 or not is_plain(x):
        for axis, (start, extent) in parts.items():
            x = x.narrow(axis, start, extent)
        return x
    part = [slice(None)] * x.ndim
    for axis, (start, extent) in parts.items():
        part[axis] = slice(start, start + extent)
    return torch.from_numpy(x.numpy()[tuple(part)])


def is_plain(x: Tensor) -> bool:
    """Whether a tensor is an array in memory and nothing else."""
    return x.is_cpu and not x.requires_grad and not torch.compiler.is_compiling()
