"""Send jobs to worker processes, and watch the processes.

*Replicas* are workers that compute batches, and *source workers* run parallel sources. The pool guarantees:

- The oldest job is sent first, to the worker with the fewest jobs. Each worker has at most `ahead` jobs. If a job has
  an owner (a certain worker), only the owner receives the job.
- If a worker is suspended (Ctrl-Z, SIGSTOP) while it has a job, the pool kills the worker.
- If a replica dies, other replicas compute its batches. The pool starts a new replica, unless too many died recently.
- If two replicas die while they compute the same batch, the batch fails. The error says how the second replica ended.
  If all workers have ended and no worker can be started, every batch fails with the last error.
- If a source worker dies, the state of its sources is lost. Therefore all source workers end, and all jobs fail.
- The *watching thread* receives all replies, and another thread kills suspended workers. The threads of the pipeline do
  all other work on a batch.
- Any thread may call `close`, at any time and repeatedly. Every wait for a process has a time limit. Workers end when
  their pipeline is closed or the main process ends.
"""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing import connection as mp_connection
from typing import Protocol

import torch

from torchdali.errors import PipelineError
from torchdali.execute.workers.blocks import Views
from torchdali.execute.workers.messages import DroppedBlock, SentBlock
from torchdali.execute.workers.worker import NotStarted, Process, Worker, WorkerJob
from torchdali.kernels.torch_threads import keep_torch_threads, use_one_torch_thread
from torchdali.threads import Thread, close_at_end

__all__ = ["START", "WorkerPool"]

_GRACE = 0.5  # seconds to wait for a process to end by itself, and again after SIGTERM
_KILL_TIMEOUT = 10.0  # seconds to wait for a killed process to end
_POLL = 0.5  # seconds between checks of the processes' states
_SUSPENDED_CHECKS = 2  # kill a process that is suspended in this number of consecutive checks
START = 120.0  # seconds within which a worker must start
_LOSSES = 2  # a job fails if this number of workers began the job and died
_RESTARTS = 2  # largest number of replacements per worker, on average, within _RESTART_WINDOW seconds
_RESTART_WINDOW = 60.0


class WorkerStart(Protocol):
    """The object that starts replacements for workers that died; see `starting.Starter`."""

    @property
    def patience(self) -> float: ...
    def start(self, number: int) -> Worker: ...
    def check_server(self) -> None: ...
    def is_ready(self, worker: Worker) -> bool: ...
    def close(self) -> None: ...


class WorkerPool:
    """The workers of one pipeline.

    Args:
        workers: Processes that were started. If a worker isn't `alive`, it is still starting.
        run: Function that runs its argument, a function, on a thread of the pipeline.
        starter: Starts replacements for workers that died. If None, all workers end when one worker dies.
        ahead: Largest number of jobs per worker. If it is larger than 1, a worker needn't wait for its next job.
        device: The accelerator to which the workers' results are copied from pinned memory. If None, the memory isn't
            pinned.

    Attributes:
        exits: A message for each worker that died or never became ready.
        replaced: Number of workers that died and were replaced.
        on_join: Function that is called when a new worker is ready. A new worker can't read the blocks of shared memory
            that were created before.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        run: Callable[[Callable[[], None]], None],
        starter: WorkerStart | None,
        ahead: int = 2,
        device: torch.device | None = None,
    ) -> None:
        self.workers, self._run, self._starter, self._device = list(workers), run, starter, device
        self._ahead = ahead
        for worker in workers:
            worker.views = Views(device)
            if starter is not None and worker.alive and worker.shares_memory:
                worker.open_ledger()
        # Only the watching thread uses this list.
        self._starting = [worker for worker in workers if not worker.alive]
        self._count = len(workers)
        self._restarts: deque[float] = deque()
        self.on_join: Callable[[], None] = _noop
        self.replaced = 0
        self._queue: list[tuple[int, int, WorkerJob]] = []
        self._serial, self._numbers = itertools.count(), itertools.count()
        # The lock is reentrant, because a garbage collection may drop the pipeline while this thread holds the lock.
        # Dropping the pipeline calls `close` in this thread.
        self._lock = threading.RLock()
        self._end_reason = self._start_error = ""
        self._process = os.getpid()
        self.exits: list[str] = []
        self._closed = threading.Event()
        self._checked_at = 0.0
        with keep_torch_threads(1) as ready:
            self._watch = Thread(self._watch_workers, (ready,), "torchdali-processes")
            self._watch.start()
        self._guard = Thread(self._guard_workers, (), "torchdali-guard")
        self._guard.start()
        close_at_end(self)

    def add(self, count: int) -> None:
        """Request more workers. Each one receives jobs once it is ready."""
        self._count += count  # the watching thread reads this number and starts the workers

    # ------------------------------------------------------------ sending jobs

    def submit(self, job: WorkerJob) -> None:
        """Queue a job."""
        with self._lock:
            if not self._end_reason:
                # From here on, the job belongs to the watching thread. When the worker has replied, the job belongs to
                # the thread that calls `finish`.
                self._enqueue(job)
                self._assign()
                return
        job.fail(PipelineError(self._end_reason))
        self._run(job.finish)

    def _enqueue(self, job: WorkerJob) -> None:
        heapq.heappush(self._queue, (job.order, next(self._serial), job))

    def _assign(self) -> None:
        """Send queued jobs to workers that have fewer than `ahead` jobs. The caller must hold the lock."""
        deferred = []
        while self._queue:
            free = [w for w in self.workers if w.alive and len(w.jobs) < self._ahead]
            if not free:
                break
            entry = heapq.heappop(self._queue)
            job = entry[2]
            allowed = [w for w in free if job.owner in (None, w.number)]
            if not allowed:
                deferred.append(entry)
                continue
            # If several workers have equally few jobs, choose the worker with the oldest job, because it will probably
            # finish first.
            worker = min(allowed, key=lambda w: (len(w.jobs), min(w.jobs, default=0)))
            if job.begin():
                worker.send_job(next(self._numbers), job)
        for entry in deferred:
            heapq.heappush(self._queue, entry)

    def announce(self, number: int, descriptor: int, size: int) -> None:
        """Send all workers a new block of shared memory."""
        for worker in self.workers:
            if worker.alive and worker.shares_memory:
                worker.send(SentBlock(number, size), descriptor)
                worker.blocks.add(number)

    def forget(self, number: int) -> None:
        """Send all workers the message that a block of shared memory will not be used again."""
        for worker in self.workers:
            if worker.alive and number in worker.blocks:
                worker.send(DroppedBlock(number))
                worker.blocks.discard(number)

    # ------------------------------------------------------------ watching

    def _watch_workers(self, ready: threading.Barrier) -> None:
        use_one_torch_thread(ready)
        try:
            while not self._end_reason:
                self._poll_workers()
        except BaseException as error:
            self._end(f"the thread that watches the worker processes failed: {error!r}")

    def _poll_workers(self) -> None:
        alive = {w.connection: w for w in (*filter(_is_alive, self.workers), *self._starting)}
        for connection in mp_connection.wait(list(alive), _POLL):
            worker = alive[connection]
            if worker in self._starting:
                self._join(worker)
            else:
                self._receive(worker)
        now = time.monotonic()
        if now - self._checked_at < _POLL:
            return
        self._checked_at = now
        for worker in alive.values():
            if self._end_reason:
                return
            if worker in self._starting:
                patience = 0.0 if self._starter is None else self._starter.patience
                if now - worker.started_at > patience:
                    self._reject(worker, f"worker process {worker.number} did not start within {patience:g} s")
                elif worker.process.exitcode is not None and not mp_connection.wait([worker.connection], 0):
                    self._reject(worker, worker.end_message(" while it started"))
            elif not worker.alive:
                continue
            elif worker.process.exitcode is not None and not worker.connection.poll():
                self._remove_dead(worker)
        self._replace()

    def _guard_workers(self) -> None:
        """Kill suspended workers that have jobs, and let the starter check its server.

        This method runs in its own thread. The watching thread can't do this, because it may be waiting for the rest of
        a suspended worker's message.
        """
        while not self._closed.wait(_POLL):
            if self._starter is not None:
                self._starter.check_server()
            for worker in self.workers:
                if not (worker.alive and worker.jobs and worker.is_suspended()):
                    worker.suspended_checks = 0
                    continue
                worker.suspended_checks += 1
                if worker.suspended_checks >= _SUSPENDED_CHECKS:
                    worker.suspended_for = _SUSPENDED_CHECKS * _POLL
                    worker.kill()  # the watching thread then notices that the connection has ended

    def _receive(self, worker: Worker) -> None:
        try:
            result = worker.receive()
            if result is None:
                return
            job = worker.jobs[result.number]
            job.set_reply(result, worker.views)
        except (EOFError, OSError):
            self._remove_dead(worker)
            return
        with self._lock:
            del worker.jobs[result.number]
            self._assign()
        self._run(job.finish)

    def _remove_dead(self, worker: Worker) -> None:
        """Remove a dead worker, and reassign its jobs. Runs in the watching thread."""
        with self._lock:
            if self._end_reason or not worker.alive:
                return
            worker.alive = False
        if worker.process.exitcode is None:
            worker.kill()
        # The process may write to shared memory until it has ended. Other workers can run its jobs only after that.
        worker.process.join(10 * _GRACE)
        self.exits.append(message := worker.end_message())
        with self._lock:
            self._replace()
            is_exhausted = self._is_exhausted()
            if not is_exhausted:
                jobs, worker.jobs = worker.jobs, {}
                lost = [job for number, job in jobs.items() if self._requeue_or_lose(job, worker.has_begun(number))]
                self._assign()
        if is_exhausted:
            self._end(self._with_reason(message))
        else:
            for job in lost:
                job.fail(PipelineError(message))
                self._run(job.finish)
        worker.close()

    def _requeue_or_lose(self, job: WorkerJob, was_begun: bool) -> bool:
        """Queue a job of a dead worker again. Return True instead if too many workers died while they ran the job."""
        job.losses += was_begun
        if job.losses < _LOSSES:
            self._enqueue(job)
        return job.losses >= _LOSSES

    # ------------------------------------------------------------ replacing, in the watching thread

    def _is_exhausted(self) -> bool:
        """Return whether no worker can run jobs any more.

        This is the case if all workers have ended and no worker is starting. Without a starter, it is also the case if
        a single worker has died.
        """
        return self._starter is None or not (self._starting or any(each.alive for each in self.workers))

    def _replace(self) -> None:
        """Start the workers that `add` requested. Replace dead workers, unless too many died recently."""
        if self._starter is None:
            return
        now = time.monotonic()
        while self._restarts and now - self._restarts[0] > _RESTART_WINDOW:
            self._restarts.popleft()
        starting = {worker.number for worker in self._starting}
        for number in range(self._count):
            is_new = number >= len(self.workers)
            if self._end_reason or number in starting or not (is_new or not self.workers[number].alive):
                continue
            if not is_new and len(self._restarts) >= _RESTARTS * len(self.workers):
                return
            if not is_new:
                self._restarts.append(now)
            try:
                started = self._starter.start(number)
            except OSError as error:  # later calls of this method try again, up to `_RESTARTS`
                self._start_error = str(error)
                continue
            started.views, started.alive, self._start_error = Views(self._device), False, ""
            self._starting.append(started)
            if is_new:
                self.workers.append(started)

    def _join(self, worker: Worker) -> None:
        """Add a started worker to the pool if it is ready. The watching thread calls this method repeatedly."""
        assert self._starter is not None
        try:
            if not self._starter.is_ready(worker):
                return
        except NotStarted as error:
            if not self._end_reason:
                self._reject(worker, str(error))
            return
        with self._lock:
            if self._end_reason:
                return
            self._starting.remove(worker)
            # From here on, the worker is `alive`, so `announce` sends new blocks to this worker.
            self.replaced += self.workers[worker.number] is not worker
            if worker.shares_memory:
                worker.open_ledger()
            self.workers[worker.number], worker.alive = worker, True
            self._assign()
        self.on_join()

    def _reject(self, worker: Worker, problem: str) -> None:
        self._starting.remove(worker)
        worker.kill()
        worker.close()
        self.exits.append(problem)
        self._replace()
        if self._is_exhausted():
            self._end(self._with_reason(problem))

    def _with_reason(self, message: str) -> str:
        """Add to a message the reason why no worker can be started, if the reason is known."""
        return f"{message}. None can be started: {self._start_error}" if self._start_error else message

    # ------------------------------------------------------------ ending

    def close(self) -> None:
        """End the processes. Jobs that aren't done fail."""
        # If this process is a fork, it may drop its copy of the pool, but must not end its parent's worker processes.
        if os.getpid() == self._process:
            self._end("the pipeline was closed while a worker process worked")

    def _end(self, reason: str) -> None:
        # If the lock isn't available, another thread is sending a message to a worker that doesn't read.
        if not self._lock.acquire(timeout=_GRACE):
            for worker in self.workers:
                worker.kill()
            self._lock.acquire()
        try:
            if self._end_reason:
                return
            self._end_reason = reason  # from here on, no job is sent
        finally:
            self._lock.release()
        self._closed.set()
        for worker in self.workers:
            if worker.jobs:
                worker.process.terminate()
            elif worker.alive:
                worker.send(None)
        for worker in self._starting:
            worker.kill()
        _stop([worker.process for worker in (*self.workers, *self._starting)])
        for thread in (self._watch, self._guard):  # these threads use the starter, so they must end before it
            if thread is not threading.current_thread():
                thread.join(4 * _POLL)
        if self._starter is not None:
            self._starter.close()
        self.on_join = _noop  # breaks a cycle of references: the function refers to an object that refers to the pool
        # The watching thread may also finish one of these jobs. The second call of `finish` has no effect.
        remaining = [*(job for _, _, job in self._queue), *(job for w in self.workers for job in w.jobs.values())]
        for job in remaining:
            job.fail(PipelineError(reason))
            self._run(job.finish)
        for worker in (*filter(_is_alive, self.workers), *self._starting):
            worker.alive = False
            worker.close()


def _is_alive(worker: Worker) -> bool:
    return worker.alive


def _noop() -> None:
    pass


def _stop(processes: Sequence[Process]) -> None:
    """End processes: wait, then send SIGTERM and wait, then send SIGKILL and wait."""
    for stop, patience in (("terminate", _GRACE), ("kill", _GRACE), ("kill", _KILL_TIMEOUT)):
        deadline = time.monotonic() + patience
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.exitcode is None:
                getattr(process, stop)()
