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
    """The runtime side of a reader: its records and the position in its epochs, and processes that read for it."""

    dataset: Dataset
    cursor: Cursor
    processes: SourceWorkers | None = None
    ahead: LookAhead = field(default_factory=LookAhead)

    def next_keys(self, count: int, records: Indices | None) -> Keys:
        """Return the keys of the next samples, or of given records, which belong to no epoch."""
        if records is None:
            return self.cursor.next_batch(count)
        return Keys(records, np.zeros(len(records), np.int64), np.zeros(len(records), bool))

    @property
    def is_remote(self) -> bool:
        """True if the dataset requests bytes before they are read."""
        return bool(getattr(self.dataset, "bytes_ahead", 0))

    def leaves_epoch(self, count: int, before: Keys) -> bool:
        """Return whether some of the next samples belong to another epoch than the first sample of the batch before."""
        return self.cursor.leaves_epoch(count, int(before.epochs[0]))

    def start_reads(self, keys: Keys, count: int, records: Indices | None) -> Sequence[Read]:
        """Start to read the samples of a batch, and of the next batches; if records are given, only these."""
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
        """Make the calling thread work for this pipeline, for a while: see `ThreadStart`."""
        with max_pixels_of(self.max_pixels), exactly(self.exact):
            yield

    def starter(self) -> ThreadStart:
        """Return the function that each thread of this pipeline calls first."""
        return ThreadStart(self.max_pixels, self.exact, self.start_thread)


@dataclass(frozen=True)
class ThreadStart:
    """Prepares the calling thread to work for one pipeline; can be pickled, for threads of other processes."""

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
        random_keys: Keys of the random operators of this batch alone, by `Node.stream`; None for the pipeline's.
        records: Records to read, instead of those that the readers' cursors give; any number.
        skipped: Number of batches to pass over before this one is drawn.
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
        index: Place in the order in which batches are started; -1 before the start.
        turn: Place among those batches whose first stages run in this process; see `StageRunner`.
        position: Running number of the first sample.
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
        """Keep the given samples; an index may repeat."""
        self.keys = {n: Keys(k.records[keep], k.epochs[keep], k.padded[keep]) for n, k in self.keys.items()}
        self.reads = {n: [reads[i] for i in keep] for n, reads in self.reads.items()}
        self.info = None if self.info is None else [self.info[i] for i in keep]
        self.kept = keep if self.kept is None else [self.kept[i] for i in keep]
        self.size = len(keep)

    def original(self, sample: int) -> int:
        """Return the index that a sample had before others were left out."""
        return sample if self.kept is None else self.kept[sample]

    def sample_keys(self) -> tuple[Indices, Indices]:
        """Return epoch and record of each sample: the first reader's, or the running number."""
        for keys in self.keys.values():
            return keys.epochs, keys.records
        indices = np.arange(self.size) if self.kept is None else np.asarray(self.kept, np.int64)
        return np.zeros(self.size, np.int64), self.position + indices

    def location(self, node: Node | None, sample: int | None = None) -> str:
        """Describe for an error message which operator failed, on which sample, on which of the user's lines."""
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
        there: Images that a decoder on the device has made; later batches reuse their memory when this batch is
            computed.
    """

    __slots__ = ("there", "uploaded")

    def __init__(self) -> None:
        self.uploaded: list[TensorList] = []
        self.there: list[DeviceImages] = []

    def release_device(self) -> None:
        """Let the memory on the device be used again."""
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
        bad_samples: Number of bad samples in this batch, and the error of the first one; see `BadSamples.check_budget`.
    """

    outputs: tuple[TensorList, ...] = ()
    error: BaseException | None = None
    ready: Any = None
    bad_samples: list[tuple[int, Exception]] = field(default_factory=list)


# A batch goes from thread to thread: the user's makes it, the scheduler thread draws it and runs its first steps,
# workers run its chains and the steps after them, the user's takes it. Each hand-over is a queue, a lock or the latch
# `finished`, and after it the giver touches nothing of the batch: so its fields need no lock.
@dataclass(eq=False, kw_only=True)
class InFlightBatch:
    """A batch between the call that schedules it and the one that takes it.

    Attributes:
        request: The request of the caller of `Executor.schedule`; a replica's batch has only the random keys of it.
        prepared: The data that was taken in the user's thread, for each source.
        spare: A copy of the prepared data, with which a synchronous executor can make the batch again.
        wanted: True once the user's thread waits for it.
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
    """The batch that was taken last. A single assignment stores all fields, so no interrupt can come between them.

    Attributes:
        number: Its number, from 1; batches that failed count.
        batch: None if there is none yet, or after it was released.
        tag: The batch's tag.
        state: The position after it.
    """

    number: int = 0
    batch: InFlightBatch | None = None
    tag: object = None
    state: Mapping[str, Any] = {}

    def release(self) -> Taken:
        """Return this without the memory of the batch."""
        return self._replace(batch=None)


def metadata_outputs(node: Node, dataset: Any, records: Indices) -> dict[DataNode, TensorList]:
    """Return the outputs of a reader that are known without reading."""
    count = node.operator.metadata
    if not count:
        return {}
    columns = map(TensorList.from_dense, dataset.metadata(records))
    return dict(zip(node.outputs[-count:], columns, strict=True))


def random_key(seed: int, node: Node) -> int:
    """Return the key of a random operator's numbers: from its own seed, or from the pipeline's and its stream."""
    own = node.constants.get("seed", _NO_SEED)
    return _mixed(seed, node.stream) if own == _NO_SEED else _mixed(own)


_mixed = functools.lru_cache(maxsize=1024)(mix)
