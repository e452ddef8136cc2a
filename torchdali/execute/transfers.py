"""Find the values that are copied to the device, and order the operators of a stage so that few copies are needed.

An *edge* is an output of an operator.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchdali.graph.nodes import DataNode, Node
from torchdali.graph.plan import Plan, edges

__all__ = ["order_device_last", "is_uploaded", "edges_to_upload"]


def is_uploaded(plan: Plan, edge: DataNode) -> bool:
    """Return whether the data of an edge will be copied to the device."""
    consumers = (node for node in plan.graph.nodes if any(e is edge for e in node.inputs))
    return edge.device != "cpu" or any(node.operator.name == "_to_device" for node in consumers)


def order_device_last(steps: Sequence[Node]) -> list[Node]:
    """Order operators: first those CPU operators that don't depend on device operators, then all other operators.

    In this order, all results of these CPU operators can be copied to the device in one block.
    """
    independent: list[Node] = []
    for node in steps:
        parents = {id(e.source) for e in edges(node)} & set(map(id, steps))
        if node.device == "cpu" and parents <= set(map(id, independent)):
            independent.append(node)
    return [*independent, *(node for node in steps if all(node is not e for e in independent))]


def edges_to_upload(steps: Sequence[Node]) -> list[DataNode]:
    """Return the edges on the CPU that these operators need on the device."""
    cpu_edges: dict[DataNode, None] = {}
    for node in steps:
        if node.device != "cpu":
            cpu_edges.update(dict.fromkeys(e for e in edges(node) if e.device == "cpu"))
    return list(cpu_edges)
