"""JPEGs by the library of the fast path: headers, files and several samples in one call.

`kernels.native` has the library, and the call for one sample. What it refuses, the caller does in its usual way, which
raises the error. So nothing here raises for bad data.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.codecs.views import View
from torchdali.kernels.limits import limits
from torchdali.kernels.memory import IN_PLACE, Array, Bytes, Room
from torchdali.kernels.native import (
    CODE,
    ENCODED,
    PARTS,
    SAMPLE,
    STEP,
    NativeLibrary,
    Recipe,
    library,
    new_tuple,
    takes_bytes,
    takes_pixels,
)

__all__ = [
    "Encoded", "Files", "Parts", "Task", "decode_together", "encoded", "examine", "lots_of", "pixels_of", "read_files",
    "run_together",
]  # fmt: skip

Files = npt.NDArray[Any]
"""Files in memory, of the dtype `ENCODED`."""

_Header = ctypes.c_int32 * 4

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
    if about is None or not (about["length"] * about["whole"]).all():
        return None
    starts, lengths = (about["data"] - np.uint64(_memory.files.ctypes.data)).tolist(), about["length"].tolist()
    kept = _memory.files[: starts[-1] + lengths[-1]]
    kept = kept if lent else kept.copy()
    return [kept[start : start + length] for start, length in zip(starts, lengths, strict=True)]


def _read(native: NativeLibrary, paths: Sequence[str]) -> list[Encoded | None]:
    """Read files in one call."""
    about = _read_all(native, paths, _ROOM)
    if about is None:
        return [None] * len(paths)
    return [
        None
        if code or channels not in _CHANNELS
        else new_tuple(Encoded, (data, length, height, width, orientation, 0, channels))
        for data, length, _, height, width, channels, orientation, code, *_ in about.tolist()
    ]


def _read_all(native: NativeLibrary, paths: Sequence[str], room: int, recipe: Recipe | None = None) -> Files | None:
    """Read files into this thread's memory, which has `room` bytes for each; None for invalid names.

    Args:
        recipe: Draw the files' lots, too.
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
    memory, about = _memory.files, np.zeros(count, ENCODED)
    address = None if recipe is None else recipe.address
    native.read(names, count, memory.ctypes.data, count * room, about.ctypes.data, address, limits.pixels)
    return about


@functools.lru_cache(maxsize=64)
def _buffer(size: int) -> Any:
    """Return the type of a buffer of C."""
    return ctypes.c_char * size


def examine(sources: Sequence[Tensor | str | None], recipe: Recipe | None = None) -> Files:
    """Read the headers of several samples; `code` is not 0 where the usual way has to decode.

    Files are read into memory of this thread, which is valid until it reads the next ones.

    Args:
        sources: Encoded bytes, or paths of files.
        recipe: Draw their lots; it says whether images are turned upright.
    """
    native = library()
    assert native is not None
    paths = [source for source in sources if isinstance(source, str)]
    read = _read_all(native, paths, _ROOM, recipe) if paths else None
    if read is not None and len(paths) == len(sources):
        files = read
    else:
        files = np.zeros(len(sources), ENCODED)
        for i, source in enumerate(sources):
            if isinstance(source, Tensor) and takes_bytes(source):
                files["data"][i], files["length"][i] = source.data_ptr(), source.numel()
        native.draw(None if recipe is None else recipe.address, limits.pixels, files.ctypes.data, len(files))
        if read is not None:
            files[[isinstance(source, str) for source in sources]] = read
    files["code"][(files["channels"] != 3) & (files["channels"] != 1) & (files["channels"] != 4)] = _REFUSED
    return files


def lots_of(share: float) -> int:
    """Return the number of lots that a share is.

    An engine of the device decodes files whose lots are below that. A lot depends on the bytes alone, so that an image
    is always decoded by the same decoder, whatever batch it is in. Only baseline JPEGs of one scan, of 8 bits, gray or
    YCbCr, have one: others come out in other colors, or not at all. Neither have those that are turned, are cut short
    or have markers amid their pixels, which an engine may take for whole.
    """
    return math.ceil(share * (1 << 24))


class Parts:
    """Windows of images, divided between the library and an engine of the device.

    Args:
        files: All must have a `code` of 0.
        windows: ``(N, 4)``: y, x, height and width, of the upright images.
        share: The engine's.
        regions: ``(2, N, 2)``, starts and ends in the images; changed to those in the windows that are decoded here.

    Attributes:
        table: Of the dtype `PARTS`.
        pixels: Bytes of all pixels.
        copies: Bytes of the copies of files for the engine.
        shared: The number of these.
    """

    __slots__ = ("_files", "_native", "copies", "pixels", "shared", "table")

    def __init__(self, files: Files, windows: Array, share: float, regions: Array | None) -> None:
        native = library()
        assert native is not None
        self._native, self._files, self.table = native, files, np.empty(len(files), PARTS)
        self.table["window"] = windows
        start = None if regions is None else regions.ctypes.data
        end = None if start is None else start + 16 * len(files)
        totals = (ctypes.c_int64 * 3)()
        native.divide(files.ctypes.data, self.table.ctypes.data, len(files), lots_of(share), start, end, totals)
        self.pixels, self.copies, self.shared = totals

    def do(self, recipe: Recipe, pixels: int, copies: int) -> int:
        """Decode windows, and copy the engine's files, to these addresses; return how many the usual way has to do."""
        # Without the GIL. Until it returns, the files and the places are this call's alone.
        failed: int = self._native.do_parts(
            recipe.address, self._files.ctypes.data, self.table.ctypes.data, len(self._files), limits.pixels, pixels,
            copies,
        )  # fmt: skip
        return failed


def decode_together(
    data: Sequence[Tensor], upright: bool, fast: bool = False, fancy: bool = True
) -> list[Tensor | None]:
    """Decode whole JPEGs in one call; None for those that the usual way has to do."""
    tasks = [None if each is None else Task(each, View.of(*each.size(upright))) for each in encoded(data)]
    return run_together(_recipe(upright, fast, fancy), tasks)


_REFUSED = 1
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
    dtype = recipe.dtype
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
    return results
