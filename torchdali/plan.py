"""Turn a graph into a plan: which steps run over a whole batch, and what is fused into chains.

A plan is a list of stages. A stage first runs its steps, in order, each over the batch (sources, random
parameters, arithmetic on them, permutations, everything on an accelerator); then its chain, one function that
takes a single sample through all its per-sample operators while it is in cache. The chain is generated as
readable Python, so that between two operators there is nothing but a call. Planning is pure, and a plan prints.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from torchdali.graph import Condition, DataNode, Graph, Node

__all__ = ["Chain", "Plan", "Stage", "column", "is_known", "plan"]


@dataclass(frozen=True)
class Chain:
    """Per-sample operators, fused.

    Attributes:
        nodes: In order of execution.
        inputs: Edges that come from steps or earlier chains, as inputs of operators.
        values: Edges from there that are needed as Python numbers: per-sample arguments and conditions.
        delivers: Edges that a later step or the user needs.
        text: Source of ``bind(columns...) -> run(i)``.
        timed_text: The same, calling ``mark(i, number, results...)`` after each operator; ``bind`` takes ``mark``
            first.
        parameters: Names of the columns that ``bind`` takes.
        lines: Node of each line of the text, from line 1 (the timed text has one line more in front).
    """

    nodes: tuple[Node, ...]
    inputs: tuple[DataNode, ...]
    values: tuple[DataNode, ...]
    delivers: tuple[DataNode, ...]
    parameters: tuple[str, ...]
    text: str
    timed_text: str
    lines: tuple[Node | None, ...]


@dataclass(frozen=True)
class Stage:
    """Steps over the batch, then a chain over its samples (either may be empty)."""

    steps: tuple[Node, ...]
    chain: Chain | None


@dataclass(frozen=True)
class Plan:
    """What the executor runs for every batch.

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
                parts.append("  for each sample:")
                parts += [f"    {line}" for line in stage.chain.text.splitlines()]
        return "\n".join(parts)


def plan(
    graph: Graph,
    large: Collection[Node] = (),
    light: Collection[DataNode] = (),
    moderate: Collection[Node] = (),
    alone: Collection[Node] = (),
) -> Plan:
    """Divide a graph into stages, as few as its operators over whole batches allow.

    Args:
        large: Sources whose samples are large; what is computed from them is fused.
        light: Edges whose samples are small and of one shape; what ends a chain there is not fused.
        moderate: Those of the large ones whose batches are one tensor each, and not so large that several threads
            had better share a copy.
        alone: Nodes that were seen to do samples one by one, though their operators can do a batch in other cases.
    """
    index = {node: i for i, node in enumerate(graph.nodes)}
    fused = fused_nodes(graph, large, light, moderate, alone)
    levels = _levels(graph, fused)
    count = max(levels.values(), default=-1) + 1
    groups = [[n for n in graph.nodes if levels[n] == level] for level in range(count)]
    outputs = set(graph.outputs)
    needed = _last_uses(graph, levels)
    stages = []
    for level, nodes in enumerate(groups):
        steps = tuple(n for n in nodes if n not in fused)
        chained = [n for n in nodes if n in fused]
        later = {e for e, last in needed.items() if last > level} | outputs
        stages.append(Stage(steps, _chain(chained, steps, later, index) if chained else None))
    dies = tuple(
        tuple(e for e, last in needed.items() if last == level and e not in outputs)
        for level in range(count)
    )
    return Plan(graph, tuple(stages), dies, index)


def fused_nodes(
    graph: Graph,
    large: Collection[Node] = (),
    light: Collection[DataNode] = (),
    moderate: Collection[Node] = (),
    alone: Collection[Node] = (),
) -> frozenset[Node]:
    """Return the nodes that run sample by sample inside chains.

    These are the per-sample operators on the CPU. An operator that can take a batch as one tensor (see
    `Operator.dense`) stays out where a call for the batch costs less than a call a sample: before all chains,
    unless it comes from a source of large samples and looks at them, and after them, where all that it sees is light.
    So does one that only copies what a source of moderate samples gives, for nobody but the user.
    """
    fused: set[Node] = set()
    after_chain: set[Node] = set()
    for node in graph.nodes:
        # Of large samples the shapes are small: what only looks at these need not join their chain.
        after = fused if node.operator.by_shape else after_chain
        is_late = node in large or not after.isdisjoint(node.parents())
        is_chained = is_late or bool(node.scope) or node.operator.dense is None or node in alone
        if node.operator.kind in ("sample", "reader") and node.device != "gpu" and is_chained:
            fused.add(node)
        if is_late or node in fused:
            after_chain.add(node)
    copying = {node for node in fused if node.operator.copies and _is_plain(node)}
    copying = {
        n for n in copying if all(e is not None and _source(e) in moderate for e in n.inputs)
    }
    light_nodes = _light_nodes(graph, fused, large, light)
    return frozenset(fused - light_nodes - _ends(graph, fused, copying))


def _is_plain(node: Node) -> bool:
    """Whether an operator takes the batch as one tensor, with the same arguments for all samples."""
    return node.operator.dense is not None and not (node.scope or node.edges)


_WORTH_A_STAGE = 2  # nodes that must leave a chain before it is cut in two for them


def _light_nodes(
    graph: Graph, fused: Collection[Node], large: Collection[Node], light: Collection[DataNode]
) -> set[Node]:
    """Find the fused nodes that had better run over the batch: at the end of a chain, or between two.

    A chain is cut in two only if all that its second half needs of the first is light, too.
    """
    heavy = {*fused, *large}
    plain: set[Node] = set()
    for node in graph.nodes:
        needs = [e for e in node.inputs if e is not None and _source(e) in heavy]
        if node in fused and _is_plain(node) and all(e in light for e in (*needs, *node.outputs)):
            plain.add(node)
    ends = _ends(graph, fused, plain)
    is_worth_it = len(plain) - len(ends) >= _WORTH_A_STAGE
    return plain if is_worth_it and _cuts_lightly(graph, fused, plain, light) else ends


def _ends(graph: Graph, fused: Collection[Node], plain: Collection[Node]) -> set[Node]:
    found: set[Node] = set()
    needed: set[Node] = set()
    for node in reversed(graph.nodes):
        if node in plain and node not in needed:
            found.add(node)
        elif node in fused:
            needed.update(node.parents())
    return found


def _cuts_lightly(
    graph: Graph, fused: Collection[Node], plain: Collection[Node], light: Collection[DataNode]
) -> bool:
    after: set[Node] = set()
    for node in graph.nodes:
        if node in plain or not after.isdisjoint(node.parents()):
            after.add(node)
    crossing = [
        e for n in after for e in edges(n) if _source(e) in fused and _source(e) not in after
    ]
    return all(edge in light for edge in crossing)


def _levels(graph: Graph, fused: Collection[Node]) -> dict[Node, int]:
    """Number the stage of each node: a step that needs a chain's result starts a new stage."""
    levels: dict[Node, int] = {}
    for node in graph.nodes:
        after = [levels[p] + (p in fused and node not in fused) for p in node.parents()]
        levels[node] = max(after, default=0)
    return levels


def _last_uses(graph: Graph, levels: dict[Node, int]) -> dict[DataNode, int]:
    last: dict[DataNode, int] = {}
    for node in graph.nodes:
        for edge in edges(node):
            last[edge] = max(last.get(edge, 0), levels[node])
    return last


def edges(node: Node) -> Iterable[DataNode]:
    """Return all edges that a node reads, with those of its conditions."""
    found = [e for e in node.inputs if e is not None]
    return [*found, *node.edges.values(), *(c.edge for c in node.scope)]


# ---------------------------------------------------------------- generating a chain


def column(kind: str, index: int, detail: object = 0) -> str:
    """Name a column of a chain: input, value, key, rng, slot or delivered, of a node's output."""
    return f"{kind}{index}_{detail}"


class _Writer:
    """Writes the text of one chain."""

    def __init__(
        self, index: dict[Node, int], nodes: Sequence[Node], delivers: Sequence[DataNode]
    ) -> None:
        self.index, self.inside, self.delivers = index, set(nodes), set(delivers)
        self.inputs: dict[DataNode, None] = {}
        self.values: dict[DataNode, None] = {}
        self.parameters: dict[str, None] = {}
        self.lines: list[tuple[str, Node | None]] = []
        self.ends: dict[Node, int] = {}

    def parameter(self, kind: str, node: Node, detail: object = 0) -> str:
        name = column(kind, self.index[node], detail)
        self.parameters.setdefault(name)
        return name

    def computes(self, edge: DataNode) -> bool:
        """Whether the chain computes an edge."""
        return _source(edge) in self.inside and not is_known(edge)

    def sample(self, edge: DataNode | None) -> str:
        """Write a sample's tensor: a local of the chain, or an item of a column."""
        if edge is None:
            return "None"
        source = _source(edge)
        if self.computes(edge):
            return f"v{self.index[source]}_{edge.index}"
        self.inputs.setdefault(edge)
        return self.parameter("input", source, edge.index) + "[i]"

    def value(self, edge: DataNode) -> str:
        """Write a sample's value as a Python number or list."""
        source = _source(edge)
        if self.computes(edge):
            return f"{self.sample(edge)}.tolist()"
        self.values.setdefault(edge)
        return self.parameter("value", source, edge.index) + "[i]"

    def condition(self, scope: Iterable[Condition]) -> str:
        return " and ".join(
            ("" if c.value else "not ") + f"truth({self.value(c.edge)})"
            if isinstance(c.value, bool)
            else f"{self.value(c.edge)} == {c.value}"
            for c in scope
        )

    def node(self, node: Node, indent: str) -> None:
        k = self.index[node]
        results = ", ".join(self.results(node))
        if node.operator.kind == "reader" and "," not in results:
            results += ","
        self.write(f"{indent}{results} = f{k}({', '.join(self.arguments(node))})", node)
        for output in node.outputs:
            if output in self.delivers:
                self.deliver(node, output, indent)
        self.ends[node] = len(self.lines) - 1

    def results(self, node: Node) -> list[str]:
        return [f"v{self.index[node]}_{o.index}" for o in node.outputs if not is_known(o)]

    def arguments(self, node: Node) -> list[str]:
        if node.operator.kind == "reader":
            return [self.parameter("key", node) + "[i]"]
        found = [self.sample(e) for e in node.inputs]
        found += [f"{name}={self.value(e)}" for name, e in node.edges.items()]
        if node.operator.schema.random:
            found.append(f"rng={self.parameter('rng', node)}[i]")
        if self.writes_in_place(node):
            found.append(f"out={self.parameter('slot', node)}[i]")
        return found

    def writes_in_place(self, node: Node) -> bool:
        return (
            node.operator.schema.wants_out
            and len(node.outputs) == 1
            and node.outputs[0] in self.delivers
        )

    def deliver(self, node: Node, output: DataNode, indent: str) -> None:
        value = f"v{self.index[node]}_{output.index}"
        if not self.writes_in_place(node):
            value = f"put({self.parameter('slot', node, output.index)}[i], {value})"
        self.write(f"{indent}{self.parameter('done', node, output.index)}[i] = {value}", node)

    def write(self, text: str, node: Node | None) -> None:
        self.lines.append((text, node))


def _source(edge: DataNode) -> Node:
    assert edge.source is not None, f"{edge} was made by hand and belongs to no operator"
    return edge.source


def is_known(edge: DataNode) -> bool:
    """Whether an edge is an output of a reader that is known without reading."""
    source = _source(edge)
    return edge.index >= len(source.outputs) - source.operator.known


def _chain(
    nodes: Sequence[Node], steps: Sequence[Node], later: set[DataNode], index: dict[Node, int]
) -> Chain:
    delivers = [o for n in nodes for o in n.outputs if o in later and not is_known(o)]
    writer = _Writer(index, nodes, delivers)
    previous: tuple[Condition, ...] = ()
    for node in nodes:
        if node.scope and node.scope != previous:
            writer.write(f"        if {writer.condition(node.scope)}:", node)
        previous = node.scope
        writer.node(node, "            " if node.scope else "        ")
    unset = [  # what a branch does not compute is None in the other one
        (f"        {' = '.join(f'v{index[n]}_{o.index}' for o in n.outputs)} = None", n)
        for n in nodes
        if n.scope
    ]
    parameters = ", ".join(writer.parameters)
    body = [
        (f"def bind({parameters}):", None),
        ("    def run(i):", None),
        *unset,
        *writer.lines,
        ("    return run", None),
    ]
    marks = {
        writer.ends[node]: f"; mark({', '.join(['i', str(k), *writer.results(node)])})"
        for k, node in enumerate(nodes)
    }
    timed = [
        f"def bind(mark, {parameters}):",
        "    def run(i):",
        *(line for line, _ in unset),
        "        mark(i, -1)",
        *(line + marks.get(k, "") for k, (line, _) in enumerate(writer.lines)),
        "    return run",
    ]
    return Chain(
        tuple(nodes), tuple(writer.inputs), tuple(writer.values), tuple(delivers),
        tuple(writer.parameters), "\n".join(line + _comment(node) for line, node in body),
        "\n".join(timed), tuple(node for _, node in body),
    )  # fmt: skip


def _comment(node: Node | None) -> str:
    if node is None:
        return ""
    where = f" line {node.lines[0].line}" if node.lines else ""
    return f"  # {node.title}{where}"
