"""Wire format of protocol buffers, read in many records at a time: a column of numbers for each value.

What is not in the usual form is for the readers of single records: `Unusual` says so.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchdali.formats.storage import Bytes

__all__ = ["Column", "Field", "Rows", "Unusual"]

Column = npt.NDArray[np.int64]
_LENGTHS, _NUMBERS = 4, 10  # bytes of a varint: of a length of less than 2**28, and at most
_PLACES = np.arange(_NUMBERS)
# By the number of bytes of a varint, which bits of it are its value; and what the value's bits are multiplied by.
_BITS = np.where(_PLACES[:, None] >= _PLACES, 127, 0)
_WEIGHTS = np.left_shift(np.uint64(1), (7 * _PLACES).astype(np.uint64)).view(np.int64)


class Unusual(Exception):
    """The records are damaged, or not in a form that is read here."""


class Field(NamedTuple):
    """The next field of a message in each row.

    Attributes:
        tag: Number and wire type, as they are written.
        begin: Where the content begins; of a varint, the number itself.
        end: Where the content ends, and the next field begins.
    """

    tag: Column
    begin: Column
    end: Column


class Rows:
    """Bytes of many records.

    Args:
        arrays: In which the records are.
        of: Which of them each record is in, ``(N,)``.
    """

    def __init__(self, arrays: list[Bytes], of: Column) -> None:
        self._arrays, self._of = arrays, of

    def at(self, places: Column, width: int) -> Bytes:
        """Return bytes of each row from a place on, ``(N, width)``; beyond the end of an array its last byte."""
        wanted = places[:, None] + _upto(width)
        if len(self._arrays) == 1:
            return self._arrays[0].take(wanted, mode="clip")
        found = np.empty(wanted.shape, np.uint8)
        for number, array in enumerate(self._arrays):
            here = self._of == number
            found[here] = array.take(wanted[here], mode="clip")
        return found

    def length(self, places: Column) -> tuple[Column, Column]:
        """Read a varint that is a length in each row; return it and the place after it."""
        return _varint(self.at(places, _LENGTHS), places)

    def number(self, places: Column) -> tuple[Column, Column]:
        """Read a varint in each row as a signed number; return it and the place after it."""
        return _varint(self.at(places, _NUMBERS), places)

    def field(self, at: Column, end: Column) -> Field:
        """Read the field at a place of each row: a varint, or one of bytes, whose number is below 16.

        Raises:
            Unusual: there is another one, or it reaches beyond ``end``.
        """
        window = self.at(at, 1 + _LENGTHS)
        tag = window[:, 0].astype(np.int64)
        value, begin = _varint(window[:, 1:], at + 1)
        kind = tag & 7
        if not np.count_nonzero(kind != 2):  # of bytes all, as a rule
            stop = begin + value
        else:
            is_bytes = kind == 2
            stop = np.where(is_bytes, begin + value, begin)
            begin = np.where(is_bytes, begin, value)
            _usual(is_bytes | (kind == 0))
        _usual((tag < 128) & (stop <= end))
        return Field(tag, begin, stop)

    def only(self, tag: int, at: Column, end: Column) -> Field:
        """Read a field of bytes that is all that a message holds in each row.

        Raises:
            Unusual: it is another one, or there are more.
        """
        found = self.field(at, end)
        _usual((found.tag == tag) & (found.end == end))
        return found


@functools.lru_cache
def _upto(width: int) -> Column:
    return np.arange(width)


def _usual(rows: npt.NDArray[np.bool_]) -> None:
    if np.count_nonzero(rows) != len(rows):
        raise Unusual


def _varint(window: Bytes, at: Column) -> tuple[Column, Column]:
    more = window > 127
    if not np.count_nonzero(more[:, 0]):
        return window[:, 0].astype(np.int64), at + 1
    width = window.shape[1]
    _usual(~np.all(more, axis=1))  # too long for what it is
    last = more.argmin(1)
    value = (window & _BITS[last, :width]) @ _WEIGHTS[:width]
    return value, at + (last + 1)
