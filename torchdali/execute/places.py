"""What names samples by their places in the batch, where samples are left out of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from torchdali.graph import DataNode, Graph, Node
from torchdali.plan import edges

__all__ = ["renewed"]


def renewed(
    graph: Graph, ran: Collection[Node], smaller: bool, can_run: Callable[[Node], bool]
) -> Sequence[Node] | None:
    """Find the nodes that ran and must run again, since a permutation of the batch would name missing samples.

    A permutation that is still needed is drawn again, and what was made by it is made again, so that all that it
    arranges fits together. Where it is not, each place of the batch goes with all that was made for it.

    Args:
        ran: The nodes that have run.
        smaller: The batch becomes smaller.
        can_run: Whether a node that ran can run again.

    Returns:
        The nodes, in order; None if samples cannot be left out: places are named by what cannot be drawn again, or
        arranged what cannot be made again.
    """
    naming: set[Node] = set()  # whose values are places, or made of such
    stale: dict[Node, None] = {}
    for node in graph.nodes:
        takes = set(_places(node))
        others = [e for e in edges(node) if e not in takes]
        if _draws_places(node) or any(e.source in naming for e in others):
            naming.add(node)
        if node in ran and (_draws_places(node) or any(p in stale for p in node.parents())):
            stale[node] = None
    later = [node for node in graph.nodes if node not in ran]
    if smaller and any(e.source not in naming for node in later for e in _places(node)):
        return None
    used = {*graph.outputs, *(e for node in later for e in edges(node))}
    is_used = any(o in used for node in stale if node in naming for o in node.outputs)
    if not is_used or all(map(can_run, stale)):
        return list(stale) if is_used else []
    # Numbers that arrange nothing belong to the sample at whose place they are.
    arranges = any(e.source in naming for n in graph.nodes if _mixes(n) for e in edges(n))
    return None if arranges else []


def _places(node: Node) -> Iterator[DataNode]:
    """Yield the edges that name places of the batch to an operator."""
    return (edge for name, edge in node.edges.items() if name in node.operator.places)


def _mixes(node: Node) -> bool:
    """Whether what an operator makes of a sample may come from others."""
    alone = node.operator.works_alone({**node.constants, **node.edges})
    return node.operator.kind == "batch" and not alone


def _draws_places(node: Node) -> bool:
    """Whether an operator draws numbers that belong to the batch as a whole."""
    return node.operator.schema.random and _mixes(node)
