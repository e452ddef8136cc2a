"""Turn a graph into a plan: steps that run over a whole batch, and chains of per-sample operators.

A plan is a list of stages. A stage first runs its steps in order, each over the whole batch: sources, random
parameters, permutations, and all operators on an accelerator. Then the stage runs its chain: a sample passes through
all operators of the chain while the sample is in the CPU's cache.

A chain processes a batch in *chunks* of one or more samples; `execute.chunks` chooses the size for each batch. Planning
has no side effects. `print` shows a plan as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from torchdali.graph.nodes import DataNode, Graph, Node

__all__ = [
    "Chain", "HostValue", "Plan", "Stage", "StepKind", "choose_kinds", "create_host_value", "edges",
    "find_encoded_operator", "is_metadata", "list_nodes", "may_share", "plan",
]  # fmt: skip


class HostValue(NamedTuple):
    """The use of an edge (a node's output) as an argument or condition of another node. The values must be on the CPU.

    Attributes:
        node: The node that uses the edge.
        name: Name of the argument; "" for a condition.
        axes: Number of axes of the argument's values, see `schema.Argument`.
        frames: True if the argument also accepts one value per frame.
    """

    edge: DataNode
    node: Node
    name: str
    axes: int | None
    frames: bool

    @property
    def key(self) -> tuple[DataNode, int | None, bool]:
        """Key of the use. If several uses have the same key, the values are converted to Python numbers only once."""
        return self.edge, self.axes, self.frames


@dataclass(frozen=True)
class Chain:
    """Per-sample operators that run together.

    Attributes:
        nodes: The operators, in order of execution.
        inputs: Edges from steps or earlier chains that are inputs of the operators.
        values: Uses of edges from steps or earlier chains as conditions or per-sample arguments of the operators. Of
            several uses with the same key, only the first use is included.
        outputs: Edges that the chain computes for a later stage or for the user.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[DataNode, ...]
    values: tuple[HostValue, ...]
    outputs: tuple[DataNode, ...]

    @property
    def accepts_tensors(self) -> bool:
        """True if each operator can process several samples in one call, stacked in one tensor."""
        return all(map(_accepts_tensors, self.nodes))


@dataclass(frozen=True)
class Stage:
    """Steps over the batch, then a chain over the samples. A stage may have no steps, or no chain."""

    steps: tuple[Node, ...]
    chain: Chain | None


@dataclass(frozen=True)
class Plan:
    """The stages that the executor runs for every batch.

    Attributes:
        stages: The stages, in order.
        last_used: For each stage, the edges that no later stage uses. Outputs of the pipeline aren't included.
        index: Index of each node in ``graph.nodes``.
    """

    graph: Graph
    stages: tuple[Stage, ...]
    last_used: tuple[tuple[DataNode, ...], ...]
    index: dict[Node, int] = field(repr=False)

    def __str__(self) -> str:
        parts = []
        for i, stage in enumerate(self.stages):
            parts.append(f"stage {i}")
            parts += [f"  over the batch: {node}" for node in stage.steps]
            if stage.chain is not None:
                parts.append(f"  for each {'chunk of samples' if stage.chain.accepts_tensors else 'sample'}:")
                parts += [f"    {node}{_where(node)}" for node in stage.chain.nodes]
        return "\n".join(parts)


def list_nodes(stages: Iterable[Stage]) -> list[Node]:
    """Return all steps and all nodes of chains in the passed stages."""
    return [node for s in stages for node in (*s.steps, *(s.chain.nodes if s.chain else ()))]


class StepKind(IntEnum):
    """The two methods of running a node in a stage. Nodes with the smaller number run first.

    Attributes:
        STEP: The node runs over the whole batch.
        SAMPLE: The node runs in a chain.
    """

    STEP = 0
    SAMPLE = 1


def plan(graph: Graph) -> Plan:
    """Divide a graph into as few stages as possible."""
    index = {node: i for i, node in enumerate(graph.nodes)}
    kind_of = choose_kinds(graph)
    slots = {node: (level, kind_of[node]) for node, level in _assign_levels(graph, kind_of).items()}
    slots.update(_defer_copies(graph, slots))
    count = 1 + max((level for level, _ in slots.values()), default=-1)
    divided: list[tuple[list[Node], list[Node]]] = []
    for level in range(count):
        steps, chained = ([n for n in graph.nodes if slots[n] == (level, kind)] for kind in StepKind)
        separate = _choose_separate(chained)
        if separate:
            divided.append((steps, [n for n in chained if n in separate]))
            steps, chained = [], [n for n in chained if n not in separate]
        if steps or chained:
            divided.append((steps, chained))
    stage_of = {n: i for i, (steps, chained) in enumerate(divided) for n in (*steps, *chained)}
    outputs, last_uses = set(graph.outputs), _find_last_uses(graph, stage_of)
    stages = []
    for i, (steps, chained) in enumerate(divided):
        needed_later = {e for e, last in last_uses.items() if last > i} | outputs
        stages.append(Stage(tuple(steps), _build_chain(chained, needed_later) if chained else None))
    last_used = tuple(
        tuple(e for e, last in last_uses.items() if last == i and e not in outputs) for i in range(len(divided))
    )
    return Plan(graph, tuple(stages), last_used, index)


def choose_kinds(graph: Graph) -> dict[Node, StepKind]:
    """Choose for each node whether it is a step or runs in a chain.

    Per-sample operators on the CPU run in chains, with one exception: an operator on small values that don't depend on
    a reader or source, for example on a random angle, is a step. If this operator were in the chain of a decoder, the
    native library couldn't run the whole chain in one call.
    """
    kind_of: dict[Node, StepKind] = {}
    data: set[Node] = set()  # nodes that depend on a reader or source
    for node in graph.nodes:
        declared, parents = node.operator, _parents(node)
        inputs = [_source(e) for e in node.inputs if e is not None and not is_metadata(e)]
        if declared.kind in ("reader", "source") or not data.isdisjoint(inputs):
            data.add(node)
        is_parameter = node not in data and _accepts_tensors(node) and all(kind_of[p] is StepKind.STEP for p in parents)
        is_step = is_parameter or declared.kind not in ("sample", "reader") or node.device == "gpu"
        kind_of[node] = StepKind.STEP if is_step else StepKind.SAMPLE
    return kind_of


def _accepts_tensors(node: Node) -> bool:
    return node.operator.accepts_tensors and not (node.scope or node.operator.schema.random)


def _choose_separate(chained: Sequence[Node]) -> set[Node]:
    """Return the operators of a level (see `_assign_levels`) that get their own chain, before the other operators.

    These operators can process several samples in one call, stacked in one tensor, and exchange no data with the other
    operators. Operators that exchange data stay in one chain, because the sample is then still in the CPU's cache.
    """
    separate = {node for node in chained if _accepts_tensors(node)}
    while True:
        others = set(chained) - separate
        joining = {node for node in separate if not others.isdisjoint(_parents(node))}
        joining |= {_source(e) for n in others for e in n.inputs if e is not None and not is_metadata(e)} & separate
        if not joining:
            return separate
        separate -= joining


def _parents(node: Node) -> list[Node]:
    return [_source(e) for e in edges(node) if not is_metadata(e)]


def _assign_levels(graph: Graph, kind_of: dict[Node, StepKind]) -> dict[Node, int]:
    """Return the level of each node. The nodes of a level form one or two stages.

    A step that needs the result of a chain begins a new level. Steps run as early as possible, and nodes of chains as
    late as possible, so that nodes that depend on different steps can be in one chain.
    """
    levels: dict[Node, int] = {}
    for node in graph.nodes:
        earliest = [levels[p] + (kind_of[p] > kind_of[node]) for p in _parents(node)]
        levels[node] = max(earliest, default=0)
    last = {kind: max((levels[n] for n in levels if kind_of[n] is kind), default=0) for kind in StepKind}
    latest = {n: last[kind_of[n]] for n in graph.nodes if kind_of[n] is not StepKind.STEP}
    for node in reversed(graph.nodes):
        levels[node] = latest.get(node, levels[node])
        for p in _parents(node):
            if p in latest:
                latest[p] = min(latest[p], levels[node] - (kind_of[p] > kind_of[node]))
    return levels


def _defer_copies(graph: Graph, slots: dict[Node, tuple[int, StepKind]]) -> dict[Node, tuple[int, StepKind]]:
    """Return a later slot (a pair of level and kind) for each node that copies data to the device.

    A copy that other nodes use gets the level of the first of these nodes. A copy that no node uses gets the level of
    the last step on the device. Without later slots, labels would be copied separately, before images are decoded.
    """
    steps = {n: level for n, (level, kind) in slots.items() if kind is StepKind.STEP}
    last = max((level for n, level in steps.items() if n.device == "gpu"), default=0)
    levels = {n: last for n in steps if n.operator.name == "_to_device" and not n.scope}
    for node in graph.nodes:
        for edge in edges(node):
            if edge.source in levels:
                levels[edge.source] = min(levels[edge.source], slots[node][0])
    return {n: (max(level, steps[n]), StepKind.STEP) for n, level in levels.items()}


def _find_last_uses(graph: Graph, stage_of: dict[Node, int]) -> dict[DataNode, int]:
    """Return for each edge the index of the last stage that uses the edge."""
    last: dict[DataNode, int] = {}
    for node in graph.nodes:
        for edge in edges(node):
            last[edge] = max(last.get(edge, 0), stage_of[node])
    return last


def edges(node: Node) -> Iterable[DataNode]:
    """Return all edges that a node reads, including the edges of its conditions."""
    inputs = [e for e in node.inputs if e is not None]
    return [*inputs, *node.per_sample.values(), *(c.edge for c in node.scope)]


def create_host_value(edge: DataNode, node: Node, name: str = "") -> HostValue:
    """Return the use of an edge as the node's argument `name`. If `name` is empty, return the use as a condition."""
    argument = node.operator.schema.arguments.get(name)
    axes = None if argument is None else node.operator.axes_of(name)
    return HostValue(edge, node, name, axes, argument is not None and argument.edge != "sample")


def may_share(outputs: Iterable[DataNode]) -> bool:
    """Return whether two outputs may be views of the same memory, because they depend on the same edge."""
    seen: set[DataNode] = set()
    for output in set(outputs):
        ancestors, stack = set[DataNode](), [output]
        while stack:
            edge = stack.pop()
            if edge not in ancestors:
                ancestors.add(edge)
                stack += [each for each in _source(edge).inputs if each is not None]
        if not seen.isdisjoint(ancestors):
            return True
        seen |= ancestors
    return False


def _source(edge: DataNode) -> Node:
    assert edge.source is not None, f"{edge} was created by hand and doesn't belong to an operator"
    return edge.source


def is_metadata(edge: DataNode) -> bool:
    """Return whether an edge is a reader's output that is known without reading the record, for example a label."""
    source = _source(edge)
    return edge.index >= len(source.outputs) - source.operator.metadata


def is_shared(edge: DataNode) -> bool:
    """Return whether an edge is the output of a decoder that also uses the device's hardware decoder."""
    node = edge.source
    if node is None or edge.index or not node.operator.has("shared"):
        return False
    return bool(node.constants.get("hw_decoder_load", 0) > 0)


def find_encoded_operator(chain: Chain) -> Node | None:
    """Return a chain's only operator if it processes several encoded samples in one call; otherwise None.

    The chain may also contain the reader of the encoded samples, but no other operators.
    """
    *readers, node = chain.nodes
    edge = node.inputs[0] if len(node.inputs) == 1 else None
    if edge is None or is_metadata(edge) or node.scope or "encoded" not in node.operator.chunks:
        return None
    are_readers = all(
        n is edge.source and n.operator.kind == "reader" and not (n.per_sample or n.scope) for n in readers
    )
    delivers_outputs = list(map(id, chain.outputs)) == list(map(id, node.outputs))
    return node if are_readers and delivers_outputs else None


def _build_chain(nodes: Sequence[Node], needed_later: set[DataNode]) -> Chain:
    computed = {o for n in nodes for o in n.outputs if not is_metadata(o)}
    inputs, values = dict[DataNode, None](), dict[object, HostValue]()
    for node in nodes:
        inputs.update((e, None) for e in node.inputs if e is not None and e not in computed)
        arguments = [create_host_value(c.edge, node) for c in node.scope]
        arguments += [create_host_value(e, node, name) for name, e in node.per_sample.items()]
        for value in arguments:
            if value.edge not in computed:
                values.setdefault(value.key, value)
    outputs = [o for n in nodes for o in n.outputs if o in needed_later and not is_metadata(o)]
    return Chain(tuple(nodes), tuple(inputs), tuple(values.values()), tuple(outputs))


def _where(node: Node) -> str:
    line = f" line {node.lines[0].line}" if node.lines else ""
    return f"  # {node.title}{line}"
