"""Sparse files in tar archives: read the map of the stored parts, in GNU tar's formats.

A sparse file has large holes of zeros, which are not stored. The map of the file lists the parts between the holes.
Formats: https://www.gnu.org/software/tar/manual/html_node/Sparse-Formats.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torchdali.formats.storage import ByteStorage

__all__ = ["BLOCK", "Extent", "Records", "Sparse", "parse_number", "read_sparse_header", "read_sparse_records"]

BLOCK = 512
# The holes of a file may have `_FREE_HOLES` bytes, and `_HOLES_PER_BYTE` bytes more for each stored byte.
_FREE_HOLES = 1 << 24
_HOLES_PER_BYTE = 1024
_MAX_DIGITS = 18

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
        ends = [0, *(offset + count for offset, count in self.extents), self.size]
        starts = [*(offset for offset, _ in self.extents), self.size]
        used = sum(count for _, count in self.extents)
        if used > stored or any(start < end for end, start in zip(ends, starts, strict=False)):
            raise ValueError(f"the map of the sparse member at {self.start} contradicts its {stored} stored bytes")
        limit = _FREE_HOLES + _HOLES_PER_BYTE * used
        if self.size - used > limit:
            raise ValueError(
                f"the sparse member at {self.start} must have at most {limit} bytes of zeros, got {self.size} bytes "
                f"with {used} stored"
            )


def parse_number(field: bytes, header_offset: int) -> int:
    """Read a number in octal digits or in GNU's base 256.

    Args:
        field: Bytes of the number in a header.
        header_offset: Offset of the header, for error messages.
    """
    if field[0] & 0x80:
        return int.from_bytes(bytes((field[0] & 0x7F, *field[1:])), "big")
    try:
        value = int(field.split(b"\0")[0].strip() or b"0", 8)
        if value < 0:
            raise ValueError
        return value
    except ValueError:
        raise ValueError(f"a field of the header at {header_offset} must be a number, got {field!r}") from None


def read_sparse_header(storage: ByteStorage, header: bytes, content_offset: int) -> Sparse:
    """Read the map of a file of GNU's type ``S``, from its header and the blocks at `content_offset`."""
    extents = list(_parse_extents(header[386:482], content_offset))
    has_more, size = header[482], parse_number(header[483:495], content_offset)
    while has_more:
        block = storage.read(content_offset, BLOCK).tobytes()
        extents += _parse_extents(block[:504], content_offset)
        has_more, content_offset = block[504], content_offset + BLOCK
    return Sparse(size, content_offset, extents)


def _parse_extents(fields: bytes, header_offset: int) -> Iterator[Extent]:
    for position in range(0, len(fields), 24):
        if not any(fields[position : position + 24]):
            return
        yield (
            parse_number(fields[position : position + 12], header_offset),
            parse_number(fields[position + 12 : position + 24], header_offset),
        )


_PREFIX = "GNU.sparse."
_STAR_KEYS = ("SCHILY.realsize", "SUN.holesdata")


def read_sparse_records(storage: ByteStorage, records: Records, content_offset: int, length: int) -> Sparse | None:
    """Read the map of a file with a pax header.

    The versions 0.0, 0.1 and 1.0 of GNU tar's sparse format are supported. In version 1.0, the map is at the start of
    the file's content; in the other versions, the map is in the pax header.

    Args:
        content_offset: Offset of the file's content.
        length: Length of the content.

    Returns:
        The sparse file; None if the file isn't sparse.

    Raises:
        ValueError: The map has another version, or is damaged.
    """
    values = {key.removeprefix(_PREFIX): value for key, value in records if key.startswith(_PREFIX)}
    if any(key in _STAR_KEYS for key, _ in records):
        raise ValueError(
            f"the member at {content_offset} is sparse in an unknown format. Write the archive again with GNU tar"
        )
    if not values:
        return None
    version = values.get("major", "0"), values.get("minor", "0")
    if version == ("1", "0"):
        start, extents = _read_map(storage, content_offset, length)
        return Sparse(_parse_decimal(values.get("realsize", ""), content_offset), start, extents)
    if version[0] != "0":
        supported = "the supported versions are 0.0, 0.1 and 1.0"
        raise ValueError(f"the member at {content_offset} has the sparse format {'.'.join(version)}; {supported}")
    size = _parse_decimal(values.get("size", values.get("realsize", "")), content_offset)
    if "map" in values:
        return Sparse(
            size, content_offset, _parse_pairs(values["map"].split(",") if values["map"] else [], content_offset)
        )
    words = [value for key, value in records if key in (f"{_PREFIX}offset", f"{_PREFIX}numbytes")]
    return Sparse(size, content_offset, _parse_pairs(words, content_offset))


def _read_map(storage: ByteStorage, content_offset: int, length: int) -> tuple[int, list[Extent]]:
    """Read the map at the start of a file's content, and return the offset of the stored parts and their extents.

    The map consists of lines of numbers. The stored parts begin in the block after the map.
    """
    blocks = storage.read(content_offset, min(length, BLOCK)).tobytes()
    count = _parse_decimal(blocks.partition(b"\n")[0].decode("latin-1"), content_offset)
    lines = blocks.count(b"\n")
    parts = [blocks]
    while lines < 1 + 2 * count:
        offset = content_offset + BLOCK * len(parts)
        if offset + BLOCK > content_offset + length:
            raise ValueError(f"the map of the sparse member at {content_offset} reaches beyond the member")
        parts.append(storage.read(offset, BLOCK).tobytes())
        lines += parts[-1].count(b"\n")
    words = b"".join(parts).decode("latin-1").split("\n")[1 : 1 + 2 * count]
    return content_offset + BLOCK * len(parts), _parse_pairs(words, content_offset)


def _parse_pairs(words: Sequence[str], offset: int) -> list[Extent]:
    numbers = [_parse_decimal(word, offset) for word in words]
    if len(numbers) % 2:
        raise ValueError(f"the map of the sparse member at {offset} must have an even number of entries")
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _parse_decimal(word: str, offset: int) -> int:
    if not (word.isascii() and word.isdigit()) or len(word) > _MAX_DIGITS:
        raise ValueError(f"the map of the sparse member at {offset} must consist of numbers, got {word[:20]!r}")
    return int(word)
