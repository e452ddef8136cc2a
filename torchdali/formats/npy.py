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

__all__ = ["HEAD", "NpyHeader", "Slab", "array", "check_size", "header", "slab", "tensor"]

_MAGIC = b"\x93NUMPY"
_KINDS = {  # NumPy type codes without the byte order, and their torch dtypes
    "b1": torch.bool, "i1": torch.int8, "i2": torch.int16, "i4": torch.int32, "i8": torch.int64, "u1": torch.uint8,
    "u2": torch.uint16, "u4": torch.uint32, "u8": torch.uint64, "f2": torch.float16, "f4": torch.float32,
    "f8": torch.float64,
}  # fmt: skip
_LONGEST_HEADER = 1 << 16
HEAD = _LONGEST_HEADER + 12
"""Number of bytes at the start of a file that always contain the whole header."""
_USUAL = re.compile(
    rb"\{'descr': '([^']*)', 'fortran_order': (True|False), 'shape': \((|\d+,|\d+(?:, ?\d+)+,?)\), ?\}\s*"
)
_parsing = ForkSafeLock()


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


def header(data: Bytes) -> NpyHeader:
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
    if length > _LONGEST_HEADER or begin + length > len(data):
        raise ValueError(f"error extracting header length: {length} bytes")
    return _parse(data[begin : begin + length].tobytes(), begin + length)


@functools.lru_cache(maxsize=256)
def _parse(text: bytes, offset: int) -> NpyHeader:
    try:
        fields = _fields(text)
        kind, fortran, shape = fields["descr"], fields["fortran_order"], fields["shape"]
        shape = tuple(extent if type(extent) is int else -1 for extent in shape)
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        raise ValueError(f"the header must describe an array, got {text[:80]!r}") from None
    if not isinstance(kind, str) or kind[1:] not in _KINDS:
        raise ValueError(f"unknown Numpy type string: {kind!r}")
    if kind[0] == ">":
        raise ValueError(f"big endian files are not supported: {kind!r}")
    if min(shape, default=0) < 0:
        raise ValueError(f"the shape in the header must consist of non-negative integers, got {shape}")
    return NpyHeader(_KINDS[kind[1:]], shape, bool(fortran), offset)


def _fields(text: bytes) -> Any:
    usual = _USUAL.fullmatch(text)
    if usual is not None:
        shape = tuple(int(extent) for extent in usual[3].split(b",") if extent)
        return {"descr": usual[1].decode("latin1"), "fortran_order": usual[2] == b"True", "shape": shape}
    # In CPython 3.11, parsing in several threads at the same time sometimes fails:
    # https://github.com/python/cpython/issues/106905
    with _parsing:
        return ast.literal_eval(text.decode("latin1").strip())


def array(data: Bytes) -> Tensor:
    """Return the array in a file's bytes as a tensor.

    The tensor shares the memory of the bytes if the elements are aligned. An array in Fortran order becomes a
    transposed view.

    Raises:
        ValueError: The data is not an array, is truncated, or has a dtype that does not exist in torch.
    """
    what = header(data)
    check_size(what, len(data))
    return tensor(what, data[what.offset : what.offset + _size(what)])


def check_size(what: NpyHeader, size: int) -> None:
    """Check that a file of `size` bytes is long enough for its array.

    Raises:
        ValueError: The file is too short.
    """
    if _size(what) > size - what.offset:
        raise ValueError(f"the array must have {_size(what)} bytes, got {size - what.offset}")


def _size(what: NpyHeader) -> int:
    return math.prod(what.shape) * what.dtype.itemsize


def tensor(what: NpyHeader, content: Bytes) -> Tensor:
    """Return the elements of an array as a tensor.

    The tensor shares the memory of `content` if the elements are aligned.
    """
    if content.ctypes.data % what.dtype.itemsize:
        content = content.copy()  # torch requires aligned elements
    flat = torch.from_numpy(content).view(what.dtype) if len(content) else torch.empty(0, dtype=what.dtype)
    if not what.fortran:
        return flat.reshape(what.shape)
    return flat.reshape(what.shape[::-1]).permute(*range(len(what.shape) - 1, -1, -1))


class Slab(NamedTuple):
    """A contiguous range of an array's outermost axis.

    Attributes:
        what: Header that describes only the slab.
        axis: Index of the outermost axis: the first axis; in Fortran order, the last axis.
        first: Start of the slab on this axis.
        size: Size of the slab in bytes.
    """

    what: NpyHeader
    axis: int
    first: int
    size: int


def slab(what: NpyHeader, axes: Sequence[int], starts: Sequence[int], extents: Sequence[int]) -> Slab:
    """Return the smallest slab that contains a rectangular region of an array.

    Return the whole array if the region reaches outside the array.

    Args:
        axes: Axes on which the region is smaller than the array. The region contains all other axes completely.
        starts: Index of the region's first element on each axis of `axes`.
        extents: Number of the region's elements on each axis of `axes`.
    """
    if not what.shape:
        return Slab(what, 0, 0, _size(what))
    axis = len(what.shape) - 1 if what.fortran else 0
    first, last = 0, what.shape[axis]
    inside = all(
        0 <= start <= start + extent <= what.shape[each]
        for each, start, extent in zip(axes, starts, extents, strict=True)
    )
    if inside and axis in axes:
        place = list(axes).index(axis)
        first, last = starts[place], starts[place] + extents[place]
    shape = (*what.shape[:axis], last - first, *what.shape[axis + 1 :])
    row = math.prod((*what.shape[:axis], *what.shape[axis + 1 :])) * what.dtype.itemsize
    part = what._replace(shape=shape, offset=what.offset + first * row)
    return Slab(part, axis, first, (last - first) * row)
