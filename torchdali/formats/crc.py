"""CRC-32C (Castagnoli), as TFRecord uses it: by the package google-crc32c if it is installed, otherwise by NumPy.

A remainder of a concatenation follows from those of its parts: ``crc(a + b) = shift(crc(a), len(b)) ^ crc(b)``, where
``shift`` is linear over bits. So many blocks are taken through the table side by side, and are joined by halves.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["crc32c", "crc32c_by_numpy", "masked_crc32c"]

_POLYNOMIAL = 0x82F63B78
_BLOCK = 64  # bytes; a power of two
_FEW = 1024  # below it the bytes are taken one by one

Words = npt.NDArray[np.uint32]


@functools.cache
def _table() -> Words:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table


@functools.cache
def _numbers() -> list[int]:
    return [int(entry) for entry in _table()]


def _advance(rows: npt.NDArray[np.uint8], start: Words) -> Words:
    """Take the bytes of each column, from the top to the bottom."""
    table, crc = _table(), start
    for row in rows:
        crc = table[(crc ^ row) & 0xFF] ^ (crc >> 8)
    return crc


@functools.lru_cache(maxsize=64)
def _shift(length: int) -> Words:
    """Return four tables, one a byte of the remainder, that move it over `length` zero bytes, a power of two."""
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    moved = _advanced_zeros(bits, length)
    values = np.arange(256, dtype=np.uint32)
    tables: Words = np.zeros((4, 256), np.uint32)
    for bit in range(32):
        place, inside = divmod(bit, 8)
        tables[place] ^= np.where(values >> np.uint32(inside) & 1, moved[bit], np.uint32(0))
    return tables


def _advanced_zeros(bits: Words, length: int) -> Words:
    if length == 1:
        moved: Words = _table()[bits & 0xFF] ^ (bits >> 8)
        return moved
    half = _shift(length // 2)
    return _apply(half, _apply(half, bits))


def _apply(tables: Words, crc: Words) -> Words:
    low: Words = tables[0][crc & 0xFF] ^ tables[1][crc >> 8 & 0xFF]
    high: Words = tables[2][crc >> 16 & 0xFF] ^ tables[3][crc >> 24]
    joined: Words = low ^ high
    return joined


@functools.cache
def _package() -> Callable[[bytes], int] | None:
    try:
        value: Callable[[bytes], int] = importlib.import_module("google_crc32c").value
    except ImportError:
        return None
    return value


def crc32c(data: npt.NDArray[np.uint8] | bytes) -> int:
    """Return the remainder of some bytes."""
    package = _package()
    if package is not None:
        return package(data if isinstance(data, bytes) else data.tobytes())
    return crc32c_by_numpy(data)


def crc32c_by_numpy(data: npt.NDArray[np.uint8] | bytes) -> int:
    """Return the remainder of some bytes, without the package."""
    array = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
    crc, start = 0xFFFFFFFF, 0
    if len(array) >= _FEW:
        start = len(array) // _BLOCK * _BLOCK
        crc = _of_blocks(array[:start].reshape(-1, _BLOCK))
    table = _numbers()
    for byte in array[start:].tolist():
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _of_blocks(blocks: npt.NDArray[np.uint8]) -> int:
    # Zeros before the first block change nothing, so their number can be made a power of two.
    unused = (1 << (len(blocks) - 1).bit_length()) - len(blocks)
    start = np.zeros(len(blocks), np.uint32)
    start[0] = 0xFFFFFFFF
    crc = np.zeros(unused + len(blocks), np.uint32)
    crc[unused:] = _advance(np.ascontiguousarray(blocks.T), start)
    length = _BLOCK
    while len(crc) > 1:
        crc = _apply(_shift(length), crc[::2]) ^ crc[1::2]
        length *= 2
    return int(crc[0])


def masked_crc32c(data: npt.NDArray[np.uint8] | bytes) -> int:
    """Return the remainder as TFRecord stores it: rotated by 15 bits, plus a constant."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
