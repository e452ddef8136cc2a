"""Archives as a stream: samples in one pass, from the first byte on, without an index."""

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
_BATCH = 64  # samples that are read ahead in order


class _StreamPosition(NamedTuple):
    """The start of a sample: the index of its archive in the epoch's order, and the offset in the archive."""

    archive: int
    offset: int


class TarStream:
    """Read webdataset archives in one pass, for `fn.readers.stream`.

    An archive is read from its first byte on, an eighth of ``io_ahead`` ahead, each byte once: the first batch comes
    before the first archive has arrived. A sample is a dictionary of bytes by extension; ``cls`` is a number.

    With an index or a manifest, `fn.readers.webdataset` shuffles better and tells the length of an epoch.

    Args:
        paths: Archives, or their URLs.
        shuffle: Shuffle the archives, and the samples in blocks of ``buffer``.
        buffer: Samples of a block; two blocks are in memory.
        seed: Seed of the shuffling.
        shard_id: Shard id of this rank, from 0.
        num_shards: Number of ranks: each reads every ``num_shards``-th archive.
        options: ``io_timeout``, ``io_deadline``, ``cache_dir`` and so on, as for readers.

    Raises:
        ValueError: there are fewer archives than ranks, or a number is out of range.
    """

    def __init__(
        self, paths: Sequence[str], *, shuffle: bool = False, buffer: int = 1000, seed: int = 0, shard_id: int = 0,
        num_shards: int = 1, **options: Any,
    ) -> None:  # fmt: skip
        if not 0 <= shard_id < num_shards <= len(paths):
            given = f"{shard_id}, {num_shards}, {len(paths)}"
            raise ValueError(f"0 <= shard_id < num_shards <= number of archives must hold, got {given}")
        if buffer < 1:
            raise ValueError(f"buffer must be at least 1, got {buffer}")
        self._paths, self._shuffles, self._seed = list(paths), shuffle, seed
        self._buffer = buffer if shuffle else _BATCH
        self._rank = shard_id, num_shards
        self._remote = Remote(RemoteOptions(**options)) if any(map(is_url, paths)) else None
        self._thread = DaemonPool(1, "torchdali-tar-stream")
        self._epoch, self._place, self._taken = 0, _StreamPosition(0, 0), 0

    @property
    def remotes(self) -> tuple[Remote, ...]:
        """Connections that read the archives at URLs."""
        return () if self._remote is None else (self._remote,)

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch with the next loop; each epoch has its own order."""
        self._epoch, self._place, self._taken = epoch, _StreamPosition(0, 0), 0

    def state_dict(self) -> dict[str, int]:
        """Return the position after the last sample, as JSON values."""
        return {"epoch": self._epoch, **self._place._asdict(), "taken": self._taken}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Continue at a saved position with the next loop."""
        self._epoch, self._taken = state["epoch"], state["taken"]
        self._place = _StreamPosition(state["archive"], state["offset"])

    def __iter__(self) -> Iterator[Sample]:
        epoch, place, taken = self._epoch, self._place, self._taken
        walk = self._walk(self._order(epoch), place)
        coming = self._thread.submit(self._block, walk)
        while block := coming.result():
            coming = self._thread.submit(self._block, walk)
            self._place = block[0][0]
            order = range(len(block))
            if self._shuffles:
                order = (
                    np.random.RandomState([self._seed, epoch, *_words(self._place)]).permutation(len(block)).tolist()
                )
            for index in order[taken:]:
                taken += 1
                self._taken = taken
                yield block[index][1]
            taken = 0
        self._epoch, self._place, self._taken = epoch, _StreamPosition(0, 0), 0

    def _block(self, walk: Iterator[tuple[_StreamPosition, Sample]]) -> list[tuple[_StreamPosition, Sample]]:
        return list(islice(walk, self._buffer))

    def _order(self, epoch: int) -> list[str]:
        order = range(len(self._paths))
        if self._shuffles:
            order = np.random.RandomState([self._seed, epoch]).permutation(len(self._paths)).tolist()
        shard, shards = self._rank
        return [self._paths[i] for i in order[shard::shards]]

    def _walk(self, paths: Sequence[str], place: _StreamPosition) -> Iterator[tuple[_StreamPosition, Sample]]:
        """Yield the samples after a position; the next archive is opened meanwhile."""
        offset, pool = place.offset, self._thread if self._remote is None else self._remote
        coming = None
        for number in range(place.archive, len(paths)):
            archive = self._open(paths[number]) if coming is None else coming.result()
            coming = None
            if self._remote is not None and number + 1 < len(paths):
                coming = pool.submit(partial(self._open, paths[number + 1]))
            for start, sample in tar.located_samples(archive, offset):
                yield (
                    _StreamPosition(number, start),
                    {ext: _value(ext, archive, at, size) for ext, at, size, _ in sample},
                )
            offset = 0

    def _open(self, path: str) -> tar.Archive:
        storage = open_storage(path, remote=self._remote)
        if self._remote is not None:
            storage.read(0, min(1, storage.size))  # starts to read ahead
        return tar.Archive(storage)


def _value(extension: str, archive: tar.Archive, offset: int, size: int) -> Any:
    data = archive.read(offset, size).tobytes()
    return int(data) if extension == "cls" else data


def _words(place: _StreamPosition) -> tuple[int, int, int]:
    return place.archive, place.offset & 0xFFFFFFFF, place.offset >> 32
