"""MXNet RecordIO files: each record is an image with its labels.

A record is stored in one or several chunks. A chunk consists of a magic number, a 32-bit word with the chunk's position
in the record (3 bits) and its length (29 bits), and the content, padded to a multiple of four bytes. An image record
starts with ``flag, label, id, id2``. If ``flag`` is not 0, ``flag`` labels follow, and ``label`` is unused.
https://mxnet.apache.org/versions/1.9.1/api/architecture/note_data_loading
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from torchdali.formats.storage import Bytes, ByteStorage
from torchdali.formats.urls import redact

__all__ = [
    "content", "image", "index_text", "parse_index", "scan", "write_image", "write_record",
]  # fmt: skip

MAGIC = 0xCED7230A
_CHUNK_HEADER = struct.Struct("<II")
_IMAGE_HEADER = struct.Struct("<IfQQ")
_WHOLE, _FIRST, _MIDDLE, _LAST = 0, 1, 2, 3
_MAX_LENGTH = (1 << 29) - 1


def parse_index(text: str, path: str, storage: ByteStorage) -> npt.NDArray[np.int64]:
    """Return offset and size of each record, ``(N, 2)``. A record ends where the next record in the file starts.

    Args:
        path: Path of the index, for error messages.

    Raises:
        RuntimeError: The index is empty, or has an offset outside of the RecordIO file.
    """
    words = text.split()[1::2]
    try:
        offsets = np.sort(np.array(words, np.int64))
    except (ValueError, OverflowError):
        offsets = np.empty(0, np.int64)
    if not len(offsets):
        raise RuntimeError(f"the RecordIO index file doesn't contain any indices: {redact(path)}")
    if offsets[0] < 0 or offsets[-1] >= storage.size:
        raise RuntimeError(f"{redact(path)} has an offset outside of {storage.path}, which has {storage.size} bytes")
    ends = np.append(offsets[1:], storage.size)
    # If an offset occurs twice, both records end at the next larger offset.
    last = np.searchsorted(offsets, offsets, "right") - 1
    return np.stack([offsets, ends[last] - offsets], 1)


def scan(storage: ByteStorage) -> Iterator[tuple[int, int]]:
    """Yield offset and size of each record.

    Raises:
        RuntimeError: The file is damaged.
    """
    offset = start = 0
    while offset < storage.size:
        if storage.size - offset < _CHUNK_HEADER.size:
            raise RuntimeError(
                f"{storage.path}: {storage.size - offset} bytes remain at {offset}, too few for a record"
            )
        magic, word = _CHUNK_HEADER.unpack(storage.read(offset, _CHUNK_HEADER.size).data)
        if magic != MAGIC:
            raise RuntimeError(f"{storage.path}: wrong magic number {magic:#x} at {offset}")
        kind, length = word >> 29, word & _MAX_LENGTH
        if length > storage.size - offset - _CHUNK_HEADER.size:
            raise RuntimeError(
                f"{storage.path}: a record of {length} bytes at {offset} reaches beyond the end of the file at "
                f"{storage.size}"
            )
        start = offset if kind in (_WHOLE, _FIRST) else start
        offset = min(offset + _CHUNK_HEADER.size + -(-length // 4) * 4, storage.size)
        if kind in (_WHOLE, _LAST):
            yield start, offset - start


def index_text(records: Sequence[tuple[int, int]]) -> str:
    """Return the text of an index."""
    return "".join(f"{number}\t{offset}\n" for number, (offset, _) in enumerate(records))


def content(record: Bytes) -> Bytes:
    """Return the content of a record.

    The contents of several chunks are joined, with the magic number between two chunks.

    Raises:
        ValueError: The record is damaged.
    """
    kind, begin, end = _read_chunk(record, 0)
    if kind == _WHOLE:
        return record[begin:end]
    parts, offset = [record[begin:end]], -(-end // 4) * 4
    while kind != _LAST:
        kind, begin, end = _read_chunk(record, offset)
        parts += [_MAGIC_BYTES, record[begin:end]]
        offset = -(-end // 4) * 4
    return np.concatenate(parts)


_MAGIC_BYTES = np.frombuffer(struct.pack("<I", MAGIC), np.uint8)


def _read_chunk(record: Bytes, offset: int) -> tuple[int, int, int]:
    available = len(record) - offset - _CHUNK_HEADER.size
    if available < 0:
        raise ValueError(f"{len(record) - offset} bytes are too few for the header of a record")
    magic, word = _CHUNK_HEADER.unpack_from(record.data, offset)
    if magic != MAGIC:
        raise ValueError(f"wrong magic number: {magic:#x}")
    length = word & _MAX_LENGTH
    if length > available:
        raise ValueError(f"record payload requires {length} bytes, but only {available} bytes are available")
    return word >> 29, offset + _CHUNK_HEADER.size, offset + _CHUNK_HEADER.size + length


def image(data: Bytes) -> tuple[Bytes, npt.NDArray[np.float32]]:
    """Return the encoded image of a record, ``(n,)`` uint8, and the record's labels, ``(k,)`` float32.

    Raises:
        ValueError: The record is too short.
    """
    if len(data) < _IMAGE_HEADER.size:
        raise ValueError(f"record payload length: {len(data)} bytes, minimum is {_IMAGE_HEADER.size} bytes")
    flag, label, _, _ = _IMAGE_HEADER.unpack_from(data.data)
    if not flag:
        return data[_IMAGE_HEADER.size :], np.array([label], np.float32)
    end = _IMAGE_HEADER.size + 4 * flag
    if end > len(data):
        raise ValueError(f"a record of {len(data)} bytes is too short for {flag} labels")
    return data[end:], np.frombuffer(data[_IMAGE_HEADER.size : end].tobytes(), np.float32).copy()


# ---------------------------------------------------------------- writing


def write_record(file: BinaryIO, data: bytes) -> int:
    """Write a record; return the number of written bytes.

    Raises:
        ValueError: The record has 512 MiB or more.
    """
    if len(data) > _MAX_LENGTH:
        raise ValueError(f"a record must have at most {_MAX_LENGTH} bytes, got {len(data)}")
    padding = -len(data) % 4
    file.write(_CHUNK_HEADER.pack(MAGIC, len(data)) + data + bytes(padding))
    return _CHUNK_HEADER.size + len(data) + padding


def write_image(file: BinaryIO, data: bytes, labels: Sequence[float], number: int = 0) -> int:
    """Write an image with one or more labels; return the number of written bytes.

    Args:
        number: The ``id`` of the record.
    """
    if len(labels) == 1:
        return write_record(file, _IMAGE_HEADER.pack(0, labels[0], number, 0) + data)
    values = np.asarray(labels, "<f4").tobytes()
    return write_record(file, _IMAGE_HEADER.pack(len(labels), 0.0, number, 0) + values + data)
