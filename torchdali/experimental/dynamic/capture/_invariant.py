"""Mark values that are the same in all iterations of a captured loop."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["invariant"]

T = TypeVar("T")


def invariant(value: T) -> T:
    """Return a value unchanged; the value must be the same in all iterations of a captured loop.

    This function has no effect. Programs that were written for DALI may call it. In captured calls, torchdali always
    compares the values with the values of the first iteration, and raises an error if they differ.
    """
    return value
