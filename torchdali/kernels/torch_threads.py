"""Run PyTorch single-threaded in the threads of pipelines, and where results would depend on the number of threads.

If PyTorch splits a sum, a matrix product or a Fourier transform among threads, the last bit may differ from a single
thread's result. In the threads of pipelines, PyTorch is single-threaded. Calls from other threads are run in a helper
thread in which PyTorch is single-threaded. So results don't depend on the machine or on the thread that calls an
operator.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

import torch

from torchdali.forks import ForkSafeLock
from torchdali.kernels.memory import is_plain

__all__ = ["keep_torch_threads", "on_one_thread", "use_one_torch_thread"]

T = TypeVar("T")
P = ParamSpec("P")


def use_one_torch_thread(ready: threading.Barrier) -> None:
    """Make PyTorch single-threaded in the calling thread, which must be new; see `keep_torch_threads`."""
    torch.get_num_threads()  # required before the next line, see `keep_torch_threads`
    torch.set_num_threads(1)
    ready.wait()


class keep_torch_threads:
    """Context in which to start threads with single-threaded PyTorch, without changing the caller's setting.

    PyTorch has a number of threads for each calling thread. A call of ``set_num_threads`` also changes this number for
    all threads that haven't made a parallel call yet, which may include the user's main thread. Only the following
    order avoids this. First the caller reads its number. Then each new thread reads its number and sets it to 1. When
    all new threads have done this, the caller sets its number to the value that it read. Only one caller may do this at
    a time, because a second caller would read 1.

    Args:
        count: Number of threads that are started.
    """

    _lock = ForkSafeLock()

    def __init__(self, count: int) -> None:
        self._barrier = threading.Barrier(count + 1)

    def __enter__(self) -> threading.Barrier:
        self._lock.acquire()
        self._count = torch.get_num_threads()
        return self._barrier

    def __exit__(self, *exc: object) -> None:
        try:
            if exc[0] is None:
                self._barrier.wait()
            else:
                self._barrier.abort()
            torch.set_num_threads(self._count)
        finally:
            self._lock.release()


def on_one_thread(
    function: Callable[Concatenate[torch.Tensor, P], T],
    x: torch.Tensor,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Call a function with single-threaded PyTorch, in a helper thread if PyTorch isn't single-threaded in this thread.

    If `x` is on a device, needs a gradient, or is part of a compiled graph or transform, the function is called
    directly.
    """
    if torch.get_num_threads() == 1 or not is_plain(x):
        return function(x, *args, **kwargs)
    return _helper_thread(os.getpid()).submit(function, x, *args, **kwargs).result()


@functools.lru_cache(maxsize=1)
def _helper_thread(process: int) -> ThreadPoolExecutor:
    """Return the helper thread of a process. A forked process cannot use its parent's helper thread."""
    with keep_torch_threads(1) as ready:
        helper = ThreadPoolExecutor(1, "torchdali-one", use_one_torch_thread, (ready,))
        helper.submit(int)  # starts the thread
    return helper
