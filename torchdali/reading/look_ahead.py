"""Start to read the records of later batches, up to a number of bytes."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchdali.reading.cursor import Cursor, Keys
from torchdali.reading.datasets import Indices, Read, start_reads

__all__ = ["LookAhead"]

_MAX_RECORDS = 1 << 14  # maximum number of records to read ahead
_RAMP = 4  # maximum number of batches to read ahead per batch taken, so that short programs read little in vain


class LookAhead:
    """The next batches of a reader. The dataset has already started to read the records of these batches.

    A dataset enables reading ahead with the attribute ``bytes_ahead``, the maximum number of bytes to read ahead. The
    dataset must then also have ``byte_count(records)``, which returns the size of records in bytes, and ``is_busy``,
    which is True while the dataset cannot start more reads.
    """

    def __init__(self) -> None:
        self._queue: deque[tuple[Indices, Sequence[Read], int]] = deque()
        self._ahead_cursor: Cursor | None = None
        self._batch_count = 0

    def next_reads(self, dataset: Any, cursor: Cursor, keys: Keys, batch_size: int) -> Sequence[Read]:
        """Return the functions that read the records of a batch, and start to read the following batches.

        Args:
            cursor: The reader's cursor, positioned after the batch.
        """
        if self._queue and np.array_equal(self._queue[0][0], keys.records):
            reads = self._queue.popleft()[1]
        else:
            self._queue.clear()  # this is the first batch, or the reader's position was changed
            self._ahead_cursor = None
            reads = start_reads(dataset, keys.records.tolist(), keys.epochs.tolist())
        self._batch_count += 1
        if limit := getattr(dataset, "bytes_ahead", 0):
            self._fill(dataset, cursor, int(keys.epochs[-1]), batch_size, limit)
        return reads

    def _fill(self, dataset: Any, cursor: Cursor, epoch: int, batch_size: int, limit: int) -> None:
        if self._ahead_cursor is None:
            self._ahead_cursor = copy.copy(cursor)
        max_batches, ahead_bytes = (
            min(_MAX_RECORDS // batch_size, _RAMP * self._batch_count),
            sum(count for *_, count in self._queue),
        )
        while (
            ahead_bytes < limit
            and len(self._queue) < max_batches
            and self._ahead_cursor.epoch == epoch
            and not dataset.is_busy
        ):  # stop at the end of the epoch, since the program may end there
            keys = self._ahead_cursor.next_batch(batch_size)
            reads = start_reads(dataset, keys.records.tolist(), keys.epochs.tolist())
            count = dataset.byte_count(keys.records)
            self._queue.append((keys.records, reads, count))
            ahead_bytes += count
