"""Groups: how many samples a chain takes in one call, and what happens where a group fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torchdali.execute.compiled_chain import BoundChain
from torchdali.graph import DataNode
from torchdali.running import LARGE, stacked_if_small
from torchdali.tensors import TensorList

__all__ = ["GroupRun", "group_size"]

_CACHE = 1 << 22  # bytes of samples that one call works on


def group_size(
    bound: BoundChain,
    inputs: Sequence[DataNode],
    batches: Mapping[DataNode, TensorList],
    size: int,
    threads: int,
) -> int:
    """Choose how many samples of a batch a chain takes in one call.

    All of them if they are small; as many as fit into cache, and a share for each thread, if they are large; one if the
    chain cannot be grouped, or its inputs are not one tensor each.
    """
    if bound.grouped is None or size < 2:
        return 1
    sample = 0
    for edge in inputs:
        whole = stacked_if_small(batches[edge])
        if whole is None:
            return 1
        sample += whole.nbytes // size
    if sample <= LARGE:
        return size
    return max(1, min(_CACHE // sample, -(-size // threads)))


class GroupRun:
    """Runs a chain on one group a call; the samples of a group that fails, one by one in the same call.

    So an error is that of a single sample, and the others are done.

    Args:
        run: Takes the number of a group.
        single: Makes the function that takes the number of a sample. Called once, when a group fails.
        size: Samples of the batch.
        group: Samples of a group.
        keep_going: Go on after a sample that fails.
        done: Results of groups, by edge.
        singles: Results of samples, by edge; ``single`` writes there.

    Attributes:
        failures: Exceptions, by sample.
    """

    def __init__(
        self,
        run: Callable[[int], None],
        single: Callable[[], Callable[[int], None]],
        size: int,
        group: int,
        keep_going: bool,
        done: Mapping[DataNode, list[Any]],
        singles: dict[DataNode, list[Any]],
    ) -> None:
        self._run, self._make_single = run, single
        self._size, self.group, self._keep_going = size, group, keep_going
        self._done, self.singles = done, singles
        self._single: Callable[[int], None] | None = None
        self._lock = threading.Lock()
        self.failures: dict[int, BaseException] = {}

    def samples(self, number: int) -> range:
        """Return the samples of a group."""
        return range(number * self.group, min((number + 1) * self.group, self._size))

    def __call__(self, number: int) -> None:
        """Do a group."""
        try:
            self._run(number)
        except Exception:  # also `NotGrouped`
            self._one_by_one(number)

    def _one_by_one(self, number: int) -> None:
        with self._lock:  # several threads may come here with a group each; all share one function
            if self._single is None:
                self._single = self._make_single()
        # Other workers may be here with groups of their own: they write other items of the same lists.
        for i in self.samples(number):
            if self.failures and not self._keep_going:
                return
            try:
                self._single(i)
            except Exception as error:
                self.failures[i] = error
        for edge, results in self.singles.items():
            self._done[edge][number] = [results[i] for i in self.samples(number)]

    def spread(self) -> None:
        """Divide the results of groups among `singles`, for a batch of which samples failed."""
        for edge, results in self._done.items():
            for number, result in enumerate(results):
                if result is not None:
                    for i, sample in zip(self.samples(number), result, strict=True):
                        self.singles[edge][i] = sample
