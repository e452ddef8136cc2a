"""Run the batches of a plan, several at a time.

The contract, which every line below keeps:

- *Success.* Batches are delivered in the order they were scheduled. Everything that has a state (sources,
  steps over a batch) sees them in that order; samples of a chain run in any order on any thread.
- *Failure.* An exception belongs to the batch it happened in. It is raised when that batch is popped, with
  operator, line, sample and file; the batches around it are whole, and the executor goes on.
- *End.* StopIteration from a source ends the epoch: that batch and those scheduled after it are empty and
  raise StopIteration when popped, until `reset`.
- *Cancellation.* Waiting in `pop` can be interrupted (Ctrl-C) at any moment and repeated.
- *One at a time.* A second thread that takes a batch while one is being taken, and a process forked after
  the threads were started, get an error.
- *Shutdown.* `close` may come at any time, from any thread, and again. Batches in flight end with an error,
  threads end after the sample they work on. Threads hold no executor while they sleep, so that dropping
  the last reference closes it too; the interpreter's exit does the same.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from torchdali.errors import located, note
from torchdali.execute.bad_samples import BadSamples
from torchdali.execute.buffers import Buffers
from torchdali.execute.checkpoint import labels
from torchdali.execute.device import Lane
from torchdali.execute.link import LinkedChain, Slots
from torchdali.execute.memory_stats import MemoryStats
from torchdali.execute.order import Exclusive, Turn
from torchdali.execute.origins import origins
from torchdali.execute.profile import Marks, Profile
from torchdali.execute.scope import run_in_scope
from torchdali.execute.threads import Job, Threads, isolated_torch_threads, run_torch_alone
from torchdali.graph import DataNode, Node
from torchdali.loader import Cursor, Dataset, Keys
from torchdali.operator import Source, is_large
from torchdali.plan import Plan, column
from torchdali.plan import plan as make_plan
from torchdali.rng import BatchRng, mix
from torchdali.tensors import TensorList

__all__ = ["Batch", "Executor", "Reader", "Settings", "random_key"]

_NO_SEED = -1


@dataclass(frozen=True)
class Reader:
    """The runtime side of a reader: its records and the place in its epochs."""

    dataset: Dataset
    cursor: Cursor


@dataclass(frozen=True)
class Settings:
    """What a pipeline decides for its executor."""

    batch_size: int
    num_threads: int
    seed: int
    device: torch.device | None = None
    start_thread: Callable[[int], None] | None = None
    synchronous: bool = False
    memory_stats: bool = False


@dataclass(eq=False)
class Batch:
    """One batch in flight.

    Attributes:
        index: In the order in which batches are started; -1 before.
        kept: Which samples are left, where bad ones were left out or replaced; None for all.
        asked: Whether it was handed to what starts batches.
    """

    index: int
    size: int
    position: int
    values: dict[DataNode, TensorList] = field(default_factory=dict)
    keys: dict[Node, Keys] = field(default_factory=dict)
    info: list[str] | None = None
    kept: Sequence[int] | None = None
    state: dict[str, Any] = field(default_factory=dict)
    error: BaseException | None = None
    stage: int = 0
    ended: bool = False
    asked: bool = False
    outputs: tuple[TensorList, ...] = ()
    finished: threading.Event = field(default_factory=threading.Event)

    def sample_keys(self) -> tuple[Sequence[int], Sequence[int]]:
        """Return epoch and record of each sample: those of the first reader, or the running number."""
        for keys in self.keys.values():
            return keys.epochs.tolist(), keys.records.tolist()
        places = range(self.size) if self.kept is None else self.kept
        return [0] * self.size, [self.position + place for place in places]


class Executor:
    """Runs a plan.

    Args:
        plan: What to run.
        settings: Sizes, seed and device.
        readers: Per reader node.
        sources: Per source node.
        bad_samples: What to do when a sample fails.
    """

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        readers: Mapping[Node, Reader],
        sources: Mapping[Node, Source],
        bad_samples: BadSamples,
    ) -> None:
        self.settings, self.readers, self.sources = settings, readers, sources
        self.bad_samples = bad_samples
        self._labels = labels(plan.graph)
        self.lane = Lane(settings.device)
        self.buffers = Buffers(pinned=self.lane.pins)
        self.profile = Profile()
        self.memory = MemoryStats()
        self._adopt(plan)
        self._flight: deque[Batch] = deque()
        self._count = self._position = 0
        self._stopped = self._closed = False
        self.place = self.state()
        self._lock, self._taking, self._process = threading.RLock(), Exclusive(), os.getpid()
        self._here: queue.SimpleQueue[Callable[[], None]] | None = None
        if settings.synchronous:
            self._here = queue.SimpleQueue()
        self._threads = Threads(settings.num_threads, start=settings.start_thread)
        self._requests: queue.SimpleQueue[tuple[Executor, Batch] | None] = queue.SimpleQueue()
        with isolated_torch_threads(1) as ready:
            self._conductor = threading.Thread(
                target=_conduct,
                args=(self._requests, ready),
                name="torchdali-conductor",
                daemon=True,
            )
            self._conductor.start()

    def _adopt(self, plan: Plan) -> None:
        reads = {node: reader.dataset.read for node, reader in self.readers.items()}
        self.plan = plan
        self._chains = [
            LinkedChain(s.chain, plan.index, reads, f"chain {i}") if s.chain else None
            for i, s in enumerate(plan.stages)
        ]
        self._origins = [origins(s.chain.nodes if s.chain else ()) for s in plan.stages]
        self._slots = {
            edge: Slots(self.buffers) for s in plan.stages if s.chain for edge in s.chain.delivers
        }
        self._turns = [Turn() for _ in plan.stages]

    # ------------------------------------------------------------ the user's side

    @property
    def in_flight(self) -> int:
        """Batches scheduled and not yet popped."""
        return len(self._flight)

    @property
    def empty(self) -> bool:
        """Whether nothing is in flight but the end of an epoch; waits for the oldest batch to know it."""
        if not self._flight:
            return True
        oldest = self._flight[0]
        if self.sources or oldest.ended:  # readers never end
            self._wait(oldest)
        return isinstance(oldest.error, StopIteration)

    @property
    def stopped(self) -> bool:
        """Whether a source has come to its end; waits for the batches in flight to know it."""
        if self.sources and self._flight and not self._stopped:
            self._wait(self._flight[-1])
        return self._stopped

    def schedule(self, ended: bool = False) -> None:
        """Start one more batch; returns at once. With ``ended``, it is the end of the epoch instead.

        A synchronous executor returns when the batch is done, all steps having run in this thread.
        """
        self._check_open()
        with self._lock:
            for source in self.sources.values() if not ended else ():
                source.schedule()
            batch = Batch(-1, self.settings.batch_size, 0, ended=ended)
            self._flight.append(batch)
            if self._here is None:
                self._ask()
        if self._here is not None:
            self._wait(batch)

    def _ask(self) -> None:
        """Have all scheduled batches started. An interrupt may fall between any two lines: ask again then."""
        for batch in list(self._flight):
            if not batch.asked and self._here is None:
                self._requests.put((self, batch))
            elif not batch.asked:
                with torch.no_grad():
                    self.start(batch)
            batch.asked = True

    def _wait(self, batch: Batch) -> None:
        """Wait for a batch, in slices: close() in another thread must be noticed."""
        if not batch.asked:
            self._ask()
        while not batch.finished.is_set():
            self._check_open()
            if self._here is None:
                batch.finished.wait(1.0)
                continue
            with contextlib.suppress(queue.Empty), torch.no_grad():
                self._here.get(timeout=1.0)()

    def pop(self) -> Batch:
        """Wait for the oldest batch and return it.

        Raises:
            StopIteration: a source is at its end. RuntimeError: nothing was scheduled, or the executor
            was closed. Otherwise what failed in the batch.
        """
        self._check_open()
        started = time.perf_counter()
        with self._taking:
            if not self._flight:
                raise RuntimeError(
                    "no batch was scheduled: call schedule_run() before asking for outputs"
                )
            batch = self._flight[0]
            self._wait(batch)
            self._flight.popleft()
            self.place = batch.state
        if batch.error is not None:
            raise batch.error
        self.profile.delivered(batch.size, time.perf_counter() - started)
        self.lane.hand_over(batch.outputs)
        return batch

    def reset(self) -> None:
        """Drop the batches in flight and start the next epoch of all sources that ended."""
        self._drop_flight()
        for source in self.sources.values():
            source.reset()
        self._stopped = False
        self.place = self.state()

    def _drop_flight(self) -> None:
        self._check_open()
        with self._taking:
            while self._flight:
                self._wait(self._flight[0])
                self._flight.popleft()

    def close(self) -> None:
        """End all threads and fail what is in flight."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if os.getpid() != self._process:
            return  # the threads and processes are the parent's
        for source in self.sources.values():
            source.close()
        self._requests.put(None)
        self._threads.close()
        if self._conductor is not threading.current_thread():
            self._conductor.join(timeout=10)
        for batch in list(self._flight):
            self._finish(
                batch, RuntimeError("the pipeline was closed while this batch was in flight")
            )

    def _check_open(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                f"this pipeline was built in process {self._process} and its threads do not exist in process "
                f"{os.getpid()}, which was forked from it: build a pipeline in each process that runs one"
            )
        if self._closed:
            raise RuntimeError("the pipeline is closed")

    # ------------------------------------------------------------ starting a batch (conductor thread)

    def start(self, batch: Batch) -> None:
        """Draw the samples of a batch and begin its first stage."""
        if batch.index >= 0:
            return  # it was asked for twice
        try:
            batch.index, self._count = self._count, self._count + 1
            if self._stopped or batch.ended:
                raise StopIteration
            batch.position = self._position
            self._draw(batch)
            if batch.index == 0:
                self._fuse_large(batch)
        except StopIteration as stop:
            self._stopped = True
            batch.state = self.state()
            self._fail(batch, StopIteration(*stop.args))
        except BaseException as error:
            batch.state = self.state()
            self._fail(batch, error)
        else:
            self._turns[0].enter(
                batch.index, partial(self._run_steps, batch)
            ) if self._turns else None

    def _draw(self, batch: Batch) -> None:
        """Advance every source, in the graph's order, and note the state after it."""
        sizes = self._pull(batch)
        for node, reader in self.readers.items():
            batch.keys[node] = reader.cursor.next_batch(self.settings.batch_size)
            sizes[node.name] = self.settings.batch_size
        if len(set(sizes.values())) > 1:
            raise RuntimeError(f"batch size clash: the sources of one batch gave {sizes}")
        batch.size = next(iter(sizes.values()), self.settings.batch_size)
        self._position += batch.size
        batch.info = self._names(batch)
        batch.state = self.state()

    def _pull(self, batch: Batch) -> dict[str, int]:
        """Take the next batch of every source, also of those after one that is at its end (as DALI does)."""
        sizes, ended = {}, False
        for node, source in self.sources.items():
            started = time.perf_counter()
            try:
                outputs = source.next(self.settings.batch_size)
            except StopIteration:
                ended = True
                continue
            except BaseException as error:
                note(error, self._place(batch, node))
                raise
            self.profile.step(node, started, max(1, len(outputs[0])), batch.index)
            batch.values.update(zip(node.outputs, self._placed(node, outputs), strict=True))
            sizes[node.name] = len(outputs[0])
        if ended:
            raise StopIteration
        return sizes

    def _placed(self, node: Node, outputs: tuple[TensorList, ...]) -> tuple[TensorList, ...]:
        """Bring the data of a source to the device of its node."""
        move = self.lane.to_cpu if node.device == "cpu" else self.lane.to_device
        with self.lane.context():
            return tuple(map(move, outputs))

    def _fuse_large(self, batch: Batch) -> None:
        """Plan anew if the first batch shows that sources give large samples."""
        large = [n for n in self.sources if any(is_large(batch.values[o]) for o in n.outputs)]
        if large:
            self._adopt(make_plan(self.plan.graph, large))

    def _names(self, batch: Batch) -> list[str] | None:
        for node, keys in batch.keys.items():
            return [self.readers[node].dataset.info(r) for r in keys.records.tolist()]
        for node in self.sources:
            infos = batch.values[node.outputs[0]].source_infos if node.outputs else None
            if infos is not None:
                return list(infos)
        return None

    def state(self) -> dict[str, Any]:
        """Return the place after the batches drawn so far, as JSON values."""
        return {
            "seed": self.settings.seed,
            "position": self._position,
            "stopped": self._stopped,
            "readers": {self._labels[n]: r.cursor.state() for n, r in self.readers.items()},
            "sources": {self._labels[n]: s.state() for n, s in self.sources.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a place; batches in flight are dropped."""
        self._drop_flight()
        for node, reader in self.readers.items():
            reader.cursor.restore(state["readers"][self._labels[node]])
        for node, source in self.sources.items():
            source.restore(state["sources"][self._labels[node]])
        self.settings = replace(self.settings, seed=state["seed"])
        self._position, self._stopped = state["position"], state["stopped"]
        self.place = self.state()

    # ------------------------------------------------------------ running a stage (any thread)

    def _run_steps(self, batch: Batch) -> None:
        """Run the steps of the batch's stage, then submit its chain."""
        stage = self.plan.stages[batch.stage]
        try:
            with self.lane.context():
                for node in stage.steps:
                    if node.operator.kind != "source":
                        self._run_step(batch, node)
        except BaseException as error:
            self._turns[batch.stage].leave()
            self._fail(batch, error, first=batch.stage + 1)
            return
        self._turns[batch.stage].leave()
        try:
            self._submit_chain(batch)
        except BaseException as error:
            self._fail(batch, error, first=batch.stage + 1)

    def _run_step(self, batch: Batch, node: Node) -> None:
        started = time.perf_counter()
        try:
            results = self._call_step(batch, node)
        except StopIteration:
            raise
        except BaseException as error:
            raise located(error, self._place(batch, node)) from error
        for result in results:
            result.come_from(_first(batch, node))
        batch.values.update(zip(node.outputs, results, strict=True))
        self.profile.step(node, started, batch.size, batch.index)

    def _call_step(self, batch: Batch, node: Node) -> tuple[TensorList, ...]:
        inputs = [None if e is None else batch.values[e] for e in node.inputs]
        if node.device != "cpu":
            inputs = [None if v is None else self.lane.to_device(v) for v in inputs]
        elif node.operator.name == "_to_device":
            inputs = [None if v is None else self.lane.to_cpu(v) for v in inputs]
        edges = {name: batch.values[e] for name, e in node.edges.items()}
        rng = self._rng(batch, node) if node.operator.schema.random else None
        results = run_in_scope(node, inputs, edges, rng, batch.size, batch.values)
        if node.device == "cpu":
            return results
        return tuple(map(self.lane.to_device, results))  # numbers, shapes ... are made on the CPU

    def _rng(self, batch: Batch, node: Node) -> BatchRng:
        return BatchRng(random_key(self.settings.seed, node), *batch.sample_keys())

    def _submit_chain(self, batch: Batch) -> None:
        linked = self._chains[batch.stage]
        if linked is None or batch.size == 0:
            self._deliver_nothing(batch, linked)
            self._next_stage(batch)
            return
        layouts = {
            e: batch.values[e].layout() for e in (*linked.chain.inputs, *linked.chain.values)
        }
        ready = linked.link(layouts)
        marks = Marks() if self.profile.wants(batch.index) else None
        opened = {e: self._slots[e].open(batch.size) for e in linked.chain.delivers}
        done: dict[DataNode, list[Any]] = {e: [None] * batch.size for e in opened}
        columns = linked.columns(
            batch.values,
            self._per_node(batch, linked),
            {self._name("slot", e): parts for e, (_, parts) in opened.items()},
            {self._name("done", e): column for e, column in done.items()},
        )
        finish = partial(self._chain_done, batch, linked, opened, done, ready.layouts, marks)
        if self._here is not None:
            finish = partial(_hand_over, self._here, finish)
        run = ready.bind(**columns) if marks is None else ready.bind_timed(marks, **columns)
        keep_going = self.bad_samples.keeps_going
        job = Job(run, batch.size, finish, order=batch.index, keep_going=keep_going)
        self._threads.submit(job)

    def _name(self, kind: str, edge: DataNode) -> str:
        assert edge.source is not None
        return column(kind, self.plan.index[edge.source], edge.index)

    def _per_node(self, batch: Batch, linked: LinkedChain) -> dict[str, Sequence[Any]]:
        found: dict[str, Sequence[Any]] = {}
        for node in linked.chain.nodes:
            k = self.plan.index[node]
            if node in batch.keys:
                found[column("key", k)] = batch.keys[node].records.tolist()
            if node.operator.schema.random:
                found[column("rng", k)] = self._rng(batch, node).samples(node.operator.draws)
        return found

    def _deliver_nothing(self, batch: Batch, linked: LinkedChain | None) -> None:
        if linked is not None:
            batch.values.update({e: TensorList.from_samples([]) for e in linked.chain.delivers})

    def _chain_done(
        self,
        batch: Batch,
        linked: LinkedChain,
        opened: Mapping[DataNode, Any],
        done: dict[DataNode, list[Any]],
        layouts: Mapping[DataNode, str],
        marks: Marks | None,
        failures: dict[int, BaseException],
    ) -> None:
        """Collect what the samples delivered (on the worker that finished the last one)."""
        try:
            if marks is not None:
                self.profile.chain(marks, linked.chain.nodes, batch.index)
            if failures:
                nodes = {i: linked.node_at(error) for i, error in failures.items()}
                first = min(failures)
                error = located(failures[first], self._place(batch, nodes[first], first))
                self.bad_samples.repair(batch, done, failures, nodes, error)
                self._redraw(batch)
            for edge, column_ in done.items():
                dense, parts = opened[edge]
                batch.values[edge] = self._on_device(
                    edge,
                    self._slots[edge].close(
                        dense, parts, column_, layouts[edge], self._source_infos(batch, edge)
                    ),
                )
        except BaseException as error:
            self._fail(batch, error, first=batch.stage + 1)
            return
        self._next_stage(batch)

    def _redraw(self, batch: Batch) -> None:
        """Draw again what was drawn for more samples than are left: a permutation would name missing ones."""
        for stage in self.plan.stages[: batch.stage + 1]:
            for node in stage.steps:
                alone = not (node.inputs or node.edges or node.scope)
                if alone and node.operator.schema.random and node.outputs[0] in batch.values:
                    self._run_step(batch, node)

    def _on_device(self, edge: DataNode, batch: TensorList) -> TensorList:
        """Bring what a "mixed" operator made on the CPU to where it belongs."""
        if edge.device == "cpu":
            return batch
        with self.lane.context():
            return self.lane.to_device(batch)

    def _source_infos(self, batch: Batch, edge: DataNode) -> Sequence[str] | None:
        """Return where the samples of an edge come from, as the reader or the source of them says."""
        origin = self._origins[batch.stage][edge]
        if origin is None:
            return None
        keys = batch.keys.get(origin.source) if origin.source is not None else None
        if keys is None or origin not in self._origins[batch.stage]:
            return batch.values[origin].source_infos
        assert origin.source is not None
        dataset = self.readers[origin.source].dataset
        return [getattr(dataset, "source_info", dataset.info)(r) for r in keys.records.tolist()]

    def _next_stage(self, batch: Batch) -> None:
        if self.settings.memory_stats:
            self.memory.record(batch.values)
        for edge in self.plan.dies[batch.stage]:
            batch.values.pop(edge, None)
        batch.stage += 1
        if batch.stage == len(self.plan.stages):
            self._finish(batch)
        else:
            self._turns[batch.stage].enter(batch.index, partial(self._run_steps, batch))

    def _fail(self, batch: Batch, error: BaseException, first: int = 0) -> None:
        """End a batch, and let those behind it pass the turns that it will not take, from the first on."""
        for turn in self._turns[first:]:
            turn.enter(batch.index, turn.leave)
        self._finish(batch, error)

    def _finish(self, batch: Batch, error: BaseException | None = None) -> None:
        if batch.finished.is_set():
            return  # close() was faster
        batch.error = error
        if error is None:
            batch.outputs = tuple(batch.values[e] for e in self.plan.graph.outputs)
        batch.values.clear()
        batch.finished.set()

    def _place(self, batch: Batch, node: Node | None, sample: int | None = None) -> str:
        parts = [f"operator {node.operator.name!r}" if node else "the pipeline", "failed"]
        if sample is not None:
            parts.append(f"on sample {sample} of batch {batch.index}")
            if batch.info is not None:
                parts.append(f"({batch.info[sample]})")
        else:
            parts.append(f"on batch {batch.index}")
        where = f"\n  {node.where}" if node else ""
        return " ".join(parts) + where


def _first(batch: Batch, node: Node) -> TensorList | None:
    """Return the first input of a node that was given."""
    return next((batch.values[edge] for edge in node.inputs if edge is not None), None)


def random_key(seed: int, node: Node) -> int:
    """Return the key of a random operator's numbers: of its own seed, or the pipeline's and its place."""
    own = node.constants.get("seed", _NO_SEED)
    return mix(seed, node.stream) if own == _NO_SEED else mix(own)


def _hand_over(
    here: queue.SimpleQueue[Callable[[], None]],
    finish: Callable[[dict[int, BaseException]], None],
    failures: dict[int, BaseException],
) -> None:
    """Let the thread that waits for the batch carry it on."""
    here.put(partial(finish, failures))


def _conduct(
    requests: queue.SimpleQueue[tuple[Executor, Batch] | None], ready: threading.Barrier
) -> None:
    """Start batches one after another; holds no executor between them."""
    run_torch_alone(ready)
    with torch.no_grad():
        while (request := requests.get()) is not None:
            executor, batch = request
            executor.start(batch)
            del request, executor, batch
