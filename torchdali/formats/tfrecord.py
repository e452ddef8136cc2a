"""TFRecord files: records of any length, usually one `tf.train.Example` each.

A record consists of its payload's length (8 bytes), a checksum of the length, the payload, and a checksum of the
payload (https://www.tensorflow.org/tutorials/load_data/tfrecord). An index is a text file with one line ``offset size``
per record; the size includes length and checksums.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from torchdali.errors import MissingExtraError
from torchdali.formats.protobuf import (
    BYTES,
    Field,
    read_fields,
    read_floats,
    read_integers,
    read_varint,
    write_bytes,
    write_varint,
)
from torchdali.formats.storage import Bytes, ByteStorage, describe_storage
from torchdali.formats.urls import redact

__all__ = [
    "FeatureValue", "features", "find_features", "index_text", "masked_crc32c", "parse_index", "payload", "scan",
    "verify", "write_example", "write_record",
]  # fmt: skip

HEADER, FOOTER = 12, 4
Offsets = npt.NDArray[np.int64]


# ---------------------------------------------------------------- records


def parse_index(text: str, path: str, storage: ByteStorage | None = None) -> Offsets:
    """Return offset and size of each record, ``(N, 2)``, from the text of an index.

    Args:
        path: Path of the index, for error messages.
        storage: Unused; the `parse_index` functions of other formats need this argument.

    Raises:
        RuntimeError: The text is empty, or isn't an index.
    """
    words = text.split()
    try:
        numbers = np.array(words[: len(words) // 2 * 2], np.int64)
    except (ValueError, OverflowError):
        raise RuntimeError(f"{redact(path)} is not an index of a TFRecord file: expected lines 'offset size'") from None
    if not numbers.size:
        raise RuntimeError(f"the index file {redact(path)} is empty: content of index files should not be empty")
    return numbers.reshape(-1, 2)


def scan(storage: ByteStorage) -> Iterator[tuple[int, int]]:
    """Yield offset and size of each record, computed from the lengths in the file.

    Raises:
        RuntimeError: A record reaches beyond the end of the file.
    """
    offset = 0
    while offset < storage.size:
        if storage.size - offset < HEADER + FOOTER:
            description = describe_storage(storage)
            raise RuntimeError(
                f"{storage.path}: {storage.size - offset} bytes at {offset} are too few for a record{description}"
            )
        (length,) = _LENGTH.unpack(storage.read(offset, 8).data)
        if length > storage.size - offset - HEADER - FOOTER:
            raise RuntimeError(
                f"{storage.path}: the record at {offset} has a payload of {length} bytes, but the file ends at "
                f"{storage.size}"
            )
        yield offset, length + HEADER + FOOTER
        offset += length + HEADER + FOOTER


_LENGTH = struct.Struct("<Q")


def index_text(records: Sequence[tuple[int, int]]) -> str:
    """Return the text of an index."""
    return "".join(f"{offset} {size}\n" for offset, size in records)


def payload(record: Bytes) -> tuple[int, int]:
    """Return start and end of a record's payload.

    Raises:
        ValueError: The length in the record contradicts the size in the index.
    """
    available = len(record) - HEADER - FOOTER
    length = _LENGTH.unpack_from(record.data)[0] if len(record) >= HEADER else -1
    if length != available and (length > available + FOOTER or length < 0):
        raise ValueError(
            f"record payload length: {length} bytes, available payload: {max(available, 0)} bytes; "
            "does the index belong to another file?"
        )
    return HEADER, HEADER + length


def verify(record: Bytes) -> None:
    """Verify both checksums of a record.

    Raises:
        ValueError: A checksum is wrong.
        MissingExtraError: google-crc32c is not installed (extra ``checksums``).
    """
    begin, end = payload(record)
    for name, start, stop, offset in (("length", 0, 8, 8), ("payload", begin, end, end)):
        if struct.unpack_from("<I", record.data, offset)[0] != masked_crc32c(record[start:stop]):
            raise ValueError(f"the {name} doesn't match its checksum")


def masked_crc32c(data: Any) -> int:
    """Return the checksum that TFRecord files store: the CRC-32C of data, rotated by 15 bits, plus a constant."""
    try:
        crc: int = importlib.import_module("google_crc32c").value(bytes(data))
    except ImportError:
        raise MissingExtraError("google-crc32c", "checksums", "verifying the checksums of TFRecord files") from None
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


# ---------------------------------------------------------------- examples


class FeatureValue:
    """The values of one feature in an example, as a range of the record's bytes.

    Attributes:
        kind: ``"string"``, ``"float32"`` or ``"int64"``; "" for a feature without values.
    """

    __slots__ = ("_begin", "_data", "_end", "kind")

    def __init__(self, data: memoryview, kind: str, begin: int, end: int) -> None:
        self._data, self.kind, self._begin, self._end = data, kind, begin, end

    def strings(self) -> list[tuple[int, int]]:
        """Return start and end of each string in the record's bytes."""
        data, offset, end = self._data, self._begin, self._end
        if offset < end and data[offset] == _STRING:  # the common case of one string
            length, begin = read_varint(data, offset + 1, end)
            if begin + length == end:
                return [(begin, end)]
        return [(b, e) for n, kind, b, e in read_fields(data, offset, end) if n == 1 and kind == BYTES]

    def floats(self) -> npt.NDArray[np.float32]:
        """Return the float32 values, which may be stored packed or one by one."""
        return read_floats(self._data, self._number_fields())

    def integers(self) -> list[int]:
        """Return the int64 values, which may be stored packed or one by one."""
        return read_integers(self._data, self._number_fields())

    def _number_fields(self) -> list[Field]:
        return [each for each in read_fields(self._data, self._begin, self._end) if each[0] == 1]


_Values = list[FeatureValue | None]
_STRING = 1 << 3 | BYTES
_VALUE = 2 << 3 | BYTES
_KINDS = {1 << 3 | BYTES: "string", 2 << 3 | BYTES: "float32", 3 << 3 | BYTES: "int64"}


def find_features(data: memoryview, begin: int, end: int, names: Mapping[bytes, int]) -> _Values:
    """Find features of an example by name.

    Args:
        data: The record.
        begin: Start of the example in the record.
        end: End of the example in the record.
        names: Names of the features, each with its index in the result.

    Returns:
        The features; None for features that the example lacks.

    Raises:
        ValueError: The bytes aren't a `tf.train.Example`.
    """
    values: _Values = [None] * len(names)
    for number, kind, offset, stop in read_fields(data, begin, end):
        if number == 1 and kind == BYTES:
            _find_in(data, offset, stop, names, values)
    return values


def features(data: memoryview, begin: int, end: int) -> dict[str, FeatureValue]:
    """Return all features of an example, by name.

    Raises:
        ValueError: The bytes aren't a `tf.train.Example`.
    """
    values: dict[str, FeatureValue] = {}
    for number, kind, offset, stop in read_fields(data, begin, end):
        for inner, inner_kind, start, last in read_fields(data, offset, stop) if number == 1 else ():
            if inner == 1 and inner_kind == BYTES and kind == BYTES:
                entry = {n: (b, e) for n, k, b, e in read_fields(data, start, last) if k == BYTES}
                name = bytes(data[slice(*entry.get(1, (0, 0)))]).decode("utf-8", "replace")
                values[name] = _read_list(data, *entry.get(2, (last, last)))
    return values


def _find_in(data: memoryview, offset: int, end: int, names: Mapping[bytes, int], values: _Values) -> None:
    """Find features among the entries of `tf.train.Features`; each entry is a key and a feature.

    If several entries have the same key, the last entry is used.
    """
    while offset < end:
        if data[offset] != _STRING:
            raise ValueError(f"byte {offset} does not begin an entry of tf.train.Features")
        length, offset = read_varint(data, offset + 1, end)
        stop = offset + length
        if stop > end:
            raise ValueError(f"an entry of {length} bytes at {offset} reaches beyond its message, which ends at {end}")
        size = data[offset + 1] if length > 1 else 0
        # In most entries, a short key comes first.
        if size < 128 and data[offset] == _STRING and offset + 2 + size <= stop:
            index = names.get(bytes(data[offset + 2 : offset + 2 + size]))
            if index is not None:
                values[index] = _read_feature(data, offset + 2 + size, stop)
        else:
            _find_entry(data, offset, stop, names, values)
        offset = stop


def _find_entry(data: memoryview, offset: int, end: int, names: Mapping[bytes, int], values: _Values) -> None:
    key, value = b"", (end, end)
    for number, kind, begin, stop in read_fields(data, offset, end):
        if kind == BYTES and number == 1:
            key = bytes(data[begin:stop])
        elif kind == BYTES and number == 2:
            value = begin, stop
    if key in names:
        values[names[key]] = _read_list(data, *value)


def _read_feature(data: memoryview, offset: int, end: int) -> FeatureValue:
    """Read the second field of an entry: a feature, which is a list of strings, floats or integers."""
    if offset < end and data[offset] == _VALUE:
        length, offset = read_varint(data, offset + 1, end)
        if offset + length == end:
            return _read_list(data, offset, end)
        offset += length
    if offset < end:
        raise ValueError(f"byte {offset} does not begin a feature of tf.train.Features")
    return FeatureValue(data, "", end, end)


def _read_list(data: memoryview, offset: int, end: int) -> FeatureValue:
    if offset == end:
        return FeatureValue(data, "", end, end)
    kind = _KINDS.get(data[offset])
    if kind is None:
        raise ValueError(f"byte {offset} does not begin a list of a feature")
    length, offset = read_varint(data, offset + 1, end)
    if offset + length > end:
        raise ValueError(f"a list of {length} bytes at {offset} reaches beyond its feature, which ends at {end}")
    return FeatureValue(data, kind, offset, offset + length)


# ---------------------------------------------------------------- writing


def write_record(file: BinaryIO, content: bytes) -> int:
    """Write a record; return the number of written bytes.

    Raises:
        MissingExtraError: google-crc32c is not installed (extra ``checksums``).
    """
    length = _LENGTH.pack(len(content))
    file.write(length + struct.pack("<I", masked_crc32c(length)))
    file.write(content)
    file.write(struct.pack("<I", masked_crc32c(content)))
    return len(content) + HEADER + FOOTER


Value = bytes | Sequence[bytes] | Sequence[int] | Sequence[float]


def write_example(features: Mapping[str, Value]) -> bytes:
    """Return a `tf.train.Example` with lists of bytes, int64 or float32 values."""
    entries = (
        write_bytes(1, write_bytes(1, name.encode()) + write_bytes(2, _write_feature(value)))
        for name, value in features.items()
    )
    return write_bytes(1, b"".join(entries))


def _write_feature(value: Value) -> bytes:
    values: list[Any] = [value] if isinstance(value, bytes) else list(value)
    if not values:
        return b""
    if isinstance(values[0], bytes):
        return write_bytes(1, b"".join(write_bytes(1, v) for v in values if isinstance(v, bytes)))
    if isinstance(values[0], float):
        return write_bytes(2, write_bytes(1, np.asarray(values, "<f4").tobytes()))
    return write_bytes(3, write_bytes(1, b"".join(write_varint(int(v)) for v in values)))
