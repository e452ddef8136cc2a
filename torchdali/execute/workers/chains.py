"""Cut the chain of a batch into parts for the workers, and put its results together."""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from torchdali.execute.batch import InFlightBatch
from torchdali.execute.output_buffer import OpenBuffer
from torchdali.execute.timings import ChainTimings
from torchdali.execute.workers.blocks import Place, SharedBuffers
from torchdali.execute.workers.messages import Answer, Inline, Input, Part, inline, read_failure
from torchdali.execute.workers.pool import WorkerPool
from torchdali.graph import DataNode, Node
from torchdali.plan import Chain, Plan
from torchdali.tensors import TensorList

__all__ = ["ChainJob", "Workers"]

_INLINE = 1 << 14  # bytes of an edge that go over the pipe; more goes by shared memory
_PARTS = 2  # parts of a batch for each worker, so that the last one of a batch is not long
_LEAST = 32  # samples of such a part; below, a part more costs a few percent


@dataclass
class Workers:
    """The workers of a pipeline, and what runs there.

    Attributes:
        stages: Stages whose chains run there.
        buffers: Shared memory for what these deliver.
    """

    pool: WorkerPool
    stages: frozenset[int]
    buffers: SharedBuffers

    def submit(self, plan: Plan, seed: int, job: ChainJob) -> None:
        """Cut a job into parts, and have them done."""
        batch, count = job.batch, len(self.pool.workers)
        parts = _PARTS if batch.size >= _PARTS * count * _LEAST else 1
        size = max(1, -(-batch.size // (parts * count)))
        sent = [_Sent(batch.values[e], self.buffers, job.kept) for e in _entering(job.chain)]
        slots = [_slot(self.buffers, job.opened[e]) for e in job.chain.delivers]
        epochs, records = _random_samples(batch)
        keys = {plan.index[n]: k.records for n, k in batch.keys.items() if n in job.chain.nodes}
        for first in range(0, batch.size, size):
            end = min(first + size, batch.size)
            part = Part(
                -1, batch.stage, batch.index, first, end - first, seed, batch.random_keys,
                epochs[first:end], records[first:end],
                {k: found[first:end] for k, found in keys.items()},
                tuple(each.part(first, end) for each in sent),
                tuple(None if s is None else _cut(s, first, end) for s in slots),
                job.keep_going, job.timings is not None,
            )  # fmt: skip
            job.parts.append(part)
        job.buffers = self.buffers
        self.pool.submit(job)

    def summary(self) -> tuple[str, ...]:
        """Say how many there are, and how those ended that died."""
        pool = self.pool
        alive, deaths = sum(worker.alive for worker in pool.workers), tuple(pool.deaths)
        if not deaths:
            return (f"{alive} worker processes",)
        run = f"{alive} of {len(pool.workers)} worker processes run, {pool.replaced} were replaced"
        return (run, *deaths)


@dataclass
class ChainJob:
    """The chain of one batch, while workers do it.

    Attributes:
        opened, results: Output buffers and results, by edge.
        done: Called when all parts are done, with the job.
        failures: By sample.
        nodes: Node of each failure, by its `id`.
        error: Of the batch as a whole.
        kept: Shared memory that the parts read.
        buffers: Where slots and inputs lie.
    """

    plan: Plan
    batch: InFlightBatch
    chain: Chain
    opened: Mapping[DataNode, OpenBuffer]
    results: Mapping[DataNode, list[Any]]
    keep_going: bool
    timings: ChainTimings | None
    done: Callable[[ChainJob], None]
    parts: list[Part] = field(default_factory=list)
    failures: dict[int, BaseException] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)
    error: BaseException | None = None
    kept: list[torch.Tensor] = field(default_factory=list)
    buffers: SharedBuffers | None = None

    @property
    def order(self) -> int:
        """Index of the batch."""
        return self.batch.index

    def part_for(self, k: int, blocks: Container[int]) -> Part:
        """Return a part for a worker that knows some blocks of shared memory.

        What lies in others goes over the pipe, and results that belong there come back as those that were not foreseen.
        """
        part = self.parts[k]
        slots = tuple(s if s is not None and s.block in blocks else None for s in part.slots)
        inputs = tuple(self._readable(given, blocks) for given in part.inputs)
        if all(map(operator.is_, (*slots, *inputs), (*part.slots, *part.inputs))):
            return part
        return replace(part, slots=slots, inputs=inputs)

    def _readable(self, given: Input, blocks: Container[int]) -> Input:
        if isinstance(given.dense, Place):
            known = given.dense.block in blocks
            return given if known else given._replace(dense=self._inline(given.dense, blocks))
        if all(not isinstance(each, Place) or each.block in blocks for each in given.samples):
            return given
        return given._replace(samples=tuple(self._inline(each, blocks) for each in given.samples))

    def _inline(self, given: Inline | Place | None, blocks: Container[int]) -> Inline | Place | None:
        if not isinstance(given, Place) or given.block in blocks:
            return given
        assert self.buffers is not None
        return inline(self.buffers.tensor(given))

    def answer(self, part: Part, answer: Answer, packed: Sequence[TensorList]) -> bool:
        """Take over the results of a part; return False if nothing behind it needs to be done."""
        loose = [batch.samples()[0] for batch in packed]
        for edge, places in zip(self.chain.delivers, answer.places, strict=True):
            mine = slice(part.first, part.first + part.count)
            slots, results = self.opened[edge].parts, self.results[edge]
            if places is None:
                results[mine] = slots[mine]
                continue
            for i, place in enumerate(places, part.first):
                if place is not None:
                    results[i] = slots[i] if place == "slot" else loose[place]
        for i, failure in answer.failures.items():
            error = read_failure(failure)
            if i < 0:
                self.error = error
                continue
            self.failures[part.first + i] = error
            if failure.node >= 0:
                self.nodes[id(error)] = self.plan.graph.nodes[failure.node].culprit(error)
        if self.timings is not None:
            self.timings.times += [(part.first + i, n, at, who) for i, n, at, who in answer.times]
        return not answer.failures or (self.keep_going and self.error is None)

    def node_of(self, error: BaseException) -> Node | None:
        """Return the operator that failed."""
        return self.nodes.get(id(error))

    def lose(self, error: Exception) -> None:
        """Note that the job cannot be done."""
        self.error = error

    def finish(self) -> None:
        """Go on after the last part."""
        self.kept.clear()
        self.done(self)


def _entering(chain: Chain) -> list[DataNode]:
    return [*chain.inputs, *(value.edge for value in chain.values)]


def _random_samples(batch: InFlightBatch) -> tuple[Any, Any]:
    if batch.random_keys is None:
        epochs, records, _ = batch.sample_keys()
        return epochs, records
    return np.zeros(batch.size, np.int64), np.arange(batch.size)


def _slot(buffers: SharedBuffers, opened: OpenBuffer) -> Place | None:
    return None if opened.whole is None else buffers.place(opened.whole)


def _cut(place: Place, first: int, end: int) -> Place:
    """Return the place of some rows of a tensor."""
    row = place.dtype.itemsize
    for extent in place.shape[1:]:
        row *= extent
    return place._replace(offset=place.offset + first * row, shape=(end - first, *place.shape[1:]))


class _Sent:
    """A batch that enters a chain, in a form that goes to workers: its bytes, or its place in shared memory."""

    def __init__(self, batch: TensorList, buffers: SharedBuffers, kept: list[torch.Tensor]) -> None:
        self._layout = batch.layout()
        self._dense: torch.Tensor | Place | None = None
        self._samples: list[Inline | Place | None] = []
        dense = batch.dense()
        if dense is not None:
            self._dense = dense
            if dense.nbytes > _INLINE:
                self._dense = buffers.place(dense) or _shared([dense], buffers, kept)[0]
            return
        samples: list[Any] = batch.samples()
        given = [sample for sample in samples if sample is not None]
        if sum(sample.nbytes for sample in given) > _INLINE:
            sent: list[Any] = _shared(given, buffers, kept)
        else:
            sent = [inline(sample) for sample in given]
        by_turn = iter(sent)
        self._samples = [None if sample is None else next(by_turn) for sample in samples]

    def part(self, first: int, end: int) -> Input:
        """Return some of the samples."""
        if self._dense is None:
            return Input(self._layout, None, tuple(self._samples[first:end]))
        if isinstance(self._dense, Place):
            return Input(self._layout, _cut(self._dense, first, end))
        return Input(self._layout, inline(self._dense[first:end]))


_ALIGN = 64


def _shared(tensors: Sequence[torch.Tensor], buffers: SharedBuffers, kept: list[torch.Tensor]) -> list[Place]:
    """Copy tensors into shared memory."""
    offsets, size = [], 0
    for tensor in tensors:
        offsets.append(size)
        size += -(-tensor.nbytes // _ALIGN) * _ALIGN
    memory = buffers.empty((size,), torch.uint8)
    kept.append(memory)
    start = buffers.place(memory)
    assert start is not None
    places = []
    for tensor, offset in zip(tensors, offsets, strict=True):
        target = memory[offset : offset + tensor.nbytes]
        target.copy_(tensor.detach().contiguous().reshape(-1).view(torch.uint8))
        places.append(Place(start.block, offset, tuple(tensor.shape), tensor.dtype))
    return places
