"""The operator `slice`, which cuts a window out of data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.batching import argument_names
from torchdali.declaration.schema import Arguments, Data, DType, Layout, Out, PerSample, one_of, shares, split_arguments
from torchdali.kernels.memory import copy_to_out, copy_windows, cut_windows, is_array
from torchdali.kernels.window import (
    BORDER_POLICIES,
    check_fill,
    cut,
    resolve_policy,
    round_half_away_number,
    to_float32,
)
from torchdali.ops._arguments import Unset, as_list, axes_by_name, indices, match_axes
from torchdali.ops._on_device import cut_out, images_of, spans_of
from torchdali.tensors import TensorList

__all__ = ["slice_", "slice_window"]

_AXES = [1, 0]
_NAMES = Unset("WH")
_DEFAULT_LAYOUTS = {2: "HW", 3: "HWC", 4: "DHWC"}
"""Layouts that `slice` assumes for data without a layout, by number of axes."""


def slice_window(
    extents: Sequence[int],
    layout: str,
    anchor: Tensor | None = None,
    extent: Tensor | None = None,
    *,
    axes: PerSample[list[int]] = _AXES,
    axis_names: str = _NAMES,
    end: PerSample[list[int]] | None = None,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    rel_end: PerSample[list[float]] | None = None,
    rel_shape: PerSample[list[float]] | None = None,
    rel_start: PerSample[list[float]] | None = None,
    shape: PerSample[list[int]] | None = None,
    start: PerSample[list[int]] | None = None,
) -> tuple[list[int], list[int], list[int]]:
    """Return axes, starts and extents of the window that the arguments of `slice` describe.

    On each axis, the window is ``round(start) : round(end)``. If the shape is passed, ``end`` is ``start + shape``.
    A value halfway between two integers is rounded away from zero.

    Args:
        extents: Shape of the data.
        layout: Layout of the data.
        anchor: Start of the window, passed as an input: one value per axis.
        extent: Shape of the window, passed as an input with the dtype of `anchor`.
        axes: Axes to slice. The other axes aren't cut. By default ``axis_names`` determines the axes.
        axis_names: Letters of the axes to slice, instead of ``axes``. By default ``"WH"``. If the data has no layout,
            the layout HW is assumed for 2 axes, HWC for 3 axes, and DHWC for 4 axes.
        end: Exclusive end of the window, in elements. By default the window ends where the data ends.
        normalized_anchor: If True (the default), a float32 ``anchor`` is a fraction of the axis's extent. If False,
            ``anchor`` is in elements.
        normalized_shape: If True (the default), a float32 ``extent`` is a fraction of the axis's extent. If False,
            ``extent`` is in elements.
        rel_end: End of the window as a fraction of the axis's extent, instead of ``end``.
        rel_shape: Shape of the window as a fraction of the axes' extents, instead of ``shape``.
        rel_start: Start of the window as a fraction of the axis's extent, instead of ``start``.
        shape: Shape of the window in elements, instead of ``end``.
        start: Start of the window in elements. By default 0.

    Raises:
        RuntimeError: the window ends before it starts, an axis doesn't exist, or arguments that exclude each other are
            passed together.
    """
    if axes is _AXES:
        axis_indices = axes_by_name(axis_names, layout, len(extents))
    elif axis_names is not _NAMES:
        raise RuntimeError("axes and axis_names cannot be passed together")
    else:
        axis_indices = indices(as_list(axes), len(extents))
    lengths = [extents[axis] for axis in axis_indices]
    arguments = {"start": start, "rel_start": rel_start, "end": end, "rel_end": rel_end, "shape": shape,
             "rel_shape": rel_shape}  # fmt: skip
    # An empty list has no effect, but it still can't be combined with the arguments that exclude it.
    values = {
        name: v if v == [] else match_axes(name, v, len(axis_indices)) for name, v in arguments.items() if v is not None
    }
    if anchor is not None:
        names = {
            "normalized_anchor": normalized_anchor,
            "normalized_shape": normalized_shape,
        }
        origins, sizes = _input_values(anchor, extent, len(axis_indices), values)
        spans = _spans(origins, sizes, lengths, *_relative(anchor, names))
    else:
        spans = _spans_of_arguments(values, lengths)
    return axis_indices, *_round_bounds(spans)


def _relative(anchor: Tensor, window: Mapping[str, Any]) -> tuple[bool, bool]:
    """Return whether the anchor, and whether the shape, is a fraction of the data's extents."""
    names = "normalized_anchor", "normalized_shape"
    first, second = (anchor.dtype == torch.float32 and window.get(name, True) for name in names)
    return first, second


@operator(
    marks=("levels",),
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
    out_of_bounds_policy: Annotated[str, one_of(BORDER_POLICIES)] = "error",
    layout: Layout,
    out: Out = None,
    **window: Annotated[Any, shares(slice_window)],
) -> Data:
    """Cut a window out of data.

    Describe the window either by two inputs, the window's start (``anchor``) and shape (``extent``), or by arguments
    such as ``start``, ``end`` and ``shape``. On each axis, the window is ``round(start) : round(end)``. If the shape is
    passed, ``end`` is ``start + shape``. A value halfway between two integers is rounded away from zero.

    Args:
        data: Data of any shape and dtype.
        anchor: Start of the window, one value per axis. int32 and int64 values are in elements. ``normalized_anchor``
            determines the unit of float32 values. By default the window is described by arguments.
        extent: Shape of the window, one value per axis, with the dtype of ``anchor``. ``normalized_shape`` determines
            the unit of float32 values.
        dtype: Output dtype; values are truncated and saturated. By default the input's dtype.
        fill_values: Value of elements outside the data, for ``out_of_bounds_policy="pad"``: one value, or one per
            channel. By default 0.
        out_of_bounds_policy: Behavior if the window reaches outside the data. ``"error"`` (the default) raises an
            error; ``"pad"`` fills with ``fill_values``; ``"trim_to_shape"`` shortens the window; ``"clamp"`` repeats
            the edge; ``"wrap"`` repeats the data; ``"reflect_101"`` mirrors the data without repeating the edge; and
            ``"reflect_1001"`` mirrors the data and repeats the edge.

    Raises:
        RuntimeError: the window reaches outside the data (with the policy ``"error"``), the window ends before it
            starts, an axis doesn't exist, or arguments that exclude each other are passed together.
    """
    resolved_layout = layout or _DEFAULT_LAYOUTS.get(data.ndim, "")
    axis_indices, starts, extents = slice_window(data.shape, resolved_layout, anchor, extent, **window)
    result = cut(
        data, axis_indices, starts, extents,
        policy=out_of_bounds_policy, fill=fill_values, channel=resolved_layout.find("C"), dtype=dtype,
    )  # fmt: skip
    return copy_to_out(result, out)


@chunk(slice_, per_sample=argument_names(slice_window))
def _slice_batch(data: Tensor, anchor: Tensor | None = None, extent: Tensor | None = None, *, a: Arguments) -> Any:
    arguments = a.of(slice_window)
    resolve_policy(a.out_of_bounds_policy)
    if a.dtype not in (None, data.dtype) or not is_array(data) or not len(data):
        return NotImplemented
    resolved_layout = a.layout or _DEFAULT_LAYOUTS.get(data.ndim - 1, "")
    rows, shape = split_arguments(arguments), data.shape[1:]
    if anchor is None or extent is None:
        sample_windows = [slice_window(shape, resolved_layout, anchor, extent, **row) for row in rows]
    elif len(rows) > 1 or not anchor.ndim == extent.ndim == 2:
        return NotImplemented
    else:
        axis_indices, _, _ = slice_window(shape, resolved_layout, anchor[0], extent[0], **arguments)
        lengths, relative = [shape[axis] for axis in axis_indices], _relative(anchor, arguments)
        pairs = zip(anchor.tolist(), extent.tolist(), strict=True)
        sample_windows = [(axis_indices, *_round_bounds(_spans(*pair, lengths, *relative))) for pair in pairs]
    sizes = {(tuple(axes), tuple(extents)) for axes, _, extents in sample_windows}
    windows = None
    if len(sizes) == 1:
        axes, extents = sizes.pop()
        windows = cut_windows(data.numpy(), axes, [starts for _, starts, _ in sample_windows], extents)
    if windows is None:
        return NotImplemented
    check_fill(a.fill_values, windows[0].shape, resolved_layout.find("C"))
    return copy_windows(windows, data.dtype, a.out)


@chunk(slice_, "device", per_sample=argument_names(slice_window))
def _slice_on_device(
    data: TensorList, anchor: TensorList | None = None, extent: TensorList | None = None, *, a: Arguments
) -> Any:
    resolved_layout = a.layout or _DEFAULT_LAYOUTS.get(data.ndim(), "")
    images, policy = images_of(data, resolved_layout, floats=True), resolve_policy(a.out_of_bounds_policy)
    if images is None or anchor is not None or a.dtype not in (None, images.flat.dtype):
        return NotImplemented
    rows, shapes = split_arguments(a.of(slice_window)), data.shape()
    rows = rows * len(shapes) if len(rows) == 1 else rows
    windows = [slice_window(s, resolved_layout, **row) for s, row in zip(shapes, rows, strict=True)]
    spans = spans_of([shape[:2] for shape in shapes], windows)
    return NotImplemented if spans is None else cut_out(images, spans, policy, a.fill_values)


Spans = list[tuple[float, float]]


def _round_bounds(spans: Spans) -> tuple[list[int], list[int]]:
    starts, extents = [], []
    for start, end in spans:
        if end < start:
            raise RuntimeError(f"the end of a slice must not be before its start, got start={start}, end={end}")
        first = round_half_away_number(start)
        starts.append(first)
        extents.append(round_half_away_number(end) - first)
    return starts, extents


def _input_values(
    anchor: Tensor, extent: Tensor | None, count: int, arguments: dict[str, Any]
) -> tuple[list[float], list[float]]:
    """Return the values of the inputs anchor and shape. Both have one number per axis.

    Raises:
        RuntimeError: the shape is missing, `arguments` isn't empty, or the inputs have the wrong dtype or number of
            values.
    """
    if extent is None:
        raise RuntimeError("slice: pass both inputs, anchor and shape, or neither")
    _check_ends(arguments)
    if arguments:
        raise RuntimeError(f"slice: pass either the inputs anchor and shape, or {', '.join(arguments)}, not both")
    if anchor.dtype != extent.dtype:
        raise RuntimeError(f"anchor and shape must have the same dtype, got {anchor.dtype} and {extent.dtype}")
    if anchor.dtype not in (torch.float32, torch.int32, torch.int64):
        raise RuntimeError(f"unsupported type of anchor and shape: {anchor.dtype}")
    if not anchor.numel() == extent.numel() == count:
        raise RuntimeError(
            f"anchor and shape must have one value for each of {count} axes, got {anchor.numel()} and {extent.numel()}"
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


def _check_ends(arguments: Mapping[str, Any]) -> None:
    if len(arguments.keys() & {"end", "rel_end", "shape", "rel_shape"}) > 1:
        raise RuntimeError('"end", "rel_end", "shape", and "rel_shape" arguments are mutually exclusive')


def _spans_of_arguments(arguments: dict[str, Any], lengths: Sequence[int]) -> Spans:
    if not arguments:
        raise RuntimeError("slice needs the inputs anchor and shape, or start, end or shape as arguments")
    if "start" in arguments and "rel_start" in arguments:
        raise RuntimeError('"start" and "rel_start" arguments are mutually exclusive')
    _check_ends(arguments)
    for size in [*arguments.get("shape", ()), *arguments.get("rel_shape", ())]:
        if size < 0:
            raise RuntimeError(f"the shape of a slice must not be negative, got {size}")
    return [
        _span({name: values[i] for name, values in arguments.items() if values}, length)
        for i, length in enumerate(lengths)
    ]


def _span(numbers: dict[str, float], length: int) -> tuple[float, float]:
    """Return start and end of the window on one axis, computed with DALI's precision.

    DALI computes in float32, unless both ``rel_start`` and ``rel_shape`` are passed.
    """

    def scale(name: str) -> float:
        return to_float32(to_float32(numbers[name]) * length)

    start = scale("rel_start") if "rel_start" in numbers else numbers.get("start", 0)
    if "end" in numbers:
        return start, numbers["end"]
    if "rel_end" in numbers:
        return start, scale("rel_end")
    if "shape" in numbers:
        return start, start + numbers["shape"]
    if "rel_shape" not in numbers:
        return start, length
    if "rel_start" not in numbers:
        return start, start + scale("rel_shape")
    end = to_float32(numbers["rel_start"]) * length + to_float32(numbers["rel_shape"]) * length
    return start, max(start, end)
