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

from torchdali.codecs.views import View
from torchdali.kernels.limits import limits
from torchdali.kernels.memory import IN_PLACE, Bytes, Room
from torchdali.kernels.native import (
    CODE,
    SAMPLE,
    SHARED,
    STEP,
    NativeLibrary,
    Recipe,
    library,
    new_tuple,
    takes_bytes,
    takes_pixels,
)

__all__ = [
    "Encoded", "Task", "chosen", "decode_together", "encoded", "pixels_of", "read_files", "run_together",
]  # fmt: skip

_Header = ctypes.c_int32 * 4

# As `tdn_file`: place, length; height, width, channels, orientation; code, whole.
_FILE = struct.Struct("=QQ4iii")

_CHANNELS = (1, 3, 4)
_ROOM = 1 << 19  # bytes that a file has on average, where several are read in one call
_SMALL_ROOM = 1 << 17  # and where they are small


class _Memory(threading.local):
    """Memory of a thread for files: valid until it reads the next ones."""

    files = np.empty(0, np.uint8)


class Encoded(NamedTuple):
    """A JPEG in memory, or pixels: where it lies, how long it is, and the size, as stored, that its header claims.

    Attributes:
        row: Pixels of a row; 0 for a JPEG.
        channels: As the header claims.
    """

    address: int
    length: int
    height: int
    width: int
    orientation: int = 1
    row: int = 0
    channels: int = 3

    def size(self, upright: bool) -> tuple[int, int]:
        """Return height and width, upright or as stored."""
        turned = upright and self.orientation > 4
        return (self.width, self.height) if turned else (self.height, self.width)


class Task(NamedTuple):
    """A view of a picture, and what is done to its pixels.

    Attributes:
        steps: On the pixels, each a `STEP`; the last one is a view, and is what is written.
        size: Height and width behind these; of the view if None.
    """

    data: Encoded
    view: View
    steps: bytes = b""
    size: tuple[int, int] | None = None


def encoded(sources: Sequence[Tensor | str | None]) -> list[Encoded | None]:
    """Read the headers of several samples; None for what the usual way has to do.

    Files are read into memory of this thread, which is valid until it reads the next ones.

    Args:
        sources: Encoded bytes, or paths of files.
    """
    native = library()
    if native is None:
        return [None] * len(sources)
    paths = [source for source in sources if isinstance(source, str)]
    files = iter(_read(native, paths) if paths else ())
    return [
        next(files) if isinstance(source, str) else None if source is None else _peek(native, source)
        for source in sources
    ]


def _peek(native: NativeLibrary, data: Tensor) -> Encoded | None:
    if not takes_bytes(data):
        return None
    header = _Header()
    address, length = data.data_ptr(), data.numel()
    code = native.peek(address, length, header)
    height, width, channels, orientation = header
    usual = not code and channels in _CHANNELS
    return Encoded(address, length, height, width, orientation, 0, channels) if usual else None


def pixels_of(data: Tensor) -> Encoded | None:
    """Return where pixels ``(H, W, 3)`` lie, which are to be kept; None if the library does not take them."""
    if not takes_pixels(data):
        return None
    height, width, _ = data.shape
    return Encoded(data.data_ptr(), data.numel(), height, width, row=width)


_memory = _Memory()


def read_files(paths: Sequence[str], lent: bool = False) -> list[Bytes] | None:
    """Read small files of any kind in one call; None if one cannot be read so, or is empty.

    Args:
        lent: What is returned need be valid only until this thread reads again.
    """
    native = library()
    about = None if native is None else _read_all(native, paths, _SMALL_ROOM)
    if about is None:
        return None
    files = list(_FILE.iter_unpack(about))
    if not all(length and whole for _, length, *_, whole in files):
        return None
    kept = _memory.files[: files[-1][0] + files[-1][1]]
    kept = kept if lent else kept.copy()
    return [kept[place : place + length] for place, length, *_ in files]


def _read(native: NativeLibrary, paths: Sequence[str]) -> list[Encoded | None]:
    """Read files in one call."""
    about = _read_all(native, paths, _ROOM)
    if about is None:
        return [None] * len(paths)
    base = _memory.files.ctypes.data
    return [
        None
        if code or channels not in _CHANNELS
        else new_tuple(Encoded, (base + place, length, height, width, orientation, 0, channels))
        for place, length, height, width, channels, orientation, code, _ in _FILE.iter_unpack(about)
    ]


def _read_all(native: NativeLibrary, paths: Sequence[str], room: int) -> bytearray | None:
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
    native.read(names, count, memory.ctypes.data, count * room, _buffer(len(about)).from_buffer(about))
    return about


@functools.lru_cache(maxsize=64)
def _buffer(size: int) -> Any:
    """Return the type of a buffer of C."""
    return ctypes.c_char * size


def chosen(data: Sequence[Encoded | None], share: float, upright: bool) -> list[bool]:
    """Return which samples an engine of the device decodes: a share of the files that it can.

    It depends on the bytes alone, so that an image is always decoded by the same decoder, whatever batch it is in. Only
    JPEGs of one sequential scan, of 8 bits, gray or YCbCr, are: others come out in other colors, or not at all. Neither
    are those that are turned, are cut short or have markers amid their pixels, which an engine may take for whole.
    """
    native = library()
    if native is None or share <= 0:
        return [False] * len(data)
    table = bytearray(len(data) * SHARED.size)
    for i, each in enumerate(data):
        if each is not None and not each.row:
            SHARED.pack_into(table, i * SHARED.size, each.address, each.length, 0, 0, 0, 0, 0)
    native.draw(_recipe(upright, False, True).address, limits.pixels, _buffer(len(table)).from_buffer(table), len(data))
    return [0 <= lot < share * _LOTS for *_, lot in SHARED.iter_unpack(table)]


def decode_together(
    data: Sequence[Tensor], upright: bool, fast: bool = False, fancy: bool = True
) -> list[Tensor | None]:
    """Decode whole JPEGs in one call; None for those that the usual way has to do."""
    tasks = [None if each is None else Task(each, View.of(*each.size(upright))) for each in encoded(data)]
    return run_together(_recipe(upright, fast, fancy), tasks)


_LOTS = 1 << 24
_recipe = functools.lru_cache(lambda upright, fast, fancy: Recipe(upright=upright, fast=fast, fancy=fancy))


def run_together(
    recipe: Recipe, tasks: Sequence[Task | None], out: Tensor | None = None, room: Room | None = None
) -> list[Any]:
    """Do several samples in one call of the library.

    Args:
        out: Where results are written that fit there, ``(N, ...)``.
        room: Where the others are written; its items are of the recipe's size.

    Returns:
        `IN_PLACE`, `Placed` in the room or tensors; None for samples that the usual way has to do.
    """
    native, most = library(), limits.pixels
    results: list[Any] = [None] * len(tasks)
    if native is None:
        return results
    dtype, places = recipe.dtype, []
    form, first, pitch = None, 0, 0
    if out is not None and out.dtype == dtype and out.is_contiguous():
        form, first, pitch = tuple(out.shape[1:]), out.data_ptr(), out.nbytes // len(out)
    room = room if room is not None and room.itemsize == dtype.itemsize else None
    numbers: list[int] = []
    table = bytearray(len(tasks) * SAMPLE.size)
    steps = b"".join([task.steps for task in tasks if task is not None])
    step = ctypes.cast(ctypes.c_char_p(steps), ctypes.c_void_p).value or 0
    for i, task in enumerate(tasks):
        if task is None:
            continue
        data, (rows, columns, filter_, scale, mirror), own, size = task
        y, y_end, h, top, height, upper, lower = rows
        x, x_end, w, left, width, begin, end = columns
        address, step = step, step + len(own)
        if h * w > most or height * width > most:
            continue
        shape = recipe.shape(*(size or (height, width)))
        if shape == form:
            results[i], to = IN_PLACE, first + i * pitch
        elif room is not None and (place := room.take(shape[0] * shape[1] * shape[2])) >= 0:
            places.append(place)
            results[i], to = (place, shape), room.address + place * room.itemsize
        else:
            results[i] = torch.empty(shape, dtype=dtype)
            to = results[i].data_ptr()
        SAMPLE.pack_into(
            table, len(numbers) * SAMPLE.size, data.address, data.length, most, to, address, y, x, y_end, x_end, h, w,
            top, left, height, width, upper, begin, lower, end, mirror, 0, scale or 1, data.row, filter_ or 0,
            len(own) // STEP.size,
        )  # fmt: skip
        numbers.append(i)
    # Without the GIL. Until it returns, `table`, `steps`, the files and the places in `out` and the room are this
    # call's alone: other threads have chunks, memory for files and places of their own.
    if numbers and native.run(recipe.address, _buffer(len(table)).from_buffer(table), len(numbers)):
        for i, sample in zip(numbers, SAMPLE.iter_unpack(table), strict=False):
            if sample[CODE]:
                results[i] = None
    if room is not None:
        for place in places:
            room.filled(place)
    return results
