"""Operators on data of any shape: dtype conversion, copies, constants, permutation, and properties of samples."""

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
    InputConstraints,
    Out,
    PerSample,
    SampleIndices,
    one_of,
    per_sample,
    shares,
)
from torchdali.kernels.convert import convert, convert_number
from torchdali.kernels.memory import copy_to_out, prepare_out
from torchdali.tensors import TensorList

__all__ = [
    "cast", "cast_like", "constant", "copy", "full", "full_like", "get_property", "ones", "ones_like",
    "permute_batch", "zeros", "zeros_like",
]  # fmt: skip

_PROPERTIES = ("source_info", "layout")

Batch = Annotated[TensorList, InputConstraints()]

_MAX_REPEATED_BYTES = 1 << 20  # maximum bytes of a batch of constants in which each sample has its own memory
_MAX_CACHED_BYTES = 1 << 12  # maximum bytes of a batch of constants that is cached
_SHAPE_TYPES = (
    torch.int32, torch.uint32, torch.int64, torch.uint64, torch.float32, torch.float64,
)  # fmt: skip


def _layout_argument(layouts: tuple[str, ...], arguments: Any) -> str:
    return str(arguments["layout"] or "")


# ---------------------------------------------------------------- conversion and copies


@operator(marks=("levels",))
def cast(data: Data, /, *, dtype: DType, out: Out = None) -> Data:
    """Convert data to another dtype, without rescaling.

    Values outside of the dtype's range are saturated: 300 becomes 255 in uint8. From floats to integers, values are
    rounded, and halves are rounded away from zero.

    Args:
        data: Data of any shape and dtype.
        dtype: Output dtype, to which the data is converted.
    """
    return _convert(data, dtype, out)


@chunk(cast)
def _cast_batch(data: Tensor, a: Arguments) -> Tensor:
    return cast.implementation(data, dtype=a.dtype, out=a.out)


@operator
def cast_like(data: Data, other: Data, /, *, out: Out = None) -> Data:
    """Convert data to the dtype of another input, as `cast` does.

    Args:
        data: Data of any shape and dtype.
        other: Data with the output dtype; its values and its shape are ignored.
    """
    return _convert(data, other.dtype, out)


def _convert(data: Tensor, dtype: torch.dtype, out: Tensor | None) -> Tensor:
    """Convert data to a dtype. The result is written into `out` if PyTorch can convert the data while copying it."""
    if dtype != torch.float32 or data.dtype.itemsize > 4 or data.requires_grad:
        return convert(data, dtype)
    if data.dtype == dtype:
        return copy_to_out(data, out)
    return prepare_out(out, data.shape, dtype, data.device).copy_(data)


@operator(marks=("levels",))
def copy(data: Data, /, *, out: Out = None) -> Data:
    """Return a copy of the data.

    Args:
        data: Data of any shape and dtype.
    """
    if data.requires_grad:
        return data.clone()
    return prepare_out(out, data.shape, data.dtype, data.device).copy_(data)


@chunk(copy)
def _copy_batch(data: Tensor, a: Arguments) -> Tensor:
    return copy.implementation(data, out=a.out)


@operator(over="batch", marks=("levels", "anywhere"))
def _to_device(data: Batch, /) -> BatchOutput:
    """Return the batch unchanged. The executor copies the batch to the operator's device before the call."""
    return data


# ---------------------------------------------------------------- constants


@operator(over="batch", layout=_layout_argument)
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
        dtype: Output dtype; values are rounded and saturated. Default: float32 for ``fdata``, int32 for ``idata``.
        fdata: Float values in row-major order, or one value for all elements.
        idata: Integer values in row-major order, or one value for all elements.
        layout: Layout of the output. Default: no layout.
        shape: Shape of a sample. Default: 1D, with one element per value.

    Raises:
        RuntimeError: both or neither of ``fdata`` and ``idata`` are passed, or the number of values or the layout
            doesn't fit the shape.
    """
    if (fdata is None) == (idata is None):
        raise RuntimeError("constant: pass either fdata or idata")
    values = tuple(fdata if fdata is not None else idata or ())
    kind = dtype or (torch.float32 if fdata is not None else torch.int32)
    extents = (len(values),) if shape is None else tuple(shape)
    _check_layout(layout, len(extents))
    tensor = _constant(values, kind, extents)
    if size * tensor.nbytes <= _MAX_CACHED_BYTES:
        return _repeat(values, kind, extents, size).clone()
    if size * tensor.nbytes <= _MAX_REPEATED_BYTES:
        return tensor.repeat(size, *[1] * tensor.ndim)
    return tensor.clone().expand(size, *tensor.shape)  # a copy, so that the user can't change the cached tensor


@functools.lru_cache(maxsize=256)
def _constant(values: tuple[float, ...], dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    if len(values) not in (1, math.prod(shape)):
        raise RuntimeError(f"constant: the values must fill the shape {list(shape)}, got {len(values)} values")
    tensor = torch.tensor([convert_number(value, dtype) for value in values], dtype=dtype)
    return tensor.expand(math.prod(shape)).reshape(shape)


@functools.lru_cache(maxsize=256)
def _repeat(values: tuple[float, ...], dtype: torch.dtype, shape: tuple[int, ...], size: int) -> Tensor:
    return _constant(values, dtype, shape).repeat(size, *[1] * len(shape))


@operator
def full_like(data_like: Data, fill_value: Data, /) -> Data:
    """Return data with the shape and dtype of one input and the values of another input.

    Args:
        data_like: Data that determines the output's shape, dtype and layout; its values are ignored.
        fill_value: A number, or values that can be broadcast to the shape of ``data_like``. The values are converted as
            in `cast`.
    """
    return _broadcast(convert(fill_value, data_like.dtype), tuple(data_like.shape))


@operator
def ones_like(data_like: Data, /, *, dtype: DType | None = None, out: Out = None) -> Data:
    """Return ones with the shape of an input.

    Args:
        data_like: Data that determines the output's shape and layout; its values are ignored.
        dtype: Output dtype. Default: the input's dtype.
    """
    return prepare_out(out, data_like.shape, dtype or data_like.dtype, data_like.device).fill_(1)


@chunk(ones_like)
def _ones_batch(data: Tensor, a: Arguments) -> Tensor:
    return ones_like.implementation(data, dtype=a.dtype, out=a.out)


@operator
def zeros_like(data_like: Data, /, *, dtype: DType | None = None, out: Out = None) -> Data:
    """Return zeros with the shape of an input.

    Args:
        data_like: Data that determines the output's shape and layout; its values are ignored.
        dtype: Output dtype. Default: the input's dtype.
    """
    return prepare_out(out, data_like.shape, dtype or data_like.dtype, data_like.device).zero_()


@chunk(zeros_like)
def _zeros_batch(data: Tensor, a: Arguments) -> Tensor:
    return zeros_like.implementation(data, dtype=a.dtype, out=a.out)


@operator(layout=_layout_argument)
def full(fill_value: Data, /, *, layout: str | None = None, shape: PerSample[list[int]] | None = None) -> Data:
    """Broadcast an input to a shape.

    Args:
        fill_value: A number, or values that can be broadcast to the shape, in the output's dtype.
        layout: Layout of the output. Default: no layout.
        shape: Shape of the output. Default: the output is a scalar, the first element of ``fill_value``.

    Raises:
        RuntimeError: the layout doesn't fit the shape, or the input can't be broadcast to the shape.
    """
    extents = _extents(shape)
    _check_layout(layout, len(extents))
    if shape is None:
        return fill_value.reshape(-1)[0].clone()
    return _broadcast(fill_value, extents)


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


def _broadcast(value: Tensor, extents: tuple[int, ...]) -> Tensor:
    """Broadcast a value to a shape. If the value has more axes than the shape, leading axes of size 1 are dropped."""
    while value.ndim > len(extents) and value.shape[0] == 1:
        value = value[0]
    return value.expand(extents).contiguous()


def fill_batch(
    create: Callable[..., Tensor],
    size: int,
    *,
    dtype: DType = torch.int32,
    layout: str | None = None,
    shape: PerSample[list[int]] | None = None,
) -> BatchOutput:
    """Create a batch in which all elements have the same value.

    Args:
        dtype: Output dtype. Default: int32.
        layout: Layout of the output. Default: no layout.
        shape: Shape of a sample. Default: each sample is a scalar.
    """
    if not isinstance(shape, Column):
        extents = _extents(shape)
        _check_layout(layout, len(extents))
        return create((size, *extents), dtype=dtype)
    shapes = [_extents(s) for s in shape]
    _check_layout(layout, len(shapes[0]) if shapes else 0)
    return [create(extents, dtype=dtype) for extents in shapes]


@operator(over="batch", separable=True, layout=_layout_argument)
def ones(*, size: BatchSize, **arguments: Annotated[Any, shares(fill_batch)]) -> BatchOutput:
    """Return a batch of ones.

    Raises:
        RuntimeError: the layout doesn't fit the shape, or a size in the shape is negative.
    """
    return fill_batch(torch.ones, size, **arguments)


@operator(over="batch", separable=True, layout=_layout_argument)
def zeros(*, size: BatchSize, **arguments: Annotated[Any, shares(fill_batch)]) -> BatchOutput:
    """Return a batch of zeros.

    Raises:
        RuntimeError: the layout doesn't fit the shape, or a size in the shape is negative.
    """
    return fill_batch(torch.zeros, size, **arguments)


def _extents(shape: Any) -> tuple[int, ...]:
    """Convert a shape argument to a tuple. The argument is a list, a single number, or None for a scalar."""
    sizes = [] if shape is None else shape if isinstance(shape, list) else [shape]
    extents = tuple(map(int, sizes))
    if min(extents, default=0) < 0:
        raise RuntimeError(f"shape must not be negative, got {list(extents)}")
    return extents


def _check_layout(layout: str | None, ndim: int) -> None:
    if layout and len(layout) != ndim:
        raise RuntimeError(
            f"the layout {layout!r} has {len(layout)} dimensions, but the shape of the output has {ndim}"
        )


# ---------------------------------------------------------------- about a batch


@operator(over="batch")
def permute_batch(data: Batch, /, *, indices: PerSample[SampleIndices]) -> BatchOutput:
    """Return the samples of a batch in another order.

    Args:
        data: Data of any shape and dtype.
        indices: Output sample i is input sample ``indices[i]``. Pass one number per sample, for example from another
            operator, or one list that is used for every batch.

    Raises:
        RuntimeError: the number of indices isn't the number of samples, or an index is out of range.
    """
    order = [_as_index(index) for index in indices]
    _check_indices(order, len(data))
    dense, infos = data.dense(), data.source_infos
    new_infos = None if infos is None else [infos[i] for i in order]
    if dense is not None and dense.nbytes <= _MAX_SAMPLE_BYTES * len(dense):
        picked = dense.index_select(0, torch.tensor(order, device=dense.device))
        return TensorList.from_dense(picked, data.layout(), new_infos)
    samples = data.samples()  # large samples are cloned one by one, so that they reuse freed memory
    return TensorList.from_samples(
        [samples[i].clone() for i in order], data.layout(), data.torch_dtype, data.ndim(), new_infos
    )


_MAX_SAMPLE_BYTES = 1 << 18  # maximum bytes per sample for copying a batch in one call


def _as_index(index: Any) -> int:
    if isinstance(index, list):
        raise RuntimeError(f"indices must be one number per sample (0D), got {index}")
    return int(index)


def _check_indices(order: Sequence[int], size: int) -> None:
    if len(order) != size:
        raise RuntimeError(f"indices must have one value per sample, got {len(order)} values for {size} samples")
    for position, index in enumerate(order):
        if not 0 <= index < size:
            raise RuntimeError(
                f"indices[{position}] must be a sample's index in a batch of {size} samples, got {index}"
            )


@operator(over="batch", layout="", marks=("anywhere",))
def get_property(data: Batch, /, *, key: Annotated[str, one_of(_PROPERTIES)]) -> BatchOutput:
    """Return a property of each sample as UTF-8 text, 1D uint8.

    Args:
        data: Data of any shape and dtype.
        key: ``"source_info"`` returns the sample's origin, for example the path of its file. The text is empty if the
            origin is unknown. ``"layout"`` returns the names of the sample's axes.

    Raises:
        RuntimeError: the key is unknown.
    """
    if key not in _PROPERTIES:
        raise RuntimeError(f"unknown property {key!r}; expected 'source_info' or 'layout'")
    texts = per_sample(data.layout(), len(data)) if key == "layout" else data.source_infos
    return [_encode_text(text) for text in texts or [""] * len(data)]


def _encode_text(text: str) -> Tensor:
    return torch.tensor(list(text.encode("utf-8", "surrogateescape")), dtype=torch.uint8)


@operator(layout="", marks=("anywhere",))
def _shape(data: Data, /, *, dtype: DType = torch.int64) -> Data:
    """Return the shape of each sample as 1D data.

    Raises:
        RuntimeError: ``dtype`` is not int32, uint32, int64, uint64, float32 or float64.
    """
    return extents_of(data.shape, dtype)


@chunk(_shape)
def _shape_batch(data: Tensor, a: Arguments) -> Tensor:
    return extents_of(data.shape[1:], a.dtype).repeat(len(data), 1)


def extents_of(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Return a shape as a 1D tensor.

    Raises:
        RuntimeError: the dtype is not supported for shapes.
    """
    if dtype not in _SHAPE_TYPES:
        names = ", ".join(str(kind).removeprefix("torch.") for kind in _SHAPE_TYPES)
        raise RuntimeError(f"dtype of a shape must be one of {names}, got {dtype}")
    return torch.tensor(shape, dtype=dtype)
