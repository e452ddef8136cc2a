"""Members of tar archives (ustar, GNU and pax headers), and the samples of webdataset that they make up.

Formats: POSIX.1-2017, `pax`; https://www.gnu.org/software/tar/manual/html_node/Standard.html;
https://github.com/webdataset/webdataset.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

from torchdali.formats.storage import Storage, described_storage, read_text, write_text

__all__ = [
    "BLOCK", "Component", "Member", "group", "members", "read_index", "split_name", "write_end", "write_index",
    "write_member",
]  # fmt: skip

BLOCK = 512
_LONGEST_NAME = 1 << 20

Component = tuple[str, int, int, str]
"""Extension, offset and size of the content, and name of a member."""


class Member(NamedTuple):
    """A file in an archive."""

    name: str
    offset: int
    size: int


# ---------------------------------------------------------------- archives


def members(storage: Storage) -> Iterator[Member]:
    """Yield the files of an archive in their order; folders, links and devices are left out.

    Raises:
        RuntimeError: the archive is damaged, or ends in a member.
    """
    try:
        yield from _members(storage)
    except ValueError as error:
        raise RuntimeError(f"corrupted tar file {storage.path}: {error}{described_storage(storage, 'tar')}") from None


def _members(storage: Storage) -> Iterator[Member]:
    at, name, size = 0, "", -1  # a name or size of a header before the member's own
    while at < storage.size:
        if storage.size - at < BLOCK:
            raise ValueError(f"{storage.size - at} bytes are left at {at}, too few for a header")
        header = storage.read(at, BLOCK).tobytes()
        if not any(header):
            return
        _check(header, at)
        kind, length = header[156:157], _number(header[124:136], at)
        data = at + BLOCK
        if kind in b"0\x007":
            length = length if size < 0 else size
            _check_length(storage, data, length)
            yield Member(name or _name(header), data, length)
            name, size = "", -1
        elif kind == b"L":
            name = _text(storage, data, length).split(b"\0")[0].decode("utf-8", "surrogateescape")
        elif kind == b"x":
            records = dict(_pax(_text(storage, data, length)))
            name, size = records.get("path", name), _size(records, size)
        elif kind in b"123456":
            name, size, length = "", -1, 0
        elif kind not in b"Kg":
            name, size = "", -1
        _check_length(storage, data, length)
        at = data + -(-length // BLOCK) * BLOCK


def _check(header: bytes, at: int) -> None:
    stored = _number(header[148:156], at)
    counted = sum(header) - sum(header[148:156]) + 8 * ord(" ")
    if stored != counted:
        raise ValueError(f"the check sum of the header at {at} is {stored} and should be {counted}")


def _number(field: bytes, at: int) -> int:
    """Read an octal number, or one of GNU in base 256."""
    if field[0] & 0x80:
        return int.from_bytes(bytes((field[0] & 0x7F, *field[1:])), "big")
    try:
        value = int(field.split(b"\0")[0].strip() or b"0", 8)
        if value < 0:
            raise ValueError
        return value
    except ValueError:
        raise ValueError(f"the header at {at} has {field!r} where a number should be") from None


def _name(header: bytes) -> str:
    name = header[:100].split(b"\0")[0]
    if header[257:263] == b"ustar\0" and header[345]:
        name = header[345:500].split(b"\0")[0] + b"/" + name
    return name.decode("utf-8", "surrogateescape")


def _check_length(storage: Storage, data: int, length: int) -> None:
    if length > storage.size - data:
        raise ValueError(f"a member of {length} bytes at {data} reaches beyond the end at {storage.size}")


def _text(storage: Storage, data: int, length: int) -> bytes:
    if length > _LONGEST_NAME:
        raise ValueError(f"the header at {data - BLOCK} says that a name has {length} bytes")
    _check_length(storage, data, length)
    return storage.read(data, length).tobytes()


def _pax(text: bytes) -> Iterator[tuple[str, str]]:
    """Read records ``length key=value\\n``."""
    while text.strip(b"\0"):
        digits, _, _ = text.partition(b" ")
        length = int(digits) if digits.isdigit() and len(digits) < 9 else 0
        key, equals, value = text[len(digits) + 1 : length - 1].partition(b"=")
        if not len(digits) + 1 < length <= len(text) or not equals:
            raise ValueError(f"a pax header begins with {text[:20]!r}")
        yield key.decode("utf-8", "replace"), value.decode("utf-8", "surrogateescape")
        text = text[length:]


def _size(records: dict[str, str], size: int) -> int:
    if "size" not in records:
        return size
    if not records["size"].isdigit() or len(records["size"]) > 18:
        raise ValueError(f"a pax header gives the size {records['size'][:20]!r}")
    return int(records["size"])


# ---------------------------------------------------------------- samples


def split_name(path: str) -> tuple[str, str]:
    """Return key and extension: what comes before and after the first dot of the file's name."""
    dot = path.find(".", path.rfind("/") + 1)
    return (path, "") if dot < 0 else (path[:dot], path[dot + 1 :])


def group(found: Iterable[Member]) -> Iterator[list[Component]]:
    """Yield samples: runs of members with one key. Hidden files, and those without an extension, belong to none."""
    last, sample = "", list[Component]()
    for member in found:
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


_VERSIONS = {"v1.1": 3, "v1.2": 4}
_TEMPLATE = {3: "<ext> <offset> <size>", 4: "<ext> <offset> <size> <filename>"}


def read_index(path: str, storage: Storage) -> list[list[Component]]:
    """Return the samples of an archive from its index, of the version 1.1 or 1.2.

    Raises:
        RuntimeError: it is malformed, or of another archive.
    """
    lines = read_text(path).split("\n")
    try:
        width, count = _read_head(lines[0].split())
    except ValueError as error:
        raise RuntimeError(f"malformed index file {path}, line 1: {error}") from None
    samples = []
    for number in range(1, count + 1):
        words = lines[number].split() if number < len(lines) else []
        try:
            samples.append([_component(words[i : i + width], width, storage) for i in range(0, len(words), width)])
            if not words:
                raise ValueError("no extensions provided for the sample")
        except ValueError as error:
            raise RuntimeError(f"malformed index file {path}, line {number + 1}: {error}") from None
    return samples


def _read_head(words: list[str]) -> tuple[int, int]:
    if not words:
        raise ValueError("no version signature found")
    if words[0] not in _VERSIONS:
        known = ", ".join(_VERSIONS)
        raise ValueError(f"Unsupported version of the index file ({words[0]}). Known are {known}")
    if len(words) < 2 or not words[1].lstrip("-").isdigit():
        raise ValueError("no sample count found")
    if int(words[1]) < 1:
        raise ValueError("sample count must be positive")
    return _VERSIONS[words[0]], int(words[1])


def _component(words: list[str], width: int, storage: Storage) -> Component:
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
        raise ValueError(f"a component of {size} bytes at {offset} reaches beyond the end at {storage.size}")
    return words[0], offset, size, words[3] if width > 3 else ""


def write_index(path: str, samples: list[list[Component]]) -> None:
    """Write an index file: of the version 1.2, or of 1.1, which has no names, if there are spaces in them.

    Raises:
        RuntimeError: there are spaces in an extension.
    """
    spaces = next((p for sample in samples for p in sample if len(p[0].split()) != 1), None)
    if spaces is not None:
        raise RuntimeError(f"the extension of {spaces[3]!r} cannot stand in an index: there is a space in it")
    named = all(len(part[3].split()) == 1 for sample in samples for part in sample)
    width = 4 if named else 3
    lines = (" ".join(str(word) for part in sample for word in part[:width]) for sample in samples)
    head = f"{'v1.2' if named else 'v1.1'} {len(samples)}"
    write_text(path, (line + "\n" for line in itertools.chain((head,), lines)))


# ---------------------------------------------------------------- writing


def write_member(file: BinaryIO, name: str, content: bytes) -> int:
    """Write a file into an archive, as of nobody and of no time; return how many bytes it takes.

    Raises:
        ValueError: the name is longer than 100 bytes.
    """
    encoded = os.fsencode(name)
    if not 0 < len(encoded) <= 100:
        raise ValueError(f"a member's name has 1 to 100 bytes: {name!r}")
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
    """Write what ends an archive."""
    file.write(bytes(2 * BLOCK))
