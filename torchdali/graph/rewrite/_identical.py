"""Merge nodes that compute the same values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from torchdali.graph.keys import key_of
from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.graph.rewrite._nodes import copy_node

__all__ = ["merge_identical"]


def merge_identical(graph: Graph) -> Graph:
    """Merge nodes that have the same operator, device, inputs, arguments and conditions.

    Nodes aren't merged if they may return different values, or if their number or names matter to the user: readers and
    sources, nodes that the user named, operators with side effects or state, calls of Python functions, and random
    operators without their own seed.
    """
    representatives: dict[Hashable, Node] = {}
    new: dict[DataNode, DataNode] = {}
    nodes = []
    for node in graph.nodes:
        value = _find_only_value(node, new)
        if value is not None:
            new[node.outputs[0]] = value
            continue
        key = _merge_key(node, new)
        same = None if key is None else representatives.get(key)
        if same is None:
            copy = copy_node(node, new)
            nodes.append(copy)
            if key is not None:
                representatives[key] = copy
        else:
            new.update(zip(node.outputs, same.outputs, strict=True))
    if len(nodes) == len(graph.nodes):
        return graph
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))


def _find_only_value(node: Node, new: Mapping[DataNode, DataNode]) -> DataNode | None:
    """If a node merges two branches of an ``if`` with the same value, return this value; otherwise None."""
    values = {id(new[e]): new[e] for e in node.inputs if e is not None}
    is_end = node.operator.name == "_merge" and len(node.inputs) == 2
    return next(iter(values.values())) if is_end and len(values) == 1 else None


def _merge_key(node: Node, new: Mapping[DataNode, DataNode]) -> Hashable | None:
    """Return a key that is equal for nodes that can be merged; None for a node that can't be merged."""
    declared = node.operator
    has_user_name = not node.name.startswith("__")
    if declared.kind not in ("sample", "batch") or declared.options.make or node.preserve or has_user_name:
        return None
    if declared.schema.random and node.constants.get("seed", -1) == -1:
        return None
    try:
        return key_of(node, lambda edge: id(new[edge])), declared, node.device, len(node.outputs)
    except TypeError:  # a constant is an object that can't be compared
        return None
