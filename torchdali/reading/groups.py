"""Epochs in whole groups of records, such as the row groups of a table, as a pure function.

Groups are drawn at random, and the records of a block of groups are shuffled together. Ranks divide this order, so that
each group is read by one rank, or by two at their border.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from torchdali.reading.datasets import Indices

__all__ = ["GroupOrder"]


class _Epoch(NamedTuple):
    """Groups in their order, and the position after each."""

    groups: Indices
    ends: Indices


class GroupOrder:
    """The order of the records of each epoch.

    Args:
        sizes: Records of each group.
        block: Groups whose records are shuffled together.
        seed: The same on all ranks.
    """

    def __init__(self, sizes: Indices, block: int, seed: int) -> None:
        self._sizes, self._starts = sizes, np.cumsum(sizes) - sizes
        self._block, self._seed = block, seed & 0xFFFFFFFF
        self._epoch = lru_cache(2)(self._new_epoch)
        self._within = lru_cache(4)(self._new_block)

    def draw(self, epoch: int, positions: Indices) -> Indices:
        """Return the records at some positions of an epoch."""
        groups, ends = self._epoch(epoch)
        last = np.minimum(np.arange(self._block, len(ends) + self._block, self._block), len(ends)) - 1
        bounds = ends[last]
        blocks = np.searchsorted(bounds, positions, side="right")
        records = np.empty(len(positions), np.int64)
        for block in np.unique(blocks).tolist():
            chosen, start = blocks == block, int(bounds[block - 1]) if block else 0
            records[chosen] = start + self._within(epoch, block, int(bounds[block]) - start)[positions[chosen] - start]
        places = np.searchsorted(ends, records, side="right")
        own = groups[places]
        return self._starts[own] + records - (ends[places] - self._sizes[own])

    def _new_epoch(self, epoch: int) -> _Epoch:
        groups = np.random.RandomState([self._seed, epoch]).permutation(len(self._sizes))
        return _Epoch(groups, np.cumsum(self._sizes[groups]))

    def _new_block(self, epoch: int, block: int, size: int) -> Indices:
        order: Indices = np.random.RandomState([self._seed, epoch, block]).permutation(size)
        return order
