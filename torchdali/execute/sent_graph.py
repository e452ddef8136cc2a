"""Convert a graph to a message for a process that doesn't have the graph."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from torchdali import pickling
from torchdali.declaration.registry import registry
from torchdali.graph.nodes import Condition, DataNode, Graph, Node, SourceLine

__all__ = ["SentGraph"]


@dataclass(frozen=True)
class _SentEdge:
    node: int
    index: int


@dataclass(frozen=True)
class _SentPart:
    """A node of the user's graph that was combined with other nodes into one node.

    The receiving process needs this information only for error messages.
    """

    operator: str
    name: str
    lines: tuple[SourceLine, ...]
    constants: dict[str, Any]

    @classmethod
    def of(cls, node: Node) -> _SentPart:
        return cls(node.operator.name, node.name, node.lines, _portable(node.constants))

    def node(self) -> Node:
        return Node(
            operator=registry[self.operator],
            name=self.name,
            device="cpu",
            inputs=(),
            constants=self.constants,
            per_sample={},
            lines=self.lines,
        )


def _portable(constants: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that can be pickled. Error messages don't show the other arguments."""
    portable = {}
    for name, value in constants.items():
        with contextlib.suppress(Exception):
            pickling.dumps(value)
            portable[name] = value
    return portable


@dataclass(frozen=True)
class _SentNode:
    """A node in a message. `_SentEdge` refers to other nodes by their indices."""

    operator: str
    name: str
    device: str
    lines: tuple[SourceLine, ...]
    parts: tuple[_SentPart, ...]
    inputs: tuple[_SentEdge | None, ...]
    constants: dict[str, Any]
    per_sample: dict[str, _SentEdge]
    scope: tuple[tuple[_SentEdge, bool | int], ...]
    preserve: bool
    stream: int
    outputs: tuple[tuple[str, str, int | None, Any, str | None], ...]


@dataclass(frozen=True)
class SentGraph:
    """A message from which another process rebuilds the graph.

    Attributes:
        modules: Names of the modules that declare the operators.
        nodes: The nodes, in order.
        outputs: The outputs.
    """

    modules: tuple[str, ...]
    nodes: tuple[_SentNode, ...]
    outputs: tuple[_SentEdge, ...]

    @classmethod
    def of(cls, graph: Graph, needed: Collection[Node]) -> SentGraph:
        """Create the message from a graph.

        Args:
            graph: The graph.
            needed: The nodes that the other process runs. The constant arguments of all other nodes aren't sent.
        """
        nodes = graph.nodes
        number = {node: i for i, node in enumerate(nodes)}

        def edge(e: DataNode) -> _SentEdge:
            assert e.source is not None
            return _SentEdge(number[e.source], e.index)

        sent = tuple(
            _SentNode(
                operator=n.operator.name,
                name=n.name,
                device=n.device,
                lines=n.lines,
                parts=tuple(map(_SentPart.of, n.parts)),
                inputs=tuple(None if e is None else edge(e) for e in n.inputs),
                constants=dict(n.constants) if n in needed else {},
                per_sample={k: edge(e) for k, e in n.per_sample.items()},
                scope=tuple((edge(c.edge), c.value) for c in n.scope),
                preserve=n.preserve,
                stream=n.stream,
                outputs=tuple((o.name, o.device, o.ndim, o.dtype, o.layout) for o in n.outputs),
            )
            for n in nodes
        )
        modules = tuple(dict.fromkeys(n.operator.implementation.__module__ for n in nodes if n in needed))
        return cls(modules, sent, tuple(map(edge, graph.outputs)))

    def graph(self) -> Graph:
        """Import the operators' modules, and rebuild the graph."""
        for module in self.modules:
            importlib.import_module(module)
        nodes: list[Node] = []

        def edge(sent: _SentEdge) -> DataNode:
            return nodes[sent.node].outputs[sent.index]

        for sent in self.nodes:
            node = Node(
                operator=registry[sent.operator],
                name=sent.name,
                device=sent.device,
                inputs=tuple(None if e is None else edge(e) for e in sent.inputs),
                constants=sent.constants,
                per_sample={k: edge(e) for k, e in sent.per_sample.items()},
                lines=sent.lines,
                scope=tuple(Condition(edge(e), value) for e, value in sent.scope),
                preserve=sent.preserve,
                stream=sent.stream,
            )
            node.outputs = tuple(
                DataNode(name, device, node, i, ndim, dtype, layout)
                for i, (name, device, ndim, dtype, layout) in enumerate(sent.outputs)
            )
            node.parts = tuple(part.node() for part in sent.parts)
            nodes.append(node)
        return Graph(tuple(nodes), tuple(map(edge, self.outputs)))
