"""A worker: runs parts of chains on threads of its own, and writes the results where they belong.

Its main thread takes messages, its threads do the samples. It ends when the process of the user says so or is gone.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from torchdali.execute.batch import random_key
from torchdali.execute.bundles import BundleRun, divide_pieces
from torchdali.execute.compiled_chain import CompiledChain
from torchdali.execute.shared_memory import Writer, socket_of
from torchdali.execute.thread_pool import Job, ThreadPool
from torchdali.execute.timings import ChainTimings
from torchdali.execute.workers.blocks import Place, Views
from torchdali.execute.workers.messages import (
    Answer,
    Block,
    Drop,
    Inline,
    Input,
    Part,
    Ready,
    Refused,
    restored,
    write_failure,
)
from torchdali.execute.workers.placing import has_user_code
from torchdali.graph import DataNode, Node
from torchdali.loader import Dataset, owning_read
from torchdali.plan import Plan, column
from torchdali.rng import BatchRng
from torchdali.tensors import TensorList
from torchdali.user_random import seed_sample, seed_worker

__all__ = ["Task", "serve"]

_POLL = 0.5  # seconds between looks at whether the process of the user is there


@dataclass
class Task:
    """The plan and the readers for a worker.

    Attributes:
        plan: Of the whole pipeline; only the chains of ``stages`` run here.
        datasets: By reader of those chains.
        start_thread: See `Settings`; the numbers of its threads begin with ``first_thread``.
        cores: Where its threads run.
    """

    plan: Plan
    stages: frozenset[int]
    datasets: Mapping[Node, Dataset]
    threads: int
    first_thread: int
    cores: tuple[int, ...]
    start_thread: Callable[[int], None]


@dataclass
class _Run:
    """A part that is being done."""

    part: Part
    compiled: CompiledChain
    slots: Sequence[Sequence[torch.Tensor] | None]
    done: dict[DataNode, list[Any]]
    timings: ChainTimings | None = None
    inputs: dict[DataNode, TensorList] = field(default_factory=dict)
    bundles: BundleRun | None = None


class SeededSamples:
    """Runs a chain with code of the user for the samples of a part, with random numbers that are theirs alone.

    `random`, `numpy.random` and torch have one generator for all threads of a process. So one sample runs after the
    other, each with its own seed: its numbers are then the same in any thread, and in any number of processes.
    """

    _alone = threading.Lock()

    def __init__(self, part: Part, function: Callable[[int], None]) -> None:
        self._part, self._function = part, function

    def __call__(self, i: int) -> None:
        part = self._part
        with self._alone:
            seed_worker(part.seed)
            seed_sample(int(part.epochs[i]), int(part.records[i]))
            self._function(i)


def serve(connection: Any, make: Callable[[], Task], parent: int) -> None:
    """Work until the process of the user closes the connection or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; that of the user decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with contextlib.suppress(ConnectionError, EOFError):  # any other is an end that is told: no memory, say
        try:
            task = make()
            worker = _Worker(connection, task)
        except Exception as error:
            connection.send(Refused(f"{type(error).__name__}: {error}"))
            return
        worker.run()


def _end_with(parent: int) -> None:
    """End this process when its parent is gone.

    The connection does not tell: processes that were forked later hold its other end open.
    """
    while os.getppid() == parent:
        time.sleep(_POLL)
    os._exit(1)


class _Worker:
    def __init__(self, connection: Any, task: Task) -> None:
        self._connection, self._task = connection, task
        self._views, self._writer = Views(), Writer(connection.fileno())
        self._socket = socket_of(connection.fileno())
        self._sending = threading.Lock()
        index, datasets = task.plan.index, task.datasets
        reads = {node: owning_read(dataset) for node, dataset in datasets.items()}
        self._chains = {
            i: CompiledChain(chain, index, reads, f"chain {i}")
            for i, chain in ((i, task.plan.stages[i].chain) for i in task.stages)
            if chain is not None
        }
        start, first = task.start_thread, task.first_thread
        os.sched_setaffinity(0, task.cores)  # before there are threads, which inherit it
        self._threads = ThreadPool(task.threads, start=lambda number: start(first + number))
        self._send(Ready({index[n]: len(d) for n, d in datasets.items()}))

    def run(self) -> None:
        """Take messages until there are no more."""
        while True:
            message = pickle.loads(self._connection.recv_bytes())
            if isinstance(message, Part):
                self._take(message)
            elif isinstance(message, Block):
                _, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
                self._views.add(message.number, descriptors[0], message.size)
            elif isinstance(message, Drop):
                self._views.drop(message.number)
            else:
                os._exit(0)

    def _send(self, message: Any) -> None:
        with self._sending:
            self._connection.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))

    def _take(self, part: Part) -> None:
        with self._sending:  # the writer belongs to the thread that sends
            self._writer.free(part.returned)
        try:
            run, function = self._bound(part)
        except Exception as error:
            self._answer_failure(part, error)
            return

        def done(failures: dict[int, BaseException]) -> None:
            self._done(run, failures)

        count = part.count if run.bundles is None else run.bundles.count
        self._threads.submit(Job(function, count, done, order=part.order, keep_going=part.keep_going))

    def _bound(self, part: Part) -> tuple[_Run, Callable[[int], None]]:
        compiled = self._chains[part.stage]
        chain = compiled.chain
        entering = (*chain.inputs, *(value.edge for value in chain.values))
        inputs = {e: self._batch(sent) for e, sent in zip(entering, part.inputs, strict=True)}
        slots = [None if p is None else self._views.tensor(p).unbind(0) for p in part.slots]
        nothing = [None] * part.count
        run = _Run(part, compiled, slots, {e: [None] * part.count for e in chain.delivers})
        run.inputs = inputs
        columns = compiled.columns(
            inputs,
            self._per_node(part, compiled),
            {self._name("slot", e): nothing if s is None else s for e, s in zip(chain.delivers, slots, strict=True)},
            {self._name("done", e): found for e, found in run.done.items()},
        )
        chain_bound = compiled.bound(inputs)
        if part.timed:
            run.timings = ChainTimings(part.count)
            return run, self._seeded(part, compiled, chain_bound.single.bind_timed(run.timings, **columns))
        function, several = chain_bound.single.bind(**columns), chain_bound.bundled
        if several is None or not several.pays:
            return run, self._seeded(part, compiled, function)
        bundle = several.size(part.count, self._task.threads)
        run.bundles = BundleRun(several, columns, function, part.count, bundle, part.keep_going)
        return run, run.bundles

    def _seeded(self, part: Part, compiled: CompiledChain, function: Callable[[int], None]) -> Callable[[int], None]:
        return SeededSamples(part, function) if has_user_code(compiled.chain) else function

    def _name(self, kind: str, edge: DataNode) -> str:
        assert edge.source is not None
        return column(kind, self._task.plan.index[edge.source], edge.index)

    def _per_node(self, part: Part, compiled: CompiledChain) -> dict[str, Sequence[Any]]:
        found: dict[str, Sequence[Any]] = {}
        for node in compiled.chain.nodes:
            k = self._task.plan.index[node]
            if k in part.keys:
                found[column("key", k)] = part.keys[k].tolist()
            if node.operator.schema.random:
                found[column("rng", k)] = _rng(part, node).samples()
        return found

    def _batch(self, sent: Input) -> TensorList:
        if sent.dense is not None:
            return TensorList.from_dense(self._tensor(sent.dense), sent.layout)
        samples: list[Any] = [s if s is None else self._tensor(s) for s in sent.samples]
        return TensorList.from_samples(samples, sent.layout)

    def _tensor(self, sent: Inline | Place) -> torch.Tensor:
        return self._views.tensor(sent) if isinstance(sent, Place) else restored(sent)

    def _done(self, run: _Run, failures: dict[int, BaseException]) -> None:
        """Send what became of a part; in the thread that did its last sample."""
        if run.bundles is not None:
            for slots, results in zip(run.slots, run.done.values(), strict=True):
                divide_pieces(results, run.bundles.bundle, slots)
            failures, run.bundles = run.bundles.merged(failures), None
        try:
            self._answer(run, failures)
        except OSError:
            os._exit(1)  # the process of the user is gone
        except Exception as error:
            self._answer_failure(run.part, error)

    def _answer(self, run: _Run, failures: dict[int, BaseException]) -> None:
        loose: list[TensorList] = []
        places = tuple(
            _places(slots, results, loose) for slots, results in zip(run.slots, run.done.values(), strict=True)
        )
        index, failed = self._task.plan.index, {}
        for i, error in failures.items():
            node = run.compiled.node_in_chain(error)
            failed[i] = write_failure(error, -1 if node is None else index[node])
        failures.clear()
        times = () if run.timings is None else tuple(run.timings.times)
        with self._sending:
            packed = self._writer.write(loose) if loose else None
            answer = Answer(run.part.number, places, packed, failed, times)
            self._connection.send_bytes(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))
            if packed is not None and packed.fresh:
                self._writer.send_descriptor()

    def _answer_failure(self, part: Part, error: Exception) -> None:
        """Say that a part failed as a whole."""
        nothing = (None,) * part.count
        delivers = self._chains[part.stage].chain.delivers
        failed = {-1: write_failure(error, -1)}
        self._send(Answer(part.number, (nothing,) * len(delivers), None, failed, ()))


def _places(
    slots: Sequence[torch.Tensor] | None, results: Sequence[Any], loose: list[TensorList]
) -> tuple[Any, ...] | None:
    """Say where each result is; None if all are in their slots. Those that are not are added to ``loose``."""
    found: list[Any] = []
    for i, result in enumerate(results):
        if result is None:
            found.append(None)
        elif slots is not None and result is slots[i]:
            found.append("slot")
        else:
            found.append(len(loose))
            loose.append(TensorList.from_samples([result]))
    return None if found.count("slot") == len(found) else tuple(found)


def _rng(part: Part, node: Node) -> BatchRng:
    if part.random_keys is None:
        key = random_key(part.seed, node)
    else:
        key = part.random_keys[node.stream]
    return BatchRng(key, part.epochs, part.records)
