"""Defaults that are told apart from the same value given."""

from __future__ import annotations

__all__ = ["UnsetFlag", "UnsetFloat", "UnsetInt"]


class UnsetInt(int):
    """A default integer."""

    __slots__ = ()


class UnsetFloat(float):
    """A default number."""

    __slots__ = ()


class UnsetFlag(int):
    """A default truth value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(bool(self))
