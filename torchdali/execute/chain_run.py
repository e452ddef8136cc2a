"""The execution of a chain (operators that process one sample after the other) on one batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from torchdali.execute.batch import InFlightBatch
from torchdali.execute.compiled_chain import BoundChain, ChunkMode, Division
from torchdali.execute.output_buffer import OpenBuffer
from torchdali.execute.timings import ChainTimings
from torchdali.graph.nodes import DataNode, Node

__all__ = ["ChainRun"]


@dataclass(eq=False)
class ChainRun:
    """Runs a chain on a batch, in chunks of consecutive samples.

    If the function for chunks skips samples, these samples are rerun one by one. If the function raises an exception,
    all samples of the chunk are rerun one by one. Threads may run chunks in any order, and at the same time.

    Attributes:
        batch: The batch.
        bound: The chain, prepared for the layouts of the batch.
        division: The number of samples per chunk, and the way in which a chunk runs through the chain.
        buffers: The buffers for the chain's results. The keys are outputs of operators (*edges*).
        shared: Edges whose images may be decoded by the device's hardware decoder.
        timings: Records the operators' times; None if times are not measured.
        keep_going: True to continue after a sample fails.
        bind: Builds the function that processes a range of samples. That function returns the indices that it skipped.
        blamed: The operators that raised errors. The keys are the `id` of each error.
    """

    batch: InFlightBatch
    bound: BoundChain
    division: Division
    buffers: dict[DataNode, OpenBuffer]
    shared: Sequence[DataNode]
    timings: ChainTimings | None
    keep_going: bool
    bind: Callable[[ChainRun, ChunkMode], Callable[[range], Collection[int]]]
    blamed: dict[int, Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._failures: dict[int, BaseException] = {}
        self._lock = threading.Lock()
        mode = self.division.mode
        self._run_chunk = None if mode is ChunkMode.SAMPLES else self.bind(self, mode)
        self._single: Callable[[range], object] | None = None

    @property
    def count(self) -> int:
        """Number of chunks of the batch."""
        return -(-self.batch.draw.size // self.division.chunk)

    def __call__(self, number: int) -> None:
        """Run a chunk."""
        # This thread has claimed the chunk (`Job.work`), so the chunk's samples belong to this thread.
        first = number * self.division.chunk
        samples = range(first, min(first + self.division.chunk, self.batch.draw.size))
        if self._run_chunk is None:
            self._one_by_one(samples)
            return
        try:
            skipped = self._run_chunk(samples)
        except Exception as error:  # rerun the samples one by one, because only some of them may fail
            for buffer in self.buffers.values():
                buffer.forget(samples)
            if self._one_by_one(samples):  # if one call runs all operators, report the last operator
                self.bound.on_fallback(self.blamed.get(id(error), self.bound.chain.nodes[-1]), error)
            return
        if skipped:
            self._one_by_one(skipped)

    def _one_by_one(self, samples: Collection[int]) -> bool:
        """Run samples one by one. Return True if all of these samples succeeded."""
        with self._lock:  # the first thread builds the function for all threads
            if self._single is None:
                self._single = self.bind(self, ChunkMode.SAMPLES)
        for i in samples:
            if self._failures and not self.keep_going:
                return False
            try:
                self._single(range(i, i + 1))
            except Exception as error:
                self._failures[i] = error  # each thread writes only its own keys
        return self._failures.keys().isdisjoint(samples)

    def end(self, failures: Mapping[int, BaseException]) -> dict[int, BaseException]:
        """Return all failures, by the sample's index, and drop this object's references to the failures and inputs.

        The failures' tracebacks refer to this object, so this breaks a cycle of references.

        Args:
            failures: Exceptions that ended a whole chunk, for example KeyboardInterrupt, by the chunk's number.
        """
        sample_failures, self._failures, self._run_chunk, self._single = self._failures, {}, None, None
        return {**{number * self.division.chunk: error for number, error in failures.items()}, **sample_failures}

    def node_of(self, error: BaseException) -> Node | None:
        """Return the operator that raised an error; None if it is unknown."""
        node = self.blamed.get(id(error))
        return None if node is None else node.culprit(error)
