"""Read and write protocol buffers (the few messages that containers need) without generated code.

Format: https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

__all__ = [
    "BYTES",
    "FIXED32",
    "FIXED64",
    "VARINT",
    "Field",
    "read_fields",
    "read_floats",
    "read_integers",
    "read_varint",
    "tag",
    "write_bytes",
    "write_varint",
]  # fmt: skip

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED_SIZES = {FIXED64: 8, FIXED32: 4}
_MAX_VARINT_BYTES = 10  # maximum number of bytes of a varint (a number of variable length)

Buffer = memoryview
Field = tuple[int, int, int, int]
"""Field number, wire type, and start and end of the content; see `read_fields`."""


def read_varint(data: Buffer, offset: int, end: int) -> tuple[int, int]:
    """Read a number of variable length; return the number, and the position after the number.

    Raises:
        ValueError: The number does not end before ``end``, or has too many bytes.
    """
    value = shift = 0
    last = min(end, offset + _MAX_VARINT_BYTES)
    while offset < last:
        byte = data[offset]
        offset += 1
        if byte < 128:
            return (value | byte << shift) & 0xFFFFFFFFFFFFFFFF, offset
        value |= (byte & 127) << shift
        shift += 7
    raise ValueError(f"the number at byte {offset} does not end within 10 bytes or before the end of the data")


def to_signed(value: int) -> int:
    """Convert an unsigned 64-bit number to the signed number with the same bits."""
    return value - (1 << 64) if value >> 63 else value


def read_packed(data: Buffer, offset: int, end: int) -> list[int]:
    """Return the signed numbers of variable length between two positions of the data."""
    values = []
    while offset < end:
        value, offset = read_varint(data, offset, end)
        values.append(to_signed(value))
    return values


def read_integers(data: Buffer, fields: Iterable[Field]) -> list[int]:
    """Return the signed numbers in fields; a field may contain one number or several packed numbers."""
    values = []
    for _, kind, begin, end in fields:
        if kind == BYTES:
            values += read_packed(data, begin, end)
        elif kind == VARINT:
            values.append(to_signed(begin))
    return values


def read_floats(data: Buffer, fields: Iterable[Field]) -> npt.NDArray[np.float32]:
    """Return the float32 numbers in fields; a field may contain one number or several packed numbers.

    Raises:
        ValueError: The number of bytes isn't a multiple of 4.
    """
    content = bytearray().join(data[begin:end] for _, kind, begin, end in fields if kind in (BYTES, FIXED32))
    if len(content) % 4:
        raise ValueError(f"{len(content)} bytes are not a whole number of float32 values")
    return np.frombuffer(content, np.float32)


def read_fields(data: Buffer, offset: int = 0, end: int | None = None) -> Iterator[Field]:
    """Yield the fields of a message: field number, wire type, and start and end of the content.

    For the wire type `VARINT`, the third item is the number itself, and the fourth is 0.

    Raises:
        ValueError: The message is damaged.
    """
    end = len(data) if end is None else end
    while offset < end:
        key, offset = read_varint(data, offset, end)
        kind = key & 7
        if kind == VARINT:
            value, offset = read_varint(data, offset, end)
            yield key >> 3, kind, value, 0
            continue
        if kind == BYTES:
            length, offset = read_varint(data, offset, end)
        elif kind in _FIXED_SIZES:
            length = _FIXED_SIZES[kind]
        else:
            raise ValueError(f"unknown wire type {kind} of the field at byte {offset}")
        if offset + length > end:
            raise ValueError(
                f"a field of {length} bytes at byte {offset} reaches beyond its message, which ends at {end}"
            )
        yield key >> 3, kind, offset, offset + length
        offset += length


# ---------------------------------------------------------------- writing


def tag(number: int, kind: int) -> bytes:
    """Return the first bytes of a field, which state its number and wire type."""
    return write_varint(number << 3 | kind)


def write_varint(value: int) -> bytes:
    """Return a number in the variable-length format."""
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_bytes(number: int, content: bytes) -> bytes:
    """Return a field that contains bytes, or another message."""
    return tag(number, BYTES) + write_varint(len(content)) + content
