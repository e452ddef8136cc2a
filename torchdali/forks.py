"""Locks and cached values that a forked process can use.

A forked process has one thread, and a copy of all memory. A lock that another thread held at that moment stays locked
in the copy, and nobody is there to release it. Locks that a module or a long-lived object keeps, and that any process
may ask for, are therefore of the class `ForkSafeLock`. Locks that only one pipeline's threads use need not be: a forked
process does not run that pipeline.
"""

from __future__ import annotations

import os
import weakref
from _thread import RLock
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["ForkSafeLock", "cached_property", "on_fork", "process"]

T = TypeVar("T")


def on_fork(begin_anew: Callable[[], None]) -> None:
    """Have a function called in each process that is forked from this one, before anything else runs there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=begin_anew)


_process = os.getpid()


def process() -> int:
    """Return the present process's number, without a system call."""
    return _process


def _note_process() -> None:
    global _process
    _process = os.getpid()


on_fork(_note_process)


class ForkSafeLock(RLock):  # type: ignore[misc]  # final for type checkers only
    """A reentrant lock that a forked process finds free, unless the thread that forked it holds it.

    A `with` statement runs methods written in C, so that an interrupt can't leave it held.
    """

    def __init__(self) -> None:
        _locks.add(self)

    def _begin_anew(self) -> None:
        if self.acquire(blocking=False):  # it was free, or is this thread's: the forked one keeps its identity
            self.release()
        else:
            self._at_fork_reinit()  # type: ignore[attr-defined]


_locks: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()


def _free_locks() -> None:
    for lock in _locks:
        lock._begin_anew()


on_fork(_free_locks)


class cached_property(Generic[T]):
    """A property that is computed once for each object, and then an attribute.

    Up to Python 3.11, `functools.cached_property` holds one lock for all objects of a class while it computes. Several
    threads may compute this one at once; then the last value stays.
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
