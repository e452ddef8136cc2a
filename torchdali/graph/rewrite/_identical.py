"""Operators that compute the same, computed once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import Enum
from typing import Any

import numpy as np
import torch

from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.graph.rewrite._nodes import copy_node

__all__ = ["comparable", "merge_identical"]


def merge_identical(graph: Graph) -> Graph:
    """Compute once what several nodes of a graph would compute alike.

    Nodes are alike if they have the same operator, device, inputs, arguments and conditions. Kept apart are readers
    and sources, nodes that the user named, what has a side effect or a memory of its own, calls of Python functions,
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
            made = copy_node(node, new)
            nodes.append(made)
            if key is not None:
                known[key] = made
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
    """Return what nodes that compute alike have in common; None for one to keep apart."""
    declared = node.operator
    named_by_user = not node.name.startswith("__")
    if declared.kind not in ("sample", "batch") or declared.options.make or node.preserve or named_by_user:
        return None
    if declared.schema.random and node.constants.get("seed", -1) == -1:
        return None
    try:
        constants = frozenset((k, comparable(v)) for k, v in node.constants.items())
    except TypeError:
        return None
    inputs = tuple(None if e is None else id(new[e]) for e in node.inputs)
    per_sample = frozenset((k, id(new[e])) for k, e in node.per_sample.items())
    scope = tuple((id(new[c.edge]), c.value) for c in node.scope)
    return declared, node.device, len(node.outputs), inputs, constants, per_sample, scope


def comparable(value: Any) -> Hashable:
    """Return a key that values have in common if they are equal, type and all; TypeError for an object."""
    kind = type(value)
    if isinstance(value, (list, tuple)):
        return kind, tuple(map(comparable, value))
    if isinstance(value, torch.Tensor):
        value = value.numpy(force=True)
    if isinstance(value, (np.ndarray, np.generic)):
        return kind, str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, float):
        return kind, value.hex()  # tells -0.0 from 0.0
    if value is None or isinstance(value, (bool, int, str, bytes, Enum, torch.dtype)):
        return kind, value
    raise TypeError(f"{kind.__name__} objects are not compared")
