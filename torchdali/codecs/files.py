"""Read files as one-dimensional uint8 tensors."""

from __future__ import annotations

import io
import mmap
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.codecs._torchvision_ops import image_operator
from torchdali.kernels.memory import Bytes

__all__ = ["map_or_read", "open_bytes", "read_after", "read_cached", "read_file", "read_in_blocks"]

_MIN_MAPPED_BYTES = 8 << 20  # smaller files are read, because unmapping a file interrupts the process's other threads

_read_mapped: Callable[[str], Tensor] | None = None


def read_file(path: str, *, mapped: bool = True, direct: bool = False) -> Tensor:
    """Read a file to a 1-D uint8 tensor; thread-safe.

    Args:
        mapped: If True, map a file of 8 MiB or more into memory if possible, and read a smaller file. If False, read
            every file.
        direct: If ``mapped`` is False, bypass the system's file cache. Has no effect if the file system doesn't support
            this.

    Raises:
        OSError: The errors of `open`: FileNotFoundError, PermissionError, ...
        RuntimeError: The file is empty, and ``mapped`` is True.
    """
    if not mapped:
        return _read_direct(path) if direct else _read(path)
    data = map_or_read(path)
    if not data.numel():
        raise RuntimeError(f"the file {path} is empty")
    return data


def map_or_read(path: str) -> Tensor:
    """Map a file of 8 MiB or more into memory; read a smaller file, which may be empty.

    Mapping is necessary for sparse files, which may have a huge hole after the image.

    Raises:
        OSError: See `read_file`.
    """
    data = _read(path, _MIN_MAPPED_BYTES)
    if data is not None:
        return data
    reader = _read_mapped or _load_reader()
    try:
        return reader(path)
    except (RuntimeError, UnicodeError):  # the reader does not support all file names
        return _read(path)


def open_bytes(data: memoryview | bytes) -> BinaryIO:
    """Open bytes in memory as a file.

    Data of 8 MiB or more is not copied, because the data may be a mapped sparse file that is larger than memory.
    """
    return io.BytesIO(data) if len(data) < _MIN_MAPPED_BYTES else io.BufferedReader(_MemoryFile(data))


class _MemoryFile(io.RawIOBase):
    """A file object that reads from bytes in memory without copying all of them."""

    def __init__(self, data: memoryview | bytes) -> None:
        self._view, self._position = memoryview(data), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + (0, self._position, len(self._view))[whence]
        return self._position

    def readinto(self, buffer: Any) -> int:
        part = self._view[self._position : self._position + len(buffer)]
        buffer[: len(part)] = part
        self._position += len(part)
        return len(part)


def _load_reader() -> Callable[[str], Tensor]:
    global _read_mapped
    _read_mapped = image_operator("read_file") or _map
    return _read_mapped


def _map(path: str) -> Tensor:
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            raise RuntimeError("an empty file cannot be mapped")
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    return torch.frombuffer(memory, dtype=torch.uint8)


@overload
def _read(path: str) -> Tensor: ...
@overload
def _read(path: str, limit: int) -> Tensor | None: ...
def _read(path: str, limit: int | None = None) -> Tensor | None:
    """Read a file; return None if the file has `limit` bytes or more."""
    with io.FileIO(path) as file:
        size = os.fstat(file.fileno()).st_size
        if limit is not None and size >= limit:
            return None
        data, length = np.empty(size, np.uint8), 0  # unlike torch.empty, np.empty doesn't release the GIL
        while length < size and (count := file.readinto(data[length:].data)):
            length += count
    return torch.from_numpy(data if length == size else data[:length])


_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)
_NO_WAIT: int = getattr(os, "RWF_NOWAIT", 0)


def read_after(path: str, head: bytes, out: Tensor) -> bool:
    """Read a file into a tensor if the file begins with expected bytes.

    Args:
        head: Expected first bytes of the file.
        out: Tensor for the bytes after `head`; contiguous.

    Returns:
        Whether the file begins with `head` and has enough bytes for `out`. If not, the content of `out` is undefined.

    Raises:
        OSError: The file cannot be opened; see `open`.
    """
    if not hasattr(os, "preadv"):
        return False
    start, content = bytearray(len(head)), out.numpy()
    descriptor = os.open(path, _FLAGS)
    try:
        count = os.preadv(descriptor, [start, content.data], 0)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return count == len(head) + content.nbytes and start == head


class FileBlocks(NamedTuple):
    """Files that were read into a few blocks of memory, one after another in each block.

    Attributes:
        blocks: The blocks, each ``(n,)`` uint8.
        block_indices: Index of each file's block.
        begins: Start of each file in its block.
        ends: End of each file in its block.
    """

    blocks: list[npt.NDArray[np.uint8]]
    block_indices: list[int]
    begins: list[int]
    ends: list[int]


def read_cached(paths: Iterable[str], block: Callable[[int], Tensor]) -> FileBlocks | None:
    """Read files that are in the system's file cache.

    Args:
        block: Function that returns a block of memory with at least the requested number of bytes.

    Returns:
        The files; None if a file isn't in the file cache, is empty, or is large enough to be mapped.

    Raises:
        OSError: A file cannot be opened; see `open`.
    """
    if not _NO_WAIT:
        return None
    filled, end, capacity = FileBlocks([], [], [], []), 0, -1
    for path in paths:
        descriptor = os.open(path, _FLAGS)
        try:
            size = os.fstat(descriptor).st_size
            if size >= _MIN_MAPPED_BYTES:
                return None
            if end + size > capacity:
                filled.blocks.append(block(size).numpy())
                end, capacity = 0, len(filled.blocks[-1])
            begin, end = end, end + size
            memory = filled.blocks[-1][begin:end]
            if not size or os.preadv(descriptor, [memory.data], 0, _NO_WAIT) < size:
                return None
        except OSError:
            return None
        finally:
            os.close(descriptor)
        filled.block_indices.append(len(filled.blocks) - 1)
        filled.begins.append(begin)
        filled.ends.append(end)
    return filled


_BLOCK_SIZE = 1 << 22  # bytes; size of a block unless a file is larger


def read_in_blocks(paths: Sequence[str]) -> list[Bytes] | None:
    """Read files that are in the system's file cache, several per block of memory; see `read_cached`."""
    filled = read_cached(paths, lambda size: torch.empty(max(size, _BLOCK_SIZE), dtype=torch.uint8))
    if filled is None:
        return None
    spans = zip(filled.block_indices, filled.begins, filled.ends, strict=True)
    return [filled.blocks[i][begin:end] for i, begin, end in spans]


def _read_direct(path: str) -> Tensor:
    """Read a file in whole pages, bypassing the file cache; if the file system doesn't support this, read normally."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECT", 0))
    except OSError:
        return _read(path)
    try:
        size = os.fstat(descriptor).st_size
        pages = mmap.mmap(-1, max(1, -(-size // mmap.PAGESIZE)) * mmap.PAGESIZE)
        length = 0
        while length < size and (count := os.readv(descriptor, [memoryview(pages)[length:]])):
            length += count
        return torch.from_numpy(np.frombuffer(pages, np.uint8)[:length])
    except OSError:
        return _read(path)
    finally:
        os.close(descriptor)
