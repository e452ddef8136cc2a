"""JPEGs by the library of the fast path: headers, files and several samples in one call.

`kernels.native` has the library, and the call for one sample. What it refuses, the caller does in its usual way, which
raises the error. So nothing here raises for bad data.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.limits import limits
from torchdali.kernels.memory import Bytes
from torchdali.kernels.native import (
    CODE,
    SAMPLE,
    Lines,
    NativeLibrary,
    Recipe,
    library,
    takes_bytes,
)

__all__ = ["Encoded", "Task", "encoded", "peek_size", "read_files", "run_together"]

_Header = ctypes.c_int32 * 4

# As `tdn_file`: place, length; height, width, channels, orientation; code, whole.
_FILE = struct.Struct("=QQ4iii")

_CHANNELS = (1, 3, 4)
_ROOM = 1 << 19  # bytes that a file has on average, where several are read in one call
_SMALL_ROOM = 1 << 17  # and where they are small


class _Memory(threading.local):
    """Memory of a thread for files: valid until it reads the next ones."""

    files = np.empty(0, np.uint8)


def peek_size(data: Tensor, upright: bool) -> tuple[int, int] | None:
    """Return height and width of a JPEG, upright or as stored; None where the usual way has to read the header."""
    found = library()
    if found is None or not takes_bytes(data):
        return None
    header = _Header()
    if found.peek(data.data_ptr(), data.numel(), header):
        return None
    height, width, channels, orientation = header
    if channels not in _CHANNELS:
        return None
    return (width, height) if upright and orientation > 4 else (height, width)


class Encoded(NamedTuple):
    """A JPEG in memory: where it lies, how long it is, and the size that its header claims, as stored."""

    address: int
    length: int
    height: int
    width: int
    orientation: int

    def size(self, upright: bool) -> tuple[int, int]:
        """Return height and width, upright or as stored."""
        turned = upright and self.orientation > 4
        return (self.width, self.height) if turned else (self.height, self.width)


class Task(NamedTuple):
    """Arguments of `kernels.native.run` for one sample."""

    data: Encoded
    rows: Lines
    columns: Lines
    mirror: bool
    out: Tensor | None
    scale: int = 1


def encoded(sources: Sequence[Tensor | str | None]) -> list[Encoded | None]:
    """Read the headers of several samples; None for what the usual way has to do.

    Files are read into memory of this thread, which is valid until it reads the next ones.

    Args:
        sources: Encoded bytes, or paths of files.
    """
    found = library()
    if found is None:
        return [None] * len(sources)
    paths = [source for source in sources if isinstance(source, str)]
    files = iter(_read(found, paths) if paths else ())
    return [
        next(files) if isinstance(source, str) else None if source is None else _peek(found, source)
        for source in sources
    ]


def _peek(found: NativeLibrary, data: Tensor) -> Encoded | None:
    if not takes_bytes(data):
        return None
    header = _Header()
    address, length = data.data_ptr(), data.numel()
    code = found.peek(address, length, header)
    height, width, channels, orientation = header
    usual = not code and channels in _CHANNELS
    return Encoded(address, length, height, width, orientation) if usual else None


_memory = _Memory()


def read_files(paths: Sequence[str], lent: bool = False) -> list[Bytes] | None:
    """Read small files of any kind in one call; None where one cannot be read so, or is empty.

    Args:
        lent: What is returned need be valid only until this thread reads again.
    """
    found = library()
    about = None if found is None else _read_all(found, paths, _SMALL_ROOM)
    if about is None:
        return None
    files = list(_FILE.iter_unpack(about))
    if not all(length and whole for _, length, *_, whole in files):
        return None
    kept = _memory.files[: files[-1][0] + files[-1][1]]
    kept = kept if lent else kept.copy()
    return [kept[place : place + length] for place, length, *_ in files]


def _read(found: NativeLibrary, paths: Sequence[str]) -> list[Encoded | None]:
    """Read files in one call."""
    about = _read_all(found, paths, _ROOM)
    if about is None:
        return [None] * len(paths)
    base = _memory.files.ctypes.data
    return [
        Encoded(base + place, length, height, width, orientation) if not code and channels in _CHANNELS else None
        for place, length, height, width, channels, orientation, code, _ in _FILE.iter_unpack(about)
    ]


def _read_all(found: NativeLibrary, paths: Sequence[str], room: int) -> bytearray | None:
    """Read files into this thread's memory, which has `room` bytes for each.

    Returns:
        What is known of them; None for names that are none.
    """
    count = len(paths)
    try:
        names = os.fsencode("\0".join(paths) + "\0")
    except UnicodeError:
        return None
    if names.count(0) != count:  # a name that no system knows
        return None
    if len(_memory.files) < count * room:
        _memory.files = np.empty(count * room, np.uint8)
    memory, about = _memory.files, bytearray(count * _FILE.size)
    found.read(names, count, memory.ctypes.data, count * room, _buffer(len(about)).from_buffer(about))
    return about


@functools.lru_cache(maxsize=64)
def _buffer(size: int) -> Any:
    """Return the type of a buffer of C."""
    return ctypes.c_char * size


def run_together(recipe: Recipe, tasks: Sequence[Task | None]) -> list[Tensor | None]:
    """Do several samples in one call of the library; None for those that the usual way has to do."""
    found, most = library(), limits.pixels
    results: list[Tensor | None] = [None] * len(tasks)
    if found is None:
        return results
    dtype, planar = recipe.dtype, recipe.planar
    places: list[int] = []
    table = bytearray(len(tasks) * SAMPLE.size)
    for i, task in enumerate(tasks):
        if task is None:
            continue
        data, rows, columns, mirror, out, scale = task
        y, y_end, h, top, height, first, last = rows
        x, x_end, w, left, width, begin, end = columns
        if h * w > most or height * width > most:
            continue
        shape = (3, height, width) if planar else (height, width, 3)
        if out is None or out.shape != shape or out.dtype != dtype or not out.is_contiguous():
            out = torch.empty(shape, dtype=dtype)
        SAMPLE.pack_into(
            table, len(places) * SAMPLE.size, data.address, data.length, most, out.data_ptr(), y, x, y_end, x_end,
            h, w, top, left, height, width, first, begin, last, end, mirror, 0, scale, 0,
        )  # fmt: skip
        results[i] = out
        places.append(i)
    if places and found.run(recipe.address, _buffer(len(table)).from_buffer(table), len(places)):
        for i, sample in zip(places, SAMPLE.iter_unpack(table), strict=False):
            if sample[CODE]:
                results[i] = None
    return results
