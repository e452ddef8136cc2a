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
from torchdali.graph.keys import edge_numbering, key_of, value_key
from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.graph.plan import edges, is_metadata
from torchdali.graph.rewrite._nodes import copy_node
from torchdali.reading.datasets import LoaderOptions

__all__ = ["CachedSamples", "cut_at_caches"]

_OPTIONS = frozenset(field.name for kind in (LoaderOptions, RemoteOptions) for field in fields(kind))
_KEY_ARGUMENTS = frozenset(("labels", "requests", "save_preprocessed_annotations"))  # part of each record's own key
_PER_SAMPLE_OPERATORS = frozenset(("constant", "ones", "zeros"))
"""Operators over the batch whose result for a sample doesn't depend on the other samples."""


class CachedSamples(Protocol):
    """The samples in a cache. The reader of the cached samples gets this object as an argument."""

    layouts: tuple[str, ...]


CacheBuilder = Callable[[Graph, Node, bytes], CachedSamples]
"""Function that creates the `CachedSamples` of a cache.

The function's arguments are the graph of the nodes before the cache, the cache's node, and a digest of this graph.
"""


def cut_at_caches(graph: Graph, build_cache: CacheBuilder) -> Graph:
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
        upstream = Graph.of([new[e] for e in node.inputs if e is not None], nodes)
        origin = _find_reader(upstream, node)
        reader = _create_reader(node, origin, build_cache(upstream, node, digest(upstream)), upstream)
        nodes.append(reader)
        origins[reader] = origin
        new.update(zip(node.outputs, reader.outputs, strict=False))
    return _remove_readers(nodes, [new[e] for e in graph.outputs], origins)


def _create_reader(cache: Node, origin: Node, samples: CachedSamples, upstream: Graph) -> Node:
    metadata = origin.operator.metadata
    name = "_cached_with_labels" if metadata else "_cached"
    constants = {k: v for k, v in origin.constants.items() if k in _OPTIONS}
    reader = Node(registry[name], cache.name, "cpu", (), {**constants, "samples": samples}, {}, cache.lines)
    reader.outputs = tuple(DataNode(cache.name, "cpu", reader, i) for i in range(len(cache.outputs) + metadata))
    reader.parts = (*upstream.nodes, cache)
    return reader


def _remove_readers(nodes: list[Node], outputs: list[DataNode], origins: Mapping[Node, Node]) -> Graph:
    """Remove the nodes that aren't needed, and each original reader that is replaced by a new reader.

    An original reader is replaced if no other node uses its records.
    """
    needed = Graph.of(outputs, nodes)
    used = {id(e.source) for n in needed.nodes for e in edges(n) if not is_metadata(e)}
    used |= {id(e.source) for e in outputs if not is_metadata(e)}
    replacements: dict[Node, Node] = {}
    for reader, origin in origins.items():
        if reader in needed.nodes and id(origin) not in used and not origin.preserve:
            replacements.setdefault(origin, reader)
    new: dict[DataNode, DataNode] = {}
    copies = []
    new_readers = set(replacements.values())
    for node in needed.nodes if not replacements else _order_nodes(nodes, needed, replacements):
        if node in replacements:
            continue
        copy = copy_node(node, new)
        copies.append(copy)
        if node in new_readers:
            origin = origins[node]
            count = origin.operator.metadata
            copy.rename(origin.name)
            if count:
                new.update(zip(origin.outputs[-count:], copy.outputs[-count:], strict=True))
    return Graph.of([new[e] for e in outputs], copies)


def _order_nodes(nodes: list[Node], needed: Graph, replacements: Mapping[Node, Node]) -> list[Node]:
    """Return the needed nodes in order. Each new reader is at the position of the reader that it replaces."""
    new_readers, ordered = set(replacements.values()), []
    for node in nodes:
        if node in replacements:
            ordered.append(replacements[node])
        elif node in needed.nodes and node not in new_readers:
            ordered.append(node)
    return ordered


# ---------------------------------------------------------------- operators before caches


def _find_reader(upstream: Graph, cache: Node) -> Node:
    """Return the only reader before a cache. Raise RuntimeError if an operator isn't allowed before a cache."""
    if cache.scope:
        raise _create_error(cache, cache, "is in a branch of an `if`: move it before the `if`")
    readers = []
    for node in upstream.nodes:
        if reason := _find_obstacle(node, cache):
            raise _create_error(cache, node, reason)
        if node.operator.kind == "reader":
            readers.append(node)
    if len(readers) != 1:
        too_many = f"is one of {len(readers)} readers before the cache: use one cache per reader"
        raise _create_error(
            cache, readers[-1] if readers else cache, too_many if readers else "has no reader before it: add one"
        )
    return readers[0]


def _find_obstacle(node: Node, cache: Node) -> str:
    """Return the reason why an operator isn't allowed before a cache; "" if it is allowed."""
    declared = node.operator
    if declared.schema.random:
        return "draws random numbers, which would be the same in each epoch: put the cache before it"
    if declared.kind == "source" or declared.name == "readers.dataset":
        return "comes from Python, so changes of a sample can't be detected: the cache needs a file reader"
    if node.preserve or declared.options.preserve or any(map(callable, node.constants.values())):
        return "calls a function, whose results may differ each time: put the cache before it"
    if declared.kind == "batch" and declared.name not in _PER_SAMPLE_OPERATORS:
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


def _create_error(cache: Node, node: Node, reason: str) -> RuntimeError:
    text = (
        f"fn.cache can't cache these samples: operator {node.title!r} {reason}\n  {node.where}\nThe cache is here\n  "
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
    keys = [key_of(node, edge, partial(_constant_key, node), _list_ignored(node)) for node in graph.nodes]
    text = repr(([(key.operator, *map(list, key[1:])) for key in keys], [edge(e) for e in graph.outputs]))
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).digest()


def _list_ignored(node: Node) -> Collection[str]:
    """Return the arguments that don't change the result for a record, such as the data's location and unused seeds."""
    if node.operator.kind == "reader":
        return _OPTIONS | node.operator.schema.paths | _KEY_ARGUMENTS
    return () if node.operator.schema.random else ("seed",)


def _constant_key(node: Node, name: str, value: Any) -> Any:
    if name == "samples":  # this node reads another cache
        return value.digest
    try:
        return value_key(value)
    except TypeError as error:
        raise RuntimeError(
            f"fn.cache cannot tell whether the argument {name!r} of operator {node.title!r} stays the same: {error}"
            f"\n  {node.where}"
        ) from None
