"""Policies for samples that fail: fail the batch, skip the sample, or replace it by another sample."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from torchdali.errors import is_batch_level
from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.graph.plan import edges
from torchdali.tensors import TensorList

if TYPE_CHECKING:
    from torchdali.execute.batch import InFlightBatch

__all__ = ["BadSample", "BadSamples", "Policy", "nodes_to_rerun"]

Policy = Literal["raise", "skip", "replace"]


@dataclass(frozen=True)
class BadSample:
    """A sample that was skipped or replaced, as listed in `Pipeline.bad_sample_report`.

    Attributes:
        file: File of the sample; "" if it is unknown.
        operator: Name of the operator that failed.
        reason: Class and message of the exception.
        batch: Index of the batch.
        sample: Index of the sample in the batch, before samples were dropped.
    """

    file: str
    operator: str
    reason: str
    batch: int
    sample: int

    def __str__(self) -> str:
        return f"{self.file or f'sample {self.sample} of batch {self.batch}'}: {self.reason}"


class BadSamples:
    """The policy for samples that fail, a limit on the number of failures, and a list of the samples that failed.

    Args:
        policy: ``"raise"`` fails the batch; ``"skip"`` delivers a smaller batch; ``"replace"`` repeats a good sample of
            the same batch.
        budget: Maximum number of bad samples; None for no limit. A batch fails if the batch has bad samples, and all
            batches up to this batch together have more bad samples than the maximum.
    """

    def __init__(self, policy: Policy = "raise", budget: int | None = None) -> None:
        if policy not in get_args(Policy):
            raise ValueError(f"bad_samples must be 'raise', 'skip' or 'replace', got {policy!r}")
        self.policy, self.budget = policy, budget
        self.report: list[BadSample] = []
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return BadSamples, (self.policy, self.budget)  # the report isn't sent, because each process has its own

    @property
    def keeps_going(self) -> bool:
        return self.policy != "raise"

    def repair(
        self,
        batch: InFlightBatch,
        results: dict[DataNode, list[Any]],
        failures: dict[int, BaseException],
        nodes: Mapping[int, Node | None],
        error: Exception,
    ) -> None:
        """Skip or replace the failed samples of a batch, or raise `error`. In any case, clear `failures`.

        Args:
            batch: The batch.
            results: The samples of outputs that `batch.values` doesn't contain yet, as one list per output.
            failures: The errors, by the sample's index.
            nodes: The operator that failed (None if it is unknown), by the sample's index.
            error: The error to raise if the policy is "raise", or if no good sample can replace the failed samples.
        """
        good = [i for i in range(batch.draw.size) if i not in failures]
        failed = dict(failures)
        failures.clear()  # breaks a cycle of references, because the errors' tracebacks refer to `failures`
        if not self.keeps_going or (not good and is_batch_level(*failed.values())):
            raise error
        self._note(batch, failed, nodes, error)
        if self.policy == "replace":
            if not good:
                raise error
            indices = [i if i not in failed else min(good, key=lambda g: abs(g - i)) for i in range(batch.draw.size)]
        else:
            indices = good
        _select(batch, results, indices)

    def _note(
        self,
        batch: InFlightBatch,
        failures: Mapping[int, BaseException],
        nodes: Mapping[int, Node | None],
        error: Exception,
    ) -> None:
        # Several threads may add bad samples of different batches at the same time.
        with self._lock:
            seen = set()
            for i, failure in sorted(failures.items()):
                node, sample = nodes[i], batch.draw.original_index(i)
                if sample in seen:
                    continue  # an earlier repair copied this sample to the index of another bad sample
                seen.add(sample)
                self.report.append(
                    BadSample(
                        file=batch.draw.info[i] if batch.draw.info else "",
                        operator=node.title if node else "",
                        reason=f"{type(failure).__name__}: {failure}",
                        batch=batch.draw.index,
                        sample=sample,
                    )
                )
        if self.budget is not None:
            batch.outcome.bad_samples.append((len(seen), error))

    def pop(self, index: int) -> tuple[BadSample, ...]:
        """Remove the bad samples of a batch from the report, and return them."""
        with self._lock:
            samples = tuple(bad for bad in self.report if bad.batch == index)
            self.report[:] = [bad for bad in self.report if bad.batch != index]
        return samples

    def add(self, batch: InFlightBatch, bad: Sequence[BadSample], indices: Sequence[int] | None) -> None:
        """Add bad samples from a worker process to the report, and drop or replace them in this process's batch.

        Args:
            batch: The batch.
            bad: The bad samples.
            indices: For each sample in the worker's result, the sample's index in this process's batch. None if the
                worker didn't drop or replace samples.
        """
        with self._lock:
            self.report.extend(bad)
        if indices is not None:
            _select(batch, {}, list(indices))

    def check_budget(self, batch: InFlightBatch) -> None:
        """Raise the error of a batch's bad samples if this batch and all earlier batches exceed the budget."""
        # The errors' tracebacks refer to the batch. To avoid a cycle of references, the batch drops the errors.
        noted, batch.outcome.bad_samples = batch.outcome.bad_samples, []
        if not noted or self.budget is None:
            return
        # The user's thread takes the batches in order, so the report has all bad samples of earlier batches. The report
        # may already have bad samples of later batches, but they don't count.
        with self._lock:
            count = sum(bad.batch < batch.draw.index for bad in self.report)
        for more, error in noted:
            count += more
            if count > self.budget:
                raise error


def _select(batch: InFlightBatch, results: dict[DataNode, list[Any]], indices: list[int]) -> None:
    """Keep only some samples of a batch and of `results`.

    Args:
        batch: The batch.
        results: The samples of outputs that `batch.values` doesn't contain yet, as one list per output.
        indices: Indices of the samples to keep, in order. An index may repeat.
    """
    for edge, values in results.items():
        results[edge] = [values[i] for i in indices]
    for edge, batch_values in batch.values.items():
        samples = batch_values.samples()
        infos = batch_values.source_infos
        first = next((sample for sample in samples if sample is not None), None)
        batch.values[edge] = TensorList.from_samples(
            [samples[i] for i in indices],
            batch_values.layout(),
            None if first is None else first.dtype,
            None if first is None else first.ndim,
            source_info=None if infos is None else [infos[i] for i in indices],
        )
    batch.draw.select(indices)


# ---------------------------------------------------------------- permutations of a batch


def nodes_to_rerun(
    graph: Graph, ran: Collection[Node], smaller: bool, can_run: Callable[[Node], bool]
) -> Sequence[Node] | None:
    """Find the nodes that must run again after samples were dropped from a batch.

    Only operators that draw a permutation of the batch's samples, and operators that depend on the permutation, must
    run again, because the permutation may contain the index of a dropped sample.

    Args:
        graph: The graph.
        ran: The nodes that have run.
        smaller: True if the batch becomes smaller.
        can_run: Function that returns whether a node can run a second time.

    Returns:
        The nodes, in order. None if one of these nodes can't run again. Then no sample can be dropped.
    """
    permuting: set[Node] = set()  # nodes whose values are sample indices, or are computed from sample indices
    outdated: dict[Node, None] = {}
    for node in graph.nodes:
        index_edges = set(_index_arguments(node))
        other_edges = [e for e in edges(node) if e not in index_edges]
        if _draws_indices(node) or any(e.source in permuting for e in other_edges):
            permuting.add(node)
        if node in ran and (_draws_indices(node) or any(p in outdated for p in node.parents())):
            outdated[node] = None
    remaining_nodes = [node for node in graph.nodes if node not in ran]
    if smaller and any(e.source not in permuting for node in remaining_nodes for e in _index_arguments(node)):
        return None
    used = {*graph.outputs, *(e for node in remaining_nodes for e in edges(node))}
    is_used = any(o in used for node in outdated if node in permuting for o in node.outputs)
    if not is_used or all(map(can_run, outdated)):
        return list(outdated) if is_used else []
    # If no operator uses the permutations to rearrange samples, the old permutations can be kept.
    rearranges = any(e.source in permuting for n in graph.nodes if _mixes_samples(n) for e in edges(n))
    return None if rearranges else []


def _index_arguments(node: Node) -> Iterator[DataNode]:
    """Yield the edges (outputs of operators) that a node receives as sample indices."""
    # A node that combines several operators renames arguments. The schema doesn't contain the new names.
    arguments = node.operator.schema.arguments
    return (edge for name, edge in node.per_sample.items() if name in arguments and arguments[name].has_sample_indices)


def _mixes_samples(node: Node) -> bool:
    """Return whether an operator's result for a sample may depend on other samples."""
    is_separable = node.operator.is_separable({**node.constants, **node.per_sample})
    return node.operator.kind == "batch" and not is_separable


def _draws_indices(node: Node) -> bool:
    """Return whether an operator draws random numbers for the batch as a whole, for example a permutation."""
    return node.operator.schema.random and _mixes_samples(node)
