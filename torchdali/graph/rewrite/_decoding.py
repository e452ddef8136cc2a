"""Decoders with what comes after them, as one operator that decodes no more than the result shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from torchdali.declaration.narrowing import ChainPart, DecodeChain, Narrowing
from torchdali.declaration.registry import registry
from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.graph.plan import edges
from torchdali.graph.rewrite._nodes import DECODERS, arguments_of, copy_node, parts_of, scope_of
from torchdali.kernels.native import library

__all__ = ["fuse_decoding"]


def fuse_decoding(graph: Graph, exact: bool, scaled: bool) -> Graph:
    """Make one operator of each image decoder and what comes after it on the CPU, as long as that narrows the picture.

    Each of them is all that uses the one before. Without the library of the fast path, those that need fewer pixels in
    Python, too. Random numbers are the same, and pixels are at most a level off.

    Args:
        exact: Leave out what adds up in another order: resizing of what is mirrored.
        scaled: See `DecodeChain`.
    """
    users = _sole_users(graph)
    chains = [_chain(node, users, exact) for node in graph.nodes if node.operator.name in DECODERS]
    by_last = {chain[-1]: chain for chain in chains if chain}
    dropped = {node for chain in by_last.values() for node in chain[:-1]}
    new: dict[DataNode, DataNode] = {}
    nodes = [
        _joined(by_last[node], new, scaled) if node in by_last else copy_node(node, new)
        for node in graph.nodes
        if node not in dropped
    ]
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs)) if by_last else graph


def _sole_users(graph: Graph) -> dict[DataNode, Node]:
    """Return the operator that takes an edge as its input, of edges that nothing else uses."""
    uses = Counter(edge for node in graph.nodes for edge in edges(node))
    uses.update(graph.outputs)
    first = [(node.inputs[0], node) for node in graph.nodes if node.inputs]
    return {edge: node for edge, node in first if edge is not None and uses[edge] == 1}


def _chain(decoder: Node, users: Mapping[DataNode, Node], exact: bool) -> Sequence[Node]:
    """Return a decoder and what follows it, as far as one operator does their work; nothing if it is no faster."""
    chain: list[Node] = []
    node: Node | None = decoder
    while node is not None and _follows(node, chain, exact):
        chain.append(node)
        node = users.get(node.outputs[0])
    if library() is not None:
        return chain
    for count in (3, 2):
        if tuple(node.operator.name for node in chain[:count]) in DecodeChain.OF_WINDOWS:
            return chain[:count]
    return ()


def _follows(node: Node, chain: Sequence[Node], exact: bool) -> bool:
    """Return whether an operator narrows what a chain makes of a picture."""
    own = _settings(node)
    if own is None:
        return False
    before = [settings for each in chain if (settings := _settings(each)) is not None]
    if any("finish" in settings for settings in before):
        return False
    if "filters" in own and any("filters" in settings for settings in before):
        return False
    mirrors = any("mirrors" in settings for settings in (*before, own))
    draws_twice = node.operator.schema.random and any(each.operator.schema.random for each in chain)
    is_apart = chain and (len(node.inputs) != 1 or scope_of(node) != scope_of(chain[0]))
    return not (draws_twice or is_apart or (exact and mirrors and "filters" in own))


def _settings(node: Node) -> dict[str, Any] | None:
    """Return what an operator sets if it narrows pictures; otherwise None."""
    narrowing: Narrowing | None = node.operator.narrowing
    if narrowing is None or node.device == "gpu" or len(node.outputs) != 1 or node.preserve:
        return None
    if not narrowing.suits(arguments_of(node) - {"seed"}, node.per_sample):
        return None
    try:
        return narrowing.settings(node.constants)
    except (RuntimeError, TypeError, ValueError):  # its body says why
        return None


def _joined(chain: Sequence[Node], new: dict[DataNode, DataNode], scaled: bool) -> Node:
    """Copy a chain as one operator."""
    first, last = chain[0], chain[-1]
    arguments = {(i, name): edge for i, node in enumerate(chain) for name, edge in node.per_sample.items()}
    parts = tuple(
        ChainPart(node.operator.name, dict(node.constants), {name: f"{name}_{i}" for name in node.per_sample})
        for i, node in enumerate(chain)
    )
    random = next((node for node in chain if node.operator.schema.random), None)
    copy = copy_node(last, new, first)
    copy.operator = registry["_decode_chain" if random is None else "_random_decode_chain"]
    copy.constants = {"chain": DecodeChain(parts, scaled)}
    copy.per_sample = {f"{name}_{i}": new[edge] for (i, name), edge in arguments.items()}
    if random is not None:
        copy.stream = random.stream
        copy.constants |= {k: v for k, v in random.constants.items() if k == "seed"}
    copy.parts = tuple(part for node in chain for part in parts_of(node))
    return copy
