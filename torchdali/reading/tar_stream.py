"""Read tar archives as a stream: each archive once, from start to end, without an index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from torchdali.formats import tar
from torchdali.formats.daemon_pool import DaemonPool
from torchdali.formats.remote import Remote, RemoteOptions
from torchdali.formats.storage import open_storage
from torchdali.formats.urls import is_url

__all__ = ["TarStream"]

Sample = dict[str, Any]
BATCH = 64  # number of samples per block if the samples aren't shuffled


class _StreamPosition(NamedTuple):
    """The position at which a sample starts.

    Attributes:
        archive: Position of the sample's archive in the epoch's order.
        offset: Offset of the sample in the archive.
    """

    archive: int
    offset: int


class TarStream:
    """Read webdataset archives in one pass, for `fn.readers.stream`.

    Each archive is read once, from start to end. At URLs, an eighth of ``io_ahead`` is requested ahead, so the first
    batch is ready before the first archive has arrived completely. A sample is a dictionary that maps extensions to
    bytes; the value of ``cls`` is an int.

    For archives with an index or a manifest, prefer `fn.readers.webdataset`, which shuffles all samples and knows the
    length of an epoch.

    Args:
        paths: Paths of the archives, or their URLs.
        shuffle: Shuffle the archives, and the samples within each block.
        buffer: Number of samples in a block; two blocks are in memory.
        seed: Seed of the shuffling.
        shard_id: Index of this rank, from 0.
        num_shards: Number of ranks; each rank reads every ``num_shards``-th archive.
        options: Options for URLs that readers also have: ``io_timeout``, ``io_deadline``, ``cache_dir`` and so on.

    Raises:
        ValueError: There are fewer archives than ranks, or a number is out of range.
    """

    def __init__(
        self, paths: Sequence[str], *, shuffle: bool = False, buffer: int = 1000, seed: int = 0, shard_id: int = 0,
        num_shards: int = 1, **options: Any,
    ) -> None:  # fmt: skip
        if not 0 <= shard_id < num_shards <= len(paths):
            values = f"{shard_id}, {num_shards}, {len(paths)}"
            raise ValueError(f"0 <= shard_id < num_shards <= number of archives must hold, got {values}")
        if buffer < 1:
            raise ValueError(f"buffer must be at least 1, got {buffer}")
        self._paths, self._shuffles, self._seed = list(paths), shuffle, seed
        self._buffer = buffer if shuffle else BATCH
        self._rank = shard_id, num_shards
        self._remote = Remote(RemoteOptions(**options)) if any(map(is_url, paths)) else None
        self._thread = DaemonPool(1, "torchdali-tar-stream")
        self._epoch, self._position, self._taken = 0, _StreamPosition(0, 0), 0

    @property
    def remotes(self) -> tuple[Remote, ...]:
        """The connections that read archives at URLs."""
        return () if self._remote is None else (self._remote,)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of the next loop; with `shuffle`, each epoch has its own order."""
        self._epoch, self._position, self._taken = epoch, _StreamPosition(0, 0), 0

    def state_dict(self) -> dict[str, int]:
        """Return the position after the last sample, as JSON values."""
        return {"epoch": self._epoch, **self._position._asdict(), "taken": self._taken}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Make the next loop continue at a saved position."""
        self._epoch, self._taken = state["epoch"], state["taken"]
        self._position = _StreamPosition(state["archive"], state["offset"])

    def __iter__(self) -> Iterator[Sample]:
        epoch, position, taken = self._epoch, self._position, self._taken
        walk = self._walk(self._order(epoch), position)
        next_block = self._thread.submit(self._block, walk)
        while block := next_block.result():
            next_block = self._thread.submit(self._block, walk)
            self._position = block[0][0]
            order = range(len(block))
            if self._shuffles:
                order = (
                    np.random.RandomState([self._seed, epoch, *_words(self._position)]).permutation(len(block)).tolist()
                )
            for index in order[taken:]:
                taken += 1
                self._taken = taken
                yield block[index][1]
            taken = 0
        self._epoch, self._position, self._taken = epoch, _StreamPosition(0, 0), 0

    def _block(self, walk: Iterator[tuple[_StreamPosition, Sample]]) -> list[tuple[_StreamPosition, Sample]]:
        return list(islice(walk, self._buffer))

    def _order(self, epoch: int) -> list[str]:
        order = range(len(self._paths))
        if self._shuffles:
            order = np.random.RandomState([self._seed, epoch]).permutation(len(self._paths)).tolist()
        shard, shards = self._rank
        return [self._paths[i] for i in order[shard::shards]]

    def _walk(self, paths: Sequence[str], position: _StreamPosition) -> Iterator[tuple[_StreamPosition, Sample]]:
        """Yield the samples from a position on, with their positions; open the next archive meanwhile."""
        offset, pool = position.offset, self._thread if self._remote is None else self._remote
        next_archive = None
        for number in range(position.archive, len(paths)):
            archive = self._open(paths[number]) if next_archive is None else next_archive.result()
            next_archive = None
            if self._remote is not None and number + 1 < len(paths):
                next_archive = pool.submit(partial(self._open, paths[number + 1]))
            for start, sample in tar.locate_samples(archive, offset):
                yield (
                    _StreamPosition(number, start),
                    {ext: _value(ext, archive, at, size) for ext, at, size, _ in sample},
                )
            offset = 0

    def _open(self, path: str) -> tar.Archive:
        storage = open_storage(path, remote=self._remote)
        if self._remote is not None:
            storage.read(0, min(1, storage.size))  # after this read, the storage requests the following blocks
        return tar.Archive(storage)


def _value(extension: str, archive: tar.Archive, offset: int, size: int) -> Any:
    data = archive.read(offset, size).tobytes()
    return int(data) if extension == "cls" else data


def _words(position: _StreamPosition) -> tuple[int, int, int]:
    return position.archive, position.offset & 0xFFFFFFFF, position.offset >> 32
