"""Operators on any data: constants, conversion, copies, permutation, and properties of a batch."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import (
    Arguments,
    BatchOutput,
    BatchSize,
    Column,
    Data,
    DType,
    Out,
    PerSample,
    SampleIndices,
    Takes,
    one_of,
    per_sample,
    shares,
)
from torchdali.kernels.convert import convert, convert_number
from torchdali.kernels.memory import place, place_result
from torchdali.tensors import TensorList

__all__ = [
    "cast", "cast_like", "constant", "copy", "full", "full_like", "get_property", "ones", "ones_like",
    "permute_batch", "zeros", "zeros_like",
]  # fmt: skip

_PROPERTIES = ("source_info", "layout")

Batch = Annotated[TensorList, Takes()]

_MATERIALISED = 1 << 20  # bytes of a batch of constants, up to which each sample has its own memory
_FEW = 1 << 12  # the same, up to which it is kept from batch to batch
_SHAPE_TYPES = (
    torch.int32, torch.uint32, torch.int64, torch.uint64, torch.float32, torch.float64,
)  # fmt: skip


def _given_layout(layouts: tuple[str, ...], arguments: Any) -> str:
    return str(arguments["layout"] or "")


# ---------------------------------------------------------------- conversion and copies


@operator(marks=("levels",))
def cast(data: Data, /, *, dtype: DType, out: Out = None) -> Data:
    """Convert to another element type.

    Floats are rounded half away from zero, everything saturates: 300 becomes 255 in uint8. Nothing is rescaled.

    Args:
        data: Any shape and type.
        dtype: Output dtype.
    """
    return _convert(data, dtype, out)


@chunk(cast)
def _cast_batch(data: Tensor, a: Arguments) -> Tensor:
    return cast.body(data, dtype=a.dtype, out=a.out)


@operator
def cast_like(data: Data, other: Data, /, *, out: Out = None) -> Data:
    """Convert to the element type of another input; see `cast`.

    Args:
        data: Any shape and type.
        other: Only its type counts.
    """
    return _convert(data, other.dtype, out)


def _convert(data: Tensor, dtype: torch.dtype, out: Tensor | None) -> Tensor:
    """Convert; if that is all in one step, into the batch."""
    if dtype != torch.float32 or data.dtype.itemsize > 4 or data.requires_grad:
        return convert(data, dtype)
    if data.dtype == dtype:
        return place_result(data, out)
    return place(out, data.shape, dtype, data.device).copy_(data)


@operator(marks=("levels",))
def copy(data: Data, /, *, out: Out = None) -> Data:
    """Copy.

    Args:
        data: Any shape and type.
    """
    if data.requires_grad:
        return data.clone()
    return place(out, data.shape, data.dtype, data.device).copy_(data)


@chunk(copy)
def _copy_batch(data: Tensor, a: Arguments) -> Tensor:
    return copy.body(data, out=a.out)


@operator(over="batch", marks=("levels", "anywhere"))
def _to_device(data: Batch, /) -> BatchOutput:
    """Return the batch: the executor has brought it to the device of the node."""
    return data


# ---------------------------------------------------------------- constants


@operator(over="batch", layout=_given_layout)
def constant(
    *,
    dtype: DType | None = None,
    fdata: list[float] | None = None,
    idata: list[int] | None = None,
    layout: str = "",
    shape: list[int] | None = None,
    size: BatchSize,
) -> Data:
    """Return the same data for every sample.

    Args:
        dtype: Output dtype, rounded and saturated; float32 for ``fdata``, int32 for ``idata`` when None.
        fdata: Floating values in row-major order, or one for all elements.
        idata: Integer values, likewise.
        layout: Layout of the output.
        shape: Shape of a sample; 1D when None.

    Raises:
        RuntimeError: not exactly one of ``fdata`` and ``idata`` is given, or the number of values or the layout
            does not fit the shape.
    """
    if (fdata is None) == (idata is None):
        raise RuntimeError("constant: give either fdata or idata")
    values = tuple(fdata if fdata is not None else idata or ())
    kind = dtype or (torch.float32 if fdata is not None else torch.int32)
    extents = (len(values),) if shape is None else tuple(shape)
    _check_layout(layout, len(extents))
    tensor = _constant(values, kind, extents)
    if size * tensor.nbytes <= _FEW:
        return _repeat(values, kind, extents, size).clone()
    if size * tensor.nbytes <= _MATERIALISED:
        return tensor.repeat(size, *[1] * tensor.ndim)
    return tensor.clone().expand(size, *tensor.shape)  # a copy: the user's changes must not come back


@functools.lru_cache(maxsize=256)
def _constant(values: tuple[float, ...], dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    if len(values) not in (1, math.prod(shape)):
        raise RuntimeError(f"constant: {len(values)} values do not fit the shape {list(shape)}")
    tensor = torch.tensor([convert_number(value, dtype) for value in values], dtype=dtype)
    return tensor.expand(math.prod(shape)).reshape(shape)


@functools.lru_cache(maxsize=256)
def _repeat(values: tuple[float, ...], dtype: torch.dtype, shape: tuple[int, ...], size: int) -> Tensor:
    return _constant(values, dtype, shape).repeat(size, *[1] * len(shape))


@operator
def full_like(data_like: Data, fill_value: Data, /) -> Data:
    """Return data of the shape and type of an input, filled with another.

    Args:
        data_like: Gives shape, type and layout.
        fill_value: A number, or values that broadcast to the shape; it is converted as by `cast`.
    """
    return _spread(convert(fill_value, data_like.dtype), tuple(data_like.shape))


@operator
def ones_like(data_like: Data, /, *, dtype: DType | None = None, out: Out = None) -> Data:
    """Return ones in the shape of an input.

    Args:
        data_like: Gives shape and layout.
        dtype: Output dtype; the input's dtype if None.
    """
    return place(out, data_like.shape, dtype or data_like.dtype, data_like.device).fill_(1)


@chunk(ones_like)
def _ones_batch(data: Tensor, a: Arguments) -> Tensor:
    return ones_like.body(data, dtype=a.dtype, out=a.out)


@operator
def zeros_like(data_like: Data, /, *, dtype: DType | None = None, out: Out = None) -> Data:
    """Return zeros in the shape of an input.

    Args:
        data_like: Gives shape and layout.
        dtype: Output dtype; the input's dtype if None.
    """
    return place(out, data_like.shape, dtype or data_like.dtype, data_like.device).zero_()


@chunk(zeros_like)
def _zeros_batch(data: Tensor, a: Arguments) -> Tensor:
    return zeros_like.body(data, dtype=a.dtype, out=a.out)


@operator(layout=_given_layout)
def full(fill_value: Data, /, *, layout: str | None = None, shape: PerSample[list[int]] | None = None) -> Data:
    """Return data of a shape, filled with an input.

    Args:
        fill_value: A number, or values that broadcast to the shape; gives the type.
        layout: Layout of the output.
        shape: Shape of the output; 0D when None, and then the first element is taken.

    Raises:
        RuntimeError: the layout does not fit the shape, or the input does not broadcast to it.
    """
    extents = _extents(shape)
    _check_layout(layout, len(extents))
    if shape is None:
        return fill_value.reshape(-1)[0].clone()
    return _spread(fill_value, extents)


@chunk(full)
def _full_batch(fill_value: Tensor, a: Arguments) -> Tensor:
    extents = _extents(a.shape)
    _check_layout(a.layout, len(extents))
    if a.shape is None:
        return fill_value.flatten(1)[:, 0].clone() if fill_value.ndim > 1 else fill_value.clone()
    shape = fill_value.shape[1:]
    while len(shape) > len(extents) and shape[0] == 1:
        shape = shape[1:]
    aligned = (len(fill_value), *[1] * (len(extents) - len(shape)), *shape)
    return fill_value.reshape(aligned).expand(len(fill_value), *extents).contiguous()


def _spread(value: Tensor, extents: tuple[int, ...]) -> Tensor:
    """Broadcast to a shape; leading axes of extent 1 that it does not have are dropped."""
    while value.ndim > len(extents) and value.shape[0] == 1:
        value = value[0]
    return value.expand(extents).contiguous()


def fill_batch(
    make: Callable[..., Tensor],
    size: int,
    *,
    dtype: DType = torch.int32,
    layout: str | None = None,
    shape: PerSample[list[int]] | None = None,
) -> BatchOutput:
    """Make a batch of one number.

    Args:
        dtype: Output dtype.
        layout: Layout of the output.
        shape: Shape of a sample; 0D when None.
    """
    if not isinstance(shape, Column):
        extents = _extents(shape)
        _check_layout(layout, len(extents))
        return make((size, *extents), dtype=dtype)
    each = [_extents(s) for s in shape]
    _check_layout(layout, len(each[0]) if each else 0)
    return [make(extents, dtype=dtype) for extents in each]


@operator(over="batch", separable=True, layout=_given_layout)
def ones(*, size: BatchSize, **arguments: Annotated[Any, shares(fill_batch)]) -> BatchOutput:
    """Return ones.

    Raises:
        RuntimeError: the layout does not fit the shape, or an extent is negative.
    """
    return fill_batch(torch.ones, size, **arguments)


@operator(over="batch", separable=True, layout=_given_layout)
def zeros(*, size: BatchSize, **arguments: Annotated[Any, shares(fill_batch)]) -> BatchOutput:
    """Return zeros.

    Raises:
        RuntimeError: the layout does not fit the shape, or an extent is negative.
    """
    return fill_batch(torch.zeros, size, **arguments)


def _extents(shape: Any) -> tuple[int, ...]:
    """Return a shape given as a list, as a single number, or not at all."""
    sizes = [] if shape is None else shape if isinstance(shape, list) else [shape]
    extents = tuple(map(int, sizes))
    if min(extents, default=0) < 0:
        raise RuntimeError(f"shape has a negative extent: {list(extents)}")
    return extents


def _check_layout(layout: str | None, ndim: int) -> None:
    if layout and len(layout) != ndim:
        raise RuntimeError(
            f"the layout {layout!r} has {len(layout)} dimensions, but the shape of the output has {ndim}"
        )


# ---------------------------------------------------------------- about a batch


@operator(over="batch")
def permute_batch(data: Batch, /, *, indices: PerSample[SampleIndices]) -> BatchOutput:
    """Return the samples of the batch in another order.

    Args:
        data: Any.
        indices: Which sample comes to each place; one number per sample, or a list for the whole batch.

    Raises:
        RuntimeError: more or fewer indices than samples, or an index out of range.
    """
    order = [_single(index) for index in indices]
    _check_indices(order, len(data))
    dense, infos = data.dense(), data.source_infos
    moved = None if infos is None else [infos[i] for i in order]
    if dense is not None and dense.nbytes <= _AT_ONCE * len(dense):
        picked = dense.index_select(0, torch.tensor(order, device=dense.device))
        return TensorList.from_dense(picked, data.layout(), moved)
    samples = data.samples()  # one by one, large ones get memory that was used before
    return TensorList.from_samples(
        [samples[i].clone() for i in order], data.layout(), data.torch_dtype, data.ndim(), moved
    )


_AT_ONCE = 1 << 18  # bytes of a sample; above, samples are copied one by one


def _single(index: Any) -> int:
    if isinstance(index, list):
        raise RuntimeError(f"indices must be one number per sample (0D), not {index}")
    return int(index)


def _check_indices(order: Sequence[int], size: int) -> None:
    if len(order) != size:
        raise RuntimeError(f"there are {len(order)} indices for a batch of {size} samples")
    for at, index in enumerate(order):
        if not 0 <= index < size:
            raise RuntimeError(f"indices[{at}] = {index} is not a sample of a batch of {size} samples")


@operator(over="batch", layout="", marks=("anywhere",))
def get_property(data: Batch, /, *, key: Annotated[str, one_of(_PROPERTIES)]) -> BatchOutput:
    """Return a property of each sample, as text: 1D uint8.

    Args:
        data: Any.
        key: ``"source_info"``: where the sample comes from (the path of its file as the reader knows it, "" where
            nothing is known); ``"layout"``: names of the axes.

    Raises:
        RuntimeError: an unknown key.
    """
    if key not in _PROPERTIES:
        raise RuntimeError(f"unknown property {key!r}: it is 'source_info' or 'layout'")
    texts = per_sample(data.layout(), len(data)) if key == "layout" else data.source_infos
    return [_bytes(text) for text in texts or [""] * len(data)]


def _bytes(text: str) -> Tensor:
    return torch.tensor(list(text.encode("utf-8", "surrogateescape")), dtype=torch.uint8)


@operator(layout="", marks=("anywhere",))
def _shape(data: Data, /, *, dtype: DType = torch.int64) -> Data:
    """Return the shape of each sample, 1D.

    Raises:
        RuntimeError: ``dtype`` is not int32, uint32, int64, uint64, float32 or float64.
    """
    return extents_of(data.shape, dtype)


@chunk(_shape)
def _shape_batch(data: Tensor, a: Arguments) -> Tensor:
    return extents_of(data.shape[1:], a.dtype).repeat(len(data), 1)


def extents_of(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Return a shape as 1D data; RuntimeError for types that shapes are not given in."""
    if dtype not in _SHAPE_TYPES:
        names = ", ".join(str(kind).removeprefix("torch.") for kind in _SHAPE_TYPES)
        raise RuntimeError(f"unsupported type for a shape: {dtype}; it is one of {names}")
    return torch.tensor(shape, dtype=dtype)
