"""Replace operators of a graph by one that does their work together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from torchdali.codecs._native import library
from torchdali.graph import Condition, DataNode, Graph, Node
from torchdali.plan import edges
from torchdali.registry import registry

__all__ = ["fuse_decoding", "fuse_native", "fuse_resizing"]


def fuse_decoding(graph: Graph, scaled: bool) -> Graph:
    """Fuse image decoders into the random crop after them, where nothing else needs the whole image.

    Of a JPEG only the rows down to the end of the crop are decoded; the pixels are the same, and the crop draws
    the same random numbers as before. If `scaled`, large photos are decoded at the smallest scale that
    still has the pixels the crop needs.
    """
    given = {"scaled": True} if scaled else {}
    return _fuse(
        graph, "decoders.image", "random_resized_crop", "_decode_random_resized_crop", given
    )


def fuse_resizing(graph: Graph) -> Graph:
    """Fuse a resize into the crop, mirror and normalization after it, where nothing else needs its result.

    Of the resized image only what the crop keeps is computed, and of the JPEG only the rows decoded that it needs,
    if an image decoder comes before; the pixels are the same.
    """
    resizing = "_resize_crop_mirror_normalize"
    graph = _fuse(graph, "resize", "crop_mirror_normalize", resizing)
    return _fuse(graph, "decoders.image", resizing, "_decode_resize_crop_mirror_normalize")


def fuse_native(graph: Graph) -> Graph:
    """Fuse what is one call of the native path, where that is used; pixels are at most a level off.

    What one operator does of it, or two that the other functions fuse, calls the native path by itself.
    """
    if library() is None:
        return graph
    for first, second, both in _NATIVE:
        graph = _fuse(graph, first, second, both)
    return graph


_NATIVE = (
    (
        "_decode_random_resized_crop",
        "crop_mirror_normalize",
        "_decode_random_resized_crop_normalize",
    ),
    (
        "decoders.image_random_crop",
        "_resize_crop_mirror_normalize",
        "_decode_random_crop_resize_normalize",
    ),
    ("decoders.image", "resize", "_decode_resize"),
    ("decoders.image", "crop_mirror_normalize", "_decode_crop_mirror_normalize"),
)


def _fuse(
    graph: Graph, first: str, second: str, both: str, given: Mapping[str, Any] | None = None
) -> Graph:
    uses = Counter(edge for node in graph.nodes for edge in edges(node))
    uses.update(graph.outputs)
    pairs = {
        node: before
        for node in graph.nodes
        if node.operator.name == second
        and (before := _input_of(node, first)) is not None
        and uses[before.outputs[0]] == 1
        and len(before.outputs) == 1
        and before.scope == node.scope
        and not _arguments(before) & (_arguments(node) | _OWN)
    }
    return _rebuild(graph, pairs, both, given or {}) if pairs else graph


_OWN = {
    "dtype",
    "save_attrs",
}  # would mean something else, or nothing, in the operator that does both


def _arguments(node: Node) -> set[str]:
    return {*node.constants, *node.per_sample}


def _input_of(node: Node, name: str) -> Node | None:
    """Return the operator before a node, if it has this name and both run on the CPU."""
    edge = node.inputs[0]
    before = edge.source if edge is not None else None
    if before is None or before.operator.name != name:
        return None
    return before if node.device == before.device == "cpu" else None


def _constants(node: Node) -> dict[str, Any]:
    """Return the constants of a node, without a seed that it has no use for."""
    unused = () if node.operator.schema.random else ("seed",)
    return {k: v for k, v in node.constants.items() if k not in unused}


def _parts(node: Node) -> tuple[Node, ...]:
    return node.parts or (node,)


def _rebuild(
    graph: Graph, pairs: Mapping[Node, Node], name: str, given: Mapping[str, Any]
) -> Graph:
    """Copy a graph with each pair as one node."""
    dropped = set(pairs.values())
    new: dict[DataNode, DataNode] = {}
    nodes = []
    for node in graph.nodes:
        if node in dropped:
            continue
        before = pairs.get(node)
        made = Node(
            registry[name] if before else node.operator,
            node.name,
            node.device,
            tuple(None if e is None else new[e] for e in (before or node).inputs),
            {**_constants(before), **_constants(node), **given} if before else node.constants,
            {
                k: new[e]
                for k, e in {**(before.per_sample if before else {}), **node.per_sample}.items()
            },
            node.lines,
            tuple(Condition(new[c.edge], c.value) for c in node.scope),
            node.preserve,
            before.stream if before and before.operator.schema.random else node.stream,
        )
        made.outputs = tuple(
            DataNode(o.name, o.device, made, o.index, o.ndim, o.dtype, o.layout)
            for o in node.outputs
        )
        made.parts = (*_parts(before), *_parts(node)) if before else node.parts
        new.update(zip(node.outputs, made.outputs, strict=True))
        nodes.append(made)
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))
