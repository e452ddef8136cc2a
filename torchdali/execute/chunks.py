"""Chunks: groups of samples that run together through a chain (operators that run sample by sample).

Threads acquire the GIL once per chunk instead of once per sample. `chunk_size` chooses the number of samples per chunk
for each batch, from the samples' size. If an operator has a batched implementation that accepts the samples, it
processes a chunk in one call. Otherwise it processes the samples one by one. On the *fast path* (`Fused`), C code runs
the whole chain in one call. An operator in a branch (of an if statement or a switch) processes only the samples for
which the branch's conditions hold (`Selection`). An *edge* is an output of an operator.

If processing a chunk fails for some samples, these samples are rerun one by one, with the same random numbers.
Therefore an error affects only one sample.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torchdali.calls.layouts import number_of_axes
from torchdali.calls.running import stack_if_small
from torchdali.codecs._native import read_files
from torchdali.codecs.files import read_in_blocks
from torchdali.declaration.batching import MAX_CHUNK_BYTES, Column, EncodedImplementation, truth
from torchdali.execute.output_buffer import OpenBuffer
from torchdali.execute.process_state import has_gil
from torchdali.graph.nodes import DataNode, Node
from torchdali.graph.plan import Chain, HostValue, create_host_value, find_encoded_operator, is_shared
from torchdali.kernels.memory import SMALL_SAMPLE
from torchdali.reading.datasets import Read, WholeFiles, read_row
from torchdali.tensors import TensorList
from torchdali.tensors._storage import PackedSamples, SeparateSamples, arrays_of

__all__ = [
    "Chunk", "ChunkReader", "Columns", "Fused", "PartialResult", "Selection", "branches_of",
    "bytes_in_tensors", "bytes_of_sample", "can_be_chunk", "chunk_size", "fuse", "is_encoded", "runs_user_code",
    "is_small",
]  # fmt: skip

_MAX_SAMPLES, _MAX_ENCODED = 64, 16  # largest number of samples in a chunk
_MAX_SHARED = 32  # largest number of samples in a chunk if the device's hardware decoder decodes some of the files
# If samples have at most this number of bytes, one thread finishes the batch before another thread wakes up.
_TINY_BYTES = 1 << 10


def chunk_size(count: int, threads: int, sample_bytes: int, max_samples: int = _MAX_SAMPLES, parts: int = 2) -> int:
    """Choose the number of samples per chunk, so that a chunk fits into the CPU's cache and each thread gets work.

    Args:
        count: Number of samples of the batch.
        threads: Number of threads.
        sample_bytes: Bytes per sample.
        max_samples: Largest number of samples in a chunk.
        parts: Number of chunks per thread. It has no effect if there is only one thread.
    """
    share = -(-count // (threads * parts if threads > 1 else 1))
    return max(1, min(max_samples, MAX_CHUNK_BYTES // max(1, sample_bytes), share))


def is_small(sample_bytes: int) -> bool:
    """Return whether samples are so small that one thread processes a batch faster than several threads.

    Args:
        sample_bytes: Bytes per sample.
    """
    return sample_bytes <= (SMALL_SAMPLE if has_gil() else _TINY_BYTES)


def bytes_in_tensors(inputs: Sequence[DataNode], batches: Mapping[DataNode, TensorList], count: int) -> int | None:
    """Return the bytes per sample, summed over all inputs; None if an input can't be one tensor.

    If an input comes from a branch and has no values for some samples, its largest sample counts.
    """
    total = 0
    for edge in inputs:
        batch = batches[edge]
        tensor = stack_if_small(batch)
        if tensor is not None:
            total += tensor.nbytes // count
        elif any(sample is None for sample in batch.samples()):
            total += max((sample.nbytes for sample in batch.samples() if sample is not None), default=0)
        else:
            return None
    return total


def bytes_of_sample(samples: Any) -> int:
    """Return the average number of bytes per sample in an input or result of a chunk."""
    if isinstance(samples, PartialResult):
        samples = samples.samples
    if isinstance(samples, (torch.Tensor, PackedSamples)):
        memory = samples.flat if isinstance(samples, PackedSamples) else samples
        return memory.nbytes // max(1, len(samples))
    each = arrays_of(samples) or samples or ()
    return sum(getattr(sample, "nbytes", 0) for sample in each) // max(1, len(each))


def can_be_chunk(node: Node) -> bool:
    """Return whether an operator can process several samples in one call.

    Failed chunks are rerun, so the operator must have no side effects and no state. It must also have an input, a
    per-sample argument or random numbers, or read records.
    """
    options, declared = node.operator.options, node.operator
    has_input = node.inputs or node.per_sample or declared.schema.random or declared.kind == "reader"
    is_stateful = node.preserve or options.preserve or (options.make is not None and not options.merges)
    return bool(has_input) and not (is_stateful or runs_user_code(node))


def runs_user_code(call: Any) -> bool:
    """Return whether an operator is declared outside of this package, or has a function as an argument.

    Args:
        call: A node, or another object with an operator and constants.
    """
    return not call.operator.is_ours or any(map(callable, call.constants.values()))


def is_encoded(batch: TensorList) -> bool:
    """Return whether samples may be encoded data, which takes long to process although it is small."""
    return batch.torch_dtype == torch.uint8 and number_of_axes(batch) == 1


class ChunkReader:
    """Reads several records: small files in one call, other records one by one.

    Args:
        is_temporary: True if no code uses the data after this thread's next read. Then the next read may reuse the
            memory.
        copied: Indices of the outputs that must be copied. These outputs may be views of the dataset's memory, and the
            user receives them. Without a copy, a user who writes to an output would change the dataset.
    """

    def __init__(self, is_temporary: bool = False, copied: Collection[int] = ()) -> None:
        self._is_temporary, self._copied = is_temporary, copied
        self._uses_library = True

    def __call__(
        self, reads: Sequence[Read], out: Sequence[Any] | None = None, **arguments: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Read several records.

        Args:
            reads: The functions that read the records.
            out: Memory for the first output, one tensor per record. None if the readers allocate the memory.
            arguments: More arguments for the functions, with one value per record.
        """
        samples = self._read_whole_files(reads) if out is None and not arguments else None
        return self.one_by_one(reads, out, **arguments) if samples is None else (samples,)

    def _read_whole_files(self, reads: Sequence[Read]) -> SeparateSamples | None:
        if not isinstance(reads, WholeFiles):
            return None
        paths = reads.paths
        files = read_files(paths, self._is_temporary) if self._uses_library else None
        if files is None:
            # The files are too large for `read_files`, so don't call `read_files` again. Threads read and write this
            # attribute without a lock. At worst, another thread calls `read_files` once more.
            self._uses_library = False
            files = read_in_blocks(paths) if self._is_temporary else None
        return None if files is None else SeparateSamples.from_arrays(files, torch.uint8)

    def one_by_one(
        self, reads: Sequence[Read], out: Sequence[Any] | None = None, **arguments: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Read several records one by one; the arguments are the same as in `__call__`."""
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
    """The values that a chain needs from a batch, with one value per sample.

    Attributes:
        data: Data of the chain's inputs, by edge.
        values: Values of arguments and conditions. The keys are `plan.HostValue.key`.
        reads: For each reader, the functions that read the records.
        rngs: For each random operator, its random numbers.
        buffers: For each edge that the chain delivers, the buffer for its results.
    """

    data: Mapping[DataNode, Any]
    values: Mapping[object, Any]
    reads: Mapping[Node, Sequence[Read]]
    rngs: Mapping[Node, Sequence[Any]]
    buffers: Mapping[DataNode, OpenBuffer]


@dataclass(frozen=True)
class Selection:
    """The samples of a chunk for which an operator's conditions hold.

    Attributes:
        indices: The indices of these samples in the chunk.
        size: Number of samples in the whole chunk.
    """

    indices: Sequence[int]
    size: int

    def select(self, items: Any) -> Any:
        """Select the items of these samples from a chunk's input, argument or result."""
        if items is None:
            return None
        if isinstance(items, PartialResult) and items.selection == self:
            return items.samples
        if isinstance(items, (torch.Tensor, Column)):
            return items[self.indices]
        items = list(items)
        return [items[k] for k in self.indices]


@dataclass(frozen=True)
class PartialResult:
    """Results of an operator for some samples of a chunk.

    Iteration yields one item per sample of the chunk; None for samples without a result.
    """

    samples: Any
    selection: Selection

    def __iter__(self) -> Iterator[Any]:
        items: list[Any] = [None] * len(self)
        for k, sample in zip(self.selection.indices, self.samples, strict=True):
            items[k] = sample
        return iter(items)

    def __len__(self) -> int:
        return self.selection.size


class Chunk:
    """Consecutive samples of a batch that run through a chain together.

    Attributes:
        samples: The samples' indices in the batch.
        part: The samples' indices as a slice.
        results: The chain's inputs, and the results of the operators that have run, by edge. If a branch has no samples
            in the chunk, its operators have no results.
        branches: For each condition that was evaluated, the indices of each branch's samples. All operators in these
            branches use the same entry.
    """

    __slots__ = ("branches", "part", "results", "samples")

    def __init__(self, samples: range) -> None:
        self.samples, self.part = samples, slice(samples.start, samples.stop)
        self.results: dict[DataNode, Any] = {}
        self.branches: dict[object, Mapping[Any, Sequence[int]]] = {}


def branches_of(values: Any, indices: Sequence[int], by_truth: bool) -> Mapping[Any, Sequence[int]]:
    """Return the indices of each branch's samples. The keys are the condition's values.

    Args:
        values: The condition's value for each sample of a batch or chunk; None if no sample has a value.
        indices: Indices of the samples for which the enclosing conditions hold.
        by_truth: True for an if statement, whose keys are True and False; False if the keys are numbers.
    """
    branches: dict[Any, list[int]] = {}
    items = values.values if isinstance(values, Column) else values
    for i in indices if items is not None else ():
        branches.setdefault(truth(items[i]) if by_truth else items[i], []).append(i)
    return branches


@dataclass(frozen=True)
class Fused:
    """The fast path of a chain with a single operator, for example a decoder, and perhaps a reader before it.

    Attributes:
        implementation: The operator's implementation, which processes several encoded samples in one call.
        node: The operator.
        data: A reader in the chain or an input of the chain, from which the encoded samples come.
        values: The operator's per-sample arguments, by name.
    """

    implementation: EncodedImplementation
    node: Node
    data: Node | DataNode
    values: Mapping[str, HostValue]

    def chunk_size(self, count: int, threads: int) -> int:
        """Choose the number of samples per chunk for a batch."""
        if is_shared(self.node.outputs[0]):
            return chunk_size(count, threads, 0, _MAX_SHARED, parts=1)
        return chunk_size(count, threads, 0, _MAX_ENCODED)

    def bind(self, columns: Columns) -> Callable[[range], Collection[int]]:
        """Build the function that processes a range of samples. That function returns the indices that it skipped."""
        buffers = [columns.buffers[edge] for edge in self.node.outputs]
        data: Any = columns.reads[self.data] if isinstance(self.data, Node) else columns.data[self.data]
        rngs = columns.rngs.get(self.node)
        values = {name: columns.values[value.key] for name, value in self.values.items()}

        def store(samples: range, outputs: Sequence[Any]) -> None:
            for buffer, each in zip(buffers, outputs, strict=True):
                buffer.store(samples, each)

        def run(samples: range) -> Collection[int]:
            # Several threads run this function at the same time, each with its own chunk. They share the columns, which
            # don't change any more. The C code runs without the GIL. It writes only to the rows of its own chunk, and
            # to ranges of the arena that it reserved under the arena's lock. It reads files into memory of its thread.
            part = slice(samples.start, samples.stop)
            results = self.implementation(
                _sources(data[part]) if isinstance(self.data, Node) else data[part],
                buffers[0].rows(samples),
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

        return run


def _sources(reads: Sequence[Read]) -> list[Any]:
    return reads.paths if isinstance(reads, WholeFiles) else list(map(_try_read, reads))


def _try_read(read: Read) -> Any:
    """Return the first output of a record; None if reading fails."""
    try:
        return read_row(read)[0]
    except Exception:  # the sample is skipped and rerun, and the rerun raises the error
        return None


def fuse(chain: Chain) -> Fused | None:
    """Build the fast path of a chain; None if the chain can't run in one call."""
    node = find_encoded_operator(chain)
    if node is None:
        return None
    (edge,) = node.inputs
    assert edge is not None and edge.source is not None
    data: Node | DataNode = edge.source if len(chain.nodes) > 1 else edge
    implementation = node.operator.chunks["encoded"]({k: v for k, v in node.constants.items() if k != "seed"})
    values = {name: create_host_value(argument, node, name) for name, argument in node.per_sample.items()}
    available = {value.key for value in chain.values}
    if implementation is None or any(value.axes is not None or value.key not in available for value in values.values()):
        return None
    return Fused(implementation, node, data, values)
