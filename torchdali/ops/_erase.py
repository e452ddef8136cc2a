"""The operator `erase`, which fills rectangular regions."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import Arguments, Data, Layout, ListOrMatrix, Out, PerSample, per_sample
from torchdali.kernels.erasing import fill_spans
from torchdali.kernels.memory import copy_to_out, is_array
from torchdali.kernels.window import check_fill, fill_number, fill_tensor, to_float32
from torchdali.ops._arguments import Unset, as_list, axes_by_name, indices

__all__ = ["erase"]

_AXES = [1, 0]
_NAMES = Unset("HW")


@operator(marks=("levels", "pixels"))
def erase(
    data: Data,
    /,
    *,
    anchor: PerSample[ListOrMatrix] = [],  # noqa: B006  never changed
    axes: list[int] = _AXES,
    axis_names: str = _NAMES,
    centered_anchor: bool = False,
    fill_value: PerSample[list[float]] = [0.0],  # noqa: B006
    normalized: bool = False,
    normalized_anchor: bool = False,
    normalized_shape: bool = False,
    shape: PerSample[ListOrMatrix] = [],  # noqa: B006
    layout: Layout,
    out: Out = None,
) -> Data:
    """Fill rectangular regions of the data with a value.

    On each axis, a region consists of the elements from ``int(anchor)`` up to, but not including,
    ``int(anchor + shape)``. Regions are clipped to the data.

    Args:
        data: Data of any shape and dtype.
        anchor: Starts of the regions, one value per region and axis: all values of the first region, then all values of
            the second, and so on. Default: 0 for all regions.
        axes: Indices of the axes that ``anchor`` and ``shape`` refer to. On all other axes, regions extend over the
            whole data. Default: all axes of the layout except the channels.
        axis_names: Letters of the axes in the layout, instead of ``axes``.
        centered_anchor: True if ``anchor`` is the center of each region, instead of the start.
        fill_value: Value that regions are filled with: one number, or one number per channel. The numbers are converted
            to the data's dtype as in C: truncated and wrapped. Default: 0.
        normalized: True if ``anchor`` and ``shape`` are relative to the data's extents.
        normalized_anchor: True if ``anchor`` is relative to the data's extents.
        normalized_shape: True if ``shape`` is relative to the data's extents.
        shape: Extents of the regions, one value per region and axis, in the same order as ``anchor``.

    Raises:
        RuntimeError: the axes are not found, data without a layout is passed without ``axes``, ``anchor`` and ``shape``
            have different numbers of values, or ``normalized`` is combined with ``normalized_anchor`` or
            ``normalized_shape``.
    """
    relative = _relative(
        centered_anchor=centered_anchor, normalized=normalized, normalized_anchor=normalized_anchor,
        normalized_shape=normalized_shape,
    )  # fmt: skip
    axis_indices = _axes(axes, axis_names, layout, data.ndim)
    fill, channel = as_list(fill_value), layout.find("C")
    check_fill(fill, data.shape, channel)
    lengths = tuple([data.shape[axis] for axis in axis_indices])
    starts, sizes = _flatten(anchor), _flatten(shape)
    filled = copy_to_out(data, out)
    filled = data.clone() if filled is data else filled
    value = _value(fill, data, channel)
    for region in _regions(starts, sizes, axis_indices, lengths, relative, data.ndim):
        if isinstance(value, Tensor):
            filled[region] = value[region]
        else:
            filled[region].fill_(value)
    return filled


def _flatten(value: Any) -> tuple[float, ...]:
    """Flatten an argument to one tuple of numbers. Arguments with a value per sample may have one row per region."""
    return tuple(number for row in as_list(value) for number in as_list(row))


@chunk(erase, per_sample=("anchor", "shape", "fill_value"))
def _erase_batch(data: Tensor, a: Arguments) -> Any:
    if data.is_cpu and not is_array(data):
        return NotImplemented
    count, extents, channel = len(data), data.shape[1:], a.layout.find("C")
    axis_indices = _axes(a.axes, a.axis_names, a.layout, len(extents))
    lengths, relative = tuple([extents[axis] for axis in axis_indices]), _relative(**a.of(_relative))
    columns = [per_sample(value, count) for value in (a.anchor, a.shape, a.fill_value)]
    fills = [tuple(as_list(fill)) for fill in columns[2]]
    for fill in set(fills):
        check_fill(fill, extents, channel)
    sample_regions = (
        list(_regions(_flatten(start), _flatten(size), axis_indices, lengths, relative, len(extents)))
        for start, size in zip(columns[0], columns[1], strict=True)
    )
    if data.is_cpu:
        return _fill_arrays(data, sample_regions, fills, channel, a.out)
    return fill_spans(data, sample_regions, fills, channel)


def _fill_arrays(
    data: Tensor, sample_regions: Iterable[list[tuple[slice, ...]]], fills: Sequence[tuple[float, ...]], channel: int,
    out: Tensor | None,
) -> Tensor:  # fmt: skip
    """Fill regions of samples on the CPU, with NumPy.

    Args:
        data: ``(N, ...)``.
        sample_regions: Regions of each sample, as slices.
        fills: Fill value of each sample: one number, or one per channel.
        channel: Axis of the channels in a sample; -1 for no channel axis.
        out: Tensor that the result may be written to.
    """
    filled = copy_to_out(data, out)
    filled = filled.clone() if filled is data else filled
    values: dict[tuple[float, ...], Any] = {}
    for result, regions, fill in zip(filled.numpy(), sample_regions, fills, strict=True):
        if fill not in values:
            value = _value(fill, data[0], channel)
            values[fill] = value.numpy() if isinstance(value, Tensor) else value
        value = values[fill]
        for region in regions:
            result[region] = value[region] if isinstance(value, np.ndarray) else value
    return filled


def _relative(
    *,
    centered_anchor: bool = False,
    normalized: bool = False,
    normalized_anchor: bool = False,
    normalized_shape: bool = False,
) -> tuple[bool, bool, bool]:
    """Return three bools: whether anchors are relative, whether shapes are relative, whether anchors are centers."""
    if normalized and (normalized_anchor or normalized_shape):
        raise RuntimeError("normalized cannot be combined with normalized_anchor and normalized_shape")
    return normalized or normalized_anchor, normalized or normalized_shape, centered_anchor


def _value(fill: Sequence[float], data: Tensor, channel: int) -> Any:
    """Return the value that regions are filled with: a number, or a tensor in the data's shape."""
    if len(fill) > 1:
        return _channel_fill(fill, data, channel)
    return fill_number(fill[0] if fill else 0.0, data.dtype)


def _regions(
    anchor: tuple[float, ...], shape: tuple[float, ...], axes: Sequence[int], lengths: tuple[int, ...],
    relative: tuple[bool, bool, bool], ndim: int,
) -> Iterator[tuple[slice, ...]]:  # fmt: skip
    spans = _spans(anchor, shape, lengths, *relative)
    for first in range(0, len(spans), len(axes)):
        region = [slice(None)] * ndim
        for axis, span in zip(axes, spans[first:], strict=False):
            region[axis] = span
        yield tuple(region)


def _axes(axes: list[int], names: str, layout: str, ndim: int) -> list[int]:
    if names is not _NAMES:
        return axes_by_name(names, layout, ndim)
    if axes is not _AXES:
        return indices(axes, ndim)
    if not layout:
        raise RuntimeError("erase needs axes, or data with a layout")
    return [axis for axis, name in enumerate(layout) if name != "C"]


@functools.lru_cache(maxsize=64)
def _spans(
    anchor: tuple[float, ...], shape: tuple[float, ...], lengths: tuple[int, ...],
    relative_anchor: bool, relative_shape: bool, centred: bool,
) -> list[slice]:  # fmt: skip
    """Return one slice per region and axis. The slices are computed in float32, as in DALI.

    Args:
        anchor, shape: Values of the arguments, flattened.
        lengths: Extents of the data on the regions' axes.
        relative_anchor, relative_shape: True if the values of `anchor` or `shape` are relative to the data's extents.
        centred: True if the anchors are the centers of the regions.
    """
    anchor = anchor or (0.0,) * len(shape)
    if len(anchor) != len(shape) or len(shape) % len(lengths):
        raise RuntimeError(
            f"erase: anchor and shape must have one value per axis and region, got {len(anchor)} and "
            f"{len(shape)} values for {len(lengths)} axes"
        )
    spans = []
    for i, (start, extent) in enumerate(zip(anchor, shape, strict=True)):
        start, extent = to_float32(start), to_float32(extent)
        length = lengths[i % len(lengths)]
        if relative_anchor:
            start = to_float32(start * length)
        if relative_shape:
            extent = to_float32(extent * length)
        if centred:
            start = to_float32(start - extent / 2)
        spans.append(slice(max(int(start), 0), max(int(to_float32(start + extent)), 0)))
    return spans


def _channel_fill(fill: Sequence[float], data: Tensor, channel: int) -> Tensor:
    """Return a tensor of the data's shape that contains one fill value per channel.

    The tensor is broadcast from a small tensor. The last axis isn't broadcast, because a copy from a broadcast last
    axis is slow.
    """
    full_axes = {channel, data.ndim - 1, channel - 1 if channel == data.ndim - 1 else channel}
    shape = [n if axis in full_axes else 1 for axis, n in enumerate(data.shape)]
    return fill_tensor(shape, fill, data.dtype, channel, data.device).expand(data.shape)
