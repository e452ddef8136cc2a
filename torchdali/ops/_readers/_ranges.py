"""Read records of remote containers in byte ranges, each with one request for many records.

A component is one file of a webdataset sample; in other formats, each record has one component. A run is a group of
consecutive records that are requested together.
"""

from __future__ import annotations

import importlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from torchdali.formats.remote import PendingBytes, Remote, RemoteFile
from torchdali.formats.storage import ByteStorage
from torchdali.reading.cursor import ShuffleRuns
from torchdali.reading.datasets import Indices

__all__ = ["MISSING", "RangeReader"]

MISSING = -1
"""Offset of a component that the record doesn't have."""

# In bytes: the usual size of a request, and the maximum gap between two records in one request.
_RANGE_SIZE, _MAX_GAP = 4 << 20, 64 << 10
_MIN_RUNS = 16  # minimum number of runs in a `shuffle_window`


class _PendingRange(NamedTuple):
    """A requested byte range.

    Attributes:
        file: Index of the container.
        start: Offset of the range in the container.
        future: Future of the range's bytes.
    """

    file: int
    start: int
    future: Future[npt.NDArray[np.uint8]]


class _RangeRun:
    """The requested ranges of one run.

    Args:
        parts: The ranges, ordered by container and offset.
        size: Total size of the ranges in bytes.

    Attributes:
        remaining: Number of the run's records that weren't read yet.
    """

    def __init__(self, parts: Sequence[_PendingRange], size: int, records: int) -> None:
        self._parts, self.size, self.remaining = parts, size, records
        self._keys = [(part.file, part.start) for part in parts]

    def pending(self, file: int, offset: int, count: int) -> PendingBytes:
        """Return the pending bytes of a component that is inside one of the ranges."""
        part = self._parts[max(0, bisect_right(self._keys, (file, offset)) - 1)]
        return PendingBytes(part.future, offset - part.start, count)


class RangeReader:
    """Requests remote records, run by run.

    The size of a run is about 4 MB without shuffling or with `shuffle_window`; otherwise, each record is a run. When
    the first record of a run is needed, all ranges of the run are requested. The ranges stay in memory until all
    records of the run have been read, or until other runs need the memory.

    Args:
        files: Index of each record's container.
        extents: Offset and size of the components of each record, ``(N, components, 2)``.

    Attributes:
        runs: Size of the runs that an epoch's order must keep together; None if any order is allowed.
        bytes_ahead: Number of bytes to request ahead.
    """

    def __init__(
        self, remote: Remote, storages: Sequence[ByteStorage], files: Indices, extents: Indices,
        arguments: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.remote, self._storages, self._files, self._extents = remote, storages, files, extents
        self._sizes = extents[:, :, 1].sum(1)
        self.bytes_ahead = int(remote.options.io_ahead)
        mean, window = max(1.0, float(self._sizes.mean())), remote.options.shuffle_window
        shuffled = bool(arguments.get("random_shuffle") or arguments.get("shuffle_after_epoch"))
        self.runs: ShuffleRuns | None = None
        if shuffled and window is not None:
            run = max(1, round(min(_RANGE_SIZE, window // _MIN_RUNS) / mean))
            self.runs = ShuffleRuns(run, max(1, round(window / mean / run)) * run)
        self._run_length = 1 if shuffled else max(1, round(_RANGE_SIZE / mean))
        if self.runs is not None:
            self._run_length = self.runs.run
        self._max_bytes = self.bytes_ahead + 2 * int(window or 0) + (64 << 20)
        self._loaded: OrderedDict[int, _RangeRun] = OrderedDict()
        self._loaded_bytes = 0

    @property
    def is_busy(self) -> bool:
        """True if new requests must wait for earlier requests to end."""
        return self.remote.is_busy

    def byte_count(self, records: Indices) -> int:
        """Return the total size of records in bytes."""
        return int(self._sizes[records].sum())

    def start(self, records: Sequence[int]) -> list[list[PendingBytes | None]]:
        """Start to read records.

        Returns:
            For each record, the pending bytes of its components; None for a missing component.
        """
        runs = {
            number: self._loaded.get(number) or self._request_run(number)
            for number in {r // self._run_length for r in records}
        }
        for number in dict.fromkeys(records):
            runs[number // self._run_length].remaining -= 1
        for number, run in runs.items():
            self._loaded.move_to_end(number)
            if run.remaining <= 0:
                self._drop_run(number)
        while self._loaded_bytes > self._max_bytes and len(self._loaded) > len(runs):
            self._drop_run(next(iter(self._loaded)))
        files, extents = self._files[records].tolist(), self._extents[records].tolist()
        return [
            [
                None if offset == MISSING else runs[record // self._run_length].pending(file, offset, size)
                for offset, size in record_extents
            ]
            for record, file, record_extents in zip(records, files, extents, strict=True)
        ]

    def _drop_run(self, number: int) -> None:
        self._loaded_bytes -= self._loaded.pop(number).size

    def _request_run(self, number: int) -> _RangeRun:
        """Request the ranges of a run. Components that are close to each other share a range."""
        rows = slice(number * self._run_length, (number + 1) * self._run_length)
        extents = self._extents[rows]
        files = np.repeat(self._files[rows], extents.shape[1]).tolist()
        ranges = [
            (file, offset, offset + size)
            for file, (offset, size) in zip(files, extents.reshape(-1, 2).tolist(), strict=True)
            if offset != MISSING
        ]
        merge: Callable[..., Any] = importlib.import_module("fsspec.utils").merge_offset_ranges
        columns = [list(column) for column in zip(*ranges, strict=True)] or [[], [], []]
        merged = list(zip(*merge(*columns, max_gap=_MAX_GAP, max_block=_RANGE_SIZE * 2), strict=True))
        parts = [
            _PendingRange(file, start, self._request_range(file, start, end - start)) for file, start, end in merged
        ]
        run = _RangeRun(parts, sum(end - start for _, start, end in merged), len(extents))
        self._loaded[number] = run
        self._loaded_bytes += run.size
        return run

    def _request_range(self, file: int, start: int, count: int) -> Future[npt.NDArray[np.uint8]]:
        storage, future = self._storages[file], Future[npt.NDArray[np.uint8]]()
        try:
            if isinstance(storage, RemoteFile):
                return storage.start(start, count, self.runs is not None).future
            future.set_result(storage.read(start, count))
        except RuntimeError as error:  # the error is raised when a record of this range is read
            future.set_exception(error)
        return future
