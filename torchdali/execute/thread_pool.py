"""Worker threads that share the work of each job.

A job calls a function once for each index from 0 to ``count - 1``. An idle worker thread joins the first job of a
queue, and then claims and runs one index after the other. Therefore the work is balanced even if some indices take
longer. The worker that finishes the last index calls the job's `callback`, so no thread ever waits for a job.
"""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

import torch

from torchdali.execute.process_state import has_gil
from torchdali.forks import ForkSafeLock, on_fork
from torchdali.kernels.memory import keep_freed_memory
from torchdali.kernels.torch_threads import keep_torch_threads, use_one_torch_thread
from torchdali.threads import Thread, patience

__all__ = ["Job", "ThreadPool"]


class Job:
    """Calls a function for each index below `count`. Threads claim the indices in order, and finish them in any order.

    Args:
        run: Function that is called with each index.
        count: Number of indices.
        callback: Function that is called once, after all indices, with the failures ``{index: exception}``.
        order: Jobs with a smaller order run first.
        keep_going: True to continue after a failure; False to skip the unclaimed indices.

    Attributes:
        dropped: True if the pipeline is closed. Then threads claim no more indices, and `callback` is not called.
    """

    def __init__(
        self,
        run: Callable[[int], None],
        count: int,
        callback: Callable[[dict[int, BaseException]], None],
        *,
        order: int = 0,
        keep_going: bool = False,
    ) -> None:
        self.run, self.count, self.order = run, count, order
        self._callback, self._keep_going = callback, keep_going
        self._claim = _counter()
        self._lock = threading.Lock()
        self._unfinished = count
        self._failures: dict[int, BaseException] = {}
        self.dropped = False

    def work(self) -> None:
        """Claim and run indices until all indices are claimed."""
        run, claim, count, finished = self.run, self._claim, self.count, 0
        while not self.dropped and (i := claim()) < count:
            if not self._failures or self._keep_going:
                try:
                    # Claims are atomic, so no other worker runs this index.
                    run(i)
                except BaseException as error:
                    # No lock is needed, because each worker writes only its own keys. Other workers may notice the
                    # failure late, and run a few more indices.
                    self._failures[i] = error
            finished += 1
        if finished:
            with self._lock:
                self._unfinished -= finished
                last = self._unfinished == 0
            if last:
                # All workers have finished, so all samples belong to this thread. Because of the lock, this thread sees
                # the other workers' writes.
                self._callback(self._failures)


def _counter() -> Callable[[], int]:
    count = itertools.count().__next__
    if has_gil():
        return count  # with the GIL, this call is atomic
    lock = threading.Lock()

    def claim() -> int:
        with lock:
            return count()

    return claim


class ThreadPool:
    """The worker threads of a pipeline. Pipelines of one process may share threads.

    Pipelines share threads if they have equal `start` functions and run on the same cores. The number of shared threads
    is the largest `count` of these pipelines, plus one thread for each pipeline after the first. With the additional
    threads, each pipeline can make progress even if another pipeline's functions block. An idle thread works for the
    pipeline with the fewest active threads.

    Sleeping threads don't refer to pipelines, so a pipeline can be garbage-collected while threads sleep.

    Args:
        count: Largest number of threads that work for this pipeline at the same time.
        start: Function that each thread calls with its number before its first job.
    """

    def __init__(self, count: int, start: Callable[[int], None] | None = None) -> None:
        keep_freed_memory()
        self.count = count
        self._workers, self._queue = _join(count, start)

    def submit(self, job: Job) -> None:
        """Queue a job. Jobs with a smaller order run first."""
        self._workers.put(self._queue, job)

    def close(self) -> None:
        """Drop the queued jobs, wait for the running jobs, and end the threads that no other pipeline needs."""
        self._workers.leave(self._queue)


class _JobQueue:
    """The jobs of one pipeline, and the threads that work on them."""

    __slots__ = ("active", "count", "jobs", "turn")

    def __init__(self, count: int) -> None:
        self.count = count
        self.jobs: list[tuple[int, int, Job]] = []
        self.active: set[int] = set()  # `threading.get_ident` of each thread that works on this queue
        self.turn = 0  # value of a common counter when a thread last began to work on this queue


class _WorkerThreads:
    """Threads that run the jobs of several pipelines. Several threads may work on one job."""

    def __init__(self, start: Callable[[int], None] | None) -> None:
        self._start = start
        self._queues: list[_JobQueue] = []
        self._numbers: dict[threading.Thread, int] = {}  # numbers of the living threads
        self._ended: list[threading.Thread] = []
        self._busy = self._max_count = self._needed = 0
        self._serial = itertools.count(1)
        # `with` statements use this lock instead of the Condition, because an interrupt during `with` could leave a
        # Condition locked.
        self._lock = threading.RLock()
        self._condition = threading.Condition(self._lock)

    def join(self, count: int) -> _JobQueue:
        """Add a queue, and start missing threads. Only one thread may call this method at a time."""
        queue = _JobQueue(count)
        with self._lock:
            self._queues.append(queue)
            self._count_threads()
            in_use, missing = set(self._numbers.values()), self._needed - len(self._numbers)
        numbers = [n for n in range(self._needed) if n not in in_use][: max(0, missing)]
        try:
            with keep_torch_threads(len(numbers)) as ready:
                new = [Thread(_work, (self, n, ready), f"torchdali-{n}") for n in numbers]
                with self._lock:
                    self._numbers.update(zip(new, numbers, strict=True))
                for thread in new:
                    thread.start()
        except BaseException:
            with self._lock:
                self._numbers = {t: n for t, n in self._numbers.items() if n not in numbers}
            self.leave(queue)
            raise
        return queue

    def _count_threads(self) -> None:
        self._max_count = max((queue.count for queue in self._queues), default=0)
        self._needed = self._max_count + max(0, len(self._queues) - 1)

    def leave(self, queue: _JobQueue) -> None:
        """Remove a queue, and drop its jobs. Wait for the running jobs, and for surplus threads to end."""
        # If a worker thread has dropped the last reference to the pipeline, the worker itself calls this method.
        me, dropped = threading.get_ident(), queue.jobs
        with self._lock:
            if queue in self._queues:
                self._queues.remove(queue)
                queue.jobs = []
                for _, _, job in dropped:
                    job.dropped = True
                self._count_threads()
                self._condition.notify_all()
            self._condition.wait_for(
                lambda: queue.active <= {me} and len(self._numbers) <= self._needed + self._busy,
                timeout=patience(),
            )
            ended, self._ended = self._ended, []
        for thread in ended:
            if thread is not threading.current_thread():
                thread.join(patience())
        dropped.clear()  # after the lock is released, because this may drop other pipelines, which then call `leave`

    def put(self, queue: _JobQueue, job: Job) -> None:
        """Add a job to a queue."""
        with self._lock:
            if queue in self._queues:
                # From here on, the job's batch belongs to the workers. Workers take the job under the same lock, so
                # they see the caller's writes.
                heapq.heappush(queue.jobs, (job.order, next(self._serial), job))
                self._condition.notify(job.count)

    def wait_for_job(self) -> tuple[_JobQueue, Job] | None:
        """Wait for a job, and return it with its queue; None if this thread must end.

        The job stays in the queue, so that other threads can join it.
        """
        me = threading.current_thread()
        with self._lock:
            # If `join` was interrupted after it started this thread, the thread has no number, and must end.
            while me in self._numbers and len(self._numbers) <= self._needed:
                entry = self._find_job()
                if entry is not None:
                    entry[0].active.add(threading.get_ident())
                    entry[0].turn = next(self._serial)
                    self._busy += 1
                    return entry
                self._condition.wait()
            self._numbers.pop(me, None)
            self._ended.append(me)
            self._condition.notify_all()
            return None

    def _find_job(self) -> tuple[_JobQueue, Job] | None:
        """Return the job that the next idle thread should join, and its queue; None if no job needs a thread."""
        entry, least = None, (0, 0)
        for queue in self._queues:
            active = len(queue.active)
            if not queue.jobs or active >= queue.count:
                continue
            if active and self._busy >= self._max_count:
                continue
            if entry is None or (active, queue.turn) < least:
                # The job stays in the queue, so that all idle threads can join it. Each thread claims its own indices.
                entry, least = (queue, queue.jobs[0][2]), (active, queue.turn)
        return entry

    def remove(self, queue: _JobQueue, job: Job) -> None:
        """Remove a job from its queue after all of its indices were claimed."""
        with self._lock:
            # Every worker of the job calls this method, but only the first call finds the job. A job with a smaller
            # order may have been added before this job.
            for i, (_, _, queued) in enumerate(queue.jobs):
                if queued is job:
                    del queue.jobs[i]
                    heapq.heapify(queue.jobs)
                    break

    def mark_idle(self, queue: _JobQueue) -> None:
        """Record that this thread has finished its work for a queue, and no longer refers to the queue's pipeline."""
        with self._lock:
            queue.active.discard(threading.get_ident())
            self._busy -= 1
            if queue not in self._queues:
                self._condition.notify_all()  # another thread waits in `leave`
            elif queue.jobs:
                self._condition.notify(queue.jobs[0][2].count - 1)

    def run_start(self, number: int) -> None:
        """Run the pipeline's `start` function in the calling thread."""
        if self._start is not None:
            self._start(number)


def _work(workers: _WorkerThreads, number: int, ready: threading.Barrier) -> None:
    use_one_torch_thread(ready)
    workers.run_start(number)
    with torch.no_grad():
        while (entry := workers.wait_for_job()) is not None:
            queue, job = entry
            job.work()
            workers.remove(queue, job)
            # The job refers to the batch, its tensors and open files. If a thread closes the pipeline, it waits for
            # `mark_idle`, and then expects that these references no longer exist. Therefore drop the job before
            # `mark_idle`.
            del entry, job
            workers.mark_idle(queue)
            del queue


_join_lock = ForkSafeLock()
_workers: weakref.WeakValueDictionary[Any, _WorkerThreads] = weakref.WeakValueDictionary()


def _join(count: int, start: Callable[[int], None] | None) -> tuple[_WorkerThreads, _JobQueue]:
    # A new thread inherits the cores of the thread that starts it.
    cores = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    with _join_lock:
        workers = _workers.get((start, cores))
        if workers is None:
            workers = _workers[start, cores] = _WorkerThreads(start)
        return workers, workers.join(count)


def _forget() -> None:
    """Forget all threads in a forked process, because the parent's threads don't exist there."""
    _workers.clear()


on_fork(_forget)
