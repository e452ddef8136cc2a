"""Numbers of threads that torch divides its work among: one in threads of ours, and where it decides the last bit.

A sum, a product of matrices or a Fourier transform that torch divides among threads may end in another bit than on one.
The threads of pipelines use one. A call from another thread moves to a thread that uses one, too, so that a
result depends neither on the machine nor on the way an operator is called.
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

    ``set_num_threads`` in one thread becomes the default of every thread whose first parallel call comes
    later, the user's main thread included. Only this order keeps it apart: the caller's value is read;
    each worker reads its own, then sets 1; when all have, the caller sets its value again. One caller does so
    at a time: another would read 1.
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
    """Call a function in a thread where torch uses one, unless it does here, or `x` is not a plain array."""
    if torch.get_num_threads() == 1 or not is_plain(x):
        return function(x, *args, **kwargs)
    return _helper(os.getpid()).submit(function, x, *args, **kwargs).result()


@functools.lru_cache(maxsize=1)
def _helper(process: int) -> ThreadPoolExecutor:
    """Return the thread of a process; a forked one has none of its parent's."""
    with keep_torch_threads(1) as ready:
        helper = ThreadPoolExecutor(1, "torchdali-one", use_one_torch_thread, (ready,))
        helper.submit(int)  # starts the thread
    return helper
