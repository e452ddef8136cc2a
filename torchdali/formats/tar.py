"""Read tar archives with ustar, GNU or pax headers, and group the archives' files into webdataset samples.

Formats: POSIX.1-2017, `pax`; https://www.gnu.org/software/tar/manual/html_node/Standard.html;
https://github.com/webdataset/webdataset.
"""

from __future__ import annotations

import itertools
import os
import posixpath
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

import numpy as np

from torchdali.errors import warn
from torchdali.formats.remote import Remote
from torchdali.formats.storage import Bytes, ByteStorage, described_storage
from torchdali.formats.tar_sparse import BLOCK, Records, Sparse, header_number, sparse_of_header, sparse_of_records
from torchdali.formats.urls import shown

__all__ = [
    "BLOCK", "Archive", "Component", "Member", "group", "index_text", "indexed_samples",
    "located_samples", "parse_index", "samples", "split_name", "write_end", "write_member",
]  # fmt: skip

_LONGEST_NAME = 1 << 20

Component = tuple[str, int, int, str]
"""A file of a sample: its extension, the offset and size of its content, and its name."""


class Member(NamedTuple):
    """A file in an archive.

    Attributes:
        name: Path of the file in the archive.
        offset: Offset of the content.
        start: Offset of the file's first header.
    """

    name: str
    offset: int
    size: int
    start: int = 0


# ---------------------------------------------------------------- archives

_FILES = (b"0", b"\0", b"7", b"S")
_LINK = b"1"
_OTHERS = {
    b"2": "a symbolic link", b"3": "a device", b"4": "a device", b"6": "a named pipe (FIFO)", b"M": "the end of a file",
}  # fmt: skip
_BEFORE = (b"x", b"X", b"L", b"K")
_WITHOUT_CONTENT = (b"1", b"2", b"3", b"4", b"5", b"6")


class _Before(NamedTuple):
    """Values of the extension headers, which precede the header of a file."""

    name: str = ""
    link: str = ""
    size: int = -1
    records: Records = ()

    def then(self, kind: bytes, text: bytes) -> _Before:
        """Return a copy of the values that is updated with another extension header."""
        if kind == b"L":
            return self._replace(name=_decode_name(text))
        if kind == b"K":
            return self._replace(link=_decode_name(text))
        records = tuple(_pax(text))
        named = dict(records)
        name = named.get("GNU.sparse.name", named.get("path", self.name))
        return _Before(name, named.get("linkpath", self.link), _size(named, self.size), records)


class Archive:
    """A tar archive, as a `ByteStorage` (bytes that are read by ranges).

    Archives store sparse files (files with holes) in pieces. This `ByteStorage` has the archive's bytes, followed by
    the complete content of each sparse file.

    Args:
        storage: Storage of the archive.

    Attributes:
        left_out: For each skipped entry that is not a file, its offset and a description (name and type).
    """

    def __init__(self, storage: ByteStorage) -> None:
        self.path, self.size = storage.path, storage.size
        self.left_out: list[tuple[int, str]] = []
        self._storage = storage
        self._files: dict[str, Member] = {}
        self._starts = [0]  # the offset of each piece in this storage; the archive itself is the first piece
        self._parts = [(storage.size, 0)]  # the length of each piece, and its offset in the archive

    @property
    def remote(self) -> Remote | None:
        """Connection that reads the archive; None for a local archive."""
        return getattr(self._storage, "remote", None)

    @property
    def storage(self) -> ByteStorage:
        """Storage that the offsets of the files refer to: `self` if there are sparse files, else the archive's."""
        return self._storage if len(self._starts) == 1 else self

    @property
    def identity(self) -> bytes | None:
        """Identity of the archive's file."""
        return self._storage.identity

    def place(self, offset: int) -> int:
        """Convert an offset in this storage to an offset in the archive."""
        part = bisect_right(self._starts, offset) - 1
        return self._parts[part][1] + min(offset - self._starts[part], self._parts[part][0])

    def read(self, offset: int, count: int) -> Bytes:
        """Return a range of bytes; the holes of sparse files are zeros."""
        end = offset + count
        if end <= self._storage.size or offset < 0 or end > self.size:
            return self._storage.read(offset, count)
        data = np.zeros(count, np.uint8)
        for part in range(bisect_right(self._starts, offset) - 1, bisect_right(self._starts, end)):
            (length, place), start = self._parts[part], self._starts[part]
            first, last = max(start, offset), min(start + length, end)
            if first < last:
                data[first - offset : last - offset] = self._storage.read(place + first - start, last - first)
        return data

    def members(self, start: int = 0) -> Iterator[Member]:
        """Yield the files in order. For a hard link, yield the earlier file that the link refers to.

        Args:
            start: Offset of the first header of the file with which to begin.

        Raises:
            RuntimeError: The archive is damaged, or ends within a file.
        """
        try:
            yield from self._members(start)
        except ValueError as error:
            described = described_storage(self._storage, "tar")
            raise RuntimeError(f"corrupted tar file {self.path}: {error}{described}") from None

    def _members(self, at: int) -> Iterator[Member]:
        start, before, end = at, _Before(), self._storage.size
        while at < end:
            if end - at < BLOCK:
                raise ValueError(f"{end - at} bytes remain at {at}, too few for a header")
            header = self._storage.read(at, BLOCK).tobytes()
            if not any(header):
                return
            _check(header, at)
            kind, length, data = header[156:157], header_number(header[124:136], at), at + BLOCK
            if kind in _BEFORE:
                before = before.then(kind, self._text(data, length))
            elif kind in _FILES:
                length = length if before.size < 0 else before.size
                member, data = self._file(header, data, length, before)
                yield self._check_type(member._replace(start=start))
            elif kind != b"g":
                yield from (member._replace(start=start) for member in self._other(header, at, before))
                length = 0 if kind in _WITHOUT_CONTENT else length
            if kind not in (*_BEFORE, b"g"):
                before = _Before()
            self._check_length(data, length)
            at = data + -(-length // BLOCK) * BLOCK
            start = start if kind in _BEFORE else at

    def _file(self, header: bytes, data: int, length: int, before: _Before) -> tuple[Member, int]:
        """Return a file, and the offset of its `length` stored bytes."""
        name = before.name or _name(header)
        sparse = sparse_of_header(self._storage, header, data) if header[156:157] == b"S" else None
        if sparse is not None:
            data = sparse.start
        self._check_length(data, length)
        if sparse is None:
            sparse = sparse_of_records(self._storage, before.records, data, length)
        if sparse is None:
            return Member(name, data, length), data
        sparse.check(length - (sparse.start - data))
        return Member(name, self._expand(sparse), sparse.size), data

    def _expand(self, sparse: Sparse) -> int:
        """Add the pieces of a sparse file to this storage; return the file's offset."""
        offset, place = self.size, sparse.start
        self.size += sparse.size
        for start, length in [(0, 0), *sparse.extents]:
            self._starts.append(offset + start)
            self._parts.append((length, place))
            place += length
        return offset

    def _check_type(self, member: Member) -> Member:
        self._files[posixpath.normpath(member.name)] = member
        return member

    def _other(self, header: bytes, at: int, before: _Before) -> Iterator[Member]:
        """Yield the file that a hard link refers to. Append an entry that is not a file to `left_out`."""
        kind, name = header[156:157], before.name or _name(header)
        target = before.link or _decode_name(header[157:257])
        file = self._files.get(posixpath.normpath(target)) if kind == _LINK else None
        if file is not None:
            yield self._check_type(file._replace(name=name))
        elif kind == _LINK:
            self.left_out.append((at, f"{name!r}, a hard link to {target!r}, and no file before it has this name"))
        elif kind in _OTHERS:
            self.left_out.append((at, f"{name!r}, {_OTHERS[kind]}" + (f" to {target!r}" if target else "")))

    def _check_length(self, data: int, length: int) -> None:
        if length > self._storage.size - data:
            raise ValueError(
                f"a member of {length} bytes at {data} reaches beyond the end of the file at {self._storage.size}"
            )

    def _text(self, data: int, length: int) -> bytes:
        if length > _LONGEST_NAME:
            raise ValueError(
                f"the name in the header at {data - BLOCK} must have at most {_LONGEST_NAME} bytes, got {length}"
            )
        self._check_length(data, length)
        return self._storage.read(data, length).tobytes()


def _check(header: bytes, at: int) -> None:
    stored = header_number(header[148:156], at)
    counted = sum(header) - sum(header[148:156]) + 8 * ord(" ")
    if stored != counted:
        raise ValueError(f"the checksum of the header at {at} must be {counted}, got {stored}")


def _decode_name(field: bytes) -> str:
    return field.split(b"\0")[0].decode("utf-8", "surrogateescape")


def _name(header: bytes) -> str:
    name = _decode_name(header[:100])
    if header[257:263] == b"ustar\0" and header[345]:
        name = f"{_decode_name(header[345:500])}/{name}"
    return name


def _pax(text: bytes) -> Iterator[tuple[str, str]]:
    """Yield the keys and values of a pax header, which consists of lines ``length key=value``."""
    at, end = 0, len(text.rstrip(b"\0"))
    while at < end:
        space = text.find(b" ", at, at + 9)
        digits = text[at:space] if space >= 0 else b""
        length = int(digits) if digits.isdigit() else 0
        key, equals, value = text[space + 1 : at + length - 1].partition(b"=")
        if not len(digits) + 1 < length <= end - at or not equals:
            raise ValueError(f"a line of a pax header must be `length key=value`, got {text[at : at + 20]!r}")
        yield key.decode("utf-8", "replace"), value.decode("utf-8", "surrogateescape")
        at += length


def _size(records: dict[str, str], size: int) -> int:
    if "size" not in records:
        return size
    if not records["size"].isdigit() or len(records["size"]) > 18:
        raise ValueError(f"the size in a pax header must be a number, got {records['size'][:20]!r}")
    return int(records["size"])


# ---------------------------------------------------------------- samples


def split_name(path: str) -> tuple[str, str]:
    """Split a path at the first dot of its file name, into key and extension."""
    dot = path.find(".", path.rfind("/") + 1)
    return (path, "") if dot < 0 else (path[:dot], path[dot + 1 :])


def group(members: Iterable[Member]) -> Iterator[list[Component]]:
    """Yield samples: consecutive files with the same key. Hidden files and files without an extension are skipped."""
    last, sample = "", list[Component]()
    for member in members:
        key, extension = split_name(member.name)
        if not extension or not key or key.endswith("/"):
            continue
        if key != last and sample:
            yield sample
            sample = []
        last = key
        sample.append((extension, member.offset, member.size, member.name))
    if sample:
        yield sample


def samples(archive: Archive) -> Iterator[list[Component]]:
    """Yield the samples of an archive; at the end, warn about skipped entries that are not files."""
    yield from group(archive.members())
    if archive.left_out:
        warn(
            f"{archive.path}: members that aren't files are skipped, {len(archive.left_out)} in total, for example "
            f"{archive.left_out[0][1]}. Write the archive with the files themselves (tar --dereference)"
        )


def located_samples(archive: Archive, start: int) -> Iterator[tuple[int, list[Component]]]:
    """Yield the samples from an offset on, each with the offset of its first header."""
    starts: dict[tuple[str, int], int] = {}

    def note_offsets() -> Iterator[Member]:
        for member in archive.members(start):
            starts[member.name, member.offset] = member.start
            yield member

    for sample in group(note_offsets()):
        yield starts[sample[0][3], sample[0][1]], sample
        for _, offset, _, name in sample:
            starts.pop((name, offset), None)


def indexed_samples(storage: ByteStorage) -> Iterator[list[Component]]:
    """Yield the samples of an archive for its index.

    Raises:
        RuntimeError: The archive has a sparse file, which an index cannot describe.
    """
    for sample in samples(Archive(storage)):
        for _, offset, size, name in sample:
            if offset + size > storage.size:
                raise RuntimeError(
                    f"an index of {storage.path} cannot be written: its member {name!r} is sparse. Read the archive "
                    f"without an index, or write it again with whole files (`torchdali pack`, or tar without -S)"
                )
        yield sample


_VERSIONS = {"v1.1": 3, "v1.2": 4}
_TEMPLATE = {3: "<ext> <offset> <size>", 4: "<ext> <offset> <size> <filename>"}


def parse_index(text: str, path: str, storage: ByteStorage) -> list[list[Component]]:
    """Return the samples of an archive from the text of its index, which must have version 1.1 or 1.2.

    Args:
        path: Path of the index, for error messages.

    Raises:
        RuntimeError: The index is malformed, or does not fit the archive.
    """
    lines = text.split("\n")
    try:
        width, count = _read_head(lines[0].split())
    except ValueError as error:
        raise RuntimeError(f"malformed index file {shown(path)}, line 1: {error}") from None
    samples = []
    for number in range(1, count + 1):
        words = lines[number].split() if number < len(lines) else []
        try:
            samples.append([_component(words[i : i + width], width, storage) for i in range(0, len(words), width)])
            if not words:
                raise ValueError("no extensions provided for the sample")
        except ValueError as error:
            raise RuntimeError(f"malformed index file {shown(path)}, line {number + 1}: {error}") from None
    return samples


def _read_head(words: list[str]) -> tuple[int, int]:
    if not words:
        raise ValueError("no version signature found")
    if words[0] not in _VERSIONS:
        known = ", ".join(_VERSIONS)
        raise ValueError(f"Unsupported version of the index file ({words[0]}). The supported versions are {known}")
    if len(words) < 2 or not words[1].lstrip("-").isdigit():
        raise ValueError("no sample count found")
    if int(words[1]) < 1:
        raise ValueError("sample count must be positive")
    return _VERSIONS[words[0]], int(words[1])


def _component(words: list[str], width: int, storage: ByteStorage) -> Component:
    try:
        if len(words) < width:
            raise ValueError
        offset, size = int(words[1]), int(words[2])
    except ValueError:
        raise ValueError(f"Could not find all necessary component parameters; each is {_TEMPLATE[width]}") from None
    if offset % BLOCK:
        raise ValueError(f"tar offset is not a multiple of tar block size ({BLOCK}): {offset}")
    if not 0 <= offset < storage.size:
        raise ValueError(f"offset is outside of the archive file: {offset} of {storage.size}")
    if not 0 <= size <= storage.size - offset:
        raise ValueError(
            f"a component of {size} bytes at {offset} reaches beyond the end of the file at {storage.size}"
        )
    name = words[3] if width > 3 else ""
    if "GNUSparseFile." in name:
        raise ValueError(
            f"{name} is a sparse member, which an index cannot describe. Read the archive without an index"
        )
    return words[0], offset, size, name


def index_text(samples: list[list[Component]]) -> str:
    """Return the text of an index in version 1.2.

    If a file name contains a space, return the text in version 1.1, which has no file names.

    Raises:
        RuntimeError: An extension is empty or contains a space.
    """
    spaces = next((p for sample in samples for p in sample if len(p[0].split()) != 1), None)
    if spaces is not None:
        raise RuntimeError(f"an index needs extensions without spaces, got the name {spaces[3]!r}")
    named = all(len(part[3].split()) == 1 for sample in samples for part in sample)
    width = 4 if named else 3
    lines = (" ".join(str(word) for part in sample for word in part[:width]) for sample in samples)
    head = f"{'v1.2' if named else 'v1.1'} {len(samples)}"
    return "".join(line + "\n" for line in itertools.chain((head,), lines))


# ---------------------------------------------------------------- writing


def write_member(file: BinaryIO, name: str, content: bytes) -> int:
    """Write a file to an archive, without owner and time; return the number of written bytes.

    Raises:
        ValueError: The name is empty or longer than 100 bytes.
    """
    encoded = os.fsencode(name)
    if not 0 < len(encoded) <= 100:
        raise ValueError(f"a member's name must have 1 to 100 bytes, got {name!r}")
    header = bytearray(BLOCK)
    header[: len(encoded)] = encoded
    header[100:108], header[108:116], header[116:124] = b"0000644\0", b"0000000\0", b"0000000\0"
    header[124:136], header[136:148] = b"%011o\0" % len(content), b"%011o\0" % 0
    header[148:156], header[156:157], header[257:265] = b" " * 8, b"0", b"ustar\x0000"
    header[148:156] = b"%06o\0 " % sum(header)
    file.write(header)
    file.write(content)
    padding = -len(content) % BLOCK
    file.write(bytes(padding))
    return BLOCK + len(content) + padding


def write_end(file: BinaryIO) -> None:
    """Write the two empty blocks that end an archive."""
    file.write(bytes(2 * BLOCK))
