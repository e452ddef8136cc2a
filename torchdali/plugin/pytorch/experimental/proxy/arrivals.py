"""Torch's iterator over what workers send: soon to see that one of them died, or that it does not end.

Torch itself relies on a signal, which reaches Python code in the main thread only; otherwise it looks after five
seconds, or after the ``timeout`` of the loader. And for a worker that is stuck, it waits for five seconds before
it ends it, for one after the other. The methods changed here are not torch's public ones: where one is missing,
torch does as it does.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from multiprocessing.connection import wait
from typing import Any

from torch.utils.data import dataloader

__all__ = ["has_arrived", "watched"]

_LOOK_EVERY = 0.5  # seconds
_PATIENCE = 2.0  # seconds

_Torchs: Any = getattr(dataloader, "_MultiProcessingDataLoaderIter", None)


def watched(arrivals: Any) -> Any:
    """Let an iterator of torch's loader watch its workers; return it."""
    if _Torchs is not None and type(arrivals) is _Torchs:
        arrivals.__class__ = _Watching
    return arrivals


class _Watching(_Torchs or object):  # type: ignore[misc]
    def _try_get_data(self, timeout: float = 5.0) -> Any:
        until = time.monotonic() + timeout
        while True:
            left = until - time.monotonic()
            try:
                got = super()._try_get_data(max(0.0, min(left, _LOOK_EVERY)))
            except (EOFError, ConnectionError) as error:
                raise _death(self._workers) or error from error
            if got[0] or left <= _LOOK_EVERY:
                return got

    def _mark_worker_as_unavailable(self, worker_id: int, shutdown: bool = False) -> None:
        super()._mark_worker_as_unavailable(worker_id, shutdown)
        if shutdown and not self._told_later(worker_id):
            _end(self._workers)

    def _told_later(self, worker_id: int) -> bool:
        """True if torch will tell a worker after this one to end."""
        later = self._workers_status[worker_id + 1 :]
        return bool(later) if self._persistent_workers else any(later)


def _death(workers: Sequence[Any]) -> RuntimeError | None:
    """Return the error for a worker that died while it handed something over; torch would show a broken connection."""
    dead = {worker.sentinel: worker for worker in workers}
    ended = wait(list(dead), _PATIENCE)
    if not ended:
        return None
    pids = ", ".join(str(dead[sentinel].pid) for sentinel in ended)
    return RuntimeError(f"DataLoader worker (pid(s) {pids}) is killed or exited unexpectedly")


def _end(workers: Sequence[Any]) -> None:
    """Wait for workers that were told to end; end those that do not."""
    left, until = {worker.sentinel: worker for worker in workers}, time.monotonic() + _PATIENCE
    while left and (seconds := until - time.monotonic()) > 0:
        for ended in wait(list(left), seconds):
            del left[ended]
    for worker in left.values():
        worker.terminate()


def has_arrived(arrivals: Any) -> bool:
    """True if workers have sent something that was not taken yet; True where that cannot be known."""
    try:
        early = len(arrivals._task_info.get(arrivals._rcvd_idx, ())) == 2
        return early or not arrivals._data_queue.empty()
    except (AttributeError, OSError):
        return True
