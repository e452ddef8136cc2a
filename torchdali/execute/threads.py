"""Worker threads that share the samples of one job after another.

A job is a function of a sample index and a count. Every idle worker joins the job that is first in line, as long
as no more are at work than the job is wide, and claims indices until none is left, which balances uneven samples
and costs a tenth of a microsecond a claim. Who finishes the last sample calls the job's ``done``; so nothing ever
waits for a job.
"""

from __future__ import annotations

import heapq
import itertools
import sys
import threading
import time
from collections.abc import Callable

import torch

from torchdali.execute.width import Width

__all__ = ["Job", "Threads", "isolated_torch_threads", "run_torch_alone"]


class Job:
    """Run a function once for each index below ``count``.

    Args:
        width: Tells how many workers may be busy while this job is first in line, and is told how long they took.
        order: Jobs with a smaller one go first.
        done: Called by the worker that finishes last, with the failures ``{index: exception}``.
        keep_going: Go on after a failure; otherwise the indices not yet claimed are left out.
        samples: That the indices stand for, where not one each.
    """

    def __init__(
        self,
        run: Callable[[int], None],
        count: int,
        done: Callable[[dict[int, BaseException]], None],
        width: Width,
        *,
        order: int = 0,
        keep_going: bool = False,
        samples: int | None = None,
    ) -> None:
        self.run, self.count, self.order = run, count, order
        self._samples = count if samples is None else samples
        self.width = width.now
        self._width, self._seconds = width, 0.0
        self._done, self._keep_going = done, keep_going
        self._claim = _counter()
        self._lock = threading.Lock()
        self._left = count
        self._failures: dict[int, BaseException] = {}

    def work(self) -> None:
        """Claim and run indices until none is left."""
        run, claim, count, finished = self.run, self._claim, self.count, 0
        started = time.perf_counter()
        while (i := claim()) < count:
            if not self._failures or self._keep_going:
                try:
                    run(i)
                except BaseException as error:
                    self._failures[i] = error
            finished += 1
        if finished:
            seconds = time.perf_counter() - started
            with self._lock:
                self._left -= finished
                self._seconds += seconds
                last = self._left == 0
            if last:
                self._width.note(self.width, self._samples, self._seconds)
                self._done(self._failures)


def _counter() -> Callable[[], int]:
    count = itertools.count().__next__
    if getattr(sys, "_is_gil_enabled", lambda: True)():
        return count  # one bytecode: atomic under the GIL
    lock = threading.Lock()

    def claim() -> int:
        with lock:
            return count()

    return claim


class Threads:
    """A fixed set of worker threads.

    The threads know nothing of who made them: they hold this object's queue, and a job only while it
    runs, so that the owner can be collected while they sleep.

    Args:
        count: Number of threads.
        name: Prefix of their names.
        start: Called once in each thread before its first job, with its number.
    """

    def __init__(
        self, count: int, name: str = "torchdali", start: Callable[[int], None] | None = None
    ) -> None:
        self.count = count
        self._line = _Line()
        self._threads = [
            threading.Thread(
                target=_worker, args=(self._line, i, start), name=f"{name}-{i}", daemon=True
            )
            for i in range(count)
        ]
        with isolated_torch_threads(count) as ready:
            self._line.ready = ready
            for thread in self._threads:
                thread.start()

    def submit(self, job: Job) -> None:
        """Put a job in line; jobs with a smaller order go first."""
        self._line.put(job)

    def close(self) -> None:
        """Stop all threads after the samples they are working on, and wait for them."""
        self._line.close()
        for thread in self._threads:
            if thread is not threading.current_thread() and thread.is_alive():
                thread.join(timeout=10)


class _Line:
    """The jobs in line: a priority queue that serves each job to several workers."""

    def __init__(self) -> None:
        self._jobs: list[tuple[int, int, Job]] = []
        self._serial = itertools.count()
        self._condition = threading.Condition()
        self._busy = 0  # workers that have a job
        self._closed = False
        self.ready: threading.Barrier | None = None

    def put(self, job: Job) -> None:
        with self._condition:
            heapq.heappush(self._jobs, (job.order, next(self._serial), job))
            self._wake(min(job.width, job.count) - self._busy)

    def get(self) -> Job | None:
        """Wait for a job and return it, leaving it in line for other workers; None when closed."""
        with self._condition:
            while not self._closed:
                if self._jobs and self._busy < self._jobs[0][2].width:
                    self._busy += 1
                    return self._jobs[0][2]
                self._condition.wait()
            return None

    def drop(self, job: Job) -> None:
        """Take a job of which every index has been claimed off the line; its worker will come for another."""
        with self._condition:
            self._busy -= 1
            for i, (_, _, other) in enumerate(self._jobs):
                if other is job:
                    del self._jobs[i]
                    heapq.heapify(self._jobs)
                    break
            if self._jobs:
                self._wake(self._jobs[0][2].width - self._busy - 1)

    def _wake(self, workers: int) -> None:
        if workers > 0:
            self._condition.notify(workers)

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._jobs.clear()
            self._condition.notify_all()


def _worker(line: _Line, number: int, start: Callable[[int], None] | None) -> None:
    assert line.ready is not None
    run_torch_alone(line.ready)
    if start is not None:
        start(number)
    del start
    with torch.no_grad():
        while (job := line.get()) is not None:
            job.work()
            line.drop(job)
            del job  # a sleeping worker must not keep a pipeline alive


def run_torch_alone(ready: threading.Barrier) -> None:
    """Begin a thread that runs torch single-threaded; see `isolated_torch_threads`."""
    torch.get_num_threads()  # must come before the next line
    torch.set_num_threads(1)
    ready.wait()


class isolated_torch_threads:
    """Start threads that run torch single-threaded without changing the caller's setting.

    ``set_num_threads`` in one thread becomes the default of every thread whose first parallel call comes
    later, the user's main thread included. Only this order keeps it apart: the caller's value is read;
    each worker reads its own, then sets 1; when all have, the caller sets its value again.
    """

    def __init__(self, count: int) -> None:
        self._barrier = threading.Barrier(count + 1)

    def __enter__(self) -> threading.Barrier:
        self._count = torch.get_num_threads()
        return self._barrier

    def __exit__(self, *exc: object) -> None:
        if exc[0] is None:
            self._barrier.wait()
        torch.set_num_threads(self._count)
