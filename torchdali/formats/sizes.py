"""Sizes of memory and files, as numbers or texts."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["ByteSize", "SizeOrNone"]

_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", re.IGNORECASE)


class ByteSize(int):
    """A number of bytes."""

    least = 1

    @classmethod
    def from_argument(cls, value: Any) -> ByteSize:
        """Convert a number, or a text like ``"8GB"`` (10^9 bytes per GB) or ``"8GiB"`` (2^30 per GiB), to a size.

        Raises:
            ValueError: the value is too small, or isn't a size.
        """
        match = _SIZE.fullmatch(value) if isinstance(value, str) else None
        if match is not None:
            number, unit, binary = match.groups()
            value = int(float(number) * (1024 if binary else 1000) ** _UNITS[unit.upper()])
        if not isinstance(value, int) or isinstance(value, bool) or value < cls.least:
            raise ValueError(f"a size must be a number of bytes or a text like '8GB' or '500MiB', got {value!r}")
        return cls(value)


class SizeOrNone(ByteSize):
    """A number of bytes, or 0."""

    least = 0
