"""Write small containers for the tests of readers, with the writers of `torchdali.formats` and of other libraries."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from torchdali.formats import recordio, tfrecord
from torchdali.formats.protobuf import VARINT, tag, write_bytes, write_varint
from torchdali.formats.storage import write_text

Examples = Sequence[Mapping[str, Any]]


def write_tfrecord(path: Path, examples: Examples) -> tuple[str, str]:
    """Write a TFRecord file and its index; return both paths."""
    places, at = [], 0
    with open(path, "wb") as file:
        for example in examples:
            size = tfrecord.write_record(file, tfrecord.write_example(example))
            places.append((at, size))
            at += size
    index = f"{path}.idx"
    write_text(str(index), tfrecord.index_text(places))
    return str(path), index


def write_tar(
    path: Path, members: Sequence[tuple[str, Any]], format: int = tarfile.GNU_FORMAT
) -> str:
    """Write an archive: content is bytes, a symbolic link's target as text, None for a folder, or (type, bytes or target)."""
    with tarfile.open(path, "w", format=format) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if content is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
            elif isinstance(content, tuple):
                info.type, content = content
                info.linkname = content if isinstance(content, str) else ""
            data = content if isinstance(content, bytes) else b""
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return str(path)


def link(target: str) -> tuple[bytes, str]:
    """Return the content of a hard link."""
    return tarfile.LNKTYPE, target


def write_recordio(path: Path, images: Sequence[tuple[bytes, Sequence[float]]]) -> tuple[str, str]:
    """Write images and labels as RecordIO, and an index; return both paths."""
    places, at = [], 0
    with open(path, "wb") as file:
        for data, labels in images:
            size = recordio.write_image(file, data, labels)
            places.append((at, size))
            at += size
    write_text(f"{path}.idx", recordio.index_text(places))
    return str(path), f"{path}.idx"


def write_lmdb(path: Path, values: Sequence[bytes], size: int = 1 << 24) -> str:
    """Write a database with the keys 00000000, 00000001 ... by the real library."""
    import lmdb

    with lmdb.open(str(path), map_size=size) as environment, environment.begin(write=True) as transaction:
        for number, value in enumerate(values):
            transaction.put(b"%08d" % number, value)
    return str(path)


def datum(data: bytes | None = None, label: int | None = None, **shape: int) -> bytes:
    """Write a `Datum` of Caffe."""
    numbers = {"channels": 1, "height": 2, "width": 3, "encoded": 7}
    parts = [tag(numbers[name], VARINT) + write_varint(value) for name, value in shape.items()]
    parts += [] if data is None else [write_bytes(4, data)]
    parts += [] if label is None else [tag(5, VARINT) + write_varint(label)]
    return b"".join(parts)


def proto(dtype: int, content: Any, dims: Sequence[int] = ()) -> bytes:
    """Write a tensor of Caffe2: 1, float; 2, int32; 3, bytes; 4, a string."""
    head = b"".join(tag(1, VARINT) + write_varint(extent) for extent in dims)
    head += tag(2, VARINT) + write_varint(dtype)
    if dtype == 1:
        return head + write_bytes(3, np.asarray(content, "<f4").tobytes())
    if dtype == 2:
        return head + b"".join(tag(4, VARINT) + write_varint(value) for value in content)
    return head + write_bytes(5 if dtype == 3 else 6, content)


def protos(*tensors: bytes) -> bytes:
    """Write `TensorProtos` of Caffe2."""
    return b"".join(write_bytes(1, tensor) for tensor in tensors)


def _tar_header(name: str, size: int, kind: bytes) -> bytearray:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return bytearray(info.tobuf(tarfile.GNU_FORMAT))


def _summed(header: bytearray) -> bytes:
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def _blocks(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def _pax_records(records: Sequence[tuple[str, Any]]) -> bytes:
    text = b""
    for key, value in records:
        rest = f" {key}={value}\n".encode()
        text += next(b"%d" % n + rest for n in range(1, 1 << 20) if len(str(n)) + len(rest) == n)
    return text


SPARSE_FORMS = ("S", "0.0", "0.1", "1.0")


def sparse_member(
    form: str, name: str, size: int, extents: Sequence[tuple[int, int]], data: bytes, more: Sequence[tuple[str, Any]] = ()
) -> bytes:
    """Write a sparse member as GNU tar does: in its old format, or with a pax header of some version."""
    if form == "S":
        return _old_sparse(name, size, extents, data)
    records: list[tuple[str, Any]] = list(more)
    prefix = "GNU.sparse."
    if form == "1.0":
        numbers = [len(extents), *(n for extent in extents for n in extent)]
        data = _blocks("".join(f"{n}\n" for n in numbers).encode()) + data
        records += [(f"{prefix}major", 1), (f"{prefix}minor", 0), (f"{prefix}name", name), (f"{prefix}realsize", size)]
    elif form == "0.1":
        numbers = [n for extent in extents for n in extent]
        records += [(f"{prefix}size", size), (f"{prefix}numblocks", len(extents)), (f"{prefix}name", name)]
        records += [(f"{prefix}map", ",".join(map(str, numbers)))]
    else:
        records += [(f"{prefix}size", size), (f"{prefix}numblocks", len(extents))]
        records += [(f"{prefix}{key}", n) for e in extents for key, n in zip(("offset", "numbytes"), e, strict=True)]
    pax = _pax_records(records)
    own = name if form == "0.0" else f"GNUSparseFile.7/{name}"
    head = bytes(_tar_header("PaxHeader", len(pax), b"x")) + _blocks(pax)
    return head + bytes(_tar_header(own, len(data), b"0")) + _blocks(data)


def _old_sparse(name: str, size: int, extents: Sequence[tuple[int, int]], data: bytes) -> bytes:
    pairs = [b"%011o\0%011o\0" % extent for extent in extents]
    header = _tar_header(name, len(data), b"S")
    header[386:482] = b"".join(pairs[:4]).ljust(96, b"\0")
    header[482], header[483:495] = len(pairs) > 4, b"%011o\0" % size
    result = _summed(header)
    for start in range(4, len(pairs), 21):
        more = bytes([start + 21 < len(pairs)])
        result += (b"".join(pairs[start : start + 21]).ljust(504, b"\0") + more).ljust(512, b"\0")
    return result + _blocks(data)
