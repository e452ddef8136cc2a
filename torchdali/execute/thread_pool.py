"""Worker threads that share the items of one job after another.

A job is a function of an index and a count. Every idle worker joins the first job of the queue
and claims indices until all are claimed, which balances uneven samples
and costs a tenth of a microsecond per claim. The worker that finishes the last item calls the job's ``callback``; so no
thread ever waits for a job.
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
    """Run a function once for each index below ``count``; threads claim them in order, and may end in any.

    Args:
        order: Jobs with a smaller one go first.
        callback: Called by the worker that finishes last, with the failures ``{index: exception}``.
        keep_going: Go on after a failure; otherwise the indices not yet claimed are skipped.

    Attributes:
        dropped: True if the pipeline is closed: then no more indices are claimed, and `callback` is not called.
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
                # All other workers are through their items, and the lock orders their writes before this call.
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

    Pipelines share threads that begin in the same way, on the same cores. Their number is the largest that a pipeline
    asks for, plus one for each other pipeline. So every pipeline has at least one, and none waits for the functions of
    another. The next idle thread goes to the pipeline with the fewest running threads.

    The threads hold no reference to a pipeline: they hold the queues, and a job only while it runs, so that a pipeline
    can be collected while they sleep.

    Args:
        count: The most threads that work for this pipeline at once.
        start: Called once in each thread before its first job, with its number.
    """

    def __init__(self, count: int, start: Callable[[int], None] | None = None) -> None:
        keep_freed_memory()
        self.count = count
        self._workers, self._queue = _join(count, start)

    def submit(self, job: Job) -> None:
        """Queue a job; jobs with a smaller order go first."""
        self._workers.put(self._queue, job)

    def close(self) -> None:
        """Wait for the jobs that run, and end the threads that no other pipeline needs."""
        self._workers.leave(self._queue)


class _JobQueue:
    """The jobs of one pipeline, and the threads that work on them."""

    __slots__ = ("active", "count", "jobs", "turn")

    def __init__(self, count: int) -> None:
        self.count = count
        self.jobs: list[tuple[int, int, Job]] = []
        self.active: set[int] = set()  # idents of threads
        self.turn = 0  # when a thread came to it last


class _WorkerThreads:
    """Threads that serve the queues of several pipelines, each job by several threads."""

    def __init__(self, start: Callable[[int], None] | None) -> None:
        self._start = start
        self._queues: list[_JobQueue] = []
        self._numbers: dict[threading.Thread, int] = {}  # of the threads that live
        self._ended: list[threading.Thread] = []
        self._busy = self._most = self._needed = 0
        self._serial = itertools.count(1)
        # An interrupt of the user's thread may leave a Condition held that a `with` statement enters, but not its lock.
        self._lock = threading.RLock()
        self._condition = threading.Condition(self._lock)

    def join(self, count: int) -> _JobQueue:
        """Add a queue, and the threads that it makes necessary; one call at a time."""
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
        """Drop a queue and its jobs; wait for those that run, and for threads that end."""
        # A worker may be the one that exits: it dropped the last reference to the pipeline.
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
        dropped.clear()  # outside of the lock: objects that the jobs hold may end other pipelines

    def put(self, queue: _JobQueue, job: Job) -> None:
        """Add a job to a queue."""
        with self._lock:
            if queue in self._queues:
                # Called by the scheduler thread, or by a worker that finished the stage before. What it wrote to the
                # batch is visible to the workers: they take the job under the same condition.
                heapq.heappush(queue.jobs, (job.order, next(self._serial), job))
                self._condition.notify(job.count)

    def take(self) -> tuple[_JobQueue, Job] | None:
        """Wait for a job and return it, leaving it in the queue for other threads; None to end this thread."""
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
                # The job stays where it is, so that all idle threads join it; each takes its own items from it.
                entry, least = (queue, queue.jobs[0][2]), (active, queue.turn)
        return entry

    def remove(self, queue: _JobQueue, job: Job) -> None:
        """Take a job whose indices have all been claimed out of its queue."""
        with self._lock:
            # Every worker of the job comes here; the first one finds it. A job that comes before it may have been put
            # in meanwhile, so it need not be at the head.
            for i, (_, _, other) in enumerate(queue.jobs):
                if other is job:
                    del queue.jobs[i]
                    heapq.heapify(queue.jobs)
                    break

    def rest(self, queue: _JobQueue) -> None:
        """Record that this thread is idle, and holds nothing of the queue's pipeline any more."""
        with self._lock:
            queue.active.discard(threading.get_ident())
            self._busy -= 1
            if queue not in self._queues:
                self._condition.notify_all()  # somebody waits in `leave`
            elif queue.jobs:
                self._condition.notify(queue.jobs[0][2].count - 1)

    def begin(self, number: int) -> None:
        """Prepare the thread that calls this for its jobs."""
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
            # The job holds the batch, its tensors and open files. Drop it before the thread becomes idle: whoever
            # closes a pipeline waits for that, and then relies on nothing being held.
            del entry, job
            workers.rest(queue)
            del queue


_joining = ForkSafeLock()
_workers: weakref.WeakValueDictionary[Any, _WorkerThreads] = weakref.WeakValueDictionary()


def _join(count: int, start: Callable[[int], None] | None) -> tuple[_WorkerThreads, _JobQueue]:
    # A thread inherits the cores of the one that starts it.
    cores = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    with _joining:
        workers = _workers.get((start, cores))
        if workers is None:
            workers = _workers[start, cores] = _WorkerThreads(start)
        return workers, workers.join(count)


def _forget() -> None:
    """Reset in a forked process, which has none of its parent's threads."""
    _workers.clear()


on_fork(_forget)
