"""Mark values that do not change from iteration to iteration."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["invariant"]

T = TypeVar("T")


def invariant(value: T) -> T:
    """Return a value that stays the same in all iterations of a captured loop.

    The mark is DALI's; it has no effect here, where the values that enter captured calls are compared with those of the
    first iteration, and one that differs raises.
    """
    return value
