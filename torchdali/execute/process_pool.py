"""A pool of worker processes that make the batches of parallel sources.

The contract:

- A task goes to a process that has nothing to do; the tasks of a stateful source go to one process, in order.
- An exception of the user's code belongs to the task's future, with its class if it can be pickled, and with
  the worker's traceback as its cause. The worker goes on.
- A process that a signal stopped in the middle of a task, and that does not go on for some seconds, is killed.
- When a process dies, every future fails with an error that says which and how, and so does every later
  task; the other processes end.
- Nothing waits without an owner: one thread watches all pipes and processes; it notices a death at once. Another one
  kills what stands still, for which the first may wait in the middle of an answer.
- `close` may come at any time, from any thread, and again. Processes that are busy are terminated, then
  killed. A worker whose parent has vanished ends within a second.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import connection as mp_connection
from typing import Any, Literal

import torch
from torch.utils.data._utils import worker as torch_worker

from torchdali import pickling
from torchdali.batch_source import Made, Source, SourceSettings
from torchdali.errors import self_explanatory, stripped
from torchdali.execute.shared_memory import Packed, Reader, Writer
from torchdali.execute.stopped import is_stopped
from torchdali.user_random import seed_worker

__all__ = ["ProcessPool", "StartMethod", "open_dataset", "open_sources"]

StartMethod = Literal["fork", "spawn", "forkserver"]
Work = Callable[[Any], Made]
_GRACE = 0.5  # seconds for a process to end by itself, and again after SIGTERM
_POLL = 1.0  # seconds between looks at what cannot be waited for
_STILL = 5  # looks in a row at which a process was stopped: after Ctrl-Z and fg, it may wake late


def open_sources(
    sources: Mapping[int, Source], batch_size: int, count: int, start_method: StartMethod, pickler: Any = None
) -> None:
    """Open sources, after starting worker processes if any of them has work for some.

    Args:
        sources: By the seed for random numbers of their code, see `user_random`.
        count: Number of processes.
        start_method: See `StartMethod`.
        pickler: What pickles the sources' work where processes are not forked: an object with ``dumps`` and
            ``loads``, or a tuple of it and one or two dictionaries of arguments for them.

    Raises:
        RuntimeError: there is work, and no process to do it. ValueError: unknown start method.
    """
    parallel = [source for source in sources.values() if source.work is not None]
    if parallel and not (isinstance(count, int) and count > 0):
        raise RuntimeError(
            f"a source has parallel=True, but py_num_workers is {count!r}: "
            "The external source cannot run in parallel mode without Python workers pool"
        )
    workers = ProcessPool(parallel, count, start_method, pickler) if parallel else None
    for seed, source in sources.items():
        handle = None
        if workers is not None and source.work is not None:
            handle = SourceHandle(workers, parallel.index(source), seed)
        source.open(SourceSettings(batch_size, handle))


def open_dataset(dataset: Any, seed: int, start_method: StartMethod, pickler: Any = None) -> None:
    """Start the worker processes of a reader's data set, if it has `work` for some.

    Args:
        dataset: With `work`, `stateful`, `workers` (their number) and ``open(handle)``, or without `work`.
        seed: For random numbers of its code, see `user_random`.
        start_method, pickler: See `open_sources`.
    """
    if getattr(dataset, "work", None) is not None:
        dataset.open(SourceHandle(ProcessPool([dataset], dataset.workers, start_method, pickler), 0, seed))


class SourceHandle:
    """Handle of the pool for one source.

    Attributes:
        seed: For random numbers of the source's code, see `user_random`.
    """

    def __init__(self, workers: ProcessPool, source: int, seed: int) -> None:
        self._workers, self._source, self.seed = workers, source, seed
        self.count = workers.count

    def submit(self, request: Any) -> Future[Made]:
        """Let a process run the source's work on a request."""
        return self._workers.submit(self._source, request, self.seed)

    def close(self) -> None:
        """End all processes."""
        self._workers.close()


class ProcessPool:
    """A fixed set of processes; dropping the last reference ends them too.

    Args:
        sources: Each with `work`.
        count, start_method, pickler: See `open_sources`.
    """

    def __init__(self, sources: Sequence[Any], count: int, start_method: StartMethod, pickler: Any = None) -> None:
        stateful = [source.stateful for source in sources]
        self.count = count if not all(stateful) else min(count, len(sources))
        context = multiprocessing.get_context(start_method)
        work = [source.work for source in sources]
        payload = work if start_method == "fork" else _pickled(work, pickler, start_method)
        self._state = _PoolState([_start(context, i, self.count, payload) for i in range(self.count)], stateful)
        self.close = weakref.finalize(self, self._state.close)

    def submit(self, source: int, request: Any, seed: int) -> Future[Made]:
        """Queue a task: a process runs the work of a source on a request."""
        return self._state.submit(_Task(source, request, seed))


@dataclass(eq=False)
class _Task:
    source: int
    request: Any
    seed: int
    future: Future[Made] = field(default_factory=Future)


class _Worker:
    """A process, seen from the parent."""

    def __init__(self, process: Any, connection: Any, number: int) -> None:
        self.process, self.connection, self.number = process, connection, number
        self.reader = Reader(connection.fileno())
        self.own: deque[_Task] = deque()
        self.task: _Task | None = None
        self.still, self.was_stopped = 0, False

    def look(self) -> None:
        """Kill the process if it has stood still for long; its pipe ends, which the watching thread notices."""
        stands = self.task is not None and is_stopped(self.process.pid)
        self.still = self.still + 1 if stands else 0
        if self.still >= _STILL:
            self.was_stopped = True
            self.process.kill()

    def give(self, task: _Task) -> None:
        """Send a task; the process must have none."""
        self.task = task
        with contextlib.suppress(OSError):  # it is dying, which the watch will notice
            # Hand-over to the process. The numbers of blocks that came back go along: the worker alone decides what
            # to write where, so no block is written while the parent reads it.
            self.connection.send((task.source, task.request, task.seed, self.reader.returned()))

    def take(self) -> tuple[_Task, Made | BaseException]:
        """Receive the result of the task; EOFError when the process died, and the task remains."""
        # In the watching thread, which alone reads from the pipes.
        answer, error = self.connection.recv()
        result: Made | BaseException
        if error is not None:
            result = _restored(*error)
        else:
            packed, place = answer
            result = (None if packed is None else self.reader.read(packed)), place
        task, self.task = self.task, None
        assert task is not None
        return task, result

    def exit_message(self) -> str:
        """Describe how the process died."""
        self.process.join(_GRACE)
        code = self.process.exitcode
        how = "closed its connection" if code is None else f"exited with code {code}"
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                how = f"was killed by {signal.Signals(-code).name}"
        if self.was_stopped:
            how = f"was stopped (SIGSTOP or Ctrl-Z), did not go on for {_STILL * _POLL:g} s and was killed"
        while_ = "" if self.task is None else f" while it worked on {self.task.request}"
        return (
            f"worker process {self.number} (pid {self.process.pid}) of the parallel external sources or data sets "
            f"{how}{while_}{'' if self.was_stopped else _MEMORY}"
        )


_MEMORY = ". If memory ran out, use fewer workers or smaller batches"


class _PoolState:
    """State that the watching thread and `ProcessPool` share."""

    def __init__(self, workers: Sequence[_Worker], stateful: Sequence[bool]) -> None:
        self._workers = workers
        self._queue: deque[_Task] = deque()
        alone = (source for source, each in enumerate(stateful) if each)
        self._owner = {source: workers[i % len(workers)] for i, source in enumerate(alone)}
        self._lock = threading.Lock()
        self._over = ""
        self._process = os.getpid()
        self._closed = threading.Event()
        self._watch = threading.Thread(target=self._watched, name="torchdali-workers", daemon=True)
        self._watch.start()
        self._guard = threading.Thread(target=self._guarded, name="torchdali-guard", daemon=True)
        self._guard.start()

    def submit(self, task: _Task) -> Future[Made]:
        # In the scheduler thread, or the user's. The lock keeps it apart from the watching thread, which gives tasks to
        # processes that have become idle.
        with self._lock:
            if self._over:
                task.future.set_exception(RuntimeError(self._over))
            else:
                owner = self._owner.get(task.source)
                (self._queue if owner is None else owner.own).append(task)
                self._assign()
        return task.future

    def _assign(self) -> None:
        """Give tasks to the processes that have none (under the lock)."""
        for worker in self._workers:
            while not self._over and worker.task is None and (worker.own or self._queue):
                task = (worker.own or self._queue).popleft()
                if task.future.set_running_or_notify_cancel():
                    worker.give(task)

    def _watched(self) -> None:
        """Deliver results, until a process dies or the pool is closed."""
        try:
            while not self._over:
                self._look()
        except BaseException as error:
            self._end(f"the thread that watches the worker processes failed: {error!r}")

    def _guarded(self) -> None:
        while not self._closed.wait(_POLL):
            for worker in self._workers:
                worker.look()

    def _look(self) -> None:
        pipes = {worker.connection: worker for worker in self._workers}
        ends = [worker.process.sentinel for worker in self._workers]
        ready = mp_connection.wait([*pipes, *ends], _POLL)
        for worker in (pipes[each] for each in ready if each in pipes):
            self._receive(worker)
        for worker in self._workers:
            # A pipe may stay open although its process is dead: in a child of the process.
            if not self._over and not worker.process.is_alive() and not worker.connection.poll():
                self._end(worker.exit_message())

    def _receive(self, worker: _Worker) -> None:
        try:
            task, result = worker.take()
        except (EOFError, ConnectionError):
            self._end(self._over or worker.exit_message())
            return
        with self._lock:
            self._assign()
        # Outside of the lock, and after the process has its next task: this wakes the thread that waits for the future,
        # which may submit another task at once.
        if isinstance(result, BaseException):
            task.future.set_exception(result)
        else:
            task.future.set_result(result)

    def close(self) -> None:
        """End the processes."""
        if os.getpid() == self._process:  # not in a forked child that drops its copy of all this
            self._end("the pipeline was closed while a parallel source worked")

    def _end(self, reason: str) -> None:
        # In the thread that closes the pool, or in the watching one that found a process dead: the first one ends it.
        with self._lock:
            if self._over:
                return
            self._over = reason  # from here on, no process is given a task
        self._closed.set()
        _stop(self._workers)
        if threading.current_thread() is not self._watch:
            self._watch.join(2 * _POLL)  # its pipes end, and so does it
        tasks = [*self._queue, *(task for worker in self._workers for task in worker.own)]
        left = [task for task in tasks if task.future.set_running_or_notify_cancel()]
        # No result can come any more: the processes are gone, and the watching thread has ended, or is this one.
        # Whoever waits for one of these futures gets the reason.
        for task in [*left, *(worker.task for worker in self._workers)]:
            if task is not None:
                task.future.set_exception(RuntimeError(reason))
        for worker in self._workers:
            worker.connection.close()
            worker.reader.close()


def _stop(workers: Sequence[_Worker]) -> None:
    """End processes: idle ones by a message, busy ones by SIGTERM, deaf ones by SIGKILL."""
    for worker in workers:
        if worker.task is not None:
            worker.process.terminate()
        else:
            with contextlib.suppress(OSError):
                worker.connection.send(None)
    for stop in ("terminate", "kill", "join"):
        deadline = time.monotonic() + _GRACE
        for worker in workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.exitcode is None:
                getattr(worker.process, stop)()


def _start(context: Any, number: int, count: int, payload: Any) -> _Worker:
    ours, theirs = context.Pipe(duplex=True)
    arguments, name = (theirs, payload, number, count), f"torchdali-worker-{number}"
    process = context.Process(target=_serve, args=arguments, name=name, daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours, number)


def _pickled(work: Sequence[Work | None], pickler: Any, start_method: str) -> tuple[bytes, Callable[[bytes], Any]]:
    """Return what a new process needs to make the work anew: the pickle, and what loads it.

    Raises:
        TypeError: a source, or something that it holds, cannot be pickled.
    """
    if pickler is None:
        try:
            return pickling.dumps(work), pickling.loads
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise self_explanatory(
                TypeError(
                    "a source with parallel=True, or something that it holds, cannot be sent to processes started "
                    f"by {start_method!r}: {error}. Make it in the first call, leave it out in __getstate__, or "
                    'use py_start_method="fork"'
                )
            ) from error
    tool, *options = pickler if isinstance(pickler, tuple) else (pickler,)
    dumping, loading = (*(o or {} for o in options), {}, {})[:2]
    return tool.dumps(work, **dumping), partial(tool.loads, **loading)


# ---------------------------------------------------------------- errors


class WorkerTraceback(Exception):
    """The traceback of an exception in a worker process; the cause of the exception in this one."""

    def __init__(self, text: str) -> None:
        super().__init__(f"in a worker process\n\n{text}")


def _described(error: Exception) -> tuple[bytes | None, str, str]:
    """Return what is left of an exception on its way to the parent: its pickle, message and traceback."""
    data = None
    with contextlib.suppress(Exception):
        data = pickling.dumps(error)
        pickling.loads(data)
    lines = traceback.format_exception(type(error), stripped(error), error.__traceback__)
    return data, f"{type(error).__name__}: {error}", "".join(lines)


def _restored(data: bytes | None, message: str, text: str) -> Exception:
    error: Exception = RuntimeError(f"in a worker process of a parallel external source: {message}")
    with contextlib.suppress(Exception):
        loaded = error if data is None else pickling.loads(data)
        error = loaded if isinstance(loaded, Exception) else error
    error.__cause__ = WorkerTraceback(text)
    return self_explanatory(error)


# ---------------------------------------------------------------- in a worker process


def _serve(connection: Any, payload: Any, number: int, count: int) -> None:
    """Work on one task after another, until the parent says so or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    work = _loaded(payload)
    _introduce_worker(work, number, count)
    writer = Writer(connection.fileno())
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while (message := connection.recv()) is not None:
            source, request, seed, returned = message
            seed_worker(seed)
            writer.free(returned)
            _answer(connection, writer, work, source, request)


def _introduce_worker(work: Sequence[Work] | Exception, number: int, count: int) -> None:
    """Let `torch.utils.data.get_worker_info` tell the user's code which of how many processes it is in."""
    data_sets: list[Any] = [] if isinstance(work, Exception) else [getattr(each, "dataset", None) for each in work]
    facts: dict[str, Any] = {"id": number, "num_workers": count, "seed": torch.initial_seed()}
    facts["dataset"] = data_sets[0] if data_sets else None
    torch_worker._worker_info = torch_worker.WorkerInfo(**facts)


def _end_with_parent(parent: int) -> None:
    """End this process when its parent is gone.

    The pipe does not tell: siblings that were forked later hold its other end open. And the user's code may
    never return to look at it.
    """
    while os.getppid() == parent:
        time.sleep(_POLL)
    os._exit(1)


def _loaded(payload: Any) -> Sequence[Work] | Exception:
    work: Sequence[Work] = payload  # forked: the callables themselves
    if isinstance(payload, tuple):
        data, loads = payload
        try:
            work = loads(data)
        except Exception as error:
            return error
    return work


def _answer(connection: Any, writer: Writer, work: Sequence[Work] | Exception, source: int, request: Any) -> None:
    packed: Packed | None = None
    try:
        if isinstance(work, Exception):
            raise work
        batches, place = work[source](request)
        packed = None if batches is None else writer.write(batches)
        answer: Any = (packed, place), None
    except Exception as error:
        answer = None, _described(error)
    # Hand-over to the parent. It receives the two in this order, and maps the block before it looks into it.
    connection.send(answer)
    if packed is not None and packed.fresh:
        writer.send_descriptor()
