"""A batch in flight, and the settings that all batches of a pipeline share."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch

from torchdali.execute.output_buffer import DeviceImages
from torchdali.graph.nodes import DataNode, Node
from torchdali.kernels.exactness import exactly, use_exactness
from torchdali.kernels.limits import max_pixels_of, use_max_pixels
from torchdali.reading.cursor import Cursor, Keys
from torchdali.reading.datasets import Dataset, Indices, Read, start_reads
from torchdali.reading.look_ahead import LookAhead
from torchdali.reading.sources import SourceBatch, SourceWorkers
from torchdali.rng import BatchRng, mix
from torchdali.tensors import TensorList
from torchdali.threads import Latch

__all__ = [
    "BatchDraw", "BatchRequest", "InFlightBatch", "ReaderState", "Settings", "Taken", "metadata_outputs", "random_key",
]  # fmt: skip

_NO_SEED = -1


@dataclass(frozen=True)
class ReaderState:
    """The runtime state of a reader: its dataset, its position in the epochs, and its source workers, if any."""

    dataset: Dataset
    cursor: Cursor
    processes: SourceWorkers | None = None
    ahead: LookAhead = field(default_factory=LookAhead)

    def next_keys(self, count: int, records: Indices | None) -> Keys:
        """Return the keys of the next samples, or of the passed records, which belong to no epoch."""
        if records is None:
            return self.cursor.next_batch(count)
        return Keys(records, np.zeros(len(records), np.int64), np.zeros(len(records), bool))

    @property
    def is_remote(self) -> bool:
        """True if the dataset requests bytes before they are read."""
        return bool(getattr(self.dataset, "bytes_ahead", 0))

    def leaves_epoch(self, count: int, before: Keys) -> bool:
        """Return whether a later epoch begins within the next samples.

        Args:
            count: Number of the next samples.
            before: Keys of the previous batch; its first sample defines the current epoch.
        """
        return self.cursor.leaves_epoch(count, int(before.epochs[0]))

    def start_reads(self, keys: Keys, count: int, records: Indices | None) -> Sequence[Read]:
        """Start to read the samples of a batch and of the next batches; if records are passed, read only them."""
        if records is None:
            return self.ahead.take(self.dataset, self.cursor, keys, count)
        return start_reads(self.dataset, keys.records.tolist(), keys.epochs.tolist())


@dataclass(frozen=True)
class Settings:
    """Settings of an executor, decided by the pipeline."""

    batch_size: int
    num_threads: int
    seed: int
    device: torch.device | None = None
    start_thread: Callable[[int], None] | None = None
    synchronous: bool = False
    memory_stats: bool = False
    max_pixels: int | None = None
    stream_priority: int = 0
    one_stream: bool = False
    exact: bool = False

    @contextlib.contextmanager
    def here(self) -> Iterator[None]:
        """Apply the limits of this pipeline to the calling thread, inside a `with` block."""
        with max_pixels_of(self.max_pixels), exactly(self.exact):
            yield

    def starter(self) -> ThreadStart:
        """Return the function that each thread of this pipeline calls first."""
        return ThreadStart(self.max_pixels, self.exact, self.start_thread)


@dataclass(frozen=True)
class ThreadStart:
    """Prepares the calling thread to work for a pipeline; can be pickled, for threads of other processes."""

    max_pixels: int | None
    exact: bool
    then: Callable[[int], None] | None = None

    def __call__(self, number: int) -> None:
        use_max_pixels(self.max_pixels)
        use_exactness(self.exact)
        if self.then is not None:
            self.then(number)


@dataclass(frozen=True, kw_only=True)
class BatchRequest:
    """A caller's request for one batch.

    Attributes:
        ended: True if the request is the end of the epoch, and not a batch.
        random_keys: Keys of the random operators, by `Node.stream`, for only this batch; None for the pipeline's keys.
        records: Records to read instead of the records at the readers' cursors, in any number.
        skipped: Number of batches to skip before this batch is drawn.
        fed: The caller's data for this batch, for each source.
        tag: A value by which the caller recognizes the batch.
    """

    ended: bool = False
    random_keys: Sequence[int] | None = None
    records: Indices | None = None
    skipped: int = 0
    fed: Mapping[Node, SourceBatch] = field(default_factory=dict)
    tag: object = None


@dataclass(eq=False, kw_only=True)
class BatchDraw:
    """The samples of a batch, as the scheduler draws them.

    Attributes:
        size: Number of samples.
        index: Running number of the batch, in the order in which batches are started; -1 before the start.
        turn: Running number among the batches whose first stages run in this process; see `StageRunner`.
        position: Running number of the first sample.
        keys: For each reader, the keys of the samples.
        reads: For each reader, the functions that read the samples; see `datasets.start_reads`.
        info: The file of each sample, if it is known.
        kept: Original indices of the samples that remain after bad ones were dropped or replaced; None for all.
        state: The position of the pipeline after the batch.
    """

    size: int
    index: int = -1
    turn: int = -1
    position: int = 0
    keys: dict[Node, Keys] = field(default_factory=dict)
    reads: dict[Node, Sequence[Read]] = field(default_factory=dict)
    info: Sequence[str] | None = None
    kept: Sequence[int] | None = None
    state: dict[str, Any] = field(default_factory=dict)

    def select(self, keep: list[int]) -> None:
        """Select samples by their indices; an index may repeat."""
        self.keys = {n: Keys(k.records[keep], k.epochs[keep], k.padded[keep]) for n, k in self.keys.items()}
        self.reads = {n: [reads[i] for i in keep] for n, reads in self.reads.items()}
        self.info = None if self.info is None else [self.info[i] for i in keep]
        self.kept = keep if self.kept is None else [self.kept[i] for i in keep]
        self.size = len(keep)

    def original(self, sample: int) -> int:
        """Return the index that a sample had before bad samples were dropped or replaced."""
        return sample if self.kept is None else self.kept[sample]

    def sample_keys(self) -> tuple[Indices, Indices]:
        """Return epoch and record of each sample, from the first reader; without readers, 0 and the running number."""
        for keys in self.keys.values():
            return keys.epochs, keys.records
        indices = np.arange(self.size) if self.kept is None else np.asarray(self.kept, np.int64)
        return np.zeros(self.size, np.int64), self.position + indices

    def location(self, node: Node | None, sample: int | None = None) -> str:
        """Describe a failure for an error message: the operator, the sample and the user's line."""
        parts = [f"operator {node.title!r}" if node else "the pipeline", "failed"]
        if sample is not None:
            parts.append(f"on sample {self.original(sample)} of batch {self.index}")
            if self.info is not None:
                parts.append(f"({self.info[sample]})")
        else:
            parts.append(f"on batch {self.index}")
        where = f"\n  {node.where}" if node else ""
        return " ".join(parts) + where


class BatchValues(dict[DataNode, TensorList]):
    """Values of a batch by edge, while it is computed.

    Attributes:
        uploaded: Values that have a copy on the device.
        there: Images that the device's decoder decoded. Later batches reuse their memory after this batch is computed.
    """

    __slots__ = ("there", "uploaded")

    def __init__(self) -> None:
        self.uploaded: list[TensorList] = []
        self.there: list[DeviceImages] = []

    def release_device(self) -> None:
        """Release the memory on the device."""
        for value in self.uploaded:
            value.set_uploaded(None)
        for images in self.there:
            images.release()
        self.uploaded.clear()
        self.there.clear()


@dataclass(eq=False, kw_only=True)
class BatchOutcome:
    """The outputs of a batch, or its error.

    Attributes:
        ready: Event on the device stream after all kernels of the batch, if there is one.
        bad_samples: Pairs: number of bad samples, and the error of the first bad sample; see `BadSamples.check_budget`.
    """

    outputs: tuple[TensorList, ...] = ()
    error: BaseException | None = None
    ready: Any = None
    bad_samples: list[tuple[int, Exception]] = field(default_factory=list)


# Threads pass a batch on: the user's thread creates it, the scheduler thread draws it and runs its first steps, workers
# run its chains and the steps after the chains, and the user's thread takes it. Each transfer uses a queue, a lock or
# the latch `finished`. After the transfer, the earlier thread doesn't access the batch. So its fields need no lock.
@dataclass(eq=False, kw_only=True)
class InFlightBatch:
    """A batch from `Executor.schedule` to `Executor.pop`.

    Attributes:
        draw: The samples of the batch.
        request: The request of the caller of `Executor.schedule`; in a replica, it has only the random keys.
        prepared: For each source, the data that was taken in the user's thread.
        spare: A copy of `prepared`, with which a synchronous executor can repeat the batch after an interrupt.
        values: The values of the batch, while it is computed.
        stage: Index of the current stage.
        wanted: True once the user's thread waits for the batch.
        outcome: The outputs, or the error.
        finished: Set when the batch has ended.
    """

    draw: BatchDraw
    request: BatchRequest = field(default_factory=BatchRequest)
    prepared: dict[Node, SourceBatch] = field(default_factory=dict)
    spare: Mapping[Node, SourceBatch] = field(default_factory=dict)
    values: BatchValues = field(default_factory=BatchValues)
    stage: int = 0
    wanted: bool = False
    outcome: BatchOutcome = field(default_factory=BatchOutcome)
    finished: Latch = field(default_factory=Latch)

    def rng_of(self, seed: int, node: Node) -> BatchRng:
        """Return the random numbers of a node, for a pipeline's seed."""
        if self.request.random_keys is None:
            return BatchRng(random_key(seed, node), *self.draw.sample_keys())
        return BatchRng.following(self.request.random_keys[node.stream], 0, self.draw.size)


class Taken(NamedTuple):
    """The batch that was taken last. One assignment stores all fields, so an interrupt can't separate them.

    Attributes:
        number: Number of batches taken so far, including failed batches.
        batch: The batch; None before the first batch, and after the batch was released.
        tag: The batch's tag.
        state: The pipeline's position after the batch.
    """

    number: int = 0
    batch: InFlightBatch | None = None
    tag: object = None
    state: Mapping[str, Any] = {}

    def release(self) -> Taken:
        """Return a copy without the batch, so that its memory can be reused."""
        return self._replace(batch=None)


def metadata_outputs(node: Node, dataset: Any, records: Indices) -> dict[DataNode, TensorList]:
    """Return the reader's outputs that are known without reading the records."""
    count = node.operator.metadata
    if not count:
        return {}
    columns = map(TensorList.from_dense, dataset.metadata(records))
    return dict(zip(node.outputs[-count:], columns, strict=True))


def random_key(seed: int, node: Node) -> int:
    """Return the key of a random operator's numbers, from its own seed, or from the pipeline's seed and its stream."""
    own = node.constants.get("seed", _NO_SEED)
    return _mixed(seed, node.stream) if own == _NO_SEED else _mixed(own)


_mixed = functools.lru_cache(maxsize=1024)(mix)
