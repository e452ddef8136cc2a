"""Start the worker processes of a pipeline, and replacements for workers that die.

A *server* is a process that forks workers. It is either a fork of a pipeline's main process, or a new interpreter.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from torchdali import pickling
from torchdali.execute.affinity import cores_of_processes
from torchdali.execute.bad_samples import BadSamples
from torchdali.execute.batch import ReaderState, Settings
from torchdali.execute.process_state import ProcessId
from torchdali.execute.shared_memory import anonymous_file
from torchdali.execute.workers.messages import Ready, Refused
from torchdali.execute.workers.placing import Placement
from torchdali.execute.workers.pool import START
from torchdali.execute.workers.replica import ReplicaTask, serve
from torchdali.execute.workers.sent_plan import SentPlan, new_task, readers_of
from torchdali.execute.workers.served import LOST
from torchdali.execute.workers.server import ForkRequest, Server
from torchdali.execute.workers.server import main as serve_requests
from torchdali.execute.workers.worker import NotStarted, Worker
from torchdali.graph.nodes import Node
from torchdali.graph.plan import Plan

__all__ = ["Starter", "main", "read_first_message", "sizes_of"]

_POLL = 0.5  # seconds between checks of the server


class Starter:
    """Starts the workers of one pipeline.

    Args:
        placement: The number of workers, and the stages that they run.
        planned: The plan.
        settings: Settings of the pipeline.
        readers: States of the readers, by node.
        bad_samples: The policy for samples that fail.

    Attributes:
        patience: Seconds within which a worker must start.

    Raises:
        OSError: No process can be started.
        MemoryError: The plan doesn't fit into memory.
    """

    patience = START

    def __init__(
        self,
        placement: Placement,
        planned: Plan,
        settings: Settings,
        readers: Mapping[Node, ReaderState],
        bad_samples: BadSamples,
    ) -> None:
        self.plan = planned
        datasets = {n: readers[n].dataset for n in readers_of(planned, placement.stages)}
        self._sizes = sizes_of(planned, placement.stages, readers)
        self._requests = _fork_requests(placement, settings)
        self._file: int | None = None
        if placement.forked:
            create_task = partial(new_task, planned, placement.stages, datasets, settings, bad_samples)
            self._server = Server.fork(partial(_run, create_task))
        else:
            sent = pickling.dumps(SentPlan.of(planned, placement.stages, settings, bad_samples))
            data = pickle.dumps((_ProcessContext.current(), sent))
            self._file = anonymous_file(len(data))
            with open(self._file, "wb", closefd=False) as file:
                file.write(data)
            self._server = Server.share()

    def start(self, number: int) -> Worker:
        """Request a worker from the server. This method doesn't wait until the worker is ready.

        Raises:
            OSError: The worker can't be started.
        """
        if self._file is not None and not self._server.alive:
            self._server.release()
            self._server = Server.share()
        return Worker(*self._server.start(self._requests[number], self._file), number)

    def check_server(self) -> None:
        """Check the server, and replace it if necessary."""
        self._server.check_server()

    def start_all(self) -> list[Worker]:
        """Start all workers, and wait until they are ready.

        Raises:
            NotStarted: A worker can't be started. The other workers have been ended.
        """
        workers: list[Worker] = []
        try:
            workers += map(self.start, range(len(self._requests)))
            deadline = time.monotonic() + START
            for worker in workers:
                self._wait_for(worker, deadline)
        except (OSError, NotStarted) as error:
            for worker in workers:
                worker.process.kill()
                worker.process.join(1.0)
                worker.close()
            self.close()
            if isinstance(error, NotStarted):
                raise
            raise NotStarted(f"a process could not be started: {error}") from None
        return workers

    def _wait_for(self, worker: Worker, deadline: float) -> None:
        while not worker.connection.poll(_POLL):
            if time.monotonic() > deadline:
                raise NotStarted(f"worker process {worker.number} was not ready after {START:g} s")
            self.check_server()
        self.is_ready(worker)

    def is_ready(self, worker: Worker) -> bool:
        """Read the first message of a worker, and return True if the worker is ready.

        Raises:
            NotStarted: The worker can't run the plan, or has ended.
        """
        try:
            read_first_message(worker, self._sizes)
        except NotStarted as error:
            reason = self._server.end_message() if worker.process.exitcode == LOST else ""
            if not reason:
                raise
            raise NotStarted(f"{error}: {reason}") from None
        return True

    def close(self) -> None:
        """Stop using the server, and close the file with the plan."""
        self._server.release()
        if self._file is not None:
            os.close(self._file)
            self._file = None


def sizes_of(planned: Plan, stages: int, readers: Mapping[Node, ReaderState]) -> dict[int, int]:
    """Return the number of records for those readers that run in the first `stages` stages.

    The keys are the readers' indices in the graph.
    """
    return {planned.index[n]: len(readers[n].dataset) for n in readers_of(planned, stages)}


def read_first_message(worker: Worker, sizes: Mapping[int, int]) -> None:
    """Read a worker's first message, and check that the worker is ready.

    Args:
        worker: The worker.
        sizes: Number of records that each reader has in this process. The keys are the readers' indices in the graph.

    Raises:
        NotStarted: The worker isn't ready, or its readers have fewer or more records than the readers in this process.
    """
    message: Any = None
    with contextlib.suppress(EOFError, OSError):
        message = pickle.loads(worker.connection.recv_bytes())
    if isinstance(message, Refused):
        raise NotStarted(f"a process could not be started: {message.reason}")
    if not isinstance(message, Ready):
        raise NotStarted(worker.end_message(" while it started"))
    if dict(message.sizes) != sizes:
        raise NotStarted(
            f"a worker process must find as many records per reader as this process, {sizes}, got {message.sizes}"
        )


def _fork_requests(placement: Placement, settings: Settings) -> list[ForkRequest]:
    """Create one request per worker. Divide the threads among the workers, and on NUMA machines also the cores."""
    threads, first = [], 0
    for number in range(placement.processes):
        threads.append(max(1, (settings.num_threads - first) // (placement.processes - number)))
        first += threads[-1]
    cores = [()] * len(threads) if settings.start_thread else cores_of_processes(threads)
    return [
        ForkRequest(count, sum(threads[:number]), tuple(cores[number]), not placement.forked)
        for number, count in enumerate(threads)
    ]


# ---------------------------------------------------------------- in the worker


def _run(
    create_task: Callable[[ForkRequest], ReplicaTask],
    connection: Any,
    request: ForkRequest,
    file: int | None,
    main_process: ProcessId,
) -> None:
    """Run a worker in a process that the server has forked.

    The server is a fork of the process of one pipeline, and has inherited this pipeline's plan. If the worker belongs
    to the same pipeline, `create_task` creates its task from the inherited plan. Other pipelines may use the same
    server. Then the worker reads its plan from a file.
    """
    if request.is_sent:
        _run_sent(connection, request, file, main_process)
    else:
        serve(connection, partial(create_task, request), main_process)


def _run_sent(connection: Any, request: ForkRequest, file: int | None, main_process: ProcessId) -> None:
    """Run a worker that reads its plan from a file."""
    assert file is not None

    def create_task() -> ReplicaTask:
        with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as data:
            context, text = pickle.loads(data[:])
        os.close(file)
        context.apply()
        sent: SentPlan = pickling.loads(text)
        return sent.task(request)

    serve(connection, create_task, main_process)


def main(descriptor: int, main_process: tuple[int, bytes]) -> None:
    """Run a server in a new interpreter.

    Args:
        descriptor: Descriptor of the socket for requests.
        main_process: Identity of the main process.
    """
    serve_requests(socket.socket(fileno=descriptor), _run_sent, ProcessId(*main_process))


# ---------------------------------------------------------------- the main process's state


@dataclass(frozen=True)
class _ProcessContext:
    """The state of the main process on which relative paths and imports depend."""

    path: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]

    @classmethod
    def current(cls) -> _ProcessContext:
        return cls(tuple(sys.path), os.getcwd(), dict(os.environ))

    def apply(self) -> None:
        sys.path[:] = self.path
        os.chdir(self.folder)
        if dict(os.environ) != self.environment:
            os.environ.clear()
            os.environ.update(self.environment)
