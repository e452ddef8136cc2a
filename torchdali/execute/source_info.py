"""Find the readers and sources from which the results of operators come.

An *edge* is an output of an operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchdali.graph.nodes import DataNode, Node
from torchdali.graph.plan import edges

__all__ = ["read_edges", "source_edges"]


def source_edges(nodes: Iterable[Node]) -> dict[DataNode, DataNode | None]:
    """Find the edge from which the samples of each output come.

    The outputs of an operator come from the same edge as its first input. The outputs of a reader come from themselves.

    Returns:
        For each output of `nodes`, an output of a reader in `nodes`, or an input of `nodes`. None for an operator
        without inputs.
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
