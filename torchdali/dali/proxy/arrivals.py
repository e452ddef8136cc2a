"""Let PyTorch's iterator over workers' results soon notice dead, suspended and stuck workers.

PyTorch notices the death of a worker by a signal, but Python handles signals only in the main thread. In other threads,
PyTorch checks the workers only after five seconds, or after the loader's ``timeout``. At the end of a loop, PyTorch
waits five seconds for each stuck worker, one after the other. If a worker is suspended while it sends a result, PyTorch
waits forever, even with a ``timeout``.

The methods that this module overrides aren't public. If PyTorch lacks one of the methods, PyTorch's own code runs.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing.connection import wait
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

from torch.utils.data import dataloader

__all__ = ["has_arrived", "watch_workers"]

_CHECK_INTERVAL = 0.5  # seconds
# Number of consecutive checks that must find a worker suspended before it is killed. A single check isn't enough,
# because a worker may wake up later than the main process after Ctrl-Z and fg.
_MIN_STOPPED_CHECKS = 2
END_TIMEOUT = 2.0  # seconds

_TorchIterator: Any = getattr(dataloader, "_MultiProcessingDataLoaderIter", None)


def watch_workers(arrivals: Any) -> Any:
    """Let an iterator of PyTorch's loader watch its workers; return the iterator."""
    if _TorchIterator is not None and type(arrivals) is _TorchIterator:
        arrivals.__class__ = _WatchedIterator
        arrivals._watch = watch = _WorkerWatch(list(arrivals._workers))
        # This runs at the end of the program, before multiprocessing waits for its child processes.
        Finalize(arrivals, watch.end, exitpriority=1)
        threading.Thread(target=watch.run, name="torchdali-proxy", daemon=True).start()
    return arrivals


class _WorkerWatch:
    """Watches workers in a thread, and kills a suspended worker if the loop would wait forever for its result.

    The object has no reference to the iterator, so that the watching thread never frees the iterator.

    Attributes:
        is_waiting: True while the loop waits for a result.
        killed_pids: Process ids of the workers that were killed because they were suspended.
    """

    def __init__(self, workers: Sequence[Any]) -> None:
        self._workers, self.is_waiting, self.killed_pids = workers, False, list[int]()
        self._is_over = threading.Event()

    def run(self) -> None:
        """Check the workers until the iterator is gone."""
        stopped_checks: Counter[Any] = Counter()
        while not self._is_over.wait(_CHECK_INTERVAL):
            stopped = [worker for worker in self._workers if self.is_waiting and _is_stopped(worker.pid)]
            stopped_checks = Counter({worker: stopped_checks[worker] + 1 for worker in stopped})
            for worker in stopped:
                if stopped_checks[worker] >= _MIN_STOPPED_CHECKS:
                    self.killed_pids.append(worker.pid)
                    worker.kill()

    def end(self) -> None:
        """End the watching thread, and kill suspended workers, because they can't end by themselves."""
        self._is_over.set()
        for worker in self._workers:
            if _is_stopped(worker.pid):
                worker.kill()


class _WatchedIterator(_TorchIterator or object):  # type: ignore[misc]
    def _try_get_data(self, timeout: float = 5.0) -> Any:
        # No lock is needed, because the watching thread acts only if several checks in a row find True here.
        self._watch.is_waiting = True
        try:
            return self._receive_data(timeout)
        except RuntimeError as error:  # PyTorch's error for a dead worker
            suspension = _suspension_error(self._watch.killed_pids)
            if suspension is None:
                raise
            raise suspension from error
        finally:
            self._watch.is_waiting = False

    def _receive_data(self, timeout: float) -> Any:
        deadline = time.monotonic() + timeout
        while True:
            remaining = deadline - time.monotonic()
            try:
                result = super()._try_get_data(max(0.0, min(remaining, _CHECK_INTERVAL)))
            except (EOFError, ConnectionError) as error:
                death = _death_error(self._workers)
                raise _suspension_error(self._watch.killed_pids) or death or error from error
            if result[0] or remaining <= _CHECK_INTERVAL:
                return result

    def _mark_worker_as_unavailable(self, worker_id: int, shutdown: bool = False) -> None:
        super()._mark_worker_as_unavailable(worker_id, shutdown)
        if shutdown and not self._has_later_workers(worker_id):
            _end_workers(self._workers)

    def _has_later_workers(self, worker_id: int) -> bool:
        """Return True if PyTorch must still ask a worker with a higher index to end."""
        later_statuses = self._workers_status[worker_id + 1 :]
        return bool(later_statuses) if self._persistent_workers else any(later_statuses)


def _is_stopped(pid: int | None) -> bool:
    """Return True if a signal has suspended a process; False if the system doesn't provide the process's status."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False


def _suspension_error(pids: Sequence[int]) -> RuntimeError | None:
    """Return the error for workers that were killed because they were suspended; None if no worker was killed."""
    if not pids:
        return None
    return RuntimeError(
        f"DataLoader worker (pid(s) {', '.join(map(str, pids))}) was suspended (SIGSTOP or Ctrl-Z) and did not "
        f"continue for "
        f"{_MIN_STOPPED_CHECKS * _CHECK_INTERVAL:g} s and was killed"
    )


def _death_error(workers: Sequence[Any]) -> RuntimeError | None:
    """Return the error for a worker that died while it sent a result; None if all workers are alive.

    PyTorch's own error would only mention a broken connection.
    """
    dead = {worker.sentinel: worker for worker in workers}
    ended = wait(list(dead), END_TIMEOUT)
    if not ended:
        return None
    for sentinel in ended:  # wait for the worker's end, so that PyTorch's signal handler raises no other error
        dead[sentinel].join(END_TIMEOUT)
    pids = ", ".join(str(dead[sentinel].pid) for sentinel in ended)
    return RuntimeError(f"DataLoader worker (pid(s) {pids}) is killed or exited unexpectedly")


def _end_workers(workers: Sequence[Any]) -> None:
    """Wait until all workers have ended. After `END_TIMEOUT` seconds, terminate the workers that are still running."""
    running, deadline = {worker.sentinel: worker for worker in workers}, time.monotonic() + END_TIMEOUT
    while running and (seconds := deadline - time.monotonic()) > 0:
        for ended in wait(list(running), seconds):
            del running[ended]
    for worker in running.values():
        worker.kill() if _is_stopped(worker.pid) else worker.terminate()


def has_arrived(arrivals: Any) -> bool:
    """Return True if a worker has sent a result that wasn't taken yet, or if the answer is unknown."""
    try:
        is_early = len(arrivals._task_info.get(arrivals._rcvd_idx, ())) == 2
        return is_early or not arrivals._data_queue.empty()
    except (AttributeError, OSError):
        return True
