"""Messages in the databases of Caffe (`Datum`) and Caffe2 (`TensorProtos`).

Formats: https://github.com/BVLC/caffe/blob/master/src/caffe/proto/caffe.proto,
https://github.com/pytorch/pytorch/blob/main/caffe2/proto/caffe2.proto
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchdali.formats.protobuf import BYTES, VARINT, Field, read_fields, read_floats, read_integers

__all__ = ["Proto", "parse_datum", "parse_protos", "read_numbers"]

FLOAT, INT32, BYTE, STRING = 1, 2, 3, 4


def parse_datum(data: memoryview) -> tuple[tuple[int, int], int | None]:
    """Return the position of the data in a `Datum`, and the label.

    The position is the start and the end of the data. The label is None if the `Datum` has no label.

    Raises:
        ValueError: The message is damaged.
    """
    content, label = (0, 0), None
    for number, kind, begin, end in read_fields(data):
        if number == 4 and kind == BYTES:
            content = begin, end
        elif number == 5 and kind == VARINT:
            label = _to_int32(begin)
    return content, label


def _to_int32(value: int) -> int:
    low_bits = value & 0xFFFFFFFF
    return low_bits - (1 << 32) if low_bits >> 31 else low_bits


class Proto(NamedTuple):
    """One tensor of a `TensorProtos` message.

    Attributes:
        dims: Shape of the tensor.
        dtype: Number of the dtype; `FLOAT`, `INT32`, `BYTE` and `STRING` are supported.
        content: Start and end of a byte tensor's bytes, or of a string tensor's first string. None if the tensor
            has neither bytes nor strings.
        numbers: The fields that contain the numbers of a float32 or int32 tensor.
    """

    dims: tuple[int, ...]
    dtype: int
    content: tuple[int, int] | None
    numbers: tuple[Field, ...]


def parse_protos(data: memoryview) -> list[Proto]:
    """Return the tensors of a `TensorProtos` message.

    Raises:
        ValueError: The message is damaged.
    """
    return [_parse_proto(data, begin, end) for n, kind, begin, end in read_fields(data) if n == 1 and kind == BYTES]


def _parse_proto(data: memoryview, begin: int, end: int) -> Proto:
    dims: list[int] = []
    numbers: list[Field] = []
    dtype, content = 0, None
    for number, kind, start, stop in read_fields(data, begin, end):
        if number == 1:
            dims += read_integers(data, [(number, kind, start, stop)])
        elif number == 2 and kind == VARINT:
            dtype = start
        elif number in (5, 6) and kind == BYTES and content is None:
            content = start, stop
        elif number in (3, 4):
            numbers.append((number, kind, start, stop))
    return Proto(tuple(dims), dtype, content, tuple(numbers))


def read_numbers(data: memoryview, proto: Proto) -> npt.NDArray[np.float32] | npt.NDArray[np.int32]:
    """Return the numbers of a float32 or int32 tensor.

    Raises:
        ValueError: The tensor isn't a float32 or int32 tensor, or is damaged.
    """
    if proto.dtype == FLOAT:
        return read_floats(data, proto.numbers)
    if proto.dtype != INT32:
        raise ValueError(f"a tensor's type must be float ({FLOAT}) or int32 ({INT32}), got {proto.dtype}")
    return np.array([_to_int32(value) for value in read_integers(data, proto.numbers)], np.int32)
