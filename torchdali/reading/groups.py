"""Epochs that keep groups of records together, for example the row groups of a table."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from torchdali.reading.datasets import Indices

__all__ = ["GroupOrder"]


class GroupOrder:
    """The order of each epoch: the groups are in random order, and the records of a group stay together.

    The order is a pure function of the epoch's number. Callers divide the order among the ranks.

    Args:
        sizes: Number of records of each group.
        is_fixed: True if all epochs have the same order.
    """

    def __init__(self, sizes: Indices, is_fixed: bool = False) -> None:
        self._sizes, self._starts, self._is_fixed = sizes, np.cumsum(sizes) - sizes, is_fixed
        self._epoch = lru_cache(2)(self._new_epoch)

    def draw(self, epoch: int, positions: Indices) -> Indices:
        """Return the records at the passed positions of an epoch."""
        groups, ends = self._epoch(0 if self._is_fixed else epoch)
        group_positions = np.searchsorted(ends, positions, side="right")
        chosen = groups[group_positions]
        records: Indices = self._starts[chosen] + positions - (ends[group_positions] - self._sizes[chosen])
        return records

    def _new_epoch(self, epoch: int) -> tuple[Indices, Indices]:
        groups = np.random.RandomState([len(self._sizes), epoch]).permutation(len(self._sizes))
        return groups, np.cumsum(self._sizes[groups])
