"""Find the origin (for example the files) of the results of a chain, a group of per-sample operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchdali.graph.nodes import DataNode, Node
from torchdali.graph.plan import edges

__all__ = ["read_edges", "source_edges"]


def source_edges(nodes: Iterable[Node]) -> dict[DataNode, DataNode | None]:
    """Return, for each output of a chain's operators, the edge that tells the origin of its samples, or None.

    An edge is an output of an operator. An operator's outputs have the same origin as its first input, so the returned
    edge is an output of a reader in the chain, or an input of the chain.
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
    """Yield the reader outputs from which an edge is computed."""
    seen, stack = set(), [edge]
    while stack:
        edge = stack.pop()
        if edge.source is None or edge in seen:
            continue
        seen.add(edge)
        if edge.source.operator.kind == "reader":
            yield edge
        stack += edges(edge.source)
