"""Operators on the axes of data: join data along an axis, and insert, drop or permute axes."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import Arguments, Data, Layout, Out, PerSample
from torchdali.errors import batch_level
from torchdali.ops._arguments import as_list

__all__ = ["cat", "expand_dims", "squeeze", "stack", "transpose"]

Layouts = tuple[str, ...]


# ---------------------------------------------------------------- stack and cat


def _stack_layout(layouts: Layouts, arguments: Mapping[str, Any]) -> str:
    axis, name, layout = arguments["axis"], arguments["axis_name"], layouts[0]
    if name is None:
        return ""
    if len(name) != 1:
        raise batch_level(RuntimeError(f"axis_name must be one character, got {name!r}"))
    position = axis if axis >= 0 else len(layout) + 1 + axis
    return f"{layout[:position]}{name}{layout[position:]}"


@operator(layout=_stack_layout)
def stack(
    first: Data,
    /,
    *others: Data,
    axis: int = 0,
    axis_name: str | None = None,
    layout: Layout,
    out: Out = None,
) -> Data:
    """Join inputs of the same shape along a new axis.

    Args:
        first: First input.
        others: Additional inputs, with the shape and dtype of the first input.
        axis: Position of the new axis in the output. Negative numbers count from the end. By default 0.
        axis_name: Letter of the new axis in the layout. By default the output has no layout.

    Raises:
        RuntimeError: the shapes or dtypes of the inputs differ, the axis is out of range, or ``axis_name`` is passed
            but the inputs have no layout.
    """
    inputs = (first, *others)
    position = _resolve_new_axis(inputs, axis, axis_name, layout, first.ndim)
    shape = (*first.shape[:position], len(inputs), *first.shape[position:])
    return torch.stack(inputs, position, out=_matching_out(out, shape, first.dtype))


@chunk(stack)
def _stack_batches(*input: Tensor, a: Arguments) -> Tensor:
    position = _resolve_new_axis(input, a.axis, a.axis_name, a.layout, input[0].ndim - 1)
    return torch.stack(input, position + 1)


def _resolve_new_axis(inputs: Sequence[Tensor], axis: int, axis_name: str | None, layout: str, ndim: int) -> int:
    _check_dtype_and_ndim(inputs)
    if any(tensor.shape != inputs[0].shape for tensor in inputs):
        raise RuntimeError(
            f"stack: the inputs must have the same shape, got {_format_shapes(inputs)}. Resize, crop or pad them first"
        )
    if axis_name is not None and ndim and not layout:
        raise batch_level(RuntimeError("axis_name needs an input that has a layout or no axes"))
    if not -ndim <= axis <= ndim:
        raise batch_level(RuntimeError(f"axis must be between {-ndim} and {ndim} for {ndim}D data, got {axis}"))
    return axis if axis >= 0 else ndim + 1 + axis


@operator(marks=("view",))
def cat(
    first: Data,
    /,
    *others: Data,
    axis: int = 0,
    axis_name: str | None = None,
    layout: Layout,
    out: Out = None,
) -> Data:
    """Join inputs along an existing axis.

    Args:
        first: First input.
        others: Additional inputs, with the dtype of the first input. Except for the extent of the joined axis, all
            inputs must have the same shape.
        axis: Axis along which the inputs are joined. Negative numbers count from the end. By default 0.
        axis_name: Letter of the axis in the layout, instead of ``axis``.

    Raises:
        RuntimeError: the shapes or dtypes of the inputs don't match, the axis is out of range or not in the layout, or
            both ``axis`` and ``axis_name`` are passed.
    """
    inputs = (first, *others)
    position = _resolve_axis(inputs, axis, axis_name, layout, first.ndim)
    if not others and out is None:
        return first
    extent = sum(tensor.shape[position] for tensor in inputs)
    shape = (*first.shape[:position], extent, *first.shape[position + 1 :])
    return torch.cat(inputs, position, out=_matching_out(out, shape, first.dtype))


@chunk(cat)
def _cat_batches(*input: Tensor, a: Arguments) -> Tensor:
    position = _resolve_axis(input, a.axis, a.axis_name, a.layout, input[0].ndim - 1)
    return torch.cat(input, position + 1)


def _resolve_axis(inputs: Sequence[Tensor], axis: int, axis_name: str | None, layout: str, ndim: int) -> int:
    _check_dtype_and_ndim(inputs)
    if axis_name is not None:
        if axis:
            raise batch_level(RuntimeError("axis and axis_name cannot be passed together"))
        axis = layout.find(axis_name)
        if axis < 0 or len(axis_name) != 1:
            raise batch_level(RuntimeError(f"the layout {layout!r} has no axis {axis_name!r}"))
    if not -ndim <= axis < ndim:
        raise batch_level(RuntimeError(f"axis must be between {-ndim} and {ndim - 1} for {ndim}D data, got {axis}"))
    return axis % ndim


def _check_dtype_and_ndim(inputs: Sequence[Tensor]) -> None:
    first = inputs[0]
    for tensor in inputs:
        if tensor.dtype != first.dtype or tensor.ndim != first.ndim:
            kinds = ", ".join(f"{str(p.dtype).removeprefix('torch.')} {p.ndim}D" for p in inputs)
            raise batch_level(RuntimeError(f"the inputs must have the same dtype and number of axes, got {kinds}"))


def _format_shapes(inputs: Sequence[Tensor]) -> str:
    return ", ".join(str(tuple(tensor.shape)) for tensor in inputs)


def _matching_out(out: Tensor | None, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor | None:
    """Return `out` if `out` has the shape and the dtype of the result, else None."""
    return out if out is not None and out.shape == shape and out.dtype == dtype else None


# ---------------------------------------------------------------- axes


def _expand_layout(layouts: Layouts, arguments: Mapping[str, Any]) -> str:
    axes, names, layout = arguments["axes"], arguments["new_axis_names"], layouts[0]
    if not axes:
        return layout
    if names and len(names) != len(axes):
        raise batch_level(
            RuntimeError(
                f"new_axis_names must have one character per new axis, got {len(names)} in "
                f"{names!r} for {len(axes)} new axes"
            )
        )
    for axis, name in sorted(zip(axes, names or "", strict=False)):
        layout = layout[:axis] + name + layout[axis:]
    return layout if names else ""


@operator(layout=_expand_layout, marks=("view",))
def expand_dims(data: Data, /, *, axes: list[int], new_axis_names: str = "", layout: Layout) -> Data:
    """Insert axes of extent 1.

    Args:
        data: Data of any shape and dtype.
        axes: Positions of the new axes in the output; must not be negative.
        new_axis_names: Letters of the new axes in the layout, in the order of ``axes``. By default the output has no
            layout.

    Raises:
        RuntimeError: a position is negative, repeated or too large, or ``new_axis_names`` is passed but the data has no
            layout.
    """
    return _insert_axes(data, axes, new_axis_names, layout, 0)


@chunk(expand_dims)
def _expand_batch(data: Tensor, a: Arguments) -> Tensor:
    return _insert_axes(data, a.axes, a.new_axis_names, a.layout, 1)


def _insert_axes(data: Tensor, axes: list[int], names: str, layout: str, first: int) -> Tensor:
    if names and not layout and data.ndim > first:
        raise batch_level(RuntimeError("new_axis_names needs an input that has a layout or no axes"))
    if names and len(names) != len(axes):
        raise batch_level(
            RuntimeError(f"new_axis_names must have one character per new axis, got {len(names)} for {len(axes)} axes")
        )
    if len(set(axes)) != len(axes) or min(axes, default=0) < 0:
        raise batch_level(RuntimeError(f"axes must be different and not negative, got {axes}"))
    for axis in sorted(axes):
        if axis + first > data.ndim:
            raise batch_level(
                RuntimeError(f"axes must be positions in the output, got {axes} for {data.ndim - first}D data")
            )
        data = data.unsqueeze(axis + first)
    return data


def _squeeze_layout(layouts: Layouts, arguments: Mapping[str, Any]) -> str:
    axes, names, layout = arguments["axes"], arguments["axis_names"], layouts[0]
    if names is not None:
        return "".join(name for name in layout if name not in names)
    dropped = [] if axes is None or min(axes, default=0) < 0 else axes
    return "".join(name for axis, name in enumerate(layout) if axis not in dropped)


@operator(layout=_squeeze_layout, marks=("view",))
def squeeze(
    data: Data,
    /,
    *,
    axes: PerSample[list[int]] | None = None,
    axis_names: str | None = None,
    layout: Layout,
) -> Data:
    """Drop axes of extent 1.

    Args:
        data: Data of any shape and dtype.
        axes: Axes to drop. Axes that the data doesn't have are ignored. If any axis is negative, no axis is dropped.
        axis_names: Letters of the axes in the layout, instead of ``axes``.

    Raises:
        RuntimeError: a dropped axis has an extent other than 1 (unless the data is empty), a letter isn't in the
            layout, or neither or both of ``axes`` and ``axis_names`` are passed.
    """
    dropped = _drop_axes(data.shape, layout, axes=axes, axis_names=axis_names)
    return data.reshape([n for axis, n in enumerate(data.shape) if axis not in dropped])


@chunk(squeeze)
def _squeeze_batch(data: Tensor, a: Arguments) -> Tensor:
    axes = _drop_axes(data.shape[1:], a.layout, axes=a.axes, axis_names=a.axis_names)
    return data.reshape([n for axis, n in enumerate(data.shape) if axis - 1 not in axes])


def _drop_axes(
    shape: Sequence[int], layout: str, *, axes: Any = None, axis_names: str | None = None
) -> tuple[int, ...]:
    if (axes is None) == (axis_names is None):
        wrong = "missing argument ``axes`` or ``axis_names``."
        if axes is not None:
            wrong = "provided both ``axes`` and ``axis_names`` arguments"
        raise batch_level(RuntimeError(f"squeeze: {wrong}"))
    if axis_names is not None:
        axes = [_find_axis(name, layout) for name in axis_names]
    numbers = as_list(axes)
    if len(set(numbers)) != len(numbers):
        raise batch_level(RuntimeError(f"specified at least twice same dimension to remove: {list(numbers)}"))
    if min(numbers, default=0) < 0:
        return ()  # if any axis is negative, DALI drops no axis at all
    dropped = tuple(axis for axis in numbers if axis < len(shape))
    rest = math.prod(n for axis, n in enumerate(shape) if axis not in dropped)
    if rest != math.prod(shape):
        raise RuntimeError(
            f"the volume of the new shape should match: without the axes {list(dropped)}, the shape {list(shape)} has "
            f"{rest} elements"
        )
    return dropped


def _find_axis(name: str, layout: str) -> int:
    axis = layout.find(name)
    if axis < 0:
        raise batch_level(RuntimeError(f"the layout {layout!r} has no axis {name!r}"))
    return axis


def _transpose_layout(layouts: Layouts, arguments: Mapping[str, Any]) -> str:
    if arguments["output_layout"] is not None:
        return str(arguments["output_layout"])
    layout, perm = layouts[0], arguments["perm"]
    if not layout or not arguments["transpose_layout"]:
        return layout
    return "".join(layout[axis] for axis in _resolve_permutation(len(layout), _as_tuple(perm)))


@operator(layout=_transpose_layout, marks=("levels", "view"))
def transpose(
    data: Data,
    /,
    *,
    output_layout: str | None = None,
    perm: list[int] | None = None,
    transpose_layout: bool = True,
) -> Data:
    """Permute the axes of data.

    Args:
        data: Data of any shape and dtype.
        output_layout: Layout of the output. If it is passed, ``transpose_layout`` has no effect.
        perm: For each axis of the output, the index of the corresponding axis of the input. By default the order of
            the axes is reversed.
        transpose_layout: If True (the default), the letters of the layout are permuted like the axes. Otherwise the
            layout isn't changed.

    Raises:
        RuntimeError: ``perm`` isn't a permutation of the axes, or ``output_layout`` has the wrong length.
    """
    return data.permute(_resolve_permutation(data.ndim, _as_tuple(perm), output_layout))


@chunk(transpose)
def _transpose_batch(data: Tensor, a: Arguments) -> Tensor:
    axes = _resolve_permutation(data.ndim - 1, _as_tuple(a.perm), a.output_layout)
    return data.permute(0, *[axis + 1 for axis in axes])


def _as_tuple(perm: list[int] | None) -> tuple[int, ...]:
    return tuple(perm or ())


@functools.lru_cache(maxsize=256)
def _resolve_permutation(ndim: int, perm: tuple[int, ...], output_layout: str | None = None) -> tuple[int, ...]:
    perm = perm or tuple(range(ndim))[::-1]
    if sorted(perm) != list(range(ndim)):
        raise batch_level(RuntimeError(f"perm must be a permutation of {ndim} axes, got {list(perm)}"))
    if output_layout is not None and len(output_layout) != ndim:
        raise batch_level(
            RuntimeError(f"output_layout must have one character per axis of {ndim}D data, got {output_layout!r}")
        )
    return perm
