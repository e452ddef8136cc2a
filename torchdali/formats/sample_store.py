"""A store that maps keys to tensors, in memory or on disk, shared by threads and processes.

A store has two files. The *data* file has the samples, one after another; a sample is the tensors of one key. The
*index* file has one entry per sample, with the sample's key, offset, size and checksum. A process that holds the lock
writes a sample first, and then the sample's entry. Bytes of the data file that no entry refers to are unused. If a
process is killed while writing a sample, the incomplete sample has no entry, and the next sample overwrites its bytes.

Files are not trusted: a sample counts as missing if its entry refers to bytes after the end of the data file, or if its
bytes do not represent tensors.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import struct
import weakref
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from torchdali.errors import warn, warning_location, warnings_on
from torchdali.forks import ForkSafeLock
from torchdali.formats.shared_counts import DescriptorLink, anonymous_descriptor, open_shared, share
from torchdali.formats.shared_folder import (
    FileLock,
    close_on_error,
    describe_free_space,
    open_folder,
    open_own,
    read_into,
)

__all__ = ["DiskStore", "MemoryStore", "SampleStore", "decode_tensors", "disk_store", "encode_tensors"]

Tensors = tuple[torch.Tensor, ...]
_SampleLocation = tuple[int, int, int]
"""Offset and size of a sample in the data file, and the sample's checksum."""

_ENTRY = struct.Struct("<16sQQI")  # key, offset, size, checksum of the sample
_CHECKSUM = struct.Struct("<I")  # checksum of the entry
_ENTRY_SIZE = _ENTRY.size + _CHECKSUM.size
_HEADER = b"torchdali samples, form 1".ljust(_ENTRY_SIZE, b"\n")
_ALIGNMENT = 64  # bytes; tensors start at multiples of this number
_BLOCK_SIZE = _ENTRY_SIZE << 14  # bytes of the index that are read in one call
LARGEST_INDEX = _ENTRY_SIZE << 24


class SampleStore:
    """A store that maps keys to tensors.

    Args:
        data: Descriptor of the data file.
        index: Descriptor of the index file.
        limit: Maximum size of the data in bytes.

    Attributes:
        name: Location of the store, for messages.
        index_name: Name of the index file, for messages.
        limit_text: Description of the limit, for messages.
        is_full: True after a failed write, for example to a full disk. The store then stores no more samples.
    """

    name = index_name = ""
    limit_text = "`bytes`"

    def __init__(self, data: int, index: int, limit: int) -> None:
        self._data, self._index, self.limit = data, index, limit
        self._lock = ForkSafeLock()  # protects the fields below; only one thread of a process writes at a time
        self._file_lock = FileLock(self.index_name)
        self._locations: dict[bytes, _SampleLocation] = {}
        self._index_end, self._data_end = len(_HEADER), 0
        self.is_full, self._warned, self._call_site = False, False, warning_location()
        self._read_new_entries()
        if not self._locations and not _HEADER.startswith(self._read_header()):
            raise RuntimeError(
                f"{self.index_name} isn't a cache of this version of torchdali. Remove the file, or pass another path"
            )

    def __del__(self) -> None:
        if hasattr(self, "_data"):
            os.close(self._data)
            os.close(self._index)

    def _read_header(self) -> bytes:
        return os.pread(self._index, len(_HEADER), 0)

    def get(self, key: bytes) -> Tensors | None:
        """Return the tensors of a key; None if the store doesn't have them, or if they are damaged."""
        # No lock is needed: an entry is added or removed atomically, and the bytes of an entry's sample never change.
        location = self._locations.get(key)
        if location is None:
            with contextlib.suppress(OSError):
                self._read_new_entries()  # another process may have added the key
            location = self._locations.get(key)
        if location is None:
            return None
        sample = self._read_sample(location)
        tensors = None if sample is None else decode_tensors(sample)
        if tensors is None:
            self.forget(key)
        return tensors

    def _read_sample(self, location: _SampleLocation) -> torch.Tensor | None:
        raise NotImplementedError

    def forget(self, key: bytes) -> None:
        """Remove a key, so that the next `put` replaces its tensors."""
        with self._lock:
            self._locations.pop(key, None)

    def put(self, key: bytes, tensors: Sequence[torch.Tensor]) -> bool:
        """Store the tensors of a key, unless the store already has tensors of this key.

        Return False if the store is full, the lock isn't available, or writing fails.
        """
        parts = encode_tensors(tensors)
        size = sum(map(len, parts))
        if self.is_full or self._data_end + size > self.limit:
            self._warn_full(size)
            return False
        try:
            with self._lock_for_writing():
                self._read_new_entries()
                if key in self._locations:
                    return True
                if self._data_end + size > self.limit or self._index_end >= LARGEST_INDEX:
                    return False
                self._append(key, parts, size)
        except TimeoutError:
            return False
        except OSError as error:
            self._stop_storing(error, size)
            return False
        return True

    def _append(self, key: bytes, parts: Sequence[Any], size: int) -> None:
        if self._read_header() != _HEADER:
            _write(self._index, _HEADER, 0)
        offset, checksum = self._data_end, 0
        position = offset
        for part in parts:
            _write(self._data, part, position)
            position, checksum = position + len(part), zlib.crc32(part, checksum)
        # Write the entry last: other processes read the index without a lock, and assume that an entry's data is
        # complete.
        entry = _ENTRY.pack(key, offset, size, checksum)
        _write(self._index, entry + _CHECKSUM.pack(zlib.crc32(entry)), self._index_end)
        self._read_new_entries()

    def _warn_full(self, size: int) -> None:
        free = max(0, self.limit - self._data_end)
        self._warn_once(
            f"the cache is full: a sample needs {size:,} bytes, but {free:,} of {self.limit:,} are free in {self.name} "
            f"({self.limit_text}). Samples that don't fit are computed again in every epoch"
        )

    def _warn_once(self, text: str) -> None:
        """Issue a warning, but only once. The warning names the line of the user's program that created the cache."""
        if not self._warned:
            self._warned = True
            with warnings_on(*self._call_site):
                warn(text)

    def _stop_storing(self, error: OSError, size: int) -> None:
        if not self.is_full:
            self.is_full = True
            self._warn_once(
                f"cache: cannot store a sample of {size:,} bytes in {self.name}: {error.strerror}"
                f"{self._advice(error)}; samples that aren't cached are computed each time"
            )

    def _advice(self, error: OSError) -> str:
        """Return the end of the warning's text, which says how to solve the problem."""
        return ""

    @contextlib.contextmanager
    def _lock_for_writing(self) -> Iterator[None]:
        """Prevent other threads and processes from writing; raise TimeoutError if another process holds the lock."""
        with self._lock, self._file_lock.hold(self._index):
            yield

    def _read_new_entries(self) -> None:
        """Read the entries that were added since the last call."""
        with self._lock:
            size = min(os.fstat(self._index).st_size, LARGEST_INDEX)
            while size - self._index_end >= _ENTRY_SIZE:
                block = os.pread(self._index, min(_BLOCK_SIZE, size - self._index_end), self._index_end)
                if len(block) < _ENTRY_SIZE:  # the index was truncated meanwhile
                    return
                self._add_entries(block)

    def _add_entries(self, block: bytes) -> None:
        """Add the entries in a block of the index."""
        count, end = len(block) // _ENTRY_SIZE, os.fstat(self._data).st_size
        self._index_end += count * _ENTRY_SIZE
        if block.count(0) == len(block):  # a hole in the file is read as zeros
            return
        for start in range(0, count * _ENTRY_SIZE, _ENTRY_SIZE):
            entry, entry_checksum = block[start : start + _ENTRY.size], block[start + _ENTRY.size : start + _ENTRY_SIZE]
            if zlib.crc32(entry) != _CHECKSUM.unpack(entry_checksum)[0]:
                continue  # the entry is damaged
            key, offset, size, sample_checksum = _ENTRY.unpack(entry)
            if offset + size <= end:
                self._locations[key] = offset, size, sample_checksum
                self._data_end = max(self._data_end, offset + size)

    def __contains__(self, key: bytes) -> bool:
        """Return whether the store has a key, according to the entries that this process has read so far."""
        return key in self._locations

    def __len__(self) -> int:
        """Return the number of samples."""
        self._read_new_entries()
        return len(self._locations)

    @property
    def bytes(self) -> int:
        """Size of the data in bytes."""
        self._read_new_entries()
        return self._data_end


class MemoryStore(SampleStore):
    """A store in memory that child processes share. The memory is freed when the last of these processes ends.

    Callers must not write to the tensors that `get` returns, because the tensors are views of the store's memory.

    Args:
        limit: Maximum size of the data in bytes.
        descriptors: Descriptors of the data and the index of an existing store; None to create a store.
    """

    name, index_name = "memory", "the index of a cache in memory"

    def __init__(self, limit: int, descriptors: tuple[int, int] | None = None) -> None:
        try:
            files = (anonymous_descriptor(limit), anonymous_descriptor(0)) if descriptors is None else descriptors
            super().__init__(*files, limit)
            self._view = torch.frombuffer(mmap.mmap(self._data, limit), dtype=torch.uint8)
        except (OSError, OverflowError) as error:
            raise RuntimeError(
                f"fn.cache cannot allocate {limit:,} bytes of memory: {getattr(error, 'strerror', None) or error}. "
                f"`bytes` "
                "is the most memory that samples may use; pages are allocated when written, within the limits of the "
                "process (ulimit -v, ulimit -f)"
            ) from None

    def share(self) -> tuple[int, DescriptorLink, DescriptorLink]:
        """Return the arguments of `join` for another process.

        The arguments are valid as long as this process has the store open.
        """
        return self.limit, share(self._data), share(self._index)

    @classmethod
    def join(cls, limit: int, data: DescriptorLink, index: DescriptorLink) -> MemoryStore:
        """Open the store of another process on this machine. The arguments are the results of `share`."""
        return cls(limit, (open_shared(data), open_shared(index)))

    def _read_sample(self, location: _SampleLocation) -> torch.Tensor:
        offset, size, _ = location
        return self._view[offset : offset + size]


class DiskStore(SampleStore):
    """A store in two files of a folder.

    Several processes of a user may use the store at the same time. The folder is created if it doesn't exist.

    Args:
        stem: Start of the files' names.
        limit: Maximum size of the data in bytes. If None, the data may fill the disk, except for a tenth of the disk.

    Raises:
        RuntimeError: The folder or the files cannot be created, or existing files are not a cache.
    """

    def __init__(self, folder: str, stem: str, limit: int | None) -> None:
        self._folder, self.name = folder, os.path.join(folder, stem)
        self.index_name = f"{self.name}.index"
        try:
            data, index = _open_files(folder, stem)
        except OSError as error:
            file = self.name if error.filename is None else os.path.join(folder, error.filename)
            raise RuntimeError(
                f"cannot create the cache {file}: {error.strerror}{self._advice(error)}. Remove the file in "
                "the way, or use another folder (path=) or memory (bytes= alone)"
            ) from None
        if limit is None:
            self.limit_text = "a tenth of the disk stays free unless you pass `bytes`, the size limit of the cache"
            disk, current_size = os.statvfs(folder), os.fstat(data).st_size
            limit = current_size + max(0, disk.f_frsize * (disk.f_bavail - disk.f_blocks // 10))
        super().__init__(data, index, limit)

    def _read_sample(self, location: _SampleLocation) -> torch.Tensor | None:
        """Read a sample; return None if the sample is damaged."""
        offset, size, checksum = location
        try:
            sample = torch.empty(size, dtype=torch.uint8)
            view = sample.numpy().data
            is_complete = read_into(self._data, view, offset)
        except (OSError, RuntimeError):  # a disk error, or not enough memory for the size in the entry
            return None
        return sample if is_complete and zlib.crc32(view) == checksum else None

    def _advice(self, error: OSError) -> str:
        return describe_free_space(error, self._folder)


def _open_files(folder: str, stem: str) -> tuple[int, int]:
    folder_descriptor = open_folder(folder, must_own=False)
    try:
        data = open_own(f"{stem}.samples", os.O_RDWR | os.O_CREAT, folder_descriptor)
        with close_on_error(data):
            return data, open_own(f"{stem}.index", os.O_RDWR | os.O_CREAT, folder_descriptor)
    finally:
        os.close(folder_descriptor)


_stores: weakref.WeakValueDictionary[tuple[str, str], DiskStore] = weakref.WeakValueDictionary()
_open_lock = ForkSafeLock()


def disk_store(folder: str, stem: str, limit: int | None) -> DiskStore:
    """Return the store of a folder.

    If this process has already opened the store, return the same object again. A second object would be unsafe, because
    a file lock belongs to the whole process and wouldn't prevent the two objects from writing at the same time.
    """
    with _open_lock:
        key = os.path.realpath(folder), stem
        store = _stores.get(key)
        if store is None:
            store = _stores[key] = DiskStore(folder, stem, limit)
        return store


def _write(descriptor: int, data: Any, offset: int) -> None:
    remaining = memoryview(data)
    while len(remaining):
        count = os.pwrite(descriptor, remaining, offset)
        remaining, offset = remaining[count:], offset + count


# ---------------------------------------------------------------- tensors as bytes

_DTYPES = (
    torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32, torch.uint64, torch.int64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool,
)  # fmt: skip


def encode_tensors(tensors: Sequence[torch.Tensor]) -> list[Any]:
    """Convert tensors to a list of byte buffers that must be written one after another.

    The first buffer has the dtypes and shapes. The values of each tensor follow, starting at a multiple of 64 bytes.
    """
    head = [struct.pack("<B", len(tensors))]
    values: list[Any] = []
    for tensor in tensors:
        head.append(struct.pack(f"<BB{tensor.ndim}q", _DTYPES.index(tensor.dtype), tensor.ndim, *tensor.shape))
        data = tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().data
        values += [data, _padding(len(data))]
    text = b"".join(head)
    return [text + _padding(len(text)), *values]


def _padding(size: int) -> bytes:
    return bytes(-size % _ALIGNMENT)


def decode_tensors(sample: torch.Tensor) -> Tensors | None:
    """Convert the bytes of `encode_tensors` to tensors, which are views of the bytes. Return None for invalid bytes."""
    data = sample.numpy().data
    offset, specs = 1, []
    try:
        for _ in range(data[0]):
            code, ndim = data[offset], data[offset + 1]
            specs.append((_DTYPES[code], struct.unpack_from(f"<{ndim}q", data, offset + 2)))
            offset += 2 + 8 * ndim
        tensors = []
        for dtype, shape in specs:
            offset += -offset % _ALIGNMENT
            size = dtype.itemsize * math.prod(shape)
            if min(shape, default=0) < 0 or offset + size > len(data):
                return None
            tensors.append(sample[offset : offset + size].view(dtype).view(shape))
            offset += size
    except (IndexError, struct.error, RuntimeError):
        return None
    return tuple(tensors)
