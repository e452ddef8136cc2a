"""Find, join and copy nodes of a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from torchdali.declaration.registry import registry
from torchdali.graph.nodes import Condition, DataNode, Graph, Node
from torchdali.graph.plan import edges
from torchdali.tensors.dtypes import DALIImageType

__all__ = [
    "CHAINS", "DECODERS", "FIRST", "arguments_of", "constants_of", "copy_node", "find_pairs", "parts_of", "rebuild",
    "returns_rgb", "scope_key",
]  # fmt: skip

DECODERS = {"decoders.image", "decoders.image_crop", "decoders.image_random_crop", "decoders.image_slice"}
FIRST = {*DECODERS, "_picture"}  # operators with which a chain of fused operators may begin
CHAINS = {"_decode_chain", "_random_decode_chain"}
FUSION_BLOCKERS = {"dtype", "save_attrs"}  # arguments that prevent fusing, because a fused operator can't express them


def returns_rgb(decoder: Node) -> bool:
    """Return whether a decoder returns RGB images."""
    return bool(decoder.constants.get("output_type", DALIImageType.RGB) == DALIImageType.RGB)


def find_pairs(graph: Graph, first: str, second: str, devices: tuple[str, str]) -> dict[Node, Node]:
    """Find pairs of nodes that can be fused. Return a dictionary that maps the second node of each pair to the first.

    Two nodes are a pair if the first has one output, only the second uses this output, and both run under the same
    conditions.

    Args:
        first: Name of the first node's operator.
        second: Name of the second node's operator.
        devices: Devices of the first and the second node.
    """
    uses = Counter(edge for node in graph.nodes for edge in edges(node))
    uses.update(graph.outputs)
    return {
        node: producer
        for node in graph.nodes
        if node.operator.name == second
        and (producer := _find_producer(node, first, devices)) is not None
        and uses[producer.outputs[0]] == 1
        and len(producer.outputs) == 1
        and scope_key(producer) == scope_key(node)
        and not arguments_of(producer) & (arguments_of(node) | FUSION_BLOCKERS)
        and not (second == "resize" and arguments_of(node) & FUSION_BLOCKERS)
    }


def arguments_of(node: Node) -> set[str]:
    """Return the names of the arguments that were passed to a node."""
    return {*node.constants, *node.per_sample}


def _find_producer(node: Node, name: str, devices: tuple[str, str]) -> Node | None:
    """Return the source of a node's first input if the source's operator and both devices match, else None."""
    edge = node.inputs[0]
    producer = edge.source if edge is not None else None
    if producer is None or producer.operator.name != name:
        return None
    return producer if (producer.device, node.device) == devices else None


def scope_key(node: Node) -> tuple[tuple[int, bool | int], ...]:
    """Return the conditions of a node in a form that can be compared with another node's conditions."""
    return tuple((id(condition.edge), condition.value) for condition in node.scope)


def constants_of(node: Node) -> dict[str, Any]:
    """Return the constants of a node, without a seed that the operator doesn't use."""
    unused = () if node.operator.schema.random else ("seed",)
    return {k: v for k, v in node.constants.items() if k not in unused}


def parts_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes of the user's graph that a node replaces. If the node replaces no nodes, return the node."""
    return node.parts or (node,)


def rebuild(graph: Graph, pairs: Mapping[Node, Node], name: str) -> Graph:
    """Copy a graph, and replace each pair of nodes by one node.

    Args:
        pairs: Maps the second node of each pair to the first; see `find_pairs`.
        name: Name of the operator that does the work of both nodes.
    """
    dropped = set(pairs.values())
    new: dict[DataNode, DataNode] = {}
    nodes = []
    for node in graph.nodes:
        if node in dropped:
            continue
        producer = pairs.get(node)
        copy = copy_node(node, new, producer)
        if producer:
            copy.operator = registry[name]
            copy.constants = {**constants_of(producer), **constants_of(node)}
            copy.parts = (*parts_of(producer), *parts_of(node))
            copy.stream = producer.stream if producer.operator.schema.random else node.stream
        nodes.append(copy)
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))


def copy_node(node: Node, new: dict[DataNode, DataNode], producer: Node | None = None) -> Node:
    """Copy a node into a new graph.

    Args:
        new: Maps edges (nodes' outputs) of the old graph to edges of the new graph. The function adds the node's
            outputs.
        producer: A node that is fused with `node`. The copy gets this node's inputs, and the per-sample arguments of
            both.
    """
    inputs = (producer or node).inputs
    per_sample = {**(producer.per_sample if producer else {}), **node.per_sample}
    copy = Node(
        node.operator,
        node.name,
        node.device,
        tuple(None if e is None else new[e] for e in inputs),
        node.constants,
        {k: new[e] for k, e in per_sample.items()},
        node.lines,
        tuple(Condition(new[c.edge], c.value) for c in node.scope),
        node.preserve,
        node.stream,
    )
    copy.outputs = tuple(DataNode(o.name, o.device, copy, o.index, o.ndim, o.dtype, o.layout) for o in node.outputs)
    copy.parts = node.parts
    new.update(zip(node.outputs, copy.outputs, strict=True))
    return copy
