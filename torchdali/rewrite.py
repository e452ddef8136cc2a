"""Replace operators of a graph by one that does their work together."""

from __future__ import annotations

from collections import Counter

from torchdali.graph import Condition, DataNode, Graph, Node
from torchdali.operator import registry
from torchdali.plan import edges

__all__ = ["fuse_scaled_decoding"]

_DECODER, _CROP, _BOTH = "decoders.image", "random_resized_crop", "_decode_random_resized_crop"


def fuse_scaled_decoding(graph: Graph) -> Graph:
    """Fuse image decoders into the random crop after them, where nothing else needs the whole image.

    The fused operator decodes large JPEG photos at the smallest scale that still has the pixels the crop
    needs. The crop draws the same random numbers as before.
    """
    uses = Counter(edge for node in graph.nodes for edge in edges(node))
    uses.update(graph.outputs)
    pairs = {
        crop: decoder
        for crop in graph.nodes
        if crop.operator.name == _CROP
        and (decoder := _decoder_of(crop))
        and uses[decoder.outputs[0]] == 1
    }
    return _rebuild(graph, pairs) if pairs else graph


def _decoder_of(crop: Node) -> Node | None:
    edge = crop.inputs[0]
    decoder = edge.source if edge is not None else None
    on_cpu = crop.device == "cpu" and decoder is not None and decoder.device == "cpu"
    return decoder if on_cpu and decoder is not None and decoder.operator.name == _DECODER else None


def _rebuild(graph: Graph, pairs: dict[Node, Node]) -> Graph:
    """Copy a graph with each pair as one node."""
    dropped = set(pairs.values())
    new: dict[DataNode, DataNode] = {}
    nodes = []
    for node in graph.nodes:
        if node in dropped:
            continue
        decoder = pairs.get(node)
        made = Node(
            registry[_BOTH] if decoder else node.operator,
            node.name,
            node.device,
            tuple(None if e is None else new[e] for e in (decoder or node).inputs),
            {**(decoder.constants if decoder else {}), **node.constants},
            {name: new[e] for name, e in node.edges.items()},
            node.lines,
            tuple(Condition(new[c.edge], c.value) for c in node.scope),
            node.preserve,
            node.stream,
        )
        made.outputs = tuple(
            DataNode(o.name, o.device, made, o.index, o.ndim, o.dtype, o.layout)
            for o in node.outputs
        )
        new.update(zip(node.outputs, made.outputs, strict=True))
        nodes.append(made)
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs))
