"""Erase rectangular regions."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import Arguments, Data, Layout, ListOrMatrix, Out, PerSample, per_sample
from torchdali.kernels.erasing import fill_spans
from torchdali.kernels.memory import is_array, place_result
from torchdali.kernels.window import check_fill, fill_number, fill_tensor, single
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
    """Fill rectangular regions.

    On each axis, elements ``int(anchor)`` to ``int(anchor + shape)``, exclusive; regions are clipped to the data.

    Args:
        data: Any shape and type.
        anchor: Where the regions start: for each region one value per axis; 0 when empty.
        axes: The axes to which anchor and shape refer; the regions span the other axes. All but the channels by
            default.
        axis_names: Axes by their letters in the layout; takes precedence over ``axes``.
        centered_anchor: The anchors are the middles of the regions.
        fill_value: Fill value, one or one per channel (converted as in C: truncated, and wrapped).
        normalized: Anchor and shape are relative to the extents of the data.
        normalized_anchor: The anchor is.
        normalized_shape: The shape is.
        shape: Shape of the regions, in the order of ``anchor``.

    Raises:
        RuntimeError: no layout to find ``axis_names`` in, axes that do not exist, or a wrong number of values.
    """
    how = _relative(
        centered_anchor=centered_anchor, normalized=normalized, normalized_anchor=normalized_anchor,
        normalized_shape=normalized_shape,
    )  # fmt: skip
    which = _axes(axes, axis_names, layout, data.ndim)
    fill, channel = as_list(fill_value), layout.find("C")
    check_fill(fill, data.shape, channel)
    lengths = tuple([data.shape[axis] for axis in which])
    starts, sizes = _flat(anchor), _flat(shape)
    filled = place_result(data, out)
    filled = data.clone() if filled is data else filled
    value = _value(fill, data, channel)
    for place in _regions(starts, sizes, which, lengths, how, data.ndim):
        if isinstance(value, Tensor):
            filled[place] = value[place]
        else:
            filled[place].fill_(value)
    return filled


def _flat(value: Any) -> tuple[float, ...]:
    """Return the numbers of an argument; one given per sample may have a row for each region."""
    return tuple(number for row in as_list(value) for number in as_list(row))


@chunk(erase, takes=("anchor", "shape", "fill_value"))
def _erase_batch(data: Tensor, a: Arguments) -> Any:
    if data.is_cpu and not is_array(data):
        return NotImplemented
    count, extents, channel = len(data), data.shape[1:], a.layout.find("C")
    which = _axes(a.axes, a.axis_names, a.layout, len(extents))
    lengths, relative = tuple([extents[axis] for axis in which]), _relative(**a.of(_relative))
    columns = [per_sample(value, count) for value in (a.anchor, a.shape, a.fill_value)]
    fills = [tuple(as_list(fill)) for fill in columns[2]]
    for fill in set(fills):
        check_fill(fill, extents, channel)
    places = (
        list(_regions(_flat(start), _flat(size), which, lengths, relative, len(extents)))
        for start, size in zip(columns[0], columns[1], strict=True)
    )
    if data.is_cpu:
        return _filled_arrays(data, places, fills, channel, a.out)
    return fill_spans(data, places, fills, channel)


def _filled_arrays(
    data: Tensor, places: Iterable[list[tuple[slice, ...]]], fills: Sequence[tuple[float, ...]], channel: int,
    out: Tensor | None,
) -> Tensor:  # fmt: skip
    """Fill regions of samples on the CPU, by NumPy."""
    filled = place_result(data, out)
    filled = filled.clone() if filled is data else filled
    values: dict[tuple[float, ...], Any] = {}
    for result, regions, fill in zip(filled.numpy(), places, fills, strict=True):
        if fill not in values:
            value = _value(fill, data[0], channel)
            values[fill] = value.numpy() if isinstance(value, Tensor) else value
        value = values[fill]
        for place in regions:
            result[place] = value[place] if isinstance(value, np.ndarray) else value
    return filled


def _relative(
    *,
    centered_anchor: bool = False,
    normalized: bool = False,
    normalized_anchor: bool = False,
    normalized_shape: bool = False,
) -> tuple[bool, bool, bool]:
    """Return whether anchors and shapes are relative, and whether anchors are middles."""
    if normalized and (normalized_anchor or normalized_shape):
        raise RuntimeError("normalized excludes normalized_anchor and normalized_shape")
    return normalized or normalized_anchor, normalized or normalized_shape, centered_anchor


def _value(fill: Sequence[float], data: Tensor, channel: int) -> Any:
    """Return the fill of regions: a number, or a tensor in the shape of the data."""
    if len(fill) > 1:
        return _content(fill, data, channel)
    return fill_number(fill[0] if fill else 0.0, data.dtype)


def _regions(
    anchor: tuple[float, ...], shape: tuple[float, ...], axes: Sequence[int], lengths: tuple[int, ...],
    how: tuple[bool, bool, bool], ndim: int,
) -> Iterator[tuple[slice, ...]]:  # fmt: skip
    spans = _spans(anchor, shape, lengths, *how)
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
    """Return the part of each axis that is erased, region after region; in float32, as DALI calculates."""
    anchor = anchor or (0.0,) * len(shape)
    if len(anchor) != len(shape) or len(shape) % len(lengths):
        raise RuntimeError(f"{len(anchor)} anchors and {len(shape)} extents for {len(lengths)} axes")
    spans = []
    for i, (start, extent) in enumerate(zip(anchor, shape, strict=True)):
        start, extent = single(start), single(extent)
        length = lengths[i % len(lengths)]
        if relative_anchor:
            start = single(start * length)
        if relative_shape:
            extent = single(extent * length)
        if centred:
            start = single(start - extent / 2)
        spans.append(slice(max(int(start), 0), max(int(single(start + extent)), 0)))
    return spans


def _content(fill: Sequence[float], data: Tensor, channel: int) -> Tensor:
    """Return the fill values of channels, broadcast to the shape of the data without using more memory.

    The fastest axis in memory is dense: copying broadcast channels would be slow.
    """
    kept = {channel, data.ndim - 1, channel - 1 if channel == data.ndim - 1 else channel}
    shape = [n if axis in kept else 1 for axis, n in enumerate(data.shape)]
    return fill_tensor(shape, fill, data.dtype, channel, data.device).expand(data.shape)
