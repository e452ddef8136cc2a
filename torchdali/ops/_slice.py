"""Parts along named axes: slice, pad and erase."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.errors import batch_level
from torchdali.kernels.device.compose import compose_batch
from torchdali.kernels.device.erase import erase_batch
from torchdali.kernels.limits import check_pixels
from torchdali.kernels.memory import copied, inside, is_array, placed
from torchdali.kernels.window import (
    check_fill,
    cut,
    fill_number,
    filled,
    out_of_bounds,
    round_half_away_number,
    single,
)
from torchdali.operator import batched, on_device, operator
from torchdali.ops._arguments import Unset, indices, listed, matched, named
from torchdali.ops._arrays import arrays_of
from torchdali.ops._on_device import batch_of, cut_out, elements_of, images_of, in_turn, spans_of
from torchdali.schema import (
    BatchOutput,
    Column,
    Data,
    DType,
    Layout,
    Out,
    PerSample,
    Takes,
    each_of,
    per_sample,
    shares,
)
from torchdali.tensors import TensorList

__all__ = ["erase", "pad", "slice_", "slice_window"]

_AXES = [1, 0]
_SLICED, _ERASED = Unset("WH"), Unset("HW")
_NONE: list[float] = []
_ASSUMED = {2: "HW", 3: "HWC", 4: "DHWC"}
"""Layouts that slice assumes for data without one."""

Batch = Annotated[TensorList, Takes()]


# ---------------------------------------------------------------- slice


def slice_window(
    extents: Sequence[int],
    layout: str,
    anchor: Tensor | None = None,
    extent: Tensor | None = None,
    *,
    axes: PerSample[list[int]] = _AXES,
    axis_names: str = _SLICED,
    end: PerSample[list[int]] | None = None,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    rel_end: PerSample[list[float]] | None = None,
    rel_shape: PerSample[list[float]] | None = None,
    rel_start: PerSample[list[float]] | None = None,
    shape: PerSample[list[int]] | None = None,
    start: PerSample[list[int]] | None = None,
) -> tuple[list[int], list[int], list[int]]:
    """Return axes, starts and extents of the part that the arguments of the slice family describe.

    ``round(start) : round(end)`` of each axis, halves rounded away from zero, ``end = start + shape``.

    Args:
        extents: Of the data.
        layout: Of the data.
        anchor: Where the part starts, one value an axis.
        extent: Its shape, of the type of ``anchor``.
        axes: To cut. The other axes stay whole.
        axis_names: The same by names of the layout; the default stands for ``axes=[1, 0]`` of an image.
            Data without a layout are taken for HW, HWC or DHWC.
        end: In elements, exclusive.
        normalized_anchor: A float ``anchor`` is relative to the extent of the axis.
        normalized_shape: A float ``extent`` is relative to the extent of the axis.
        rel_end: Relative to the extent of the axis.
        rel_shape: Likewise.
        rel_start: Likewise.
        shape: In elements.
        start: In elements; 0 when neither ``start`` nor ``rel_start`` is given.

    Raises:
        RuntimeError: the part ends before it starts, axes that do not exist, or arguments that exclude each
            other.
    """
    if axes is _AXES:
        which = named(axis_names, layout, len(extents))
    elif axis_names is not _SLICED:
        raise RuntimeError("axes and axis_names exclude each other")
    else:
        which = indices(listed(axes), len(extents))
    lengths = [extents[axis] for axis in which]
    arguments = {"start": start, "rel_start": rel_start, "end": end, "rel_end": rel_end, "shape": shape,
             "rel_shape": rel_shape}  # fmt: skip
    given = {name: matched(name, v, len(which)) for name, v in arguments.items() if v is not None}
    if anchor is not None:
        names = {
            "normalized_anchor": normalized_anchor,
            "normalized_shape": normalized_shape,
        }
        origins, sizes = _numbers(anchor, extent, len(which), given)
        spans = _spans(origins, sizes, lengths, *_relative(anchor, names))
    else:
        spans = _spans_of_arguments(given, lengths)
    return which, *_rounded(spans)


def _relative(anchor: Tensor, window: Mapping[str, Any]) -> tuple[bool, bool]:
    """Return whether anchor and shape are relative to the extents of the data."""
    names = "normalized_anchor", "normalized_shape"
    first, second = (anchor.dtype == torch.float32 and window.get(name, True) for name in names)
    return first, second


@operator(
    name="slice", deprecated={"image_type": None, "output_dtype": "dtype"},
)  # fmt: skip
def slice_(
    data: Data,
    anchor: Data | None = None,
    extent: Data | None = None,
    /,
    *,
    dtype: DType | None = None,
    fill_values: list[float] = [0.0],  # noqa: B006  never changed
    out_of_bounds_policy: str = "error",
    layout: Layout,
    out: Out = None,
    **window: Annotated[Any, shares(slice_window)],
) -> Data:
    """Cut out a part, given by inputs (anchor and shape) or by arguments (start and end or shape).

    ``round(start) : round(end)`` of each axis, halves rounded away from zero, ``end = start + shape``.

    Args:
        data: Any shape and type.
        anchor: Where the part starts, one value an axis. int32 or int64: in elements. float32: see
            ``normalized_anchor``.
        extent: Its shape, of the type of ``anchor``.
        dtype: Of the output, converted by truncation and saturated; the input's own when None.
        fill_values: With ``out_of_bounds_policy="pad"``: one value, or one a channel.
        out_of_bounds_policy: For parts that reach outside: ``"error"``, ``"pad"``, ``"trim_to_shape"``, or how the
            data go on: ``"clamp"``, ``"wrap"``, ``"reflect_101"``, ``"reflect_1001"``.

    Raises:
        RuntimeError: the part reaches outside or ends before it starts, axes that do not exist, or arguments
            that exclude each other.
    """
    known = layout or _ASSUMED.get(data.ndim, "")
    which, starts, extents = slice_window(data.shape, known, anchor, extent, **window)
    found = cut(
        data, which, starts, extents,
        policy=out_of_bounds_policy, fill=fill_values, channel=known.find("C"), dtype=dtype,
    )  # fmt: skip
    return placed(found, out)


@batched(slice_)
def _slice_batch(
    data: Tensor, anchor: Tensor | None = None, extent: Tensor | None = None, /, *, dtype: torch.dtype | None,
    fill_values: list[float], out_of_bounds_policy: str, layout: str, out: Tensor | None = None,
    **window: Any | Column,
) -> Any:  # fmt: skip
    arguments: dict[str, Any] = window
    out_of_bounds(out_of_bounds_policy)
    if dtype not in (None, data.dtype) or not is_array(data) or not len(data):
        return NotImplemented
    known = layout or _ASSUMED.get(data.ndim - 1, "")
    rows, shape = each_of(arguments), data.shape[1:]
    if anchor is None or extent is None:
        found = [slice_window(shape, known, anchor, extent, **row) for row in rows]
    elif len(rows) > 1 or not anchor.ndim == extent.ndim == 2:
        return NotImplemented
    else:
        which, _, _ = slice_window(shape, known, anchor[0], extent[0], **arguments)
        lengths, relative = [shape[axis] for axis in which], _relative(anchor, arguments)
        pairs = zip(anchor.tolist(), extent.tolist(), strict=True)
        found = [(which, *_rounded(_spans(*pair, lengths, *relative))) for pair in pairs]
    sizes = {(tuple(axes), tuple(extents)) for axes, _, extents in found}
    windows = None
    if len(sizes) == 1:
        axes, extents = sizes.pop()
        windows = inside(data.numpy(), axes, [starts for _, starts, _ in found], extents)
    if windows is None:
        return NotImplemented
    check_fill(fill_values, windows[0].shape, known.find("C"))
    return copied(windows, data.dtype, out)


@on_device(slice_)
def _slice_on_device(
    data: TensorList, anchor: TensorList | None = None, extent: TensorList | None = None, /, *,
    dtype: torch.dtype | None, fill_values: list[float], out_of_bounds_policy: str, layout: str,
    **window: Any | Column,
) -> Any:  # fmt: skip
    known = layout or _ASSUMED.get(data.ndim(), "")
    images, policy = images_of(data, known, floats=True), out_of_bounds(out_of_bounds_policy)
    if images is None or anchor is not None or dtype not in (None, images.flat.dtype):
        return NotImplemented
    rows, shapes = each_of(window), data.shape()
    rows = rows * len(shapes) if len(rows) == 1 else rows
    windows = [slice_window(s, known, **row) for s, row in zip(shapes, rows, strict=True)]
    spans = spans_of([shape[:2] for shape in shapes], windows)
    return NotImplemented if spans is None else cut_out(images, spans, policy, fill_values)


Spans = list[tuple[float, float]]


def _rounded(spans: Spans) -> tuple[list[int], list[int]]:
    starts, extents = [], []
    for start, end in spans:
        if end < start:
            raise RuntimeError(f"the end of a slice is before its start: start={start}, end={end}")
        first = round_half_away_number(start)
        starts.append(first)
        extents.append(round_half_away_number(end) - first)
    return starts, extents


def _numbers(
    anchor: Tensor, extent: Tensor | None, count: int, given: dict[str, Any]
) -> tuple[list[float], list[float]]:
    """Return what anchor and shape say, one number an axis."""
    if extent is None:
        raise RuntimeError("slice takes the inputs anchor and shape, or neither")
    _check_ends(given)
    if given:
        raise RuntimeError(f"slice takes either the inputs anchor and shape, or {', '.join(given)}")
    if anchor.dtype != extent.dtype:
        raise RuntimeError(f"anchor and shape differ in type: {anchor.dtype} and {extent.dtype}")
    if anchor.dtype not in (torch.float32, torch.int32, torch.int64):
        raise RuntimeError(f"unsupported type of anchor and shape: {anchor.dtype}")
    if not anchor.numel() == extent.numel() == count:
        raise RuntimeError(
            f"anchor and shape have {anchor.numel()} and {extent.numel()} values for {count} axes"
        )
    return anchor.reshape(-1).tolist(), extent.reshape(-1).tolist()


def _spans(
    origins: Sequence[float], sizes: Sequence[float], lengths: Sequence[int],
    relative_anchor: bool, relative_shape: bool,
) -> Spans:  # fmt: skip
    spans = []
    for origin, size, length in zip(origins, sizes, lengths, strict=True):
        first = origin * length if relative_anchor else origin
        spans.append((first, first + (size * length if relative_shape else size)))
    return spans


def _check_ends(given: Mapping[str, Any]) -> None:
    if len(given.keys() & {"end", "rel_end", "shape", "rel_shape"}) > 1:
        raise RuntimeError(
            '"end", "rel_end", "shape", and "rel_shape" arguments are mutually exclusive'
        )


def _spans_of_arguments(given: dict[str, Any], lengths: Sequence[int]) -> Spans:
    if not given:
        raise RuntimeError(
            "slice needs the inputs anchor and shape, or start, end or shape as arguments"
        )
    if "start" in given and "rel_start" in given:
        raise RuntimeError('"start" and "rel_start" arguments are mutually exclusive')
    _check_ends(given)
    for size in [*given.get("shape", ()), *given.get("rel_shape", ())]:
        if size < 0:
            raise RuntimeError(f"the shape of a slice is negative: {size}")
    return [
        _span({name: values[i] for name, values in given.items()}, length)
        for i, length in enumerate(lengths)
    ]


def _span(given: dict[str, float], length: int) -> tuple[float, float]:
    """Return start and end on one axis, with DALI's precision: float32 unless both numbers are relative."""

    def scaled(name: str) -> float:
        return single(single(given[name]) * length)

    start = scaled("rel_start") if "rel_start" in given else given.get("start", 0)
    if "end" in given:
        return start, given["end"]
    if "rel_end" in given:
        return start, scaled("rel_end")
    if "shape" in given:
        return start, start + given["shape"]
    if "rel_shape" not in given:
        return start, length
    if "rel_start" not in given:
        return start, start + scaled("rel_shape")
    end = single(given["rel_start"]) * length + single(given["rel_shape"]) * length
    return start, max(start, end)


# ---------------------------------------------------------------- pad


@operator(over="batch", separable=True)
def pad(
    data: Batch,
    /,
    *,
    align: PerSample[list[int]] | None = None,
    axes: PerSample[list[int]] | None = None,
    axis_names: str | None = None,
    fill_value: PerSample[float] = 0.0,
    shape: PerSample[list[int]] | None = None,
) -> BatchOutput:
    """Grow samples at their ends, to the largest extent in the batch or to a given shape.

    Args:
        data: Any shape and type.
        align: Then grow each axis to a multiple of this; one value, or one an axis.
        axes: To grow; all when None.
        axis_names: The same by names of the layout.
        fill_value: Of what is added, in the type of the data (converted as C does: truncated, and wrapped).
        shape: Extent that each axis has at least; what is not positive means the largest one in the batch.

    Raises:
        RuntimeError: axes that do not exist, or that are given in both ways; an ``align`` that is not positive,
            or as many values as there are no axes.
    """
    if axes is not None and axis_names is not None:
        raise batch_level(RuntimeError("axes and axis_names exclude each other"))
    if not len(data):
        return data
    given, ndim, count = [tuple(extents) for extents in data.shape()], data.ndim(), len(data)
    largest = list(map(max, zip(*given, strict=True)))
    by_name = None if axis_names is None else named(axis_names, data.layout(), ndim)

    def grown(extents: Sequence[int], axes: Any, shape: Any, align: Any) -> list[int]:
        which = indices(listed(axes or []), ndim) if by_name is None else by_name
        return _grown(extents, which, largest, shape, align)

    if any(isinstance(value, Column) for value in (axes, shape, align)):
        columns = [per_sample(value, count) for value in (axes, shape, align)]
        shapes = list(map(grown, given, *columns))
    else:
        known = {extents: grown(extents, axes, shape, align) for extents in set(given)}
        shapes = [known[extents] for extents in given]
    fills = per_sample(fill_value, count)
    if fills.count(fills[0]) == count:
        made = _padded_on_device(data, shapes, fills[0])
        if made is not None:
            return made
    if shapes.count(shapes[0]) < count:
        columns = [data.samples(), shapes, [(fill,) for fill in fills]]
        return [_padded(*each) for each in zip(*columns, strict=True)]
    arrays = arrays_of(data)
    if arrays is None:
        return torch.stack(list(map(_padded, data.samples(), shapes, [(f,) for f in fills])))
    whole = torch.empty((count, *shapes[0]), dtype=data.torch_dtype)
    results = whole.numpy()
    for i, (array, fill) in enumerate(zip(arrays, fills, strict=True)):
        result = results[i, ...]
        if array.shape != result.shape:
            result.fill(fill_number(fill, whole.dtype))
        result[tuple(map(slice, array.shape))] = array
    return whole


def _padded_on_device(
    data: TensorList, shapes: Sequence[Sequence[int]], fill: float
) -> Tensor | TensorList | None:
    """Pad the first two axes of samples of any sizes; None where others grow, or there are no kernels."""
    found = elements_of(data)
    if found is None or not shapes[0]:
        return None
    flat, offsets, given = found
    before, after = (np.array(each, np.int64).reshape(len(given), -1) for each in (given, shapes))
    if (before[:, 2:] != after[:, 2:]).any() or not after.all():
        return None
    if len(shapes[0]) == 1:
        before, after = (np.insert(each, 0, 1, 1) for each in (before, after))
    size = flat.element_size()
    canvases, parts = (
        np.stack((each[:, 0], each[:, 1:].prod(1) * size), 1) for each in (after, before)
    )
    places = np.zeros_like(parts)
    regions = np.concatenate((offsets[:, None] * size, parts[:, 1:], places, parts), 1)
    value = torch.tensor([fill_number(fill, flat.dtype)]).to(flat.dtype).view(torch.uint8)
    made = compose_batch(flat, canvases, np.ones_like(offsets), regions, value.tolist())
    return in_turn(made, list(map(tuple, shapes)), data.layout())


def _grown(
    extents: Sequence[int], axes: Sequence[int], largest: Sequence[int], shape: Any, align: Any
) -> list[int]:
    """Return the shape of a padded sample."""
    wanted = [-1] * len(axes) if shape is None else matched("shape", shape, len(axes))
    steps = [1] * len(axes) if align is None else matched("align", align, len(axes))
    grown = list(extents)
    for axis, least, step in zip(axes, wanted, steps, strict=True):
        if step <= 0:
            raise RuntimeError(f"align must be positive, not {step}")
        extent = max(grown[axis], int(least) if least > 0 else largest[axis])
        grown[axis] = -(-extent // int(step)) * int(step)
    if grown != list(extents):
        check_pixels([grown[axis] for axis in axes], "the padded sample")
    return grown


def _padded(sample: Tensor, shape: Sequence[int], fill: Sequence[float]) -> Tensor:
    if list(sample.shape) == shape:
        return sample
    out = filled(shape, fill, sample.dtype, -1, sample.device)
    out[tuple(map(slice, sample.shape))] = sample
    return out


# ---------------------------------------------------------------- erase


@operator
def erase(
    data: Data,
    /,
    *,
    anchor: PerSample[list[float]] = [],  # noqa: B006  never changed
    axes: list[int] = _AXES,
    axis_names: str = _ERASED,
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
    how = _erased_relative(centered_anchor, normalized, normalized_anchor, normalized_shape)
    which = _erased_axes(axes, axis_names, layout, data.ndim)
    fill, channel = listed(fill_value), layout.find("C")
    check_fill(fill, data.shape, channel)
    lengths = tuple([data.shape[axis] for axis in which])
    starts, sizes = tuple(listed(anchor)), tuple(listed(shape))
    made = placed(data, out)
    made = data.clone() if made is data else made
    value = _erased_value(fill, data, channel)
    for place in _erased_regions(starts, sizes, which, lengths, how, data.ndim):
        if isinstance(value, Tensor):
            made[place] = value[place]
        else:
            made[place].fill_(value)
    return made


@batched(erase)
def _erase_batch(
    data: Tensor, *, anchor: Any | Column, axes: list[int], axis_names: str, fill_value: Any | Column,
    shape: Any | Column, layout: str, out: Tensor | None = None, **how: bool,
) -> Any:  # fmt: skip
    if not is_array(data):
        return NotImplemented
    count, extents, channel = len(data), data.shape[1:], layout.find("C")
    which = _erased_axes(axes, axis_names, layout, len(extents))
    lengths, relative = tuple([extents[axis] for axis in which]), _erased_relative(**how)
    made = placed(data, out)
    made = made.clone() if made is data else made
    values: dict[tuple[float, ...], Any] = {}
    for result, start, size, fill in zip(
        made.numpy(), *[per_sample(v, count) for v in (anchor, shape, fill_value)], strict=True
    ):
        filling = tuple(listed(fill))
        if filling not in values:
            check_fill(filling, extents, channel)
            value = _erased_value(filling, data[0], channel)
            values[filling] = value.numpy() if isinstance(value, Tensor) else value
        for place in _erased_regions(
            tuple(listed(start)), tuple(listed(size)), which, lengths, relative, len(extents)
        ):
            value = values[filling]
            result[place] = value[place] if isinstance(value, np.ndarray) else value
    return made


@on_device(erase)
def _erase_on_device(
    data: TensorList, *, anchor: Any | Column, axes: list[int], axis_names: str, fill_value: Any | Column,
    shape: Any | Column, layout: str, **how: bool,
) -> Any:  # fmt: skip
    images, which = images_of(data, layout), _erased_axes(axes, axis_names, layout, 3)
    if images is None or not set(which) <= {0, 1}:
        return NotImplemented
    count, channels, relative = len(data), images.channels, _erased_relative(**how)
    given = [per_sample(each, count) for each in (anchor, shape, fill_value)]
    regions, fills = [], []
    for sides, start, size, fill in zip(images.sides.T.tolist(), *given, strict=True):
        check_fill(listed(fill), (*sides, channels), 2)
        values = [int(fill_number(value, torch.uint8)) for value in listed(fill) or [0.0]]
        fills.append(values * channels if len(values) == 1 else values)
        lengths = tuple([sides[axis] for axis in which])
        places = _erased_regions(
            tuple(listed(start)), tuple(listed(size)), which, lengths, relative, 2
        )
        # Of a slice of all of an axis, `indices` knows the end.
        spans = [
            [part.indices(side) for part, side in zip(place, sides, strict=True)]
            for place in places
        ]
        regions.append([(top, left, bottom, right) for (top, bottom, _), (left, right, _) in spans])
    flat = erase_batch(images.flat, images.offsets, images.sides, channels, regions, fills)
    return batch_of(flat, images.sides, channels)


def _erased_relative(
    centered_anchor: bool = False,
    normalized: bool = False,
    normalized_anchor: bool = False,
    normalized_shape: bool = False,
) -> tuple[bool, bool, bool]:
    """Return whether anchors and shapes are relative, and whether anchors are middles."""
    if normalized and (normalized_anchor or normalized_shape):
        raise RuntimeError("normalized excludes normalized_anchor and normalized_shape")
    return normalized or normalized_anchor, normalized or normalized_shape, centered_anchor


def _erased_value(fill: Sequence[float], data: Tensor, channel: int) -> Any:
    """Return what regions are filled with: a number, or a tensor in the shape of the data."""
    if len(fill) > 1:
        return _content(fill, data, channel)
    return fill_number(fill[0] if fill else 0.0, data.dtype)


def _erased_regions(
    anchor: tuple[float, ...], shape: tuple[float, ...], axes: Sequence[int], lengths: tuple[int, ...],
    how: tuple[bool, bool, bool], ndim: int,
) -> Iterator[tuple[slice, ...]]:  # fmt: skip
    spans = _erased_spans(anchor, shape, lengths, *how)
    for first in range(0, len(spans), len(axes)):
        region = [slice(None)] * ndim
        for axis, span in zip(axes, spans[first:], strict=False):
            region[axis] = span
        yield tuple(region)


def _erased_axes(axes: list[int], names: str, layout: str, ndim: int) -> list[int]:
    if names is not _ERASED:
        return named(names, layout, ndim)
    if axes is not _AXES:
        return indices(axes, ndim)
    if not layout:
        raise RuntimeError("erase needs axes, or data with a layout")
    return [axis for axis, name in enumerate(layout) if name != "C"]


@functools.lru_cache(maxsize=64)
def _erased_spans(
    anchor: tuple[float, ...], shape: tuple[float, ...], lengths: tuple[int, ...],
    relative_anchor: bool, relative_shape: bool, centred: bool,
) -> list[slice]:  # fmt: skip
    """Return the part of each axis that is erased, region after region; in float32, as DALI calculates."""
    anchor = anchor or (0.0,) * len(shape)
    if len(anchor) != len(shape) or len(shape) % len(lengths):
        raise RuntimeError(
            f"{len(anchor)} anchors and {len(shape)} extents for {len(lengths)} axes"
        )
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
