"""Resize uint8 images linearly with PyTorch's vectorised interpolation, and correct the border.

`torch.nn.functional.interpolate` computes what DALI computes, to a level of rounding, except where
the filter reaches beyond the region it is given. There PyTorch drops the pixels outside and
normalises the remaining weights, while DALI reads them (where the region is a crop of a larger
image) or repeats the edge. With ``f`` the weight that falls outside, a line at the border is

    dali = (1 - f) * torch + weighted sum of the pixels outside

so a few lines have to be mixed: where an axis shrinks up to three times, the first and the last
with the one pixel beyond each. Columns are corrected between the two passes, where the pixels
beyond still are image pixels; rows after the second pass.

PyTorch's bicubic is not used: it clips to bytes between the passes, which costs up to 24 levels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from torchdali.kernels.convert import convert
from torchdali.kernels.resample_weights import Axis

__all__ = ["resample_bytes", "suits_bytes"]

_SMALLEST = 32  # output pixels; below, the borders of an axis may meet and speed matters little


class _Reach(NamedTuple):
    """What the output lines at a border see of the pixels beyond it.

    Lines and pixels are counted from the border: ``weights[i, j]`` is what line i sees of the
    pixel j beyond; ``kept[i, 0]`` is the rest, ``1 - sum_j weights[i, j]``.
    """

    lines: int
    pixels: int
    weights: Tensor
    kept: Tensor


def suits_bytes(x: Tensor, axes: Sequence[Axis]) -> bool:
    """Whether `resample_bytes` can: uint8 images on the CPU, whole-pixel regions, linear."""
    if x.dtype != torch.uint8 or not x.is_cpu or len(axes) != 2:
        return False
    if not 1 <= x.shape[-1] <= 4 or not x.numel():
        return False
    return all(axis.filter in ("linear", "triangular") and _is_plain(axis) for axis in axes)


def _is_plain(axis: Axis) -> bool:
    low, high = sorted((axis.low, axis.high))
    return axis.size >= _SMALLEST and 0 <= low < high <= axis.length and low % 1 == high % 1 == 0


def resample_bytes(x: Tensor, axes: Sequence[Axis], *, border: bool = True) -> Tensor:
    """Resize ``(..., H, W, C)`` uint8 for which `suits_bytes` holds; the type stays.

    Args:
        x: The whole image; only the region of interest is read, and what the filter sees around it.
        axes: Rows, then columns.
        border: Correct the border lines; without, they may be some levels off.
    """
    images = x.reshape(-1, *x.shape[-3:]).permute(0, 3, 1, 2)
    rows, columns = (_forward(axis) for axis in axes)
    out = (_corrected if border else _plain)(images, rows, columns)
    flips = [dim for dim, axis in zip((2, 3), axes, strict=True) if axis.high < axis.low]
    if flips:
        out = out.flip(flips)
    return out.permute(0, 2, 3, 1).reshape(*x.shape[:-3], rows.size, columns.size, x.shape[-1])


def _forward(axis: Axis) -> Axis:
    return axis._replace(low=axis.high, high=axis.low) if axis.high < axis.low else axis


def _plain(images: Tensor, rows: Axis, columns: Axis) -> Tensor:
    region = images[:, :, int(rows.low) : int(rows.high), int(columns.low) : int(columns.high)]
    return _interpolate(region, rows.size, columns.size, rows)


def _interpolate(region: Tensor, height: int, width: int, axis: Axis) -> Tensor:
    region = region.contiguous(memory_format=torch.channels_last)
    return interpolate(region, (height, width), mode="bilinear", antialias=axis.antialias)


def _corrected(images: Tensor, rows: Axis, columns: Axis) -> Tensor:
    above, beside = _reach(rows), _reach(columns)
    margin = above.pixels if above is not None else 0
    top, bottom = max(0, int(rows.low) - margin), min(rows.length, int(rows.high) + margin)
    strip = images[:, :, top:bottom]
    middle = strip[:, :, :, int(columns.low) : int(columns.high)]
    middle = _interpolate(middle, bottom - top, columns.size, columns)
    if beside is not None:
        _mix_border(middle, strip, 3, columns, beside)
    first = int(rows.low) - top
    region = middle[:, :, first : first + int(rows.high - rows.low)]
    out = _interpolate(region, rows.size, columns.size, rows)
    if above is not None:
        local = rows._replace(low=rows.low - top, high=rows.high - top, length=bottom - top)
        _mix_border(out, middle, 2, local, above)
    return out


def _mix_border(out: Tensor, source: Tensor, dim: int, axis: Axis, reach: _Reach) -> None:
    """Mix pixels of `source` beyond the region of `axis` into the border lines of `out`."""
    low, high, last = int(axis.low), int(axis.high), axis.length - 1
    if reach.lines == reach.pixels == 1:
        _mix_outermost(out, source, dim, max(low - 1, 0), min(high, last), float(reach.weights))
        return
    lines = [*range(reach.lines), *range(out.shape[dim] - 1, out.shape[dim] - 1 - reach.lines, -1)]
    beyond = [max(low - 1 - j, 0) for j in range(reach.pixels)]
    beyond += [min(high + j, last) for j in range(reach.pixels)]
    where = torch.tensor(lines, device=out.device)
    front = out.movedim(dim, 0)
    old = front.index_select(0, where)
    seen = source.movedim(dim, 0).index_select(0, torch.tensor(beyond, device=out.device))
    added = reach.weights.to(out.device) @ seen.view(2, reach.pixels, -1).float()
    kept = reach.kept.to(out.device) * old.view(2, reach.lines, -1)
    front.index_copy_(0, where, convert(added.add_(kept), out.dtype).view_as(old))


def _mix_outermost(
    out: Tensor, source: Tensor, dim: int, before: int, after: int, weight: float
) -> None:
    """Mix one line of `source` into the first, and one into the last line of `out`."""
    step, gap = out.shape[dim] - 1, max(after - before, 1)
    if dim == 2:
        edge, beyond = out[:, :, ::step], source[:, :, before : after + 1 : gap]
    else:
        edge, beyond = out[..., ::step], source[..., before : after + 1 : gap]
    # A convex mix of bytes: half added, truncation rounds it.
    edge.copy_(torch.lerp(edge.float(), beyond.float(), weight).add_(0.5))


@lru_cache(maxsize=256)
def _reach(axis: Axis) -> _Reach | None:
    """Weights beyond the borders of `axis`, or None where they change nothing."""
    scale = (axis.high - axis.low) / axis.size
    stretch = max(1.0, scale) if axis.antialias else 1.0
    lines = math.ceil((stretch - 0.5) / scale - 0.5)
    pixels = math.ceil(stretch - 0.5 - 0.5 * scale)
    whole = axis.low == 0 and axis.high == axis.length
    if lines < 1 or pixels < 1 or (whole and stretch == 1):
        return None  # of two pixels one is inside: to normalise and to repeat is the same
    outside = torch.tensor([_outside((i + 0.5) * scale, stretch, pixels) for i in range(lines)])
    total = outside.sum(1, keepdim=True)
    if whole:  # all pixels beyond are the edge pixel
        outside, pixels = total, 1
    return _Reach(lines, pixels, outside, 1 - total)


def _outside(position: float, stretch: float, pixels: int) -> list[float]:
    """Weights of the first `pixels` beyond the border, for a line at `position` from it."""
    last = math.ceil(position + stretch)
    values = [max(0.0, stretch - abs(k + 0.5 - position)) for k in range(-pixels, last)]
    total = sum(values)
    return [value / total for value in values[pixels - 1 :: -1]]
