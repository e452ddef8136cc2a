"""Tensors by key, in a file that only grows: in memory or on disk, shared by threads and processes.

There are two files. The *data* are the samples, one behind the other; the *index* has an entry for each, with its place
and check sums. A sample is written first, its entry last, under a lock; the entries say how far the data go. So a
process that is killed leaves at most bytes behind the end, which the next sample overwrites.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import weakref
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from torchdali.errors import warn
from torchdali.forks import ForkSafeLock
from torchdali.formats.shared_counts import Shared, anonymous_descriptor, opened, shared

__all__ = ["DiskStore", "MemoryStore", "SampleStore", "decoded", "disk_store", "encoded"]

Tensors = tuple[torch.Tensor, ...]
_Place = tuple[int, int, int]
"""Offset and size in the data, and check sum."""

_ENTRY = struct.Struct("<16sQQI")  # key, offset, size, check sum of the sample
_SUM = struct.Struct("<I")  # of the entry
_LENGTH = _ENTRY.size + _SUM.size
_HEADER = b"torchdali samples, form 1".ljust(_LENGTH, b"\n")
_ALIGNED = 64  # bytes; tensors begin at multiples


class SampleStore:
    """Tensors by key.

    Args:
        data: Descriptor of the data.
        index: Descriptor of the index.
        limit: Bytes of the data at most.

    Attributes:
        name: Where it lies, for messages.
        is_full: The disk or the memory takes nothing more.
    """

    name = ""

    def __init__(self, data: int, index: int, limit: int) -> None:
        self._data, self._index, self.limit = data, index, limit
        self._lock = ForkSafeLock()  # for what follows; one thread of a process writes at a time
        self._places: dict[bytes, _Place] = {}
        self._read_to, self._end = len(_HEADER), 0
        self.is_full = self._warned = False
        with self._writing():
            if os.fstat(index).st_size < len(_HEADER):
                os.pwrite(index, _HEADER, 0)
        if os.pread(index, len(_HEADER), 0) != _HEADER:
            raise RuntimeError(
                f"{self.name} is not a cache of this version of torchdali: remove it, or take another path"
            )
        self._catch_up()

    def __del__(self) -> None:
        if hasattr(self, "_data"):
            os.close(self._data)
            os.close(self._index)

    def get(self, key: bytes) -> Tensors | None:
        """Return the tensors of a key; None if there are none, or if they are damaged."""
        place = self._places.get(key)
        if place is None:
            self._catch_up()  # other processes write, too
            place = self._places.get(key)
        sample = None if place is None else self._sample(place)
        if place is not None and sample is None:
            with self._lock:
                if self._places.get(key) == place:
                    del self._places[key]
        return None if sample is None else decoded(sample)

    def _sample(self, place: _Place) -> torch.Tensor | None:
        raise NotImplementedError

    def put(self, key: bytes, tensors: Sequence[torch.Tensor]) -> bool:
        """Keep tensors, unless the key has some; return False if there is no room."""
        parts = encoded(tensors)
        size = sum(map(len, parts))
        if self.is_full or self._end + size > self.limit:
            if size > self.limit and not self._warned:
                self._warned = True
                warn(
                    f"cache: a sample takes {size:,} bytes, and all may take {self.limit:,} (`bytes`): they are "
                    "computed each time"
                )
            return False
        try:
            with self._writing():
                self._catch_up()
                if key in self._places:
                    return True
                if self._end + size > self.limit:
                    return False
                self._append(key, parts, size)
        except OSError as error:
            self._give_up(error)
            return False
        return True

    def _append(self, key: bytes, parts: Sequence[Any], size: int) -> None:
        offset, check = self._end, 0
        place = offset
        for part in parts:
            _write(self._data, part, place)
            place, check = place + len(part), zlib.crc32(part, check)
        entry = _ENTRY.pack(key, offset, size, check)
        _write(self._index, entry + _SUM.pack(zlib.crc32(entry)), self._read_to)
        self._catch_up()

    def _give_up(self, error: OSError) -> None:
        """Keep nothing more."""
        if not self.is_full:
            self.is_full = True
            warn(f"cache: {self.name} takes no more samples: {error.strerror}; the others are computed each time")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Keep other threads and processes from writing."""
        import fcntl

        with self._lock:
            fcntl.lockf(self._index, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._index, fcntl.LOCK_UN)

    def _catch_up(self) -> None:
        """Read the entries that were added since the last time."""
        with self._lock:
            left = os.fstat(self._index).st_size - self._read_to
            if left < _LENGTH:
                return
            block = os.pread(self._index, left - left % _LENGTH, self._read_to)
            for start in range(0, len(block) - _LENGTH + 1, _LENGTH):
                self._read_to += _LENGTH
                entry, check = block[start : start + _ENTRY.size], block[start + _ENTRY.size : start + _LENGTH]
                if zlib.crc32(entry) != _SUM.unpack(check)[0]:
                    continue  # damaged on disk
                key, offset, size, of_sample = _ENTRY.unpack(entry)
                self._places[key] = offset, size, of_sample
                self._end = max(self._end, offset + size)

    def __len__(self) -> int:
        """Return the number of samples."""
        self._catch_up()
        return len(self._places)

    @property
    def bytes(self) -> int:
        """Size of the data."""
        self._catch_up()
        return self._end


class MemoryStore(SampleStore):
    """Tensors in memory, shared with the processes that this one starts; it goes with the last of them.

    What `get` returns are views, which nobody may write to.
    """

    name = "memory"

    def __init__(self, limit: int, descriptors: tuple[int, int] | None = None) -> None:
        made = (anonymous_descriptor(limit), anonymous_descriptor(0)) if descriptors is None else descriptors
        super().__init__(*made, limit)
        self._view = torch.frombuffer(mmap.mmap(self._data, limit), dtype=torch.uint8)

    def shared(self) -> tuple[int, Shared, Shared]:
        """Return what `joined` takes in another process, while this one has the store open."""
        return self.limit, shared(self._data), shared(self._index)

    @classmethod
    def joined(cls, limit: int, data: Shared, index: Shared) -> MemoryStore:
        """Open the store of another process of this machine."""
        return cls(limit, (opened(data), opened(index)))

    def _sample(self, place: _Place) -> torch.Tensor:
        offset, size, _ = place
        return self._view[offset : offset + size]


class DiskStore(SampleStore):
    """Tensors in two files of a folder, which several processes may use at once.

    Args:
        folder: Made if it does not exist.
        stem: The first part of the names of the files.
        limit: Bytes of the data at most; None for the room on the disk but a tenth of it.

    Raises:
        RuntimeError: the folder or the files cannot be made, or are something else.
    """

    def __init__(self, folder: str, stem: str, limit: int | None) -> None:
        self.name = os.path.join(folder, stem)
        try:
            os.makedirs(folder, exist_ok=True)
            data, index = (_opened(self.name + ending) for ending in (".samples", ".index"))
            room = os.statvfs(folder)
        except OSError as error:
            raise RuntimeError(f"cannot make the cache {self.name}: {error.strerror}") from None
        free = room.f_frsize * (room.f_bavail - room.f_blocks // 10)
        known = os.fstat(data).st_size
        super().__init__(data, index, max(known, known + free) if limit is None else limit)

    def _sample(self, place: _Place) -> torch.Tensor | None:
        """Read a sample; None if it is damaged."""
        offset, size, check = place
        sample = torch.empty(size, dtype=torch.uint8)
        view = sample.numpy().data
        try:
            count = os.preadv(self._data, [view], offset)
        except OSError:
            return None
        return sample if count == size and zlib.crc32(view) == check else None


_stores: weakref.WeakValueDictionary[tuple[str, str], DiskStore] = weakref.WeakValueDictionary()
_opening = ForkSafeLock()


def disk_store(folder: str, stem: str, limit: int | None) -> DiskStore:
    """Return the store of a folder: the one that is open, as a lock of a file is that of the whole process."""
    with _opening:
        key = os.path.realpath(folder), stem
        found = _stores.get(key)
        if found is None:
            found = _stores[key] = DiskStore(folder, stem, limit)
        return found


def _opened(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _write(descriptor: int, data: Any, offset: int) -> None:
    """Write all of some bytes."""
    left = memoryview(data)
    while len(left):
        count = os.pwrite(descriptor, left, offset)
        left, offset = left[count:], offset + count


# ---------------------------------------------------------------- tensors as bytes

_DTYPES = (
    torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32, torch.uint64, torch.int64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool,
)  # fmt: skip


def encoded(tensors: Sequence[torch.Tensor]) -> list[Any]:
    """Return tensors as pieces of bytes: types and shapes, then the values of each, at multiples of 64 bytes."""
    head = [struct.pack("<B", len(tensors))]
    values: list[Any] = []
    for tensor in tensors:
        head.append(struct.pack(f"<BB{tensor.ndim}q", _DTYPES.index(tensor.dtype), tensor.ndim, *tensor.shape))
        data = tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().data
        values += [data, _padding(len(data))]
    text = b"".join(head)
    return [text + _padding(len(text)), *values]


def _padding(size: int) -> bytes:
    return bytes(-size % _ALIGNED)


def decoded(sample: torch.Tensor) -> Tensors:
    """Return the tensors of a sample, as views of it: the inverse of `encoded`."""
    data = sample.numpy().data
    place, kinds = 1, []
    for _ in range(data[0]):
        code, ndim = data[place], data[place + 1]
        kinds.append((_DTYPES[code], struct.unpack_from(f"<{ndim}q", data, place + 2)))
        place += 2 + 8 * ndim
    tensors = []
    for dtype, shape in kinds:
        place += -place % _ALIGNED
        size = dtype.itemsize
        for extent in shape:
            size *= extent
        tensors.append(sample[place : place + size].view(dtype).view(shape))
        place += size
    return tuple(tensors)
