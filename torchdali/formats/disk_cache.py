"""A cache of byte strings in a folder of limited size that several processes share."""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import time
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from torchdali.errors import warn
from torchdali.formats.shared_folder import (
    FileLock,
    describe_free_space,
    open_folder,
    open_own,
    read_into,
    write_atomically,
)

__all__ = ["DiskCache"]

_TARGET_SHARE = 0.9  # old entries are removed until this share of the maximum size is in use
PATIENCE, _PAUSE = 30.0, 0.01  # seconds that a process waits for another's download, in total and per attempt
_NAME_LENGTH = 64  # number of characters of a file name (a SHA-256 digest)
CHUNK = 1 << 16  # number of bytes that one checksum covers
_CHECKSUM = struct.Struct("<I")
_TOTAL = struct.Struct("<QI")  # size of all strings in bytes, and a checksum of that number


class DiskCache:
    """A cache of byte strings in a folder of limited size.

    When the folder is full, the cache removes strings that nobody has used since this process opened the cache. If the
    other strings fill the folder, the cache stores no more strings. If the data is twice as large as the cache, each
    epoch therefore finds half of the data in the cache. With least-recently-used replacement, each epoch would find a
    tenth.

    A string is stored completely or not at all. A damaged string counts as missing. Files of other programs in the
    folder are not touched.

    Args:
        folder: Path of the folder. A missing folder is created and is accessible only to its owner.
        size: Maximum size of all strings in bytes.

    Attributes:
        is_full: True if the cache stores no more strings.

    Raises:
        RuntimeError: The folder cannot be created, or belongs to another user.
    """

    def __init__(self, folder: str, size: int) -> None:
        if os.name == "nt":
            raise RuntimeError("cache_dir needs Linux or macOS; Windows lacks the file locks that the cache uses")
        self._path, self._size = os.path.join(os.path.abspath(folder), "torchdali"), size
        self._lock = FileLock(os.path.join(self._path, "lock"), per_descriptor=True)
        self._warned = self.is_full = False
        # A second earlier, because file times have a coarse resolution.
        self._opened_at = time.time_ns() - 1_000_000_000
        try:
            self._folder = open_folder(self._path, must_own=True)
            self._downloads = open_own("downloads", os.O_RDWR | os.O_CREAT, self._folder)
        except OSError as error:
            raise RuntimeError(
                f"cannot create cache_dir {folder}: {self._path}: {error.strerror}. Pass another folder"
            ) from None

    def __del__(self) -> None:
        for name in ("_folder", "_downloads"):
            if hasattr(self, name):
                os.close(getattr(self, name))

    def get(self, key: str, start: int = 0, count: int | None = None) -> bytes | None:
        """Return bytes of a key's string; None if the string is missing or damaged.

        Args:
            start: Offset of the returned bytes in the string.
            count: Number of returned bytes; None for all bytes from `start` on.
        """
        # No lock is needed: a file gets its final name only when the file is complete, and an open file can be read
        # even after its removal.
        name = _file_name(key)
        try:
            with open(open_own(name, os.O_RDONLY, self._folder), "rb", buffering=0) as file:
                data = _verify_checksums(file.fileno(), name, start, count)
                if data is None:
                    os.unlink(name, dir_fd=self._folder)
                else:
                    with contextlib.suppress(OSError):  # the disk may be read-only
                        os.utime(file.fileno())
        except OSError:
            return None
        return data

    def put(self, key: str, data: bytes) -> None:
        """Store the string of a key.

        Do nothing if the string is too large, the cache or the disk is full, or the lock isn't available.
        """
        size = _stored_size(len(data))
        if self.is_full or size > self._size:
            return
        try:
            with self._hold_lock() as lock:
                self._write(lock, _file_name(key), data, size)
        except TimeoutError:
            pass
        except OSError as error:
            self._warn_once(error, size)

    def _write(self, lock: int, name: str, data: bytes, size: int) -> None:
        if self._has_entry(name):
            return
        total = self._read_total(lock)
        if total + size > self._size:
            total = self._remove_old(size)
        if total + size > self._size:
            self.is_full = True
            return
        # Update the total before writing the string. If writing fails, the total is too large until `_remove_old`
        # computes the total again.
        total += size
        number = struct.pack("<Q", total)
        os.pwrite(lock, number + _CHECKSUM.pack(zlib.crc32(number)), 0)
        write_atomically(name, _add_checksums(name, data), folder=self._folder, mode=0o600)

    def _has_entry(self, name: str) -> bool:
        try:
            os.close(open_own(name, os.O_RDONLY, self._folder))
        except OSError:
            return False
        return True

    @contextlib.contextmanager
    def downloading(self, key: str) -> Iterator[None]:
        """While the block runs, prevent other processes of this machine from downloading the same key's string.

        Other processes wait up to `PATIENCE` seconds, and then continue without the lock.
        """
        import fcntl

        offset = int(_file_name(key)[:12], 16)
        deadline = time.monotonic() + PATIENCE
        is_locked = False
        with contextlib.suppress(OSError):  # the file system may not support locks
            while not is_locked and time.monotonic() < deadline:
                try:
                    fcntl.lockf(self._downloads, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
                    is_locked = True
                except (BlockingIOError, PermissionError):
                    time.sleep(_PAUSE)
        try:
            yield
        finally:
            if is_locked:
                fcntl.lockf(self._downloads, fcntl.LOCK_UN, 1, offset)

    @contextlib.contextmanager
    def _hold_lock(self) -> Iterator[int]:
        descriptor = open_own("lock", os.O_RDWR | os.O_CREAT, self._folder)
        try:
            with self._lock.hold(descriptor):
                yield descriptor
        finally:
            os.close(descriptor)

    def _read_total(self, lock: int) -> int:
        """Return the size of all strings from the lock file. If the lock file has no valid size, add up the entries."""
        stored = os.pread(lock, _TOTAL.size, 0)
        if len(stored) == _TOTAL.size:
            total, checksum = _TOTAL.unpack(stored)
            if zlib.crc32(stored[:8]) == checksum:
                return int(total)
        return sum(size for _, size, _ in self._list_entries())

    def _remove_old(self, count: int) -> int:
        """Remove entries that were last used before this process opened the cache, until `count` more bytes fit.

        Return the size of the remaining entries.
        """
        entries = sorted(self._list_entries())
        total = sum(size for _, size, _ in entries)
        for used, size, name in entries:
            if used >= self._opened_at or total + count <= self._size * _TARGET_SHARE:
                break
            with contextlib.suppress(FileNotFoundError):  # another process may have removed a damaged entry
                os.unlink(name, dir_fd=self._folder)
            total -= size
        return total

    def _list_entries(self) -> Iterator[tuple[int, int, str]]:
        """Yield the time of the last use, the size and the name of each of the cache's files.

        This includes incomplete files that remain after a crash.
        """
        with os.scandir(self._folder) as entries:
            for entry in entries:
                is_cache_file = len(entry.name) == _NAME_LENGTH or entry.name.endswith(".part")
                if is_cache_file and not entry.is_dir(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    yield status.st_mtime_ns, status.st_size, entry.name

    def _warn_once(self, error: OSError, size: int) -> None:
        if not self._warned:
            self._warned = True
            warn(
                f"cache_dir: cannot store {size:,} bytes in {self._path}: {_describe_error(error)}"
                f"{describe_free_space(error, self._path)}; data that isn't cached is read from its URL each time"
            )


def _describe_error(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)


def _file_name(key: str) -> str:
    """Return a file name that depends on the key and on the version of the file format."""
    return hashlib.sha256(b"form 2\n" + key.encode("utf-8", "surrogateescape")).hexdigest()


# ---------------------------------------------------------------- strings with check sums


def _count_chunks(size: int) -> int:
    return max(1, -(-size // CHUNK))


def _stored_size(size: int) -> int:
    return size + _count_chunks(size) * _CHECKSUM.size


def _add_checksums(name: str, data: bytes) -> Iterator[Any]:
    """Yield the chunks of a string, each followed by its checksum.

    With one checksum per chunk, a part of the string can be verified.
    """
    view = memoryview(data)
    for number in range(_count_chunks(len(view))):
        chunk = view[number * CHUNK : (number + 1) * CHUNK]
        yield chunk
        yield _compute_checksum(chunk, name, len(view), number)


def _compute_checksum(chunk: memoryview, name: str, size: int, number: int) -> bytes:
    """Return the checksum of a chunk, of the string's name and size, and of the chunk's number."""
    return _CHECKSUM.pack(zlib.crc32(chunk, zlib.crc32(f"{name} {size} {number}".encode())))


def _verify_checksums(descriptor: int, name: str, start: int, count: int | None) -> bytes | None:
    """Read and verify a string or a part of a string; return None if the string is damaged."""
    stored_size, step = os.fstat(descriptor).st_size, CHUNK + _CHECKSUM.size
    size = stored_size - -(-stored_size // step) * _CHECKSUM.size
    if size < 0 or _stored_size(size) != stored_size:
        return None
    stop = size if count is None else min(start + count, size)
    # An empty string has a chunk, too. Its checksum verifies that the string is empty.
    first = min(start // CHUNK, _count_chunks(size) - 1)
    last = max(first + 1, _count_chunks(stop))
    view = np.empty(min(last * step, stored_size) - first * step, np.uint8).data
    if not read_into(descriptor, view, first * step):
        return None
    parts = []
    for number in range(first, last):
        chunk = view[(number - first) * step :][: min(CHUNK, size - number * CHUNK)]
        data_end = (number - first) * step + len(chunk)
        if view[data_end : data_end + _CHECKSUM.size] != _compute_checksum(chunk, name, size, number):
            return None
        parts.append(chunk[max(0, start - number * CHUNK) : max(0, stop - number * CHUNK)])
    return b"".join(parts)
