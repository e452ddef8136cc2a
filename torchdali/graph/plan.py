"""Turn a graph into a plan: which steps run over a whole batch, and what is fused into chains.

A plan is a list of stages. A stage first runs its steps, in order, each over the batch (sources, random
parameters, permutations, everything on an accelerator); then its chain, one function that takes a sample
through all its per-sample operators while it is in cache: a list of calls, one an operator.

The same calls take one sample, or a *chunk* of several. Here it is decided which operators form a chain that takes
samples in one tensor, since each has a body for such (`decorators.chunk`); how many samples a chunk has, for each
batch anew (`execute.chunks`). Planning is pure, and a plan prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from torchdali.graph.nodes import DataNode, Graph, Node

__all__ = ["Argument", "Call", "Chain", "Kind", "Plan", "Stage", "Value", "column", "is_metadata", "kinds", "plan"]


class Value(NamedTuple):
    """Values of an edge that a chain takes as numbers.

    Attributes:
        node: The first node that takes them so.
        name: Of its argument; "" for a condition.
        axes: Of the argument, see `schema.Argument`.
        frames: The argument takes one value a frame, too; it shares no column with one that does not.
    """

    edge: DataNode
    node: Node
    name: str
    axes: int | None
    frames: bool

    @property
    def kind(self) -> str:
        """Kind of the column; see `column`."""
        return {None: "value", 0: "number", 1: "list"}[self.axes]

    @property
    def detail(self) -> str:
        """The rest of the column's name."""
        return f"{self.edge.index}{'f' if self.frames else ''}"


class Argument(NamedTuple):
    """The place where a call finds an argument.

    Attributes:
        place: Name of a column; or number of a result of an earlier call of the chain.
        form: ``"tensor"`` if it is wanted as it is, otherwise the kind of value, see `column`.
        name: Of the argument.
        frames: See `Value`.
    """

    place: str | int
    form: str = "tensor"
    name: str = ""
    frames: bool = False


class Delivery(NamedTuple):
    """A result that leaves the chain.

    Attributes:
        result: Number of the result among those of its operator.
        slot: Column of its places in the batch; None if the operator has written there.
        done: Column that gets it.
    """

    result: int
    slot: str | None
    done: str


@dataclass(frozen=True)
class Call:
    """An operator of a chain.

    Attributes:
        conditions: Values that must hold, and what they must be; otherwise the results are None.
        inputs: None for one that is not there.
        arguments: Those given per sample, by name.
        columns: Columns of other arguments, by name: random numbers, and memory for the result.
        first: Number of the first result; the others follow.
        count: Number of results.
    """

    node: Node
    conditions: tuple[tuple[Argument, bool | int], ...]
    inputs: tuple[Argument | None, ...]
    arguments: tuple[tuple[str, Argument], ...]
    columns: tuple[tuple[str, str], ...]
    first: int
    count: int
    deliveries: tuple[Delivery, ...]


@dataclass(frozen=True)
class Chain:
    """Per-sample operators, fused.

    Attributes:
        nodes: In order of execution.
        inputs: Edges that come from steps or earlier chains, as inputs of operators.
        values: Edges from there that are needed as Python numbers: conditions, and per-sample arguments, with the
            number of axes that they declare.
        delivers: Edges that a later step or the user needs.
        parameters: Names of the columns that the calls take; an item of a column is of one sample, or of a chunk.
        calls: One a node.
        in_chunks: True if each operator has a body for samples in one tensor.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[DataNode, ...]
    values: tuple[Value, ...]
    delivers: tuple[DataNode, ...]
    parameters: tuple[str, ...]
    calls: tuple[Call, ...]
    in_chunks: bool


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
                parts.append(f"  for each {'chunk of samples' if stage.chain.in_chunks else 'sample'}:")
                parts += [f"    {node}{_where(node)}" for node in stage.chain.nodes]
        return "\n".join(parts)


class Kind(IntEnum):
    """Ways to run a node; in a stage, those of the first kind run first."""

    STEP = 0
    CHUNK = 1
    SINGLE = 2


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
        steps, chunked, single = ([n for n in graph.nodes if slots[n] == (level, kind)] for kind in Kind)
        if chunked:
            divided.append((steps, chunked, True))
            steps = []
        if steps or single:
            divided.append((steps, single, False))
    stage_of = {n: i for i, (steps, chained, _) in enumerate(divided) for n in (*steps, *chained)}
    outputs, needed = set(graph.outputs), _last_uses(graph, stage_of)
    stages = []
    for i, (steps, chained, in_chunks) in enumerate(divided):
        later = {e for e, last in needed.items() if last > i} | outputs
        chain = _chain(chained, later, index, in_chunks) if chained else None
        stages.append(Stage(tuple(steps), chain))
    dies = tuple(tuple(e for e, last in needed.items() if last == i and e not in outputs) for i in range(len(divided)))
    return Plan(graph, tuple(stages), dies, index)


def kinds(graph: Graph) -> dict[Node, Kind]:
    """Decide how each node runs.

    Per-sample operators on the CPU are fused into chains. One with a body for samples in one tensor runs in chunks,
    unless it works on what a chain of single samples computes, or computes data for one: then it joins that chain,
    while the sample is in cache. Everything else is a step.
    """
    kind_of = {node: _kind(node) for node in graph.nodes}
    while joining := _joining(graph, kind_of):
        kind_of.update(dict.fromkeys(joining, Kind.SINGLE))
    return kind_of


def _kind(node: Node) -> Kind:
    declared = node.operator
    if declared.kind not in ("sample", "reader") or node.device == "gpu":
        return Kind.STEP
    is_alike = not (node.scope or declared.schema.random)
    return Kind.CHUNK if "tensor" in declared.chunks and is_alike else Kind.SINGLE


def _joining(graph: Graph, kind_of: dict[Node, Kind]) -> set[Node]:
    """Return the nodes that would run in chunks before or after one that runs on single samples."""
    joining = set()
    of_source = _of_source(graph)
    for node in graph.nodes:
        if kind_of[node] is Kind.CHUNK and any(kind_of[p] is Kind.SINGLE for p in _parents(node)):
            joining.add(node)
        elif kind_of[node] is Kind.SINGLE:
            before = {_source(e) for e in node.inputs if e is not None and not is_metadata(e)}
            joining |= {n for n in before & of_source if kind_of[n] is Kind.CHUNK}
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


# ---------------------------------------------------------------- the calls of a chain


def column(kind: str, index: int, detail: object = 0) -> str:
    """Name a column of a chain: input, value (number, list), key, rng, slot or delivered, of a node's output."""
    return f"{kind}{index}_{detail}"


def _lent(nodes: Sequence[Node], delivers: Collection[DataNode]) -> dict[Node, Node]:
    """Find arithmetic whose result only serves other arithmetic: it may be computed where that puts its own.

    Returns:
        The node, by whose place in the batch another is lent it.
    """
    uses = Counter(edge for node in nodes for edge in edges(node))
    inside, lent = set(nodes), dict[Node, Node]()
    for last in nodes:
        if not last.operator.name.startswith("math.") or last.outputs[0] not in delivers:
            continue
        node: Node | None = last
        while node is not None:
            # One operand alone: both cannot be in one place.
            before = next((_source(e) for e in node.inputs if e is not None and _source(e) in inside), None)
            node = None
            if before is not None and before.operator.name in _WRITING and before.scope == last.scope:
                edge = before.outputs[0]
                if uses[edge] == 1 and edge not in delivers:
                    lent[before], node = last, before
    return lent


_WRITING = {"math.add", "math.mul", "math.sub", "math.truediv"}


class _Calls:
    """Makes the calls of one chain."""

    def __init__(self, index: dict[Node, int], nodes: Sequence[Node], delivers: Sequence[DataNode]) -> None:
        self.index, self.inside, self.delivers = index, set(nodes), set(delivers)
        self.lent = _lent(nodes, self.delivers)
        self.inputs: dict[DataNode, None] = {}
        self.values: dict[str, Value] = {}
        self.parameters: dict[str, None] = {}
        self.first: dict[Node, int] = {}
        self.count = 0

    def column(self, kind: str, node: Node, detail: object = 0) -> str:
        name = column(kind, self.index[node], detail)
        self.parameters.setdefault(name)
        return name

    def result(self, edge: DataNode) -> int | None:
        """Return the number of a result that the chain computes; None for other edges."""
        source = _source(edge)
        if source not in self.inside or is_metadata(edge):
            return None
        return self.first[source] + edge.index

    def tensor(self, edge: DataNode | None) -> Argument | None:
        """Return a sample's tensor: a result of the chain, or an item of a column."""
        if edge is None:
            return None
        result = self.result(edge)
        if result is not None:
            return Argument(result)
        self.inputs.setdefault(edge)
        return Argument(self.column("input", _source(edge), edge.index))

    def value(self, edge: DataNode, node: Node, name: str = "") -> Argument:
        """Return a sample's value as a Python number or list; of a chunk, as a `Column`."""
        argument = node.operator.schema.arguments.get(name)
        axes = None if argument is None else node.operator.axes_of(name)
        frames = argument is not None and argument.edge != "sample"
        value = Value(edge, node, name, axes, frames)
        result = self.result(edge)
        if result is not None:
            return Argument(result, value.kind, name, frames)
        parameter = self.column(value.kind, _source(edge), value.detail)
        self.values.setdefault(parameter, value)
        return Argument(parameter)

    def call(self, node: Node) -> Call:
        results = [o for o in node.outputs if not is_metadata(o)]
        self.first[node], first = self.count, self.count
        self.count += len(results)
        conditions = tuple((self.value(c.edge, node), c.value) for c in node.scope)
        if node.operator.kind == "reader":
            inputs: tuple[Argument | None, ...] = (Argument(self.column("key", node)),)
        else:
            inputs = tuple(map(self.tensor, node.inputs))
        arguments = tuple((name, self.value(e, node, name)) for name, e in node.per_sample.items())
        columns = []
        if node.operator.schema.random and node.operator.kind != "reader":
            columns.append(("rng", self.column("rng", node)))
        in_place = self.writes_in_place(node)
        if in_place or node in self.lent:
            columns.append(("out", self.column("slot", self.lent.get(node, node))))
        deliveries = tuple(
            Delivery(
                k,
                None if in_place and not o.index else self.column("slot", node, o.index),
                self.column("done", node, o.index),
            )
            for k, o in enumerate(results)
            if o in self.delivers
        )
        return Call(node, conditions, inputs, arguments, tuple(columns), first, len(results), deliveries)

    def writes_in_place(self, node: Node) -> bool:
        declared = node.operator
        alone = declared.schema.wants_out and len(node.outputs) == 1
        return (alone or declared.writes) and node.outputs[0] in self.delivers


def _source(edge: DataNode) -> Node:
    assert edge.source is not None, f"{edge} was made by hand and belongs to no operator"
    return edge.source


def is_metadata(edge: DataNode) -> bool:
    """Return True for an output of a reader that is known without reading."""
    source = _source(edge)
    return edge.index >= len(source.outputs) - source.operator.metadata


def _chain(nodes: Sequence[Node], later: set[DataNode], index: dict[Node, int], in_chunks: bool) -> Chain:
    delivers = [o for n in nodes for o in n.outputs if o in later and not is_metadata(o)]
    calls = _Calls(index, nodes, delivers)
    sequence = tuple(map(calls.call, nodes))
    return Chain(
        tuple(nodes), tuple(calls.inputs), tuple(calls.values.values()), tuple(delivers), tuple(calls.parameters),
        sequence, in_chunks,
    )  # fmt: skip


def _where(node: Node) -> str:
    line = f" line {node.lines[0].line}" if node.lines else ""
    return f"  # {node.title}{line}"
