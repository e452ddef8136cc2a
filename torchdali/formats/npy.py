"""NumPy arrays in the format of `numpy.save`.

Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
"""

from __future__ import annotations

import ast
import functools
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchdali.codecs.signatures import describe_content
from torchdali.forks import ForkSafeLock
from torchdali.formats.storage import Bytes

__all__ = ["HEAD_SIZE", "NpyHeader", "Slab", "check_size", "find_slab", "read_array", "read_header", "to_tensor"]

_MAGIC = b"\x93NUMPY"
_DTYPES = {  # NumPy type codes without the byte order, and their torch dtypes
    "b1": torch.bool, "i1": torch.int8, "i2": torch.int16, "i4": torch.int32, "i8": torch.int64, "u1": torch.uint8,
    "u2": torch.uint16, "u4": torch.uint32, "u8": torch.uint64, "f2": torch.float16, "f4": torch.float32,
    "f8": torch.float64,
}  # fmt: skip
_MAX_HEADER_SIZE = 1 << 16
HEAD_SIZE = _MAX_HEADER_SIZE + 12
"""Number of bytes at the start of a file that always contain the whole header."""
_COMMON_HEADER = re.compile(
    rb"\{'descr': '([^']*)', 'fortran_order': (True|False), 'shape': \((|\d+,|\d+(?:, ?\d+)+,?)\), ?\}\s*"
)
_parse_lock = ForkSafeLock()


class NpyHeader(NamedTuple):
    """Description of an array.

    Attributes:
        fortran: True if the array is stored in Fortran order.
        offset: Offset of the elements in the file.
    """

    dtype: torch.dtype
    shape: tuple[int, ...]
    fortran: bool
    offset: int


def read_header(data: Bytes) -> NpyHeader:
    """Read the header of a file.

    Raises:
        ValueError: The data is not an array, or the array's dtype does not exist in torch.
    """
    head = data[:12].tobytes()
    if head[:6] != _MAGIC or len(head) < 12:
        raise ValueError(f"this is not a numpy file: it does not begin with \\x93NUMPY{describe_content(data)}")
    version, wide = head[6], head[6] > 1
    if version not in (1, 2, 3):
        raise ValueError(f"the version of a NumPy file must be 1, 2 or 3, got {version}")
    begin = 12 if wide else 10
    length = int.from_bytes(head[8:begin], "little")
    if length > _MAX_HEADER_SIZE or begin + length > len(data):
        raise ValueError(f"error extracting header length: {length} bytes")
    return _parse_header(data[begin : begin + length].tobytes(), begin + length)


@functools.lru_cache(maxsize=256)
def _parse_header(text: bytes, offset: int) -> NpyHeader:
    try:
        fields = _parse_fields(text)
        kind, fortran, shape = fields["descr"], fields["fortran_order"], fields["shape"]
        shape = tuple(extent if type(extent) is int else -1 for extent in shape)
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        raise ValueError(f"the header must describe an array, got {text[:80]!r}") from None
    if not isinstance(kind, str) or kind[1:] not in _DTYPES:
        raise ValueError(f"unknown Numpy type string: {kind!r}")
    if kind[0] == ">":
        raise ValueError(f"big endian files are not supported: {kind!r}")
    if min(shape, default=0) < 0:
        raise ValueError(f"the shape in the header must consist of non-negative integers, got {shape}")
    return NpyHeader(_DTYPES[kind[1:]], shape, bool(fortran), offset)


def _parse_fields(text: bytes) -> Any:
    match = _COMMON_HEADER.fullmatch(text)
    if match is not None:
        shape = tuple(int(extent) for extent in match[3].split(b",") if extent)
        return {"descr": match[1].decode("latin1"), "fortran_order": match[2] == b"True", "shape": shape}
    # In CPython 3.11, parsing in several threads at the same time sometimes fails:
    # https://github.com/python/cpython/issues/106905
    with _parse_lock:
        return ast.literal_eval(text.decode("latin1").strip())


def read_array(data: Bytes) -> Tensor:
    """Return the array in a file's bytes as a tensor.

    The tensor shares the memory of the bytes if the elements are aligned. An array in Fortran order becomes a
    transposed view.

    Raises:
        ValueError: The data is not an array, is truncated, or has a dtype that does not exist in torch.
    """
    header = read_header(data)
    check_size(header, len(data))
    return to_tensor(header, data[header.offset : header.offset + _data_size(header)])


def check_size(header: NpyHeader, size: int) -> None:
    """Check that a file of `size` bytes is long enough for its array.

    Raises:
        ValueError: The file is too short.
    """
    if _data_size(header) > size - header.offset:
        raise ValueError(f"the array must have {_data_size(header)} bytes, got {size - header.offset}")


def _data_size(header: NpyHeader) -> int:
    return math.prod(header.shape) * header.dtype.itemsize


def to_tensor(header: NpyHeader, content: Bytes) -> Tensor:
    """Return the elements of an array as a tensor.

    The tensor shares the memory of `content` if the elements are aligned.
    """
    if content.ctypes.data % header.dtype.itemsize:
        content = content.copy()  # torch requires aligned elements
    flat = torch.from_numpy(content).view(header.dtype) if len(content) else torch.empty(0, dtype=header.dtype)
    if not header.fortran:
        return flat.reshape(header.shape)
    return flat.reshape(header.shape[::-1]).permute(*range(len(header.shape) - 1, -1, -1))


class Slab(NamedTuple):
    """A contiguous range of an array's outermost axis.

    Attributes:
        header: Header that describes only the slab.
        axis: Index of the outermost axis: the first axis; in Fortran order, the last axis.
        first: Start of the slab on this axis.
        size: Size of the slab in bytes.
    """

    header: NpyHeader
    axis: int
    first: int
    size: int


def find_slab(header: NpyHeader, axes: Sequence[int], starts: Sequence[int], extents: Sequence[int]) -> Slab:
    """Return the smallest slab that contains a rectangular region of an array.

    Return the whole array if the region reaches outside the array.

    Args:
        axes: Axes on which the region is smaller than the array. The region contains all other axes completely.
        starts: Index of the region's first element on each axis of `axes`.
        extents: Number of the region's elements on each axis of `axes`.
    """
    if not header.shape:
        return Slab(header, 0, 0, _data_size(header))
    axis = len(header.shape) - 1 if header.fortran else 0
    first, last = 0, header.shape[axis]
    inside = all(
        0 <= start <= start + extent <= header.shape[region_axis]
        for region_axis, start, extent in zip(axes, starts, extents, strict=True)
    )
    if inside and axis in axes:
        index = list(axes).index(axis)
        first, last = starts[index], starts[index] + extents[index]
    shape = (*header.shape[:axis], last - first, *header.shape[axis + 1 :])
    row_size = math.prod((*header.shape[:axis], *header.shape[axis + 1 :])) * header.dtype.itemsize
    slab_header = header._replace(shape=shape, offset=header.offset + first * row_size)
    return Slab(slab_header, axis, first, (last - first) * row_size)
