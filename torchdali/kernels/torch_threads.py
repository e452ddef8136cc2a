"""Run torch single-threaded in our own threads, and for results whose last bit depends on the number of threads.

If torch splits a sum, a matrix product or a Fourier transform among threads, the last bit may differ from a single
thread's result. The threads of pipelines use single-threaded torch. A call from another thread is moved to a
single-threaded thread, so that the result depends neither on the machine nor on how an operator is called.
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
    """Make torch single-threaded in this new thread; see `keep_torch_threads`."""
    torch.get_num_threads()  # must come before the next line
    torch.set_num_threads(1)
    ready.wait()


class keep_torch_threads:
    """Start threads that run torch single-threaded without changing the caller's setting.

    ``set_num_threads`` in one thread becomes the default of every thread whose first parallel call is later, including
    the user's main thread. Only the following order avoids this: the caller reads its value; each worker reads its own
    value and sets 1; after all workers have done this, the caller sets its value again. Only one caller may do this at
    a time, since another caller would read 1.
    """

    _turn = ForkSafeLock()

    def __init__(self, count: int) -> None:
        self._barrier = threading.Barrier(count + 1)

    def __enter__(self) -> threading.Barrier:
        self._turn.acquire()
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
            self._turn.release()


def on_one_thread(
    function: Callable[Concatenate[torch.Tensor, P], T],
    x: torch.Tensor,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Call a function where torch is single-threaded: in a helper thread if needed and if `x` is a plain array."""
    if torch.get_num_threads() == 1 or not is_plain(x):
        return function(x, *args, **kwargs)
    return _helper(os.getpid()).submit(function, x, *args, **kwargs).result()


@functools.lru_cache(maxsize=1)
def _helper(process: int) -> ThreadPoolExecutor:
    """Return the helper thread of a process; a forked process cannot use its parent's thread."""
    with keep_torch_threads(1) as ready:
        helper = ThreadPoolExecutor(1, "torchdali-one", use_one_torch_thread, (ready,))
        helper.submit(int)  # starts the thread
    return helper
