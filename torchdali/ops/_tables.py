"""Operators that look up numbers: one-hot encoding and lookup tables."""

from __future__ import annotations

import functools
import math
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import chunk, operator
from torchdali.declaration.schema import Arguments, BatchOutput, Data, DType, InputConstraints, Out
from torchdali.errors import batch_level
from torchdali.kernels.convert import convert, integer_limits
from torchdali.kernels.device_cache import device_cache
from torchdali.kernels.memory import Array, prepare_out
from torchdali.kernels.opencv import opencv_for
from torchdali.tensors import TensorList

__all__ = ["lookup_table", "one_hot"]

INTEGERS = (
    torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32, torch.int64,
)  # fmt: skip
NUMBERS = (*INTEGERS, torch.float32, torch.float64)
Batch = Annotated[TensorList, InputConstraints()]
Integers = Annotated[Tensor, InputConstraints(dtypes=INTEGERS)]

# ---------------------------------------------------------------- one-hot


@operator(over="batch", separable=True, layout="")
def one_hot(
    data: Batch,
    /,
    *,
    axis: int = -1,
    axis_name: str | None = None,
    dtype: DType = torch.float32,
    num_classes: int = 0,
    off_value: float = 0.0,
    on_value: float = 1.0,
) -> BatchOutput:
    """Encode class indices as one-hot vectors along a new axis.

    A vector is ``on_value`` at the class's index, and ``off_value`` elsewhere.

    Args:
        data: Class indices; floats are truncated. An index outside of ``0 .. num_classes - 1`` is encoded as
            ``off_value`` everywhere.
        axis: Position of the new axis. By default (-1) the new axis is the last one. If the position is -1 and all
            samples have a single element, all other axes are removed.
        axis_name: Letter of the new axis in the layout. By default the output has no layout.
        dtype: Output dtype: an integer dtype, float32 or float64. By default float32.
        num_classes: Number of classes: the extent of the new axis. By default 0.
        off_value: Value of the elements at all other indices. The value is converted to ``dtype`` as in C: it is
            truncated, and wraps around if it is outside the dtype's range. By default 0.
        on_value: Value of the element at the class's index, converted like ``off_value``. By default 1.

    Raises:
        RuntimeError: a dtype is unsupported, the axis is out of range, or ``axis_name`` is passed for data without a
            layout.
    """
    if not len(data):
        return TensorList.from_samples([])
    dense, layout, ndim = data.dense(), data.layout(), data.ndim()
    _check_types(data.torch_dtype, dtype)
    if not -1 <= axis <= ndim:
        raise RuntimeError(f"axis must be between -1 and {ndim}, got {axis}")
    if num_classes < 0:
        raise batch_level(RuntimeError(f"num_classes must not be negative, got {num_classes}"))
    samples = [] if dense is not None else data.samples()
    if axis == -1:
        if dense is not None and dense.numel() == len(dense):
            dense, layout, ndim = dense.reshape(-1), "", 0
        elif dense is None and all(sample.numel() == 1 for sample in samples):
            dense, layout, ndim = torch.cat([sample.reshape(1) for sample in samples]), "", 0
    encode = functools.partial(_encode, classes=num_classes, values=_on_off_tensors(on_value, off_value, dtype))
    layout = _encoded_layout(layout, ndim, axis, axis_name)
    if dense is not None:
        return TensorList.from_dense(encode(dense, axis=axis + 1 if axis >= 0 else -1), layout)
    return TensorList.from_samples([encode(s, axis=axis) for s in samples], layout)


def _check_types(input_type: torch.dtype | None, output_type: torch.dtype) -> None:
    for role, dtype in (("input", input_type), ("output", output_type)):
        if dtype not in NUMBERS:
            error = RuntimeError(f"unsupported {role} type: {str(dtype).removeprefix('torch.')}")
            raise batch_level(error) if role == "output" else error


def _encoded_layout(layout: str, ndim: int, axis: int, name: str | None) -> str:
    if name is None:
        return ""
    if len(name) != 1:
        raise batch_level(RuntimeError(f"axis_name must be one character, got {name!r}"))
    if len(layout) != ndim:
        raise RuntimeError(f"axis_name needs an input with a layout of {ndim} axes, got {layout!r}")
    position = axis if axis >= 0 else ndim
    return layout[:position] + name + layout[position:]


@functools.lru_cache(maxsize=64)
def _on_off_tensors(on: float, off: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    def to_tensor(value: float) -> Tensor:
        value = torch.tensor(value, dtype=torch.float32).item()
        return torch.tensor(_convert_like_c(value, dtype), dtype=dtype)

    return to_tensor(on), to_tensor(off)


def _convert_like_c(value: float, dtype: torch.dtype) -> float:
    """Convert a float to an integer dtype as C code on x86 does.

    The float is first converted to int32 or int64. A float that is out of range becomes the smallest int32 or int64.
    The resulting integer then wraps around to the range of `dtype`.
    """
    if dtype.is_floating_point:
        return value
    low, high = integer_limits(dtype)
    wide = dtype.itemsize == 8 or dtype == torch.uint32
    least = -(2**63) if wide else -(2**31)
    number = int(value) if least <= value < -least else least
    return (number - low) % (high - low + 1) + low


def _encode(data: Tensor, *, axis: int, classes: int, values: tuple[Tensor, Tensor]) -> Tensor:
    numbers = (data.view(torch.int64) if data.dtype == torch.uint64 else data).to(torch.int32)
    on, off = values
    position = axis % (numbers.ndim + 1)
    if data.is_cpu:
        return torch.from_numpy(_scatter(numbers.numpy(), position, classes, on.numpy(), off.numpy()))
    numbers = numbers.unsqueeze(position)
    shape = [1] * numbers.ndim
    shape[position] = classes
    hits = numbers == torch.arange(classes, dtype=torch.int32, device=data.device).view(shape)
    return torch.where(hits, on.to(data.device), off.to(data.device))


def _scatter(numbers: Array, axis: int, classes: int, on: Array, off: Array) -> Array:
    """Encode class indices by filling an array with `off` and writing `on` at the indices.

    This is faster than comparing the indices with every class.
    """
    shape = (*numbers.shape[:axis], classes, *numbers.shape[axis:])
    result = np.full(shape, off) if any(off.tobytes()) else np.zeros(shape, off.dtype)
    inner = math.prod(numbers.shape[axis:])
    flat = numbers.reshape(-1).astype(np.int64)
    positions, is_valid = np.arange(len(flat)), (flat >= 0) & (flat < classes)
    if inner > 1:  # the new axis isn't the last axis
        flat, positions = flat * inner + positions % inner, positions // inner
    flat += positions * (classes * inner)
    result.reshape(-1)[flat if is_valid.all() else flat[is_valid]] = on
    return result


# ---------------------------------------------------------------- tables

_KEY_COUNT = 1 << 16
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


@operator(deprecated={"output_dtype": "dtype"})
def lookup_table(
    data: Integers,
    /,
    *,
    default_value: float = 0.0,
    dtype: DType = torch.float32,
    keys: list[int] = [],  # noqa: B006  never changed
    values: list[float] = [],  # noqa: B006
    out: Out = None,
) -> Data:
    """Replace each number by its value in a table.

    Args:
        data: Integers of any dtype and shape.
        default_value: Value for numbers that are not in ``keys``. By default 0.
        dtype: Output dtype, to which the values are rounded and saturated. By default float32.
        keys: Numbers from 0 to 65535. If a number occurs twice, its last value is used. By default the table is empty.
        values: One value per key.

    Raises:
        RuntimeError: a key is out of range, or the numbers of keys and values differ.
    """
    table = _build_table(tuple(keys), tuple(values), default_value, dtype, data.device)
    if data.dtype == torch.uint8 and dtype in (torch.uint8, torch.float32):
        result = _look_up_bytes(data, table, out)
        if result is not None:
            return result
    return table.index_select(0, _table_indices(data).reshape(-1)).view(data.shape).view(dtype)


@chunk(lookup_table)
def _look_up_batch(data: Tensor, a: Arguments) -> Tensor:
    return lookup_table.implementation(data, **a.of(lookup_table.implementation), out=a.out)


def _look_up_bytes(data: Tensor, table: Tensor, out: Tensor | None) -> Tensor | None:
    if (cv2 := opencv_for(data)) is None:
        return None
    result = prepare_out(out, data.shape, table.dtype, data.device)
    row = data.contiguous().view(1, -1).numpy()
    cv2.LUT(row, table[:256].numpy(), result.view(1, -1).numpy())
    return result


def _table_indices(data: Tensor) -> Tensor:
    """Return the table index of each number."""
    if data.dtype in (torch.uint8, torch.uint16):
        return data.to(torch.int32)
    numbers = data.view(torch.int64) if data.dtype == torch.uint64 else data.to(torch.int64)
    return numbers.masked_fill((numbers < 0).logical_or_(numbers >= _KEY_COUNT), _KEY_COUNT)


@device_cache(maxsize=64)
def _build_table(
    keys: tuple[int, ...],
    values: tuple[float, ...],
    default: float,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """Return the table as a tensor: the values for the numbers below `_KEY_COUNT`, and one value for all other numbers.

    The tensor's dtype is signed if PyTorch can't index the unsigned dtype.
    """
    if len(keys) != len(values):
        raise RuntimeError(f"keys and values must have equal lengths, got {len(keys)} and {len(values)}")
    if not all(0 <= key < _KEY_COUNT for key in keys):
        raise RuntimeError(f"keys must be between 0 and {_KEY_COUNT - 1}")
    table = torch.full((_KEY_COUNT + 1,), default, dtype=torch.float32)
    for key, value in zip(keys, values, strict=True):
        table[key] = value
    table = convert(table, dtype).to(device)
    return table.view(_SIGNED[dtype]) if dtype in _SIGNED else table
