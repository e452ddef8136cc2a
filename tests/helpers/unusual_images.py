"""Unusual images as their tools write them: TIFFs, BMPs, and formats that only Pillow decodes."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
from PIL import Image

from tests.helpers.encoded_images import (
    ALPHA,
    BITS,
    GRAY,
    GRAY16,
    HEIGHT,
    PALETTE,
    PALETTE_RGB,
    RGB,
    RGB16,
    RGBA,
    TABLE,
    WIDTH,
    Array,
    encoded,
    png,
    pnm,
    tiff,
    with_fields,
)


def _deep(bits: int, channels: int = 3) -> Array:
    """Return samples of `bits` bits, in the smallest dtype that holds them."""
    size = next(size for size in (8, 16, 32, 64) if size >= bits)
    values = np.random.default_rng(bits).integers(0, 1 << bits, (HEIGHT, WIDTH, channels), np.uint64, endpoint=False)
    return values.astype(f"u{size // 8}")


def _upper(pixels: Array, bits: int) -> Array:
    """Move samples into the upper bits of their dtype; of 64 bits, keep the upper half."""
    if bits == 64:
        return (pixels >> np.uint64(32)).astype(np.uint32)
    return pixels << (pixels.itemsize * 8 - bits)


def _planes(bits: int) -> tuple[bytes, Array]:
    pixels = _deep(bits)
    return tiff(pixels, 2, planar=True, bits=bits), _upper(pixels, bits)


def _interleaved(bits: int, channels: int = 3) -> tuple[bytes, Array]:
    pixels = _deep(bits, channels)
    return tiff(pixels, 2 if channels == 3 else 1, bits=bits), _upper(pixels, bits)


def _few(bits: int, photometric: int, channels: int = 1) -> tuple[bytes, Array]:
    """Stretch gray or colors of less than eight bits."""
    pixels = _deep(bits, channels)
    levels = (pixels.astype(int) * 255 // ((1 << bits) - 1)).astype(np.uint8)
    return tiff(pixels, photometric, bits=bits), 255 - levels if photometric == 0 else levels


def _palette(bits: int, colors: int) -> tuple[bytes, Array]:
    indices = _deep(bits, 1) % colors
    table = np.resize(TABLE, (1 << bits, 3))
    return tiff(indices, 3, bits=bits, tags={320: table.T.ravel().tolist()}), table[indices[:, :, 0]]


def light(inks: Array) -> Array:
    """Return the colors of CMYK values, as DALI computes them, and an opaque alpha channel."""
    rest = 255 - inks.astype(int)
    return np.dstack([rest[:, :, :3] * rest[:, :, 3:] // 255, np.full(inks.shape[:2], 255)]).astype(np.uint8)


INKS = np.dstack([RGB, GRAY // 2])


def _by_pillow(image: Image.Image, format: str, mode: str, **options: Any) -> tuple[bytes, Array]:
    """Return an image that Pillow writes and reads, in another mode than the file's."""
    data = encoded(image, format, **options)
    return data, np.array(Image.open(io.BytesIO(data)).convert(mode))


def _inks_by_jpeg() -> tuple[bytes, Array]:
    data, inks = _by_pillow(Image.fromarray(INKS, "CMYK"), "TIFF", "CMYK", compression="jpeg")
    return data, light(inks)


def old_jpeg(**tags: list[int]) -> tuple[bytes, Array]:
    """Return a TIFF of compression 6, with a whole JPEG in the file."""
    stream, pixels = _by_pillow(Image.fromarray(RGB), "JPEG", "RGB", subsampling="4:4:4")
    fields = {256: [WIDTH], 257: [HEIGHT], 258: [8] * 3, 259: [6], 262: [6], 277: [3], 284: [1], 278: [HEIGHT]}
    fields |= {273: [16], 279: [len(stream)], 512: [1], 513: [16], 514: [len(stream)], 530: [1, 1]}
    fields |= {int(tag[1:]): values for tag, values in tags.items()}
    return with_fields(stream, fields, "<", False), pixels


def _other_tags(data: bytes) -> bytes:
    """Swap the tags of strips and tiles in a TIFF."""
    for strips, tiles in ((273, 324), (279, 325)):
        pairs = [struct.pack("<HH", tag, 4) for tag in (strips, tiles)]
        first, second = pairs if data.count(pairs[0]) == 1 else pairs[::-1]
        assert data.count(first) == 1 and not data.count(second)
        data = data.replace(first, second)
    return data


TIFFS: dict[str, tuple[bytes, Array]] = {
    "tiff tiles with the tags of strips": (_other_tags(tiff(RGB, 2, tile=16)), RGB),
    "tiff tiles of 16 bits with the tags of strips": (_other_tags(tiff(RGB16, 2, tile=16, deflate=True)), RGB16),
    "tiff strips with the tags of tiles": (_other_tags(tiff(RGB, 2, deflate=True)), RGB),
    "tiff planes in strips with the tags of tiles": (_other_tags(tiff(RGB16, 2, planar=True)), RGB16),
    **{f"tiff planes of {bits} bits": _planes(bits) for bits in (9, 10, 12, 14, 32, 64)},
    **{f"tiff of {bits} bits": _interleaved(bits) for bits in (9, 10, 12, 14, 15, 20, 31, 32, 64)},
    **{
        f"tiff of {bits} bits, big endian": (tiff(_deep(bits), 2, planar=planar, bits=bits, order=">"), _upper(_deep(bits), bits))
        for bits, planar in ((10, True), (12, False), (20, True), (64, True))
    },
    "tiff gray of 10 bits": _interleaved(10, 1),
    "tiff gray of 12 bits": _interleaved(12, 1),
    "tiff gray of 2 bits": _few(2, 1),
    "tiff gray of 4 bits": _few(4, 1),
    "tiff white is 0 of 4 bits": _few(4, 0),
    "tiff gray of 6 bits": _few(6, 1),
    "tiff of 4 bits": _few(4, 2, 3),
    "tiff of 1 bit a color": _few(1, 2, 3),
    "tiff white is 0 of 16 bits": (tiff(GRAY16, 0), GRAY16),
    "tiff signed of 16 bits": (tiff(RGB16.view(np.int16), 2), RGB16.view(np.int16)),
    "tiff signed gray of 32 bits": (tiff(GRAY16.astype(np.int32) * -9, 1), GRAY16.astype(np.int32)[:, :, None] * -9),
    "tiff signed gray of 8 bits, as Pillow takes it": (tiff(GRAY.view(np.int8), 1), GRAY),
    "tiff half floats": (tiff((RGB / 255).astype(np.float16), 2), (RGB / 255).astype(np.float16).astype(np.float32)),
    "tiff double floats in planes": (tiff(RGB / 255, 2, planar=True), (RGB / 255).astype(np.float32)),
    "tiff gray floats, big endian": (
        tiff((GRAY / 255).astype(np.float32), 1, order=">", deflate=True),
        (GRAY / 255).astype(np.float32),
    ),
    "tiff palette of 2 colors": _palette(1, 2),
    "tiff palette of 4 colors": _palette(2, 3),
    "tiff palette of 16 colors": _palette(4, 16),
    "tiff palette of 65536 colors": _palette(16, 999),
    "tiff inks": (tiff(INKS, 5), light(INKS)),
    "tiff inks in planes": (tiff(INKS, 5, planar=True), light(INKS)),
    "tiff inks as JPEG": _inks_by_jpeg(),
    "tiff old JPEG": old_jpeg(),
    "tiff old JPEG, black and white": old_jpeg(t532=[0, 255, 128, 255, 128, 255]),
    "tiff YCbCr as JPEG": _by_pillow(Image.fromarray(RGB), "TIFF", "RGB", compression="jpeg"),
    "tiff YCbCr": _by_pillow(Image.fromarray(RGB, "YCbCr"), "TIFF", "RGB", compression="tiff_lzw"),
    "tiff premultiplied": (tiff(RGBA, 2, tags={338: [1]}), RGBA),
    "tiff RGB and something": (tiff(RGBA, 2, tags={338: [0]}), RGBA),
    "tiff planes and alpha": (tiff(RGBA, 2, planar=True, tags={338: [2]}), RGBA),
    "tiff 70 channels": (tiff(np.tile(RGB, 24)[:, :, :70], 1), np.tile(RGB, 24)[:, :, :70]),
    "tiff tiles of planes": (tiff(RGB16, 2, planar=True, tile=16), RGB16),
    "bigtiff planes": (tiff(RGB16, 2, planar=True, big=True, deflate=True, predictor=2), RGB16),
    **{
        f"tiff {kind}": (encoded(Image.fromarray(BITS * 255).convert("1"), "TIFF", compression=kind), BITS * 255)
        for kind in ("group3", "tiff_ccitt", "packbits")
    },
    "tiff of two pages": (encoded(RGB, "TIFF", save_all=True, append_images=[Image.fromarray(GRAY)]), RGB),
}


def bmp(bits: int, rows: Array, masks: tuple[int, ...] = (), size: int = 40, compression: int = 3, top: bool = False) -> bytes:
    """Return a BMP with bit fields, and a header of `size` bytes."""
    count = 3 if size == 40 and compression == 3 else 4
    fields = b"".join(struct.pack("<I", mask) for mask in (*masks, 0, 0, 0, 0)[:count]).ljust(size - 40, b"\0")
    data = np.pad(rows, [(0, 0), (0, rows.shape[1] * bits // 8 % 4 // 2)]).tobytes()
    height = -rows.shape[0] if top else rows.shape[0]
    header = struct.pack("<IiiHHIIiiII", size, rows.shape[1], height, 1, bits, compression, len(data), 0, 0, 0, 0)
    start = 14 + len(header) + len(fields)
    return b"BM" + struct.pack("<IHHI", start + len(data), 0, 0, start) + header + fields + data


LAYOUTS: dict[str, tuple[int, tuple[int, ...]]] = {
    "4444": (16, (0xF00, 0xF0, 0xF, 0xF000)),
    "444": (16, (0xF00, 0xF0, 0xF)),
    "332": (16, (0xE0, 0x1C, 0x3)),
    "655": (16, (0xFC00, 0x3E0, 0x1F)),
    "blue first": (16, (0x1F, 0x7E0, 0xF800)),
    "1555": (16, (0x7C00, 0x3E0, 0x1F, 0x8000)),
    "RGBA": (32, (0xFF, 0xFF00, 0xFF0000, 0xFF000000)),
    "ARGB": (32, (0xFF00, 0xFF0000, 0xFF000000, 0xFF)),
    "XBGR": (32, (0xFF000000, 0xFF0000, 0xFF00)),
    "10 bits": (32, (0x3FF00000, 0xFFC00, 0x3FF)),
    "11 bits": (32, (0xFFE00000, 0x1FFC00, 0x3FF)),
    "between": (32, (0x7F8, 0x7F800, 0x7F80000)),
}


def _fields(name: str, size: int, top: bool = False) -> tuple[bytes, Array]:
    """Return a BMP of any layout; each channel is stretched to full scale."""
    bits, masks = LAYOUTS[name]
    rows = np.random.default_rng(bits).integers(0, 1 << bits, (9, 7), np.uint64).astype(f"<u{bits // 8}")
    if size == 40:
        masks = masks[:3]
    channels = []
    for mask in masks:
        shift = (mask & -mask).bit_length() - 1
        channels.append((rows.astype(int) & mask) >> shift)
        channels[-1] = channels[-1] * 255 // (mask >> shift)
    pixels = np.dstack(channels).astype(np.uint8)
    return bmp(bits, rows, masks, size, top=top), pixels if top else pixels[::-1]


def run_lengths() -> tuple[bytes, Array]:
    """Return 8-bit run lengths, with single values, a jump, and an early end."""
    runs = b"\x03\x05\x00\x04\x01\x02\x03\x04\x00\x00" + b"\x00\x02\x02\x01" + b"\x05\x09\0\0" + b"\0\1"
    table = TABLE.astype(np.uint8)
    colors = np.pad(table[:, ::-1], [(0, 0), (0, 1)]).tobytes()
    header = struct.pack("<IiiHHIIiiII", 40, 7, 5, 1, 8, 1, len(runs), 0, 0, 256, 0)
    front = b"BM" + struct.pack("<IHHI", 54 + 1024 + len(runs), 0, 0, 54 + 1024)
    indices = np.zeros((5, 7), int)
    indices[4] = [5, 5, 5, 1, 2, 3, 4]
    indices[2, 2:7] = 9
    return front + header + colors + runs, table[indices]


BMPS: dict[str, tuple[bytes, Array]] = {
    **{f"bmp {name}, header of {size}": _fields(name, size) for name in LAYOUTS for size in (40, 56, 108, 124) if (name, size) != ("1555", 40)},
    "bmp 4444 from the top": _fields("4444", 124, top=True),
    "bmp 10 bits from the top, header of 40": _fields("10 bits", 40, top=True),
    "bmp run lengths": run_lengths(),
}

IMAGE = Image.fromarray(RGB)
LAYERED = Image.fromarray(RGBA, "RGBA")
ICON = LAYERED.resize((48, 48))
GIF = IMAGE.quantize(60)

OTHERS: dict[str, tuple[bytes, Array]] = {
    "gif": (encoded(GIF, "GIF"), np.array(GIF.convert("RGB"))),
    "gif animation": (encoded(GIF, "GIF", save_all=True, append_images=[GIF.rotate(180)]), np.array(GIF.convert("RGB"))),
    "gif gray": (encoded(GRAY, "GIF"), np.dstack([GRAY] * 3)),
    "gif transparent": (encoded(PALETTE, "GIF", transparency=3), PALETTE_RGB),
    "tga": (encoded(RGB, "TGA"), RGB),
    "tga alpha, run lengths": (encoded(LAYERED, "TGA", compression="tga_rle"), RGBA),
    "ico": (encoded(ICON, "ICO", sizes=[(48, 48)]), np.array(ICON)),
    "ico of bitmaps": (encoded(ICON, "ICO", sizes=[(48, 48)], bitmap_format="bmp"), np.array(ICON)),
    "pcx": (encoded(RGB, "PCX"), RGB),
    "pcx palette": (encoded(PALETTE, "PCX"), PALETTE_RGB),
    "dds": (encoded(LAYERED, "DDS"), RGBA),
    "sgi": (encoded(RGB, "SGI"), RGB),
    "pfm": (
        f"Pf\n{WIDTH} {HEIGHT}\n-1.0\n".encode() + (GRAY[::-1] / 255).astype("<f4").tobytes(),
        (GRAY / 255).astype(np.float32),
    ),
    "xbm": (encoded(Image.fromarray(BITS * 255).convert("1"), "XBM"), BITS * 255),
    "pbm plain": (pnm(1, None, " ".join(map(str, (1 - BITS).ravel())).encode()), BITS * 255),
    "png gray of 2 bits": (png(np.packbits(BITS, axis=1)[:, :16], 0, 8), np.packbits(BITS, axis=1)[:, :16]),
    "png animation": (encoded(RGB, "PNG", save_all=True, append_images=[IMAGE.rotate(180)]), RGB),
    "j2k alpha": (encoded(LAYERED, "JPEG2000", no_jp2=True), RGBA),
    "j2k tiles with offsets": (
        encoded(RGB, "JPEG2000", offset=(3, 5), tile_offset=(1, 2), tile_size=(16, 16)), RGB,
    ),
    "webp gray and alpha": (
        encoded(Image.merge("RGBA", [*[Image.fromarray(GRAY)] * 3, Image.fromarray(ALPHA)]), "WEBP", lossless=True, exact=True),
        np.dstack([GRAY, GRAY, GRAY, ALPHA]),
    ),
}  # fmt: skip
if "AVIF" in Image.SAVE:  # Pillow before 11.3 has none
    OTHERS["avif"] = _by_pillow(IMAGE, "AVIF", "RGB")
    OTHERS["avif alpha"] = _by_pillow(LAYERED, "AVIF", "RGBA")
if "QOI" in Image.SAVE:
    OTHERS["qoi"] = (encoded(RGB, "QOI"), RGB)

UNUSUAL = TIFFS | BMPS | OTHERS
