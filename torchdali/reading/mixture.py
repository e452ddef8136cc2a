"""Mixtures: epochs with a fixed number of records from each of several datasets.

The records of an epoch are a pure function of the epoch's number.

An epoch interleaves the datasets evenly, so each batch has about the same proportions as the epoch. If an epoch has
``c`` records of a dataset, the ``j``-th of these records, counted from 0, is at the fraction ``(j + 1/2) / c`` of the
epoch. Each epoch continues a dataset where the previous epoch stopped. If an epoch takes a fifth of a dataset, five
epochs read every record once.

Records have numbers that continue from one dataset to the next. If an epoch takes a record several times, each copy has
a different number, and therefore different random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from torchdali.reading.cursor import EpochOrder
from torchdali.reading.datasets import Indices

__all__ = ["Mixture", "Weight", "epoch_counts"]


class Weight(NamedTuple):
    """The share of one dataset in an epoch.

    At most one attribute may be set. If none is set, an epoch takes each record once.

    Attributes:
        proportion: Share of the epoch's samples, relative to the other datasets.
        repeat: How often an epoch takes each record; may be a fraction.
        choose: Number of records that an epoch takes.
    """

    proportion: float | None = None
    repeat: float | None = None
    choose: int | None = None

    def check(self) -> None:
        """Check the attributes.

        Raises:
            ValueError: Several attributes are set, or a number isn't positive.
        """
        attributes = {name: value for name, value in self._asdict().items() if value is not None}
        if len(attributes) > 1:
            raise ValueError(f"only one of proportion, repeat and choose can be passed, got {', '.join(attributes)}")
        for name, value in attributes.items():
            if not value > 0:
                raise ValueError(f"{name} must be above 0, got {value}")


def epoch_counts(sizes: Sequence[int], weights: Sequence[Weight], epoch_size: int | None) -> list[int]:
    """Return the number of records that an epoch takes from each dataset.

    Args:
        sizes: Number of records of each dataset.
        epoch_size: Number of samples in an epoch, for proportions; by default the number of all records.

    Raises:
        ValueError: Only some weights are proportions, `epoch_size` is set without proportions, or a dataset has no
            sample in an epoch.
    """
    proportions = [weight.proportion for weight in weights]
    if any(proportions):
        if not all(proportions):
            raise ValueError("either all sources or none must have a proportion")
        counts = _apportion(sum(sizes) if epoch_size is None else epoch_size, [each or 0.0 for each in proportions])
    elif epoch_size is not None:
        raise ValueError(
            "epoch_size can only be used with proportion; with repeat and choose, the counts add up to the epoch size"
        )
    else:
        counts = [w.choose or int(s * (w.repeat or 1.0)) for s, w in zip(sizes, weights, strict=True)]
    if min(counts) < 1:
        raise ValueError(
            f"each source must have at least one sample in an epoch, got the counts {counts}. Pass a larger weight"
        )
    return counts


def _apportion(total: int, weights: Sequence[float]) -> list[int]:
    """Divide a number in the ratio of the weights; the shares with the largest remainders are rounded up."""
    shares = [total * weight / sum(weights) for weight in weights]
    counts = [int(share) for share in shares]
    by_remainder = sorted(range(len(shares)), key=lambda i: (counts[i] - shares[i], i))
    for i in by_remainder[: total - sum(counts)]:
        counts[i] += 1
    return counts


class Mixture:
    """The records of each epoch, as a pure function of the epoch's number.

    Args:
        orders: The order of each dataset; one pass over a dataset is an epoch of its order.
        counts: Number of records of each dataset in an epoch.
    """

    def __init__(self, orders: Sequence[EpochOrder], counts: Sequence[int]) -> None:
        sizes = [order.size for order in orders]
        self._sizes, self._counts = np.array(sizes), np.array(counts)
        self._starts, self._ends = np.cumsum([0, *sizes[:-1]]), np.cumsum(counts)
        self._total, self._orders = sum(sizes), tuple(orders)
        self._pass_records = lru_cache(2 * len(sizes))(lambda part, number: self._orders[part].shard(number).records)
        # The samples of an epoch are numbered dataset by dataset. `argsort` sorts the samples by position in the epoch.
        fractions = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
        self._interleaved = np.argsort(fractions, kind="stable")

    def __len__(self) -> int:
        return len(self._interleaved)

    def draw(self, epoch: int, positions: Indices) -> Indices:
        """Return the numbers of the records at the passed positions of an epoch."""
        samples = self._interleaved[positions]
        parts = np.searchsorted(self._ends, samples, side="right")
        counts, sizes = self._counts[parts], self._sizes[parts]
        running_counts = epoch * counts + samples - (self._ends - self._counts)[parts]  # samples since the first epoch
        passes, pass_positions = running_counts // sizes, running_counts % sizes
        records = np.empty(len(samples), np.int64)
        for part, number in set(zip(parts.tolist(), passes.tolist(), strict=True)):
            chosen = (parts == part) & (passes == number)
            records[chosen] = self._pass_records(part, number).at(pass_positions[chosen])
        copies = passes - epoch * counts // sizes
        records += self._starts[parts] + copies * self._total
        return records

    def locate(self, record: int) -> tuple[int, int]:
        """Return the index of a record's dataset, and the record's index in this dataset."""
        number = record % self._total
        part = int(np.searchsorted(self._starts, number, side="right")) - 1
        return part, number - int(self._starts[part])
