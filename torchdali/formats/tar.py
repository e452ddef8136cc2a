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
from torchdali.formats.storage import Bytes, ByteStorage, describe_storage
from torchdali.formats.tar_sparse import BLOCK, Records, Sparse, parse_number, read_sparse_header, read_sparse_records
from torchdali.formats.urls import redact

__all__ = [
    "BLOCK",
    "Archive",
    "Component",
    "Member",
    "group_members",
    "index_text",
    "locate_samples",
    "parse_index",
    "read_indexable_samples",
    "read_samples",
    "split_name",
    "write_end",
    "write_member",
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

_FILE_TYPES = (b"0", b"\0", b"7", b"S")
_LINK_TYPE = b"1"
_SKIPPED_TYPES = {
    b"2": "a symbolic link", b"3": "a device", b"4": "a device", b"6": "a named pipe (FIFO)", b"M": "the end of a file",
}  # fmt: skip
_EXTENSION_TYPES = (b"x", b"X", b"L", b"K")
_TYPES_WITHOUT_CONTENT = (b"1", b"2", b"3", b"4", b"5", b"6")


class _ExtensionValues(NamedTuple):
    """Values of the extension headers, which precede the header of a file."""

    name: str = ""
    link: str = ""
    size: int = -1
    records: Records = ()

    def merge(self, kind: bytes, text: bytes) -> _ExtensionValues:
        """Return a copy of the values that is updated with another extension header."""
        if kind == b"L":
            return self._replace(name=_decode_name(text))
        if kind == b"K":
            return self._replace(link=_decode_name(text))
        records = tuple(_parse_pax(text))
        by_key = dict(records)
        name = by_key.get("GNU.sparse.name", by_key.get("path", self.name))
        return _ExtensionValues(name, by_key.get("linkpath", self.link), _parse_size(by_key, self.size), records)


class Archive:
    """A tar archive, as a `ByteStorage` (bytes that are read by ranges).

    Archives store sparse files (files with holes) in pieces. This `ByteStorage` has the archive's bytes, followed by
    the complete content of each sparse file.

    Args:
        storage: Storage of the archive.

    Attributes:
        skipped: For each skipped entry that is not a file, its offset and a description (name and type).
    """

    def __init__(self, storage: ByteStorage) -> None:
        self.path, self.size = storage.path, storage.size
        self.skipped: list[tuple[int, str]] = []
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

    def to_archive_offset(self, offset: int) -> int:
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
            (length, archive_offset), start = self._parts[part], self._starts[part]
            first, last = max(start, offset), min(start + length, end)
            if first < last:
                data[first - offset : last - offset] = self._storage.read(archive_offset + first - start, last - first)
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
            described = describe_storage(self._storage, "tar")
            raise RuntimeError(f"corrupted tar file {self.path}: {error}{described}") from None

    def _members(self, offset: int) -> Iterator[Member]:
        start, values, end = offset, _ExtensionValues(), self._storage.size
        while offset < end:
            if end - offset < BLOCK:
                raise ValueError(f"{end - offset} bytes remain at {offset}, too few for a header")
            header = self._storage.read(offset, BLOCK).tobytes()
            if not any(header):
                return
            _check_checksum(header, offset)
            kind, length, content_offset = header[156:157], parse_number(header[124:136], offset), offset + BLOCK
            if kind in _EXTENSION_TYPES:
                values = values.merge(kind, self._read_text(content_offset, length))
            elif kind in _FILE_TYPES:
                length = length if values.size < 0 else values.size
                member, content_offset = self._read_file(header, content_offset, length, values)
                yield self._register_file(member._replace(start=start))
            elif kind != b"g":
                yield from (member._replace(start=start) for member in self._resolve_entry(header, offset, values))
                length = 0 if kind in _TYPES_WITHOUT_CONTENT else length
            if kind not in (*_EXTENSION_TYPES, b"g"):
                values = _ExtensionValues()
            self._check_length(content_offset, length)
            offset = content_offset + -(-length // BLOCK) * BLOCK
            start = start if kind in _EXTENSION_TYPES else offset

    def _read_file(
        self, header: bytes, content_offset: int, length: int, values: _ExtensionValues
    ) -> tuple[Member, int]:
        """Return a file, and the offset of its `length` stored bytes."""
        name = values.name or _read_name(header)
        sparse = read_sparse_header(self._storage, header, content_offset) if header[156:157] == b"S" else None
        if sparse is not None:
            content_offset = sparse.start
        self._check_length(content_offset, length)
        if sparse is None:
            sparse = read_sparse_records(self._storage, values.records, content_offset, length)
        if sparse is None:
            return Member(name, content_offset, length), content_offset
        sparse.check(length - (sparse.start - content_offset))
        return Member(name, self._expand(sparse), sparse.size), content_offset

    def _expand(self, sparse: Sparse) -> int:
        """Add the pieces of a sparse file to this storage; return the file's offset."""
        offset, archive_offset = self.size, sparse.start
        self.size += sparse.size
        for start, length in [(0, 0), *sparse.extents]:
            self._starts.append(offset + start)
            self._parts.append((length, archive_offset))
            archive_offset += length
        return offset

    def _register_file(self, member: Member) -> Member:
        self._files[posixpath.normpath(member.name)] = member
        return member

    def _resolve_entry(self, header: bytes, offset: int, values: _ExtensionValues) -> Iterator[Member]:
        """Yield the file that a hard link refers to. Append an entry that is not a file to `skipped`."""
        kind, name = header[156:157], values.name or _read_name(header)
        target = values.link or _decode_name(header[157:257])
        file = self._files.get(posixpath.normpath(target)) if kind == _LINK_TYPE else None
        if file is not None:
            yield self._register_file(file._replace(name=name))
        elif kind == _LINK_TYPE:
            self.skipped.append((offset, f"{name!r}, a hard link to {target!r}, and no file before it has this name"))
        elif kind in _SKIPPED_TYPES:
            self.skipped.append((offset, f"{name!r}, {_SKIPPED_TYPES[kind]}" + (f" to {target!r}" if target else "")))

    def _check_length(self, offset: int, length: int) -> None:
        if length > self._storage.size - offset:
            raise ValueError(
                f"a member of {length} bytes at {offset} reaches beyond the end of the file at {self._storage.size}"
            )

    def _read_text(self, offset: int, length: int) -> bytes:
        if length > _LONGEST_NAME:
            raise ValueError(
                f"the name in the header at {offset - BLOCK} must have at most {_LONGEST_NAME} bytes, got {length}"
            )
        self._check_length(offset, length)
        return self._storage.read(offset, length).tobytes()


def _check_checksum(header: bytes, offset: int) -> None:
    stored = parse_number(header[148:156], offset)
    counted = sum(header) - sum(header[148:156]) + 8 * ord(" ")
    if stored != counted:
        raise ValueError(f"the checksum of the header at {offset} must be {counted}, got {stored}")


def _decode_name(field: bytes) -> str:
    return field.split(b"\0")[0].decode("utf-8", "surrogateescape")


def _read_name(header: bytes) -> str:
    name = _decode_name(header[:100])
    if header[257:263] == b"ustar\0" and header[345]:
        name = f"{_decode_name(header[345:500])}/{name}"
    return name


def _parse_pax(text: bytes) -> Iterator[tuple[str, str]]:
    """Yield the keys and values of a pax header, which consists of lines ``length key=value``."""
    offset, end = 0, len(text.rstrip(b"\0"))
    while offset < end:
        space = text.find(b" ", offset, offset + 9)
        digits = text[offset:space] if space >= 0 else b""
        length = int(digits) if digits.isdigit() else 0
        key, equals, value = text[space + 1 : offset + length - 1].partition(b"=")
        if not len(digits) + 1 < length <= end - offset or not equals:
            raise ValueError(f"a line of a pax header must be `length key=value`, got {text[offset : offset + 20]!r}")
        yield key.decode("utf-8", "replace"), value.decode("utf-8", "surrogateescape")
        offset += length


def _parse_size(records: dict[str, str], size: int) -> int:
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


def group_members(members: Iterable[Member]) -> Iterator[list[Component]]:
    """Yield samples: consecutive files with the same key. Hidden files and files without an extension are skipped."""
    last_key, sample = "", list[Component]()
    for member in members:
        key, extension = split_name(member.name)
        if not extension or not key or key.endswith("/"):
            continue
        if key != last_key and sample:
            yield sample
            sample = []
        last_key = key
        sample.append((extension, member.offset, member.size, member.name))
    if sample:
        yield sample


def read_samples(archive: Archive) -> Iterator[list[Component]]:
    """Yield the samples of an archive; at the end, warn about skipped entries that are not files."""
    yield from group_members(archive.members())
    if archive.skipped:
        warn(
            f"{archive.path}: members that aren't files are skipped, {len(archive.skipped)} in total, for example "
            f"{archive.skipped[0][1]}. Write the archive with the files themselves (tar --dereference)"
        )


def locate_samples(archive: Archive, start: int) -> Iterator[tuple[int, list[Component]]]:
    """Yield the samples from an offset on, each with the offset of its first header."""
    starts: dict[tuple[str, int], int] = {}

    def note_offsets() -> Iterator[Member]:
        for member in archive.members(start):
            starts[member.name, member.offset] = member.start
            yield member

    for sample in group_members(note_offsets()):
        yield starts[sample[0][3], sample[0][1]], sample
        for _, offset, _, name in sample:
            starts.pop((name, offset), None)


def read_indexable_samples(storage: ByteStorage) -> Iterator[list[Component]]:
    """Yield the samples of an archive for its index.

    Raises:
        RuntimeError: The archive has a sparse file, which an index cannot describe.
    """
    for sample in read_samples(Archive(storage)):
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
        raise RuntimeError(f"malformed index file {redact(path)}, line 1: {error}") from None
    samples = []
    for number in range(1, count + 1):
        words = lines[number].split() if number < len(lines) else []
        try:
            samples.append(
                [_parse_component(words[i : i + width], width, storage) for i in range(0, len(words), width)]
            )
            if not words:
                raise ValueError("no extensions provided for the sample")
        except ValueError as error:
            raise RuntimeError(f"malformed index file {redact(path)}, line {number + 1}: {error}") from None
    return samples


def _read_head(words: list[str]) -> tuple[int, int]:
    if not words:
        raise ValueError("no version signature found")
    if words[0] not in _VERSIONS:
        supported = ", ".join(_VERSIONS)
        raise ValueError(f"Unsupported version of the index file ({words[0]}). The supported versions are {supported}")
    if len(words) < 2 or not words[1].lstrip("-").isdigit():
        raise ValueError("no sample count found")
    if int(words[1]) < 1:
        raise ValueError("sample count must be positive")
    return _VERSIONS[words[0]], int(words[1])


def _parse_component(words: list[str], width: int, storage: ByteStorage) -> Component:
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
    invalid = next((p for sample in samples for p in sample if len(p[0].split()) != 1), None)
    if invalid is not None:
        raise RuntimeError(f"an index needs extensions without spaces, got the name {invalid[3]!r}")
    has_names = all(len(part[3].split()) == 1 for sample in samples for part in sample)
    width = 4 if has_names else 3
    lines = (" ".join(str(word) for part in sample for word in part[:width]) for sample in samples)
    head = f"{'v1.2' if has_names else 'v1.1'} {len(samples)}"
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
