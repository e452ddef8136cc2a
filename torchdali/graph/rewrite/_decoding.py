"""Fuse decoders with the operators after them (a *chain*), to decode only the needed region of an image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from torchdali.declaration.narrowing import ChainPart, DecodeChain, Edit, Narrowing
from torchdali.declaration.registry import registry
from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.graph.plan import edges
from torchdali.graph.rewrite._nodes import FIRST, arguments_of, copy_node, parts_of, scope_key
from torchdali.kernels.native import ImageOptions, library

__all__ = ["fuse_decoding"]


def fuse_decoding(graph: Graph, exact: bool, scaled: bool) -> Graph:
    """Fuse each image decoder with the CPU operators after it that can edit an `ImageProgram`.

    An `ImageProgram` describes how to decode and transform one image. Operators are fused only if no other operator
    uses the results between them. Without the native library, only the chains in `DecodeChain.OF_WINDOWS` are fused,
    because these chains decode fewer pixels even in Python. The random numbers stay the same. Pixels differ by at most
    1.

    Args:
        exact: True to skip operators that add numbers in another order if they are fused. An example is the resize of a
            mirrored image.
        scaled: See `DecodeChain`.
    """
    users = _find_sole_users(graph)
    chains = [_find_chain(node, users, exact) for node in graph.nodes if node.operator.name in FIRST]
    chain_of = {chain[-1]: chain for chain in chains if chain}
    dropped = {node for chain in chain_of.values() for node in chain[:-1]}
    new: dict[DataNode, DataNode] = {}
    nodes = [
        _join_chain(chain_of[node], new, scaled) if node in chain_of else copy_node(node, new)
        for node in graph.nodes
        if node not in dropped
    ]
    return Graph(tuple(nodes), tuple(new[e] for e in graph.outputs)) if chain_of else graph


def _find_sole_users(graph: Graph) -> dict[DataNode, Node]:
    """Return the only user of each edge (output of a node).

    The result doesn't contain edges that have several users, or that aren't the first input of the user.
    """
    uses = Counter(edge for node in graph.nodes for edge in edges(node))
    uses.update(graph.outputs)
    first = [(node.inputs[0], node) for node in graph.nodes if node.inputs]
    return {edge: node for edge, node in first if edge is not None and uses[edge] == 1}


def _find_chain(decoder: Node, users: Mapping[DataNode, Node], exact: bool) -> Sequence[Node]:
    """Return a decoder and the operators that can be fused with it; empty if the fused operator isn't faster."""
    chain: list[Node] = []
    node: Node | None = decoder
    options = ImageOptions()
    while node is not None and (following := _add_to_chain(node, chain, options, exact)) is not None:
        chain.append(node)
        node, options = users.get(node.outputs[0]), following
    if library() is not None:
        return chain
    for count in (3, 2):
        if tuple(node.operator.name for node in chain[:count]) in DecodeChain.OF_WINDOWS:
            return chain[:count]
    return ()


def _add_to_chain(node: Node, chain: Sequence[Node], previous: ImageOptions, exact: bool) -> ImageOptions | None:
    """Return the options of a chain after adding a node; None if the node can't be added.

    `previous` has the options before adding the node.
    """
    edit = _find_edit(node)
    options = None if edit is None or previous.output is not None else edit.options(previous)
    if options is None or (node.operator.name in FIRST) is bool(chain):
        return None
    resizes_mirrored = options.mirrors and options.filters is not previous.filters
    draws_twice = node.operator.schema.random and any(each.operator.schema.random for each in chain)
    is_separate = chain and (len(node.inputs) != 1 or scope_key(node) != scope_key(chain[0]))
    return None if draws_twice or is_separate or (exact and resizes_mirrored) else options


def _find_edit(node: Node) -> Edit | None:
    """Return an operator's edit of image programs; None if the operator needs pixels."""
    narrowing: Narrowing | None = node.operator.narrowing
    if narrowing is None or node.device == "gpu" or len(node.outputs) != 1 or node.preserve:
        return None
    if not narrowing.supports(arguments_of(node) - {"seed"}, node.per_sample):
        return None
    try:
        return narrowing.edit(node.constants)
    except (RuntimeError, TypeError, ValueError):  # the operator's implementation raises the error later
        return None


def _join_chain(chain: Sequence[Node], new: dict[DataNode, DataNode], scaled: bool) -> Node:
    first, last = chain[0], chain[-1]
    values: dict[str, DataNode] = {}
    parts = tuple(ChainPart(node.operator.name, dict(node.constants), _add_values(values, node)) for node in chain)
    random = next((node for node in chain if node.operator.schema.random), None)
    copy = copy_node(last, new, first)
    copy.operator = registry["_decode_chain" if random is None else "_random_decode_chain"]
    copy.constants = {"chain": DecodeChain(parts, scaled)}
    copy.per_sample = {name: new[edge] for name, edge in values.items()}
    if random is not None:
        copy.stream = random.stream
        copy.constants |= {k: v for k, v in random.constants.items() if k == "seed"}
    copy.parts = tuple(part for node in chain for part in parts_of(node))
    return copy


def _add_values(values: dict[str, DataNode], node: Node) -> dict[str, str]:
    """Add a node's per-sample arguments to `values`, the arguments of the chain.

    Return a dictionary that maps the name of each argument to the name that the argument has in the chain.
    """
    names = {name: name if name not in values else f"{name} of {node.name}" for name in node.per_sample}
    values.update((names[name], edge) for name, edge in node.per_sample.items())
    return names
