"""Threads of the package, which all end before the Python interpreter exits.

When the interpreter exits, it kills daemon threads. If a daemon thread is running C++ code at that moment, for example
in torch, the process aborts: "terminate called without an active exception", exit code 134. Non-daemon threads would
not help. The interpreter waits for them without a time limit, before it calls ``atexit`` functions, so a pipeline could
not tell its threads to stop.

All threads are therefore daemons of the class `Thread`. At the end of the program, before the interpreter kills
threads, `_end` closes the objects that own threads, and waits for the threads up to a time limit. It then prints which
threads are still running.

If the user doesn't close an owner, it is closed when it is garbage-collected (`close_abandoned`). Garbage collection
can happen in any thread, while the thread holds any lock, even a lock of `threading`. `close_abandoned` must therefore
neither wait for threads that need this lock, nor call `threading.enumerate`. The package has its own list of threads.
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

from torchdali.errors import locate_user_code

__all__ = [
    "Latch", "Thread", "call_in_thread", "close_abandoned", "close_at_end", "is_ending", "patience", "processor_time",
]  # fmt: skip

T = TypeVar("T")

_MAX_WAIT = 10.0  # seconds that a thread may take to end
_CLOCK_OF_THREAD = 6  # low bits of the ID of a Linux clock that measures one thread's CPU time
_MIN_WAIT = 1.0  # minimum seconds that `_end` waits for threads after it has closed all owners
_ABANDONED_WAIT = 2.0  # seconds that `close_abandoned` waits until the owner is closed


class _Owner(Protocol):
    def close(self) -> None: ...


class Thread(threading.Thread):
    """A daemon thread for which `_end` waits at the end of the program."""

    def __init__(self, target: Callable[..., object], args: tuple[Any, ...], name: str) -> None:
        super().__init__(target=target, args=args, name=name, daemon=True)
        _threads[id(self)] = self


class Latch:
    """An event that is set once, and that a KeyboardInterrupt cannot damage.

    `threading.Event` is written in Python, so a KeyboardInterrupt inside its methods may leave the event's lock held.
    """

    __slots__ = ("_is_set", "_wake")

    def __init__(self) -> None:
        self._is_set, self._wake = False, queue.SimpleQueue[None]()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        """Set the event, and wake one waiting thread."""
        self._is_set = True
        self._wake.put(None)

    def wait(self, timeout: float) -> None:
        """Wait until the event is set or the timeout, in seconds, expires.

        `set` wakes only one thread, so call `wait` in a loop if several threads wait.
        """
        if not self._is_set:
            with contextlib.suppress(queue.Empty):
                self._wake.get(timeout=timeout)


_threads: weakref.WeakValueDictionary[int, Thread] = weakref.WeakValueDictionary()
_owners: weakref.WeakKeyDictionary[_Owner, None] = weakref.WeakKeyDictionary()
_deadline: float | None = None


def close_at_end(owner: _Owner) -> None:
    """Register an object that owns threads. At the end of the program, the object is closed if it still exists."""
    _owners[owner] = None


def close_abandoned(owner: _Owner) -> None:
    """Close an object that is being garbage-collected, in a separate thread, and wait briefly until it is closed."""
    if is_ending() or threading.get_ident() in {thread.ident for thread in _remaining_threads()}:
        owner.close()  # the program ends, or this is one of the owner's threads, which `close` doesn't wait for
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
        # `thread.start` takes a lock of `threading`, which the current thread may hold. So a new thread calls `start`.
        _thread.start_new_thread(thread.start, ())
    except RuntimeError:  # Python is exiting, and starts no more threads
        close()
    deadline = time.monotonic() + _ABANDONED_WAIT
    closed.acquire(timeout=_ABANDONED_WAIT)
    while thread.is_alive() and time.monotonic() < deadline:
        time.sleep(1e-4)  # the thread is about to end; a process with other threads must not be forked


def call_in_thread(function: Callable[[], T]) -> T:
    """Call a function in a separate thread, and return its result.

    A KeyboardInterrupt interrupts only the waiting caller; the function runs to its end. Some locks of `threading` are
    written in Python, and an interrupt inside the function could leave them held.
    """
    outcome: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def call() -> None:
        try:
            outcome.put((function(), None))
        except BaseException as error:
            outcome.put((None, error))

    try:
        _thread.start_new_thread(Thread(call, (), "torchdali-call").start, ())  # as in `close_abandoned`
    except RuntimeError:  # Python is exiting, and starts no more threads
        return function()
    value, error = outcome.get()
    if error is not None:
        try:
            raise error
        finally:
            del error
    return value  # type: ignore[return-value]


def is_ending() -> bool:
    """Return True if the program is ending, so that nobody waits for the threads' results."""
    return _deadline is not None


def patience() -> float:
    """Return how many seconds to wait for a thread to end."""
    return _MAX_WAIT if _deadline is None else max(0.0, _deadline - time.monotonic())


def processor_time() -> float:
    """Return the CPU seconds that the package's running threads, except the current one, have used; 0 outside Linux."""
    total, me = 0.0, threading.get_ident()
    for thread in _remaining_threads() if sys.platform == "linux" else ():
        if thread.ident == me:
            continue
        with contextlib.suppress(OSError):  # the thread has just ended
            total += time.clock_gettime((~(thread.native_id or 0) << 3) | _CLOCK_OF_THREAD)
    return total


@atexit.register
def _end() -> None:
    global _deadline
    _deadline = time.monotonic() + _MAX_WAIT
    with contextlib.suppress(KeyboardInterrupt):  # the user interrupted the wait
        for owner in reversed(list(_owners)):  # newest first, so that a pipeline is closed before its sources
            _close(owner)
        _deadline = max(_deadline, time.monotonic() + _MIN_WAIT)
        for thread in _remaining_threads():
            thread.join(patience())
    if remaining := _remaining_threads():
        _report_running(remaining)


def _close(owner: _Owner) -> None:
    try:
        owner.close()
    except Exception:
        sys.excepthook(*sys.exc_info())


def _remaining_threads() -> list[Thread]:
    """Return the threads of the package that are still running."""
    # `valuerefs` copies all references in one step, because other threads may start threads meanwhile.
    threads = [thread for each in _threads.valuerefs() if (thread := each()) is not None]
    return [thread for thread in threads if thread.is_alive()]


def _report_running(threads: list[Thread]) -> None:
    """Print which threads are still running, and where."""
    frames = sys._current_frames()
    locations = Counter(locate_user_code(frames.get(thread.ident or 0)) for thread in threads)
    lines = "\n".join(
        f"  {count} in {location or 'torchdali'}"
        for location, count in locations.items()
        if location or len(locations) == 1
    )
    print(
        "torchdali: the program ends while threads of a pipeline are running, and stops waiting for them. If one of "
        f"them is inside torch, the process may abort\n{lines}",
        file=sys.stderr,
    )
