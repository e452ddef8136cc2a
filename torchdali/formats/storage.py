"""Files and objects whose bytes are read by ranges.

Local files are mapped into memory, or read with ordinary read calls. Objects at URLs are read by requests.
"""

from __future__ import annotations

import mmap
import os
import platform
import sys
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from torchdali.codecs.signatures import HEAD, describe_content
from torchdali.formats.remote import NoSuchObject, Remote, RemoteFile, check_range, read_url
from torchdali.formats.shared_folder import open_for_reading, read_into, write_atomically
from torchdali.formats.stores import ObjectVersion
from torchdali.formats.urls import is_url, redact

__all__ = [
    "ByteStorage", "Bytes", "MappedFile", "PlainFile", "describe_storage", "exists", "file_identity", "open_storage",
    "read_text", "write_text",
]  # fmt: skip

Bytes: TypeAlias = npt.NDArray[np.uint8]


class ByteStorage(Protocol):
    """A file or an object whose bytes are read by ranges; several threads may read at the same time.

    Attributes:
        path: Path for error messages.
        size: Size in bytes.
        identity: Identity of the file when it was opened (see `file_identity`), or of the object's version; None if
            unknown.
    """

    path: str
    size: int

    @property
    def identity(self) -> bytes | None: ...

    def read(self, offset: int, count: int) -> Bytes:
        """Return a range of bytes; the result may be a view of the file's memory.

        Raises:
            RuntimeError: The range is not inside the file, or cannot be read.
        """
        ...


class MappedFile:
    """A file that is mapped into memory; `read` returns views of this memory."""

    def __init__(self, path: str) -> None:
        self._status = _status(path)
        self.path, self.size = path, self._status.st_size
        self.bytes = _map(path, self.size)

    @property
    def identity(self) -> bytes:
        """Identity of the file when it was opened."""
        return _encode_identity(self.path, self._status)

    def read(self, offset: int, count: int) -> Bytes:
        """Return a view of a range.

        Raises:
            RuntimeError: The range is not inside the file; or the file was truncated, so that access could crash the
                process.
        """
        end = offset + count
        if offset < 0 or count < 0 or end > self.size:
            check_range(self, offset, count)
        self._check_truncation()
        return self.bytes[offset:end]

    def _check_truncation(self) -> None:
        try:
            status = os.stat(self.path)
        except OSError:
            return  # the file was removed; its mapping stays valid
        if status.st_size < self.size and _device_and_inode(status) == _device_and_inode(self._status):
            raise RuntimeError(
                f"{self.path} became shorter while it was read: it had {self.size} bytes and has {status.st_size}"
            )


if sys.platform == "win32":

    def _map_privately(descriptor: int, length: int, offset: int) -> mmap.mmap:
        return mmap.mmap(descriptor, length, access=mmap.ACCESS_COPY, offset=offset)

else:
    _is_common_machine = platform.machine() in ("x86_64", "aarch64")
    _NO_RESERVE = getattr(  # without this flag, the system refuses to map files that are larger than main memory
        mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" and _is_common_machine else 0
    )

    def _map_privately(descriptor: int, length: int, offset: int) -> mmap.mmap:
        flags, protection = mmap.MAP_PRIVATE | _NO_RESERVE, mmap.PROT_READ | mmap.PROT_WRITE
        return mmap.mmap(descriptor, length, flags, protection, offset=offset)


def _device_and_inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _encode_identity(path: str, status: os.stat_result) -> bytes:
    times = status.st_mtime_ns, status.st_ctime_ns  # tar, rsync and cp can set mtime, but not ctime
    numbers = *_device_and_inode(status), status.st_size, *times
    return os.fsencode(os.path.abspath(path)) + b"\0%d %d %d %d %d" % numbers


def file_identity(path: str) -> bytes | None:
    """Return a file's path, device, inode, size, and modification and change times as bytes.

    Return None if the file does not exist.
    """
    try:
        return _encode_identity(path, os.stat(path))
    except OSError:
        return None


def _map(path: str, size: int) -> Bytes:
    if not size:
        return np.empty(0, np.uint8)
    try:  # unlike `mmap`, `from_file` doesn't keep a descriptor open for each file
        mapped = torch.from_file(path, shared=False, size=size, dtype=torch.uint8)
        return mapped.numpy()
    except (RuntimeError, UnicodeError):  # `from_file` does not support all names
        with open(os.fsencode(path), "rb") as file:
            return np.frombuffer(_map_privately(file.fileno(), size, 0), np.uint8)


class PlainFile:
    """A file that is read with ordinary read calls; each `read` returns new memory.

    Args:
        direct: Bypass the system's file cache if the file system supports this.
    """

    def __init__(self, path: str, direct: bool = False) -> None:
        self._status = _status(path)
        self.path, self.size, self._direct = path, self._status.st_size, direct

    @property
    def identity(self) -> bytes:
        """Identity of the file when it was opened."""
        return _encode_identity(self.path, self._status)

    def read(self, offset: int, count: int) -> Bytes:
        """Return a copy of a range."""
        check_range(self, offset, count)
        flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)
        try:
            if self._direct and hasattr(os, "O_DIRECT"):
                return _read_pages(self.path, flags | os.O_DIRECT, offset, count)
        except OSError:
            pass  # the file system refuses direct reads
        descriptor = os.open(self.path, flags)
        try:
            data = np.empty(count, np.uint8)
            if not read_into(descriptor, data.data, offset):
                raise RuntimeError(f"{self.path} became shorter while it was read: it had {self.size} bytes")
            return data
        finally:
            os.close(descriptor)


_PAGE = 4096


def _read_pages(path: str, flags: int, offset: int, count: int) -> Bytes:
    """Read a range in whole pages, into page-aligned memory. Direct reads require both."""
    start = offset // _PAGE * _PAGE
    length = -(-(offset + count - start) // _PAGE) * _PAGE
    memory = np.empty(length + _PAGE, np.uint8)
    skipped = -memory.ctypes.data % _PAGE
    pages = memory[skipped : skipped + length]
    descriptor = os.open(path, flags)
    try:
        read_size = os.preadv(descriptor, [pages.data], start)
    finally:
        os.close(descriptor)
    if read_size < offset + count - start:
        raise OSError("a short read")
    return pages[offset - start : offset - start + count]


def _status(path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except OSError as error:
        raise RuntimeError(f"cannot open {path}: {error.strerror}") from None


def open_storage(
    path: str, *, mapped: bool = True, direct: bool = False, remote: Remote | None = None,
    version: ObjectVersion | None = None,
) -> ByteStorage:  # fmt: skip
    """Open a local file, or an object at a URL.

    Args:
        path: Path of the file, or a URL.
        mapped: If True, map a local file into memory. If False, read each range with an ordinary read call.
        direct: If ``mapped`` is False, bypass the system's file cache. Has no effect if the file system doesn't support
            this.
        remote: Connection that reads URLs.
        version: Version of the object at a URL, if known.

    Raises:
        RuntimeError: The file or object does not exist, or cannot be read.
    """
    if is_url(path):
        return RemoteFile(remote or Remote(), path, version)
    return MappedFile(path) if mapped else PlainFile(path, direct)


def read_text(path: str, remote: Remote | None = None) -> str:
    r"""Return the content of a small text file, for example an index; `path` may be a URL.

    A byte order mark is removed, and line ends become ``\n``.

    Raises:
        RuntimeError: The file cannot be read, or is not a text file in an ASCII-compatible encoding.
    """
    if is_url(path):
        data = read_url(path, remote)
    else:
        try:
            with open_for_reading(path) as file:
                data = file.read()
        except OSError as error:
            raise RuntimeError(f"cannot open {path}: {error.strerror}") from None
    description = describe_content(data)
    if description and not description.startswith(("; it is text", "; it is JSON", "; it is empty")):
        raise RuntimeError(f"cannot read {redact(path)}: {description.removeprefix('; ')}")
    return data.decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n").replace("\r", "\n")


def exists(path: str) -> bool:
    """Return whether a file, or an object at a URL, exists.

    Raises:
        RuntimeError: The store fails.
    """
    if not is_url(path):
        return os.path.exists(path)
    try:
        Remote().info(path)
    except NoSuchObject:
        return False
    return True


def describe_storage(storage: ByteStorage, exclude: str = "") -> str:
    """Describe the type of a file by its first bytes, for error messages; see `describe_content`."""
    return describe_content(storage.read(0, min(HEAD, storage.size)), exclude)


def write_text(path: str, text: str) -> None:
    """Write a small text file atomically: other processes never see an incomplete text."""
    content = text.encode("utf-8", "surrogateescape")
    if is_url(path):
        Remote().write(path, content)
        return
    try:
        write_atomically(path, [content])
    except OSError as error:
        raise RuntimeError(f"cannot write {path}: {error.strerror}") from None
