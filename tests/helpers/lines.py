"""Lines of code that warnings show."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Iterable

__all__ = ["lines_of"]


def lines_of(found: Iterable[warnings.WarningMessage]) -> list[str]:
    """Return the lines of user warnings; the garbage collector may cause other warnings at any time."""
    shown = [each for each in found if issubclass(each.category, UserWarning)]
    return [linecache.getline(each.filename, each.lineno).strip() for each in shown]
