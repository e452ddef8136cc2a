"""Chunks: samples that go through a chain together.

A thread holds the GIL once for a chunk, and Python's code and data stay in cache from one sample to the next. The size
of the samples determines how many a chunk has, separately for each batch (`chunk_size`). If an operator has a body for
several samples that accepts these, it processes a chunk in one call, otherwise sample by sample (`ChunkFunction`). In
the fast path, C runs the whole chain in one call (`Fused`). Conditions select samples of a chunk (`Places`).

Samples that a chunk skips run again in chunks of one sample, with the same random numbers. So an error belongs to one
sample, and the others are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torchdali.calls.layouts import number_of_axes
from torchdali.calls.running import stacked_if_small
from torchdali.codecs._native import read_files
from torchdali.codecs.files import read_in_blocks
from torchdali.declaration.batching import MOST_BYTES, Column, EncodedBody, truth
from torchdali.execute.output_buffer import OpenBuffer
from torchdali.execute.process_state import has_gil
from torchdali.graph.nodes import DataNode, Node
from torchdali.graph.plan import Chain, HostValue, encoded_operator, is_shared, value_of
from torchdali.kernels.memory import SMALL_SAMPLE
from torchdali.reading.datasets import Read, WholeFiles, read_row
from torchdali.tensors import TensorList
from torchdali.tensors._storage import PackedSamples, SeparateSamples, arrays_of

__all__ = [
    "Chunk", "ChunkReader", "Columns", "Fused", "PartialResult", "Places", "branches_of",
    "bytes_in_tensors", "bytes_of_sample", "can_be_chunk", "chunk_size", "fuse", "is_encoded", "is_of_user",
    "is_small",
]  # fmt: skip

_MOST, _MOST_ENCODED = 64, 16  # samples of a chunk
_MOST_SHARED = 32  # samples of a chunk whose files are only copied, for the device
_TINY = 1 << 10  # bytes of a sample so small that a batch is done before another thread wakes up


def chunk_size(count: int, threads: int, sample: int, most: int = _MOST, parts: int = 2) -> int:
    """Choose how many samples a chunk has: as many as fit into cache, and some chunks for each thread.

    Args:
        count: Samples of the batch.
        sample: Bytes of a sample.
        most: Samples of a chunk.
        parts: Chunks for each thread, if there are several threads, and the batch has as many samples.
    """
    share = -(-count // (threads * parts if threads > 1 else 1))
    return max(1, min(most, MOST_BYTES // max(1, sample), share))


def is_small(sample: int) -> bool:
    """Return True if one thread is faster than several for a batch of samples of this size, because threads would wait.

    Args:
        sample: Bytes of a sample.
    """
    return sample <= (SMALL_SAMPLE if has_gil() else _TINY)


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


def bytes_of_sample(samples: Any) -> int:
    """Return the bytes of a sample of a chunk, on average."""
    if isinstance(samples, PartialResult):
        samples = samples.samples
    if isinstance(samples, (torch.Tensor, PackedSamples)):
        memory = samples.flat if isinstance(samples, PackedSamples) else samples
        return memory.nbytes // max(1, len(samples))
    each = arrays_of(samples) or samples or ()
    return sum(getattr(sample, "nbytes", 0) for sample in each) // max(1, len(each))


def can_be_chunk(node: Node) -> bool:
    """Return True if an operator can take several samples in one call.

    Failed chunks run again, so the operator must have no effect and no memory. Its input must be one that
    differs from sample to sample.
    """
    options, declared = node.operator.options, node.operator
    takes = node.inputs or node.per_sample or declared.schema.random or declared.kind == "reader"
    lasting = node.preserve or options.preserve or (options.make is not None and not options.merges)
    return bool(takes) and not (lasting or is_of_user(node))


def is_of_user(call: Any) -> bool:
    """Return True if an operator is declared outside of this package, or is given a function.

    Args:
        call: A node, or something else that has an operator and constants.
    """
    return not call.operator.is_ours or any(map(callable, call.constants.values()))


def is_encoded(batch: TensorList) -> bool:
    """Return True if samples may be encoded: they are few bytes, and much work."""
    return batch.torch_dtype == torch.uint8 and number_of_axes(batch) == 1


class ChunkReader:
    """A reader on several records: whole files in one call if they are small, others one by one.

    Args:
        lent: The data need be valid only until this thread reads again.
        copied: Indices of the outputs that are copied: they may be memory of the dataset, and leave the pipeline.
            Written to, they would change the data of later epochs.
    """

    def __init__(self, lent: bool = False, copied: Collection[int] = ()) -> None:
        self._lent, self._copied = lent, copied
        self._by_library = True

    def __call__(
        self, reads: Sequence[Read], out: Sequence[Any] | None = None, **arguments: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Read several records.

        Args:
            reads: Reads each of them.
            out: Places for the first output.
            arguments: A value for each record.
        """
        samples = self._files(reads) if out is None and not arguments else None
        return self.one_by_one(reads, out, **arguments) if samples is None else (samples,)

    def _files(self, reads: Sequence[Read]) -> SeparateSamples | None:
        if not isinstance(reads, WholeFiles):
            return None
        paths = reads.paths
        files = read_files(paths, self._lent) if self._by_library else None
        if files is None:
            # They are larger: it would read them in vain. Any thread may write this; a thread that still sees True only
            # tries once more.
            self._by_library = False
            files = read_in_blocks(paths) if self._lent else None
        return None if files is None else SeparateSamples.of_arrays(files, torch.uint8)

    def one_by_one(
        self, reads: Sequence[Read], out: Sequence[Any] | None = None, **arguments: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Do the same, record by record."""
        if out is not None:
            arguments["out"] = out
        values = zip(*arguments.values(), strict=True) if arguments else [()] * len(reads)
        rows = [
            read_row(read, self._copied, **dict(zip(arguments, each, strict=True)))
            for read, each in zip(reads, values, strict=True)
        ]
        return tuple(map(list, zip(*rows, strict=True)))


@dataclass(frozen=True)
class Columns:
    """The items of a batch, one for each sample, as a chain takes them.

    Attributes:
        data: Data of the chain's inputs.
        values: The chain's values, by their keys.
        reads: For each reader the functions that read each record.
        rngs: Random numbers of an operator.
        buffers: Where results are stored.
    """

    data: Mapping[DataNode, Any]
    values: Mapping[object, Any]
    reads: Mapping[Node, Sequence[Read]]
    rngs: Mapping[Node, Sequence[Any]]
    buffers: Mapping[DataNode, OpenBuffer]


@dataclass(frozen=True)
class Places:
    """The samples of a chunk for which conditions hold.

    Attributes:
        numbers: Indices of these samples in the chunk.
        size: Samples of the chunk.
    """

    numbers: Sequence[int]
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


class Chunk:
    """Some samples of a batch on their way through a chain.

    Attributes:
        samples: Their numbers in the batch.
        part: The same, as a slice.
        results: Results of the operators so far, and inputs from outside, by edge; a branch without samples has none.
        branches: The samples of the branches so far, by the conditions around them and by the value of their own: all
            operators of a branch take the same.
    """

    __slots__ = ("branches", "part", "results", "samples")

    def __init__(self, samples: range) -> None:
        self.samples, self.part = samples, slice(samples.start, samples.stop)
        self.results: dict[DataNode, Any] = {}
        self.branches: dict[object, Mapping[Any, Sequence[int]]] = {}


def branches_of(values: Any, numbers: Sequence[int], by_truth: bool) -> Mapping[Any, Sequence[int]]:
    """Return the samples of each branch of a condition, by its value.

    Args:
        values: Values of the condition, for each sample of a batch or chunk; None if no sample has one.
        numbers: The samples that come to the condition.
        by_truth: The branches are for True and False.
    """
    branches: dict[Any, list[int]] = {}
    items = values.values if isinstance(values, Column) else values
    for i in numbers if items is not None else ():
        branches.setdefault(truth(items[i]) if by_truth else items[i], []).append(i)
    return branches


@dataclass(frozen=True)
class Fused:
    """A chain of an encoded input, or a reader, and one operator that does several samples in one call.

    Attributes:
        body: The operator's function for several samples.
        node: The operator.
        data: The reader whose records, or the edge whose samples it takes.
        values: Arguments that are given per sample, by their names.
    """

    body: EncodedBody
    node: Node
    data: Node | DataNode
    values: Mapping[str, HostValue]

    def chunk_size(self, count: int, threads: int) -> int:
        """Choose how many samples a chunk of a batch has."""
        if is_shared(self.node.outputs[0]):
            return chunk_size(count, threads, 0, _MOST_SHARED, parts=1)
        return chunk_size(count, threads, 0, _MOST_ENCODED)

    def bind(self, columns: Columns) -> Callable[[range], Collection[int]]:
        """Build the function that processes a range of samples. It returns the indices that it skipped."""
        buffers = [columns.buffers[edge] for edge in self.node.outputs]
        data: Any = columns.reads[self.data] if isinstance(self.data, Node) else columns.data[self.data]
        rngs = columns.rngs.get(self.node)
        values = {name: columns.values[value.key] for name, value in self.values.items()}

        def store(samples: range, outputs: Sequence[Any]) -> None:
            for buffer, each in zip(buffers, outputs, strict=True):
                buffer.store(samples, each)

        def do(samples: range) -> Collection[int]:
            # Several threads are in here, with a chunk each. Nobody changes the columns that they read any more;
            # they write, in C without the GIL, the part of `out` that belongs to the chunk, or a place of the
            # room that was taken under its lock. Files are read into memory of the thread.
            part = slice(samples.start, samples.stop)
            results = self.body(
                _sources(data[part]) if isinstance(self.data, Node) else data[part],
                buffers[0].place(samples),
                None if rngs is None else rngs[part],
                {name: column[part] for name, column in values.items()},
                buffers[0].arena,
            )
            if not results.skipped:
                store(samples, results.outputs)
                return ()
            skipped = set(results.skipped)
            for k in range(len(samples)):
                if k not in skipped:
                    store(samples[k : k + 1], [[each[k]] for each in results.outputs])
            return [samples[k] for k in results.skipped]

        return do


def _sources(reads: Sequence[Read]) -> list[Any]:
    return reads.paths if isinstance(reads, WholeFiles) else list(map(_read_alone, reads))


def _read_alone(read: Read) -> Any:
    """Return the first output of a record. None if it cannot be read: reading it again raises the error."""
    try:
        return read_row(read)[0]
    except Exception:  # it is read again alone; the others are not
        return None


def fuse(chain: Chain) -> Fused | None:
    """Return how a chain of the fast path does several samples in one call; None if it cannot."""
    node = encoded_operator(chain)
    if node is None:
        return None
    (edge,) = node.inputs
    assert edge is not None and edge.source is not None
    data: Node | DataNode = edge.source if len(chain.nodes) > 1 else edge
    body = node.operator.chunks["encoded"]({k: v for k, v in node.constants.items() if k != "seed"})
    values = {name: value_of(argument, node, name) for name, argument in node.per_sample.items()}
    known = {value.key for value in chain.values}
    if body is None or any(value.axes is not None or value.key not in known for value in values.values()):
        return None
    return Fused(body, node, data, values)
