"""TIFF: our own reader of the directory, with Pillow's libtiff as the decompressor.

Pillow delivers at most 8 bits of a color channel and three channels of six. It does unpack gray
images of 8, 16 and 32 bits exactly, so each image is handed over as a gray one that is `samples`
times as wide, by a fresh directory behind its data. That directory holds nothing but what
decompression needs: Pillow and libtiff find nothing in it to warn about. A large image goes by a few strips at a
time, so that neither the file nor the pixels are in memory twice.
"""

from __future__ import annotations

import io
import itertools
import struct

import numpy as np
from PIL.ImageFile import ImageFile
from PIL.TiffImagePlugin import TiffImageFile

from torchdali.codecs._pillow import pillow_pixels
from torchdali.kernels.memory import Array

__all__ = ["Directory", "decode_tiff"]


_KINDS = {1: "B", 3: "H", 4: "I", 7: "B", 16: "Q"}  # byte, short, long, raw bytes, long8

_JPEG = 7  # a way of compression
_TABLES = 347  # its quantization and Huffman tables

# The tags with one value for each strip, tile or sample; all others have one.
_LISTS = (258, 273, 279, 324, 325, 530, _TABLES)

_BAND = 1 << 20  # samples that are decompressed at a time

# Compression, fill order, rows a strip, fax options, tile width and length.
_PACKING = (259, 266, 278, 292, 293, 322, 323, _TABLES)


class Directory:
    """The first image directory of a TIFF file, and the tags of it that describe pixels."""

    def __init__(self, view: memoryview) -> None:
        self.view = view
        self.order = "<" if view[0] == ord("I") else ">"
        self.big = struct.unpack_from(self.order + "H", view, 2)[0] == 43
        self.entries = self._read_entries()
        self.width = self.number(256)
        self.height = self.number(257)
        self.samples = self.number(277, 1)
        self.depth = self.number(258, 1)
        self.compression = self.number(259, 1)
        self.photometric = self.number(262, 1)
        self.planar = self.number(284, 1) == 2 and self.samples > 1
        self.predictor = self.number(317, 1)
        self.sample_format = self.number(339, 1)
        self.orientation = self._orientation()
        if not 1 <= self.samples <= 64:
            raise ValueError

    def _read_entries(self) -> dict[int, tuple[int, int, int]]:
        """Map tag to (kind, count, where the values are)."""
        start, head, step = self._layout()
        (count,) = struct.unpack_from(self.order + head, self.view, start)
        first = start + struct.calcsize(head)
        wide = "HHQ" if self.big else "HHI"
        entries = {}
        for position in range(first, first + count * step, step):
            tag, kind, number = struct.unpack_from(self.order + wide, self.view, position)
            if kind in _KINDS:
                entries[tag] = (kind, number, self._where(kind, number, position))
        return entries

    def _layout(self) -> tuple[int, str, int]:
        """Return where the directory starts, the code of its count and the size of an entry."""
        if self.big:
            return struct.unpack_from(self.order + "Q", self.view, 8)[0], "Q", 20
        return struct.unpack_from(self.order + "I", self.view, 4)[0], "H", 12

    def _where(self, kind: int, number: int, position: int) -> int:
        inline, code = (8, "Q") if self.big else (4, "I")
        value = position + 4 + inline
        if struct.calcsize(_KINDS[kind]) * number <= inline:
            return value
        return int(struct.unpack_from(self.order + code, self.view, value)[0])

    def numbers(self, tag: int) -> list[int]:
        """Return all values of a tag, none where it is absent; an error where they lie outside."""
        kind, count, position = self.entries.get(tag, (1, 0, 0))
        if count > len(self.view):
            raise ValueError
        return list(struct.unpack_from(f"{self.order}{count}{_KINDS[kind]}", self.view, position))

    def number(self, tag: int, default: int | None = None) -> int:
        """Return the first value of a tag, or the default."""
        values = self.numbers(tag)
        if values:
            return values[0]
        if default is None:
            raise ValueError
        return default

    def _orientation(self) -> int:
        value = self.number(274, 1)
        return value if 1 <= value <= 8 else 1


class _Decompressor(TiffImageFile):
    """Pillow's TIFF without its own limit of the size: the header passed ours."""

    def load_prepare(self) -> None:
        ImageFile.load_prepare(self)


def decode_tiff(view: memoryview) -> Array | None:
    """Decode the first image to ``(H, W, C)``; None where only OpenCV can.

    The type is uint8, uint16 or float32. Palettes become RGB of 16 bits, CMYK becomes RGB and an
    opaque alpha channel. Raises OSError, ValueError or struct.error for damaged data.
    """
    directory = Directory(view)
    if directory.compression == _JPEG and directory.samples == 3 and not directory.planar:
        return _in_bands(directory, _jpeg_tags(directory))
    if not _is_plain(directory):
        return None
    pixels = _samples(directory)
    if directory.photometric == 0:
        pixels = (1 if pixels.dtype.kind == "f" else np.iinfo(pixels.dtype).max) - pixels
    elif directory.photometric == 3:
        colors = np.array(directory.numbers(320), np.int64).reshape(3, -1).T
        table = colors.astype(np.uint16)
        if (table != colors).any():
            raise ValueError("a color of the palette has more than 16 bits")
        pixels = table[pixels[:, :, 0]]
    elif directory.photometric == 5:
        pixels = _from_cmyk(pixels)
    return pixels


def _is_plain(directory: Directory) -> bool:
    """Tell whether Pillow can unpack the samples: 8 or 16 bits, single floats, or one bit."""
    depth, form = directory.depth, directory.sample_format
    if directory.photometric not in (0, 1, 2, 3, 5) or set(directory.numbers(258)) - {depth}:
        return False
    if directory.photometric == 5 and (depth != 8 or directory.samples < 4):
        return False
    if depth == 32:
        return form == 3 and directory.predictor == 1
    return form == 1 and (depth in (8, 16) or (depth == 1 and directory.samples == 1))


def _from_cmyk(pixels: Array) -> Array:
    inks = 255 - pixels.astype(np.int32)
    colors = (inks[:, :, :3] * inks[:, :, 3:4] // 255).astype(np.uint8)
    return np.concatenate([colors, np.full_like(colors[:, :, :1], 255)], axis=2)


def _samples(directory: Directory) -> Array:
    """Unpack all samples to ``(H, W, samples)``, each plane by itself where they are stored so."""
    if not directory.planar:
        return _plane(directory, directory.samples, 0, 1)
    count = directory.samples
    return np.concatenate([_plane(directory, 1, i, count) for i in range(count)], axis=2)


def _plane(directory: Directory, samples: int, index: int, planes: int) -> Array:
    """Unpack one plane of `planes` as a gray image of `samples` times the width."""
    tags = {
        256: [directory.width * samples],
        257: [directory.height],
        258: [directory.depth],
        262: [1],
        277: [1],
        339: [directory.sample_format],
    }
    for tag in _PACKING:
        tags[tag] = directory.numbers(tag)
    for tag in (273, 279, 324, 325):
        values = directory.numbers(tag)
        share = len(values) // planes
        tags[tag] = values[index * share : (index + 1) * share]
    if tags[322]:
        tags[322] = [tags[322][0] * samples]
    pixels = _in_bands(directory, tags)
    pixels = pixels.reshape(directory.height, directory.width, samples)
    if directory.predictor == 2 and directory.compression != 1:
        _undo_differences(pixels, directory.number(322, directory.width))
    return pixels


def _undo_differences(pixels: Array, step: int) -> None:
    """Add up horizontal differences, in place, anew in each tile."""
    for start in range(0, pixels.shape[1], step):
        tile = pixels[:, start : start + step]
        np.cumsum(tile, axis=1, dtype=tile.dtype, out=tile)


def _jpeg_tags(directory: Directory) -> dict[int, list[int]]:
    tags = (256, 257, 258, 259, 262, 273, 277, 278, 279, 284, 322, 323, 324, 325, _TABLES, 530)
    return {tag: directory.numbers(tag) for tag in tags}


def _in_bands(directory: Directory, tags: dict[int, list[int]]) -> Array:
    """Decode the image that `tags` describe, a few strips or rows of tiles at a time."""
    if directory.compression == 1 and len(tags[273]) == 1 and directory.depth >= 8:
        tags = _cut(tags, directory.depth // 8)
    rows, across = _strips(directory, tags)
    height, width = tags[257][0], tags[256][0]
    group = max(1, _BAND // (rows * width)) if rows else height
    if not rows or group * rows >= height:
        return _through_pillow(directory, tags, [directory.view[8:]])
    places, sizes = (324, 325) if tags[322] else (273, 279)
    made: Array | None = None
    for top in range(0, height, group * rows):
        first, bottom = top // rows * across, min(top + group * rows, height)
        chosen = slice(first, first + group * across)
        spans = list(zip(tags[places][chosen], tags[sizes][chosen], strict=True))
        *starts, _ = itertools.accumulate((length for _, length in spans), initial=8)
        part = {**tags, 257: [bottom - top], places: starts, sizes: tags[sizes][chosen]}
        data = [directory.view[start : start + length] for start, length in spans]
        band = _through_pillow(directory, part, data)
        if made is None:
            made = np.empty((height, *band.shape[1:]), band.dtype)
        made[top:bottom] = band
    assert made is not None
    return made


def _cut(tags: dict[int, list[int]], size: int) -> dict[int, list[int]]:
    """Cut a strip that holds the whole image, with samples of `size` bytes that are not packed, into several."""
    row, height = tags[256][0] * size, tags[257][0]
    if tags[279] and tags[279][0] < row * height:  # truncated
        return tags
    rows = max(1, _BAND // tags[256][0])
    counts = [min(rows, height - top) for top in range(0, height, rows)]
    places = [tags[273][0] + top * row for top in range(0, height, rows)]
    return {**tags, 273: places, 278: [rows], 279: [count * row for count in counts]}


def _strips(directory: Directory, tags: dict[int, list[int]]) -> tuple[int, int]:
    """Return how many rows a strip or a tile has, and how many lie side by side; no rows where the lists do not fit."""
    height, width = tags[257][0], tags[256][0]
    across = 1
    if tags[322]:
        rows, across = tags[323][0] if tags[323] else 0, -(-width // max(tags[322][0], 1))
        offsets, lengths = tags[324], tags[325]
    else:
        rows = min(tags[278][0], height) if tags[278] else height
        offsets, lengths = tags[273], tags[279]
    if rows < 1 or not len(offsets) == len(lengths) == across * -(-height // rows):
        return 0, 0
    size = len(directory.view)
    ends = (start + length for start, length in zip(offsets, lengths, strict=True))
    return (rows, across) if sum(lengths) <= size and max(ends) <= size else (0, 0)


def _through_pillow(directory: Directory, tags: dict[int, list[int]], data: list[memoryview]) -> Array:
    """Decode the image that `tags` describe; whatever else the file says is not seen.

    `data` follows the first eight bytes of the file.
    """
    tags = {tag: v if tag in _LISTS else v[:1] for tag, v in tags.items() if v}
    with _Decompressor(io.BytesIO(_with_directory(directory.order, tags, data))) as image:
        pixels = pillow_pixels(image)
    if pixels.dtype == np.bool_:
        levels: Array = np.not_equal(pixels.view(np.uint8), 0, out=pixels).view(np.uint8)
        levels *= np.uint8(255)
        return levels
    return pixels.astype(pixels.dtype.newbyteorder("="), copy=False)


def _with_directory(order: str, tags: dict[int, list[int]], data: list[memoryview]) -> bytes:
    """Return a classic file of `data` and a directory behind it."""
    begin = 8 + sum(map(len, data))
    more = bytearray(begin % 2)  # what follows `data`, at even offsets
    entries = b""
    for tag, values in sorted(tags.items()):
        kind = _kind(tag)
        packed = struct.pack(f"{order}{len(values)}{_KINDS[kind]}", *values)
        if len(packed) > 4:
            place = begin + len(more)
            more += packed + bytes(len(packed) % 2)
            packed = struct.pack(order + "I", place)
        entries += struct.pack(order + "HHI", tag, kind, len(values)) + packed.ljust(4, b"\0")
    mark = b"II" if order == "<" else b"MM"
    header = mark + struct.pack(order + "HI", 42, begin + len(more))
    more += struct.pack(order + "H", len(tags)) + entries + bytes(4)
    return b"".join((header, *data, more))


def _kind(tag: int) -> int:
    """Choose the kind of a tag: raw bytes for tables, longs for sizes and places, else shorts."""
    if tag == _TABLES:
        return 7
    return 4 if tag in (256, 257, 273, 278, 279, 322, 323, 324, 325) else 3
