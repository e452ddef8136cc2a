"""Sentences for `Pipeline.explain` about the fast path (per-sample operators in one call of the native library)."""

from __future__ import annotations

from collections.abc import Iterator

from torchdali.graph.nodes import Graph, Node
from torchdali.graph.plan import edges, find_encoded_operator, plan
from torchdali.graph.rewrite._nodes import CHAINS, DECODERS, parts_of
from torchdali.kernels import native

__all__ = ["explain_fast_path", "uses_fast_path"]


def uses_fast_path(graph: Graph) -> bool:
    """Return whether the fast path runs all per-sample operators of a graph, from the file to the batch."""
    chains = [
        stage.chain for stage in plan(graph).stages if stage.chain is not None and not stage.chain.accepts_tensors
    ]
    per_sample = [node for chain in chains for node in chain.nodes if node.operator.kind != "reader"]
    are_chains = all(node.operator.name in CHAINS and node.device == "cpu" for node in per_sample)
    return native.library() is not None and bool(per_sample) and are_chains


def explain_fast_path(graph: Graph) -> list[str]:
    """Return one sentence per image decoder, which says whether it uses the fast path, and if not, why."""
    decoders = [node for node in graph.nodes if parts_of(node)[0].operator.name in DECODERS]
    if not decoders:
        return []
    if native.library() is None:
        return [f"fast path: not used: {native.status().text}"]
    batched = [find_encoded_operator(stage.chain) for stage in plan(graph).stages if stage.chain is not None]
    return [f"fast path: {_describe_decoder(node, graph, node in batched)}" for node in decoders]


def _describe_decoder(node: Node, graph: Graph, is_batched: bool) -> str:
    """Return the sentence about one decoder. `is_batched` is true if it processes several samples in one call."""
    engine = node.constants.get("hw_decoder_load", 0.0) > 0
    if node.operator.name not in CHAINS and "encoded" not in node.operator.chunks:
        return f"not used: {_name_operators(node)} doesn't return RGB bytes"
    if node.operator.name not in CHAINS and not is_batched:
        names = _name_operators(node)
        return f"not used: {names} is in a branch or a chain with other operators, and the device decodes images"
    sentence = f"{_name_operators(node)} in one call"
    if engine:
        sentence += ", except for images that the device decodes"
    users = list(_users(node, graph))
    if not users:
        return f"{sentence}, up to the output"
    if len(users) > 1:
        return f"{sentence}; {len(users)} operators use its result: {', '.join(map(_name_operators, users))}"
    if users[0].device == "gpu":
        return f"{sentence}; {_name_operators(users[0])} runs on the device"
    return f"{sentence}; {_name_operators(users[0])} doesn't join"


def _users(node: Node, graph: Graph) -> Iterator[Node]:
    outputs = {id(edge) for edge in node.outputs}
    return (other for other in graph.nodes if any(id(edge) in outputs for edge in edges(other)))


def _name_operators(node: Node) -> str:
    line = f" (line {node.lines[0].line})" if node.lines else ""
    return f"{node.title}{line}"
