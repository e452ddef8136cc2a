"""`IdleEngines`: engines (threads that create batches) that a loader reuses in its next loop.

Each engine was created for a plan, which describes how a loader is accelerated. A process has only a few idle engines.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import Any

from torchdali.dataloader._rows import BatchEngine
from torchdali.threads import close_abandoned

__all__ = ["IdleEngines"]

_MAX_IDLE = 2  # maximum number of idle engines in a process: one for training and one for validation


class _IdleEngine:
    """An idle engine, with the loader's `IdleEngines` and the key of the engine's plan."""

    def __init__(self, owner: IdleEngines, key: Any, engine: BatchEngine) -> None:
        self.owner, self.key, self.engine = weakref.ref(owner), key, engine


class IdleEngines:
    """The idle engines of one loader."""

    def __init__(self) -> None:
        self._entries: list[_IdleEngine] = []

    def engines(self) -> list[BatchEngine]:
        """Return the idle engines without removing them."""
        return [entry.engine for entry in self._entries.copy()]

    def pop(self, key: Any) -> BatchEngine | None:
        """Remove and return the engine for the plan with this key; None if there isn't one.

        Engines for other plans may be closed.
        """
        for entry in self._entries.copy():
            if self._remove(entry):
                if entry.key == key:
                    return entry.engine
                close_abandoned(entry.engine)
        return None

    def add(self, key: Any, engine: BatchEngine) -> None:
        """Add an idle engine and its plan's key. If the process now has too many idle engines, close the oldest."""
        entry = _IdleEngine(self, key, engine)
        self._entries.append(entry)
        _all_entries.append(weakref.ref(entry))
        idle = [each for each in map(_dereference, _all_entries.copy()) if each is not None]
        for oldest in idle[: max(0, len(idle) - _MAX_IDLE)]:
            owner = oldest.owner()
            if owner is not None:
                owner._close(oldest)

    def close(self) -> None:
        for entry in self._entries.copy():
            self._close(entry)

    def _close(self, entry: _IdleEngine) -> None:
        if self._remove(entry):
            close_abandoned(entry.engine)

    def _remove(self, entry: _IdleEngine) -> bool:
        """Remove an entry; return True if the caller may use or close its engine.

        Return False if another thread has already removed the entry, or if the engine belongs to the parent process.
        """
        try:
            self._entries.remove(entry)  # raises ValueError if another thread has removed the entry
        except ValueError:
            return False
        return entry.engine.process == os.getpid()  # False in a forked process, which doesn't have the threads


_all_entries: list[weakref.ref[_IdleEngine]] = []  # the entries of all loaders, oldest first


def _dereference(reference: weakref.ref[_IdleEngine]) -> _IdleEngine | None:
    entry = reference()
    if entry is None:
        with contextlib.suppress(ValueError):
            _all_entries.remove(reference)
    return entry
