"""Decoding of images made here: every format, output type and element type, and damaged data."""

from __future__ import annotations

import importlib
import io
import random
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image, ImageOps
from torch import Tensor

from tests.data import folder
from torchdali.codecs import _image_formats, image_crops, images
from torchdali.codecs._image_orientation import stored_window, turn, upright_window
from torchdali.errors import DecodeError, MissingExtraError

Array = npt.NDArray[Any]

HEIGHT, WIDTH = 45, 61


def picture(height: int = HEIGHT, width: int = WIDTH) -> Array:
    """A smooth RGB picture with some noise: no two rows, columns or channels alike."""
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    waves = np.stack([np.sin(7 * x + y), np.cos(5 * y - 2 * x), np.sin(9 * x * y + 1)], axis=2)
    noise = np.random.default_rng(1).integers(-8, 9, waves.shape)
    return (127 + 110 * waves + noise).clip(0, 255).astype(np.uint8)


RGB = picture()
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
    tags: dict[int, list[int]] | None = None,
) -> bytes:
    """Write a TIFF of any kind, in strips of 16 rows or in tiles."""
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
                blocks.append(zlib.compress(raw) if deflate else raw)
    starts = np.cumsum([16, *(len(block) for block in blocks)]).tolist()
    form = 3 if pixels.dtype.kind == "f" else 1
    fields = {
        256: [width],
        257: [height],
        258: [pixels.itemsize * 8] * samples,
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
    return _with_fields(b"".join(blocks), fields, order, big)


def _with_fields(data: bytes, fields: dict[int, list[int]], order: str, big: bool) -> bytes:
    """Put a TIFF header before the data (at 16) and a directory behind it."""
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
    """A BMP of 16 bits a pixel."""
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

# name: encoded, the pixels that ANY_DATA must deliver in their own type
LOSSLESS: dict[str, tuple[bytes, Array]] = {
    "png": (encoded(RGB, "PNG"), RGB),
    "png gray": (encoded(GRAY, "PNG"), GRAY),
    "png alpha": (encoded(RGBA, "PNG"), RGBA),
    "png gray alpha": (encoded(LA, "PNG"), GRAYS["LA"]),
    "png 1 bit": (encoded(Image.fromarray(BITS * 255).convert("1"), "PNG"), BITS * 255),
    "png palette": (encoded(PALETTE, "PNG"), PALETTE_RGB),
    "png transparent palette": (encoded(PALETTE, "PNG", transparency=bytes(50)), PALETTE_RGB),
    "png transparent colour": (encoded(RGB, "PNG", transparency=(1, 2, 3)), RGB),
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


@pytest.mark.parametrize("name", LOSSLESS)
def test_lossless_formats_keep_every_value(name: str) -> None:
    data, expected = LOSSLESS[name]
    if expected.ndim == 2:
        expected = expected[:, :, None]
    dtype = torch.from_numpy(expected[:1].copy()).dtype
    got = images.decode(tensor(data), output_type="ANY_DATA", dtype=dtype)
    assert got.is_contiguous()
    np.testing.assert_array_equal(got.numpy(), expected)


@pytest.mark.parametrize("name", LOSSLESS)
@pytest.mark.parametrize("output_type", ["RGB", "GRAY", "ANY_DATA"])
def test_peek_tells_the_shape(name: str, output_type: str) -> None:
    data = LOSSLESS[name][0]
    shape = tuple(images.decode(tensor(data), output_type=output_type).shape)
    assert images.peek_shape(data, image_type=output_type) == shape
    assert images.peek_shape(tensor(data), image_type=output_type) == shape


@pytest.mark.parametrize("name", JPEGS)
def test_jpeg_is_what_libjpeg_makes(name: str) -> None:
    data = tensor(JPEGS[name])
    expected = Image.open(io.BytesIO(JPEGS[name]))
    got = images.decode(data)
    assert got.is_contiguous() and got.shape == (HEIGHT, WIDTH, 3)
    np.testing.assert_array_equal(got.numpy(), np.array(expected.convert("RGB")))
    luma = Image.open(io.BytesIO(JPEGS[name]))
    luma.draft("L", luma.size)
    gray = images.decode(data, output_type="GRAY")
    np.testing.assert_array_equal(gray.numpy()[:, :, 0], np.array(luma))
    wide = images.decode(data, output_type="GRAY", dtype=torch.uint16)
    assert torch.equal(wide.int(), gray.int() * 257)


def test_jpeg_of_inks() -> None:
    """Light is the product of what two inks let through; a file without Adobe's mark holds ink."""
    inks = np.dstack([RGB, GRAY // 2])
    adobe = encoded(Image.fromarray(inks, "CMYK"), "JPEG", quality=100, subsampling="4:4:4")
    light = 255 - inks.astype(int)
    expected = light[:, :, :3] * light[:, :, 3:] // 255
    got = images.decode(tensor(adobe)).numpy().astype(int)
    assert np.abs(got - expected).max() < 8
    start = adobe.index(b"\xff\xee")
    plain = adobe[:start] + adobe[start + 16 :]  # what was light is ink now
    swapped = inks.astype(int)[:, :, :3] * inks.astype(int)[:, :, 3:] // 255
    got = images.decode(tensor(plain)).numpy().astype(int)
    assert np.abs(got - swapped).max() < 8
    assert images.decode(tensor(adobe), output_type="GRAY").shape == (HEIGHT, WIDTH, 1)


def test_output_types() -> None:
    data = tensor(encoded(RGB, "BMP"))
    rgb = torch.from_numpy(RGB)
    assert torch.equal(images.decode(data), rgb)
    assert torch.equal(images.decode(data, output_type="BGR"), rgb.flip(2))
    luma = (rgb.double() * torch.tensor([0.299, 0.587, 0.114])).sum(2, keepdim=True)
    gray = images.decode(data, output_type="GRAY")
    assert gray.shape == (HEIGHT, WIDTH, 1) and (gray - luma).abs().max() <= 0.51
    to_ycbcr = torch.tensor(
        [[0.25678824, 0.50412941, 0.09790588], [-0.1482229, -0.29099279, 0.43921569]],
        dtype=torch.float64,
    )
    ycbcr = images.decode(data, output_type="YCbCr")
    expected = rgb.double() @ to_ycbcr.T + torch.tensor([16.0, 128.0], dtype=torch.float64)
    assert (ycbcr[:, :, :2] - expected).abs().max() <= 0.51
    gray_file = tensor(encoded(GRAY, "PNG"))
    assert torch.equal(
        images.decode(gray_file), torch.from_numpy(GRAY)[:, :, None].expand(-1, -1, 3)
    )
    assert (images.decode(gray_file, output_type="YCbCr")[:, :, 1:] == 128).all()


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (100, torch.uint16, 25700),
        (100, torch.float32, 0.392157),
        (100, torch.int8, 50),
        (100, torch.int16, 12850),
        (255, torch.int32, 2147483647),
        (255, torch.uint32, 4294967295),
        (255, torch.float32, 1.0),
    ],
)
def test_values_are_rescaled(value: int, dtype: torch.dtype, expected: float) -> None:
    pixels = images.decode(tensor(encoded(np.full((2, 3), value, np.uint8), "PNG")), dtype=dtype)
    assert pixels.dtype == dtype and pixels.shape == (2, 3, 3)
    assert pixels.numpy() == pytest.approx(expected, rel=1e-6)


def test_16_bits_are_rescaled() -> None:
    data = tensor(png(np.full((1, 1), 1000), 0, 16))
    assert images.decode(data).flatten().tolist() == [4, 4, 4]
    assert images.decode(data, dtype=torch.float32).numpy() == pytest.approx(1000 / 65535, rel=1e-6)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_orientation(format: str, orientation: int) -> None:
    turned = tiff(RGB, 2, tags={274: [orientation]})
    data = turned if format == "TIFF" else encoded(RGB, format, exif=exif(orientation))
    expected = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
    got = images.decode(tensor(data))
    np.testing.assert_array_equal(got.numpy(), np.array(expected))
    assert got.is_contiguous()
    assert images.peek_shape(data) == tuple(got.shape)
    stored = images.decode(tensor(data), adjust_orientation=False)
    assert stored.shape == (HEIGHT, WIDTH, 3)
    assert images.peek_shape(data, adjust_orientation=False) == (HEIGHT, WIDTH, 3)
    assert torch.equal(turn(stored, orientation), got)


def block(order: str, kind: int, value: bytes, count: int = 1, entries: int = 1) -> bytes:
    """An EXIF block with one entry, the orientation."""
    head = b"II*\0" if order == "<" else b"MM\0*"
    entry = struct.pack(order + "HHI", 0x0112, kind, count) + value.ljust(4, b"\0")
    return head + struct.pack(order + "IH", 8, entries) + entry


@pytest.mark.parametrize(
    ("made", "turned"),
    [
        (block("<", 3, b"\x06\0"), True),
        (block(">", 3, b"\0\x06"), True),
        (block("<", 4, b"\x06\0\0\0"), True),
        (block("<", 1, b"\x06"), True),
        (block(">", 4, b"\0\0\0\x06"), False),
        (block("<", 3, b"\x06\0", count=2), True),
        (block("<", 3, b"\x09\0"), False),
        (block("<", 3, b"\0\0"), False),
        (block("<", 3, b"\x06\0", entries=50), False),
        (b"IM" + block("<", 3, b"\x06\0")[2:], False),
        (block("<", 3, b"\x06\0")[:-6], False),
        (b"", False),
    ],
)
def test_unusual_exif(made: bytes, turned: bool) -> None:
    segment = b"\xff\xe1" + struct.pack(">H", len(made) + 8) + b"Exif\0\0" + made
    data = JPEGS["420"][:2] + segment + JPEGS["420"][2:]
    shape = (WIDTH, HEIGHT, 3) if turned else (HEIGHT, WIDTH, 3)
    assert images.peek_shape(data) == shape
    assert images.decode(tensor(data)).shape == shape


def huge(data: bytes, position: int, form: str, width: int = 60000, height: int = 60000) -> bytes:
    changed = bytearray(data)
    struct.pack_into(form, changed, position, width, height)
    return bytes(changed)


def huge_png() -> bytes:
    header = b"IHDR" + struct.pack(">II", 60000, 60000) + encoded(RGB, "PNG")[24:29]
    data = encoded(RGB, "PNG")
    return data[:12] + header + struct.pack(">I", zlib.crc32(header)) + data[33:]


HUGE = {
    "jpeg": huge(JPEGS["420"], JPEGS["420"].index(b"\xff\xc0") + 5, ">HH"),
    "progressive": huge(JPEGS["progressive"], JPEGS["progressive"].index(b"\xff\xc2") + 5, ">HH"),
    "png": huge_png(),
    "bmp": huge(LOSSLESS["bmp"][0], 18, "<ii"),
    "tiff": tiff(RGB, 2, tags={256: [60000], 257: [60000]}),
    "tiff channels": tiff(RGB, 2, tags={256: [16000], 257: [16000], 277: [60]}),
    "webp": huge(encoded(RGB, "WEBP"), 26, "<HH", 16000, 16000),
    "jp2": huge(LOSSLESS["jp2"][0], LOSSLESS["jp2"][0].index(b"\xff\x4f\xff\x51") + 8, ">II"),
    "ppm": b"P6 60000 60000 255\n" + RGB.tobytes(),
}

TRUNCATED = {
    "jpeg": JPEGS["420"],
    "progressive jpeg": JPEGS["progressive"],
    "png": LOSSLESS["png"][0],
    "webp": LOSSLESS["webp"][0],
    "bmp": LOSSLESS["bmp"][0],
    "jp2": LOSSLESS["jp2"][0],
    "ppm": LOSSLESS["ppm"][0],
    "tiff": encoded(RGB, "TIFF"),
}


@pytest.mark.parametrize("name", HUGE)
def test_absurd_sizes_are_refused(name: str) -> None:
    for call in (lambda: images.decode(tensor(HUGE[name])), lambda: images.peek_shape(HUGE[name])):
        with pytest.raises(DecodeError, match=r"claims 60000 x 60000|claims 16000 x 16000"):
            call()


@pytest.mark.parametrize("name", TRUNCATED)
@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_truncated_files_are_errors(name: str, share: float, capfd: Any) -> None:
    data = TRUNCATED[name][: int(len(TRUNCATED[name]) * share)]
    with pytest.raises(DecodeError, match=rf"format \w[\w ]*, {len(data)} bytes") as caught:
        images.decode(tensor(data))
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("cut", [1, 2])
def test_a_jpeg_needs_its_end(cut: int) -> None:
    """The last bytes mark the end: without them DALI does not decode either."""
    with pytest.raises(DecodeError, match="truncated"):
        images.decode(tensor(JPEGS["420"][:-cut]))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"hello, this is a text file\n", "unknown format"),
        (b"\xff", "unknown format"),
        (bytes(range(7, 207)), "unknown format"),
        (b"\xff\xd8\xff", "no frame header"),
        (b"\xff\xd8\xff\xe0" + b"\xff" * 100, "no frame header"),
        (b"BM", "truncated or damaged"),
        (b"II*\0\xff\xff\xff\xff", "truncated or damaged"),
        (b"RIFF\0\0\0\0WEBPVP8X", "truncated or damaged"),
        (b"P6\n", "truncated or damaged"),
        (b"P6 0 5 255\n", "no pixels"),
        (b"GIF89a" + bytes(100), "unknown format"),
        (b"\x89PNG\r\n\x1a\n" + bytes(30), "truncated or damaged"),
    ],
)
def test_what_is_not_an_image(data: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        images.decode(tensor(data))
    with pytest.raises(DecodeError, match=reason):
        images.peek_shape(data)


def test_a_damaged_png_stream_does_not_end_the_process(capfd: Any) -> None:
    """torchvision's own decoder does: hence it is not used for PNG."""
    data = bytearray(LOSSLESS["png"][0])
    start = data.index(b"IDAT")
    (length,) = struct.unpack_from(">I", data, start - 4)
    for change in (10, length // 2):
        broken = bytearray(data)
        broken[start + change] ^= 0xFF
        with pytest.raises(DecodeError, match="checksum of the chunk IDAT"):
            images.decode(tensor(broken))
        checksum = zlib.crc32(broken[start : start + 4 + length])
        struct.pack_into(">I", broken, start + 4 + length, checksum)
        with pytest.raises(DecodeError, match="format PNG"):
            images.decode(tensor(broken))
    assert capfd.readouterr().err == ""


def damaged(data: bytes, chance: random.Random) -> bytes:
    broken = bytearray(data)
    kind = chance.randrange(4)
    if kind == 0:
        return bytes(broken[: chance.randrange(len(broken))])
    if kind == 1:
        start = chance.randrange(len(broken))
        del broken[start : start + chance.randrange(1, 100)]
        return bytes(broken)
    reach = len(broken) if kind == 2 else min(200, len(broken))
    for _ in range(chance.randrange(1, 6)):
        broken[chance.randrange(reach)] = chance.randrange(256)
    return bytes(broken)


CALLS: list[Callable[[Tensor], object]] = [
    lambda data: images.decode(data, output_type="ANY_DATA"),
    lambda data: images.decode(data, output_type="GRAY", dtype=torch.float32),
    images.peek_shape,
    lambda data: image_crops.decode_scaled_crop(data, 0, 0, 8, 8, 2, 2),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", [*LOSSLESS, *JPEGS])
def test_damaged_data_raises_nothing_else(name: str) -> None:
    data = JPEGS.get(name) or LOSSLESS[name][0]
    chance = random.Random(name)
    for _ in range(25):
        broken = tensor(damaged(data, chance))
        for call in CALLS:
            try:
                call(broken)
            except DecodeError as error:
                assert "\n" not in str(error)
            except ValueError as error:
                assert "leaves the image" in str(error)


def test_many_threads() -> None:
    work = [*(data for data, _ in LOSSLESS.values()), *JPEGS.values()] * 3
    expected = [images.decode(tensor(data)) for data in work]
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda data: images.decode(tensor(data)), work))
    assert all(torch.equal(a, b) for a, b in zip(expected, got, strict=True))


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda d: images.decode(d, output_type="rgb"), "unknown output type 'rgb'"),
        (lambda d: images.decode(d, dtype=torch.float64), "cannot be decoded to torch.float64"),
        (lambda d: images.decode(d[None]), "1-D uint8"),
        (lambda d: images.decode(d.float()), "1-D uint8"),
        (lambda d: images.decode(d[::2]), "contiguous"),
        (lambda d: images.peek_shape(d[None]), "1-D uint8"),
    ],
)
def test_wrong_calls(call: Callable[[Tensor], object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        call(tensor(JPEGS["420"]))


def test_opencv_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = tensor(tiff((RGB16 // 16).astype(np.uint32), 2))
    real = importlib.import_module

    def without_opencv(name: str, *args: Any) -> Any:
        if name == "cv2":
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(importlib, "import_module", without_opencv)
    with pytest.raises(MissingExtraError, match=r"TIFF.*torchdali\[image\]"):
        images.decode(data)


def test_jpeg_2000_of_16_bits() -> None:
    cv2 = pytest.importorskip("cv2", reason="needs OpenCV: pip install 'torchdali[image]'")
    data = cv2.imencode(".jp2", RGB16[:, :, ::-1], [cv2.IMWRITE_JPEG2000_COMPRESSION_X1000, 1000])[
        1
    ]
    got = images.decode(tensor(data.tobytes()), dtype=torch.uint16)
    np.testing.assert_array_equal(got.numpy(), RGB16)
    with pytest.raises(DecodeError, match="format JPEG 2000"):
        images.decode(tensor(data.tobytes()[:200]))


def test_it_works_without_torchvision(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A torchvision that does not fit torch cannot be loaded: Pillow gives the same pixels."""
    inks = Image.fromarray(np.dstack([RGB, GRAY // 2]), "CMYK")
    work = [
        *JPEGS.values(),
        encoded(inks, "JPEG"),
        encoded(RGB, "JPEG", exif=exif(6)),
        LOSSLESS["webp alpha"][0],
    ]
    kinds = ("RGB", "GRAY")
    expected = [images.decode(tensor(data), output_type=kind) for data in work for kind in kinds]
    monkeypatch.setattr(images, "_decode_jpeg", None)
    monkeypatch.setattr(images, "_read_mapped", None)
    for module in (images, _image_formats):
        monkeypatch.setattr(module, "image_operator", lambda name: None)
    got = [images.decode(tensor(data), output_type=kind) for data in work for kind in kinds]
    assert all(torch.equal(a, b) for a, b in zip(expected, got, strict=True))
    with pytest.raises(DecodeError, match="format JPEG"):
        images.decode(tensor(JPEGS["420"][:-300]))
    (tmp_path / "a.jpg").write_bytes(JPEGS["420"])
    assert bytes(images.read_file(tmp_path / "a.jpg")) == JPEGS["420"]


def test_libraries_are_loaded_when_they_are_needed() -> None:
    """Importing the module costs neither torchvision nor Pillow; decoding does not import them all."""
    program = """
import sys, torch
from torchdali.codecs import images
assert not {"PIL", "torchvision", "cv2"} & set(sys.modules), "imported too early"
images.decode(torch.frombuffer(bytearray(sys.stdin.buffer.read()), dtype=torch.uint8))
assert not {"PIL", "torchvision", "cv2"} & set(sys.modules), "a JPEG needs none of them"
"""
    command = [sys.executable, "-c", program]
    subprocess.run(command, input=JPEGS["420"], check=True, cwd=Path(__file__).parents[1])


@pytest.mark.parametrize("name", ["a.jpg", "ä ö.jpg", "日本.jpg"])
def test_read_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(JPEGS["420"])
    for given in (path, str(path)):
        data = images.read_file(given)
        assert data.dtype == torch.uint8 and data.dim() == 1
        assert bytes(data) == JPEGS["420"]


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"missing\.jpg"):
        images.read_file(tmp_path / "missing.jpg")
    with pytest.raises(IsADirectoryError):
        images.read_file(tmp_path)
    (tmp_path / "empty.jpg").touch()
    with pytest.raises(DecodeError, match=r"empty\.jpg is empty"):
        images.read_file(tmp_path / "empty.jpg")


# --- windows of large photos


@pytest.fixture
def photo() -> Array:
    return picture(400, 560)


@pytest.fixture
def with_simplejpeg() -> None:
    pytest.importorskip("simplejpeg", reason="needs simplejpeg: pip install 'torchdali[image]'")


WINDOWS = [(0, 0, 400, 560), (16, 24, 320, 240), (13, 57, 201, 333), (399, 559, 1, 1)]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("large", [True, False])
@pytest.mark.parametrize("format", ["JPEG", "PNG"])
def test_decode_crop_is_exact(
    photo: Array,
    window: tuple[int, int, int, int],
    large: bool,
    format: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if large:
        monkeypatch.setattr(image_crops, "LARGE_PIXELS", 1)
    data = tensor(encoded(photo, format))
    y, x, h, w = window
    expected = images.decode(data)[y : y + h, x : x + w]
    assert torch.equal(image_crops.decode_crop(data, *window), expected)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("large", [True, False])
def test_crops_of_turned_photos(
    photo: Array, orientation: int, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        monkeypatch.setattr(image_crops, "LARGE_PIXELS", 1)
    data = tensor(encoded(photo, "JPEG", exif=exif(orientation)))
    whole = images.decode(data)
    window = (13, 57, 201, 333)
    y, x, h, w = window
    got = image_crops.decode_crop(data, *window)
    assert torch.equal(got, whole[y : y + h, x : x + w])
    check_scaled(data, whole, (16, 24, 320, 240), (70, 60), 4)
    check_scaled(data, whole, window, (100, 160), 2)


def check_scaled(
    data: Tensor,
    whole: Tensor,
    window: tuple[int, int, int, int],
    target: tuple[int, int],
    scale: int,
) -> None:
    """Compare with the mean of the pixels for which each scaled one stands."""
    crop = image_crops.decode_scaled_crop(data, *window, *target)
    assert crop.scale == scale
    assert (crop.h, crop.w) == (window[2] / scale, window[3] / scale)
    assert 0 <= crop.y < 8 / scale and 0 <= crop.x < 8 / scale
    top, left = window[0] - crop.y * scale, window[1] - crop.x * scale
    assert top == int(top) and left == int(left)
    height, width = (n * scale for n in crop.pixels.shape[:2])
    part = whole[int(top) : int(top) + height, int(left) : int(left) + width].double()
    height, width = part.shape[0] // scale, part.shape[1] // scale
    blocks = part[: height * scale, : width * scale].reshape(height, scale, width, scale, 3)
    difference = (blocks.mean((1, 3)) - crop.pixels[:height, :width]).abs()
    assert difference.mean() < 2


@pytest.mark.parametrize(
    ("target", "scale"),
    [((320, 240), 1), ((161, 100), 1), ((160, 120), 2), ((80, 60), 4), ((40, 30), 8), ((1, 1), 8)],
)
@pytest.mark.parametrize("library", ["simplejpeg", "Pillow"])
def test_scaled_crops(
    photo: Array,
    target: tuple[int, int],
    scale: int,
    library: str,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if library == "simplejpeg":
        request.getfixturevalue("with_simplejpeg")
    else:
        monkeypatch.setattr(image_crops, "_simplejpeg", lambda: None)
    data = tensor(encoded(photo, "JPEG"))
    check_scaled(data, images.decode(data), (16, 24, 320, 240), target, scale)


@pytest.mark.parametrize("kind", ["PNG", "CMYK", "gray"])
def test_scaled_crops_of_other_images(photo: Array, kind: str) -> None:
    if kind == "PNG":
        data, scale = tensor(encoded(photo, "PNG")), 1
    elif kind == "CMYK":
        data, scale = tensor(encoded(Image.fromarray(photo).convert("CMYK"), "JPEG")), 1
    else:
        data, scale = tensor(encoded(photo[:, :, 0].copy(), "JPEG")), 4
    crop = image_crops.decode_scaled_crop(data, 16, 24, 320, 240, 80, 60)
    assert crop.scale == scale and crop.pixels.shape == (320 // scale, 240 // scale, 3)
    if scale == 1:
        assert torch.equal(crop.pixels, images.decode(data)[16:336, 24:264])


def test_a_crop_is_the_callers_own(
    photo: Array, with_simplejpeg: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kept buffer is overwritten by the next image, what was returned is not."""
    monkeypatch.setattr(image_crops, "LARGE_PIXELS", 1)
    first, second = tensor(encoded(photo, "JPEG")), tensor(encoded(photo[::-1], "JPEG"))
    crop = image_crops.decode_crop(first, 0, 0, 400, 560)
    image_crops.decode_crop(second, 0, 0, 400, 560)
    assert torch.equal(crop, images.decode(first))
    assert image_crops._kept.buffer.size >= 400 * 560 * 3
    with ThreadPoolExecutor(4) as pool:
        for a, b in pool.map(
            lambda _: [image_crops.decode_crop(d, 5, 5, 300, 400) for d in (first, second)],
            range(16),
        ):
            assert torch.equal(a, images.decode(first)[5:305, 5:405])
            assert torch.equal(b, images.decode(second)[5:305, 5:405])


@pytest.mark.parametrize("window", [(0, 0, 401, 1), (-1, 0, 5, 5), (0, 550, 5, 11), (0, 0, 0, 5)])
def test_windows_outside(photo: Array, window: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="leaves the image of 400 x 560"):
        image_crops.decode_crop(tensor(encoded(photo, "JPEG")), *window)


@pytest.mark.parametrize("target", [(400, 560), (40, 56)])
def test_crops_of_truncated_photos(photo: Array, target: tuple[int, int]) -> None:
    data = encoded(photo, "JPEG")
    with pytest.raises(DecodeError, match="truncated"):
        image_crops.decode_scaled_crop(tensor(data[: len(data) // 2]), 0, 0, 400, 560, *target)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_windows_turn_with_their_image(orientation: int) -> None:
    stored = torch.arange(7 * 11).reshape(7, 11, 1)
    upright = turn(stored, orientation)
    size = (upright.shape[0], upright.shape[1])
    for window in [(0, 0, *size), (1, 2, 3, 4), (4, 5, 2, 1)]:
        y, x, h, w = window
        place = stored_window(window, size, orientation)
        sy, sx, sh, sw = place
        part = turn(stored[sy : sy + sh, sx : sx + sw], orientation)
        assert torch.equal(part, upright[y : y + h, x : x + w])
        assert upright_window(place, (7, 11), orientation) == window


def test_real_files() -> None:
    """Every file of the collection decodes to the shape that its header promises."""
    pytest.importorskip("cv2", reason="needs OpenCV: pip install 'torchdali[image]'")
    files = sorted(path for path in folder("formats").rglob("*") if path.is_file())
    assert len(files) > 40
    for path in files:
        data = images.read_file(path)
        for kind in ("RGB", "GRAY", "ANY_DATA"):
            shape = tuple(images.decode(data, output_type=kind).shape)
            assert images.peek_shape(data, image_type=kind) == shape, path.name
