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

    Chunks are numbered in the order of their samples. Threads may do them in any order, and at the same time.

    Attributes:
        division: How the batch is divided.
        opened: Where results are stored, by edge.
        shared: Edges; a decoder on the device makes some of their samples.
        keep_going: True to continue after a sample that fails.
        bind: Builds the function that processes a range of samples in a way, and returns the indices that it skipped.
        blamed: The operator that failed, by the identity of the error.
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
        """Chunks of the batch."""
        return -(-self.batch.draw.size // self.division.chunk)

    def __call__(self, number: int) -> None:
        """Do a chunk."""
        # Only the thread that claimed this chunk touches its samples, until the thread that finishes the batch's last
        # chunk continues with all of them (`Job.work`).
        first = number * self.division.chunk
        samples = range(first, min(first + self.division.chunk, self.batch.draw.size))
        if self._do is None:
            self._one_by_one(samples)
            return
        try:
            left = self._do(samples)
        except Exception as error:  # run sample by sample, they raise the error
            for buffer in self.opened.values():
                buffer.forget(samples)
            if self._one_by_one(samples):  # in the fast path, the operator to blame is the last one
                self.bound.fell_back(self.blamed.get(id(error), self.bound.chain.nodes[-1]), error)
            return
        if left:
            self._one_by_one(left)

    def _one_by_one(self, samples: Collection[int]) -> bool:
        """Do samples; return whether all were done, and none failed."""
        with self._lock:  # several threads may come here with a chunk each; all share one function
            if self._single is None:
                self._single = self.bind(self, Way.SAMPLES)
        for i in samples:
            if self._failures and not self.keep_going:
                return False
            try:
                self._single(range(i, i + 1))
            except Exception as error:
                self._failures[i] = error  # other threads write here too, under keys of their own
        return self._failures.keys().isdisjoint(samples)

    def end(self, failures: Mapping[int, BaseException]) -> dict[int, BaseException]:
        """Return all failures by sample, and drop them here (their tracebacks refer to this object), and the inputs.

        Args:
            failures: Failures of whole chunks, by the chunks' indices: exceptions like KeyboardInterrupt, which aren't
                an `Exception`.
        """
        own, self._failures, self._do, self._single = self._failures, {}, None, None
        return {**{number * self.division.chunk: error for number, error in failures.items()}, **own}

    def node_of(self, error: BaseException) -> Node | None:
        """Return the operator that failed."""
        node = self.blamed.get(id(error))
        return None if node is None else node.culprit(error)
