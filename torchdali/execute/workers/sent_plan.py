"""A plan on its way to a process that knows no graph, which plans again and opens the readers there."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torchdali import pickling
from torchdali.execute.bad_samples import BadSamples, Policy
from torchdali.execute.batch import Settings
from torchdali.execute.workers.replica import Task
from torchdali.execute.workers.server import Order
from torchdali.graph import Condition, DataNode, Graph, Node, SourceLine
from torchdali.plan import Plan, plan
from torchdali.registry import registry

__all__ = ["Begin", "SentPlan", "begin_of", "new_task", "readers_of"]

Begin = tuple[Settings, Policy, "int | None"]
"""Settings of a replica, and what to do when a sample fails."""


def begin_of(settings: Settings, bad_samples: BadSamples) -> Begin:
    """Return what a replica begins with; the device, and the budget of bad samples, are the user's process's."""
    return replace(settings, device=None, synchronous=False), bad_samples.policy, bad_samples.budget


def readers_of(planned: Plan, stages: int) -> list[Node]:
    """Return the readers in the first stages."""
    chains = [stage.chain for stage in planned.stages[:stages]]
    return [n for c in chains if c is not None for n in c.nodes if n.operator.kind == "reader"]


def new_task(
    planned: Plan,
    stages: int,
    datasets: Mapping[Node, Any],
    begin: Begin,
    order: Order,
) -> Task:
    """Return the task of a replica.

    Args:
        planned: The plan, of which the first `stages` run there.
        datasets: Per reader, as the process of the user opened it.
    """
    opened = {n: d if _is_ours(d) else n.operator.body(**n.constants) for n, d in datasets.items()}
    settings, policy, budget = begin
    return Task(
        planned, stages, opened, replace(settings, num_threads=order.threads), order.first_thread, order.cores,
        BadSamples(policy, budget),
    )  # fmt: skip


def _is_ours(dataset: Any) -> bool:
    """Return True for a data set that keeps no file open, or position in one: those of torchdali map files."""
    return type(dataset).__module__.startswith("torchdali.")


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
class SentPlan:
    """The message from which such a process makes its task."""

    modules: tuple[str, ...]
    nodes: tuple[_SentNode, ...]
    outputs: tuple[_Edge, ...]
    stages: int
    begin: Begin

    @classmethod
    def of(cls, planned: Plan, stages: int, begin: Begin) -> SentPlan:
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
        readers = readers_of(planned, self.stages)
        datasets = {n: n.operator.body(**n.constants) for n in readers}
        return new_task(planned, self.stages, datasets, self.begin, order)
