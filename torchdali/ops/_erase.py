"""Erase rectangular regions."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import Arguments, Data, Layout, Out, PerSample, per_sample
from torchdali.kernels.device.erase import erase_batch
from torchdali.kernels.memory import is_array, placed
from torchdali.kernels.window import check_fill, fill_number, filled, single
from torchdali.ops._arguments import Unset, indices, listed, named
from torchdali.ops._on_device import batch_of, images_of
from torchdali.tensors import TensorList

__all__ = ["erase"]

_AXES = [1, 0]
_NAMES = Unset("HW")


@operator
def erase(
    data: Data,
    /,
    *,
    anchor: PerSample[list[float]] = [],  # noqa: B006  never changed
    axes: list[int] = _AXES,
    axis_names: str = _NAMES,
    centered_anchor: bool = False,
    fill_value: PerSample[list[float]] = [0.0],  # noqa: B006
    normalized: bool = False,
    normalized_anchor: bool = False,
    normalized_shape: bool = False,
    shape: PerSample[list[float]] = [],  # noqa: B006
    layout: Layout,
    out: Out = None,
) -> Data:
    """Fill rectangular regions.

    On each axis, elements ``int(anchor)`` to ``int(anchor + shape)``, exclusive; regions are clipped to the data.

    Args:
        data: Any shape and type.
        anchor: Where the regions start: one value an axis and region, region after region; 0 when empty.
        axes: That anchor and shape tell about; the regions span the other axes. All but the channels by default.
        axis_names: The same by names of the layout; it has precedence.
        centered_anchor: The anchors are the middles of the regions.
        fill_value: One value, or one a channel (converted as C does: truncated, and wrapped).
        normalized: Anchor and shape are relative to the extents of the data.
        normalized_anchor: The anchor is.
        normalized_shape: The shape is.
        shape: Of the regions, in the order of ``anchor``.

    Raises:
        RuntimeError: no layout to find ``axis_names`` in, axes that do not exist, or a wrong number of values.
    """
    how = _relative(
        centered_anchor=centered_anchor, normalized=normalized, normalized_anchor=normalized_anchor,
        normalized_shape=normalized_shape,
    )  # fmt: skip
    which = _axes(axes, axis_names, layout, data.ndim)
    fill, channel = listed(fill_value), layout.find("C")
    check_fill(fill, data.shape, channel)
    lengths = tuple([data.shape[axis] for axis in which])
    starts, sizes = _flat(anchor), _flat(shape)
    made = placed(data, out)
    made = data.clone() if made is data else made
    value = _value(fill, data, channel)
    for place in _regions(starts, sizes, which, lengths, how, data.ndim):
        if isinstance(value, Tensor):
            made[place] = value[place]
        else:
            made[place].fill_(value)
    return made


def _flat(value: Any) -> tuple[float, ...]:
    """Return the numbers of an argument; one given per sample may have a row for each region."""
    return tuple(number for row in listed(value) for number in listed(row))


@chunk(erase)
def _erase_batch(data: Tensor, a: Arguments) -> Any:
    if not is_array(data):
        return NotImplemented
    count, extents, channel = len(data), data.shape[1:], a.layout.find("C")
    which = _axes(a.axes, a.axis_names, a.layout, len(extents))
    lengths, relative = tuple([extents[axis] for axis in which]), _relative(**a.of(_relative))
    made = placed(data, a.out)
    made = made.clone() if made is data else made
    values: dict[tuple[float, ...], Any] = {}
    for result, start, size, fill in zip(
        made.numpy(), *[per_sample(v, count) for v in (a["anchor"], a["shape"], a["fill_value"])], strict=True
    ):
        filling = tuple(listed(fill))
        if filling not in values:
            check_fill(filling, extents, channel)
            value = _value(filling, data[0], channel)
            values[filling] = value.numpy() if isinstance(value, Tensor) else value
        for place in _regions(_flat(start), _flat(size), which, lengths, relative, len(extents)):
            value = values[filling]
            result[place] = value[place] if isinstance(value, np.ndarray) else value
    return made


@chunk(erase, "device")
def _erase_on_device(data: TensorList, a: Arguments) -> Any:
    images, which = images_of(data, a.layout), _axes(a.axes, a.axis_names, a.layout, 3)
    if images is None or not set(which) <= {0, 1}:
        return NotImplemented
    count, channels, relative = len(data), images.channels, _relative(**a.of(_relative))
    given = [per_sample(each, count) for each in (a["anchor"], a["shape"], a["fill_value"])]
    regions, fills = [], []
    for sides, start, size, fill in zip(images.sides.T.tolist(), *given, strict=True):
        check_fill(listed(fill), (*sides, channels), 2)
        values = [int(fill_number(value, torch.uint8)) for value in listed(fill) or [0.0]]
        fills.append(values * channels if len(values) == 1 else values)
        lengths = tuple([sides[axis] for axis in which])
        places = _regions(_flat(start), _flat(size), which, lengths, relative, 2)
        # Of a slice of all of an axis, `indices` knows the end.
        spans = [[part.indices(side) for part, side in zip(place, sides, strict=True)] for place in places]
        regions.append([(top, left, bottom, right) for (top, bottom, _), (left, right, _) in spans])
    flat = erase_batch(images.flat, images.offsets, images.sides, channels, regions, fills)
    return batch_of(flat, images.sides, channels)


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
    """Return what regions are filled with: a number, or a tensor in the shape of the data."""
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
        return named(names, layout, ndim)
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
    """Return the fill values of channels in the shape of the data, without the memory of it.

    What moves fastest in memory is dense: copying broadcast channels would be slow.
    """
    kept = {channel, data.ndim - 1, channel - 1 if channel == data.ndim - 1 else channel}
    shape = [n if axis in kept else 1 for axis, n in enumerate(data.shape)]
    return filled(shape, fill, data.dtype, channel, data.device).expand(data.shape)
