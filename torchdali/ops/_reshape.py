"""Operators that change the shape, layout or dtype of data without changing the elements in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, deprecate, operator
from torchdali.declaration.schema import Arguments, Data, DType, PerSample
from torchdali.errors import batch_level
from torchdali.ops._arguments import as_list
from torchdali.ops._generic import extents_of

__all__ = ["reinterpret", "reshape", "shapes"]

Layouts = tuple[str, ...]


def _output_layout(layouts: Layouts, arguments: Mapping[str, Any]) -> str:
    """Return the argument ``layout`` if it was passed.

    Otherwise return the input's layout if the number of axes doesn't change, or "" if the number changes.
    """
    if arguments["layout"] is not None:
        return str(arguments["layout"])
    values = [arguments[name] for name in ("shape", "rel_shape", "src_dims")]
    ndim = next((len(v) for v in values if v is not None), len(layouts[0]))
    return layouts[0] if ndim == len(layouts[0]) else ""


@operator(layout=_output_layout, marks=("levels", "view"))
def reshape(
    data: Data,
    shape_input: Data | None = None,
    /,
    *,
    layout: str | None = None,
    rel_shape: PerSample[list[float]] | None = None,
    shape: PerSample[list[int]] | None = None,
    src_dims: PerSample[list[int]] | None = None,
) -> Data:
    """Change the shape or the layout of data.

    Pass at most one of ``shape_input``, ``shape`` and ``rel_shape``.

    Args:
        data: Data of any shape and dtype.
        shape_input: New shape of each sample, as an input: 1-D integers, instead of ``shape``.
        layout: Layout of the output. By default the output has the input's layout if the number of axes doesn't change,
            and no layout otherwise.
        rel_shape: Factors by which the input's extents are multiplied; the products are rounded. One factor may be -1;
            the extent is then computed from the number of elements.
        shape: New shape. One extent may be -1; it is then computed from the number of elements.
        src_dims: For each output axis, the input axis whose extent is used, or -1 for a new axis of extent 1. If
            ``rel_shape`` is passed, its factors multiply these extents. By default the axes keep their order.

    Raises:
        RuntimeError: the number of elements would change, arguments contradict each other, or the layout has the wrong
            length.
    """
    return _reshape(data, shape_input, layout=layout, rel_shape=rel_shape, shape=shape, src_dims=src_dims)


@chunk(reshape)
def _reshape_batch(data: Tensor, shape_input: Tensor | None = None, *, a: Arguments) -> Any:
    if shape_input is not None:
        rows, options = zip(data, shape_input, strict=True), a.of(_new_shape)
        return [_reshape(sample, shape, **options) for sample, shape in rows]
    return data.reshape(len(data), *_new_shape(data.shape[1:], None, **a.of(_new_shape)))


def _reshape(data: Tensor, shape_input: Tensor | None, **arguments: Any) -> Tensor:
    return data.reshape(_new_shape(data.shape, shape_input, **arguments))


def _new_shape(
    old: Sequence[int],
    shape_input: Tensor | None,
    *,
    layout: str | None = None,
    rel_shape: Any = None,
    shape: Any = None,
    src_dims: Any = None,
) -> list[int]:
    if all(value is None for value in (shape_input, layout, rel_shape, shape, src_dims)):
        raise batch_level(
            RuntimeError("reshape needs at least one of: a shape, rel_shape, src_dims, a layout or a second input")
        )
    extents = _fill_extent(_new_extents(old, shape_input, rel_shape, shape, src_dims), old, math.prod(old))
    if layout and len(layout) != len(extents):
        raise batch_level(RuntimeError(f"requested layout {layout!r} is not compatible with a {len(extents)}D shape"))
    return extents


def _new_extents(
    old: Sequence[int], shape_input: Tensor | None, rel_shape: Any, shape: Any, src_dims: Any
) -> list[int]:
    """Return the new extents. If an extent is negative, the caller must compute it from the number of elements."""
    if sum(value is not None for value in (shape_input, rel_shape, shape)) > 1:
        raise RuntimeError("pass only one of `shape`, `rel_shape` and the second input")
    if shape_input is not None:
        if shape_input.dtype.is_floating_point or shape_input.ndim != 1:
            raise RuntimeError("the input `shape` must be 1D integers")
        shape = shape_input.tolist()
    if src_dims is not None:
        _check_sources(old, src_dims)
    if shape is not None:
        return [int(extent) for extent in as_list(shape)]
    sources = _source_extents(old, rel_shape, src_dims)
    if rel_shape is None:
        return sources
    factors = as_list(rel_shape)
    pairs = zip(factors, [*sources, *[1] * (len(factors) - len(sources))], strict=True)
    return [-1 if factor < 0 else math.floor(factor * extent + 0.5) for factor, extent in pairs]


def _source_extents(old: Sequence[int], rel_shape: Any, src_dims: Any) -> list[int]:
    """Return, for each output axis, the extent of the input axis that `src_dims` selects; 1 for a new axis."""
    count = None if rel_shape is None else len(as_list(rel_shape))
    if src_dims is None:
        if count is not None and any(factor >= 0 for factor in as_list(rel_shape)[len(old) :]):
            raise RuntimeError(
                f"`rel_shape` has more elements ({count}) than there are dimensions in the input ({len(old)}). To "
                f"add a dimension, pass -1 in src_dims."
            )
        return [*old, *[1] * ((count or 0) - len(old))][:count]
    axes = [int(axis) for axis in as_list(src_dims)]
    if count is not None and count != len(axes):
        raise RuntimeError(f"`src_dims` and `rel_shape` have different lengths: {len(axes)} vs {count}")
    return [1 if axis < 0 else old[axis] for axis in axes]


def _check_sources(old: Sequence[int], src_dims: Any) -> None:
    for i, axis in enumerate(as_list(src_dims)):
        if not -1 <= axis < len(old):
            raise RuntimeError(
                f"`src_dims[{i}] == {axis:g}` is out of bounds; expected an axis of the input from 0 to "
                f"{len(old) - 1}, or -1 to add an axis"
            )


def _fill_extent(new: list[int], old: Sequence[int], volume: int) -> list[int]:
    """Replace the negative extent, if any, so that the number of elements is `volume`."""
    negative_axes = [i for i, extent in enumerate(new) if extent < 0]
    if len(negative_axes) > 1:
        raise RuntimeError(f"only one negative extent is allowed; got: {new}")
    numel = math.prod(extent for extent in new if extent >= 0)
    if negative_axes:
        if not numel:
            raise RuntimeError(
                f"dimension {negative_axes[0]} cannot be inferred, because the others have no elements: the input has "
                f"the shape {list(old)}"
            )
        new = [*new]
        new[negative_axes[0]] = volume // numel
        numel *= new[negative_axes[0]]
    if numel != volume:
        raise RuntimeError(
            f"the new shape {new} must have as many elements as the input's shape {list(old)}, got {numel} for {volume}"
        )
    return new


@operator(layout=_output_layout, marks=("view",))
def reinterpret(
    data: Data,
    shape_input: Data | None = None,
    /,
    *,
    dtype: DType | None = None,
    layout: str | None = None,
    rel_shape: PerSample[list[float]] | None = None,
    shape: PerSample[list[int]] | None = None,
    src_dims: PerSample[list[int]] | None = None,
) -> Data:
    """Reinterpret the bytes of data as another dtype and shape.

    Args:
        data: Data of any shape and dtype.
        shape_input: New shape of each sample, as an input: 1-D integers, in elements of the new dtype.
        dtype: New dtype. By default the input's dtype. If no shape is passed, the number of elements on the last axis
            changes so that the number of bytes stays the same.
        layout: Layout of the output. By default the output has the input's layout if the number of axes doesn't change,
            and no layout otherwise.
        rel_shape: Factors by which the input's extents are multiplied; see `reshape`.
        shape: New shape, in elements of the new dtype. One extent may be -1; it is then computed from the number of
            bytes.
        src_dims: For each output axis, the input axis whose extent is used; see `reshape`.

    Raises:
        RuntimeError: the number of bytes would change, arguments contradict each other, or the layout has the wrong
            length.
    """
    values = (shape_input, dtype, layout, rel_shape, shape, src_dims)
    if all(value is None for value in values):
        raise RuntimeError("reinterpret needs a type, a shape or a layout")
    kind = dtype or data.dtype
    old = list(data.shape)
    new = _new_extents(old, shape_input, rel_shape, shape, src_dims)
    if shape_input is None and shape is None and rel_shape is None:
        new = _convert_last_extent(new, data.dtype, kind)
    if data.nbytes % kind.itemsize:
        raise RuntimeError(
            f"the input must be a whole number of {kind.itemsize}-byte elements, got {data.nbytes} bytes"
        )
    extents = _fill_extent(new, old, data.nbytes // kind.itemsize)
    if layout and len(layout) != len(extents):
        raise RuntimeError(f"requested layout {layout!r} is not compatible with a {len(extents)}D shape")
    if not data.numel():
        return data.new_empty(extents, dtype=kind)
    if kind == data.dtype:
        return data.reshape(extents)  # `reshape` keeps the gradient
    return _as_type(data, kind).view(extents)


def _convert_last_extent(extents: list[int], old: torch.dtype, new: torch.dtype) -> list[int]:
    """Convert the last extent from elements of the dtype `old` to elements of the dtype `new`."""
    if not extents:
        return extents
    size = extents[-1] * old.itemsize
    if size % new.itemsize:
        raise RuntimeError(f"the last axis must be a whole number of {new.itemsize}-byte elements, got {size} bytes")
    return [*extents[:-1], size // new.itemsize]


def _as_type(data: Tensor, dtype: torch.dtype) -> Tensor:
    flat = data.reshape(-1)
    if flat.storage_offset() * data.itemsize % dtype.itemsize or not flat.is_contiguous():
        flat = flat.clone()  # the copy's memory is aligned for elements of the new dtype
    return flat.view(dtype)


@operator(layout="", deprecated={"type": "dtype"})
def shapes(data: Data, /, *, dtype: DType = torch.int64) -> Data:
    """Return the shape of each sample as a 1-D tensor.

    Args:
        data: Data of any shape and dtype.
        dtype: Output dtype: int32, uint32, int64, uint64, float32 or float64. By default int64.
    """
    return extents_of(data.shape, dtype).to(data.device)


deprecate(shapes, "DataNode.shape()")
