"""Turn a graph into a plan: which steps run over a whole batch, and what is fused into chains.

A plan is a list of stages. A stage first runs its steps, in order, each over the batch (sources, random
parameters, permutations, everything on an accelerator); then its chain, one function that takes a sample
through all its per-sample operators while it is in cache.

Every chain takes *chunks* of samples, of one or more; how many a chunk has is decided for each batch anew
(`execute.chunks`). Here it is decided which operators form a chain of `Kind.TENSOR`, since each has a body for samples
in one tensor (`decorators.chunk`). Planning is pure, and a plan prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from torchdali.graph.nodes import DataNode, Graph, Node

__all__ = [
    "Chain", "Kind", "Plan", "Stage", "Value", "edges", "encoded_operator", "is_metadata", "kinds", "may_share",
    "nodes_of", "plan", "value_of",
]  # fmt: skip


class Value(NamedTuple):
    """Values of an edge that an operator takes as numbers.

    Attributes:
        node: The operator.
        name: Of its argument; "" for a condition.
        axes: Of the argument, see `schema.Argument`.
        frames: The argument takes one value a frame, too.
    """

    edge: DataNode
    node: Node
    name: str
    axes: int | None
    frames: bool

    @property
    def key(self) -> tuple[DataNode, int | None, bool]:
        """The same for operators that take an edge as the same numbers."""
        return self.edge, self.axes, self.frames


@dataclass(frozen=True)
class Chain:
    """Per-sample operators, fused.

    Attributes:
        nodes: In order of execution.
        inputs: Edges that come from steps or earlier chains, as inputs of operators.
        values: Edges from there that are needed as Python numbers: conditions, and per-sample arguments; of those with
            one key the first.
        delivers: Edges that a later step or the user needs.
        in_tensors: Each operator has a body for samples in one tensor. The plan then prints "for each chunk of
            samples", otherwise "for each sample", which has chunks, too.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[DataNode, ...]
    values: tuple[Value, ...]
    delivers: tuple[DataNode, ...]
    in_tensors: bool


@dataclass(frozen=True)
class Stage:
    """Steps over the batch, then a chain over its samples (either may be empty)."""

    steps: tuple[Node, ...]
    chain: Chain | None


@dataclass(frozen=True)
class Plan:
    """The stages that the executor runs for every batch.

    Attributes:
        dies: Per stage, the edges that nothing needs after it.
    """

    graph: Graph
    stages: tuple[Stage, ...]
    dies: tuple[tuple[DataNode, ...], ...]
    index: dict[Node, int] = field(repr=False)

    def __str__(self) -> str:
        parts = []
        for i, stage in enumerate(self.stages):
            parts.append(f"stage {i}")
            parts += [f"  over the batch: {node}" for node in stage.steps]
            if stage.chain is not None:
                parts.append(f"  for each {'chunk of samples' if stage.chain.in_tensors else 'sample'}:")
                parts += [f"    {node}{_where(node)}" for node in stage.chain.nodes]
        return "\n".join(parts)


def nodes_of(stages: Iterable[Stage]) -> list[Node]:
    """Return the nodes that run in stages: steps, and those of chains."""
    return [node for s in stages for node in (*s.steps, *(s.chain.nodes if s.chain else ()))]


class Kind(IntEnum):
    """Ways to run a node; in a stage, those of the first kind run first.

    Attributes:
        STEP: Over the batch.
        TENSOR: In a chain of operators that each have a body for samples in one tensor.
        SAMPLE: In a chain with others.
    """

    STEP = 0
    TENSOR = 1
    SAMPLE = 2


def plan(graph: Graph) -> Plan:
    """Divide a graph into stages, as few as its operators over whole batches allow."""
    index = {node: i for i, node in enumerate(graph.nodes)}
    of_kind = kinds(graph)
    # Three slots a level: one kind each. Steps and what follows them in chunks are one stage.
    slots = {node: (level, of_kind[node]) for node, level in _levels(graph, of_kind).items()}
    slots.update(_late_copies(graph, slots))
    count = 1 + max((level for level, _ in slots.values()), default=-1)
    divided: list[tuple[list[Node], list[Node], bool]] = []
    for level in range(count):
        steps, in_tensors, others = ([n for n in graph.nodes if slots[n] == (level, kind)] for kind in Kind)
        if in_tensors:
            divided.append((steps, in_tensors, True))
            steps = []
        if steps or others:
            divided.append((steps, others, False))
    stage_of = {n: i for i, (steps, chained, _) in enumerate(divided) for n in (*steps, *chained)}
    outputs, needed = set(graph.outputs), _last_uses(graph, stage_of)
    stages = []
    for i, (steps, chained, alike) in enumerate(divided):
        later = {e for e, last in needed.items() if last > i} | outputs
        chain = _chain(chained, later, alike) if chained else None
        stages.append(Stage(tuple(steps), chain))
    dies = tuple(tuple(e for e, last in needed.items() if last == i and e not in outputs) for i in range(len(divided)))
    return Plan(graph, tuple(stages), dies, index)


def kinds(graph: Graph) -> dict[Node, Kind]:
    """Decide how each node runs.

    Per-sample operators on the CPU are fused into chains. Those with a body for samples in one tensor have chains of
    their own. But one that works on what a chain of other operators computes, or computes data for one, joins that
    chain, while the sample is in cache. Everything else is a step.
    """
    kind_of = {node: _kind(node) for node in graph.nodes}
    while joining := _joining(graph, kind_of):
        kind_of.update(dict.fromkeys(joining, Kind.SAMPLE))
    return kind_of


def _kind(node: Node) -> Kind:
    declared = node.operator
    if declared.kind not in ("sample", "reader") or node.device == "gpu":
        return Kind.STEP
    is_alike = not (node.scope or declared.schema.random)
    return Kind.TENSOR if declared.takes_tensors and is_alike else Kind.SAMPLE


def _joining(graph: Graph, kind_of: dict[Node, Kind]) -> set[Node]:
    """Return the nodes that would be of the kind `TENSOR` before or after one that is not."""
    joining = set()
    of_source = _of_source(graph)
    for node in graph.nodes:
        if kind_of[node] is Kind.TENSOR and any(kind_of[p] is Kind.SAMPLE for p in _parents(node)):
            joining.add(node)
        elif kind_of[node] is Kind.SAMPLE:
            before = {_source(e) for e in node.inputs if e is not None and not is_metadata(e)}
            joining |= {n for n in before & of_source if kind_of[n] is Kind.TENSOR}
    return joining


def _of_source(graph: Graph) -> set[Node]:
    """Return the nodes whose inputs come from a reader or source: they see data, the others parameters."""
    nodes: set[Node] = set()
    for node in graph.nodes:
        inputs = [_source(e) for e in node.inputs if e is not None]
        if node.operator.kind in ("reader", "source") or not nodes.isdisjoint(inputs):
            nodes.add(node)
    return nodes


def _parents(node: Node) -> list[Node]:
    """Return the nodes that must run before a node."""
    return [_source(e) for e in edges(node) if not is_metadata(e)]


def _levels(graph: Graph, of_kind: dict[Node, Kind]) -> dict[Node, int]:
    """Number the level of each node: one starts where a node needs a result of a later kind.

    Steps run as early as they can. Nodes of chains run as late as they can, so that those of one kind that depend on
    different steps are in one chain.
    """
    levels: dict[Node, int] = {}
    for node in graph.nodes:
        after = [levels[p] + (of_kind[p] > of_kind[node]) for p in _parents(node)]
        levels[node] = max(after, default=0)
    last = {kind: max((levels[n] for n in levels if of_kind[n] is kind), default=0) for kind in Kind}
    latest = {n: last[of_kind[n]] for n in graph.nodes if of_kind[n] is not Kind.STEP}
    for node in reversed(graph.nodes):
        levels[node] = latest.get(node, levels[node])
        for p in _parents(node):
            if p in latest:
                latest[p] = min(latest[p], levels[node] - (of_kind[p] > of_kind[node]))
    return levels


def _late_copies(graph: Graph, slots: dict[Node, tuple[int, Kind]]) -> dict[Node, tuple[int, Kind]]:
    """Return slots of copies to the device: with what uses them first, or else the last step there.

    So small values, as labels, do not go up alone before the images are decoded.
    """
    steps = {n: level for n, (level, kind) in slots.items() if kind is Kind.STEP}
    last = max((level for n, level in steps.items() if n.device == "gpu"), default=0)
    levels = {n: last for n in steps if n.operator.name == "_to_device" and not n.scope}
    for node in graph.nodes:
        for edge in edges(node):
            if edge.source in levels:
                levels[edge.source] = min(levels[edge.source], slots[node][0])
    return {n: (max(level, steps[n]), Kind.STEP) for n, level in levels.items()}


def _last_uses(graph: Graph, stage_of: dict[Node, int]) -> dict[DataNode, int]:
    """Return the last stage that needs each edge."""
    last: dict[DataNode, int] = {}
    for node in graph.nodes:
        for edge in edges(node):
            last[edge] = max(last.get(edge, 0), stage_of[node])
    return last


def edges(node: Node) -> Iterable[DataNode]:
    """Return all edges that a node reads, with those of its conditions."""
    inputs = [e for e in node.inputs if e is not None]
    return [*inputs, *node.per_sample.values(), *(c.edge for c in node.scope)]


def value_of(edge: DataNode, node: Node, name: str = "") -> Value:
    """Return how an operator takes an argument given per sample; without a name, a condition."""
    argument = node.operator.schema.arguments.get(name)
    axes = None if argument is None else node.operator.axes_of(name)
    return Value(edge, node, name, axes, argument is not None and argument.edge != "sample")


def may_share(outputs: Iterable[DataNode]) -> bool:
    """Return True if something leads to two outputs, so that both may be views of it."""
    known: set[DataNode] = set()
    for output in set(outputs):
        own, rest = set[DataNode](), [output]
        while rest:
            edge = rest.pop()
            if edge not in own:
                own.add(edge)
                rest += [each for each in _source(edge).inputs if each is not None]
        if not known.isdisjoint(own):
            return True
        known |= own
    return False


def _source(edge: DataNode) -> Node:
    assert edge.source is not None, f"{edge} was made by hand and belongs to no operator"
    return edge.source


def is_metadata(edge: DataNode) -> bool:
    """Return True for an output of a reader that is known without reading."""
    source = _source(edge)
    return edge.index >= len(source.outputs) - source.operator.metadata


def encoded_operator(chain: Chain) -> Node | None:
    """Return the operator of a chain that takes several encoded samples in one call, from elsewhere or from a reader.

    None if it has no body for them, or if the chain has other operators.
    """
    *before, node = chain.nodes
    edge = node.inputs[0] if len(node.inputs) == 1 else None
    if edge is None or is_metadata(edge) or node.scope or "encoded" not in node.operator.chunks:
        return None
    reads = all(n is edge.source and n.operator.kind == "reader" and not (n.per_sample or n.scope) for n in before)
    delivers_all = list(map(id, chain.delivers)) == list(map(id, node.outputs))
    return node if reads and delivers_all else None


def _chain(nodes: Sequence[Node], later: set[DataNode], in_tensors: bool) -> Chain:
    computed = {o for n in nodes for o in n.outputs if not is_metadata(o)}
    inputs, values = dict[DataNode, None](), dict[object, Value]()
    for node in nodes:
        inputs.update((e, None) for e in node.inputs if e is not None and e not in computed)
        arguments = [value_of(c.edge, node) for c in node.scope]
        arguments += [value_of(e, node, name) for name, e in node.per_sample.items()]
        for value in arguments:
            if value.edge not in computed:
                values.setdefault(value.key, value)
    delivers = [o for n in nodes for o in n.outputs if o in later and not is_metadata(o)]
    return Chain(tuple(nodes), tuple(inputs), tuple(values.values()), tuple(delivers), in_tensors)


def _where(node: Node) -> str:
    line = f" line {node.lines[0].line}" if node.lines else ""
    return f"  # {node.title}{line}"
