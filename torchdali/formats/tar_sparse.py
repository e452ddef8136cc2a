"""Sparse files in tar archives: read the map of the stored parts, in GNU tar's formats.

A sparse file has large holes of zeros, which are not stored. The map of the file lists the parts between the holes.
Formats: https://www.gnu.org/software/tar/manual/html_node/Sparse-Formats.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torchdali.formats.storage import ByteStorage

__all__ = ["BLOCK", "Extent", "Records", "Sparse", "header_number", "sparse_of_header", "sparse_of_records"]

BLOCK = 512
# The holes of a file may have `_FREE_HOLES` bytes, and `_HOLES_PER_BYTE` bytes more for each stored byte.
_FREE_HOLES = 1 << 24
_HOLES_PER_BYTE = 1024
_MOST_DIGITS = 18

Extent = tuple[int, int]
"""Offset of a stored part in the sparse file, and the part's number of bytes."""

Records = Sequence[tuple[str, str]]
"""Keys and values of a pax header."""


class Sparse(NamedTuple):
    """A sparse file. The archive stores only the parts between the holes, one after another.

    Attributes:
        size: Size of the whole file.
        start: Offset of the stored parts in the archive.
        extents: Extents of the stored parts.
    """

    size: int
    start: int
    extents: list[Extent]

    def check(self, stored: int) -> None:
        """Check the map of a file.

        Args:
            stored: Number of bytes that are stored for the file.

        Raises:
            ValueError: The parts overlap, are not in order, or have more bytes than are stored; or the holes are too
                large.
        """
        ends = [0, *(place + count for place, count in self.extents), self.size]
        starts = [*(place for place, _ in self.extents), self.size]
        used = sum(count for _, count in self.extents)
        if used > stored or any(start < end for end, start in zip(ends, starts, strict=False)):
            raise ValueError(f"the map of the sparse member at {self.start} contradicts its {stored} stored bytes")
        most = _FREE_HOLES + _HOLES_PER_BYTE * used
        if self.size - used > most:
            raise ValueError(
                f"the sparse member at {self.start} must have at most {most} bytes of zeros, got {self.size} bytes "
                f"with {used} stored"
            )


def header_number(field: bytes, at: int) -> int:
    """Read a number in octal digits or in GNU's base 256.

    Args:
        field: Bytes of the number in a header.
        at: Offset of the header, for error messages.
    """
    if field[0] & 0x80:
        return int.from_bytes(bytes((field[0] & 0x7F, *field[1:])), "big")
    try:
        value = int(field.split(b"\0")[0].strip() or b"0", 8)
        if value < 0:
            raise ValueError
        return value
    except ValueError:
        raise ValueError(f"a field of the header at {at} must be a number, got {field!r}") from None


def sparse_of_header(storage: ByteStorage, header: bytes, data: int) -> Sparse:
    """Read the map of a file of GNU's type ``S``, from its header and the blocks at `data`."""
    extents = list(_fields(header[386:482], data))
    more, size = header[482], header_number(header[483:495], data)
    while more:
        block = storage.read(data, BLOCK).tobytes()
        extents += _fields(block[:504], data)
        more, data = block[504], data + BLOCK
    return Sparse(size, data, extents)


def _fields(fields: bytes, at: int) -> Iterator[Extent]:
    for place in range(0, len(fields), 24):
        if not any(fields[place : place + 24]):
            return
        yield header_number(fields[place : place + 12], at), header_number(fields[place + 12 : place + 24], at)


_PREFIX = "GNU.sparse."
_OF_STAR = ("SCHILY.realsize", "SUN.holesdata")


def sparse_of_records(storage: ByteStorage, records: Records, data: int, length: int) -> Sparse | None:
    """Read the map of a file with a pax header.

    The versions 0.0, 0.1 and 1.0 of GNU tar's sparse format are supported. In version 1.0, the map is at the start of
    the file's content; in the other versions, the map is in the pax header.

    Args:
        data: Offset of the file's content.
        length: Length of the content.

    Returns:
        The sparse file; None if the file isn't sparse.

    Raises:
        ValueError: The map has another version, or is damaged.
    """
    values = {key.removeprefix(_PREFIX): value for key, value in records if key.startswith(_PREFIX)}
    if any(key in _OF_STAR for key, _ in records):
        raise ValueError(f"the member at {data} is sparse in an unknown format. Write the archive again with GNU tar")
    if not values:
        return None
    version = values.get("major", "0"), values.get("minor", "0")
    if version == ("1", "0"):
        start, extents = _map_of_content(storage, data, length)
        return Sparse(_decimal(values.get("realsize", ""), data), start, extents)
    if version[0] != "0":
        known = "the supported versions are 0.0, 0.1 and 1.0"
        raise ValueError(f"the member at {data} has the sparse format {'.'.join(version)}; {known}")
    size = _decimal(values.get("size", values.get("realsize", "")), data)
    if "map" in values:
        return Sparse(size, data, _pairs(values["map"].split(",") if values["map"] else [], data))
    words = [value for key, value in records if key in (f"{_PREFIX}offset", f"{_PREFIX}numbytes")]
    return Sparse(size, data, _pairs(words, data))


def _map_of_content(storage: ByteStorage, data: int, length: int) -> tuple[int, list[Extent]]:
    """Read the map at the start of a file's content, and return the offset of the stored parts and their extents.

    The map consists of lines of numbers. The stored parts begin in the block after the map.
    """
    blocks = storage.read(data, min(length, BLOCK)).tobytes()
    count = _decimal(blocks.partition(b"\n")[0].decode("latin-1"), data)
    lines = blocks.count(b"\n")
    parts = [blocks]
    while lines < 1 + 2 * count:
        at = data + BLOCK * len(parts)
        if at + BLOCK > data + length:
            raise ValueError(f"the map of the sparse member at {data} reaches beyond the member")
        parts.append(storage.read(at, BLOCK).tobytes())
        lines += parts[-1].count(b"\n")
    words = b"".join(parts).decode("latin-1").split("\n")[1 : 1 + 2 * count]
    return data + BLOCK * len(parts), _pairs(words, data)


def _pairs(words: Sequence[str], at: int) -> list[Extent]:
    numbers = [_decimal(word, at) for word in words]
    if len(numbers) % 2:
        raise ValueError(f"the map of the sparse member at {at} must have an even number of entries")
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _decimal(word: str, at: int) -> int:
    if not (word.isascii() and word.isdigit()) or len(word) > _MOST_DIGITS:
        raise ValueError(f"the map of the sparse member at {at} must consist of numbers, got {word[:20]!r}")
    return int(word)
