"""Context managers. In each thread, the object whose ``with`` block was entered last is the current object."""

from __future__ import annotations

import threading
from typing import Any, TypeVar

__all__ = ["Scoped", "innermost"]

Self = TypeVar("Self", bound="Scoped")
_local = threading.local()


class Scoped:
    """Base class of context managers; `innermost` returns the current object."""

    def __enter__(self: Self) -> Self:
        _entered_stack(type(self)).append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _entered_stack(type(self)).pop()


def innermost(kind: type[Self]) -> Self | None:
    """Return the object of a class whose ``with`` block this thread entered last and hasn't left, or None."""
    entered = _entered_stack(kind)
    return entered[-1] if entered else None


def _entered_stack(kind: type) -> list[Any]:
    entered: list[Any] = vars(_local).setdefault(kind.__name__, [])
    return entered
