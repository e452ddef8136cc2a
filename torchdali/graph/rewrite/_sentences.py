"""Sentences about what of a planned graph is on the fast path."""

from __future__ import annotations

from collections.abc import Iterator

from torchdali.graph.nodes import Graph, Node
from torchdali.graph.plan import Kind, edges, kinds
from torchdali.graph.rewrite._nodes import DECODERS, NATIVE_DECODERS, makes_rgb, parts_of
from torchdali.kernels import native

__all__ = ["fast_path", "is_fast"]

_FUSED = {
    *NATIVE_DECODERS.values(),
    *("_decode_random_resized_crop", "_decode_random_resized_crop_normalize", "_decode_resize_crop_mirror_normalize"),
}


def is_fast(graph: Graph) -> bool:
    """Return whether the fast path does all that is done sample by sample, from file to batch."""
    of_samples = [n for n, kind in kinds(graph).items() if kind is Kind.SINGLE and n.operator.kind != "reader"]
    return (
        native.library() is not None
        and bool(of_samples)
        and all(node.operator.name in _FUSED and node.device == "cpu" and makes_rgb(node) for node in of_samples)
    )


def fast_path(graph: Graph) -> list[str]:
    """Say of each image decoder whether it is on the fast path, and which operator stands in its way."""
    decoders = [node for node in graph.nodes if parts_of(node)[0].operator.name in DECODERS]
    if decoders and native.library() is None:
        return [f"fast path: not used: {native.status().text}"]
    return [f"fast path: {_said(node, graph)}" for node in decoders]


def _said(node: Node, graph: Graph) -> str:
    if node.device != "cpu":
        return f"not used: {_named(node)} runs on {node.device!r}"
    if node.operator.name not in _FUSED or not makes_rgb(node):
        return f"not used: {_named(node)} makes something else than RGB bytes"
    after = list(_users(node, graph))
    if not after:
        return f"{_named(node)} in one call, which is all"
    if len(after) > 1:
        return f"{_named(node)} in one call; {len(after)} operators use its result: {', '.join(map(_named, after))}"
    return f"{_named(node)} in one call; {_named(after[0])} stands in the way of more"


def _users(node: Node, graph: Graph) -> Iterator[Node]:
    made = {id(edge) for edge in node.outputs}
    return (other for other in graph.nodes if any(id(edge) in made for edge in edges(other)))


def _named(node: Node) -> str:
    line = f" (line {node.lines[0].line})" if node.lines else ""
    return f"{node.title}{line}"
