"""Threads for slow calls, for example requests and datasets in Python."""

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
    """A fixed number of threads, which end with the pool or the program; queued tasks are then cancelled.

    A forked process has threads of its own.

    Args:
        count: Number of threads; each is started when it is needed.
        name: Name of the threads.
    """

    def __init__(self, count: int, name: str) -> None:
        self._count, self._name = count, name
        self._lock, self._closed = ForkSafeLock(), False
        self._begin()
        close_at_end(self)

    def _begin(self) -> None:
        self._started, self._process = 0, os.getpid()
        self._queue: _Queue = queue.SimpleQueue()
        weakref.finalize(self, _end, self._queue, self._process).atexit = False

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Let a thread call a function; a pool that is closed cancels that."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                future.cancel()
                return future
            if self._process != os.getpid():
                self._begin()  # a forked process has none of the threads
            # Hand-over: from here on the task is the thread's that takes it.
            self._queue.put((future, function, arguments))
            if self._started < self._count:
                name = f"{self._name}-{self._started}"
                Thread(_work, (self._queue,), name).start()
                self._started += 1
        return future

    @property
    def waiting(self) -> int:
        """Tasks that no thread has begun, about."""
        return self._queue.qsize()

    def close(self) -> None:
        """Cancel the tasks that no thread has begun, and end the threads."""
        with self._lock:  # so that no task comes after the end of the queue
            self._closed = True
            _end(self._queue, self._process)


def _work(tasks: _Queue) -> None:
    """Do tasks until the pool ends; holds neither pool nor task between them."""
    while (task := tasks.get()) is not None:
        future, function, arguments = task
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(function(*arguments))
            except BaseException as error:
                future.set_exception(error)
        del task, future, function, arguments
    tasks.put(None)  # the end of the queue is for all threads: each passes it to the next one


def _end(tasks: _Queue, process: int) -> None:
    if os.getpid() != process:
        return  # tasks and threads are the parent's
    with contextlib.suppress(queue.Empty):
        while (task := tasks.get_nowait()) is not None:
            task[0].cancel()
    tasks.put(None)
