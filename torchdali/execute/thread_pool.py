"""Worker threads that share the items of one job after another.

A job is a function of an index and a count. Every idle worker joins the first job of the queue
and claims indices until none is left, which balances uneven samples
and costs a tenth of a microsecond a claim. The worker that finishes the last item calls the job's ``done``; so no
thread ever waits for a job.
"""

from __future__ import annotations

import heapq
import itertools
import sys
import threading
from collections.abc import Callable

import torch

from torchdali.kernels.torch_threads import keep_torch_threads, use_one_torch_thread

__all__ = ["Job", "ThreadPool"]


class Job:
    """Run a function once for each index below ``count``.

    Args:
        order: Jobs with a smaller one go first.
        done: Called by the worker that finishes last, with the failures ``{index: exception}``.
        keep_going: Go on after a failure; otherwise the indices not yet claimed are left out.
    """

    def __init__(
        self,
        run: Callable[[int], None],
        count: int,
        done: Callable[[dict[int, BaseException]], None],
        *,
        order: int = 0,
        keep_going: bool = False,
    ) -> None:
        self.run, self.count, self.order = run, count, order
        self._done, self._keep_going = done, keep_going
        self._claim = _counter()
        self._lock = threading.Lock()
        self._left = count
        self._failures: dict[int, BaseException] = {}

    def work(self) -> None:
        """Claim and run indices until none is left."""
        run, claim, count, finished = self.run, self._claim, self.count, 0
        while (i := claim()) < count:
            if not self._failures or self._keep_going:
                try:
                    # No other worker has this index: claiming is one step under the GIL, or under a lock without it.
                    run(i)
                except BaseException as error:
                    # Several workers write here, under keys of their own. That others see it late only means that they
                    # run a few samples more.
                    self._failures[i] = error
            finished += 1
        if finished:
            with self._lock:
                self._left -= finished
                last = self._left == 0
            if last:
                # All other workers are through their items, and the lock orders what they wrote before this call.
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


class ThreadPool:
    """A fixed set of worker threads.

    The threads hold no reference to their owner: they hold this object's queue, and a job only while it
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
        self._queue = _JobQueue()
        self._threads = [
            threading.Thread(
                target=_worker, args=(self._queue, i, start), name=f"{name}-{i}", daemon=True
            )
            for i in range(count)
        ]
        with keep_torch_threads(count) as ready:
            self._queue.ready = ready
            for thread in self._threads:
                thread.start()

    def submit(self, job: Job) -> None:
        """Queue a job; jobs with a smaller order go first."""
        self._queue.put(job)

    def close(self) -> None:
        """Stop all threads after the samples they are working on, and wait for them."""
        self._queue.close()
        for thread in self._threads:
            # A worker may be the one that closes: it dropped the last reference to the pipeline.
            if thread is not threading.current_thread() and thread.is_alive():
                thread.join(timeout=10)


class _JobQueue:
    """A priority queue that serves each job to several workers."""

    def __init__(self) -> None:
        self._jobs: list[tuple[int, int, Job]] = []
        self._serial = itertools.count()
        self._condition = threading.Condition()
        self._closed = False
        self.ready: threading.Barrier | None = None

    def put(self, job: Job) -> None:
        with self._condition:
            # Called by the scheduler thread, or by a worker that finished the stage before. What it wrote to the
            # batch is visible to the workers: they take the job under the same condition.
            heapq.heappush(self._jobs, (job.order, next(self._serial), job))
            self._condition.notify(job.count)

    def get(self) -> Job | None:
        """Wait for a job and return it, leaving it in the queue for other workers; None when closed."""
        with self._condition:
            while not self._closed:
                if self._jobs:
                    # It stays where it is, so that all idle workers join it; each takes its own items from it.
                    return self._jobs[0][2]
                self._condition.wait()
            return None

    def drop(self, job: Job) -> None:
        """Remove a job whose indices have all been claimed; its worker is idle again."""
        with self._condition:
            # Every worker of the job comes here; the first one finds it. A job that comes before it may have been put
            # in meanwhile, so it need not be at the head.
            for i, (_, _, other) in enumerate(self._jobs):
                if other is job:
                    del self._jobs[i]
                    heapq.heapify(self._jobs)
                    break

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._jobs.clear()
            self._condition.notify_all()


def _worker(jobs: _JobQueue, number: int, start: Callable[[int], None] | None) -> None:
    assert jobs.ready is not None
    use_one_torch_thread(jobs.ready)
    if start is not None:
        start(number)
    del start
    with torch.no_grad():
        while (job := jobs.get()) is not None:
            job.work()
            jobs.drop(job)
            # The job holds the batch, and the batch its tensors.
            del job  # a sleeping worker must not keep a pipeline alive
