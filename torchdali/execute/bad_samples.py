"""What to do with a sample that fails: fail the batch, leave the sample out, or put another in its place."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchdali.errors import is_for_all
from torchdali.graph import DataNode, Node
from torchdali.tensors import TensorList

if TYPE_CHECKING:
    from torchdali.execute.batch import Batch

__all__ = ["BadSample", "BadSamples"]


@dataclass(frozen=True)
class BadSample:
    """A sample that was left out or replaced.

    Attributes:
        file: Where it came from, as far as known.
        operator: Which operator failed on it.
        reason: What it said.
        batch: Index of the batch.
        sample: Index in the batch, as it would have been.
    """

    file: str
    operator: str
    reason: str
    batch: int
    sample: int


class BadSamples:
    """The policy for samples that fail, in a chain or over the batch, its budget and its report.

    Args:
        policy: ``"raise"`` fails the batch; ``"skip"`` delivers a smaller batch; ``"replace"`` repeats a good
            sample of the same batch.
        budget: Bad samples to bear before the next one fails the batch all the same; None for any number.
    """

    def __init__(self, policy: str = "raise", budget: int | None = None) -> None:
        if policy not in ("raise", "skip", "replace"):
            raise ValueError(f"bad_samples={policy!r}: it is 'raise', 'skip' or 'replace'")
        self.policy, self.budget = policy, budget
        self.report: list[BadSample] = []
        self._lock = threading.Lock()

    @property
    def keeps_going(self) -> bool:
        return self.policy != "raise"

    def repair(
        self,
        batch: Batch,
        done: dict[DataNode, list[Any]],
        failures: dict[int, BaseException],
        nodes: Mapping[int, Node | None],
        error: Exception,
    ) -> None:
        """Make a batch with failed samples whole, or raise ``error``; either way, forget the failures."""
        good = [i for i in range(batch.size) if i not in failures]
        failed = dict(failures)
        failures.clear()  # their frames hold the job, and the job would hold them
        if not self.keeps_going or (not good and is_for_all(*failed.values())):
            raise error
        self._note(batch, failed, nodes, error)
        if self.policy == "replace":
            if not good:
                raise error
            keep = [
                i if i not in failed else min(good, key=lambda g: abs(g - i))
                for i in range(batch.size)
            ]
        else:
            keep = good
        _select(batch, done, keep)

    def _note(
        self,
        batch: Batch,
        failures: Mapping[int, BaseException],
        nodes: Mapping[int, Node | None],
        error: Exception,
    ) -> None:
        with self._lock:
            seen = set()
            for i, failure in sorted(failures.items()):
                node, sample = nodes[i], batch.original(i)
                if sample in seen:
                    continue  # it had been put in the place of another one
                seen.add(sample)
                self.report.append(
                    BadSample(
                        batch.info[i] if batch.info else "",
                        node.operator.name if node else "",
                        f"{type(failure).__name__}: {failure}",
                        batch.index,
                        sample,
                    )
                )
            if self.budget is not None and len(self.report) > self.budget:
                raise error


def _select(batch: Batch, done: dict[DataNode, list[Any]], keep: list[int]) -> None:
    """Rearrange everything that belongs to samples of the batch."""
    for edge, values in done.items():
        done[edge] = [values[i] for i in keep]
    for edge, batch_values in batch.values.items():
        samples = batch_values.samples()
        infos = batch_values.source_infos
        first = next((sample for sample in samples if sample is not None), None)
        batch.values[edge] = TensorList.from_samples(
            [samples[i] for i in keep],
            batch_values.layout(),
            None if first is None else first.dtype,
            None if first is None else first.ndim,
            source_info=None if infos is None else [infos[i] for i in keep],
        )
    batch.select(keep)
