"""Replace caches and the nodes before them by readers of the cached samples."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from functools import partial
from typing import Any, Protocol

from torchdali.declaration.registry import registry
from torchdali.errors import self_explanatory
from torchdali.formats.remote import RemoteOptions
from torchdali.graph.keys import comparable, edge_numbering, key_of
from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.graph.plan import edges, is_metadata
from torchdali.graph.rewrite._nodes import copy_node
from torchdali.reading.datasets import LoaderOptions

__all__ = ["CachedSamples", "cut_at_caches"]

_OPTIONS = frozenset(field.name for kind in (LoaderOptions, RemoteOptions) for field in fields(kind))
_IN_THE_KEY = frozenset(("labels", "requests", "save_preprocessed_annotations"))  # part of each record's own key
_EACH_ALONE = frozenset(("constant", "ones", "zeros"))
"""Operators over the batch whose result for a sample doesn't depend on the other samples."""


class CachedSamples(Protocol):
    """The samples in a cache. The reader of the cached samples gets this object as an argument."""

    layouts: tuple[str, ...]


Keeping = Callable[[Graph, Node, bytes], CachedSamples]
"""Function that creates the `CachedSamples` of a cache.

The function's arguments are the graph of the nodes before the cache, the cache's node, and a digest of this graph.
"""


def cut_at_caches(graph: Graph, keeping: Keeping) -> Graph:
    """Replace each `cache`, and the nodes that only the cache needs, by a reader of the cached samples.

    The new reader reads the records in the same order as the original reader before the cache. If no other node uses
    the original reader's records, the new reader also replaces the original reader. In this case, the new reader gets
    the original reader's name, and also returns its metadata.

    Raises:
        RuntimeError: An operator before a cache can't be cached; the message names the operator and its line.
    """
    if not any(node.operator.name == "cache" for node in graph.nodes):
        return graph
    new: dict[DataNode, DataNode] = {}
    nodes: list[Node] = []
    origins: dict[Node, Node] = {}  # for each new reader, the original reader before the cache
    for node in graph.nodes:
        if node.operator.name != "cache":
            nodes.append(copy_node(node, new))
            continue
        before = Graph.of([new[e] for e in node.inputs if e is not None], nodes)
        origin = _reader_of(before, node)
        reader = _replacement(node, origin, keeping(before, node, digest(before)), before)
        nodes.append(reader)
        origins[reader] = origin
        new.update(zip(node.outputs, reader.outputs, strict=False))
    return _without_readers(nodes, [new[e] for e in graph.outputs], origins)


def _replacement(cache: Node, origin: Node, kept: CachedSamples, before: Graph) -> Node:
    metadata = origin.operator.metadata
    name = "_cached_with_labels" if metadata else "_cached"
    constants = {k: v for k, v in origin.constants.items() if k in _OPTIONS}
    reader = Node(registry[name], cache.name, "cpu", (), {**constants, "samples": kept}, {}, cache.lines)
    reader.outputs = tuple(DataNode(cache.name, "cpu", reader, i) for i in range(len(cache.outputs) + metadata))
    reader.parts = (*before.nodes, cache)
    return reader


def _without_readers(nodes: list[Node], outputs: list[DataNode], origins: Mapping[Node, Node]) -> Graph:
    """Remove the nodes that aren't needed, and each original reader that is replaced by a new reader.

    An original reader is replaced if no other node uses its records.
    """
    kept = Graph.of(outputs, nodes)
    read = {id(e.source) for n in kept.nodes for e in edges(n) if not is_metadata(e)}
    read |= {id(e.source) for e in outputs if not is_metadata(e)}
    instead: dict[Node, Node] = {}
    for reader, origin in origins.items():
        if reader in kept.nodes and id(origin) not in read and not origin.preserve:
            instead.setdefault(origin, reader)
    new: dict[DataNode, DataNode] = {}
    copies = []
    replacing = set(instead.values())
    for node in kept.nodes if not instead else _in_order(nodes, kept, instead):
        if node in instead:
            continue
        copy = copy_node(node, new)
        copies.append(copy)
        if node in replacing:
            origin = origins[node]
            count = origin.operator.metadata
            copy.rename(origin.name)
            if count:
                new.update(zip(origin.outputs[-count:], copy.outputs[-count:], strict=True))
    return Graph.of([new[e] for e in outputs], copies)


def _in_order(nodes: list[Node], kept: Graph, instead: Mapping[Node, Node]) -> list[Node]:
    """Return the needed nodes in order. Each new reader is at the position of the reader that it replaces."""
    replacing, ordered = set(instead.values()), []
    for node in nodes:
        if node in instead:
            ordered.append(instead[node])
        elif node in kept.nodes and node not in replacing:
            ordered.append(node)
    return ordered


# ---------------------------------------------------------------- operators before caches


def _reader_of(before: Graph, cache: Node) -> Node:
    """Return the only reader before a cache. Raise RuntimeError if an operator isn't allowed before a cache."""
    if cache.scope:
        raise _refuse(cache, cache, "is in a branch of an `if`: move it before the `if`")
    readers = []
    for node in before.nodes:
        if why := _stands_in_the_way(node, cache):
            raise _refuse(cache, node, why)
        if node.operator.kind == "reader":
            readers.append(node)
    if len(readers) != 1:
        many = f"is one of {len(readers)} readers before the cache: use one cache per reader"
        raise _refuse(cache, readers[-1] if readers else cache, many if readers else "has no reader before it: add one")
    return readers[0]


def _stands_in_the_way(node: Node, cache: Node) -> str:
    """Return the reason why an operator isn't allowed before a cache; "" if it is allowed."""
    declared = node.operator
    if declared.schema.random:
        return "draws random numbers, which would be the same in each epoch: put the cache before it"
    if declared.kind == "source" or declared.name == "readers.dataset":
        return "comes from Python, so changes of a sample can't be detected: the cache needs a file reader"
    if node.preserve or declared.options.preserve or any(map(callable, node.constants.values())):
        return "calls a function, whose results may differ each time: put the cache before it"
    if declared.kind == "batch" and declared.name not in _EACH_ALONE:
        return "processes the entire batch, not one sample: put the cache before it"
    if node.device != "cpu":
        return f"runs on {node.device!r}, but samples are cached on the CPU: put the cache before it"
    if declared.name.startswith("io."):
        return "reads files that the cache can't track: read them with a reader"
    if declared.kind == "reader" and (node.per_sample or node.scope):
        return "has arguments per sample, or runs for some samples only"
    if not declared.is_ours and declared.kind != "reader" and cache.constants.get("path") is not None:
        return "is declared outside torchdali. Its code may change, so it is cached in memory only, not on disk"
    if not declared.is_ours and declared.options.make is not None:
        return "has its own state: put the cache before it"
    return ""


def _refuse(cache: Node, node: Node, why: str) -> RuntimeError:
    text = (
        f"fn.cache can't cache these samples: operator {node.title!r} {why}\n  {node.where}\nThe cache is here\n  "
        f"{cache.where}"
    )
    return self_explanatory(RuntimeError(text))


# ---------------------------------------------------------------- its digest


def digest(graph: Graph) -> bytes:
    """Return a digest of the computation that a graph performs on a record: operators, arguments and connections.

    Raises:
        RuntimeError: An argument is an object that can't be compared across runs; the message names the argument.
    """
    edge = edge_numbering(graph.nodes)
    keys = [key_of(node, edge, partial(_value, node), _left_out(node)) for node in graph.nodes]
    text = repr(([(key.operator, *map(list, key[1:])) for key in keys], [edge(e) for e in graph.outputs]))
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).digest()


def _left_out(node: Node) -> Collection[str]:
    """Return the arguments that don't change the result for a record, such as the data's location and unused seeds."""
    if node.operator.kind == "reader":
        return _OPTIONS | node.operator.schema.paths | _IN_THE_KEY
    return () if node.operator.schema.random else ("seed",)


def _value(node: Node, name: str, value: Any) -> Any:
    if name == "samples":  # this node reads another cache
        return value.digest
    try:
        return comparable(value)
    except TypeError as error:
        raise RuntimeError(
            f"fn.cache cannot tell whether the argument {name!r} of operator {node.title!r} stays the same: {error}"
            f"\n  {node.where}"
        ) from None
