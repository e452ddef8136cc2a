"""Thread pools for slow calls, for example requests and reads of Python datasets."""

from __future__ import annotations

import contextlib
import os
import queue
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from torchdali.forks import ForkSafeLock
from torchdali.threads import Thread, close_at_end

__all__ = ["DaemonPool"]

T = TypeVar("T")
_Task = tuple["Future[Any]", Callable[..., Any], tuple[Any, ...]]
_Queue = queue.SimpleQueue["_Task | None"]


class DaemonPool:
    """A pool of threads. When the pool or the program ends, the threads end, and queued tasks are cancelled.

    After a fork, the pool starts new threads in the forked process.

    Args:
        count: Maximum number of threads. `submit` starts a thread if there are fewer.
    """

    def __init__(self, count: int, name: str) -> None:
        self._max_threads, self._name = count, name
        self._lock, self._closed = ForkSafeLock(), False
        self._create_queue()
        close_at_end(self)

    def _create_queue(self) -> None:
        self._thread_count, self._process = 0, os.getpid()
        self._queue: _Queue = queue.SimpleQueue()
        weakref.finalize(self, _end_threads, self._queue, self._process).atexit = False

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Call a function in a thread of the pool, and return its future.

        If the pool is closed, the future is cancelled.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                future.cancel()
                return future
            if self._process != os.getpid():
                self._create_queue()  # the parent's threads do not exist in a forked process
            self._queue.put((future, function, arguments))
            if self._thread_count < self._max_threads:
                name = f"{self._name}-{self._thread_count}"
                Thread(_run_tasks, (self._queue,), name).start()
                self._thread_count += 1
        return future

    @property
    def queued_count(self) -> int:
        """Approximate number of tasks that no thread has started yet."""
        return self._queue.qsize()

    def close(self) -> None:
        """Cancel the tasks that no thread has started yet, and end the threads."""
        with self._lock:  # no task may be added after the end marker
            self._closed = True
            _end_threads(self._queue, self._process)


def _run_tasks(tasks: _Queue) -> None:
    """Run tasks until the pool ends. Between tasks, the thread has no reference to the pool or to a task."""
    while (task := tasks.get()) is not None:
        future, function, arguments = task
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(function(*arguments))
            except BaseException as error:
                future.set_exception(error)
        del task, future, function, arguments
    tasks.put(None)  # each thread puts the end marker back for the next thread


def _end_threads(tasks: _Queue, process: int) -> None:
    if os.getpid() != process:
        return  # the tasks and threads belong to the parent process
    with contextlib.suppress(queue.Empty):
        while (task := tasks.get_nowait()) is not None:
            task[0].cancel()
    tasks.put(None)
