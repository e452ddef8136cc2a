"""A chain that runs on one batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from torchdali.execute.batch import InFlightBatch
from torchdali.execute.compiled_chain import BoundChain, Division, Way
from torchdali.execute.output_buffer import OpenBuffer
from torchdali.execute.timings import ChainTimings
from torchdali.graph.nodes import DataNode, Node

__all__ = ["ChainRun"]


@dataclass(eq=False)
class ChainRun:
    """Runs a chain chunk by chunk. Samples that a chunk skips, or all of a failed chunk, are rerun one by one.

    Chunks are numbered in the order of their samples. Threads may run chunks in any order, and at the same time.

    Attributes:
        batch: The batch.
        bound: The chain, for the layouts of the batch.
        division: The chunks that the batch is divided into.
        opened: The buffers for results, by edge.
        shared: Edges of which the device's decoder decodes some samples.
        timings: Records the operators' times; None to not measure them.
        keep_going: True to continue after a sample that fails.
        bind: Builds the function that processes a range of samples, and returns the indices that it skipped.
        blamed: The operator that failed, by the `id` of the error.
    """

    batch: InFlightBatch
    bound: BoundChain
    division: Division
    opened: dict[DataNode, OpenBuffer]
    shared: Sequence[DataNode]
    timings: ChainTimings | None
    keep_going: bool
    bind: Callable[[ChainRun, Way], Callable[[range], Collection[int]]]
    blamed: dict[int, Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._failures: dict[int, BaseException] = {}
        self._lock = threading.Lock()
        way = self.division.way
        self._do = None if way is Way.SAMPLES else self.bind(self, way)
        self._single: Callable[[range], object] | None = None

    @property
    def count(self) -> int:
        """Number of chunks of the batch."""
        return -(-self.batch.draw.size // self.division.chunk)

    def __call__(self, number: int) -> None:
        """Run a chunk."""
        # Only the thread that claimed this chunk accesses its samples, until the thread that finishes the batch's last
        # chunk continues with all chunks (`Job.work`).
        first = number * self.division.chunk
        samples = range(first, min(first + self.division.chunk, self.batch.draw.size))
        if self._do is None:
            self._one_by_one(samples)
            return
        try:
            left = self._do(samples)
        except Exception as error:  # rerun sample by sample: the failing samples raise the error again
            for buffer in self.opened.values():
                buffer.forget(samples)
            if self._one_by_one(samples):  # in the fast path, the operator to blame is the last one
                self.bound.fell_back(self.blamed.get(id(error), self.bound.chain.nodes[-1]), error)
            return
        if left:
            self._one_by_one(left)

    def _one_by_one(self, samples: Collection[int]) -> bool:
        """Run samples one by one; return True if all samples ran, and no sample failed."""
        with self._lock:  # the threads share one function, which the first one builds
            if self._single is None:
                self._single = self.bind(self, Way.SAMPLES)
        for i in samples:
            if self._failures and not self.keep_going:
                return False
            try:
                self._single(range(i, i + 1))
            except Exception as error:
                self._failures[i] = error  # each thread writes only its own keys
        return self._failures.keys().isdisjoint(samples)

    def end(self, failures: Mapping[int, BaseException]) -> dict[int, BaseException]:
        """Return all failures by sample. This object drops the failures, whose tracebacks refer to it, and the inputs.

        Args:
            failures: Failures of whole chunks, by the chunks' indices: exceptions such as KeyboardInterrupt that aren't
                instances of `Exception`.
        """
        own, self._failures, self._do, self._single = self._failures, {}, None, None
        return {**{number * self.division.chunk: error for number, error in failures.items()}, **own}

    def node_of(self, error: BaseException) -> Node | None:
        """Return the operator that raised an error; None if unknown."""
        node = self.blamed.get(id(error))
        return None if node is None else node.culprit(error)
