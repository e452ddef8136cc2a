"""JPEG decoding by the native library: many headers, files or images per call.

`kernels.native` loads the library and defines the call for one sample. No function of this module raises for bad data:
if the library refuses an image, the result is None or a code other than 0. The caller must then use the common path
(the other decoders), which raises the errors.

A GPU may have an engine (hardware that decodes JPEGs). Then `Parts` divides a batch's images between the library and
the engine.
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

from torchdali.codecs._pillow import exceeds_pillow_limit
from torchdali.codecs.program import ImageProgram
from torchdali.kernels.limits import limits
from torchdali.kernels.memory import IN_PLACE, Array, BufferedResult, Bytes, SharedBuffer
from torchdali.kernels.native import (
    CODE,
    ENCODED,
    PARTS,
    SAMPLE,
    STEP,
    ImageOptions,
    NativeLibrary,
    accepts_bytes,
    accepts_pixels,
    library,
    new_tuple,
)
from torchdali.kernels.random_window import window_ranges

__all__ = [
    "Files", "JpegSource", "Parts", "Table", "WindowChoice", "decode_jpegs", "examine", "lot_limit", "read_files",
    "read_headers", "render", "run_programs",
]  # fmt: skip

Files = npt.NDArray[Any]
"""Structures that describe encoded files in memory, with the dtype `ENCODED`."""

_Header = ctypes.c_int32 * 4

_CHANNELS = (1, 3, 4)
_BYTES_PER_FILE = 1 << 19  # bytes reserved per file when several files are read in one call
_BYTES_PER_SMALL_FILE = 1 << 17  # bytes reserved per file if the files are small


class _FileBuffer(threading.local):
    """A thread's buffer for files. The content is valid until the thread reads the next files."""

    files = np.empty(0, np.uint8)
    address = 0


class Table(NamedTuple):
    """An array of C structures for the library, and the array's address.

    The address is stored because requesting it from NumPy takes longer than the library call.
    """

    rows: Files
    address: int

    @classmethod
    def of(cls, count: int, dtype: np.dtype[Any]) -> Table:
        """Return a table of `count` rows, filled with zeros."""
        memory = _buffer_type(count * dtype.itemsize)()
        return cls(np.frombuffer(memory, dtype), ctypes.addressof(memory))

    def pick(self, indices: Array) -> Table:
        """Return a copy of some rows."""
        table = self.of(len(indices), self.rows.dtype)
        table.rows[:] = self.rows[indices]
        return table


class JpegSource(NamedTuple):
    """An encoded JPEG or decoded pixels in memory.

    Attributes:
        length: Size of the data in bytes.
        height: Height before any rotation.
        width: Width before any rotation.
        orientation: EXIF orientation, 1 to 8.
        row_length: Number of pixels per row; 0 for a JPEG.
        channels: Number of channels according to the header.
        pixels: Tensor that owns the pixels; None for a JPEG.
    """

    address: int
    length: int
    height: int
    width: int
    orientation: int = 1
    row_length: int = 0
    channels: int = 3
    pixels: Tensor | None = None

    def size(self, upright: bool) -> tuple[int, int]:
        """Return height and width of the upright image, or of the stored image if `upright` is False."""
        turned = upright and self.orientation > 4
        return (self.width, self.height) if turned else (self.height, self.width)


def read_headers(sources: Sequence[Tensor | str | None], match_pillow: bool = False) -> list[JpegSource | None]:
    """Read the headers of several samples; the result is None for samples that need the common path.

    Files are read into a buffer of this thread, whose content is valid until the thread reads the next files.

    Args:
        sources: Encoded bytes, or paths of files; None for samples to skip.
        match_pillow: Accept only images that the library decodes to the same pixels as Pillow; see `ImageOptions`.
            If True, sources may also be pixels ``(H, W, C)`` with 1 or 3 channels.
    """
    native = library()
    if native is None:
        return [None] * len(sources)
    paths = [source for source in sources if isinstance(source, str)]
    files = iter(_read(native, paths) if paths else ())
    results = [
        next(files) if isinstance(source, str)
        else None if source is None
        else _locate(source) if match_pillow and source.dim() == 3
        else _peek(native, source)
        for source in sources
    ]  # fmt: skip
    return (
        [None if each is None or _differs_from_pillow(each) else each for each in results] if match_pillow else results
    )


def _differs_from_pillow(data: JpegSource) -> bool:
    """Return whether Pillow rejects this JPEG, or decodes it to slightly different pixels."""
    return not data.row_length and (data.channels == 4 or exceeds_pillow_limit(data.height, data.width))


def _peek(native: NativeLibrary, data: Tensor) -> JpegSource | None:
    if not accepts_bytes(data):
        return None
    header = _Header()
    address, length = data.data_ptr(), data.numel()
    code = native.peek(address, length, header)
    height, width, channels, orientation = header
    is_supported = not code and channels in _CHANNELS
    return JpegSource(address, length, height, width, orientation, 0, channels) if is_supported else None


def _locate(data: Tensor) -> JpegSource | None:
    """Return the address and size of pixels; None if the library does not support the pixels."""
    if data.shape[2] == 1:  # use the gray channel three times: every step changes equal channels equally
        data = data.expand(-1, -1, 3).contiguous()
    if not accepts_pixels(data):
        return None
    height, width, _ = data.shape
    return JpegSource(data.data_ptr(), data.numel(), height, width, row_length=width, pixels=data)


_file_buffer = _FileBuffer()


def read_files(paths: Sequence[str], borrow: bool = False) -> list[Bytes] | None:
    """Read small files of any format in one call.

    Args:
        paths: Paths of the files.
        borrow: If True, return views of this thread's buffer, which are valid until the thread reads the next files. If
            False, return copies.

    Returns:
        The content of each file; None if one of the files is empty, too large or unreadable.
    """
    native = library()
    table = None if native is None else _read_all(native, paths, _BYTES_PER_SMALL_FILE)
    files = None if table is None else table.rows
    if files is None or not (files["length"] * files["whole"]).all():
        return None
    starts, lengths = (files["data"] - np.uint64(_file_buffer.address)).tolist(), files["length"].tolist()
    content = _file_buffer.files[: starts[-1] + lengths[-1]]
    content = content if borrow else content.copy()
    return [content[start : start + length] for start, length in zip(starts, lengths, strict=True)]


def _read(native: NativeLibrary, paths: Sequence[str]) -> list[JpegSource | None]:
    table = _read_all(native, paths, _BYTES_PER_FILE)
    if table is None:
        return [None] * len(paths)
    return [
        None if code else new_tuple(JpegSource, (data, length, height, width, orientation, 0, channels, None))
        for data, length, _, height, width, channels, orientation, code, *_ in table.rows.tolist()
    ]


def _read_all(
    native: NativeLibrary, paths: Sequence[str], bytes_per_file: int, options: ImageOptions | None = None
) -> Table | None:
    """Read files into this thread's buffer, which has `bytes_per_file` bytes per file; see `examine`.

    Return None if a name cannot be passed to the library.
    """
    count = len(paths)
    try:
        names = os.fsencode("\0".join(paths) + "\0")
    except UnicodeError:
        return None
    if names.count(0) != count:  # a name contains a null character
        return None
    if len(_file_buffer.files) < count * bytes_per_file:
        _file_buffer.files = np.empty(count * bytes_per_file, np.uint8)
        _file_buffer.address = _file_buffer.files.ctypes.data
    table, address = Table.of(count, ENCODED), None if options is None else options.address
    native.read(names, count, _file_buffer.address, count * bytes_per_file, table.address, address, limits.pixels)
    return table


@functools.lru_cache(maxsize=64)
def _buffer_type(size: int) -> Any:
    return ctypes.c_char * size


def examine(sources: Sequence[Tensor | str | None], options: ImageOptions | None = None) -> Table:
    """Read the headers of several samples.

    Files are read into a buffer of this thread, whose content is valid until the thread reads the next files.

    Args:
        sources: Encoded bytes, or paths of files.
        options: If not None, also compute the samples' lots, which divide the samples between the library and the
            engine (see `lot_limit`). The options say whether images are turned upright.

    Returns:
        One row of `ENCODED` per sample. The field `code` is 0, unless the sample needs the common path.
    """
    native = library()
    assert native is not None
    paths = [source for source in sources if isinstance(source, str)]
    file_table = _read_all(native, paths, _BYTES_PER_FILE, options) if paths else None
    if file_table is not None and len(paths) == len(sources):
        return file_table
    table = Table.of(len(sources), ENCODED)
    files = table.rows
    tensors = {i: each for i, each in enumerate(sources) if isinstance(each, Tensor) and accepts_bytes(each)}
    indices = list(tensors)
    files["data"][indices] = [each.data_ptr() for each in tensors.values()]
    files["length"][indices] = [each.numel() for each in tensors.values()]
    native.draw(None if options is None else options.address, limits.pixels, table.address, len(files))
    if file_table is not None:
        files[[isinstance(source, str) for source in sources]] = file_table.rows
    return table


def lot_limit(share: float) -> int:
    """Convert the engine's share of the images to a limit for lots.

    A lot is a number that is computed from the file's bytes. The engine decodes the files whose lots are below the
    limit; the CPU decodes the other files. Therefore, an image is decoded by the same decoder in every batch.

    Only baseline JPEGs with one scan and 8 bits, gray or YCbCr, have a lot: the engine decodes other JPEGs to other
    colors, or not at all. JPEGs that must be rotated or mirrored have no lot. JPEGs that are truncated or have markers
    amid their pixels have no lot either, because an engine may not notice the damage.
    """
    return math.ceil(share * (1 << 24))


class WindowChoice(ctypes.Structure):
    """The choice of the window (the region to decode) of each image: whole image, passed window or random window.

    See `kernels.random_window.random_window` for the fields `attempts`, `area` and `ratio`; `log_ratio` has the
    logarithms of `ratio`.
    """

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("upright", ctypes.c_int32),
        ("attempts", ctypes.c_int64),
        ("area", ctypes.c_double * 2),
        ("ratio", ctypes.c_double * 2),
        ("log_ratio", ctypes.c_double * 2),
    )

    @property
    def is_whole(self) -> bool:
        """True if whole images are chosen."""
        return bool(self.kind == 0)

    @classmethod
    def whole(cls, upright: bool) -> WindowChoice:
        """Choose whole images."""
        return cls(0, upright)

    @classmethod
    def explicit(cls, upright: bool) -> WindowChoice:
        """Choose the windows that are passed to `Parts`."""
        return cls(1, upright)

    @classmethod
    def random(cls, upright: bool, attempts: int, area: Sequence[float], ratio: Sequence[float]) -> WindowChoice:
        """Choose random windows.

        Raises:
            RuntimeError: A range is invalid; see `random_window`.
        """
        *bounds, low, high = window_ranges(tuple(area), tuple(ratio))
        pair = ctypes.c_double * 2
        return cls(2, upright, attempts, pair(*bounds[:2]), pair(*bounds[2:]), pair(low, high))


class Parts:
    """The windows that must be decoded, each by the native library or by the GPU's engine.

    Args:
        files: The files; all must have a `code` of 0.
        choice: How to choose the windows.
        share: The engine's share of the images, 0 to 1.
        numbers: Random numbers for random windows; see `SampleRngs.words`.
        windows: Passed windows ``(N, 4)``: y, x, height and width in the upright images.
        regions: ``(2, N, 2)`` float64, changed in place: starts and ends of a region in each upright image. For random
            windows, the regions are first set to the windows. The library decodes only the window of an image, so the
            image's region is made relative to the window. The engine decodes whole images; their regions don't change.

    Attributes:
        table: Table of the dtype `PARTS`.
        pixel_bytes: Size of all decoded pixels in bytes.
        copy_bytes: Size in bytes of the file copies that the engine receives.
        shared_count: Number of files that the engine decodes.
    """

    __slots__ = ("_address", "_files", "_native", "copy_bytes", "pixel_bytes", "shared_count", "table")

    def __init__(
        self,
        files: Table,
        choice: WindowChoice,
        share: float,
        numbers: tuple[int, Array, int] | None = None,
        windows: Array | None = None,
        regions: Table | None = None,
    ) -> None:
        native = library()
        assert native is not None
        count = len(files.rows)
        self._native, self._files = native, files
        self.table, self._address = Table.of(count, PARTS)
        if windows is not None:
            self.table["window"] = windows
        key, _, samples = (0, None, None) if numbers is None else numbers
        address = None if regions is None else regions.address
        totals = (ctypes.c_int64 * 3)()
        native.divide(
            ctypes.addressof(choice), key, samples, files.address, self._address, count, lot_limit(share), address,
            None if address is None else address + 16 * count, totals,
        )  # fmt: skip
        self.pixel_bytes, self.copy_bytes, self.shared_count = totals

    def decode(self, options: ImageOptions, pixel_address: int, copy_address: int) -> int:
        """Decode the library's windows, and copy the engine's files.

        Args:
            pixel_address: Address for the decoded pixels.
            copy_address: Address for the file copies.

        Returns:
            The number of images that failed.
        """
        # The call runs without the GIL. Until the call returns, no other thread uses the files and the output memory.
        failed: int = self._native.do_parts(
            options.address,
            self._files.address,
            self._address,
            len(self.table),
            limits.pixels,
            pixel_address,
            copy_address,
        )
        return failed


def decode_jpegs(data: Sequence[Tensor], upright: bool, fast: bool = False, fancy: bool = True) -> list[Tensor | None]:
    """Decode whole JPEGs in one call; the result is None for images that need other decoders."""
    sources, options = read_headers(data), _options(upright, fast, fancy)
    programs = [None if each is None else ImageProgram.of(*each.size(upright), options) for each in sources]
    return run_programs(sources, programs)


_options = functools.lru_cache(ImageOptions)


def render(program: ImageProgram, data: Tensor, out: Tensor | None = None) -> Tensor | None:
    """Run an image program; return None if the library cannot run it.

    If the result has the shape and dtype of `out`, it is written to `out`.
    """
    (source,) = read_headers([data], program.options.match_pillow)
    (pixels,) = run_programs([source], [program], None if out is None else out[None])
    return out if pixels is IN_PLACE else pixels


def run_programs(
    sources: Sequence[JpegSource | None],
    programs: Sequence[ImageProgram | None],
    out: Tensor | None = None,
    buffer: SharedBuffer | None = None,
) -> list[Any]:
    """Run the programs of several images in one call of the library.

    Args:
        sources: Files or pixels; None for images to skip.
        programs: One program per source, all with the same options object; None for images to skip.
        out: Memory ``(N, ...)``. An image's result is written to `out` if the result has the shape ``(...)``.
        buffer: Memory for results of other shapes; unused if its item size differs from the results' item size.

    Returns:
        For each sample: `IN_PLACE` (the result is in `out`), `BufferedResult` (the result is in `buffer`), a tensor, or
        None (the sample needs the common path).
    """
    native, max_pixels = library(), limits.pixels
    results: list[Any] = [None] * len(programs)
    options = next((program.options for program in programs if program is not None), None)
    if native is None or options is None:
        return results
    output = options.result
    dtype = output.dtype
    out_shape, out_address, pitch = None, 0, 0
    if out is not None and out.dtype == dtype and out.is_contiguous():
        out_shape, out_address, pitch = tuple(out.shape[1:]), out.data_ptr(), out.nbytes // len(out)
    buffer = buffer if buffer is not None and buffer.itemsize == dtype.itemsize else None
    indices: list[int] = []
    table = bytearray(len(programs) * SAMPLE.size)
    steps_per_program = [_encode_steps(program) for program in programs]
    steps = b"".join(steps_per_program)
    step = ctypes.cast(ctypes.c_char_p(steps), ctypes.c_void_p).value or 0
    for i, (data, program, encoded_steps) in enumerate(zip(sources, programs, steps_per_program, strict=True)):
        address, step = step, step + len(encoded_steps)
        if data is None or program is None:
            continue
        assert program.options is options
        shape = output.shape(program.rows.extent, program.columns.extent)
        region = program if program.pixels is None else program.pixels.region
        rows, columns, filter_, scale, mirror, _, _ = region
        y, y_end, h, top, height, upper, lower = rows
        x, x_end, w, left, width, begin, end = columns
        if h * w > max_pixels or height * width > max_pixels:
            continue
        if shape == out_shape:
            results[i], target = IN_PLACE, out_address + i * pitch
        elif buffer is not None and (offset := buffer.reserve(shape[0] * shape[1] * shape[2])) >= 0:
            results[i], target = new_tuple(BufferedResult, (offset, shape)), buffer.address + offset * buffer.itemsize
        else:
            results[i] = torch.empty(shape, dtype=dtype)
            target = results[i].data_ptr()
        SAMPLE.pack_into(
            table, len(indices) * SAMPLE.size, data.address, data.length, max_pixels, target, address, y, x, y_end,
            x_end, h, w, top, left, height, width, upper, begin, lower, end, mirror, 0, scale or 1, data.row_length,
            filter_ or 0, len(encoded_steps) // STEP.size,
        )  # fmt: skip
        indices.append(i)
    # The call runs without the GIL. Until it returns, no other thread uses `table`, `steps`, the files or the memory
    # for the results: each thread works on other samples, and has its own buffer for files.
    if indices and native.run(options.address, _buffer_type(len(table)).from_buffer(table), len(indices)):
        for i, sample in zip(indices, SAMPLE.iter_unpack(table), strict=False):
            if sample[CODE]:
                results[i] = None
    return results


def _encode_steps(program: ImageProgram | None) -> bytes:
    """Encode the program's pixel steps, and append a step that describes the region to write."""
    return b"" if program is None or program.pixels is None else program.pixels.steps + program.as_step()
