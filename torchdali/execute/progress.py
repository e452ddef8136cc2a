"""Take batches through the stages of a plan.

A stage's steps run one batch at a time, in order, on whatever thread comes by; its chain's samples are shared by
the worker threads, and whoever finishes the last sample carries the batch on. So no thread ever waits for a batch.
"""

from __future__ import annotations

import operator as op
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torchdali.errors import is_for_all, located
from torchdali.execute.bad_samples import BadSamples
from torchdali.execute.batch import Batch, Reader, Settings, random_key
from torchdali.execute.buffers import Buffers
from torchdali.execute.device import Lane
from torchdali.execute.link import Linked, LinkedChain, Slots
from torchdali.execute.memory_stats import MemoryStats
from torchdali.execute.order import Errands, Turn
from torchdali.execute.origins import origins
from torchdali.execute.places import renewed
from torchdali.execute.profile import Marks, Profile
from torchdali.execute.scope import fail_alone, run_step
from torchdali.execute.threads import Job, Threads
from torchdali.execute.width import Width
from torchdali.graph import DataNode, Node
from torchdali.plan import Plan, column, edges
from torchdali.rng import BatchRng
from torchdali.running import Bodies
from torchdali.tensors import TensorList

__all__ = ["Means", "Progress"]

Done = Callable[[dict[int, BaseException]], None]

_SPAN = 1 << 22  # bytes of samples that one call works on
_SPANS = 1  # a thread and batch, at least
_MISSES = 3  # batches in a row for which that was in vain, before it is given up


@dataclass
class Means:
    """What the plans of one executor run with.

    Attributes:
        errands: Where chains leave their batches in synchronous pipelines: with the thread that waits.
    """

    settings: Settings
    readers: Mapping[Node, Reader]
    bad_samples: BadSamples
    lane: Lane
    buffers: Buffers
    profile: Profile
    memory: MemoryStats
    threads: Threads
    errands: Errands | None


class Progress:
    """Takes batches through the stages of one plan.

    Args:
        means: Threads, memory, device ...
        first: Index of the first batch that will come.

    Attributes:
        light: Edges inside chains whose samples were seen to be small and of one shape.
    """

    def __init__(self, plan: Plan, means: Means, first: int = 0) -> None:
        self.plan, self._means = plan, means
        self.light: set[DataNode] = set()
        # Of each stage, how many batches in a row could not be done in spans.
        self._misses = [0] * len(plan.stages)
        reads = {node: reader.dataset.read for node, reader in means.readers.items()}
        self._chains = [
            LinkedChain(s.chain, plan.index, reads, f"chain {i}") if s.chain else None
            for i, s in enumerate(plan.stages)
        ]
        self._bodies: dict[Node, Bodies] = {n: {} for s in plan.stages for n in s.steps}
        self._widths = [Width(means.threads.count) for _ in plan.stages]
        self._origins = [origins(s.chain.nodes if s.chain else ()) for s in plan.stages]
        self._slots = {
            edge: Slots(means.buffers) for s in plan.stages if s.chain for edge in s.chain.delivers
        }
        self.line_up(first)

    @property
    def alone(self) -> set[Node]:
        """Steps that were seen to do their samples one by one, though the operator can do a batch in other cases."""
        tried = {n: made.values() for n, made in self._bodies.items() if n.operator.dense and made}
        return {n for n, made in tried.items() if all(ready.dense is None for ready in made)}

    def line_up(self, first: int) -> None:
        """Forget who stands in line: the next batch to come is the first."""
        self._turns = [Turn(first) for _ in self.plan.stages]

    def begin(self, batch: Batch) -> None:
        """Start the first stage of a batch."""
        if self._turns:
            self._turns[0].enter(batch.index, partial(self._run_steps, batch))

    def _run_steps(self, batch: Batch) -> None:
        """Run the steps of the batch's stage, then submit its chain."""
        stage = self.plan.stages[batch.stage]
        try:
            with self._means.lane.context():
                for node in stage.steps:
                    if node.operator.kind != "source":
                        self._run_step(batch, node)
        except BaseException as error:
            self._turns[batch.stage].leave()
            self.fail(batch, error, first=batch.stage + 1)
            return
        self._turns[batch.stage].leave()
        try:
            self._submit_chain(batch)
        except BaseException as error:
            self.fail(batch, error, first=batch.stage + 1)

    def _run_step(self, batch: Batch, node: Node) -> None:
        started = time.perf_counter()
        rng = self._rng(batch, node) if node.operator.schema.random else None
        try:
            results = run_step(batch, node, self._means.lane, rng, self._bodies[node])
        except Exception as error:
            if isinstance(error, StopIteration) or not self._means.bad_samples.keeps_going:
                raise
            results = self._run_on_the_rest(batch, node, error)
        batch.values.update(zip(node.outputs, results, strict=True))
        self._means.profile.step(node, started, batch.size, batch.index)

    def _run_on_the_rest(
        self, batch: Batch, node: Node, error: Exception
    ) -> tuple[TensorList, ...]:
        """Run a step, which has failed, without the samples on which it fails alone."""
        while batch.size:
            rng = self._rng(batch, node) if node.operator.schema.random else None
            failures: dict[int, BaseException] = dict(
                fail_alone(batch, node, self._means.lane, rng)
            )
            if not failures or (len(failures) == batch.size and is_for_all(*failures.values())):
                raise error
            self._leave_out(batch, self._before(batch, node), {}, failures, node.culprit)
            rng = self._rng(batch, node) if node.operator.schema.random else None
            try:
                return run_step(batch, node, self._means.lane, rng, self._bodies[node])
            except Exception as again:
                error = again
        if batch.kept is None:
            raise error  # the source gave no samples
        return tuple(TensorList.from_samples([]) for _ in node.outputs)

    def _before(self, batch: Batch, node: Node | None = None) -> set[Node]:
        """Return the nodes that have run: those of the stages before, and of this one those before a step."""
        stage = self.plan.stages[batch.stage]
        steps = stage.steps if node is None else stage.steps[: stage.steps.index(node)]
        done = self.plan.stages[: batch.stage + (node is None)]
        chained = [n for s in done if s.chain is not None for n in s.chain.nodes]
        return {*steps, *chained, *(n for s in done for n in s.steps)}

    def _leave_out(
        self,
        batch: Batch,
        ran: Collection[Node],
        done: dict[DataNode, list[Any]],
        failures: dict[int, BaseException],
        node_of: Callable[[BaseException], Node | None],
    ) -> None:
        """Leave out or replace samples, and forget the failures; raise what says so where that cannot be.

        Args:
            ran: The nodes that have run.
            done: What a chain delivers.
            node_of: Finds the node that failed.
        """
        nodes = {i: node_of(error) for i, error in failures.items()}
        first, bad_samples = min(failures), self._means.bad_samples
        error = located(failures[first], batch.place(nodes[first], first))
        again: Sequence[Node] | None = ()
        if bad_samples.keeps_going and len(failures) < batch.size:
            smaller, can_run = bad_samples.policy == "skip", partial(self._can_renew, batch)
            again = renewed(self.plan.graph, ran, smaller, can_run)
        if again is None:
            failures.clear()
            raise error
        bad_samples.repair(batch, done, failures, nodes, error)
        for node in again:
            rng = self._rng(batch, node) if node.operator.schema.random else None
            results = run_step(batch, node, self._means.lane, rng, self._bodies[node])
            batch.values.update(zip(node.outputs, results, strict=True))

    def _can_renew(self, batch: Batch, node: Node) -> bool:
        """Whether a node that ran is a step without effects, of values that are still there."""
        stateful = node.preserve or node.operator.make is not None
        return node in self._bodies and not stateful and all(e in batch.values for e in edges(node))

    def _rng(self, batch: Batch, node: Node) -> BatchRng:
        return batch.rng(random_key(self._means.settings.seed, node))

    def _submit_chain(self, batch: Batch, in_spans: bool = True) -> None:
        """Let the threads run a chain, several samples in one call where they lie together and the operators can."""
        linked = self._chains[batch.stage]
        if linked is None or batch.size == 0:
            self._deliver_nothing(batch, linked)
            self._next_stage(batch)
            return
        ready = linked.link(batch.values)
        span = self._span(batch, linked, ready) if in_spans else 1
        marks = Marks(batch.size, span) if self._means.profile.wants(batch.index) else None
        count = -(-batch.size // span)
        opened = {e: self._slots[e].open(batch.size, span) for e in linked.chain.delivers}
        done: dict[DataNode, list[Any]] = {e: [None] * count for e in opened}
        columns = linked.columns(
            batch.values,
            self._per_node(batch, linked),
            {self._name("slot", e): parts for e, (_, parts) in opened.items()},
            {self._name("done", e): column for e, column in done.items()},
            span,
        )
        finish: Done = partial(self._chain_done, batch, linked, opened, done, ready.layouts, marks)
        if span > 1:
            finish = partial(self._spans_done, batch, opened, done, finish)
        if self._means.errands is not None:
            finish = partial(_hand_over, self._means.errands, finish)
        bind, bind_timed = ready.bind, ready.bind_timed
        if span > 1 and ready.spans is not None:
            bind, bind_timed = ready.spans
        run = bind(**columns) if marks is None else bind_timed(marks, **columns)
        job = Job(
            run, count, finish, self._widths[batch.stage], order=batch.index,
            keep_going=self._means.bad_samples.keeps_going, samples=batch.size,
        )  # fmt: skip
        self._means.threads.submit(job)

    def _span(self, batch: Batch, linked: LinkedChain, ready: Linked) -> int:
        """Return how many samples to do in one call."""
        is_known = all(self._slots[e].guesses for e in linked.chain.delivers)
        if ready.spans is None or self._misses[batch.stage] >= _MISSES or not is_known:
            return 1
        sample = 0
        for edge in linked.chain.inputs:
            dense = batch.values[edge].dense()
            if dense is None:
                return 1
            sample += dense.nbytes // batch.size
        share = -(-batch.size // (_SPANS * self._means.threads.count))
        return max(1, min(_SPAN // max(sample, 1), share))

    def _spans_done(
        self,
        batch: Batch,
        opened: Mapping[DataNode, Any],
        done: Mapping[DataNode, list[Any]],
        finish: Done,
        failures: dict[int, BaseException],
    ) -> None:
        """Go on where every span was written to its place; else do the samples one by one, each by itself."""
        if not failures and all(
            all(map(op.is_, column_, opened[edge][1])) for edge, column_ in done.items()
        ):
            self._misses[batch.stage] = 0
            finish(failures)
            return
        failures.clear()
        if batch.finished.is_set():
            return  # closed, or interrupted and given up
        self._misses[batch.stage] += 1
        try:
            self._submit_chain(batch, in_spans=False)
        except BaseException as error:
            self.fail(batch, error, first=batch.stage + 1)

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
        if batch.finished.is_set():
            return  # closed, or interrupted and given up
        try:
            if marks is not None:
                self._means.profile.chain(marks, linked.chain.nodes, batch.index)
                self.light |= marks.light(linked.chain.nodes)
            if failures:
                self._leave_out(batch, self._before(batch), done, failures, linked.node_at)
            for edge, column_ in done.items():
                dense, parts = opened[edge]
                batch.values[edge] = self._on_device(
                    edge,
                    self._slots[edge].close(
                        dense, parts, column_, layouts[edge], self._source_infos(batch, edge)
                    ),
                )
        except BaseException as error:
            self.fail(batch, error, first=batch.stage + 1)
            return
        self._next_stage(batch)

    def _on_device(self, edge: DataNode, batch: TensorList) -> TensorList:
        """Bring what a "mixed" operator made on the CPU to where it belongs."""
        if edge.device == "cpu":
            return batch
        with self._means.lane.context():
            return self._means.lane.to_device(batch)

    def _source_infos(self, batch: Batch, edge: DataNode) -> Sequence[str] | None:
        """Return where the samples of an edge come from, as the reader or the source of them says."""
        origin = self._origins[batch.stage][edge]
        if origin is None:
            return None
        keys = batch.keys.get(origin.source) if origin.source is not None else None
        if keys is None or origin not in self._origins[batch.stage]:
            return batch.values[origin].source_infos
        assert origin.source is not None
        dataset = self._means.readers[origin.source].dataset
        return [getattr(dataset, "source_info", dataset.info)(r) for r in keys.records.tolist()]

    def _next_stage(self, batch: Batch) -> None:
        if self._means.settings.memory_stats:
            self._means.memory.record(batch.values)
        for edge in self.plan.dies[batch.stage]:
            batch.values.pop(edge, None)
        batch.stage += 1
        if batch.stage == len(self.plan.stages):
            self.finish(batch)
        else:
            self._turns[batch.stage].enter(batch.index, partial(self._run_steps, batch))

    def fail(self, batch: Batch, error: BaseException, first: int = 0) -> None:
        """End a batch, and let those behind it pass the turns that it will not take, from the first on."""
        for turn in self._turns[first:]:
            turn.enter(batch.index, turn.leave)
        self.finish(batch, error)

    def finish(self, batch: Batch, error: BaseException | None = None) -> None:
        """End a batch, unless it has ended."""
        if batch.finished.is_set():
            return  # close() was faster
        batch.error = error
        if error is None:
            batch.outputs = tuple(batch.values[e] for e in self.plan.graph.outputs)
        batch.values.clear()
        batch.finished.set()


def _hand_over(errands: Errands, finish: Done, failures: dict[int, BaseException]) -> None:
    """Let the thread that waits for the batch carry it on."""
    errands.put(partial(finish, failures))
