"""The library of the fast path, if it was built with torchdali, and calls of it for one sample.

It takes a JPEG, and decodes the region that the result shows, or pixels; it resamples, mirrors, scales and writes,
without the GIL, in DALI's order and with its bits. For other rates of audio see `kernels.audio.resample`. It refuses
images that it does not support, libjpeg warnings and work that needs too much memory; the caller then decodes with
Python, which raises the error. So nothing here raises for bad data.

``TORCHDALI_NATIVE=0`` in the environment switches it off; ``TORCHDALI_NATIVE_LEVEL`` names the highest level of vector
instructions to use: 0 for a baseline processor, 1 for AVX2, 2 for AVX-512.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchdali.environment import read_number
from torchdali.installation import PACKAGE, rebuild_command, tools
from torchdali.kernels.limits import FREE_VALUES, MAX_VALUES_PER_BYTE, MOST_SCANS, limits

__all__ = [
    "COARSE", "CODE", "ENCODED", "FILE", "FILTERS", "MIRROR", "PARTS", "PILLOW", "ROWS_FIRST", "SAMPLE", "STEP",
    "UPSIDE_DOWN", "AxisRegion", "Filters", "ImageOptions", "NativeLibrary", "Output", "Status", "library", "new_tuple",
    "run", "status", "takes_bytes", "takes_pixels",
]  # fmt: skip

FILE = PACKAGE / ("libtorchdali.dll" if sys.platform == "win32" else "libtorchdali.so")
"""The library, which ``setup.py`` puts there."""

ABI = 13
FILTERS = {"nn": 0, "linear": 1, "triangular": 1, "cubic": 2}
"""The filters it has, by their names in `kernels.resample.weights`; at the same width, two of them are one."""

PILLOW = {"nearest": 1, "box": 2, "bilinear": 3, "hamming": 4, "bicubic": 5, "lanczos": 6}
"""Pillow's filters, by torchvision's names: they round to bytes after each axis."""
ROWS_FIRST, COARSE = 8, 16
"""Added to one of these: the rows are resized before the columns; weights have PyTorch's 16 bits."""
MIRROR, UPSIDE_DOWN = 1, 2
"""Reverse each row of the result, or the order of its rows."""

_BEST = 99


class _LibraryOptions(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int32) for name in ("abi", "level", "upright", "fast", "fancy", "shrinking")),
        *((name, ctypes.c_int32) for name in ("growing", "antialias", "outside", "planar")),
        *((name, ctypes.c_int32) for name in ("item", "channels", "affine")),
        ("scale", ctypes.c_float * 3),
        ("shift", ctypes.c_float * 3),
        ("max_scans", ctypes.c_int32),
        ("table", ctypes.c_void_p),
        *((name, ctypes.c_uint64) for name in ("free_values", "per_byte")),
    ]


# As `tdn_sample`: data, length, limit of pixels, out, steps; of both axes low, high, size, start, extent, first and
# last; mirror, code, scale, width of pixels, filter, number of steps.
SAMPLE = struct.Struct("=QQQQQ4d16i")
CODE = -5
ENCODED = np.dtype([
    *((name, "u8") for name in ("data", "length", "out")),
    *((name, "i4") for name in ("height", "width", "channels", "orientation", "code", "whole", "lot", "sampling")),
])  # fmt: skip
"""As `tdn_file`."""
PARTS = np.dtype([("window", "i8", 4), ("shape", "i8", 3), ("place", "i8"), ("index", "i8")])
"""As `tdn_part`."""
STEP = struct.Struct("=16i8d")
"""As `tdn_step`; see `codecs.program`."""
_Sample = ctypes.c_char * SAMPLE.size


class NativeLibrary(NamedTuple):
    """The functions of the shared library, and its path."""

    file: str
    run: ctypes._NamedFuncPointer
    divide: ctypes._NamedFuncPointer
    do_parts: ctypes._NamedFuncPointer
    peek: ctypes._NamedFuncPointer
    read: ctypes._NamedFuncPointer
    resample: ctypes._NamedFuncPointer
    draw: ctypes._NamedFuncPointer
    engine_open: ctypes._NamedFuncPointer
    engine_decode: ctypes._NamedFuncPointer
    engine_close: ctypes._NamedFuncPointer
    level: int
    libjpeg: int

    @property
    def description(self) -> str:
        """Version of libjpeg-turbo and level of vector instructions, in words."""
        major, minor, patch = (
            self.libjpeg // 10**6,
            self.libjpeg // 1000 % 1000,
            self.libjpeg % 1000,
        )
        level = ("baseline vectors", "AVX2", "AVX-512")[self.level]
        return f"libjpeg-turbo {major}.{minor}.{patch}, {level}"


class Status(NamedTuple):
    """Use of the fast path; `text` names the library, or the reason why it is not used."""

    library: NativeLibrary | None
    text: str
    broken: bool = False


@functools.cache
def status() -> Status:
    """Find and load the library, once; never raises."""
    if os.environ.get("TORCHDALI_NATIVE", "1").strip().lower() in ("0", "off", "false", "no"):
        return Status(None, "switched off by TORCHDALI_NATIVE")
    if not FILE.is_file():
        needs = f"a C compiler and libjpeg-turbo's headers ({tools()})"
        return Status(None, f"it was not built. It needs {needs}; then: {rebuild_command()}")
    level = read_number("TORCHDALI_NATIVE_LEVEL", _BEST, 0)
    try:
        native = _load(str(FILE), level)
    except (OSError, AttributeError, ValueError) as error:
        return Status(None, f"cannot be loaded: {error}; build it anew: {rebuild_command()}", True)
    return Status(native, native.description)


def library() -> NativeLibrary | None:
    """Return the library, or None if it is not used."""
    return status().library


def _load(file: str, level: int) -> NativeLibrary:
    loaded = ctypes.CDLL(file)
    if (abi := loaded.tdn_abi()) != ABI:
        raise ValueError(f"{file} has version {abi} of the interface, torchdali needs {ABI}")
    # A header takes less time than to let the GIL go.
    held = ctypes.PyDLL(file)
    run, read, peek, resample = loaded.tdn_run, loaded.tdn_read, held.tdn_peek, loaded.tdn_resample
    run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    peek.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p]
    read.argtypes = [
        ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p,
        ctypes.c_uint64,
    ]  # fmt: skip
    divide, do_parts = held.tdn_divide, loaded.tdn_do_parts
    divide.argtypes = [
        ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int,
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
    ]  # fmt: skip
    divide.restype = None
    do_parts.argtypes = [
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p,
        ctypes.c_void_p,
    ]  # fmt: skip
    resample.argtypes = [
        ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int,
    ]  # fmt: skip
    draw, engine_open, engine_decode = loaded.tdn_draw, loaded.tdn_engine_open, loaded.tdn_engine_decode
    draw.argtypes, draw.restype = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int], None
    engine_open.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    engine_open.restype = ctypes.c_void_p
    engine_decode.argtypes = [
        ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int,
        ctypes.c_void_p,
    ]  # fmt: skip
    engine_close = loaded.tdn_engine_close
    engine_close.argtypes, engine_close.restype = [ctypes.c_void_p], None
    level = loaded.tdn_level(level)
    return NativeLibrary(
        file, run, divide, do_parts, peek, read, resample, draw, engine_open, engine_decode, engine_close, level,
        loaded.tdn_libjpeg(),
    )  # fmt: skip


class Filters(NamedTuple):
    """Filters of a resize.

    Attributes:
        shrinking: Filter of an axis that shrinks: of `FILTERS`.
        growing: Filter of an axis that grows or keeps its size.
        antialias: Stretch the filter where an axis shrinks.
        inside: Read no pixels beyond the region, and weight the rest; else its edge is repeated.
    """

    shrinking: str = "linear"
    growing: str = "linear"
    antialias: bool = True
    inside: bool = False


@dataclass(frozen=True)
class Output:
    """Dtype, layout and values of a result.

    Attributes:
        planar: The result is ``(channels, H, W)``, else ``(H, W, channels)``.
        channels: 3, or 1 for the first one.
        levels: ``(3, 256)`` items of `dtype`: the value of each level of a channel; None for the level itself.
        scaling: Factors and offsets of the channels, where the values are ``level * factor + offset`` in float32:
            vectors are faster than a table.
    """

    dtype: torch.dtype = torch.uint8
    planar: bool = False
    channels: int = 3
    levels: bytes | None = None
    scaling: tuple[tuple[float, ...], tuple[float, ...]] | None = None

    @classmethod
    def from_table(
        cls,
        table: Tensor,
        planar: bool,
        channels: int = 3,
        scaling: tuple[tuple[float, ...], tuple[float, ...]] | None = None,
    ) -> Output:
        """Return the output whose values are in a table ``(3, 256)``."""
        if table.shape != (3, 256):
            raise ValueError(f"the table must be (3, 256), got {tuple(table.shape)}")
        return cls(table.dtype, planar, channels, table.contiguous().view(torch.uint8).numpy().tobytes(), scaling)

    def shape(self, height: int, width: int) -> tuple[int, int, int]:
        """Return the shape of a result."""
        return (self.channels, height, width) if self.planar else (height, width, self.channels)


@dataclass(frozen=True)
class ImageOptions:
    """Options that image programs have in common.

    Attributes:
        upright: Turn images as their EXIF blocks say.
        fast: Use libjpeg's faster transform.
        fancy: Upsample colors smoothly; else each is repeated, except in images of four channels.
        filters: Filters of DALI's resize; None if there is none.
        mirrors: The order of rows or columns may change.
        output: None for ``(H, W, 3)`` bytes, which further operators may edit.
        of_pillow: Images are those that Pillow opens: pixels, too, but no JPEGs of four channels, which Pillow rounds
            in another way, or of so many pixels that it warns or raises.
    """

    upright: bool = True
    fast: bool = False
    fancy: bool = True
    filters: Filters | None = None
    mirrors: bool = False
    output: Output | None = None
    of_pillow: bool = False

    def mirror(self) -> ImageOptions:
        """Return the options of a program that may mirror."""
        return replace(self, mirrors=True)

    def resize(self, filters: Filters) -> ImageOptions | None:
        """Return the options of a program that resizes; None if it resizes already."""
        return replace(self, filters=filters) if self.filters is None else None

    def convert(self, output: Output) -> ImageOptions:
        """Return the options of a program whose result has this dtype, layout and values."""
        return replace(self, output=output)

    @property
    def result(self) -> Output:
        """The output; bytes without a conversion."""
        return self.output or _BYTES

    @property
    def address(self) -> int:
        """Address of the options as the library takes them; valid as long as this object."""
        native: _NativeOptions | None = self.__dict__.get("_native")
        if native is None:  # of several threads that are here, all take the first one's
            native = self.__dict__.setdefault("_native", _NativeOptions(self))
        return ctypes.addressof(native.structure)

    def set_level(self, level: int) -> None:
        """Use no higher level of vector instructions."""
        _LibraryOptions.from_address(self.address).level = level


_BYTES = Output()


class _NativeOptions:
    """Options as the library takes them, with the table that they point to."""

    def __init__(self, options: ImageOptions) -> None:
        native, output = library(), options.result
        shrinking, growing, antialias, inside = options.filters or Filters()
        factor, offset = output.scaling or ((1.0,) * 3, (0.0,) * 3)
        # A tensor's memory is aligned for vectors.
        levels = None if output.levels is None else bytearray(output.levels)
        self._table = None if levels is None else torch.frombuffer(levels, dtype=torch.uint8).clone()
        self.structure = _LibraryOptions(
            ABI, native.level if native else 0, options.upright, options.fast, options.fancy, FILTERS[shrinking],
            FILTERS[growing], antialias, inside, output.planar, output.dtype.itemsize, output.channels,
            output.scaling is not None, (ctypes.c_float * 3)(*factor), (ctypes.c_float * 3)(*offset), MOST_SCANS,
            None if self._table is None else self._table.data_ptr(), FREE_VALUES, MAX_VALUES_PER_BYTE,
        )  # fmt: skip


new_tuple = tuple.__new__
"""Makes a `NamedTuple` in half the time of its own, for what is made of each sample while the GIL is held."""


class AxisRegion(NamedTuple):
    """Use of an axis of the upright image.

    Attributes:
        low, high: Region that is resized; turned round where ``high < low``.
        size: Lines that it becomes.
        start, extent: The lines of those that are wanted.
        first, last: Limits of the window from which pixels are read.
    """

    low: float
    high: float
    size: int
    start: int
    extent: int
    first: int
    last: int

    def cut(self, start: int, extent: int, resized: bool) -> AxisRegion:
        """Return some of the lines.

        Args:
            resized: Steps that read pixels may read pixels beyond these lines, too.
        """
        low, high, size, before, _, first, last = self
        if resized:
            return new_tuple(AxisRegion, (low, high, size, before + start, extent, first, last))
        first += start
        return new_tuple(AxisRegion, (first, first + extent, extent, 0, extent, first, first + extent))

    def resize(self, low: float, high: float, size: int, mirrored: bool, alone: bool = False) -> AxisRegion:
        """Return a region of lines that were not resized as another number of lines.

        Args:
            mirrored: They are in reverse order.
            alone: True to read no pixels outside of the region, which consists of whole lines.
        """
        first, last = self[5:]
        if mirrored:
            low, high = last - low, last - high
        else:
            low, high = first + low, first + high
        if alone:
            first, last = (low, high) if low < high else (high, low)  # type: ignore[assignment]
        return new_tuple(AxisRegion, (low, high, size, 0, size, first, last))


def run(
    options: ImageOptions,
    data: Tensor,
    rows: AxisRegion,
    columns: AxisRegion,
    mirror: int,
) -> Tensor | None:
    """Make the pixels of one sample, or return None if the usual way has to.

    Args:
        data: uint8: encoded bytes, one-dimensional, or pixels ``(H, W, 3)``.
        rows, columns: Of the upright image.
        mirror: `MIRROR`, `UPSIDE_DOWN`, both or 0.

    Returns:
        ``(channels, H, W)`` or ``(H, W, channels)``, contiguous.
    """
    native = library()
    if native is None or not (takes_bytes(data) or takes_pixels(data)):
        return None
    y, y_end, h, top, height, first, last = rows
    x, x_end, w, left, width, begin, end = columns
    if max(h * w, height * width) > limits.pixels:
        return None
    out = torch.empty(options.result.shape(height, width), dtype=options.result.dtype)
    sample = bytearray(
        SAMPLE.pack(
            data.data_ptr(), data.numel(), limits.pixels, out.data_ptr(), 0, y, x, y_end, x_end, h, w, top, left,
            height, width, first, begin, last, end, mirror, 0, 1, data.shape[1] if data.dim() == 3 else 0, 0, 0,
        )
    )  # fmt: skip
    return None if native.run(options.address, _Sample.from_buffer(sample), 1) else out


def takes_bytes(data: Tensor) -> bool:
    """True if the library can read them: one-dimensional uint8 on the CPU."""
    return data.dim() == 1 and _has_bytes(data)


def takes_pixels(data: Tensor) -> bool:
    """True if the library can read them: ``(H, W, 3)`` of uint8 on the CPU."""
    return data.dim() == 3 and data.shape[2] == 3 and _has_bytes(data)


def _has_bytes(data: Tensor) -> bool:
    return data.dtype == torch.uint8 and data.is_cpu and data.is_contiguous()
