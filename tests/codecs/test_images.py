"""Decoding of generated images: every format, output type and dtype, and damaged data."""

from __future__ import annotations

import io
import random
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from torch import Tensor

from tests.helpers.data import folder
from tests.helpers.encoded_images import (
    GRAY,
    HEIGHT,
    JPEGS,
    LOSSLESS,
    RGB,
    RGB16,
    WIDTH,
    encoded,
    exif,
    exif_block,
    png,
    tensor,
    tiff,
)
from tests.helpers.hidden import hidden
from torchdali.codecs import image_crops, images
from torchdali.codecs.files import read_file
from torchdali.errors import DecodeError, MissingExtraError
from torchdali.installation import extra_command


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
def test_peek_returns_the_shape(name: str) -> None:
    for output_type in ["RGB", "GRAY", "ANY_DATA"]:
        data = LOSSLESS[name][0]
        shape = tuple(images.decode(tensor(data), output_type=output_type).shape)
        assert images.peek_shape(data, image_type=output_type) == shape
        assert images.peek_shape(tensor(data), image_type=output_type) == shape


@pytest.mark.parametrize("name", JPEGS)
def test_jpeg_decodes_as_by_libjpeg(name: str) -> None:
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


def test_cmyk_jpeg() -> None:
    """A color is the product of the transmittances of two inks; a file without Adobe's marker stores ink."""
    inks = np.dstack([RGB, GRAY // 2])
    adobe = encoded(Image.fromarray(inks, "CMYK"), "JPEG", quality=100, subsampling="4:4:4")
    light = 255 - inks.astype(int)
    expected = light[:, :, :3] * light[:, :, 3:] // 255
    got = images.decode(tensor(adobe)).numpy().astype(int)
    assert np.abs(got - expected).max() < 8
    start = adobe.index(b"\xff\xee")
    plain = adobe[:start] + adobe[start + 16 :]  # inverted values
    swapped = inks.astype(int)[:, :, :3] * inks.astype(int)[:, :, 3:] // 255
    got = images.decode(tensor(plain)).numpy().astype(int)
    assert np.abs(got - swapped).max() < 8
    assert images.decode(tensor(adobe), output_type="GRAY").shape == (HEIGHT, WIDTH, 1)
    stored = images.decode(tensor(adobe), output_type="ANY_DATA").numpy().astype(int)
    assert np.abs(stored - light).max() < 8
    assert images.peek_shape(adobe, image_type="ANY_DATA") == stored.shape


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


def test_large_pngs_drop_alpha() -> None:
    for size in ((30, 20), (600, 500)):  # the second is copied in parts
        pixels = np.random.default_rng(0).integers(0, 256, (*size, 4), np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels, "RGBA").save(file, "PNG")
        decoded = images.decode(tensor(file.getvalue()))
        assert np.array_equal(decoded.numpy(), pixels[:, :, :3])
        assert decoded.is_contiguous()
        kept = images.decode(tensor(file.getvalue()), output_type="ANY_DATA")
        assert np.array_equal(kept.numpy(), pixels)


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
    assert torch.equal(stored, images.decode(tensor(tiff(RGB, 2) if format == "TIFF" else encoded(RGB, format))))
    assert images.peek_shape(data, adjust_orientation=False) == (HEIGHT, WIDTH, 3)


@pytest.mark.parametrize(
    ("made", "turned"),
    [
        (exif_block("<", 3, b"\x06\0"), True),
        (exif_block(">", 3, b"\0\x06"), True),
        (exif_block("<", 4, b"\x06\0\0\0"), True),
        (exif_block("<", 1, b"\x06"), True),
        (exif_block(">", 4, b"\0\0\0\x06"), False),
        (exif_block("<", 3, b"\x06\0", count=2), True),
        (exif_block("<", 3, b"\x09\0"), False),
        (exif_block("<", 3, b"\0\0"), False),
        (exif_block("<", 3, b"\x06\0", entries=50), False),
        (b"IM" + exif_block("<", 3, b"\x06\0")[2:], False),
        (exif_block("<", 3, b"\x06\0")[:-6], False),
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
def test_absurd_sizes_are_rejected(name: str) -> None:
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
    """The last bytes mark the end: DALI does not decode the file without them, either."""
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
def test_other_data_is_an_error(data: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        images.decode(tensor(data))
    with pytest.raises(DecodeError, match=reason):
        images.peek_shape(data)


def test_a_damaged_png_stream_does_not_end_the_process(capfd: Any) -> None:
    """The decoder of torchvision ends it, so PNGs aren't decoded by it."""
    data = bytearray(LOSSLESS["png"][0])
    start = data.index(b"IDAT")
    (length,) = struct.unpack_from(">I", data, start - 4)
    for change in (10, length // 2):
        broken = bytearray(data)
        broken[start + change] ^= 0xFF
        with pytest.raises(DecodeError, match="checksum of the chunk IDAT"):
            images.decode(tensor(broken))
        assert capfd.readouterr().err == ""
        checksum = zlib.crc32(broken[start : start + 4 + length])
        struct.pack_into(">I", broken, start + 4 + length, checksum)
        with pytest.raises(DecodeError, match="format PNG"):
            images.decode(tensor(broken))
        assert capfd.readouterr().err.count("\n") <= 1  # of OpenCV's libpng


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


@pytest.mark.thin(5)
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", [*LOSSLESS, *JPEGS])
def test_damaged_data_raises_only_decode_errors(name: str) -> None:
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
                assert "must be within the image" in str(error)


def _can_decode(data: bytes) -> bool:
    try:
        images.decode(tensor(data))
    except MissingExtraError:
        return False
    return True


def test_many_threads() -> None:
    work = [*filter(_can_decode, (data for data, _ in LOSSLESS.values())), *JPEGS.values()] * 3
    expected = [images.decode(tensor(data)) for data in work]
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda data: images.decode(tensor(data)), work))
    assert all(torch.equal(a, b) for a, b in zip(expected, got, strict=True))


@pytest.mark.parametrize("name", ["png", "jpeg"])
def test_encoded_data_may_have_any_shape(name: str) -> None:
    data = tensor(JPEGS["420"] if name == "jpeg" else next(iter(LOSSLESS.values()))[0])
    for shaped in (data[None], data[:, None], data[None, None]):
        for output_type in ("RGB", "GRAY"):
            expected = images.decode(data, output_type=output_type)
            assert torch.equal(images.decode(shaped, output_type=output_type), expected)
        assert images.peek_header(shaped) == images.peek_header(data)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda d: images.decode(d, output_type="rgb"), "output_type must be one of .*, got 'rgb'"),
        (lambda d: images.decode(d, dtype=torch.float64), "must be one of .*, got torch.float64"),
        (lambda d: images.decode(d.float()), "contiguous uint8"),
        (lambda d: images.decode(d[::2]), "contiguous"),
    ],
)
def test_wrong_calls(call: Callable[[Tensor], object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        call(tensor(JPEGS["420"]))


@pytest.mark.parametrize("color", [0, 2, 6])
@pytest.mark.parametrize("depth", [8, 16])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16])
def test_pngs_are_the_same_without_opencv(
    color: int, depth: int, dtype: torch.dtype
) -> None:
    shape = (9, 7, {0: 1, 2: 3, 6: 4}[color])
    values = np.random.default_rng(color).integers(0, 1 << depth, shape)
    data = tensor(png(values.astype(f"u{depth // 8}"), color, depth))
    found = [images.decode(data, output_type=kind, dtype=dtype) for kind in ("RGB", "GRAY", "ANY_DATA")]
    with hidden("cv2"):
        for kind, one in zip(("RGB", "GRAY", "ANY_DATA"), found, strict=True):
            assert torch.equal(images.decode(data, output_type=kind, dtype=dtype), one)


def test_the_error_names_opencv_if_it_is_missing() -> None:
    data = bytearray(LOSSLESS["jp2"][0])
    for channel in range(3):
        data[data.index(b"\xff\x4f\xff\x51") + 42 + 3 * channel] = 15  # bits, less one
    with hidden("cv2"), pytest.raises(MissingExtraError, match="JPEG 2000.*" + re.escape(extra_command("image"))):
        images.decode(tensor(data))


def test_jpeg_2000_of_16_bits() -> None:
    cv2 = pytest.importorskip("cv2", reason="needs OpenCV: install the extra 'image'")
    data = cv2.imencode(".jp2", RGB16[:, :, ::-1], [cv2.IMWRITE_JPEG2000_COMPRESSION_X1000, 1000])[
        1
    ]
    got = images.decode(tensor(data.tobytes()), dtype=torch.uint16)
    np.testing.assert_array_equal(got.numpy(), RGB16)
    with pytest.raises(DecodeError, match="format JPEG 2000"):
        images.decode(tensor(data.tobytes()[:200]))


def test_decoding_works_without_torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torchvision that does not match torch cannot be loaded: Pillow returns the same pixels."""
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
    for module in ("images", "_image_formats"):
        monkeypatch.setattr(f"torchdali.codecs.{module}.image_operator", lambda name: None)
    with hidden("simplejpeg"):
        got = [images.decode(tensor(data), output_type=kind) for data in work for kind in kinds]
    assert all(torch.equal(a, b) for a, b in zip(expected, got, strict=True))
    with pytest.raises(DecodeError, match="format JPEG"):
        images.decode(tensor(JPEGS["420"][:-300]))


@pytest.mark.slow
def test_libraries_are_loaded_when_they_are_needed() -> None:
    """Importing the module imports neither torchvision nor Pillow; decoding does not import all of them."""
    program = """
import sys, torch
from torchdali.codecs import images
assert not {"PIL", "torchvision", "cv2"} & set(sys.modules), "imported too early"
images.decode(torch.frombuffer(bytearray(sys.stdin.buffer.read()), dtype=torch.uint8))
assert not {"PIL", "torchvision", "cv2"} & set(sys.modules), "a JPEG needs none of them"
"""
    command = [sys.executable, "-c", program]
    subprocess.run(command, input=JPEGS["420"], check=True, cwd=Path(__file__).parents[2])


@pytest.mark.slow
def test_real_files() -> None:
    """Every file of the collection decodes to the shape in its header."""
    pytest.importorskip("cv2", reason="needs OpenCV: install the extra 'image'")
    files = sorted(path for path in folder("formats").rglob("*") if path.is_file())
    assert len(files) > 40
    for path in files:
        data = read_file(str(path))
        for kind in ("RGB", "GRAY", "ANY_DATA"):
            shape = tuple(images.decode(data, output_type=kind).shape)
            assert images.peek_shape(data, image_type=kind) == shape, path.name


@pytest.mark.parametrize("width", range(1, 6))
def test_colors_of_a_bmp_from_the_top_and_from_the_bottom(width: int) -> None:
    colors = np.arange(7 * width * 3, dtype=np.uint8).reshape(7, width, 3)
    data = bytearray(encoded(colors, "BMP"))
    np.testing.assert_array_equal(images.decode(tensor(bytes(data))).numpy(), colors)
    struct.pack_into("<i", data, 22, -7)
    np.testing.assert_array_equal(images.decode(tensor(bytes(data))).numpy(), colors[::-1])
    with pytest.raises(DecodeError, match="BMP"):
        images.decode(tensor(bytes(data[:-8])))


def test_indices_beyond_the_palette_of_a_bmp_are_black() -> None:
    pixels = np.arange(6, dtype=np.uint8).reshape(2, 3)
    image = Image.fromarray(pixels, "P")
    image.putpalette([10, 20, 30, 40, 50, 60] * 128)
    data = bytearray(encoded(image, "BMP"))
    start = int.from_bytes(data[10:14], "little")
    kept = data[:54] + data[54 : 54 + 16] + data[start:]  # four entries
    kept[10:14], kept[46:50] = (54 + 16).to_bytes(4, "little"), (4).to_bytes(4, "little")
    found = images.decode(tensor(kept))
    assert found[0, 0].tolist() == [10, 20, 30] and found[1, 2].tolist() == [0, 0, 0]
