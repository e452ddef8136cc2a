"""Decode TIFF files with Pillow if Pillow's result is exact, otherwise with tifffile.

A TIFF file has a directory (a list of tags) for each of its images. The libraries receive the file with a new directory
of the first image, which has only the tags that describe pixels. Therefore, the libraries do not warn, do not read the
file's other images, and do not interpret vendors' tags.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import io
import logging
import math
import struct
from typing import Any

import numpy as np
from PIL import _imaging
from PIL.TiffImagePlugin import COMPRESSION_INFO, TiffImageFile

from torchdali.codecs._pillow import pillow_pixels
from torchdali.errors import MissingExtraError
from torchdali.kernels.memory import Array

__all__ = ["Directory", "decode_tiff"]


# `struct` format of each TIFF field type: bytes, shorts, longs, fractions, signed numbers, 64-bit numbers.
_FIELD_TYPES = {1: "B", 3: "H", 4: "I", 5: "Q", 6: "b", 7: "B", 8: "h", 9: "i", 13: "I", 16: "Q"}

# `_NEEDED_TAGS`: tags that decoding needs. `_LIST_TAGS`: tags with several values. `_SHORT_TAGS`: tags of shorts.
_NEEDED_TAGS = frozenset((*range(256, 260), 262, 266, 273, *range(277, 280), 284, 292, 293, 317, 320, *range(322, 326),
                          339, 347, *range(512, 516), *range(519, 522), *range(529, 533)))  # fmt: skip

_LIST_TAGS = frozenset((258, 273, 279, 320, 324, 325, 339, 347, *range(519, 522), 529, 530, 532))
_SHORT_TAGS = frozenset((258, 259, 262, 266, 277, 284, 317, 320, 338, 339, 512, 515, 530, 531))

_COMPRESSIONS = {
    1: "none", 2: "CCITT", 3: "fax group 3", 4: "fax group 4", 5: "LZW", 6: "old JPEG", 7: "JPEG", 8: "deflate",
    32773: "PackBits", 32809: "ThunderScan", 32946: "deflate", 33003: "JPEG 2000", 33005: "JPEG 2000", 34676: "SGI log",
    34677: "SGI log 24", 34712: "JPEG 2000", 34887: "LERC", 34925: "LZMA", 34933: "PNG", 34934: "JPEG XR",
    50000: "Zstandard", 50001: "WebP", 50002: "JPEG XL", 52546: "JPEG XL",
}  # fmt: skip
_PHOTOMETRICS = {0: "white is 0", 1: "black is 0", 2: "RGB", 3: "palette", 4: "mask", 5: "inks", 6: "YCbCr", 8: "Lab"}
_SAMPLE_FORMATS = {1: "unsigned", 2: "signed", 3: "float", 4: "undefined", 5: "complex integer", 6: "complex"}

_OLD_JPEG = 6
_TIFFFILE_COMPRESSIONS = (1, 5, 8, 32773, 32946, 34925, 50000)  # compressions for which the decoder limits its memory
_INKS, _YCBCR, _LAB = 5, 6, 8  # photometric interpretations


class Directory:
    """The first image directory of a TIFF file: the tags that describe pixels, with their values."""

    def __init__(self, view: memoryview) -> None:
        self.view = view
        self.order = "<" if view[0] == ord("I") else ">"
        self.big = struct.unpack_from(self.order + "H", view, 2)[0] == 43
        self.entries = self._read_entries()
        self.width = self.number(256)
        self.height = self.number(257)
        self.compression = self.number(259, 1)
        self.photometric = self.number(262, 1)
        self.samples = self.number(277, 3 if self.compression == _OLD_JPEG else 1)
        self.depths = self.numbers(258) or [1]
        self.planar = self.number(284, 1) == 2 and self.samples > 1
        self.sample_format = self.number(339, 1)
        self.tile = self.number(322, 0), self.number(323, 0)
        orientation = self.number(274, 1)
        self.orientation = orientation if 1 <= orientation <= 8 else 1
        if self.samples < 1:
            raise ValueError("the file contains no samples")

    @property
    def channels(self) -> int:
        """Number of channels after decoding. CMYK becomes RGB with an opaque alpha channel."""
        if self.compression == _OLD_JPEG:
            return 3
        return {3: 3, _INKS: 4, _YCBCR: 3, _LAB: 3}.get(self.photometric, self.samples)

    @property
    def colors(self) -> int:
        """Number of color samples per pixel, without alpha and other extra samples."""
        return {2: 3, _INKS: 4, _YCBCR: 3}.get(self.photometric, 1)

    def _read_entries(self) -> dict[int, tuple[int, int, int]]:
        """Return, for each tag, the field type, the count and the offset of its values."""
        wide, head, step = ("Q", "Q", 20) if self.big else ("I", "H", 12)
        (start,) = struct.unpack_from(self.order + wide, self.view, 8 if self.big else 4)
        (count,) = struct.unpack_from(self.order + head, self.view, start)
        first = start + struct.calcsize(head)
        entries = {}
        for position in range(first, first + count * step, step):
            tag, field_type, number = struct.unpack_from(f"{self.order}HH{wide}", self.view, position)
            if field_type not in _FIELD_TYPES or not number:
                continue
            offset = position + 4 + struct.calcsize(wide)
            size = struct.calcsize(_FIELD_TYPES[field_type]) * number
            if size > struct.calcsize(wide):
                (offset,) = struct.unpack_from(self.order + wide, self.view, offset)
            if offset + size > len(self.view) and tag in _NEEDED_TAGS:
                raise ValueError(f"tag {tag} is beyond the end of the file")
            entries[tag] = field_type, number, offset
        is_tiled = 322 in entries
        for strips, tiles in ((273, 324), (279, 325)):  # some files use the tags of strips for tiles, or vice versa
            expected, alternative = (tiles, strips) if is_tiled else (strips, tiles)
            if expected not in entries and alternative in entries:
                entries[expected] = entries.pop(alternative)
        return entries

    def numbers(self, tag: int) -> list[int]:
        """Return all values of a tag; an empty list if the tag is absent."""
        field_type, count, position = self.entries.get(tag, (1, 0, 0))
        return list(struct.unpack_from(f"{self.order}{count}{_FIELD_TYPES[field_type]}", self.view, position))

    def number(self, tag: int, default: int | None = None) -> int:
        """Return the first value of a tag, or the default if the tag is absent."""
        if tag not in self.entries and default is not None:
            return default
        return self.numbers(tag)[0]

    def __str__(self) -> str:
        """Describe the variant of TIFF, for errors."""
        bits = ", ".join(map(str, sorted(set(self.depths))))
        tiles = "tiles of {} x {}".format(*self.tile) if self.tile[0] else "strips"
        return (
            f"a TIFF of compression {self.compression} ({_COMPRESSIONS.get(self.compression, 'unknown')}), "
            f"{self.samples} samples of {bits} bits in {'planes' if self.planar else 'one plane'}, "
            f"sample format {self.sample_format} ({_SAMPLE_FORMATS.get(self.sample_format, 'unknown')}), "
            f"photometric {self.photometric} ({_PHOTOMETRICS.get(self.photometric, 'unknown')}), {tiles}"
        )

    def check_parts(self) -> None:
        """Check that no strip or tile is missing. Decoders would skip a missing strip or tile without an error.

        Raises:
            ValueError: A strip or tile is missing.
        """
        if self.compression == _OLD_JPEG:  # these files may describe strips by other tags
            return
        if self.tile[0]:
            columns, rows, offset_tag, length_tag = -(-self.width // self.tile[0]), self.tile[1], 324, 325
        else:
            columns, rows, offset_tag, length_tag = 1, min(self.number(278, self.height), self.height), 273, 279
        if rows < 1:
            raise ValueError("strips or tiles must have at least one row")
        count = columns * -(-self.height // rows) * (self.samples if self.planar else 1)
        offsets, lengths = self.numbers(offset_tag)[:count], self.numbers(length_tag)[:count]
        if min(len(offsets), len(lengths)) < count:
            raise ValueError(f"the file must have {count} strips or tiles, got {min(len(offsets), len(lengths))}")
        if self.compression == 1:  # check only offsets, because some uncompressed files have wrong lengths
            lengths = [1] * count
        if any(start + size > len(self.view) for start, size in zip(offsets, lengths, strict=True)):
            raise ValueError("the data ends before the image does")


def decode_tiff(view: memoryview, directory: Directory) -> Array:
    """Decode the first image to ``(H, W, C)``, as unsigned or signed integers, or as float32.

    Integers are scaled to the full range of their dtype. Samples of 9 to 15 or 17 to 31 bits are shifted to the upper
    bits of the next larger dtype, as DALI does for 10, 12 and 14 bits. Samples of 64 bits are reduced to their upper 32
    bits. Palette images become 16-bit RGB.

    Raises:
        ValueError: The file cannot be decoded; the message describes the variant of TIFF.
    """
    try:
        directory.check_parts()
        pixels = _decode(directory)
        if pixels.shape != (directory.height, directory.width, directory.channels):
            raise ValueError(f"the decoded pixels have the shape {pixels.shape}, which contradicts the header")
    except MissingExtraError:
        raise
    except Exception as error:  # for damaged data, the libraries raise exceptions of any class
        raise ValueError(f"{directory} cannot be decoded: {error or type(error).__name__}") from error
    return pixels


def _decode(directory: Directory) -> Array:
    if _is_exact_in_pillow(directory):
        if directory.compression not in COMPRESSION_INFO:
            raise ValueError("no installed library supports the compression")
        with contextlib.suppress(SyntaxError):  # Pillow has no mode for this image
            return _decode_with_pillow(directory)
    return _decode_with_tifffile(directory)


def _is_exact_in_pillow(directory: Directory) -> bool:
    depth, sample_format = max(directory.depths), directory.sample_format
    extra = directory.samples - directory.colors
    if directory.photometric not in (0, 1, 2, 3, _INKS, _YCBCR) or extra > 1:
        return directory.compression == _OLD_JPEG and directory.samples <= 4
    if depth <= 8:
        color = directory.photometric == 2 or extra > 0
        signed = sample_format == 2 and depth == 8 and directory.samples == 1  # Pillow reads signed samples as unsigned
        return (sample_format == 1 or signed) and not (color and depth < 8) and depth in (1, 2, 4, 8)
    if depth == 16:
        gray = directory.samples == 1 and directory.photometric in (0, 1)
        return sample_format == 1 and (gray or directory.photometric == _INKS)
    swapped = directory.order == ">"  # Pillow uses the wrong byte order for compressed data
    return depth == 32 and sample_format == 3 and directory.samples == 1 and not swapped


# ---------------------------------------------------------------- Pillow


class _TiffImage(TiffImageFile):
    """Pillow's TIFF reader, but always with libtiff, and without a size limit, because the caller checks the size."""

    use_load_libtiff = property(lambda self: True, lambda self, value: None)

    def load_prepare(self) -> None:
        if vars(self).get("_im", vars(self).get("im")) is None:  # `_im` is named `im` before Pillow 11
            self.im = _imaging.new(self.mode, self.size)
        super().load_prepare()


def _decode_with_pillow(directory: Directory) -> Array:
    _silence_libtiff()
    with _TiffImage(io.BytesIO(_replace_directory(directory))) as image:
        if image.size != (directory.width, directory.height):
            raise ValueError("the sizes in the file contradict each other")
        pixels = pillow_pixels(image)
    if pixels.dtype == np.bool_:
        pixels = pixels * np.uint8(255)
    pixels = pixels.astype(pixels.dtype.newbyteorder("="), copy=False).reshape(*pixels.shape[:2], -1)
    if image.mode in ("P", "PA"):
        return _apply_palette(pixels, directory)
    return _cmyk_to_rgb(pixels) if image.mode == "CMYK" else pixels


@functools.cache
def _silence_libtiff() -> None:
    """Stop libtiff from printing messages, which don't name the file. Exceptions report the same errors."""
    handler = getattr(ctypes.CDLL(_imaging.__file__), "TIFFSetErrorHandler", None)  # Pillow contains libtiff
    if handler is not None:
        handler.restype = ctypes.c_void_p
        handler(None)


def _replace_directory(directory: Directory) -> bytes:
    """Return the file with an appended directory, which has only the tags that decoding needs.

    Each tag gets its typical field type.
    """
    order, view, big = directory.order, directory.view, directory.big
    wide, head, inline = ("Q", "Q", 8) if big else ("I", "H", 4)
    tags = {
        tag: directory.numbers(tag)[: None if tag in _LIST_TAGS else 1]
        for tag in directory.entries
        if tag in _NEEDED_TAGS
    }
    tags |= {284: [2 if directory.planar else 1]}
    if directory.samples == directory.colors + 1:  # an alpha channel, which must not change the colors
        tags[338] = [0 if directory.photometric == _INKS else 2]
    values, entries = bytearray(-len(view) % 8), b""
    for tag, numbers in sorted(tags.items()):
        # Bytes and fractions keep their field type.
        original_type = directory.entries[tag][0] if tag in (347, 529, 532) else 0
        field_type = original_type or (3 if tag in _SHORT_TAGS else 16 if big else 4)
        packed = struct.pack(f"{order}{len(numbers)}{_FIELD_TYPES[field_type]}", *numbers)
        if len(packed) > inline:
            offset = struct.pack(order + wide, len(view) + len(values))
            packed, values = offset, values + packed + bytes(-len(packed) % 8)
        entries += struct.pack(f"{order}HH{wide}", tag, field_type, len(numbers)) + packed.ljust(inline, b"\0")
    start = struct.pack(order + wide, len(view) + len(values))
    count = struct.pack(order + head, len(tags))
    return b"".join((view[: 2 * inline - len(start)], start, view[2 * inline :], values, count, entries, bytes(8)))


def _apply_palette(indices: Array, directory: Directory) -> Array:
    """Return the colors of palette indices; as in other formats, indices without a palette entry are black."""
    colors = np.array(directory.numbers(320), np.int64).reshape(3, -1).T
    table = np.zeros((1 << 8 * indices.itemsize, 3), np.uint16)
    if (colors >> 16).any() or len(colors) > len(table):
        raise ValueError(f"the palette must have at most 16 bits per color and {len(table)} colors")
    table[: len(colors)] = colors
    return table[indices[:, :, 0]]


def _cmyk_to_rgb(pixels: Array) -> Array:
    """Convert CMYK to RGB with an opaque alpha channel, row by row to save memory."""
    colors = np.full_like(pixels, 255)
    for cmyk, row in zip(pixels, colors, strict=True):
        light = 255 - cmyk.astype(np.uint16)
        row[:, :3] = light[:, :3] * light[:, 3:4] // 255
    return colors


# ---------------------------------------------------------------- tifffile


_NO_LOG = logging.NullHandler()  # prevents log lines on stderr, which don't name the file


def _decode_with_tifffile(directory: Directory) -> Array:
    is_lab = directory.photometric == _LAB
    if directory.compression not in _TIFFFILE_COMPRESSIONS or directory.photometric not in (0, 1, 2, 3, _LAB):
        raise ValueError("no library can decode this variant in limited memory")
    if len(set(directory.depths)) > 1 or directory.sample_format not in (1, 2, 3):
        raise ValueError("all samples must have the same depth and a known sample format")
    if directory.depths[0] in (24, 40, 48, 56) and directory.sample_format != 3:
        raise ValueError("programs disagree on the byte order of these samples")
    encoded = _replace_directory(directory)
    imagecodecs = _import_library("imagecodecs", directory)
    if is_lab:
        return np.asarray(imagecodecs.tiff_decode(encoded, asrgb=True))[:, :, :3]
    tifffile = _import_library("tifffile", directory)
    logging.getLogger("tifffile").addHandler(_NO_LOG)
    with tifffile.TiffFile(io.BytesIO(encoded)) as file:
        page = file.pages[0]
        if len(page.dataoffsets) < math.prod(page.chunked):  # tifffile would not fill the missing part
            raise ValueError("strips or tiles are missing")
        pixels = page.asarray(maxworkers=1, squeeze=False)
    planes, _, height, width, samples = pixels.shape
    pixels = pixels.reshape(planes, height, width, samples)
    pixels = np.moveaxis(pixels[..., 0], 0, 2) if directory.planar else pixels[0]
    if directory.photometric == 3:
        return _apply_palette(pixels, directory)
    pixels = _scale_to_full_range(pixels, directory.depths[0])
    return 255 - pixels if directory.photometric == 0 and directory.depths[0] <= 8 else pixels


def _import_library(name: str, directory: Directory) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(name, "tiff", f"decoding {directory}") from error


def _scale_to_full_range(pixels: Array, depth: int) -> Array:
    """Scale samples so that their largest value becomes the dtype's largest value."""
    kind, size = pixels.dtype.kind, 8 * pixels.itemsize
    if kind == "f":
        return np.ascontiguousarray(pixels, np.float32)
    if depth < 8:
        return (pixels.astype(np.uint16) * 255 // ((1 << depth) - 1)).astype(np.uint8)
    if size == 64:
        return (pixels >> 32).astype(f"{kind}4")
    return np.ascontiguousarray(pixels << (size - depth) if depth < size else pixels)
