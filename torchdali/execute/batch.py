"""A batch in flight (scheduled, but not yet delivered), and the settings that all batches of a pipeline share."""

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
from torchdali.kernels.limits import limit_pixels, use_max_pixels
from torchdali.reading.cursor import Cursor, Keys
from torchdali.reading.datasets import Dataset, Indices, Read, start_reads
from torchdali.reading.look_ahead import LookAhead
from torchdali.reading.sources import SourceBatch, SourceWorkers
from torchdali.rng import BatchRng, mix
from torchdali.tensors import TensorList
from torchdali.threads import Latch

__all__ = [
    "BatchDraw", "BatchRequest", "InFlightBatch", "ReaderState", "Settings", "TakenBatch", "metadata_outputs",
    "random_key",
]  # fmt: skip

_NO_SEED = -1


@dataclass(frozen=True)
class ReaderState:
    """A reader of a running pipeline.

    Attributes:
        dataset: The reader's dataset.
        cursor: The reader's position: epoch and index in the epoch.
        processes: Worker processes that read the dataset; None without worker processes.
        look_ahead: The reads that were already started for later batches.
    """

    dataset: Dataset
    cursor: Cursor
    processes: SourceWorkers | None = None
    look_ahead: LookAhead = field(default_factory=LookAhead)

    def next_keys(self, count: int, records: Indices | None) -> Keys:
        """Return the keys (epoch and record) of the next `count` samples.

        If `records` is passed, return the keys of these records with epoch 0, and don't advance the cursor.
        """
        if records is None:
            return self.cursor.next_batch(count)
        return Keys(records, np.zeros(len(records), np.int64), np.zeros(len(records), bool))

    @property
    def is_remote(self) -> bool:
        """True if the dataset requests data from a remote store in advance."""
        return bool(getattr(self.dataset, "bytes_ahead", 0))

    def crosses_epoch(self, count: int, before: Keys) -> bool:
        """Return whether a new epoch begins within the next `count` samples.

        Args:
            count: Number of samples.
            before: Keys of the previous batch. The first key determines the current epoch.
        """
        return self.cursor.crosses_epoch(count, int(before.epochs[0]))

    def start_reads(self, keys: Keys, count: int, records: Indices | None) -> Sequence[Read]:
        """Start to read the samples of a batch. Return one function per sample, which returns the sample's data.

        If `records` is None, the reader also starts to read samples of the following batches.
        """
        if records is None:
            return self.look_ahead.next_reads(self.dataset, self.cursor, keys, count)
        return start_reads(self.dataset, keys.records.tolist(), keys.epochs.tolist())


@dataclass(frozen=True)
class Settings:
    """Settings of an executor, chosen by the pipeline."""

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
    def apply(self) -> Iterator[None]:
        """Apply this pipeline's `max_pixels` and `exact` to the calling thread during a `with` block."""
        with limit_pixels(self.max_pixels), exactly(self.exact):
            yield

    def thread_start(self) -> ThreadStart:
        """Return the function that each thread of this pipeline calls first."""
        return ThreadStart(self.max_pixels, self.exact, self.start_thread)


@dataclass(frozen=True)
class ThreadStart:
    """A picklable function that prepares the calling thread to work for a pipeline."""

    max_pixels: int | None
    exact: bool
    start_thread: Callable[[int], None] | None = None

    def __call__(self, number: int) -> None:
        use_max_pixels(self.max_pixels)
        use_exactness(self.exact)
        if self.start_thread is not None:
            self.start_thread(number)


@dataclass(frozen=True, kw_only=True)
class BatchRequest:
    """A caller's request for one batch.

    Attributes:
        ended: True if the caller requests the end of the epoch instead of a batch.
        random_keys: Keys of this batch's random numbers, one per random operator (at the index `Node.stream`). None for
            keys that depend on the pipeline's seed.
        records: Indices of the records to read. None for the next records of the epoch.
        skipped: Number of batches to skip before this batch.
        fed: The caller's data for this batch. These sources are not called.
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
    """The samples of a batch, as drawn by the scheduler thread.

    Attributes:
        size: Number of samples.
        index: Running number of the batch, in the order in which batches are started; -1 if the batch isn't started.
        turn: Running number among the batches whose first stages run in this process; -1 if a worker process runs the
            first stages.
        position: Running number of the batch's first sample.
        keys: For each reader, the keys of the samples.
        reads: For each reader, the functions that return the samples' data; see `datasets.start_reads`.
        info: The file of each sample; None if it is unknown.
        original_indices: The original index in the batch for each remaining sample; None if no sample was dropped or
            replaced.
        state: The position of the pipeline after the batch.
    """

    size: int
    index: int = -1
    turn: int = -1
    position: int = 0
    keys: dict[Node, Keys] = field(default_factory=dict)
    reads: dict[Node, Sequence[Read]] = field(default_factory=dict)
    info: Sequence[str] | None = None
    original_indices: Sequence[int] | None = None
    state: dict[str, Any] = field(default_factory=dict)

    def select(self, indices: list[int]) -> None:
        """Keep only the samples with these indices, in this order. An index may repeat."""
        self.keys = {n: Keys(k.records[indices], k.epochs[indices], k.padded[indices]) for n, k in self.keys.items()}
        self.reads = {n: [reads[i] for i in indices] for n, reads in self.reads.items()}
        self.info = None if self.info is None else [self.info[i] for i in indices]
        self.original_indices = (
            indices if self.original_indices is None else [self.original_indices[i] for i in indices]
        )
        self.size = len(indices)

    def original_index(self, sample: int) -> int:
        """Return the index that a sample had before bad samples were dropped or replaced."""
        return sample if self.original_indices is None else self.original_indices[sample]

    def sample_keys(self) -> tuple[Indices, Indices]:
        """Return epoch and record of each sample, from the first reader.

        Without readers, the epoch is 0, and the record is the sample's running number.
        """
        for keys in self.keys.values():
            return keys.epochs, keys.records
        indices = np.arange(self.size) if self.original_indices is None else np.asarray(self.original_indices, np.int64)
        return np.zeros(self.size, np.int64), self.position + indices

    def location(self, node: Node | None, sample: int | None = None) -> str:
        """Describe where a failure occurred, for an error message: operator, sample and the user's line."""
        parts = [f"operator {node.title!r}" if node else "the pipeline", "failed"]
        if sample is not None:
            parts.append(f"on sample {self.original_index(sample)} of batch {self.index}")
            if self.info is not None:
                parts.append(f"({self.info[sample]})")
        else:
            parts.append(f"on batch {self.index}")
        where = f"\n  {node.where}" if node else ""
        return " ".join(parts) + where


class BatchValues(dict[DataNode, TensorList]):
    """The values of a batch while the batch is computed. The keys are edges (outputs of operators).

    Attributes:
        uploaded: CPU values that also have a copy on the device.
        device_images: Images that the device's hardware decoder decoded. After this batch, later batches reuse the
            images' memory.
    """

    __slots__ = ("device_images", "uploaded")

    def __init__(self) -> None:
        self.uploaded: list[TensorList] = []
        self.device_images: list[DeviceImages] = []

    def release_device(self) -> None:
        """Drop the copies on the device, and allow later batches to reuse the decoded images' memory."""
        for value in self.uploaded:
            value.set_uploaded(None)
        for images in self.device_images:
            images.release()
        self.uploaded.clear()
        self.device_images.clear()


@dataclass(eq=False, kw_only=True)
class BatchOutcome:
    """The outputs of a batch, or its error.

    Attributes:
        outputs: The outputs; empty if the batch failed.
        error: The error; None if the batch succeeded.
        ready: Event on the device's stream after all kernels of the batch; None if the device has no stream.
        bad_samples: Pairs of a number of bad samples and an error, each from one operator or chain of operators; see
            `BadSamples.check_budget`.
    """

    outputs: tuple[TensorList, ...] = ()
    error: BaseException | None = None
    ready: Any = None
    bad_samples: list[tuple[int, Exception]] = field(default_factory=list)


# A batch belongs to one thread at a time, so its fields need no lock. The user's thread creates the batch. The
# scheduler thread draws its samples and runs the first operators. The worker threads run the other operators. Finally,
# the user's thread takes the batch. Each thread passes the batch on through a queue, a lock or the latch `finished`,
# and doesn't access it afterwards.
@dataclass(eq=False, kw_only=True)
class InFlightBatch:
    """A batch from `Executor.schedule` to `Executor.pop`.

    Attributes:
        draw: The samples of the batch.
        request: The caller's request. In a worker process, only the request's random keys are set.
        prepared: The data of each source that was called in the user's thread.
        backup: A copy of `prepared`, from which a synchronous executor can compute the batch again after an interrupt.
        values: The values of the batch, while it is computed.
        stage: Index of the current stage.
        is_awaited: True if the user's thread has begun to wait for the batch.
        outcome: The outputs, or the error.
        finished: Set when the batch is done or has failed.
    """

    draw: BatchDraw
    request: BatchRequest = field(default_factory=BatchRequest)
    prepared: dict[Node, SourceBatch] = field(default_factory=dict)
    backup: Mapping[Node, SourceBatch] = field(default_factory=dict)
    values: BatchValues = field(default_factory=BatchValues)
    stage: int = 0
    is_awaited: bool = False
    outcome: BatchOutcome = field(default_factory=BatchOutcome)
    finished: Latch = field(default_factory=Latch)

    def rng_of(self, seed: int, node: Node) -> BatchRng:
        """Return the random numbers of a node for this batch. `seed` is the pipeline's seed."""
        if self.request.random_keys is None:
            return BatchRng(random_key(seed, node), *self.draw.sample_keys())
        return BatchRng.following(self.request.random_keys[node.stream], 0, self.draw.size)


class TakenBatch(NamedTuple):
    """The last batch that the user took from the executor.

    The fields are in one tuple, so that a single assignment replaces all of them. Otherwise, an interrupt could arrive
    between two assignments.

    Attributes:
        number: Number of batches that the user has taken so far. Failed batches count.
        batch: The batch; None before the first batch, and after the batch was released.
        tag: The batch's tag.
        state: The pipeline's position after the batch.
    """

    number: int = 0
    batch: InFlightBatch | None = None
    tag: object = None
    state: Mapping[str, Any] = {}

    def release(self) -> TakenBatch:
        """Return a copy without the batch, so that the batch's memory can be reused."""
        return self._replace(batch=None)


def metadata_outputs(node: Node, dataset: Any, records: Indices) -> dict[DataNode, TensorList]:
    """Return those outputs of a reader that don't require reading the records, for example labels."""
    count = node.operator.metadata
    if not count:
        return {}
    columns = map(TensorList.from_dense, dataset.metadata(records))
    return dict(zip(node.outputs[-count:], columns, strict=True))


def random_key(seed: int, node: Node) -> int:
    """Return the key that determines a random operator's numbers.

    If the operator has its own seed, the key depends only on this seed. Otherwise, the key depends on the pipeline's
    seed and on `Node.stream`.
    """
    own_seed = node.constants.get("seed", _NO_SEED)
    return _cached_mix(seed, node.stream) if own_seed == _NO_SEED else _cached_mix(own_seed)


_cached_mix = functools.lru_cache(maxsize=1024)(mix)
