"""The execution of a chain (operators that run sample by sample) on one batch."""

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
    """Runs a chain on a batch, in chunks of consecutive samples.

    The samples that a chunk's function skips are rerun one by one. If the function fails, all samples of the chunk are
    rerun. Threads may run chunks in any order, and at the same time.

    Attributes:
        batch: The batch.
        bound: The chain, prepared for the layouts of the batch.
        division: How the batch is divided into chunks.
        opened: The buffers for results, by edge (an output of an operator).
        shared: Edges whose samples are partly decoded by the device's hardware decoder.
        timings: Records the operators' times; None to not measure them.
        keep_going: True to continue after a sample fails.
        bind: Builds the function that processes a range of samples. That function returns the indices that it skipped.
        blamed: For each error, by its `id`, the operator that raised it.
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
        # The chunk's samples belong to this thread, which has claimed the chunk. After all chunks, the samples belong
        # to the thread that finished the last chunk (`Job.work`).
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
            if self._one_by_one(samples):  # on the fast path (all operators in one call), report the last operator
                self.bound.fell_back(self.blamed.get(id(error), self.bound.chain.nodes[-1]), error)
            return
        if left:
            self._one_by_one(left)

    def _one_by_one(self, samples: Collection[int]) -> bool:
        """Run samples one by one. Return True if all of them ran and none failed."""
        with self._lock:  # all threads share one function, which the first thread builds
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
        """Return all failures by sample, and drop this object's references to the failures and inputs.

        This breaks a cycle of references: the failures' tracebacks refer to this object.

        Args:
            failures: Exceptions that ended whole chunks, by the chunk's number. They aren't instances of `Exception`
                (for example KeyboardInterrupt).
        """
        own, self._failures, self._do, self._single = self._failures, {}, None, None
        return {**{number * self.division.chunk: error for number, error in failures.items()}, **own}

    def node_of(self, error: BaseException) -> Node | None:
        """Return the operator that raised an error; None if it is unknown."""
        node = self.blamed.get(id(error))
        return None if node is None else node.culprit(error)
