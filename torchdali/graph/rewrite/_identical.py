"""Operators that compute the same, computed once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from torchdali.graph.keys import key_of
from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.graph.rewrite._nodes import copy_node

__all__ = ["merge_identical"]


def merge_identical(graph: Graph) -> Graph:
    """Compute once the values that several nodes of a graph would compute alike.

    Nodes are alike if they have the same operator, device, inputs, arguments and conditions. Kept apart are readers
    and sources, nodes that the user named, operators with side effects or own memory, calls of Python functions,
    and random operators without a seed of their own.
    """
    known: dict[Hashable, Node] = {}
    new: dict[DataNode, DataNode] = {}
    nodes = []
    for node in graph.nodes:
        value = _only_value(node, new)
        if value is not None:
            new[node.outputs[0]] = value
            continue
        key = _key(node, new)
        same = None if key is None else known.get(key)
        if same is None:
            copy = copy_node(node, new)
            nodes.append(copy)
            if key is not None:
                known[key] = copy
        else:
            new.update(zip(node.outputs, same.outputs, strict=True))
    if len(nodes) == len(graph.nodes):
        return graph
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))


def _only_value(node: Node, new: Mapping[DataNode, DataNode]) -> DataNode | None:
    """Return the value that both branches of an `if` turn out to have; None if `node` is not the end of one."""
    values = {id(new[e]): new[e] for e in node.inputs if e is not None}
    is_end = node.operator.name == "_merge" and len(node.inputs) == 2
    return next(iter(values.values())) if is_end and len(values) == 1 else None


def _key(node: Node, new: Mapping[DataNode, DataNode]) -> Hashable | None:
    """Return the key that nodes that compute alike share; None for one to keep apart."""
    declared = node.operator
    named_by_user = not node.name.startswith("__")
    if declared.kind not in ("sample", "batch") or declared.options.make or node.preserve or named_by_user:
        return None
    if declared.schema.random and node.constants.get("seed", -1) == -1:
        return None
    try:
        return key_of(node, lambda edge: id(new[edge])), declared, node.device, len(node.outputs)
    except TypeError:  # an object among the constants
        return None
