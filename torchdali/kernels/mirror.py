"""Reverse axes of a tensor."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from torchdali.kernels.device.tables import factors
from torchdali.kernels.memory import SMALL_SAMPLE, is_array, prepare_out
from torchdali.kernels.rearrange import select

__all__ = ["mirror", "mirror_each"]


def mirror(x: Tensor, axes: Sequence[int]) -> Tensor:
    """Return a tensor with some axes reversed."""
    if x.dtype == torch.uint16:  # PyTorch before 2.7 can't reverse uint16
        return x.view(torch.int16).flip(list(axes)).view(x.dtype)
    return x.flip(list(axes))


def mirror_each(x: Tensor, axes: Sequence[Sequence[int]], out: Tensor | None = None) -> Tensor:
    """Reverse the axes ``axes[i]`` of each ``x[i]``. The result is written to `out` if it fits."""
    if x.requires_grad:
        return torch.stack([mirror(sample, sample_axes) for sample, sample_axes in zip(x, axes, strict=True)])
    if not x.is_cpu:
        return _mirror_by_mask(x, axes)
    result = prepare_out(out, x.shape, x.dtype, x.device)
    if is_array(x) and 0 < x.nbytes <= SMALL_SAMPLE * len(x):
        _mirror_small(x, axes, result)
        return result
    for source, target, sample_axes in zip(x.unbind(0), result.unbind(0), axes, strict=True):
        target.copy_(mirror(source, sample_axes) if sample_axes else source)
    return result


def _mirror_by_mask(x: Tensor, axes: Sequence[Sequence[int]]) -> Tensor:
    """Compute `mirror_each` on a device, with one operation per axis for all samples."""
    for axis in sorted(set(itertools.chain(*axes))):
        x = select(factors([axis in sample_axes for sample_axes in axes], x) > 0, mirror(x, [axis + 1]), x)
    return x


def _mirror_small(x: Tensor, axes: Sequence[Sequence[int]], result: Tensor) -> None:
    """Compute `mirror_each` for small samples, with one call for all samples whose axes are the same."""
    source, target = x.numpy(), result.numpy()
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, sample_axes in enumerate(axes):
        groups.setdefault(tuple(sample_axes), []).append(i)
    for sample_axes, indices in groups.items():
        part = torch.from_numpy(source[indices])
        target[indices] = mirror(part, [axis + 1 for axis in sample_axes]) if sample_axes else part
