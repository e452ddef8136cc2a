"""Deal parts of batches out to worker processes, and watch these.

The contract:

- A part of the oldest batch goes first, to the worker that has the least to do; each has at most a few.
- Parts before one that failed are done all the same, so that the error is that of the first sample that fails.
- A worker that dies, or stands still because somebody stopped it, is ended; others do its parts again, and another one
  is started in its place, unless too many died lately. A part that was lost twice fails with an error that says which
  process ended how; so does everything if no worker is left and none is started.
- One thread receives all answers, another one ends workers that stand still. What follows the last part of a batch
  runs on the threads of the pipeline.
- `close` may come at any time, from any thread, and again. Workers end when their pipeline or its process does.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import pickle
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing import connection as mp_connection
from typing import Any, Protocol

from torchdali.errors import PipelineError
from torchdali.execute.shared_memory import Reader, socket_of
from torchdali.execute.stopped import is_stopped
from torchdali.execute.workers.messages import Answer, Block, Drop, Part
from torchdali.kernels.torch_threads import keep_torch_threads, use_one_torch_thread
from torchdali.tensors import TensorList

__all__ = ["START", "Process", "Worker", "WorkerPool", "WorkerJob"]

_AHEAD = 2  # parts that a worker has, so that its threads do not wait for the next one
_GRACE = 0.5  # seconds for a process to end by itself, and again after SIGTERM
_POLL = 0.5  # seconds between looks at what cannot be waited for
START = 120.0  # seconds for a worker to start
_LOSSES = 2  # workers that may die with a part
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

    def start(self, number: int) -> Worker: ...
    def problem(self, worker: Worker) -> str: ...
    def close(self) -> None: ...


class WorkerJob(Protocol):
    """The parts of one batch."""

    @property
    def order(self) -> int: ...
    @property
    def parts(self) -> Sequence[Part]: ...

    def part_for(self, k: int, blocks: Container[int]) -> Part:
        """Return a part for a worker that knows some blocks of shared memory."""
        ...

    def answer(self, part: Part, answer: Answer, packed: Sequence[TensorList]) -> bool:
        """Take over the results of a part; return False if a sample failed and the job need not go on."""
        ...

    def lose(self, error: Exception) -> None:
        """Note that the job cannot be done."""
        ...

    def finish(self) -> None:
        """Go on after the last part."""
        ...


@dataclass(eq=False)
class _Dealt:
    """A job, as far as it has come."""

    job: WorkerJob
    left: int
    next: int = 0
    end: int = 0
    lost: list[int] = field(default_factory=list)
    losses: dict[int, int] = field(default_factory=dict)


class Worker:
    """A worker, seen from the process of the user."""

    def __init__(self, process: Process, connection: Any, number: int) -> None:
        self.process, self.connection, self.number = process, connection, number
        self.reader = Reader(connection.fileno())
        self.parts: dict[int, tuple[_Dealt, int]] = {}
        self.blocks: set[int] = set()  # that it was told of
        self.alive, self.still, self.was_stopped = True, 0, False
        self.since = time.monotonic()
        self._socket = socket_of(connection.fileno())
        self._lock = threading.Lock()

    def send(self, message: Any, descriptor: int | None = None) -> None:
        """Send a message; a worker that is dying does not get it, which the pool notices."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        with self._lock, contextlib.suppress(OSError):
            self.connection.send_bytes(data)
            if descriptor is not None:
                socket.send_fds(self._socket, [b"d"], [descriptor])

    def send_part(self, part: Part) -> None:
        """Send a part, with the worker's blocks that came back."""
        # Numbers of blocks go along: the worker alone decides what to write where, so that none is written while a
        # tensor on it is alive.
        self.send(replace(part, returned=tuple(self.reader.returned())))

    def end_message(self, dealt: str) -> str:
        """Describe how the process ended."""
        self.process.join(_GRACE)
        code = self.process.exitcode
        how = "closed its connection" if code is None else f"exited with code {code}"
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                how = f"was killed by {signal.Signals(-code).name}"
        if self.was_stopped:
            how = "was stopped and did not go on"
        return f"worker process {self.number} (pid {self.process.pid}) of the pipeline {how}{dealt}"

    def close(self) -> None:
        self.connection.close()
        self.reader.close()
        self._socket.close()


class WorkerPool:
    """The workers of one pipeline.

    Args:
        workers: Started and ready.
        run: Runs a function on a thread of the pipeline.
        starter: Starts more.

    Attributes:
        deaths: How workers ended that were not told to.
        replaced: How many were started in the place of another.
        joined: Called when a worker has come that knows no block of those before.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        run: Callable[[Callable[[], None]], None],
        starter: Starts,
    ) -> None:
        self.workers, self._run, self._starter = list(workers), run, starter
        self._starting: list[Worker] = []  # of the watching thread, until it is over
        self._restarts: deque[float] = deque()
        self.joined: Callable[[], None] = _nothing
        self.replaced = 0
        self._queue: list[tuple[int, int, _Dealt]] = []
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

    # ------------------------------------------------------------ dealing

    def submit(self, job: WorkerJob) -> None:
        """Queue the parts of a batch."""
        dealt = _Dealt(job, len(job.parts), end=len(job.parts))
        with self._lock:
            if not self._over:
                # From here on the job is the watching thread's, and that of the thread on which it finishes.
                heapq.heappush(self._queue, (job.order, next(self._serial), dealt))
                self._assign()
                return
        job.lose(PipelineError(self._over))
        self._run(job.finish)

    def _assign(self) -> None:
        """Give parts to the workers that have few (under the lock)."""
        while self._queue:
            dealt = self._queue[0][2]
            k = self._next(dealt)
            if k is None:
                heapq.heappop(self._queue)
                continue
            free = [w for w in self.workers if w.alive and len(w.parts) < _AHEAD]
            if not free:
                if k in dealt.losses:
                    dealt.lost.insert(0, k)
                else:
                    dealt.next -= 1
                return
            worker = min(free, key=lambda w: len(w.parts))
            part = replace(dealt.job.part_for(k, worker.blocks), number=next(self._numbers))
            worker.parts[part.number] = dealt, k
            worker.send_part(part)

    def _next(self, dealt: _Dealt) -> int | None:
        """Take the next part of a job that must be done; None if all were given out."""
        if dealt.lost:
            return dealt.lost.pop(0)
        if dealt.next < dealt.end:
            dealt.next += 1
            return dealt.next - 1
        return None

    def announce(self, number: int, descriptor: int, size: int) -> None:
        """Tell all workers of a block of shared memory."""
        for worker in self.workers:
            if worker.alive:
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
        alive = {w.connection: w for w in (*self.workers, *self._starting) if w.alive}
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
            if self._over or not worker.alive:
                continue
            if worker in self._starting:
                if now - worker.since > START:
                    self._not_joined(worker, f"worker process {worker.number} did not start")
            elif worker.process.exitcode is not None and not worker.connection.poll():
                self._bury(worker)
        self._replace()

    def _guarded(self) -> None:
        """End workers that somebody stopped.

        In a thread of its own: one may be stopped in the middle of a message, for which the watching thread waits.
        """
        while not self._closed.wait(_POLL):
            for worker in self.workers:
                if not (worker.alive and worker.parts and is_stopped(worker.process.pid)):
                    worker.still = 0
                    continue
                # Twice in a row: after Ctrl-Z and fg, this process may be awake before its children.
                worker.still += 1
                if worker.still > 1:
                    worker.was_stopped = True
                    worker.process.kill()  # its pipe ends, which the watching thread notices

    def _receive(self, worker: Worker) -> None:
        try:
            answer: Answer = pickle.loads(worker.connection.recv_bytes())
            packed = () if answer.packed is None else worker.reader.read(answer.packed)
        except (EOFError, OSError):
            self._bury(worker)
            return
        dealt, k = worker.parts[answer.number]
        goes_on = dealt.job.answer(dealt.job.parts[k], answer, packed)
        with self._lock:
            del worker.parts[answer.number]
            if not goes_on:
                self._stop_after(dealt, k)
            dealt.left -= 1
            self._assign()
        self._finish_if_done(dealt)

    def _stop_after(self, dealt: _Dealt, k: int) -> None:
        """Leave out the parts behind one, unless they were given out (under the lock)."""
        end = max(dealt.next, min(dealt.end, k + 1))
        dealt.left -= dealt.end - end
        dealt.end = end

    def _finish_if_done(self, dealt: _Dealt) -> None:
        if dealt.left == 0:
            dealt.left = -1
            self._run(dealt.job.finish)

    def _bury(self, worker: Worker) -> None:
        """End a worker, and have its parts done again; in the watching thread."""
        with self._lock:
            if self._over or not worker.alive:
                return
            worker.alive = False
        if worker.process.exitcode is None:
            worker.process.kill()
        # Only when it is gone may another one write where it wrote.
        worker.process.join(10 * _GRACE)
        message = worker.end_message("")
        self.deaths.append(message)
        hint = ". If memory ran out, use fewer processes or smaller batches"
        with self._lock:
            self._replace()
            parts, worker.parts = list(worker.parts.values()), {}
            lost = []
            nobody = self._nobody()
            for dealt, k in parts:
                part = dealt.job.parts[k]
                dealt.losses[k] = dealt.losses.get(k, 0) + 1
                if dealt.losses[k] < _LOSSES and not nobody:
                    dealt.lost.append(k)
                    dealt.lost.sort()
                    heapq.heappush(self._queue, (dealt.job.order, next(self._serial), dealt))
                    continue
                last = part.first + part.count - 1
                which = f" while it worked on samples {part.first} to {last} of batch {part.order}"
                dealt.job.lose(PipelineError(message + which + hint))
                dealt.left -= 1
                self._stop_after(dealt, -1)
                lost.append(dealt)
            self._assign()
        for dealt in lost:
            self._finish_if_done(dealt)
        if nobody:
            self._end(message + hint)
        worker.close()

    # ------------------------------------------------------------ replacing, in the watching thread

    def _nobody(self) -> bool:
        return not self._starting and not any(each.alive for each in self.workers)

    def _replace(self) -> None:
        """Start workers in the place of those that died, unless too many did lately."""
        now = time.monotonic()
        while self._restarts and now - self._restarts[0] > _LATELY:
            self._restarts.popleft()
        coming = {worker.number for worker in self._starting}
        for worker in self.workers:
            if worker.alive or worker.number in coming or self._over:
                continue
            if len(self._restarts) >= _RESTARTS * len(self.workers):
                return
            self._restarts.append(now)
            with contextlib.suppress(OSError):  # tried again, as long as the number of times allows
                self._starting.append(self._starter.start(worker.number))

    def _join(self, worker: Worker) -> None:
        """Take a worker into service that has said whether it is ready."""
        problem = self._starter.problem(worker)
        with self._lock:
            if self._over:
                return
            if not problem:
                self._starting.remove(worker)
                # From here on it hears of new blocks. Parts of batches that are under way come without their slots.
                self.workers[worker.number] = worker
                self.replaced += 1
                self._assign()
        if problem:
            self._not_joined(worker, problem)
        else:
            self.joined()

    def _not_joined(self, worker: Worker, problem: str) -> None:
        self._starting.remove(worker)
        worker.alive = False
        worker.process.kill()
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
            self._over = reason  # from here on, no worker is given a part
        self._closed.set()
        for worker in self.workers:
            if worker.alive:
                worker.send(None)
        for worker in self._starting:
            worker.process.kill()
        _stop([worker.process for worker in (*self.workers, *self._starting)])
        if threading.current_thread() is not self._watch:
            self._watch.join(4 * _POLL)
        self._starter.close()
        self.joined = _nothing  # what it belongs to refers to the pool
        left = {id(d): d for _, _, d in self._queue}
        left.update({id(d): d for w in self.workers for d, _ in w.parts.values()})
        for dealt in left.values():
            if dealt.left >= 0:
                dealt.left = -1
                dealt.job.lose(PipelineError(reason))
                self._run(dealt.job.finish)
        for worker in (*self.workers, *self._starting):
            if worker.alive:
                worker.alive = False
                worker.close()


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
