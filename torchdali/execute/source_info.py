"""Trace the source information of samples through a chain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchdali.graph.nodes import DataNode, Node
from torchdali.graph.plan import edges

__all__ = ["read_edges", "source_edges"]


def source_edges(nodes: Iterable[Node]) -> dict[DataNode, DataNode | None]:
    """Find, for an output of a chain, the edge that knows where its samples come from, or None.

    Samples come from where the first input comes from: in the end an output of a reader of the chain, or an edge that
    enters it.
    """
    origins: dict[DataNode, DataNode | None] = {}
    for node in nodes:
        first = next((edge for edge in node.inputs if edge is not None), None)
        for output in node.outputs:
            if node.operator.kind == "reader":
                origins[output] = output
            else:
                origins[output] = first if first is None else origins.get(first, first)
    return origins


def read_edges(edge: DataNode) -> Iterator[DataNode]:
    """Yield the outputs of readers that an edge is computed from."""
    seen, stack = set(), [edge]
    while stack:
        edge = stack.pop()
        if edge.source is None or edge in seen:
            continue
        seen.add(edge)
        if edge.source.operator.kind == "reader":
            yield edge
        stack += edges(edge.source)
