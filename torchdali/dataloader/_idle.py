"""Engines between two loops: a loader that is iterated again reuses one, and a program keeps few of them."""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import Any

from torchdali.dataloader._rows import BatchEngine
from torchdali.threads import close_abandoned

__all__ = ["IdleEngines"]

_MOST = 2  # idle engines of the process: one for training, one for validation


class _IdleEngine:
    """An idle engine, and the key of its plan."""

    def __init__(self, owner: IdleEngines, key: Any, engine: BatchEngine) -> None:
        self.owner, self.key, self.engine = weakref.ref(owner), key, engine


class IdleEngines:
    """Engines of one loader that no iterator uses."""

    def __init__(self) -> None:
        self._entries: list[_IdleEngine] = []

    def engines(self) -> list[BatchEngine]:
        """Return the engines; they stay here."""
        return [entry.engine for entry in self._entries.copy()]

    def take(self, key: Any) -> BatchEngine | None:
        """Return an engine of a plan, and close the engines of other plans."""
        for entry in self._entries.copy():
            if self._remove(entry):
                if entry.key == key:
                    return entry.engine
                close_abandoned(entry.engine)
        return None

    def keep(self, key: Any, engine: BatchEngine) -> None:
        """Add an engine; of all loaders' engines, close those that have been idle for longest."""
        entry = _IdleEngine(self, key, engine)
        self._entries.append(entry)
        _order.append(weakref.ref(entry))
        idle = [each for each in map(_alive, _order.copy()) if each is not None]
        for oldest in idle[: max(0, len(idle) - _MOST)]:
            owner = oldest.owner()
            if owner is not None:
                owner._close(oldest)

    def close(self) -> None:
        """Close all engines."""
        for entry in self._entries.copy():
            self._close(entry)

    def _close(self, entry: _IdleEngine) -> None:
        if self._remove(entry):
            close_abandoned(entry.engine)

    def _remove(self, entry: _IdleEngine) -> bool:
        """Remove an entry; return True if the engine now belongs only to the caller, and still has its threads."""
        try:
            self._entries.remove(entry)  # one step: another thread may remove it, too
        except ValueError:
            return False
        return entry.engine.process == os.getpid()  # a forked process has no threads


_order: list[weakref.ref[_IdleEngine]] = []  # the entries of all loaders, the oldest first


def _alive(reference: weakref.ref[_IdleEngine]) -> _IdleEngine | None:
    entry = reference()
    if entry is None:
        with contextlib.suppress(ValueError):
            _order.remove(reference)
    return entry
