"""The number of threads of the dynamic mode."""

from __future__ import annotations

import operator

from torchdali.cores import cores
from torchdali.environment import read_number

__all__ = ["ThreadPool", "get_num_threads", "set_num_threads"]

_num_threads: int | None = None


def get_num_threads() -> int:
    """Return the default number of threads.

    Without `set_num_threads`, this is the environment variable ``DALI_NUM_THREADS``, or else the number of cores that
    this process may use.
    """
    if _num_threads is not None:
        return _num_threads
    return read_number("DALI_NUM_THREADS", cores(), 1)


def set_num_threads(n: int) -> None:
    """Set the default number of threads; raise ValueError for less than one."""
    global _num_threads
    _num_threads = _check_count(operator.index(n))


def _check_count(number: int) -> int:
    if number < 1:
        raise ValueError(f"the number of threads must be at least 1, not {number}")
    return number


class ThreadPool:
    """A number of threads for an `EvalContext`.

    Args:
        num_threads: Number of threads; by default, the result of `get_num_threads`.
        device_id: Index of an accelerator, or -1. The index is stored, but has no effect.
    """

    def __init__(self, num_threads: int | None = None, *, device_id: int | None = -1) -> None:
        self._num_threads = get_num_threads() if num_threads is None else _check_count(num_threads)
        self._device_id = device_id

    @property
    def num_threads(self) -> int:
        """Number of threads."""
        return self._num_threads

    @property
    def device_id(self) -> int | None:
        """The ``device_id`` passed to the constructor."""
        return self._device_id
