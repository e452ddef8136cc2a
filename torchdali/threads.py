"""Threads of the package, which all end before Python does.

Python kills daemons when it ends. One that is in torch at that moment, or in other C++, takes the process with it:
"terminate called without an active exception", exit code 134. Threads that are not daemons would be waited for without
a limit, and pipelines could not tell them to stop: Python waits before it calls functions registered for its end.

So all threads are daemons of the class `Thread`. At the end of the program, before Python kills anything, `_end` tells
their owners to close and waits for the threads, up to a limit; those that are then still at work are named.

Owners that nobody closes are closed when they are collected (`close_abandoned`). That happens in any thread, under any
lock that it holds, even one of `threading`. So it must neither wait for threads that need this lock, nor ask
`threading` which there are: the package keeps its own list.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import queue
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from torchdali.errors import place_of

__all__ = [
    "Latch", "Thread", "call_apart", "close_abandoned", "close_at_end", "is_ending", "patience", "processor_time",
]  # fmt: skip

T = TypeVar("T")

_LIMIT = 10.0  # seconds that a thread may take to end
_CLOCK_OF_THREAD = 6  # bits of a number of Linux's clocks: of a thread, its time on processors
_LAST = 1.0  # seconds more at the end of the program, for those whose owner was closed late
_ABANDONED = 2.0  # seconds that whoever collects an owner waits until it is closed


class _Owner(Protocol):
    def close(self) -> None: ...


class Thread(threading.Thread):
    """A thread that does not keep the program from ending, and is waited for when it does."""

    def __init__(self, target: Callable[..., object], args: tuple[Any, ...], name: str) -> None:
        super().__init__(target=target, args=args, name=name, daemon=True)
        _threads[id(self)] = self


class Latch:
    """An event that is set once, for a thread that an interrupt may leave at any moment.

    A KeyboardInterrupt inside a `threading.Event`, which is written in Python, may leave its lock held.
    """

    __slots__ = ("_is_set", "_wake")

    def __init__(self) -> None:
        self._is_set, self._wake = False, queue.SimpleQueue[None]()

    def is_set(self) -> bool:
        """Return True once it is set."""
        return self._is_set

    def set(self) -> None:
        """Wake a thread that waits."""
        self._is_set = True
        self._wake.put(None)

    def wait(self, timeout: float) -> None:
        """Wait until it is set, or for some seconds: call it in a loop, for another thread may have been woken."""
        if not self._is_set:
            with contextlib.suppress(queue.Empty):
                self._wake.get(timeout=timeout)


_threads: weakref.WeakValueDictionary[int, Thread] = weakref.WeakValueDictionary()
_owners: weakref.WeakKeyDictionary[_Owner, None] = weakref.WeakKeyDictionary()
_deadline: float | None = None


def close_at_end(owner: _Owner) -> None:
    """Close an object with dependent threads at the end of the program, if it still exists."""
    _owners[owner] = None


def close_abandoned(owner: _Owner) -> None:
    """Close an object that nobody has any more, in a thread of its own, and wait for that, but not for long."""
    if is_ending() or threading.get_ident() in {thread.ident for thread in _remaining_threads()}:
        owner.close()  # one of its threads had it last, and is not waited for; or nothing runs beside this any more
        return
    closed = _thread.allocate_lock()
    closed.acquire()

    def close() -> None:
        try:
            _close(owner)
        finally:
            closed.release()

    thread = Thread(close, (), "torchdali-close")
    try:
        _thread.start_new_thread(thread.start, ())  # not here: it takes a lock of `threading`, which may be held
    except RuntimeError:  # threads can't be started any more, as at the end of the program
        close()
    deadline = time.monotonic() + _ABANDONED
    closed.acquire(timeout=_ABANDONED)
    while thread.is_alive() and time.monotonic() < deadline:
        time.sleep(1e-4)  # it is on its way out; a process with threads cannot be forked


def call_apart(function: Callable[[], T]) -> T:
    """Call a function in a thread of its own, and wait for its result.

    After an interrupt of the caller the function runs to its end, so that it falls inside no lock. Locks of
    `threading` are written in Python: an interrupt inside of one may leave it held.
    """
    answer: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def call() -> None:
        try:
            answer.put((function(), None))
        except BaseException as error:
            answer.put((None, error))

    try:
        _thread.start_new_thread(Thread(call, (), "torchdali-call").start, ())  # it takes a lock of `threading`
    except RuntimeError:  # threads can't be started any more
        return function()
    value, error = answer.get()
    if error is not None:
        try:
            raise error
        finally:
            del error
    return value  # type: ignore[return-value]


def is_ending() -> bool:
    """Return whether the program is ending: nobody waits for the threads' results."""
    return _deadline is not None


def patience() -> float:
    """Return the seconds that one may wait for a thread to end."""
    return _LIMIT if _deadline is None else max(0.0, _deadline - time.monotonic())


def processor_time() -> float:
    """Return the seconds that threads of the package, but not this one, were at work; 0 if the system does not tell."""
    total, me = 0.0, threading.get_ident()
    for thread in _remaining_threads() if sys.platform == "linux" else ():
        if thread.ident == me:
            continue
        with contextlib.suppress(OSError):  # it has just ended, so that its ident must not be used either
            total += time.clock_gettime((~(thread.native_id or 0) << 3) | _CLOCK_OF_THREAD)
    return total


@atexit.register
def _end() -> None:
    global _deadline
    _deadline = time.monotonic() + _LIMIT
    with contextlib.suppress(KeyboardInterrupt):  # somebody has no patience
        for owner in reversed(list(_owners)):  # a pipeline before its sources
            _close(owner)
        _deadline = max(_deadline, time.monotonic() + _LAST)
        for thread in _remaining_threads():
            thread.join(patience())
    if left := _remaining_threads():
        _name(left)


def _close(owner: _Owner) -> None:
    try:
        owner.close()
    except Exception:
        sys.excepthook(*sys.exc_info())


def _remaining_threads() -> list[Thread]:
    """Return the threads of the package that have not ended."""
    # Its references in one step: others start threads meanwhile.
    threads = [thread for each in _threads.valuerefs() if (thread := each()) is not None]
    return [thread for thread in threads if thread.is_alive()]


def _name(threads: list[Thread]) -> None:
    """Say which threads are still at work, and where."""
    frames = sys._current_frames()
    places = Counter(place_of(frames.get(thread.ident or 0)) for thread in threads)
    lines = "\n".join(
        f"  {count} in {place or 'torchdali'}" for place, count in places.items() if place or len(places) == 1
    )
    print(
        "torchdali: the program ends while threads of a pipeline are running, and stops waiting for them. If one of "
        f"them is inside torch, the process may abort\n{lines}",
        file=sys.stderr,
    )
