"""Worker processes that run the user's parallel sources and parallel datasets.

A source or dataset sends *requests*, and the pool runs each request in an idle process. If a source has a state, the
same process runs all requests of this source, in order. If the user's code raises an exception, the request's future
raises the same exception in the main process, or a RuntimeError if the exception can't be pickled. The worker process
continues.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.util
import os
import pickle
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch.utils.data._utils import worker as torch_worker

from torchdali import pickling
from torchdali.errors import self_explanatory
from torchdali.execute.process_state import ProcessId, wait_for_other_threads
from torchdali.execute.workers.blocks import Views
from torchdali.execute.workers.channel import Channel, prepare_worker
from torchdali.execute.workers.messages import Failure, SentBatch, read_failure, receive, send, write_failure
from torchdali.execute.workers.pool import WorkerPool
from torchdali.execute.workers.served import ForkserverProcess
from torchdali.execute.workers.worker import Worker
from torchdali.reading.sources import BatchSource, SourceSettings, SourceWorkers, Work, WorkResult
from torchdali.reading.user_random import seed_worker

__all__ = ["ProcessPool", "StartMethod", "open_processes", "open_sources"]

StartMethod = Literal["fork", "spawn", "forkserver"]


def open_sources(
    sources: Mapping[int, BatchSource], batch_size: int, count: int, start_method: StartMethod, pickler: Any = None
) -> None:
    """Open all sources. If a source is parallel, start worker processes first.

    Args:
        sources: The sources. Each key is the seed for random numbers in the source's code.
        batch_size: Number of samples of a batch.
        count: Number of processes.
        start_method: See `StartMethod`.
        pickler: An object with the functions ``dumps`` and ``loads``. They pickle the sources' functions if processes
            are not forked. Or a tuple of this object and one or two dictionaries with arguments for ``dumps`` and
            ``loads``. None for torchdali's own pickling.

    Raises:
        RuntimeError: A source is parallel, but `count` isn't positive.
        ValueError: The start method is unknown.
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


def open_processes(dataset: Any, seed: int, start_method: StartMethod, pickler: Any = None) -> SourceWorkers | None:
    """Start the worker processes that read a dataset's records; return None if the dataset doesn't use processes.

    Args:
        dataset: Dataset of a reader.
        seed: Seed for random numbers in the dataset's code.
        start_method: See `StartMethod`.
        pickler: See `open_sources`.
    """

    def start(work: Work, count: int) -> SourceWorkers:
        return SourceHandle(ProcessPool([_DatasetWork(work)], count, start_method, pickler), 0, seed)

    started: SourceWorkers | None = dataset.start_processes(start) if hasattr(dataset, "start_processes") else None
    return started


class _DatasetWork(NamedTuple):
    """The function that a dataset's processes run. `ProcessPool` uses this object like a source."""

    work: Work
    stateful: bool = False


class SourceHandle:
    """A source's access to the pool of processes.

    Attributes:
        seed: Seed for random numbers in the source's code.
    """

    def __init__(self, workers: ProcessPool, source: int, seed: int) -> None:
        self._workers, self._source, self.seed = workers, source, seed
        self.count = workers.count

    def submit(self, request: Any) -> Future[WorkResult]:
        """Queue a request: an argument with which a process calls the source's function."""
        return self._workers.submit(self._source, request, self.seed)

    def close(self) -> None:
        """End all processes."""
        self._workers.close()


class ProcessPool:
    """A fixed number of processes. They end when the last reference to the pool is dropped.

    Args:
        sources: Objects with the attributes `work` and `stateful`.
        count: Number of processes.
        start_method: See `StartMethod`.
        pickler: See `open_sources`.
    """

    def __init__(self, sources: Sequence[Any], count: int, start_method: StartMethod, pickler: Any = None) -> None:
        stateful = [source.stateful for source in sources]
        self.count = count if not all(stateful) else min(count, len(sources))
        stateful_sources = (source for source, each in enumerate(stateful) if each)
        self._owner = {source: i % self.count for i, source in enumerate(stateful_sources)}
        context = multiprocessing.get_context(start_method)
        work = [source.work for source in sources]
        if start_method == "fork":
            wait_for_other_threads()
        payload = work if start_method == "fork" else _pickle(work, pickler, start_method)
        started = [_start(context, start_method, i, self.count, payload) for i in range(self.count)]
        self._pool = WorkerPool(started, _call, None, 1)
        # At the end of the program, multiprocessing waits for its children. A suspended child would never end, so the
        # pool must be closed first.
        self.close = multiprocessing.util.Finalize(self, self._pool.close, exitpriority=1)

    def submit(self, source: int, request: Any, seed: int) -> Future[WorkResult]:
        """Queue a request: an argument with which a process calls the function of the source with index `source`."""
        task = _PoolTask(source, request, seed, self._owner.get(source))
        self._pool.submit(task)
        return task.future


def _call(function: Callable[[], None]) -> None:
    function()


class _Request(NamedTuple):
    """The message that sends a request to a process."""

    number: int
    source: int
    request: Any
    seed: int
    returned: tuple[int, ...]


class _Reply(NamedTuple):
    """The message with the result of a request.

    Attributes:
        number: Number of the request.
        batches: The batches; None at the end of the data.
        state: The source's state after the batches.
        error: The exception that the user's code raised; None if it raised none.
    """

    number: int
    batches: tuple[SentBatch, ...] | None
    state: Mapping[str, Any]
    error: Failure | None = None


@dataclass(eq=False)
class _PoolTask:
    """A request for a process. It has the methods of `WorkerJob`."""

    source: int
    request: Any
    seed: int
    owner: int | None
    future: Future[WorkResult] = field(default_factory=Future)
    order: int = 0
    losses: int = 0
    result: WorkResult | Exception | None = None

    @property
    def title(self) -> str:
        return str(self.request)

    def begin(self) -> bool:
        return self.future.set_running_or_notify_cancel()

    def message(self, number: int, blocks: set[int], returned: tuple[int, ...]) -> _Request:
        # From `submit` to `finish`, only the pool's threads access the task. Other threads access only its future.
        return _Request(number=number, source=self.source, request=self.request, seed=self.seed, returned=returned)

    def set_reply(self, result: _Reply, views: Views) -> None:
        if result.error is not None:
            self.result = read_failure(result.error, "in a worker process of a parallel external source: ")
            return
        blocks = [position.block for batch in result.batches or () for position in batch.positions()]
        tensor = views.lend(blocks)
        batches = None if result.batches is None else tuple(receive(batch, tensor) for batch in result.batches)
        self.result = batches, result.state

    def fail(self, error: Exception) -> None:
        self.result = RuntimeError(str(error))

    def finish(self) -> None:
        if not (self.future.running() or self.begin()):
            return  # cancelled
        # From here on, the result belongs to the thread that waits for the future.
        result, self.result = self.result, None
        if isinstance(result, Exception):
            self.future.set_exception(result)
        elif result is not None:
            self.future.set_result(result)


def _start(context: Any, start_method: StartMethod, number: int, count: int, payload: Any) -> Worker:
    ours, theirs = context.Pipe(duplex=True)
    arguments, name = (theirs, payload, number, count, ProcessId.of(os.getpid())), f"torchdali-worker-{number}"
    process = context.Process(target=_serve, args=arguments, name=name, daemon=True)
    process.start()
    theirs.close()
    seen = ForkserverProcess(process) if start_method == "forkserver" else process
    return Worker(seen, ours, number, "the parallel external sources or datasets", _hint(start_method))


def _hint(start_method: StartMethod) -> str:
    """Return the likely reason if a process ends early; "" if the process was forked."""
    if start_method == "fork":
        return ""
    first = f"With py_start_method={start_method!r} each process imports the script first; the import's error is above"
    try:
        script = Path(sys.modules["__main__"].__file__ or "").read_text()
    except (AttributeError, OSError, ValueError):
        return first
    if re.search(r"__name__\s*==|==\s*__name__", script):
        return first
    return (
        f"With py_start_method={start_method!r} each process imports the script, which starts the pipeline again: "
        'put the code that builds and runs the pipeline under `if __name__ == "__main__":`'
    )


def _pickle(work: Sequence[Work | None], pickler: Any, start_method: str) -> tuple[bytes, Callable[[bytes], Any]]:
    """Pickle the sources' functions for a new process. Return the pickled bytes, and the function that unpickles them.

    Raises:
        TypeError: A source, or an object to which it refers, can't be pickled.
    """
    if pickler is None:
        try:
            return pickling.dumps(work), pickling.loads
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise self_explanatory(
                TypeError(
                    "a source with parallel=True, or something that it holds, cannot be sent to processes started "
                    f"by {start_method!r}: {error}. Create it in the first call, exclude it in __getstate__, or pass "
                    'py_start_method="fork"'
                )
            ) from error
    tool, *options = pickler if isinstance(pickler, tuple) else (pickler,)
    dumping, loading = (*(o or {} for o in options), {}, {})[:2]
    return tool.dumps(work, **dumping), partial(tool.loads, **loading)


# ---------------------------------------------------------------- in a worker process


def _serve(connection: Any, payload: Any, number: int, count: int, main_process: ProcessId) -> None:
    """Run one request after another, until the main process closes the connection or ends."""
    prepare_worker(main_process)
    work = _load(payload)
    _set_worker_info(work, number, count)
    channel = Channel(connection)
    for request in channel.messages():
        channel.free(request.returned)
        seed_worker(request.seed)
        _handle_request(channel, work, request)


def _set_worker_info(work: Sequence[Work] | Exception, number: int, count: int) -> None:
    """Set the result of `torch.utils.data.get_worker_info` in this process, for the user's code."""
    datasets: list[Any] = [] if isinstance(work, Exception) else [getattr(each, "dataset", None) for each in work]
    info: dict[str, Any] = {"id": number, "num_workers": count, "seed": torch.initial_seed()}
    info["dataset"] = datasets[0] if datasets else None
    torch_worker._worker_info = torch_worker.WorkerInfo(**info)


def _load(payload: Any) -> Sequence[Work] | Exception:
    work: Sequence[Work] = payload  # in a forked process, the functions themselves
    if isinstance(payload, tuple):
        data, loads = payload
        try:
            work = loads(data)
        except Exception as error:
            return error
    return work


def _handle_request(channel: Channel, work: Sequence[Work] | Exception, request: _Request) -> None:
    shared_tensors: list[torch.Tensor] = []
    try:
        if isinstance(work, Exception):
            raise work
        batches, state = work[request.source](request.request)
        values = None if batches is None else tuple(send(batch, channel.buffers, shared_tensors) for batch in batches)
        channel.send(_Reply(request.number, values, state), values or (), shared_tensors)
    except Exception as error:
        channel.send(_Reply(request.number, None, {}, write_failure(error)))
