"""The dataset of cached samples. Its reader replaces `fn.cache` and all operators before the cache in the graph."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np
import torch

from torchdali.calls.running import FunctionCache
from torchdali.errors import FusedPart
from torchdali.execute.compiled_chain import axes_after
from torchdali.execute.sent_graph import SentGraph
from torchdali.execute.steps import run_in_scope
from torchdali.forks import ForkSafeLock
from torchdali.formats.sample_store import MemoryStore, SampleStore, disk_store
from torchdali.formats.shared_counts import DescriptorLink, SharedCounts, share
from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.graph.plan import edges, is_metadata
from torchdali.reading.datasets import Read, check_dataset, read_row, source_namer, start_reads
from torchdali.reading.file_lists import list_identity
from torchdali.tensors import TensorList

__all__ = ["CachedDataset", "SampleCache"]

_HITS, _MISSES, _NOT_STORED = 0, 1, 2
_ORIGIN_ATTRIBUTES = frozenset(
    ("metadata", "classes", "runs", "draw", "draws_shuffled", "remotes", "bytes_ahead", "is_busy", "byte_count")
)


class SampleCache:
    """The samples of one cache: the graph that computes them, and the store that contains them.

    This object is an argument of the reader that replaces the cache. If the object is sent to another process, it opens
    the same memory or the same files there.

    Args:
        graph: The operators before the cache, including one reader.
        parts: Names of the operators in the graph, for messages.
        digest: Digest of the graph's operators and arguments.
        limit: Largest number of bytes in the store; None for the disk's capacity.
        folder: Folder of the store; None to store the samples in memory.

    Attributes:
        layouts: Layouts of the outputs.
    """

    def __init__(
        self, graph: Graph, parts: tuple[str, ...], digest: bytes, limit: int | None, folder: str | None
    ) -> None:
        self.graph, self.parts, self.digest = graph, parts, digest
        self._limit, self._folder = limit, None if folder is None else os.path.abspath(folder)
        self.layouts = _layouts(graph)
        self._store: SampleStore | None = None
        self._counts = _counts()
        self._shared: tuple[int, DescriptorLink, DescriptorLink] | None = None
        self._final_texts: tuple[list[str], str] | None = None

    def __repr__(self) -> str:
        return "kept in " + ("memory" if self._folder is None else repr(self._folder))

    @property
    def in_memory(self) -> bool:
        """True if the samples are stored in this machine's memory. Then other machines can't use them."""
        return self._folder is None

    def open(self) -> CachedDataset:
        """Open the reader and the store, and return the dataset of cached samples.

        Raises:
            RuntimeError: The reader can't identify the files of its records, or the store can't be opened.
        """
        (reader,) = (node for node in self.graph.nodes if node.operator.kind == "reader")
        origin = reader.operator.implementation(**reader.constants)
        check_dataset(origin)
        if getattr(origin, "identity", None) is None or (_is_remote(origin) and origin.identity(0) is None):
            raise RuntimeError(
                f"fn.cache cannot cache samples of {reader.operator.name!r}, because it cannot detect changes of the "
                f"data: the reader does not report the file of each record, or the store sends neither an ETag nor a "
                f"modification time"
            )
        if self._store is None:  # worker processes are started later, and share this store
            self._store = self._open_store()
        return CachedDataset(origin, self)

    def close(self) -> None:
        """Close the store. `summary` and `explain_store` remain available."""
        if self._store is not None:
            self._final_texts = self.explain_store(), self.summary()
            self._store = None

    @property
    def store(self) -> SampleStore:
        """The store, while it is open."""
        assert self._store is not None
        return self._store

    def _open_store(self) -> SampleStore:
        if os.name == "nt":
            raise RuntimeError("fn.cache needs Linux or macOS: Windows does not have the file locks that it uses")
        if self._folder is not None:
            return disk_store(self._folder, self.digest.hex(), self._limit)
        assert self._limit is not None
        return MemoryStore(self._limit) if self._shared is None else MemoryStore.join(*self._shared)

    def get(self, key: bytes) -> tuple[torch.Tensor, ...] | None:
        """Return the stored values for a key; None if the store doesn't have the key. Count a hit or a miss."""
        values = self.store.get(key)
        if values is not None and len(values) != len(self.layouts):
            self.store.forget(key)
            values = None
        self._counts.add(_MISSES if values is None else _HITS)
        return values

    def put(self, key: bytes, values: tuple[torch.Tensor, ...]) -> None:
        """Store the values of a sample. If the store is full, count the sample as not stored."""
        if not self.store.put(key, values):
            self._counts.add(_NOT_STORED)

    @property
    def hits(self) -> int:
        """Number of times that a sample was found in the store, in all processes of the pipeline."""
        return self._counts.total(_HITS)

    @property
    def misses(self) -> int:
        """Number of times that a sample wasn't found in the store, in all processes of the pipeline."""
        return self._counts.total(_MISSES)

    def __getstate__(self) -> dict[str, Any]:
        store = self.store
        return {
            **self.__dict__,
            "graph": SentGraph.of(self.graph, self.graph.nodes),
            "_store": None,
            "_counts": share(self._counts.descriptor),
            "_shared": store.share() if isinstance(store, MemoryStore) else None,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.graph, self._counts = state["graph"].graph(), SharedCounts.join(state["_counts"])

    def explain_store(self) -> list[str]:
        """Return lines for `Pipeline.explain`: the store's location, and the operators before the cache."""
        if self._final_texts is not None:
            return self._final_texts[0]
        store = self.store
        where = f"in {store.name}, {store.limit / 2**20:,.0f} MiB at most, {store.bytes / 2**20:,.0f} now"
        return [f"cache {where}; skipped for cached samples:", *(f"  {node}" for node in self.graph.nodes)]

    def summary(self) -> str:
        """Return a line with the number of hits, misses and stored bytes."""
        if self._final_texts is not None:
            return self._final_texts[1]
        store = self.store
        lookups = max(1, self.hits + self.misses)
        skipped = self._counts.total(_NOT_STORED)
        full = f"; the cache is full, and {skipped:,} samples were skipped" if skipped else ""
        return (
            f"cache: {self.hits:,} hits ({self.hits / lookups:.1%}), {self.misses:,} misses; {len(store):,} samples, "
            f"{store.bytes / 2**20:,.1f} of {store.limit / 2**20:,.1f} MiB in {store.name}{full}"
        )


def _is_remote(dataset: Any) -> bool:
    return bool(getattr(dataset, "remotes", ()))


def _counts() -> SharedCounts:
    try:
        return SharedCounts()
    except OSError as error:
        raise RuntimeError(
            f"fn.cache cannot allocate shared memory for its counts of hits and misses: {error.strerror}. Check the "
            f"limits of the process (ulimit -f, ulimit -v, ulimit -n)"
        ) from None


class CachedDataset:
    """A dataset of cached samples. Each sample is loaded from the store, or computed and then stored.

    Args:
        origin: Dataset of the reader before the cache.
        cache: The graph that computes the samples, and the store.
    """

    def __init__(self, origin: Any, cache: SampleCache) -> None:
        self.origin, self.cache = origin, cache
        self._graph, self._parts = cache.graph, cache.parts
        self._start_lock = ForkSafeLock()
        self._function_caches: dict[Node, FunctionCache] = {node: {} for node in self._graph.nodes}
        self._sees_metadata = any(
            e.source is not None and e.source.operator.kind == "reader" and is_metadata(e)
            for e in (*(e for n in self._graph.nodes for e in edges(n)), *self._graph.outputs)
        )

    def __len__(self) -> int:
        return len(self.origin)

    def __getattr__(self, name: str) -> Any:
        if name in _ORIGIN_ATTRIBUTES:
            return getattr(self.origin, name)
        raise AttributeError(name)

    def info(self, index: int, output: int | None = None) -> str:
        """Return the name of a record in the original dataset, for example its file."""
        if output is None:
            name: str = self.origin.info(index)
            return name
        namer = source_namer(self.origin, output)
        return "" if output or namer is None else namer(index)

    def identity(self, index: int | None = None) -> bytes | None:
        """Return the identity of a record's file, or of the list of all files if `index` is None."""
        identity: bytes | None = list_identity(self.origin) if index is None else self.origin.identity(index)
        return identity

    def read_many(self, records: Sequence[int], epochs: Sequence[int]) -> Sequence[Read] | None:
        """Start to read remote records that aren't in the store.

        Return None if the dataset isn't remote.
        """
        if not _is_remote(self.origin):
            return None
        # Other threads call `_start`, because finding out an object's version already needs a remote request.
        submit = self.origin.remotes[0].submit
        return [partial(self.read, i, submit(partial(self._start, i, e))) for i, e in zip(records, epochs, strict=True)]

    def _start(self, record: int, epoch: int) -> Read | None:
        key = self._key(record)
        if key is not None and key in self.cache.store:
            return None
        with self._start_lock:
            return start_reads(self.origin, [record], [epoch])[0]

    def read(self, index: int, started: Future[Read | None] | None = None) -> tuple[torch.Tensor, ...]:
        """Return the cached sample of a record. If the sample isn't in the store, compute and store it.

        Args:
            index: Index of the record.
            started: Future from `_start`; None if reading was not started.
        """
        key = self._key(index)
        if key is not None and (values := self.cache.get(key)) is not None:
            return values
        # No lock prevents several threads or processes from computing the same sample at the same time. This is rare,
        # and costs less than a lock.
        computed = self._compute(index, None if started is None else started.result())
        if key is not None and key == self._key(index):  # if the file has changed meanwhile, don't store the values
            self.cache.put(key, computed)
        return computed

    def _key(self, index: int) -> bytes | None:
        """Return the key of a record in the store; None if the record's file can't be inspected."""
        identity = self.identity(index)
        if identity is None:
            return None
        key = hashlib.blake2b(self.cache.digest, digest_size=16)
        key.update(identity)
        if self._sees_metadata:
            for value in self.origin.metadata(np.array([index])):
                key.update(value.numpy().tobytes())
        return key.digest()

    def _compute(self, index: int, read: Read | None) -> tuple[torch.Tensor, ...]:
        """Read a record, run the operators before the cache on it, and return the values."""
        values: dict[DataNode, TensorList] = {}
        for node in self._graph.nodes:
            if node.operator.kind == "reader":
                values.update(self._read(node, index, read))
                continue
            try:
                inputs = [None if e is None else values[e] for e in node.inputs]
                arguments = {name: values[e] for name, e in node.per_sample.items()}
                results = run_in_scope(node, inputs, arguments, None, 1, values, self._function_caches[node])
            except Exception as error:
                with FusedPart(self._parts.index(node.culprit(error).name)):
                    error.__dict__.pop("part", None)
                    raise
            values.update(zip(node.outputs, results, strict=True))
        return tuple(values[edge].samples()[0] for edge in self._graph.outputs)

    def _read(self, node: Node, index: int, read: Read | None) -> Mapping[DataNode, TensorList]:
        with FusedPart(self._parts.index(node.name)):
            outputs = list(read_row(read or partial(self.origin.read, index)))
        if self._sees_metadata:
            outputs += [value[0] for value in self.origin.metadata(np.array([index]))]
        layouts = node.operator.output_layouts((), node.constants)
        return {
            edge: TensorList.from_samples([output], layout)
            for edge, output, layout in zip(node.outputs, outputs, layouts, strict=False)
        }


def _layouts(graph: Graph) -> tuple[str, ...]:
    """Return the layouts of the outputs."""
    axes: dict[DataNode, tuple[str, int | None]] = {}
    for node in graph.nodes:
        axes.update(axes_after(node, axes))
    return tuple(axes[edge][0] for edge in graph.outputs)
