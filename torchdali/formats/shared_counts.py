"""Counters that threads and processes share."""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import tempfile

from torchdali.forks import ForkSafeLock
from torchdali.formats.shared_folder import FileLock, close_on_error

__all__ = ["DescriptorLink", "SharedCounts", "anonymous_descriptor", "open_shared", "share"]

_ROWS = 1024
_ROW_LENGTH = 8  # numbers per row: the id of a process, and the process's counts; a row fills a cache line
_SIZE = _ROWS * _ROW_LENGTH * 8
DescriptorLink = tuple[str, str]
"""The path of a link in ``/proc`` to an unnamed file, and the target that this link must have.

Another process of this machine can open the file by this path.
"""


class SharedCounts:
    """Counters 0 to 6 that threads and processes share. A counter's value is the sum of all processes' counts.

    Each process has its own row, and adds only to this row, so no process waits for another.

    Args:
        descriptor: Descriptor of a file that another process created; None for a new file.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        self.descriptor = anonymous_descriptor(_SIZE) if descriptor is None else descriptor
        self._rows = memoryview(mmap.mmap(self.descriptor, _SIZE)).cast("q")
        self._lock = ForkSafeLock()
        self._process = self._row = 0

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)

    @classmethod
    def join(cls, link: DescriptorLink) -> SharedCounts:
        """Open the counters of another process. If the process runs on another machine, create new counters.

        Args:
            link: Result of `share` in the other process.
        """
        try:
            return cls(open_shared(link))
        except OSError:
            return cls()

    def add(self, index: int, amount: int = 1) -> None:
        """Add an amount to a counter."""
        with self._lock:  # several threads of this process may write to the process's row
            if self._process != os.getpid():  # the first call, or the first call after a fork
                self._row, self._process = self._reserve_row(), os.getpid()
            self._rows[self._row * _ROW_LENGTH + 1 + index] += amount

    def _reserve_row(self) -> int:
        """Reserve a row for this process.

        If no row is free, use the last row. Several processes may then share the last row, and counts may be lost.
        """
        with contextlib.suppress(TimeoutError), FileLock("numbers that processes count").hold(self.descriptor):
            owners = self._rows[::_ROW_LENGTH].tolist()
            if 0 in owners:
                row = owners.index(0)
                self._rows[row * _ROW_LENGTH] = os.getpid()
                return row
        return _ROWS - 1

    def total(self, index: int) -> int:
        """Return the value of a counter."""
        return sum(self._rows[index + 1 :: _ROW_LENGTH].tolist())


def anonymous_descriptor(size: int) -> int:
    """Create an unnamed file of `size` bytes; return its descriptor.

    The file is in memory if the system supports unnamed files in memory; otherwise, the file is in the folder for
    temporary files. Pages that are never written use no memory.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create(f"torchdali-{secrets.token_hex(8)}")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    with close_on_error(descriptor):
        os.ftruncate(descriptor, size)
    return descriptor


def share(descriptor: int) -> DescriptorLink:
    """Return the argument of `open_shared` for another process.

    The argument is valid as long as this process has the file open.
    """
    path = f"/proc/{os.getpid()}/fd/{descriptor}"
    return path, os.readlink(path)


def open_shared(link: DescriptorLink) -> int:
    """Open an unnamed file that another process of this machine has open.

    Raises:
        OSError: The other process runs on another machine, or has closed the file.
    """
    path, target = link
    if os.readlink(path) != target:
        raise OSError(
            f"{path} must still refer to {target}; the process that created it has closed the file, or runs "
            f"on another machine"
        )
    return os.open(path, os.O_RDWR)
