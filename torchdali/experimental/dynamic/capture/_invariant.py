"""Mark values that are the same in all iterations of a captured loop."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["invariant"]

T = TypeVar("T")


def invariant(value: T) -> T:
    """Return a value unchanged; the value must be the same in all iterations of a captured loop.

    The function exists because DALI has it, but it has no effect. torchdali always compares the values in captured
    calls with the values of the first iteration, and raises an error if they differ.
    """
    return value
