"""Keys for nodes and values. Equal nodes and equal values have equal keys."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Hashable, Mapping
from enum import Enum
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch

from torchdali.graph.nodes import DataNode, Node

__all__ = ["NodeKey", "edge_numbering", "key_of", "value_key"]


class NodeKey(NamedTuple):
    """Key of a node. Nodes that compute the same values have equal keys.

    Attributes:
        inputs: Keys of the inputs' edges (outputs of other nodes); None for an omitted input.
        per_sample: Pairs of an argument's name and the key of its edge, sorted by name.
        constants: Pairs of an argument's name and the key of its value, sorted by name.
        scope: For each condition of the node, the key of its edge and the value that the edge must have.
    """

    operator: str
    inputs: tuple[Any, ...]
    per_sample: tuple[tuple[str, Any], ...]
    constants: tuple[tuple[str, Any], ...]
    scope: tuple[tuple[Any, bool | int], ...]


def key_of(
    node: Node,
    edge: Callable[[DataNode], Any],
    value: Callable[[str, Any], Any] = lambda name, value: value_key(value),
    ignored: Collection[str] = (),
) -> NodeKey:
    """Return the key of a node.

    Args:
        edge: Function that returns the key of an edge.
        value: Function that returns the key of a constant, from the constant's name and value.
        ignored: Names of the constants that don't belong to the key.
    """
    return NodeKey(
        node.operator.name,
        tuple(None if e is None else edge(e) for e in node.inputs),
        tuple((name, edge(e)) for name, e in sorted(node.per_sample.items())),
        tuple((name, value(name, v)) for name, v in sorted(node.constants.items()) if name not in ignored),
        tuple((edge(c.edge), c.value) for c in node.scope),
    )


def edge_numbering(nodes: Collection[Node]) -> Callable[[DataNode], tuple[int, int] | None]:
    """Return a function that maps an edge to the index of its node and its index in the node's outputs.

    For an edge without a node, the function returns None.
    """
    position = {node: i for i, node in enumerate(nodes)}
    return lambda edge: None if edge.source is None else (position[edge.source], edge.index)


def _refuse(value: object) -> NoReturn:
    raise TypeError(f"{type(value).__name__} objects are not compared")


def value_key(value: Any, objects: Callable[[Any], Hashable] = _refuse) -> Hashable:
    """Return a key for a value. Values have equal keys if they are equal and have the same type.

    Args:
        objects: Function that returns the key of an object of an unsupported class; by default, it raises TypeError.
    """
    kind = type(value)
    if value is None or isinstance(value, (bool, int, str, bytes, Enum, torch.dtype)):
        return kind, value
    if isinstance(value, float):
        return kind, value.hex()  # -0.0 and 0.0 have different keys
    if isinstance(value, (list, tuple)):
        return kind, tuple(value_key(each, objects) for each in value)
    if isinstance(value, Mapping):
        return kind, tuple((value_key(k, objects), value_key(v, objects)) for k, v in value.items())
    if isinstance(value, torch.Tensor):
        value = value.numpy(force=True)
    if isinstance(value, (np.ndarray, np.generic)):
        return kind, str(value.dtype), value.shape, value.tobytes()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return kind, tuple(value_key(getattr(value, each.name), objects) for each in dataclasses.fields(value))
    return objects(value)
