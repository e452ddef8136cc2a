"""Deal jobs out to worker processes, and watch these: replicas make batches, others run parallel sources.

The contract:

- The oldest job goes first, to the worker that has the least to do; each has at most a few. A job with an owner goes to
  that worker alone.
- A worker that stands still because somebody stopped it is killed.
- A replica that dies is replaced, unless too many died lately, and others make its batches. A batch that was lost twice
  fails with an error that says which process ended how; so does everything if no worker is left and none is started.
- A worker of sources that dies ends all of them, with that error: what its sources remembered is gone.
- One thread receives all answers, another one ends workers that stand still. What follows in a batch runs on the
  threads of the pipeline.
- `close` may come at any time, from any thread, and again. Workers end when their pipeline or its process does.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing import connection as mp_connection
from typing import Any, Protocol

from torchdali.errors import PipelineError
from torchdali.execute.process_state import is_stopped
from torchdali.execute.shared_memory import socket_of
from torchdali.execute.workers.blocks import Views
from torchdali.execute.workers.messages import Block, Drop, read, write
from torchdali.kernels.torch_threads import keep_torch_threads, use_one_torch_thread

__all__ = ["START", "Process", "Worker", "WorkerJob", "WorkerPool"]

_GRACE = 0.5  # seconds for a process to end by itself, and again after SIGTERM
_POLL = 0.5  # seconds between looks at what cannot be waited for
_STILL = 2  # looks in a row at which a process was stopped: after Ctrl-Z and fg, it may wake late
START = 120.0  # seconds for a worker to start
_LOSSES = 2  # workers that may die with a batch
_RESTARTS = 2  # times that a worker is replaced, on average, in _LATELY seconds
_LATELY = 60.0


class Process(Protocol):
    """A process that was started; `multiprocessing.Process` and others."""

    @property
    def pid(self) -> int | None: ...
    @property
    def exitcode(self) -> int | None: ...
    def join(self, timeout: float | None = None) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class Starts(Protocol):
    """Start of a worker in the place of one that died; see `starting.Starter`."""

    @property
    def patience(self) -> float: ...
    def start(self, number: int) -> Worker: ...
    def problem(self, worker: Worker) -> str: ...
    def close(self) -> None: ...


class WorkerJob(Protocol):
    """Work for a worker.

    Attributes:
        losses: Workers that died with it.
    """

    losses: int

    @property
    def order(self) -> int:
        """Number by which it comes first or later."""
        ...

    @property
    def owner(self) -> int | None:
        """Number of the only worker that may do it; None for any."""
        ...

    @property
    def title(self) -> str:
        """Name of this work in messages."""
        ...

    def begin(self) -> bool:
        """Return whether it is still wanted."""
        ...

    def message(self, number: int, blocks: set[int], returned: tuple[int, ...]) -> Any:
        """Return the message for a worker that knows some blocks of shared memory."""
        ...

    def answer(self, result: Any, views: Views) -> None:
        """Take over the results, in the thread that receives them."""
        ...

    def lose(self, error: Exception) -> None:
        """Note that it cannot be done."""
        ...

    def finish(self) -> None:
        """Go on, after `answer` or `lose`."""
        ...


class Worker:
    """A worker, seen from the process of the user.

    Args:
        purpose: What it works for, for messages.
    """

    def __init__(self, process: Process, connection: Any, number: int, purpose: str = "the pipeline") -> None:
        self.process, self.connection, self.number, self._purpose = process, connection, number, purpose
        self.views = Views()  # another one, with page-locked memory, where the pool says so
        self.jobs: dict[int, WorkerJob] = {}
        self.blocks: set[int] = set()  # that it was told of
        self.alive, self.still, self.was_stopped = True, 0, False
        self.shares_memory = True
        self.since = time.monotonic()
        self._socket = socket_of(connection.fileno())
        self._lock = threading.Lock()

    def stands_still(self) -> bool:
        """Return whether a signal has stopped the process."""
        return is_stopped(self.process.pid)

    def kill(self) -> None:
        """End the process, whatever it does; the connection ends with it."""
        self.process.kill()

    def send(self, message: Any, descriptor: int | None = None) -> None:
        """Send a message; a worker that is dying does not get it, which the pool notices."""
        with self._lock, contextlib.suppress(OSError):
            write(self.connection, message)
            if descriptor is not None:
                socket.send_fds(self._socket, [b"d"], [descriptor])

    def send_job(self, number: int, job: WorkerJob) -> None:
        """Send a job, with the worker's blocks that came back."""
        # Numbers of blocks go along: the worker alone decides what to write where, so that none is written while a
        # tensor on it is alive.
        self.jobs[number] = job
        self.send(job.message(number, self.blocks, self.views.returned()))

    def receive(self) -> Any:
        """Receive the result of a job; None if the message was about a block.

        Raises:
            EOFError, OSError: the worker has died.
        """
        message = read(self.connection)
        if isinstance(message, Drop):
            self.views.drop(message.number)
            return None
        if not isinstance(message, Block):
            return message
        _, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
        if not descriptors:
            raise EOFError
        self.views.add(message.number, descriptors[0], message.size)
        return None

    def end_message(self, meanwhile: str = "") -> str:
        """Describe how the process ended.

        Args:
            meanwhile: What it did; by default, the jobs that it had.
        """
        self.process.join(_GRACE)
        code = self.process.exitcode
        how = "closed its connection" if code is None else f"exited with code {code}"
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                how = f"was killed by {signal.Signals(-code).name}"
        if self.was_stopped:
            how = f"was stopped (SIGSTOP or Ctrl-Z), did not go on for {_STILL * _POLL:g} s and was killed"
        if self.jobs:
            meanwhile = f" while it worked on {' and '.join(job.title for job in self.jobs.values())}"
        return f"worker process {self.number} (pid {self.process.pid}) of {self._purpose} {how}{meanwhile}"

    def close(self) -> None:
        self.connection.close()
        self._socket.close()


class WorkerPool:
    """The workers of one pipeline.

    Args:
        workers: Started; those that are not `alive` are not yet ready.
        run: Runs a function on a thread of the pipeline.
        starter: Starts more; None if a worker that dies ends all.
        ahead: Jobs that a worker has at most; more than one, so that it does not wait for the next.
        pinned: Page-lock the memory of what workers make.

    Attributes:
        deaths: How workers ended that were not told to.
        replaced: How many were started in the place of another.
        joined: Called when a worker has come that knows no block of those before.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        run: Callable[[Callable[[], None]], None],
        starter: Starts | None,
        ahead: int = 2,
        pinned: bool = False,
    ) -> None:
        self.workers, self._run, self._starter, self._pinned = list(workers), run, starter, pinned
        self._ahead = ahead
        for worker in workers:
            worker.views = Views(pinned)
        self._starting = [worker for worker in workers if not worker.alive]  # of the watching thread, until it is over
        self._count = len(workers)
        self._restarts: deque[float] = deque()
        self.joined: Callable[[], None] = _nothing
        self.replaced = 0
        self._queue: list[tuple[int, int, WorkerJob]] = []
        self._serial, self._numbers = itertools.count(), itertools.count()
        # Reentrant: a garbage collection inside may drop the pipeline, whose end comes here.
        self._lock = threading.RLock()
        self._over = ""
        self._process = os.getpid()
        self.deaths: list[str] = []
        self._closed = threading.Event()
        self._looked = 0.0
        with keep_torch_threads(1) as ready:
            self._watch = threading.Thread(target=self._watched, args=(ready,), name="torchdali-processes", daemon=True)
            self._watch.start()
        self._guard = threading.Thread(target=self._guarded, name="torchdali-guard", daemon=True)
        self._guard.start()

    def add(self, count: int) -> None:
        """Have more workers started; they take part as soon as they are ready."""
        self._count += count  # for the watching thread, which alone starts workers

    # ------------------------------------------------------------ dealing

    def submit(self, job: WorkerJob) -> None:
        """Queue a job."""
        with self._lock:
            if not self._over:
                # From here on the job is the watching thread's, and that of the thread on which it finishes.
                self._enqueue(job)
                self._assign()
                return
        job.lose(PipelineError(self._over))
        self._run(job.finish)

    def _enqueue(self, job: WorkerJob) -> None:
        heapq.heappush(self._queue, (job.order, next(self._serial), job))

    def _assign(self) -> None:
        """Give jobs to the workers that have few (under the lock)."""
        later = []
        while self._queue:
            free = [w for w in self.workers if w.alive and len(w.jobs) < self._ahead]
            if not free:
                break
            entry = heapq.heappop(self._queue)
            job = entry[2]
            fitting = [w for w in free if job.owner in (None, w.number)]
            if not fitting:
                later.append(entry)
                continue
            # Of those with as little to do, the one that has been at work for longest will be free first.
            worker = min(fitting, key=lambda w: (len(w.jobs), min(w.jobs, default=0)))
            if job.begin():
                worker.send_job(next(self._numbers), job)
        for entry in later:
            heapq.heappush(self._queue, entry)

    def announce(self, number: int, descriptor: int, size: int) -> None:
        """Tell all workers of a block of shared memory."""
        for worker in self.workers:
            if worker.alive and worker.shares_memory:
                worker.send(Block(number, size), descriptor)
                worker.blocks.add(number)

    def forget(self, number: int) -> None:
        """Tell all workers that a block will not be used again."""
        for worker in self.workers:
            if worker.alive and number in worker.blocks:
                worker.send(Drop(number))
                worker.blocks.discard(number)

    # ------------------------------------------------------------ watching

    def _watched(self, ready: threading.Barrier) -> None:
        use_one_torch_thread(ready)
        try:
            while not self._over:
                self._look()
        except BaseException as error:
            self._end(f"the thread that watches the worker processes failed: {error!r}")

    def _look(self) -> None:
        alive = {w.connection: w for w in (*filter(_is_alive, self.workers), *self._starting)}
        for connection in mp_connection.wait(list(alive), _POLL):
            worker = alive[connection]
            if worker in self._starting:
                self._join(worker)
            else:
                self._receive(worker)
        now = time.monotonic()
        if now - self._looked < _POLL:
            return
        self._looked = now
        for worker in alive.values():
            if self._over:
                return
            if worker in self._starting:
                patience = 0.0 if self._starter is None else self._starter.patience
                if now - worker.since > patience:
                    self._not_joined(worker, f"worker process {worker.number} did not start within {patience:g} s")
                elif worker.process.exitcode is not None and not mp_connection.wait([worker.connection], 0):
                    self._not_joined(worker, worker.end_message(" while it started"))
            elif not worker.alive:
                continue
            elif worker.process.exitcode is not None and not worker.connection.poll():
                self._bury(worker)
        self._replace()

    def _guarded(self) -> None:
        """End workers that somebody stopped.

        In a thread of its own: one may be stopped in the middle of a message, for which the watching thread waits.
        """
        while not self._closed.wait(_POLL):
            for worker in self.workers:
                if not (worker.alive and worker.jobs and worker.stands_still()):
                    worker.still = 0
                    continue
                worker.still += 1
                if worker.still >= _STILL:
                    worker.was_stopped = True
                    worker.kill()  # its pipe ends, which the watching thread notices

    def _receive(self, worker: Worker) -> None:
        try:
            result = worker.receive()
            if result is None:
                return
            job = worker.jobs[result.number]
            job.answer(result, worker.views)
        except (EOFError, OSError):
            self._bury(worker)
            return
        with self._lock:
            del worker.jobs[result.number]
            self._assign()
        self._run(job.finish)

    def _bury(self, worker: Worker) -> None:
        """End a worker, and have its jobs done by others; in the watching thread."""
        with self._lock:
            if self._over or not worker.alive:
                return
            worker.alive = False
        if worker.process.exitcode is None:
            worker.kill()
        # Only when it is gone may another one write where it wrote.
        worker.process.join(10 * _GRACE)
        self.deaths.append(worker.end_message())
        message = f"{self.deaths[-1]}. If memory ran out, use fewer processes or smaller batches"
        with self._lock:
            self._replace()
            nobody = self._nobody()
            if not nobody:
                jobs, worker.jobs = list(worker.jobs.values()), {}
                lost = list(filter(self._is_lost, jobs))
                self._assign()
        if nobody:
            self._end(message)
        else:
            for job in lost:
                job.lose(PipelineError(message))
                self._run(job.finish)
        worker.close()

    def _is_lost(self, job: WorkerJob) -> bool:
        """Note that a worker died with a job; return whether it was one too many, and queue it again otherwise."""
        job.losses += 1
        if job.losses < _LOSSES:
            self._enqueue(job)
        return job.losses >= _LOSSES

    # ------------------------------------------------------------ replacing, in the watching thread

    def _nobody(self) -> bool:
        """Return whether no worker is left, or may go on alone."""
        return self._starter is None or not (self._starting or any(each.alive for each in self.workers))

    def _replace(self) -> None:
        """Start workers in the place of those that died, unless too many did lately."""
        if self._starter is None:
            return
        now = time.monotonic()
        while self._restarts and now - self._restarts[0] > _LATELY:
            self._restarts.popleft()
        coming = {worker.number for worker in self._starting}
        for number in range(self._count):
            is_new = number >= len(self.workers)
            if self._over or number in coming or not (is_new or not self.workers[number].alive):
                continue
            if not is_new and len(self._restarts) >= _RESTARTS * len(self.workers):
                return
            with contextlib.suppress(OSError):  # tried again, as long as the number of times allows
                if not is_new:
                    self._restarts.append(now)
                started = self._starter.start(number)
                started.views, started.alive = Views(self._pinned), False
                self._starting.append(started)
                if is_new:
                    self.workers.append(started)

    def _join(self, worker: Worker) -> None:
        """Take a worker into service that has said whether it is ready."""
        assert self._starter is not None
        problem = self._starter.problem(worker)
        with self._lock:
            if self._over:
                return
            if not problem:
                self._starting.remove(worker)
                # From here on it hears of new blocks.
                self.replaced += self.workers[worker.number] is not worker
                self.workers[worker.number], worker.alive = worker, True
                self._assign()
        if problem:
            self._not_joined(worker, problem)
        else:
            self.joined()

    def _not_joined(self, worker: Worker, problem: str) -> None:
        self._starting.remove(worker)
        worker.kill()
        worker.close()
        self.deaths.append(problem)
        self._replace()
        if self._nobody():
            self._end(problem)

    # ------------------------------------------------------------ ending

    def close(self) -> None:
        """End the processes."""
        if os.getpid() == self._process:  # not in a forked child that drops its copy of all this
            self._end("the pipeline was closed while a worker process worked")

    def _end(self, reason: str) -> None:
        with self._lock:
            if self._over:
                return
            self._over = reason  # from here on, no worker is given a job
        self._closed.set()
        for worker in self.workers:
            if worker.jobs:
                worker.process.terminate()
            elif worker.alive:
                worker.send(None)
        for worker in self._starting:
            worker.kill()
        _stop([worker.process for worker in (*self.workers, *self._starting)])
        if threading.current_thread() is not self._watch:
            self._watch.join(4 * _POLL)
        if self._starter is not None:
            self._starter.close()
        self.joined = _nothing  # what it belongs to refers to the pool
        # An answer that the watching thread just takes over may end its batch a second time, which does nothing.
        left = [*(job for _, _, job in self._queue), *(job for w in self.workers for job in w.jobs.values())]
        for job in left:
            job.lose(PipelineError(reason))
            self._run(job.finish)
        for worker in (*filter(_is_alive, self.workers), *self._starting):
            worker.alive = False
            worker.close()


def _is_alive(worker: Worker) -> bool:
    return worker.alive


def _nothing() -> None:
    pass


def _stop(processes: Sequence[Process]) -> None:
    """End processes that were told to: by SIGTERM, then by SIGKILL."""
    for stop in ("terminate", "kill", "join"):
        deadline = time.monotonic() + _GRACE
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.exitcode is None:
                getattr(process, stop)()
