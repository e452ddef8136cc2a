"""Bindings of the native library, which decodes, crops, resizes and normalizes images without the GIL.

The library is optional: installing torchdali builds the library if a C compiler is available. The library reads a JPEG
file or an image's pixels. It decodes only the region of a JPEG that the result needs. The results are bit-identical to
DALI's. The library also resamples audio (see `kernels.audio.resample`).

The library refuses unsupported images, images for which libjpeg warns, and images that need too much memory. The caller
then decodes the refused image in Python, and the Python decoder raises an error if the image is invalid. No function of
this module raises an error for an invalid image.

The environment variable ``TORCHDALI_NATIVE=0`` disables the library. ``TORCHDALI_NATIVE_LEVEL`` limits the
library's vector instructions: 0 allows only baseline instructions, 1 also AVX2, 2 also AVX-512.
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
from torchdali.installation import PACKAGE, rebuild_command, tools_command
from torchdali.kernels.limits import FREE_VALUES, MAX_SCANS, MAX_VALUES_PER_BYTE, limits

__all__ = [
    "COARSE", "CODE", "ENCODED", "FILE", "FILTERS", "MIRROR", "PARTS", "PILLOW", "ROWS_FIRST", "SAMPLE", "STEP",
    "UPSIDE_DOWN", "AxisRegion", "Filters", "ImageOptions", "NativeLibrary", "Output", "Status", "accepts_bytes",
    "accepts_pixels", "library", "new_tuple", "run", "status",
]  # fmt: skip

FILE = PACKAGE / ("libtorchdali.dll" if sys.platform == "win32" else "libtorchdali.so")
"""Path of the library, which ``setup.py`` builds."""

ABI = 13
FILTERS = {"nn": 0, "linear": 1, "triangular": 1, "cubic": 2}
"""Maps a filter's name in `kernels.resample.weights` to its number in the library. In the library, "linear" and
"triangular" are the same filter, because a filter's width is passed separately."""

PILLOW = {"nearest": 1, "box": 2, "bilinear": 3, "hamming": 4, "bicubic": 5, "lanczos": 6}
"""Maps torchvision's name of a filter to the number of Pillow's filter in the library. Pillow's filters resize one axis
after the other, and round the pixels to integers after each axis."""
ROWS_FIRST, COARSE = 8, 16
"""Flags to add to a filter's number from `PILLOW`. ROWS_FIRST resizes rows before columns. COARSE rounds weights to 16
bits, as PyTorch does."""
MIRROR, UPSIDE_DOWN = 1, 2
"""Flags of a result: MIRROR reverses each row, and UPSIDE_DOWN reverses the order of the rows."""

_MAX_LEVEL = 99


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


# Same fields as the structure `tdn_sample` in native/src/native.h, whose comments explain them.
SAMPLE = struct.Struct("=QQQQQ4d16i")
CODE = -5
ENCODED = np.dtype([
    *((name, "u8") for name in ("data", "length", "out")),
    *((name, "i4") for name in ("height", "width", "channels", "orientation", "code", "whole", "lot", "sampling")),
])  # fmt: skip
"""Fields of the library's `tdn_file`."""
PARTS = np.dtype([("window", "i8", 4), ("shape", "i8", 3), ("place", "i8"), ("index", "i8")])
"""Fields of the library's `tdn_part`."""
STEP = struct.Struct("=16i8d")
"""Fields of the library's `tdn_step`; see `codecs.program`."""
_Sample = ctypes.c_char * SAMPLE.size


class NativeLibrary(NamedTuple):
    """The loaded library: its path, functions, level of vector instructions, and version of libjpeg-turbo."""

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
    """Status of the native library.

    Attributes:
        library: The library; None if it isn't used.
        text: Description of the library, or the reason why it isn't used.
        broken: True if the library exists but cannot be loaded.
    """

    library: NativeLibrary | None
    text: str
    broken: bool = False


@functools.cache
def status() -> Status:
    """Return the library's status. The first call loads the library; a missing or broken library raises no error."""
    if os.environ.get("TORCHDALI_NATIVE", "1").strip().lower() in ("0", "off", "false", "no"):
        return Status(None, "turned off by TORCHDALI_NATIVE")
    if not FILE.is_file():
        requirements = f"a C compiler and libjpeg-turbo's headers ({tools_command()})"
        return Status(None, f"not built. Building needs {requirements}; then run: {rebuild_command()}")
    level = read_number("TORCHDALI_NATIVE_LEVEL", _MAX_LEVEL, 0)
    try:
        native = _load(str(FILE), level)
    except (OSError, AttributeError, ValueError) as error:
        return Status(None, f"cannot be loaded: {error}; build it again: {rebuild_command()}", True)
    return Status(native, native.description)


def library() -> NativeLibrary | None:
    """Return the library, or None if it isn't used."""
    return status().library


def _load(file: str, level: int) -> NativeLibrary:
    cdll = ctypes.CDLL(file)
    if (abi := cdll.tdn_abi()) != ABI:
        raise ValueError(f"{file} must have interface version {ABI}, got {abi}")
    # Functions of `PyDLL` keep the GIL. Reading a header takes less time than releasing the GIL.
    pydll = ctypes.PyDLL(file)
    run, read, peek, resample = cdll.tdn_run, cdll.tdn_read, pydll.tdn_peek, cdll.tdn_resample
    run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    peek.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p]
    read.argtypes = [
        ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p,
        ctypes.c_uint64,
    ]  # fmt: skip
    divide, do_parts = pydll.tdn_divide, cdll.tdn_do_parts
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
    draw, engine_open, engine_decode = cdll.tdn_draw, cdll.tdn_engine_open, cdll.tdn_engine_decode
    draw.argtypes, draw.restype = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int], None
    engine_open.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    engine_open.restype = ctypes.c_void_p
    engine_decode.argtypes = [
        ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int,
        ctypes.c_void_p,
    ]  # fmt: skip
    engine_close = cdll.tdn_engine_close
    engine_close.argtypes, engine_close.restype = [ctypes.c_void_p], None
    level = cdll.tdn_level(level)
    return NativeLibrary(
        file, run, divide, do_parts, peek, read, resample, draw, engine_open, engine_decode, engine_close, level,
        cdll.tdn_libjpeg(),
    )  # fmt: skip


class Filters(NamedTuple):
    """Filters of a resize.

    Attributes:
        shrinking: Name of the filter for axes that shrink; a key of `FILTERS`.
        growing: Name of the filter for axes that grow or keep their size.
        antialias: True to widen the filter along axes that shrink.
        inside: Treatment of pixels that a filter reaches, but that the resize may not read (see `AxisRegion.first`).
            True ignores these pixels and normalizes the weights of the remaining pixels. False uses the nearest pixels
            that the resize may read.
    """

    shrinking: str = "linear"
    growing: str = "linear"
    antialias: bool = True
    inside: bool = False


@dataclass(frozen=True)
class Output:
    """Dtype, layout and values of a result.

    Attributes:
        dtype: Dtype of the result.
        planar: True for a result ``(channels, H, W)``, False for ``(H, W, channels)``.
        channels: 3, or 1 for only the first channel.
        levels: The bytes of a lookup table ``(3, 256)`` of `dtype`, which has an output value for each level (0 to 255)
            of each channel. None to output the levels themselves.
        scaling: Factors and offsets of the channels if the output values are ``level * factor + offset`` in float32,
            else None. Computing these values with vector instructions is faster than looking them up in `levels`.
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
        """Return an output whose values are looked up in a table ``(3, 256)``."""
        if table.shape != (3, 256):
            raise ValueError(f"the table must have the shape (3, 256), got {tuple(table.shape)}")
        return cls(table.dtype, planar, channels, table.contiguous().view(torch.uint8).numpy().tobytes(), scaling)

    def shape(self, height: int, width: int) -> tuple[int, int, int]:
        """Return the shape of a result with this height and width."""
        return (self.channels, height, width) if self.planar else (height, width, self.channels)


@dataclass(frozen=True)
class ImageOptions:
    """Options of image programs. A program is the list of steps that the library runs on one image.

    Attributes:
        upright: True to turn images according to their EXIF orientation.
        fast: True to use libjpeg's faster, less exact inverse transform.
        fancy: True to interpolate chroma, False to repeat chroma samples. Images with four channels are interpolated in
            both cases.
        filters: Filters of DALI's resize; None if the programs don't resize.
        mirrors: True if programs may reverse the order of rows or columns.
        output: Dtype, layout and values of the result; None for uint8 ``(H, W, 3)``.
        match_pillow: True to produce the same results as Pillow. The library then refuses JPEGs with four channels,
            because Pillow rounds them differently, and JPEGs with so many pixels that Pillow warns or raises an error.
    """

    upright: bool = True
    fast: bool = False
    fancy: bool = True
    filters: Filters | None = None
    mirrors: bool = False
    output: Output | None = None
    match_pillow: bool = False

    def mirror(self) -> ImageOptions:
        """Return these options for a program that may mirror the image."""
        return replace(self, mirrors=True)

    def resize(self, filters: Filters) -> ImageOptions | None:
        """Return these options with a resize; None if these options already have a resize."""
        return replace(self, filters=filters) if self.filters is None else None

    def convert(self, output: Output) -> ImageOptions:
        """Return these options for a program whose result has another dtype, layout or values."""
        return replace(self, output=output)

    @property
    def result(self) -> Output:
        """Dtype, layout and values of the result; by default uint8 ``(H, W, 3)``."""
        return self.output or _BYTES

    @property
    def address(self) -> int:
        """Address of the C structure that contains the options; valid as long as this object exists."""
        native: _NativeOptions | None = self.__dict__.get("_native")
        if native is None:  # if several threads create the structure, all use the first thread's structure
            native = self.__dict__.setdefault("_native", _NativeOptions(self))
        return ctypes.addressof(native.structure)

    def set_level(self, level: int) -> None:
        """Limit the level of vector instructions to `level`."""
        _LibraryOptions.from_address(self.address).level = level


_BYTES = Output()


class _NativeOptions:
    """The library's C structure for image options, and the lookup table to which the structure points."""

    def __init__(self, options: ImageOptions) -> None:
        native, output = library(), options.result
        shrinking, growing, antialias, inside = options.filters or Filters()
        factor, offset = output.scaling or ((1.0,) * 3, (0.0,) * 3)
        # The table is copied to a tensor, because a tensor's memory is aligned for vector instructions.
        levels = None if output.levels is None else bytearray(output.levels)
        self._table = None if levels is None else torch.frombuffer(levels, dtype=torch.uint8).clone()
        self.structure = _LibraryOptions(
            ABI, native.level if native else 0, options.upright, options.fast, options.fancy, FILTERS[shrinking],
            FILTERS[growing], antialias, inside, output.planar, output.dtype.itemsize, output.channels,
            output.scaling is not None, (ctypes.c_float * 3)(*factor), (ctypes.c_float * 3)(*offset), MAX_SCANS,
            None if self._table is None else self._table.data_ptr(), FREE_VALUES, MAX_VALUES_PER_BYTE,
        )  # fmt: skip


new_tuple = tuple.__new__
"""Creates a `NamedTuple` in half the time of its constructor. Use it for tuples that are created once per sample."""


class AxisRegion(NamedTuple):
    """Region of one axis of an image, and the size to which the region is resized.

    The image is upright: already turned according to its EXIF orientation.

    Attributes:
        low, high: Start and end of the region, in pixels of the image. If ``high < low``, the axis is mirrored.
        size: Number of rows or columns to which the region is resized.
        start: First row or column of the resized region that is computed.
        extent: Number of rows or columns of the resized region that are computed.
        first, last: First pixel of the image that the resize may read, and exclusive end of these pixels.
    """

    low: float
    high: float
    size: int
    start: int
    extent: int
    first: int
    last: int

    def cut(self, start: int, extent: int, resized: bool) -> AxisRegion:
        """Return the region that produces only `extent` rows or columns of this region's result.

        Args:
            start: First row or column of the result to keep.
            extent: Number of rows or columns to keep.
            resized: True if this region is resized. To compute the kept rows or columns, the resize then still reads
                all the pixels that its filter needs.
        """
        low, high, size, offset, _, first, last = self
        if resized:
            return new_tuple(AxisRegion, (low, high, size, offset + start, extent, first, last))
        first += start
        return new_tuple(AxisRegion, (first, first + extent, extent, 0, extent, first, first + extent))

    def resize(self, low: float, high: float, size: int, mirrored: bool, isolated: bool = False) -> AxisRegion:
        """Return the region that resizes ``low : high`` of this region, which isn't resized yet.

        Args:
            low: Start of the pixels to resize, relative to the start of this region.
            high: End of the pixels to resize, relative to the start of this region.
            size: Number of rows or columns to which the pixels are resized.
            mirrored: True if the axis is mirrored.
            isolated: True to read no pixels outside of ``low : high``; `low` and `high` must then be integers.
        """
        first, last = self[5:]
        if mirrored:
            low, high = last - low, last - high
        else:
            low, high = first + low, first + high
        if isolated:
            first, last = (low, high) if low < high else (high, low)  # type: ignore[assignment]
        return new_tuple(AxisRegion, (low, high, size, 0, size, first, last))


def run(
    options: ImageOptions,
    data: Tensor,
    rows: AxisRegion,
    columns: AxisRegion,
    mirror: int,
) -> Tensor | None:
    """Decode, crop, resize and convert one image.

    Args:
        options: Options of the program.
        data: uint8: the bytes ``(n,)`` of a JPEG file, or pixels ``(H, W, 3)``.
        rows, columns: Region of each axis of the image.
        mirror: `MIRROR`, `UPSIDE_DOWN`, the sum of both, or 0.

    Returns:
        A contiguous tensor ``(channels, H, W)`` or ``(H, W, channels)``. None if the library isn't used or refuses the
        image.
    """
    native = library()
    if native is None or not (accepts_bytes(data) or accepts_pixels(data)):
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


def accepts_bytes(data: Tensor) -> bool:
    """Return whether the library can read a tensor as encoded bytes: one-dimensional uint8 on the CPU."""
    return data.dim() == 1 and _has_bytes(data)


def accepts_pixels(data: Tensor) -> bool:
    """Return whether the library can read a tensor as pixels: ``(H, W, 3)`` uint8 on the CPU."""
    return data.dim() == 3 and data.shape[2] == 3 and _has_bytes(data)


def _has_bytes(data: Tensor) -> bool:
    return data.dtype == torch.uint8 and data.is_cpu and data.is_contiguous()
