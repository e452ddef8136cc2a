"""Resize images and volumes axis by axis, with any filter and any region of the input."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from torchdali.kernels.convert import convert, to_bytes
from torchdali.kernels.exactness import exactness
from torchdali.kernels.memory import is_plain, narrow
from torchdali.kernels.resample.bytes import (
    ByteLines,
    byte_lines,
    resample_bytes,
    supports_axis,
    supports_bytes,
)
from torchdali.kernels.resample.exact import resample_natively, round_exactly, sum_exactly
from torchdali.kernels.resample.weights import (
    FILTERS,
    OVERSHOOT,
    Axis,
    bags,
    nearest,
    passes,
    resize_axes,
    taps,
)

__all__ = ["FILTERS", "count_lines_read", "resample", "resize"]

Finish = Callable[[Tensor], Tensor]


def resize(
    x: Tensor,
    size: Sequence[int],
    *,
    roi: Sequence[tuple[float, float]] | None = None,
    min_filter: str = "linear",
    mag_filter: str = "linear",
    antialias: bool = True,
    dtype: torch.dtype | None = None,
    patch_border: bool = True,
    windows: Sequence[tuple[int, int]] | None = None,
) -> Tensor:
    """Resize the spatial axes of a channel-last tensor.

    Args:
        x: ``(..., *spatial, C)``, with one spatial axis per item of `size`; any real dtype.
        size: Extent of every spatial axis of the output.
        roi: Region of the input to resize: ``(low, high)`` for every spatial axis, in pixels, with pixel edges at
            integers. ``high < low`` flips the axis. None for the whole image.
        min_filter: Filter of axes that shrink: one of `FILTERS`.
        mag_filter: Filter of all other axes.
        antialias: True to widen the filter along axes that shrink.
        dtype: Dtype of the output, to which values are rounded and saturated; None for the input's dtype.
        patch_border: True to also correct the outermost rows and columns of linearly resized uint8 images. With the
            correction, the resize takes a third more time. Uncorrected pixels differ from DALI's by up to tens of
            levels.
        windows: Part of the output to compute: ``(start, extent)`` for every spatial axis. None for the whole output.
            The pixels are the same as in the whole output.

    Returns:
        A tensor ``(..., *size, C)``, which is contiguous if `windows` is None; `x` itself if nothing changes. An axis
        of extent 0 keeps this extent.

    Raises:
        ValueError: a filter is unknown, or the numbers of sizes, regions and axes differ.
    """
    lengths = x.shape[x.dim() - 1 - len(size) : -1]
    region = None if roi is None else tuple(roi)
    axes = resize_axes(tuple(lengths), tuple(size), region, min_filter, mag_filter, antialias)
    return resample(x, axes, dtype or x.dtype, patch_border=patch_border, windows=windows)


def resample(
    x: Tensor,
    axes: Sequence[Axis],
    dtype: torch.dtype,
    *,
    patch_border: bool = True,
    windows: Sequence[tuple[int, int]] | None = None,
) -> Tensor:
    """Resize the spatial axes of ``(..., *spatial, C)`` as described by `axes`; see `resize`.

    Sums are computed in float32 and rounded after the last axis. Only `resample_bytes` rounds after each axis. In a
    pipeline with the option ``exact=True``, all results on the CPU are bit-identical to DALI's. If `windows` are
    passed, `x` may lack the last rows and columns if no window reads them; see `count_lines_read`.
    """
    first = x.dim() - 1 - len(axes)
    if 0 in (*x.shape, *(axis.size for axis in axes)):
        sizes = [axis.size if axis.length else 0 for axis in axes]
        return x.new_zeros((*x.shape[:first], *sizes, x.shape[-1]), dtype=dtype)
    exact = exactness.on and is_plain(x)
    if exact and dtype == torch.uint8 and len(axes) == 2:
        result = resample_natively(x, axes, windows)
        if result is not None:
            return result
    return _resize_by_axis(x, axes, dtype, patch_border, windows, exact)


def _resize_by_axis(
    x: Tensor,
    axes: Sequence[Axis],
    dtype: torch.dtype,
    patch_border: bool,
    windows: Sequence[tuple[int, int]] | None,
    exact: bool,
) -> Tensor:
    """Resize axis by axis.

    Axes with the nearest-neighbor filter are first, axes that `resample_bytes` supports are second, and axes that need
    weighted sums are last.
    """
    first, source = x.dim() - 1 - len(axes), x.dtype
    as_bytes = dtype == torch.uint8 and len(axes) == 2
    parts: Sequence[tuple[int, int] | None] = windows or [None] * len(axes)
    lines: dict[int, ByteLines] = {}
    sums: dict[int, bool] = {}
    input_ranges: dict[int, tuple[int, int]] = {}
    for i, axis in enumerate(axes):
        if axis.is_identity or axis.filter == "nn":
            continue
        if as_bytes and supports_bytes(x, axis):
            part = parts[i]
            t = lines[i] = byte_lines(axis, patch_border, None if part is None else sum(part))
            input_ranges[first + i] = t.start, t.extent
        else:
            sums[i] = i == passes(tuple(axes))[0]
            table = taps(axis, sums[i], x.device, parts[i])
            input_ranges[first + i] = table.start, table.extent
    x = _narrow_axes(x, input_ranges)
    for i, axis in enumerate(axes):
        if axis.filter == "nn" and not axis.is_identity:
            index = nearest(axis, i == len(axes) - 1, i == passes(tuple(axes))[0], x.device)
            x = _select(x, first + i, index)
    if lines:
        x = resample_bytes(x, lines)
    if windows:
        x = _narrow_axes(x, {first + i: part for i, part in enumerate(windows) if i not in sums})
    if exact and sums:
        pass_order = passes(tuple(axes))
        for i in (i for i in pass_order if i in sums):
            x = sum_exactly(x, first + i, axes[i], sums[i], parts[i])
        is_float = dtype.is_floating_point or not x.is_floating_point()
        result = convert(x, dtype) if is_float else round_exactly(x, axes, pass_order[-1], windows, dtype)
        return result.contiguous() if windows is None else result
    order = sorted(sums, key=lambda i: _sort_key(i, axes[i]))
    overshoots = source != torch.uint8 or any(axes[i].filter in OVERSHOOT for i in order)
    for i in order:
        last = as_bytes and i == order[-1]
        finish = functools.partial(to_bytes, saturate=overshoots) if last else _identity
        x = _weighted_sum(x, first + i, axes[i], sums[i], parts[i], finish)
    out = convert(x, dtype)
    return out.contiguous() if windows is None else out


def count_lines_read(axis: Axis, window: tuple[int, int], patch_border: bool) -> int:
    """Return the number of rows or columns of a uint8 image that `resample` needs to compute a window.

    Args:
        axis: The resized axis.
        window: Start and extent of the window, in the output.
        patch_border: See `resize`.
    """
    if axis.is_identity:
        return sum(window)
    if axis.filter == "nn":
        return axis.length
    if supports_axis(axis):
        lines = byte_lines(axis, patch_border, sum(window))
        return lines.start + lines.extent
    tables = [taps(axis, first_pass, torch.device("cpu"), window) for first_pass in (True, False)]
    return max(each.start + each.extent for each in tables)


def _identity(sums: Tensor) -> Tensor:
    return sums


def _narrow_axes(x: Tensor, parts: dict[int, tuple[int, int]]) -> Tensor:
    """Return a view of a part of a tensor. `parts` maps an axis to the start and the extent of the part."""
    parts = {axis: part for axis, part in parts.items() if part[1] != x.shape[axis]}
    return narrow(x, parts) if parts else x


def _sort_key(i: int, axis: Axis) -> tuple[bool, int]:
    """Return the sort key of axis i for the order of resizing: axes that shrink come before axes that grow.

    Among axes that grow, the last axis is first, because resizing this axis transposes the image. A transpose takes
    less time while the image is small.
    """
    grows = axis.growth > 1
    return grows, -i if grows else i


def _select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """Compute `torch.index_select`."""
    if x.dtype == torch.uint16:  # not all PyTorch versions can select from uint16 tensors
        return _select(x.view(torch.int16), dim, index).view(torch.uint16)
    channels = x.shape[-1]
    if dim < x.dim() - 2 or channels > 4:
        return x.index_select(dim, index)
    # Gathering single elements is faster than selecting tiny slices.
    rows = x.reshape(-1, x.shape[dim] * channels)
    flat = index[:, None] * channels + torch.arange(channels, device=x.device)
    elements = rows.gather(1, flat.view(1, -1).expand(len(rows), -1))
    return elements.view(*x.shape[:dim], len(index), channels)


def _weighted_sum(
    x: Tensor,
    dim: int,
    axis: Axis,
    first_pass: bool,
    window: tuple[int, int] | None,
    finish: Finish,
) -> Tensor:
    """Compute the weighted sums of an axis along `dim`, in float32; the result may be a permuted view.

    The axis is first moved to the front, so that whole rows are added. Columns are moved channel by channel, which is
    the fastest way to transpose an image. `finish` is applied to the contiguous sums.
    """
    by_channel = 0 < dim == x.dim() - 2
    front = x.movedim((-1, dim), (0, 1)) if by_channel else x.movedim(dim, 0)[None]
    planes, length = front.shape[:2]
    pixels, starts, weights = bags(axis, first_pass, x.device, window, planes)
    rows = front.reshape(planes * length, -1)  # copied before the conversion to float32, which needs more memory
    out = torch.embedding_bag(rows.to(torch.float32), pixels, starts, False, 0, False, weights)[0]  # mode 0: sums
    out = finish(out)
    out = out.view(planes, -1, *front.shape[2:])
    return out.movedim((0, 1), (-1, dim)) if by_channel else out[0].movedim(0, dim)
