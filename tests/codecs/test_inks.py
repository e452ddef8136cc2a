"""CMYK JPEG 2000: the colors of Pillow, or of the JPEG formula, in 8 and more bits, with and without a profile."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, features

from torchdali import Pipeline, fn, types
from torchdali.codecs import images
from torchdali.errors import DecodeError

if not features.check("jpg_2000"):
    pytest.skip("this Pillow knows no JPEG 2000", allow_module_level=True)

SMOOTH = Image.fromarray(np.random.RandomState(0).randint(0, 256, (8, 9, 3), np.uint8)).resize((60, 52))
WHITE = Image.new("RGB", (60, 52), "white")


def saved(image: Image.Image, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG2000", **options)
    return file.getvalue()


def tensor(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def with_colors(data: bytes, colors: bytes) -> bytes:
    """Return a file with another color specification box."""
    head, box = data.index(b"jp2h") - 4, data.index(b"colr") - 4
    (old,), (length,) = (struct.unpack_from(">I", data, at) for at in (box, head))
    new = struct.pack(">I4s", 8 + len(colors), b"colr") + colors
    return data[:head] + struct.pack(">I", length - old + len(new)) + data[head + 4 : box] + new + data[box + old :]


def profile(space: bytes) -> bytes:
    return b"\2\0\0" + struct.pack(">I", 132) + bytes(12) + space + bytes(16) + b"acsp" + bytes(92)


def inks_of(image: Image.Image, **options: Any) -> bytes:
    """Return a CMYK file, even if Pillow writes it as RGBA."""
    return with_colors(saved(Image.frombytes("RGBA", image.size, image.convert("CMYK").tobytes()), **options), b"\1\0\0\0\0\0\x0c")


def deep(image: Image.Image, bits: int = 16, **options: Any) -> bytes:
    codecs = pytest.importorskip("imagecodecs")
    inks = np.asarray(image.convert("CMYK")).astype(np.uint16) * 257 >> (16 - bits)
    return codecs.jpeg2k_encode(inks, level=0, codecformat="jp2", colorspace="CMYK", bitspersample=bits, **options)


def need_pillow_for(data: bytes) -> None:
    """Skip a test if Pillow itself cannot read the file: Pillow 10.4 refuses small color profiles."""
    try:
        Image.open(io.BytesIO(data)).load()
    except OSError:
        pytest.skip("this Pillow cannot read the file")


BY_HAND = np.random.RandomState(1).randint(0, 256, (52, 60, 4), np.uint8)  # black together with other inks
FILES = {
    "inks": lambda image: inks_of(image),
    "in tiles": lambda image: inks_of(image, tile_size=(32, 32)),
    "a profile": lambda image: with_colors(inks_of(image), profile(b"CMYK")),
    "a profile of colors and inks": lambda image: with_colors(inks_of(image), b"\1\0\0\0\0\0\x0c"),
}


@pytest.mark.parametrize("image", [SMOOTH, WHITE, Image.frombytes("CMYK", (60, 52), BY_HAND.tobytes())], ids=["smooth", "white", "all inks"])
@pytest.mark.parametrize("name", FILES)
def test_colors_match_pillow(name, image):
    data, wanted = FILES[name](image), np.asarray(image.convert("CMYK").convert("RGB")).astype(int)
    need_pillow_for(data)
    for output_type, order in (("RGB", slice(None)), ("BGR", slice(None, None, -1))):
        found = images.decode(tensor(data), output_type=output_type).numpy()[:, :, order]
        assert found.shape == (52, 60, 3) and np.abs(found - wanted).max() <= 1
    gray = images.decode(tensor(data), output_type="GRAY").numpy()[:, :, 0]
    assert np.abs(gray - np.asarray(image.convert("RGB").convert("L")).astype(int)).max() <= 2
    floats = images.decode(tensor(data), dtype=torch.float32).numpy()
    assert np.abs(255 * floats - wanted).max() <= 1.01
    stored = images.decode(tensor(data), output_type="ANY_DATA").numpy()
    assert np.array_equal(stored, np.asarray(image.convert("CMYK")))


@pytest.mark.parametrize("has_profile", [False, True])
@pytest.mark.parametrize("bits", [16])
def test_more_than_eight_bits(bits, has_profile):
    pytest.importorskip("cv2", reason="needs OpenCV: install the extra 'image'")
    data = deep(SMOOTH, bits)
    data = with_colors(data, profile(b"CMYK")) if has_profile else data
    inks = np.asarray(SMOOTH.convert("CMYK")).astype(np.int64) * 257
    wanted = (65535 - inks[:, :, :3]) * (65535 - inks[:, :, 3:]) // 65535
    assert np.array_equal(images.decode(tensor(data), dtype=torch.uint16).numpy(), wanted)
    assert np.abs(images.decode(tensor(data)).numpy() - np.asarray(SMOOTH).astype(int)).max() <= 1


OTHERS = {
    "four channels without a description": lambda: saved(SMOOTH.convert("RGBA"), no_jp2=True),
    "alpha": lambda: saved(SMOOTH.convert("RGBA")),
    "a profile of colors": lambda: with_colors(saved(SMOOTH.convert("RGBA")), profile(b"RGB ")),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_files_of_four_channels_are_colors(name):
    data = OTHERS[name]()
    need_pillow_for(data)
    assert np.array_equal(images.decode(tensor(data)).numpy(), np.asarray(SMOOTH))


@pytest.mark.parametrize("options", [{}, {"tile_size": (16, 16)}])
def test_gray_with_alpha(options):
    both = Image.merge("LA", (SMOOTH.convert("L"), SMOOTH.split()[0]))
    data = saved(both, **options)
    assert np.array_equal(images.decode(tensor(data), output_type="GRAY").numpy()[:, :, 0], np.asarray(SMOOTH.convert("L")))
    assert np.array_equal(images.decode(tensor(data), output_type="ANY_DATA").numpy(), np.asarray(both))


def test_gray_with_alpha_of_sixteen_bits_is_rejected():
    codecs = pytest.importorskip("imagecodecs")
    levels = np.linspace(0, 65535, 60 * 52 * 2).astype(np.uint16).reshape(52, 60, 2)
    with pytest.raises(DecodeError, match="more than 8 bits"):  # Pillow's values overflow
        images.decode(tensor(codecs.jpeg2k_encode(levels, level=0, codecformat="jp2")), output_type="ANY_DATA")


def test_in_a_pipeline_with_a_window():
    data = np.frombuffer(inks_of(SMOOTH), np.uint8)
    with Pipeline(1, 1, None) as pipe:
        files = fn.external_source([[data]], cycle=True)
        pipe.set_outputs(fn.decoders.image(files, output_type=types.RGB), fn.decoders.image_crop(files, crop=(20, 30)))
    whole, part = (output[0] for output in pipe.run())
    wanted = np.asarray(SMOOTH).astype(int)
    assert np.abs(np.array(whole) - wanted).max() <= 1 and np.array_equal(np.array(part), np.array(whole)[16:36, 15:45])
