"""Decide what runs in worker processes and how many there are, and start them."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import torch

from torchdali import pickling
from torchdali.execute.batch import Reader, Settings
from torchdali.execute.workers.messages import Ready, Refused
from torchdali.execute.workers.pool import Worker
from torchdali.execute.workers.worker import Task, serve
from torchdali.graph import Condition, DataNode, Graph, Node
from torchdali.plan import Chain, Plan, is_metadata, plan
from torchdali.registry import registry

__all__ = ["Placing", "default_processes", "place", "start_workers"]

_THREADS = 4  # threads of one process that the GIL does not hold up much
_START = 120.0  # seconds for a process to start


def default_processes(threads: int, cores: int) -> int:
    """Return how many processes pay: about one for four threads that have a core each."""
    working = min(threads, cores)
    return 1 if working <= _THREADS else -(-working // _THREADS)


@dataclass(frozen=True)
class Placing:
    """The division of a plan among processes.

    Attributes:
        processes: Number of worker processes; 1 for none but that of the user.
        stages: Stages whose chains run there.
        reasons: Why other chains do not, by stage; of -1: why there is one process.
        forked: True if processes are forked; otherwise they start anew.
    """

    processes: int
    stages: frozenset[int] = frozenset()
    reasons: Mapping[int, str] = field(default_factory=dict)
    forked: bool = True

    def __str__(self) -> str:
        if self.processes == 1:
            why = self.reasons.get(-1, "")
            return "one process" + (f": {why}" if why else "")
        how = "forked" if self.forked else "started anew"
        lines = [f"{self.processes} worker processes, {how}"]
        lines += [f"  the chain of stage {i} runs there" for i in sorted(self.stages)]
        lines += [f"  the chain of stage {i} stays here: {why}" for i, why in self.reasons.items()]
        return "\n".join(lines)


def place(
    planned: Plan,
    readers: Mapping[Node, Reader],
    asked: int | None,
    settings: Settings,
    start_method: str,
) -> Placing:
    """Decide how many processes a plan gets, and what runs there.

    Args:
        asked: Number of processes; None for as many as pay.
    """
    count = asked
    if count is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        count = default_processes(settings.num_threads, cores or 1)
    if count == 1:
        return Placing(1)
    why = _platform_refuses()
    if why:
        return Placing(1, reasons={-1: why})
    forked = start_method == "fork" and _may_fork()
    reasons: dict[int, str] = {}
    stages = set()
    for i, stage in enumerate(planned.stages):
        if stage.chain is None:
            continue
        why = _reads_here(stage.chain, readers) or _stays(planned, i, forked)
        if why:
            reasons[i] = why
        else:
            stages.add(i)
    if not stages:
        why = "; ".join(dict.fromkeys(reasons.values())) or "no operator works on single samples"
        return Placing(1, reasons={-1: why})
    return Placing(count, frozenset(stages), reasons, forked)


def _platform_refuses() -> str:
    if not (hasattr(socket, "send_fds") and hasattr(os, "fork")):
        return f"{sys.platform} cannot send shared memory from process to process"
    if multiprocessing.current_process().daemon:
        return "this process is a daemon of multiprocessing (a worker of DataLoader?), which may have no children"
    return ""


def _may_fork() -> bool:
    """Return True if this process can be copied: no other thread may hold a lock, no GPU may be in use."""
    # OpenMP's and OpenBLAS's threads do not count: they look after themselves, and workers run torch with one thread.
    uses_gpu: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return threading.active_count() == 1 and not uses_gpu and sys.platform == "linux"


def _stays(planned: Plan, i: int, forked: bool) -> str:
    """Return why a chain stays in the process of the user; empty if it need not."""
    chain = planned.stages[i].chain
    assert chain is not None
    if chain.grouped:
        return "it takes groups of small samples, which is quicker than sending them"
    if not _sees_data(planned, i):
        return "it computes numbers, which is quicker than sending them"
    for node in chain.nodes:
        name = node.operator.name
        if node.preserve or node.operator.options.preserve:
            return f"operator {name!r} has a side effect"
        own = not node.operator.body.__module__.startswith("torchdali.")
        if node.operator.options.make is not None and own:
            return f"operator {name!r} has a memory of its own"
        if not forked:
            why = _cannot_start_anew(node)
            if why:
                return why
    return ""


def _reads_here(chain: Chain, readers: Mapping[Node, Reader]) -> str:
    for node in chain.nodes:
        begin = getattr(readers[node].dataset, "begin", None) if node in readers else None
        if begin is not None and begin([]) is not None:
            return f"operator {node.operator.name!r} reads ahead, from far or from Python, in this process"
    return ""


def _cannot_start_anew(node: Node) -> str:
    name, module = node.operator.name, node.operator.body.__module__
    if registry.get(name) is not node.operator or module == "__main__":
        return f"operator {name!r} is declared in {module}, which a new process does not import"
    try:
        pickling.dumps(dict(node.constants))
    except Exception as error:
        return (
            f"an argument of operator {name!r} cannot be pickled ({type(error).__name__}: {error})"
        )
    return ""


def _sees_data(planned: Plan, i: int) -> bool:
    """Return True if a chain works on what a reader or source gave."""
    seen: set[Node] = set()
    for node in planned.graph.nodes:
        before = {e.source for e in node.inputs if e is not None and not is_metadata(e)}
        if node.operator.kind in ("reader", "source") or not seen.isdisjoint(before):
            seen.add(node)
    chain = planned.stages[i].chain
    return chain is not None and not seen.isdisjoint(chain.nodes)


# ---------------------------------------------------------------- starting


def start_workers(
    placing: Placing, planned: Plan, settings: Settings, readers: Mapping[Node, Reader]
) -> list[Worker] | str:
    """Start the processes and wait until they are ready; or end them, and return why they are not."""
    needed = [
        n for i in sorted(placing.stages)
        for n in planned.stages[i].chain.nodes if n.operator.kind == "reader"  # type: ignore[union-attr]
    ]  # fmt: skip
    datasets = {n: readers[n].dataset for n in needed}
    workers: list[Worker] = []
    first, sizes = 0, {planned.index[n]: len(d) for n, d in datasets.items()}
    try:
        for number in range(placing.processes):
            left = placing.processes - number
            threads = max(1, (settings.num_threads - first) // left)
            if placing.forked:
                start = settings.start_thread
                make = partial(_task, planned, placing.stages, datasets, threads, first, start)
                workers.append(_fork(make, number, [w.connection for w in workers]))
            else:
                sent = _Sent.of(planned, placing.stages, threads, first, settings.start_thread)
                workers.append(_start_anew(sent, number))
            first += threads
        deadline = time.monotonic() + _START
        why = next(filter(None, (_not_ready(w, sizes, deadline) for w in workers)), "")
    except OSError as error:
        why = f"a process could not be started: {error}"
    if not why:
        return workers
    for worker in workers:
        worker.process.kill()
        worker.process.join(1.0)
        worker.close()
    return why


def _not_ready(worker: Worker, sizes: Mapping[int, int], deadline: float) -> str:
    message: Any = None
    with contextlib.suppress(EOFError, OSError):
        if worker.connection.poll(max(0.0, deadline - time.monotonic())):
            message = pickle.loads(worker.connection.recv_bytes())
    if isinstance(message, Refused):
        return f"a process could not be started: {message.reason}"
    if not isinstance(message, Ready):
        return worker.end_message(" while it started")
    if dict(message.sizes) != dict(sizes):
        return f"a process finds other numbers of records ({message.sizes}) than this one ({sizes})"
    return ""


def _fork(make: Callable[[], Task], number: int, others: Sequence[Any]) -> Worker:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=True)
    process = context.Process(
        target=_forked, args=(theirs, make, [ours, *others], os.getpid()),
        name=f"torchdali-process-{number}", daemon=True,
    )  # fmt: skip
    with warnings.catch_warnings():
        # Python 3.12 counts threads of native libraries too; see `_may_fork`.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    theirs.close()
    return Worker(process, ours, number)


def _forked(connection: Any, make: Callable[[], Task], others: Sequence[Any], parent: int) -> None:
    for other in others:
        other.close()  # or the pipes of the siblings would stay open when their parent is gone
    serve(connection, make, parent)
    os._exit(0)


def _task(
    planned: Plan,
    stages: frozenset[int],
    datasets: Mapping[Node, Any],
    threads: int,
    first: int,
    start_thread: Callable[[int], None] | None,
) -> Task:
    opened = {n: d if _is_ours(d) else n.operator.body(**n.constants) for n, d in datasets.items()}
    return Task(planned, stages, opened, threads, first, start_thread)


def _is_ours(dataset: Any) -> bool:
    """Return True for a data set that keeps no file open, or position in one: those of torchdali map files."""
    return type(dataset).__module__.startswith("torchdali.")


# ---------------------------------------------------------------- processes that start anew


@dataclass(frozen=True)
class _Edge:
    node: int
    index: int


@dataclass(frozen=True)
class _SentNode:
    """A node on its way to a process that starts anew: references by number."""

    operator: str
    name: str
    device: str
    inputs: tuple[_Edge | None, ...]
    constants: dict[str, Any]
    per_sample: dict[str, _Edge]
    scope: tuple[tuple[_Edge, bool | int], ...]
    preserve: bool
    stream: int
    outputs: tuple[tuple[str, str, int | None, Any, str | None], ...]


@dataclass(frozen=True)
class _Sent:
    """The message from which a process that starts anew makes its task."""

    modules: tuple[str, ...]
    nodes: tuple[_SentNode, ...]
    outputs: tuple[_Edge, ...]
    stages: frozenset[int]
    threads: int
    first: int
    start_thread: Callable[[int], None] | None

    @classmethod
    def of(
        cls,
        planned: Plan,
        stages: frozenset[int],
        threads: int,
        first: int,
        start_thread: Callable[[int], None] | None,
    ) -> _Sent:
        nodes = planned.graph.nodes
        chains = [planned.stages[i].chain for i in stages]
        needed = {n for chain in chains if chain is not None for n in chain.nodes}
        number = planned.index

        def edge(e: DataNode) -> _Edge:
            assert e.source is not None
            return _Edge(number[e.source], e.index)

        sent = tuple(
            _SentNode(
                n.operator.name, n.name, n.device,
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
        return cls(
            modules, sent, tuple(map(edge, planned.graph.outputs)), stages, threads, first, start_thread
        )  # fmt: skip

    def task(self) -> Task:
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
                sent.constants, {k: edge(e) for k, e in sent.per_sample.items()}, (),
                tuple(Condition(edge(e), value) for e, value in sent.scope),
                sent.preserve, sent.stream,
            )  # fmt: skip
            node.outputs = tuple(
                DataNode(name, device, node, i, ndim, dtype, layout)
                for i, (name, device, ndim, dtype, layout) in enumerate(sent.outputs)
            )
            nodes.append(node)
        planned = plan(Graph(tuple(nodes), tuple(map(edge, self.outputs))))
        chains = [planned.stages[i].chain for i in self.stages]
        readers = [
            n for c in chains if c is not None for n in c.nodes if n.operator.kind == "reader"
        ]
        datasets = {n: n.operator.body(**n.constants) for n in readers}
        return Task(planned, self.stages, datasets, self.threads, self.first, self.start_thread)


class _Popen:
    """A process that was started anew, with the interface of `multiprocessing.Process`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid: int | None = process.pid

    @property
    def exitcode(self) -> int | None:
        return self._process.poll()

    def join(self, timeout: float | None = None) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


_PROGRAM = """\
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = {path!r}
from torchdali.execute.workers.placing import main
main({descriptor}, {parent})
"""


def _start_anew(sent: _Sent, number: int) -> Worker:
    """Start a new interpreter: unlike multiprocessing's, it does not run the user's script again."""
    ours, theirs = socket.socketpair()
    ours.settimeout(None)
    program = _PROGRAM.format(path=sys.path, descriptor=theirs.fileno(), parent=os.getpid())
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", program], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
    connection = Connection(ours.detach())
    connection.send_bytes(pickling.dumps(sent))
    return Worker(_Popen(process), connection, number)


def main(descriptor: int, parent: int) -> None:
    """Run a worker in a process that was started anew."""
    connection = Connection(descriptor)

    def make() -> Task:
        sent: _Sent = pickling.loads(connection.recv_bytes())
        return sent.task()

    serve(connection, make, parent)
    os._exit(0)
