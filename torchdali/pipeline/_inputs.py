"""Find readers and sources of a running pipeline by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchdali.execute.executor import Executor
from torchdali.graph.nodes import DataNode, Node
from torchdali.reading.datasets import reader_meta
from torchdali.reading.sources import BatchSource, SourceBatch

__all__ = ["class_names", "convert_input", "describe_readers", "feed", "find_source"]


def describe_readers(running: Executor, name: str | None) -> dict[str, Any]:
    """Return the sizes, shards and padding of a reader. Without a name, return one dictionary for all readers.

    Raises:
        RuntimeError: No reader has this name.
    """
    descriptions = {
        node.name: reader_meta(len(reader.dataset), reader.cursor.order.options)
        for node, reader in running.readers.items()
    }
    if name is None:
        return descriptions
    if name not in descriptions:
        raise RuntimeError(f"unknown reader {name!r}; readers of this pipeline: {', '.join(descriptions) or 'none'}")
    return descriptions[name]


def class_names(running: Executor) -> list[str]:
    """Return the class names of the first reader that has class names; raise AttributeError if none has."""
    for reader in running.readers.values():
        names = getattr(reader.dataset, "classes", ())
        if len(names):
            return list(names)
    raise AttributeError(
        "no reader of this pipeline has class names. Use readers.file with file_root, or readers.dataset with a "
        "dataset that has an attribute `classes`"
    )


def feed(running: Executor, which: Any, data: Any, layout: str | None, stream: Any) -> None:
    """Pass a source its next batch; see `Pipeline.feed_input`."""
    source = find_source(running, which)
    if not hasattr(source, "feed"):
        name = getattr(which, "name", which)
        raise RuntimeError(
            f"Cannot use `feed_input` on the external source '{name}' with a `source` argument specified."
        )
    source.feed(data, layout, stream)


def convert_input(running: Executor, name: str, data: Any) -> Mapping[Node, SourceBatch]:
    """Convert data to a batch of a source, as ``{node: batch}``. Return {} if the data must be passed to `feed`.

    `feed` is necessary if a source turns one input into several batches, for example if the input is a video.
    """
    source = find_source(running, name)
    if not hasattr(source, "convert"):
        return {}
    batch = SourceBatch((source.convert(data),))
    return {node: batch for node, each in running.sources.items() if each is source}


def find_source(running: Executor, which: Any) -> BatchSource:
    """Return a source by its node, name or operator; raise KeyError for an unknown source."""
    nodes = getattr(which, "nodes", None)
    for name in [which] if nodes is None else nodes:
        if not isinstance(name, (str, DataNode)):
            raise TypeError(f"a source must be specified by its node, name or operator, got {which!r}")
        for node, source in running.sources.items():
            if node.name == getattr(name, "name", name):
                return source
    names = ", ".join(node.name for node in running.sources) or "none"
    raise KeyError(
        f'Could not find an input operator with name "{getattr(which, "name", which)}"; sources of this pipeline: '
        f"{names}"
    )
