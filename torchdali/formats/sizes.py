"""Sizes of memory and files, as numbers or as texts like ``"8GB"``."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["ByteSize", "SizeOrNone"]

_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", re.IGNORECASE)


class ByteSize(int):
    """A number of bytes, at least 1."""

    minimum = 1

    @classmethod
    def from_argument(cls, value: Any) -> ByteSize:
        """Convert a number or a text to a size.

        In a text, ``"8GB"`` means 8 * 10^9 bytes, and ``"8GiB"`` means 8 * 2^30 bytes.

        Raises:
            ValueError: The value is too small, or isn't a size.
        """
        match = _SIZE.fullmatch(value) if isinstance(value, str) else None
        if match is not None:
            number, unit, binary = match.groups()
            value = int(float(number) * (1024 if binary else 1000) ** _UNITS[unit.upper()])
        if not isinstance(value, int) or isinstance(value, bool) or value < cls.minimum:
            raise ValueError(f"a size must be a number of bytes or a text like '8GB' or '500MiB', got {value!r}")
        return cls(value)


class SizeOrNone(ByteSize):
    """A number of bytes, at least 0."""

    minimum = 0
