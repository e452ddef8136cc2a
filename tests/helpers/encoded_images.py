"""Encoded images in memory: one of each kind, with its expected pixels."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

Array = npt.NDArray[Any]

HEIGHT, WIDTH = 45, 61


def smooth_image(height: int = HEIGHT, width: int = WIDTH) -> Array:
    """Return a smooth RGB image with some noise: no two rows, columns or channels are equal."""
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    waves = np.stack([np.sin(7 * x + y), np.cos(5 * y - 2 * x), np.sin(9 * x * y + 1)], axis=2)
    noise = np.random.default_rng(1).integers(-8, 9, waves.shape)
    return (127 + 110 * waves + noise).clip(0, 255).astype(np.uint8)


RGB = smooth_image()
GRAY = RGB[:, :, 1].copy()
ALPHA = RGB[::-1, :, 0].copy()
RGBA = np.dstack([RGB, ALPHA])
RGB16 = RGB.astype(np.uint16) * 257 ^ RGB[::-1].astype(np.uint16)
GRAY16 = RGB16[:, :, 0].copy()
RGBA16 = np.dstack([RGB16, GRAY16[::-1]])
BITS = (GRAY > 127).astype(np.uint8)


def tensor(encoded: bytes | bytearray) -> Tensor:
    return (
        torch.frombuffer(bytearray(encoded), dtype=torch.uint8)
        if encoded
        else torch.empty(0).byte()
    )


def encoded(pixels: Array | Image.Image, format: str, **options: Any) -> bytes:
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def exif(orientation: int) -> bytes:
    block = Image.Exif()
    block[0x0112] = orientation
    return block.tobytes()


def exif_block(order: str, kind: int, value: bytes, count: int = 1, entries: int = 1) -> bytes:
    """An EXIF block with one entry, the orientation."""
    head = b"II*\0" if order == "<" else b"MM\0*"
    entry = struct.pack(order + "HHI", 0x0112, kind, count) + value.ljust(4, b"\0")
    return head + struct.pack(order + "IH", 8, entries) + entry


def png(pixels: Array, color: int, depth: int, extra: bytes = b"") -> bytes:
    """Write a PNG of any depth, as Pillow cannot."""
    height, width = pixels.shape[:2]
    kind = ">u2" if depth == 16 else "u1"
    rows = b"".join(b"\0" + row.astype(kind).tobytes() for row in pixels.reshape(height, -1))
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    chunks = (b"IHDR" + header, b"IDAT" + zlib.compress(rows), b"IEND")
    first, *others = (
        struct.pack(">I", len(c) - 4) + c + struct.pack(">I", zlib.crc32(c)) for c in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + first + extra + b"".join(others)


def tiff(
    pixels: Array,
    photometric: int,
    *,
    order: Literal["<", ">"] = "<",
    deflate: bool = False,
    predictor: int = 1,
    tile: int = 0,
    planar: bool = False,
    big: bool = False,
    bits: int = 0,
    tags: dict[int, list[int]] | None = None,
) -> bytes:
    """Write a TIFF of any kind, in strips of 16 rows or in tiles; samples of `bits` bits, if that isn't their dtype's."""
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    height, width, samples = pixels.shape
    blocks = []
    for plane in np.split(pixels, samples, axis=2) if planar else [pixels]:
        step = (tile, tile) if tile else (16, width)
        for y in range(0, height, step[0]):
            for x in range(0, width, step[1]):
                block = plane[y : y + step[0], x : x + step[1]]
                if tile:
                    rest = [(0, tile - block.shape[0]), (0, tile - block.shape[1]), (0, 0)]
                    block = np.pad(block, rest)
                if predictor == 2:
                    block = np.diff(block, axis=1, prepend=block.dtype.type(0))
                raw = block.astype(block.dtype.newbyteorder(order)).tobytes()
                if bits % 8:
                    raw = packed(block, bits)
                blocks.append(zlib.compress(raw) if deflate else raw)
    starts = np.cumsum([16, *(len(block) for block in blocks)]).tolist()
    form = {"u": 1, "i": 2, "f": 3}[pixels.dtype.kind]
    fields = {
        256: [width],
        257: [height],
        258: [bits or pixels.itemsize * 8] * samples,
        259: [8 if deflate else 1],
        262: [photometric],
        277: [samples],
        284: [2 if planar else 1],
        317: [predictor],
        339: [form] * samples,
    }
    places, lengths = (324, 325) if tile else (273, 279)
    fields |= {places: starts[:-1], lengths: [len(block) for block in blocks]}
    fields |= {322: [tile], 323: [tile]} if tile else {278: [16]}
    fields |= tags or {}
    return with_fields(b"".join(blocks), fields, order, big)


def packed(rows: Array, bits: int) -> bytes:
    """Pack samples of `bits` bits; each row starts at a byte."""
    big = rows.reshape(rows.shape[0], -1).astype(rows.dtype.newbyteorder(">"))
    each = np.unpackbits(np.ascontiguousarray(big).view(np.uint8), axis=1).reshape(*big.shape, -1)[:, :, -bits:]
    return np.packbits(each.reshape(rows.shape[0], -1), axis=1).tobytes()


def with_fields(data: bytes, fields: dict[int, list[int]], order: str, big: bool) -> bytes:
    """Add a TIFF header before the data (at 16) and a directory after it."""
    wide, head, size = ("Q", "Q", 20) if big else ("I", "H", 12)
    inline = struct.calcsize(wide)
    place = 16 + len(data) + struct.calcsize(head) + size * len(fields) + inline
    entries, values = b"", b""
    for tag, numbers in sorted(fields.items()):
        packed = struct.pack(f"{order}{len(numbers)}I", *numbers)
        if len(packed) > inline:
            values, packed = values + packed, struct.pack(order + wide, place + len(values))
        entries += struct.pack(f"{order}HH{wide}", tag, 4, len(numbers)) + packed.ljust(
            inline, b"\0"
        )
    mark = b"II" if order == "<" else b"MM"
    start = (43, 8, 0, 16 + len(data)) if big else (42, 16 + len(data))
    header = mark + struct.pack(order + ("HHHQ" if big else "HI"), *start)
    directory = struct.pack(order + head, len(fields)) + entries + bytes(inline)
    return header.ljust(16, b"\0") + data + directory + values


def pnm(kind: int, largest: int | None, body: bytes) -> bytes:
    size = f"{WIDTH} # a comment\n{HEIGHT}"
    return f"P{kind}\n{size}{'' if largest is None else f' {largest}'}\n".encode() + body


def bmp_16(green_bits: int) -> bytes:
    """Return a BMP of 16 bits per pixel."""
    parts = [RGB[::-1, :, c].astype("<u2") >> 8 - bits for c, bits in enumerate((5, green_bits, 5))]
    rows = (parts[0] << 5 + green_bits | parts[1] << 5 | parts[2]).astype("<u2")
    rows = np.pad(rows, [(0, 0), (0, WIDTH % 2)])
    masks = (0xF800, 0x7E0, 0x1F) if green_bits == 6 else (0x7C00, 0x3E0, 0x1F)
    header = struct.pack("<IiiHHIIiiII", 40, WIDTH, HEIGHT, 1, 16, 3, rows.nbytes, 0, 0, 0, 0)
    start = 14 + 40 + 12
    front = b"BM" + struct.pack("<IHHI", start + rows.nbytes, 0, 0, start)
    return front + header + struct.pack("<III", *masks) + rows.tobytes()


PALETTE = Image.fromarray(RGB).quantize(50)
PALETTE_RGB = np.array(PALETTE.convert("RGB"))
GRAYS = {"GRAY": GRAY, "LA": np.dstack([GRAY, ALPHA])}
LA = Image.merge("LA", [Image.fromarray(GRAY), Image.fromarray(ALPHA)])
TABLE = np.random.default_rng(2).integers(0, 65536, (256, 3)).astype(np.uint16)

WIDE_SCALE = (GRAY16 % 999 >> 8).astype(np.uint8)

# name: encoded image, the pixels that ANY_DATA must deliver in their own dtype
LOSSLESS: dict[str, tuple[bytes, Array]] = {
    "png": (encoded(RGB, "PNG"), RGB),
    "png gray": (encoded(GRAY, "PNG"), GRAY),
    "png alpha": (encoded(RGBA, "PNG"), RGBA),
    "png gray alpha": (encoded(LA, "PNG"), GRAYS["LA"]),
    "png 1 bit": (encoded(Image.fromarray(BITS * 255).convert("1"), "PNG"), BITS * 255),
    "png palette": (encoded(PALETTE, "PNG"), PALETTE_RGB),
    "png transparent palette": (encoded(PALETTE, "PNG", transparency=bytes(50)), PALETTE_RGB),
    "png transparent color": (encoded(RGB, "PNG", transparency=(1, 2, 3)), RGB),
    "png 16 bit": (png(RGB16, 2, 16), RGB16),
    "png 16 bit gray": (png(GRAY16, 0, 16), GRAY16),
    "png 16 bit alpha": (png(RGBA16, 6, 16), RGBA16),
    "png 16 bit gray alpha": (png(RGBA16[:, :, 2:], 4, 16), RGBA16[:, :, 2:]),
    "png damaged text": (png(RGB, 2, 8, b"\0\0\0\x02tEXtab????"), RGB),
    "bmp": (encoded(RGB, "BMP"), RGB),
    "bmp gray": (encoded(GRAY, "BMP"), GRAY),
    "bmp palette": (encoded(PALETTE, "BMP"), PALETTE_RGB),
    "bmp 1 bit": (encoded(Image.fromarray(BITS * 255).convert("1"), "BMP"), BITS * 255),
    "bmp 565": (bmp_16(6), RGB & np.array([0xF8, 0xFC, 0xF8], np.uint8)),
    "bmp 555": (bmp_16(5), RGB & np.uint8(0xF8)),
    "webp": (encoded(RGB, "WEBP", lossless=True), RGB),
    "webp alpha": (encoded(RGBA, "WEBP", lossless=True, exact=True), RGBA),
    "webp animation": (
        encoded(RGBA, "WEBP", lossless=True, exact=True, save_all=True, append_images=[PALETTE]),
        RGBA,
    ),
    "jp2": (encoded(RGB, "JPEG2000"), RGB),
    "jp2 gray": (encoded(GRAY, "JPEG2000"), GRAY),
    "jp2 alpha": (encoded(RGBA, "JPEG2000"), RGBA),
    "jp2 16 bit gray": (encoded(GRAY16, "JPEG2000"), GRAY16),
    "j2k codestream": (encoded(RGB, "JPEG2000", no_jp2=True), RGB),
    "pbm": (pnm(4, None, b"".join(np.packbits(row).tobytes() for row in BITS)), 255 - BITS * 255),
    "pgm": (pnm(5, 255, GRAY.tobytes()), GRAY),
    "ppm": (pnm(6, 255, RGB.tobytes()), RGB),
    "ppm plain": (pnm(3, 255, " ".join(map(str, RGB.ravel())).encode()), RGB),
    "ppm 16 bit": (pnm(6, 65535, RGB16.astype(">u2").tobytes()), RGB16),
    "pgm of another scale": (pnm(5, 100, (GRAY // 3).tobytes()), GRAY // 3),
    "pgm of a wide scale": (pnm(5, 999, (GRAY16 % 999).astype(">u2").tobytes()), WIDE_SCALE),
    "tiff": (encoded(RGB, "TIFF"), RGB),
    "tiff lzw": (encoded(RGB, "TIFF", compression="tiff_lzw"), RGB),
    "tiff fax": (
        encoded(Image.fromarray(BITS * 255).convert("1"), "TIFF", compression="group4"),
        BITS * 255,
    ),
    "tiff alpha": (encoded(RGBA, "TIFF"), RGBA),
    "tiff gray alpha": (encoded(LA, "TIFF"), GRAYS["LA"]),
    "tiff white is 0": (tiff(GRAY, 0), 255 - GRAY),
    "tiff palette": (tiff(GRAY, 3, tags={320: TABLE.T.ravel().tolist()}), TABLE[GRAY]),
    "tiff 16 bit": (tiff(RGB16, 2), RGB16),
    "tiff 16 bit big endian": (tiff(RGB16, 2, order=">"), RGB16),
    "tiff 16 bit predicted": (tiff(RGB16, 2, order=">", deflate=True, predictor=2), RGB16),
    "tiff tiled predicted": (tiff(RGBA, 2, deflate=True, predictor=2, tile=32), RGBA),
    "tiff planes": (tiff(RGB16, 2, planar=True, deflate=True), RGB16),
    "tiff 7 channels": (tiff(np.dstack([RGBA, RGB]), 2, deflate=True), np.dstack([RGBA, RGB])),
    "tiff float": (tiff((RGB / 255).astype(np.float32), 2), (RGB / 255).astype(np.float32)),
    "bigtiff": (tiff(RGB, 2, big=True), RGB),
    "bigtiff big endian": (tiff(RGBA16, 2, big=True, order=">"), RGBA16),
}

JPEGS: dict[str, bytes] = {
    "444": encoded(RGB, "JPEG", subsampling="4:4:4"),
    "420": encoded(RGB, "JPEG", subsampling="4:2:0"),
    "progressive": encoded(RGB, "JPEG", progressive=True),
    "gray": encoded(GRAY, "JPEG"),
}
