"""Read LMDB databases without the LMDB library: find the offset and size of each key's value in the file.

The layout of the pages follows ``mdb.c`` (https://github.com/LMDB/lmdb), version 1 of the data format, for 64-bit
little-endian machines. A file has two meta pages, and then the pages of a B+ tree. Large values are in separate
overflow pages.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from torchdali.formats.storage import Bytes, ByteStorage, describe_storage

__all__ = ["LmdbEntry", "data_file", "read_entries"]

_PAGE = struct.Struct("<QHHHH")  # number, padding, flags, lower, upper
_NODE = struct.Struct("<HHHH")  # low and high half of the value's size, flags, size of the key
_META = struct.Struct("<II")  # magic number, version
_TREE = struct.Struct("<IHHQQQQQ")  # padding or page size, flags, depth, pages of three kinds, entries, root
_BRANCH, _LEAF, _OVERFLOW = 0x01, 0x02, 0x04
_BIG, _SUBTREE, _DUPLICATES = 0x01, 0x02, 0x04
_MAGIC, _NO_PAGE = 0xBEEFC0DE, 0xFFFFFFFFFFFFFFFF
_MAX_DEPTH = 32
_TREES_OFFSET, _TRANSACTION_OFFSET = _PAGE.size + 24, _PAGE.size + 24 + 2 * _TREE.size + 8


class LmdbEntry(NamedTuple):
    """A key, and the offset and size of the key's value in the file."""

    key: bytes
    offset: int
    size: int


def data_file(path: str) -> str:
    """Return the path of a database's data file; `path` may be the file or its folder."""
    return os.path.join(path, "data.mdb") if os.path.isdir(path) else path


def read_entries(storage: ByteStorage) -> Iterator[LmdbEntry]:
    """Yield the entries of the main database, in the order of the keys.

    Raises:
        RuntimeError: The file is damaged, or isn't an LMDB database.
    """
    try:
        size, root, depth = _newest_tree(storage)
        if root != _NO_PAGE:
            yield from _walk_tree(storage, size, root, depth, iter(range(storage.size // size)))
    except (ValueError, struct.error) as error:
        description = describe_storage(storage)
        raise RuntimeError(f"{storage.path} is not an LMDB database, or is damaged: {error}{description}") from None


def _newest_tree(storage: ByteStorage) -> tuple[int, int, int]:
    """Return the page size, and the root and depth of the main tree, from the newer of the two meta pages."""
    first = _read_meta(storage, 0)
    size = first[1]
    if size < 512 or size & (size - 1) or size > 1 << 16:
        raise ValueError(f"the page size must be a power of 2 from 512 to 65536, got {size}")
    newest = max(first, _read_meta(storage, size))
    return size, newest[2], newest[3]


def _read_meta(storage: ByteStorage, offset: int) -> tuple[int, int, int, int]:
    """Return the number of the transaction, the page size, and the root and depth of the main tree from a meta page."""
    if storage.size < offset + _TRANSACTION_OFFSET + 8:
        raise ValueError("the file is too short")
    page = storage.read(offset, _TRANSACTION_OFFSET + 8).data
    magic, version = _META.unpack_from(page, _PAGE.size)
    if magic != _MAGIC:
        raise ValueError(f"a meta page must begin with {_MAGIC:#x}, got {magic:#x}")
    if version != 1:
        raise ValueError(f"the version of the data format must be 1, got {version}")
    page_size, *_ = _TREE.unpack_from(page, _TREES_OFFSET)
    _, _, depth, *_, root = _TREE.unpack_from(page, _TREES_OFFSET + _TREE.size)
    (transaction,) = struct.unpack_from("<Q", page, _TRANSACTION_OFFSET)
    return transaction, page_size, root, depth


def _walk_tree(
    storage: ByteStorage, size: int, number: int, depth: int, page_budget: Iterator[int]
) -> Iterator[LmdbEntry]:
    """Yield the entries of a subtree.

    Args:
        number: Number of the subtree's root page.
        page_budget: Iterator with one item per page of the file. Each visited page consumes an item; if none
            remains, the pages form a cycle.
    """
    if not 0 < depth <= _MAX_DEPTH:
        raise ValueError(f"the depth of a tree must be 1 to {_MAX_DEPTH}, got {depth}")
    if next(page_budget, None) is None:
        raise ValueError("the pages form a cycle")
    page = _read_page(storage, size, number)
    data = page.data
    _, _, flags, lower, _ = _PAGE.unpack_from(data)
    if flags & _LEAF and depth == 1:
        for node in _read_nodes(data, lower, size):
            yield _read_entry(storage, size, number, data, node)
    elif flags & _BRANCH and depth > 1:
        for node in _read_nodes(data, lower, size):
            low, high, top, _ = _NODE.unpack_from(data, node)
            yield from _walk_tree(storage, size, low | high << 16 | top << 32, depth - 1, page_budget)
    else:
        raise ValueError(f"page {number} has unexpected flags {flags:#x} at depth {depth}")


def _read_page(storage: ByteStorage, size: int, number: int) -> Bytes:
    if number < 2 or (number + 1) * size > storage.size:
        raise ValueError(f"page {number} is outside of the file")
    return storage.read(number * size, size)


def _read_nodes(data: memoryview, lower: int, size: int) -> list[int]:
    count = (lower - _PAGE.size) // 2
    if lower > size or count < 0:
        raise ValueError(f"a page's index must end within the page, got the end {lower}")
    return list(struct.unpack_from(f"<{count}H", data, _PAGE.size))


def _read_entry(storage: ByteStorage, size: int, number: int, data: memoryview, node: int) -> LmdbEntry:
    low, high, flags, key_size = _NODE.unpack_from(data, node)
    length, begin = low | high << 16, node + _NODE.size + key_size
    if flags & (_SUBTREE | _DUPLICATES):
        raise ValueError("named databases and duplicate keys aren't supported")
    key = bytes(data[node + _NODE.size : begin])
    if not flags & _BIG:
        if begin + length > size:
            raise ValueError(f"a value of {length} bytes reaches beyond page {number}")
        return LmdbEntry(key, number * size + begin, length)
    (overflow,) = struct.unpack_from("<Q", data, begin)
    offset = overflow * size + _PAGE.size
    if offset + length > storage.size:
        raise ValueError(f"a value of {length} bytes at {offset} reaches beyond the end of the file at {storage.size}")
    return LmdbEntry(key, offset, length)
