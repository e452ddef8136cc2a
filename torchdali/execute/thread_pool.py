"""Worker threads that share the items of one job after another.

A job is a function of an index, and the number of indices. Every idle worker joins the first job of the queue and
claims indices until all are claimed. This balances uneven samples, and costs a tenth of a microsecond per claim. The
worker that finishes the last item calls the job's ``callback``, so no thread ever waits for a job.
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
    """Runs a function once for each index below ``count``. Threads claim indices in order, and finish in any order.

    Args:
        run: The function of an index.
        count: Number of indices.
        callback: Called by the worker that finishes the last index, with the failures ``{index: exception}``.
        order: Jobs with a smaller order run first.
        keep_going: True to continue after a failure; otherwise the indices that aren't claimed yet are skipped.

    Attributes:
        dropped: True if the pipeline is closed. Then no more indices are claimed, and `callback` is not called.
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
        self._left = count
        self._failures: dict[int, BaseException] = {}
        self.dropped = False

    def work(self) -> None:
        """Claim and run indices until all are claimed."""
        run, claim, count, finished = self.run, self._claim, self.count, 0
        while not self.dropped and (i := claim()) < count:
            if not self._failures or self._keep_going:
                try:
                    # No other worker has this index: claiming is atomic under the GIL, and uses a lock without the GIL.
                    run(i)
                except BaseException as error:
                    # Each worker writes only its own keys. If other workers notice the failure late, they only run a
                    # few more samples.
                    self._failures[i] = error
            finished += 1
        if finished:
            with self._lock:
                self._left -= finished
                last = self._left == 0
            if last:
                # All other workers have finished their items, and the lock orders their writes before this call.
                self._callback(self._failures)


def _counter() -> Callable[[], int]:
    count = itertools.count().__next__
    if has_gil():
        return count  # one bytecode: atomic under the GIL
    lock = threading.Lock()

    def claim() -> int:
        with lock:
            return count()

    return claim


class ThreadPool:
    """The worker threads of a pipeline, which it shares with the other pipelines of its process.

    Pipelines share threads if they have the same `start` function and run on the same cores. The number of shared
    threads is the largest `count` of a pipeline, plus one per further pipeline. So every pipeline has at least one
    thread, and no pipeline waits for another pipeline's functions. The next idle thread works for the pipeline with the
    fewest running threads.

    The threads hold no reference to a pipeline. They refer to the queues, and to a job only while it runs, so a
    pipeline can be garbage-collected while they sleep.

    Args:
        count: Most threads that work for this pipeline at the same time.
        start: Called once in each thread before its first job, with the thread's number.
    """

    def __init__(self, count: int, start: Callable[[int], None] | None = None) -> None:
        keep_freed_memory()
        self.count = count
        self._workers, self._queue = _join(count, start)

    def submit(self, job: Job) -> None:
        """Queue a job; jobs with a smaller order run first."""
        self._workers.put(self._queue, job)

    def close(self) -> None:
        """Wait for the running jobs, and end the threads that no other pipeline needs."""
        self._workers.leave(self._queue)


class _JobQueue:
    """The jobs of one pipeline, and the threads that work on them."""

    __slots__ = ("active", "count", "jobs", "turn")

    def __init__(self, count: int) -> None:
        self.count = count
        self.jobs: list[tuple[int, int, Job]] = []
        self.active: set[int] = set()  # idents of the threads that work on this queue
        self.turn = 0  # serial number of the last time that a thread started to work on this queue


class _WorkerThreads:
    """Threads that run the jobs of several pipelines; several threads share a job."""

    def __init__(self, start: Callable[[int], None] | None) -> None:
        self._start = start
        self._queues: list[_JobQueue] = []
        self._numbers: dict[threading.Thread, int] = {}  # numbers of the living threads
        self._ended: list[threading.Thread] = []
        self._busy = self._most = self._needed = 0
        self._serial = itertools.count(1)
        # Code enters the lock, not the Condition: after an interrupt, a `with` statement may leave a Condition locked.
        self._lock = threading.RLock()
        self._condition = threading.Condition(self._lock)

    def join(self, count: int) -> _JobQueue:
        """Add a queue, and start the threads that it requires. Calls must not overlap."""
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
        self._most = max((queue.count for queue in self._queues), default=0)
        self._needed = self._most + max(0, len(self._queues) - 1)

    def leave(self, queue: _JobQueue) -> None:
        """Drop a queue and its jobs; wait for running jobs, and for threads that end."""
        # The caller may be a worker that dropped the last reference to the pipeline.
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
        dropped.clear()  # without the lock: dropping the jobs' objects may close other pipelines

    def put(self, queue: _JobQueue, job: Job) -> None:
        """Add a job to a queue."""
        with self._lock:
            if queue in self._queues:
                # The caller is the scheduler thread, or a worker that finished the stage before. The workers take the
                # job under the same lock, so they see the caller's writes to the batch.
                heapq.heappush(queue.jobs, (job.order, next(self._serial), job))
                self._condition.notify(job.count)

    def take(self) -> tuple[_JobQueue, Job] | None:
        """Wait for a job and return it; the job stays in the queue for other threads. None to end this thread."""
        me = threading.current_thread()
        with self._lock:
            # A thread whose `join` was interrupted has no number.
            while me in self._numbers and len(self._numbers) <= self._needed:
                entry = self._next()
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

    def _next(self) -> tuple[_JobQueue, Job] | None:
        """Return the job for the next idle thread."""
        entry, least = None, (0, 0)
        for queue in self._queues:
            active = len(queue.active)
            if not queue.jobs or active >= queue.count:
                continue
            if active and self._busy >= self._most:
                continue
            if entry is None or (active, queue.turn) < least:
                # The job stays in the queue, so that all idle threads can join it. Each thread claims its own items.
                entry, least = (queue, queue.jobs[0][2]), (active, queue.turn)
        return entry

    def remove(self, queue: _JobQueue, job: Job) -> None:
        """Remove a job from its queue after all of its indices were claimed."""
        with self._lock:
            # Every worker of the job calls this, and the first call finds the job. The job may not be the first of the
            # queue, because a job with a smaller order may have been added meanwhile.
            for i, (_, _, other) in enumerate(queue.jobs):
                if other is job:
                    del queue.jobs[i]
                    heapq.heapify(queue.jobs)
                    break

    def rest(self, queue: _JobQueue) -> None:
        """Record that this thread is idle, and no longer refers to objects of the queue's pipeline."""
        with self._lock:
            queue.active.discard(threading.get_ident())
            self._busy -= 1
            if queue not in self._queues:
                self._condition.notify_all()  # another thread waits in `leave`
            elif queue.jobs:
                self._condition.notify(queue.jobs[0][2].count - 1)

    def begin(self, number: int) -> None:
        """Prepare the calling thread for its jobs."""
        if self._start is not None:
            self._start(number)


def _work(workers: _WorkerThreads, number: int, ready: threading.Barrier) -> None:
    use_one_torch_thread(ready)
    workers.begin(number)
    with torch.no_grad():
        while (entry := workers.take()) is not None:
            queue, job = entry
            job.work()
            workers.remove(queue, job)
            # The job refers to the batch, its tensors and open files. Drop it before the thread becomes idle: a thread
            # that closes the pipeline waits for idle threads, and relies on no references remaining.
            del entry, job
            workers.rest(queue)
            del queue


_joining = ForkSafeLock()
_workers: weakref.WeakValueDictionary[Any, _WorkerThreads] = weakref.WeakValueDictionary()


def _join(count: int, start: Callable[[int], None] | None) -> tuple[_WorkerThreads, _JobQueue]:
    # A thread inherits the cores of the thread that starts it.
    cores = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    with _joining:
        workers = _workers.get((start, cores))
        if workers is None:
            workers = _workers[start, cores] = _WorkerThreads(start)
        return workers, workers.join(count)


def _forget() -> None:
    """Reset the state in a forked process, where the parent's threads don't exist."""
    _workers.clear()


on_fork(_forget)
