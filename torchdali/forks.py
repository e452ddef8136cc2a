"""Locks and cached properties that remain usable in a forked process.

A forked process has one thread and a copy of all memory. If another thread held a lock at the moment of the fork, the
lock stays locked in the copy, where no thread can release it. Locks of modules and of long-lived objects, which any
process may acquire, must therefore be of the class `ForkSafeLock`. Locks that only one pipeline's threads use may be of
other classes, because a forked process doesn't run that pipeline.
"""

from __future__ import annotations

import os
import weakref
from _thread import RLock
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["ForkSafeLock", "cached_property", "on_fork", "process"]

T = TypeVar("T")


def on_fork(restart: Callable[[], None]) -> None:
    """Register a function that every process forked from this process calls first."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=restart)


_process = os.getpid()


def process() -> int:
    """Return the ID of the current process, without a system call."""
    return _process


def _update_process() -> None:
    global _process
    _process = os.getpid()


on_fork(_update_process)


class ForkSafeLock(RLock):  # type: ignore[misc]  # final for type checkers only
    """A reentrant lock that is free in a forked process, unless the forking thread holds it.

    Its `with` statement runs methods written in C, so that a KeyboardInterrupt can't leave the lock held.
    """

    def __init__(self) -> None:
        _locks.add(self)

    def _restart(self) -> None:
        if self.acquire(blocking=False):  # the lock is free, or the forking thread, which is this thread, holds it
            self.release()
        else:
            self._at_fork_reinit()  # type: ignore[attr-defined]


_locks: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()


def _free_locks() -> None:
    for lock in _locks:
        lock._restart()


on_fork(_free_locks)


class cached_property(Generic[T]):
    """A property that is computed once per object, and then stored as an attribute.

    Up to Python 3.11, `functools.cached_property` holds one lock for all objects of a class during the computation.
    This class has no lock: several threads may compute the property at the same time, and the last value is stored.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> cached_property[T] | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
