"""A folder of byte strings by key, of bounded size, that several processes share."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator

__all__ = ["DiskCache"]

_FULL = 0.9  # of the size that is left after making room


class DiskCache:
    """Byte strings in a folder; those that were not used for longest are removed when there are too many.

    A string appears as a whole or not at all. What belongs to others in the folder is not touched.

    Args:
        folder: Made if it does not exist, readable for its owner only.
        size: Bytes of all strings at most.

    Raises:
        RuntimeError: the folder cannot be made.
    """

    def __init__(self, folder: str, size: int) -> None:
        self._folder, self._size = os.path.join(folder, "torchdali"), size
        try:
            os.makedirs(self._folder, 0o700, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"cannot make cache_dir {folder}: {error.strerror}") from None

    def get(self, key: str, start: int = 0, count: int | None = None) -> bytes | None:
        """Return the string of a key, or a part of it; None where it is not here."""
        path = self._path(key)
        try:
            with open(path, "rb", buffering=0) as file:
                file.seek(start)
                data = file.read(-1 if count is None else count)
            os.utime(path)
        except OSError:
            return None
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep a string, unless it is larger than the cache or the disk is full."""
        if len(data) > self._size:
            return
        with contextlib.suppress(OSError), self._locked():
            self._make_room(len(data))
            self._write(self._path(key), data)

    def _path(self, key: str) -> str:
        return os.path.join(self._folder, hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest())

    def _write(self, path: str, data: bytes) -> None:
        if os.path.exists(path):
            return
        descriptor, unfinished = tempfile.mkstemp(".part", dir=self._folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.replace(unfinished, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)
            raise
        self._set_total(self._total() + len(data))

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other threads and processes from writing."""
        import fcntl

        descriptor = os.open(os.path.join(self._folder, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _make_room(self, count: int) -> None:
        """Remove the entries that were not used for longest, until `count` more bytes fit."""
        total = self._total()
        if total + count <= self._size:
            return
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        for _, size, path in entries:
            if total + count <= self._size * _FULL:
                break
            os.unlink(path)
            total -= size
        self._set_total(total)

    def _entries(self) -> Iterator[tuple[int, int, str]]:
        """Yield time of the last use, size and path of each string, and of what a crash left unfinished."""
        with os.scandir(self._folder) as found:
            for entry in found:
                if len(entry.name) == 64 or entry.name.endswith(".part"):
                    status = entry.stat()
                    yield status.st_mtime_ns, status.st_size, entry.path

    def _total(self) -> int:
        try:
            with open(os.path.join(self._folder, "total"), encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError):
            return sum(size for _, size, _ in self._entries())

    def _set_total(self, total: int) -> None:
        with open(os.path.join(self._folder, "total"), "w", encoding="ascii") as file:
            file.write(str(total))
