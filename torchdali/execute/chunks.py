"""Chunks: several samples of a chain in one call.

A thread holds the GIL once for a chunk, and Python's code and data stay in cache from one sample to the next.
There are three forms of chunks:

- ``tensor``: samples that lie in one tensor, if each operator of the chain has a body for such, or they are small;
- ``ragged``: small samples of any shapes, if an operator has a body for such (short sounds);
- ``encoded``: encoded samples, or records of a reader, with an operator of the fast path, which is one call of C.

Conditions select samples of a chunk (`Places`). What a chunk does not do is done sample by sample, with the same random
numbers: so an error is that of one sample, and the others are done. How many samples a chunk has follows from their
bytes, for each batch anew.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torchdali.calls.chunk_function import put
from torchdali.calls.running import LARGE, number_of_axes, stacked_if_small
from torchdali.declaration.batching import MOST_BYTES, Column, EncodedBody, truth
from torchdali.execute.process_state import has_gil
from torchdali.graph.nodes import DataNode, Node
from torchdali.graph.plan import Chain, column, is_metadata
from torchdali.reading.datasets import local_paths, read_several, row
from torchdali.tensors import TensorList
from torchdali.tensors._storage import Dense, Packed, Storage

__all__ = [
    "ChunkColumn", "ChunkRun", "Fused", "ChunkReader", "bytes_in_tensors", "can_be_chunk", "chunk_size", "fused",
    "PartialResult", "Places", "holds", "is_encoded", "is_foreign", "places_of", "put_chunk", "stored_chunks",
]  # fmt: skip

_MOST_ENCODED, _MOST_SMALL = 8, 64  # samples of a chunk
_EACH = 2  # chunks for each thread, if a batch has as many
_TINY = 1 << 10  # bytes of a sample; a batch of such is done sooner than another thread wakes


def chunk_size(form: str, count: int, threads: int, sample: int) -> int:
    """Choose how many samples a chunk has: as many as fit into cache, and one or two chunks for each thread.

    Args:
        form: Of the chunks.
        count: Samples of the batch.
        sample: Bytes of a sample; 0 if they are not known.
    """
    if form in ("tensor", "single") and sample <= (LARGE if has_gil() else _TINY):
        return count  # several threads would wait for each other, or take longer to wake
    most = {"encoded": _MOST_ENCODED, "ragged": _MOST_SMALL}.get(form, count)
    # Of sounds, a chunk for each thread: their calls are short, and after each the threads wait for each other.
    share = -(-count // (threads if form == "ragged" or threads == 1 else _EACH * threads))
    return max(1, min(most, MOST_BYTES // max(1, sample), share))


def bytes_in_tensors(inputs: Sequence[DataNode], batches: Mapping[DataNode, TensorList], count: int) -> int | None:
    """Return the bytes of a sample of all inputs together; None unless each is one tensor, or of a branch."""
    total = 0
    for edge in inputs:
        batch = batches[edge]
        whole = stacked_if_small(batch)
        if whole is not None:
            total += whole.nbytes // count
        elif any(sample is None for sample in batch.samples()):
            total += max((sample.nbytes for sample in batch.samples() if sample is not None), default=0)
        else:
            return None
    return total


def can_be_chunk(node: Node) -> bool:
    """Return True if an operator can take several samples in one call.

    What fails in a chunk runs again, so that it may not have an effect or a memory. It has to take something that
    differs from sample to sample.
    """
    options, declared = node.operator.options, node.operator
    takes = node.inputs or node.per_sample or declared.schema.random or declared.kind == "reader"
    lasting = node.preserve or options.preserve or (options.make is not None and not options.merges)
    return bool(takes) and not (lasting or is_foreign(node))


def is_foreign(node: Node) -> bool:
    """Return True if an operator is declared outside of this package."""
    return node.operator.body.__module__.partition(".")[0] != "torchdali"


def is_encoded(batch: TensorList) -> bool:
    """Return True if samples may be encoded: they are few bytes, and much work."""
    return batch.torch_dtype == torch.uint8 and number_of_axes(batch) == 1


class ChunkReader:
    """A reader on lists of records: several in one call where it can, otherwise one by one.

    Args:
        read: The reader on one record.
        lent: What is read need be valid only until this thread reads again.
    """

    def __init__(self, read: Callable[..., Any], lent: bool = False) -> None:
        self._read, self._several, self._lent = read, read_several(read), lent

    def __call__(self, records: Sequence[Any]) -> Any:
        """Read several records."""
        samples = self._several(records, self._lent)
        if samples is not None:
            return (samples,)
        return tuple(map(list, zip(*[row(self._read(record)) for record in records], strict=True)))


class ChunkColumn:
    """A column whose items are chunks of the items of another.

    Args:
        items: A tensor, `Column` or sequence with an item a sample; None for places that are not there.
    """

    def __init__(self, items: Any, chunk: int) -> None:
        self._items, self._chunk = items, chunk

    def __getitem__(self, i: int) -> Any:
        return None if self._items is None else self._items[i * self._chunk : (i + 1) * self._chunk]

    def __setitem__(self, i: int, samples: Any) -> None:
        first = i * self._chunk
        if isinstance(samples, torch.Tensor):
            samples = Dense(samples)
        if isinstance(samples, Storage) and type(self._items) is list:
            self._items[first] = samples  # it stands for all of them until the batch is made
            return
        for k, sample in enumerate(samples, first):
            self._items[k] = sample


@dataclass(frozen=True)
class Places:
    """The samples of a chunk for which conditions hold.

    Attributes:
        numbers: Of these samples, in the chunk.
        size: Samples of the chunk.
    """

    numbers: list[int]
    size: int

    def part(self, items: Any) -> Any:
        """Return the items of these samples, of a chunk's input, argument or result."""
        if items is None:
            return None
        if isinstance(items, PartialResult) and items.places == self:
            return items.samples
        if isinstance(items, (torch.Tensor, Column)):
            return items[self.numbers]
        items = list(items)
        return [items[k] for k in self.numbers]


@dataclass(frozen=True)
class PartialResult:
    """Results of an operator for some samples of a chunk; as a sequence, None for the others."""

    samples: Any
    places: Places

    def __iter__(self) -> Iterator[Any]:
        items: list[Any] = [None] * len(self)
        for k, sample in zip(self.places.numbers, self.samples, strict=True):
            items[k] = sample
        return iter(items)

    def __len__(self) -> int:
        return self.places.size


def places_of(conditions: Iterable[tuple[Sequence[Any] | None, bool | int]]) -> Places | None:
    """Return for which samples of a chunk all conditions hold; None if for none.

    Args:
        conditions: For each its values, None if there are none, and what they must be. A value is looked at only if the
            conditions before hold, since otherwise there may be none.
    """
    places: Places | None = None
    for values, wanted in conditions:
        if values is None:
            return None
        numbers = range(len(values)) if places is None else places.numbers
        places = Places([k for k in numbers if holds(values[k], wanted)], len(values))
        if not places.numbers:
            return None
    return places


def holds(value: Any, wanted: bool | int) -> bool:
    """Return whether the value of a condition is what it must be."""
    return bool((truth(value) if isinstance(wanted, bool) else value) == wanted)


def put_chunk(slots: torch.Tensor | None, samples: Any) -> Any:
    """Copy results of a chunk to their places in the batch; what is in one tensor and has none stays there."""
    if isinstance(samples, Packed):
        return samples.straight()
    if isinstance(samples, torch.Tensor):
        return put(slots, samples)
    places = itertools.repeat(None, len(samples)) if slots is None else slots
    pairs = zip(places, samples, strict=True)
    return [None if sample is None else put(slot, sample) for slot, sample in pairs]


def stored_chunks(done: MutableSequence[Any], chunk: int) -> list[Storage] | None:
    """Return the results of chunks of so many samples, if each is in one tensor; otherwise divide them."""
    results = done[::chunk]
    if all(isinstance(each, Storage) for each in results):
        return list(results)
    for i, each in zip(range(0, len(done), chunk), results, strict=True):
        if isinstance(each, Storage):
            done[i : i + len(each)] = each
    return None


@dataclass(frozen=True)
class Fused:
    """A chain of an encoded input, or a reader, and one operator that does several samples in one call.

    Attributes:
        body: Of the operator.
        read: What reads a record; None where the input comes from elsewhere.
        data: Column of records, or of encoded samples.
        rng: Column of random numbers, if it takes some.
        mirror: Column of the argument ``mirror``, if it is given per sample.
        slot: Column of places for the results.
        done: Column of the results.
    """

    body: EncodedBody
    read: Callable[[Any], Any] | None
    data: str
    rng: str | None
    mirror: str | None
    slot: str
    done: str

    def bind(self, columns: Mapping[str, Any]) -> Callable[[range], Collection[int]]:
        """Return what does some samples of a batch, and returns those that it leaves."""
        data, slots = columns[self.data], columns[self.slot]
        rngs = None if self.rng is None else columns[self.rng]
        mirrors = None if self.mirror is None else columns[self.mirror]
        done = columns[self.done]
        paths = None if self.read is None else local_paths(self.read)

        def do(samples: range) -> Collection[int]:
            part = slice(samples.start, samples.stop)
            results = self.body(
                self._sources(data[part], paths),
                slots[part],
                None if rngs is None else rngs[part],
                None if mirrors is None else mirrors[part],
            )
            for i, result in zip(samples, results, strict=True):
                if result is not None:
                    done[i] = result
            return [i for i, result in zip(samples, results, strict=True) if result is None]

        return do

    def _sources(self, data: Sequence[Any], paths: Any) -> Sequence[Any]:
        if self.read is None or paths is None:
            return data
        if not all(type(record) is int for record in data):
            return [None] * len(data)  # reading has begun elsewhere
        files = paths(data)
        return files if files is not None else [self._read_one(record) for record in data]

    def _read_one(self, record: int) -> Any:
        assert self.read is not None
        try:
            return row(self.read(record))[0]
        except Exception:
            return None


def fused(chain: Chain, index: Mapping[Node, int], readers: Mapping[Node, Callable[[Any], Any]]) -> Fused | None:
    """Return how a chain of the fast path does several samples in one call; None if it cannot."""
    *before, node = chain.nodes
    make, per_sample = node.operator.chunks.get("encoded"), set(node.per_sample)
    if make is None or len(before) > 1 or len(node.inputs) != 1 or node.scope or not per_sample <= {"mirror"}:
        return None
    edge = node.inputs[0]
    source = None if edge is None else edge.source
    if (
        edge is None
        or source is None
        or list(map(id, chain.delivers)) != list(map(id, node.outputs))
        or is_metadata(edge)
    ):
        return None
    read = None
    if before:
        if before[0] is not source or source.operator.kind != "reader" or source.per_sample or source.scope:
            return None
        read, data = readers[source], column("key", index[source])
    else:
        data = column("input", index[source], edge.index)
    body = make({k: v for k, v in node.constants.items() if k != "seed"})
    if body is None:
        return None
    values = {value.edge: value for value in chain.values}
    mirror = None
    if per_sample:
        value = values.get(node.per_sample["mirror"])
        if value is None or value.edge.source is None or value.kind != "number":
            return None
        mirror = column("number", index[value.edge.source], value.edge.index)
    k = index[node]
    rng = column("rng", k) if node.operator.schema.random else None
    return Fused(body, read, data, rng, mirror, column("slot", k), column("done", k))


class ChunkRun:
    """Runs a chain on one chunk a call; what a chunk leaves, or all of one that fails, sample by sample.

    Args:
        do: Does some samples, and returns those that it leaves.
        make_single: Makes the function that does a sample. Called once, if there is such a sample.
        done: Results by edge, a list with a place for each sample.
        size: Samples of the batch.
        chunk: Samples of a chunk.
        keep_going: Go on after a sample that fails.

    Attributes:
        count: Chunks of the batch.
        failures: Exceptions, by sample.
    """

    def __init__(
        self,
        do: Callable[[range], Collection[int]],
        make_single: Callable[[], Callable[[int], None]],
        done: Sequence[MutableSequence[Any]],
        size: int,
        chunk: int,
        keep_going: bool,
    ) -> None:
        self._do, self._make_single, self._done = do, make_single, done
        self._size, self._keep_going = size, keep_going
        self._single: Callable[[int], None] | None = None
        self._lock = threading.Lock()
        self.chunk, self.count = chunk, -(-size // chunk)
        self.failures: dict[int, BaseException] = {}

    def __call__(self, number: int) -> None:
        """Do a chunk."""
        first = number * self.chunk
        samples = range(first, min(first + self.chunk, self._size))
        left: Collection[int]
        try:
            left = self._do(samples)
        except Exception:  # sample by sample, they tell why
            left = samples
            for results in self._done:
                results[first] = None  # a tensor with results of the whole chunk
        if left:
            self._one_by_one(left)

    def _one_by_one(self, samples: Collection[int]) -> None:
        with self._lock:  # several threads may come here with a chunk each; all share one function
            if self._single is None:
                self._single = self._make_single()
        for i in samples:
            if self.failures and not self._keep_going:
                return
            try:
                self._single(i)
            except Exception as error:
                self.failures[i] = error  # other threads write here too, under keys of their own

    def merged(self, failures: Mapping[int, BaseException]) -> dict[int, BaseException]:
        """Return all failures by sample.

        Args:
            failures: Of chunks as a whole, by their numbers.
        """
        return {**{number * self.chunk: error for number, error in failures.items()}, **self.failures}
