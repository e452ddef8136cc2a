"""Resize for pipelines with the option ``exact=True``, with results that are bit-identical to DALI's.

DALI adds the products of pixels and weights sequentially in float32, resizes the axes in the order of `weights.passes`,
and rounds after the last axis. Where DALI uses vector instructions, DALI rounds halves to even numbers; elsewhere, DALI
rounds halves up. DALI uses vector instructions

* along rows, for blocks of 16 pixels, counted from the first pixel whose whole filter is inside the image;
* along columns, for vectors of 16 bytes, counted from the start of a row;
* nowhere, if the axis that is resized last has the nearest-neighbor filter.

For uint8 images of three channels, the native library (`kernels.native`) computes the same results several times
faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.convert import integer_limits
from torchdali.kernels.native import FILTERS, AxisRegion, Filters, ImageOptions, accepts_pixels, run
from torchdali.kernels.resample.weights import Axis, interior_range, taps

__all__ = ["resample_natively", "round_exactly", "sum_exactly"]

_BLOCK = 16  # pixels in a block
_VECTOR = 16  # bytes in a vector
_CPU = torch.device("cpu")


def resample_natively(x: Tensor, axes: Sequence[Axis], windows: Sequence[tuple[int, int]] | None) -> Tensor | None:
    """Resize a uint8 image ``(H, W, 3)`` with the native library; None if the library is missing or can't do this."""
    options = _options(tuple(axes)) if accepts_pixels(x) else None
    if options is None:
        return None
    ranges = windows or [(0, axis.size) for axis in axes]
    rows, columns = [
        AxisRegion(axis.low, axis.high, axis.size, *part, 0, axis.length)
        for axis, part in zip(axes, ranges, strict=True)
    ]
    return run(options, x, rows, columns, False)


@lru_cache(maxsize=256)
def _options(axes: tuple[Axis, ...]) -> ImageOptions | None:
    if any(axis.filter not in FILTERS for axis in axes):
        return None
    shrinking = [axis.filter for axis in axes if abs(axis.high - axis.low) > axis.size]
    growing = [axis.filter for axis in axes if abs(axis.high - axis.low) <= axis.size]
    filters = Filters((shrinking or growing)[0], (growing or shrinking)[0], axes[0].antialias)
    return ImageOptions(filters=filters)


def sum_exactly(x: Tensor, dim: int, axis: Axis, first_pass: bool, window: tuple[int, int] | None) -> Tensor:
    """Compute the weighted sums of an axis (see `taps`) with DALI's order of additions.

    Args:
        dim: Dimension of the axis in `x`.
        axis, first_pass, window: See `taps`.

    Returns:
        A float32 tensor, which may be a permuted view.
    """
    table = taps(axis, first_pass, _CPU, window)
    pixels, weights = table.pixels.numpy(), table.weights.numpy()
    front = np.ascontiguousarray(np.moveaxis(x.numpy(), dim, 0))
    rows = front.reshape(len(front), -1)
    sums = np.zeros((len(pixels), rows.shape[1]), np.float32)
    product, values = np.empty_like(sums), np.empty(sums.shape, rows.dtype)
    for pixel, weight in zip(pixels.T, weights.T, strict=True):
        np.take(rows, pixel, 0, values, "clip")
        np.multiply(values, weight[:, None], out=product)
        sums += product  # a separate step, because a fused multiply-add would round differently
    return torch.from_numpy(np.moveaxis(sums.reshape(-1, *front.shape[1:]), 0, dim))


def round_exactly(
    x: Tensor, axes: Sequence[Axis], last: int, windows: Sequence[Any] | None, dtype: torch.dtype
) -> Tensor:
    """Round sums to an integer dtype, and saturate them.

    Args:
        x: Sums ``(..., *spatial, C)`` of the pixels in the windows.
        axes: The resized axes.
        last: Index of the axis that was resized last.
        windows: See `separable.resize`.
        dtype: Dtype of the result.
    """
    sums = x.numpy()
    rounded = np.rint(sums)
    rounds_up = _half_up_mask(tuple(axes), last, x.shape[-1], dtype.itemsize)
    if windows is not None and windows[-1] is not None:
        start, extent = windows[-1]
        rounds_up = rounds_up[start : start + extent]
    columns = np.flatnonzero(rounds_up.any(1))
    if len(columns):
        ends = sums[..., columns, :]
        rounded_away = np.copysign(np.floor(np.abs(ends) + np.float32(0.5)), ends)
        rounded[..., columns, :] = np.where(rounds_up[columns], rounded_away, rounded[..., columns, :])
    low, high = integer_limits(dtype)
    np.clip(rounded, low, high, out=rounded)
    return torch.from_numpy(rounded).to(torch.int32).to(dtype)


@lru_cache(maxsize=256)
def _half_up_mask(axes: tuple[Axis, ...], last: int, channels: int, itemsize: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the values in a row ``(W, C)`` whose halves are rounded up."""
    width = axes[-1].size
    rounds_up = np.ones((width, channels), np.bool_)
    if axes[last].filter == "nn":
        return rounds_up
    if last == len(axes) - 1:
        start, end = interior_range(axes[-1])
        rounds_up[start : start + (end - start) // _BLOCK * _BLOCK] = False
    else:
        lanes = _VECTOR // itemsize
        rounds_up.reshape(-1)[: width * channels // lanes * lanes] = False
    return rounds_up
