"""Start the workers of a pipeline, at first and in place of those that die."""

from __future__ import annotations

import contextlib
import importlib
import mmap
import os
import pickle
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torchdali import pickling
from torchdali.execute.affinity import cores_of_processes
from torchdali.execute.bad_samples import BadSamples, Policy
from torchdali.execute.batch import Reader, Settings
from torchdali.execute.shared_memory import anonymous_file
from torchdali.execute.workers.messages import Ready, Refused
from torchdali.execute.workers.placing import Placing
from torchdali.execute.workers.pool import START, Worker
from torchdali.execute.workers.replica import Task, serve
from torchdali.execute.workers.server import Order, Server
from torchdali.execute.workers.server import main as serve_orders
from torchdali.graph import Condition, DataNode, Graph, Node, SourceLine
from torchdali.plan import Plan, plan
from torchdali.registry import registry

__all__ = ["Starter", "main"]


class Starter:
    """Starts workers of one pipeline.

    Args:
        placing: How many there are, and what runs there.
        planned: The plan.
        settings: Number of threads, and what a thread begins with.
        readers: Per reader node.
        bad_samples: What to do when a sample fails.

    Raises:
        OSError: no process can be started. MemoryError: there is no room for the plan.
    """

    def __init__(
        self,
        placing: Placing,
        planned: Plan,
        settings: Settings,
        readers: Mapping[Node, Reader],
        bad_samples: BadSamples,
    ) -> None:
        self.plan = planned
        datasets = {n: readers[n].dataset for n in _readers(planned, placing.stages)}
        self._sizes = {planned.index[n]: len(d) for n, d in datasets.items()}
        # The device is the business of the user's process; so is the budget of bad samples, which all share.
        begin = replace(settings, device=None, synchronous=False), bad_samples.policy, bad_samples.budget
        self._orders = _orders(placing, settings)
        self._file: int | None = None
        if placing.forked:
            make = partial(_task, planned, placing.stages, datasets, begin)
            self._server = Server.forked(partial(_run, make))
        else:
            sent = pickling.dumps(_Sent.of(planned, placing.stages, begin))
            data = pickle.dumps((_Surroundings.here(), sent))
            self._file = anonymous_file(len(data))
            with open(self._file, "wb", closefd=False) as file:
                file.write(data)
            self._server = Server.shared()

    def start(self, number: int) -> Worker:
        """Have a worker started, and return it before it is ready.

        Raises:
            OSError: it cannot be.
        """
        if self._file is not None and not self._server.alive:
            self._server.release()
            self._server = Server.shared()
        return Worker(*self._server.start(self._orders[number], self._file), number)

    def start_all(self) -> list[Worker] | str:
        """Start all workers and wait until they are ready; or end them, and return why they are not."""
        workers: list[Worker] = []
        try:
            workers += map(self.start, range(len(self._orders)))
            deadline = time.monotonic() + START
            why = next(filter(None, (self._waited_for(w, deadline) for w in workers)), "")
        except OSError as error:
            why = f"a process could not be started: {error}"
        if not why:
            return workers
        for worker in workers:
            worker.process.kill()
            worker.process.join(1.0)
            worker.close()
        self.close()
        return why

    def _waited_for(self, worker: Worker, deadline: float) -> str:
        if not worker.connection.poll(max(0.0, deadline - time.monotonic())):
            return f"worker process {worker.number} was not ready after {START:g} s"
        return self.problem(worker)

    def problem(self, worker: Worker) -> str:
        """Read the first message of a worker; return why it is not ready, empty if it is."""
        message: Any = None
        with contextlib.suppress(EOFError, OSError):
            message = pickle.loads(worker.connection.recv_bytes())
        if isinstance(message, Refused):
            return f"a process could not be started: {message.reason}"
        if not isinstance(message, Ready):
            return worker.end_message(" while it started")
        if dict(message.sizes) != self._sizes:
            return f"a process finds other numbers of records ({message.sizes}) than this one ({self._sizes})"
        return ""

    def close(self) -> None:
        """Let go of the server."""
        self._server.release()
        if self._file is not None:
            os.close(self._file)
            self._file = None


Begin = tuple[Settings, Policy, "int | None"]
"""Settings of a replica, and what to do when a sample fails."""


def _readers(planned: Plan, stages: int) -> list[Node]:
    chains = [stage.chain for stage in planned.stages[:stages]]
    return [n for c in chains if c is not None for n in c.nodes if n.operator.kind == "reader"]


def _orders(placing: Placing, settings: Settings) -> list[Order]:
    """Divide the threads, and the cores where memory is divided, among the workers."""
    threads, first = [], 0
    for number in range(placing.processes):
        threads.append(max(1, (settings.num_threads - first) // (placing.processes - number)))
        first += threads[-1]
    cores = [()] * len(threads) if settings.start_thread else cores_of_processes(threads)
    return [
        Order(count, sum(threads[:number]), tuple(cores[number]), not placing.forked)
        for number, count in enumerate(threads)
    ]


# ---------------------------------------------------------------- in the worker


def _run(make: Callable[[Order], Task], connection: Any, order: Order, file: int | None, parent: int) -> None:
    """Run a worker: of the pipeline for which the server was forked, or of another one."""
    if order.is_sent:
        _run_sent(connection, order, file, parent)
    else:
        serve(connection, partial(make, order), parent)


def _task(
    planned: Plan,
    stages: int,
    datasets: Mapping[Node, Any],
    begin: Begin,
    order: Order,
) -> Task:
    opened = {n: d if _is_ours(d) else n.operator.body(**n.constants) for n, d in datasets.items()}
    settings, policy, budget = begin
    return Task(
        planned, stages, opened, replace(settings, num_threads=order.threads), order.first_thread, order.cores,
        BadSamples(policy, budget),
    )  # fmt: skip


def _is_ours(dataset: Any) -> bool:
    """Return True for a data set that keeps no file open, or position in one: those of torchdali map files."""
    return type(dataset).__module__.startswith("torchdali.")


def _run_sent(connection: Any, order: Order, file: int | None, parent: int) -> None:
    """Run a worker whose plan is in a file."""
    assert file is not None

    def make() -> Task:
        with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as data:
            surroundings, text = pickle.loads(data[:])
        os.close(file)
        surroundings.enter()
        sent: _Sent = pickling.loads(text)
        return sent.task(order)

    serve(connection, make, parent)


def main(descriptor: int, parent: int) -> None:
    """Run a server in a new interpreter."""
    serve_orders(socket.socket(fileno=descriptor), _run_sent, parent)


# ---------------------------------------------------------------- the plan on its way


@dataclass(frozen=True)
class _Surroundings:
    """State of the process of the user that names of files and modules depend on."""

    path: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]

    @classmethod
    def here(cls) -> _Surroundings:
        return cls(tuple(sys.path), os.getcwd(), dict(os.environ))

    def enter(self) -> None:
        sys.path[:] = self.path
        os.chdir(self.folder)
        if dict(os.environ) != self.environment:
            os.environ.clear()
            os.environ.update(self.environment)


@dataclass(frozen=True)
class _Edge:
    node: int
    index: int


@dataclass(frozen=True)
class _SentPart:
    """One of the user's operators for which a fused one stands, for messages."""

    operator: str
    name: str
    lines: tuple[SourceLine, ...]
    constants: dict[str, Any]

    @classmethod
    def of(cls, node: Node) -> _SentPart:
        return cls(node.operator.name, node.name, node.lines, _portable(node.constants))

    def node(self) -> Node:
        return Node(registry[self.operator], self.name, "cpu", (), self.constants, {}, self.lines)


def _portable(constants: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that can be pickled: of an operator that does not run there, for messages."""
    found = {}
    for name, value in constants.items():
        with contextlib.suppress(Exception):
            pickling.dumps(value)
            found[name] = value
    return found


@dataclass(frozen=True)
class _SentNode:
    """A node on its way to a process that knows no graph: references by number."""

    operator: str
    name: str
    device: str
    lines: tuple[SourceLine, ...]
    parts: tuple[_SentPart, ...]
    inputs: tuple[_Edge | None, ...]
    constants: dict[str, Any]
    per_sample: dict[str, _Edge]
    scope: tuple[tuple[_Edge, bool | int], ...]
    preserve: bool
    stream: int
    outputs: tuple[tuple[str, str, int | None, Any, str | None], ...]


@dataclass(frozen=True)
class _Sent:
    """The message from which such a process makes its task."""

    modules: tuple[str, ...]
    nodes: tuple[_SentNode, ...]
    outputs: tuple[_Edge, ...]
    stages: int
    begin: Begin

    @classmethod
    def of(cls, planned: Plan, stages: int, begin: Begin) -> _Sent:
        nodes = planned.graph.nodes
        first = planned.stages[:stages]
        needed = {
            n for s in first for n in (*s.steps, *(s.chain.nodes if s.chain else ())) if n.operator.kind != "source"
        }
        number = planned.index

        def edge(e: DataNode) -> _Edge:
            assert e.source is not None
            return _Edge(number[e.source], e.index)

        sent = tuple(
            _SentNode(
                n.operator.name, n.name, n.device, n.lines, tuple(map(_SentPart.of, n.parts)),
                tuple(None if e is None else edge(e) for e in n.inputs),
                dict(n.constants) if n in needed else {},
                {k: edge(e) for k, e in n.per_sample.items()},
                tuple((edge(c.edge), c.value) for c in n.scope),
                n.preserve, n.stream,
                tuple((o.name, o.device, o.ndim, o.dtype, o.layout) for o in n.outputs),
            )
            for n in nodes
        )  # fmt: skip
        modules = tuple(dict.fromkeys(n.operator.body.__module__ for n in nodes if n in needed))
        outputs = tuple(map(edge, planned.graph.outputs))
        return cls(modules, sent, outputs, stages, begin)

    def task(self, order: Order) -> Task:
        """Make the graph and the plan again, and open the readers."""
        for module in self.modules:
            importlib.import_module(module)
        nodes: list[Node] = []

        def edge(sent: _Edge) -> DataNode:
            return nodes[sent.node].outputs[sent.index]

        for sent in self.nodes:
            node = Node(
                registry[sent.operator], sent.name, sent.device,
                tuple(None if e is None else edge(e) for e in sent.inputs),
                sent.constants, {k: edge(e) for k, e in sent.per_sample.items()}, sent.lines,
                tuple(Condition(edge(e), value) for e, value in sent.scope),
                sent.preserve, sent.stream,
            )  # fmt: skip
            node.outputs = tuple(
                DataNode(name, device, node, i, ndim, dtype, layout)
                for i, (name, device, ndim, dtype, layout) in enumerate(sent.outputs)
            )
            node.parts = tuple(part.node() for part in sent.parts)
            nodes.append(node)
        planned = plan(Graph(tuple(nodes), tuple(map(edge, self.outputs))))
        readers = _readers(planned, self.stages)
        datasets = {n: n.operator.body(**n.constants) for n in readers}
        return _task(planned, self.stages, datasets, self.begin, order)
