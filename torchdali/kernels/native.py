"""The native library of the fast path, if it was built with torchdali, and its call for one sample.

The input is pixels or a JPEG. The library decodes only the region of a JPEG that the result needs. The library
resamples, mirrors, scales and writes the result without the GIL, in the same order as DALI and bit-identical to it.
`kernels.audio.resample` calls the library to resample audio. The library refuses unsupported images, images for which
libjpeg warns, and work that needs too much memory. The caller then decodes the image in Python, which raises the
errors. So no function of this module raises for bad data.

``TORCHDALI_NATIVE=0`` in the environment disables the library; ``TORCHDALI_NATIVE_LEVEL`` names the highest level of
vector instructions to use: 0 for a baseline processor, 1 for AVX2, 2 for AVX-512.
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


# Same fields as `tdn_sample`: data, length, limit of pixels, out, steps; for both axes low, high, size, start, extent,
# first and last; mirror, code, scale, width of pixels, filter, number of steps.
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
        """Text with the version of libjpeg-turbo and the level of vector instructions."""
        major, minor, patch = (
            self.libjpeg // 10**6,
            self.libjpeg // 1000 % 1000,
            self.libjpeg % 1000,
        )
        level = ("baseline vectors", "AVX2", "AVX-512")[self.level]
        return f"libjpeg-turbo {major}.{minor}.{patch}, {level}"


class Status(NamedTuple):
    """Status of the fast path; `text` describes the library, or the reason why the library isn't used."""

    library: NativeLibrary | None
    text: str
    broken: bool = False


@functools.cache
def status() -> Status:
    """Find and load the library on the first call; never raises for a missing or broken library."""
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
    # Reading a header takes less time than releasing the GIL.
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
        shrinking: Filter of an axis that shrinks; a key of `FILTERS`.
        growing: Filter of an axis that grows or keeps its size.
        antialias: Stretch the filter where an axis shrinks.
        inside: Ignore pixels beyond the window's limits and normalize the remaining weights; else repeat the window's
            edge.
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
        channels: 3, or 1 for only the first channel.
        levels: ``(3, 256)`` items of `dtype`: the output value of each level of a channel; None to output the level.
        scaling: Factors and offsets of the channels if the values are ``level * factor + offset`` in float32; vector
            instructions compute this faster than a table lookup.
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
        """Return an output that looks its values up in a table ``(3, 256)``."""
        if table.shape != (3, 256):
            raise ValueError(f"the table must be (3, 256), got {tuple(table.shape)}")
        return cls(table.dtype, planar, channels, table.contiguous().view(torch.uint8).numpy().tobytes(), scaling)

    def shape(self, height: int, width: int) -> tuple[int, int, int]:
        """Return the shape of a result."""
        return (self.channels, height, width) if self.planar else (height, width, self.channels)


@dataclass(frozen=True)
class ImageOptions:
    """Options that several image programs share.

    Attributes:
        upright: Turn images according to their EXIF orientation.
        fast: Use libjpeg's faster transform.
        fancy: Upsample chroma smoothly; else repeat chroma samples, except in images of four channels.
        filters: Filters of DALI's resize; None without a resize.
        mirrors: Programs may reverse the order of rows or columns.
        output: None for ``(H, W, 3)`` bytes, which further operators may edit.
        of_pillow: Support the images that Pillow opens: also pixels, but no JPEGs of four channels, which Pillow rounds
            differently, and no JPEGs of so many pixels that Pillow warns or raises.
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
        """Return the options of a program that resizes; None if the program already resizes."""
        return replace(self, filters=filters) if self.filters is None else None

    def convert(self, output: Output) -> ImageOptions:
        """Return the options of a program whose result has this dtype, layout and values."""
        return replace(self, output=output)

    @property
    def result(self) -> Output:
        """The output; without a conversion, ``(H, W, 3)`` bytes."""
        return self.output or _BYTES

    @property
    def address(self) -> int:
        """Address of the options as a structure of the library; valid as long as this object exists."""
        native: _NativeOptions | None = self.__dict__.get("_native")
        if native is None:  # if several threads create it, all use the first thread's
            native = self.__dict__.setdefault("_native", _NativeOptions(self))
        return ctypes.addressof(native.structure)

    def set_level(self, level: int) -> None:
        """Limit the level of vector instructions to `level`."""
        _LibraryOptions.from_address(self.address).level = level


_BYTES = Output()


class _NativeOptions:
    """Options as a structure of the library, with the table to which the structure points."""

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
        low, high: Region that is resized; reversed if ``high < low``.
        size: Number of rows or columns to which the region is resized.
        start, extent: The rows or columns of the resized region that are computed.
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
        """Cut to some of the rows or columns.

        Args:
            resized: The axis was resized, so the resize may still read pixels outside of the cut.
        """
        low, high, size, before, _, first, last = self
        if resized:
            return new_tuple(AxisRegion, (low, high, size, before + start, extent, first, last))
        first += start
        return new_tuple(AxisRegion, (first, first + extent, extent, 0, extent, first, first + extent))

    def resize(self, low: float, high: float, size: int, mirrored: bool, alone: bool = False) -> AxisRegion:
        """Resize a region of an axis that was not resized before.

        Args:
            mirrored: The axis is mirrored.
            alone: Read no pixels outside of the region, whose bounds must be integers.
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
    """Compute the pixels of one sample; None if the common path must decode the sample.

    Args:
        data: uint8: one-dimensional encoded bytes, or pixels ``(H, W, 3)``.
        rows, columns: Regions of the upright image.
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
    """Return whether the library can read a tensor as encoded bytes: one-dimensional uint8 on the CPU."""
    return data.dim() == 1 and _has_bytes(data)


def takes_pixels(data: Tensor) -> bool:
    """Return whether the library can read a tensor as pixels: ``(H, W, 3)`` uint8 on the CPU."""
    return data.dim() == 3 and data.shape[2] == 3 and _has_bytes(data)


def _has_bytes(data: Tensor) -> bool:
    return data.dtype == torch.uint8 and data.is_cpu and data.is_contiguous()
