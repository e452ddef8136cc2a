"""Windows of images: exact and scaled decoding, the rows they need, reused buffers, rotated photos."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from tests.helpers.encoded_images import Array, encoded, exif, smooth_image, tensor
from tests.helpers.hidden import hidden
from torchdali.codecs import _turbo, image_crops, images
from torchdali.codecs._image_headers import jpeg_frame
from torchdali.errors import DecodeError


@pytest.fixture
def photo() -> Array:
    return smooth_image(400, 560)


@pytest.fixture
def with_simplejpeg() -> None:
    pytest.importorskip("simplejpeg", reason="needs simplejpeg: install the extra 'image'")


WINDOWS = [(0, 0, 400, 560), (16, 24, 320, 240), (13, 57, 201, 333), (399, 559, 1, 1)]


@pytest.fixture(params=["simplejpeg", "without"])
def library(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run with simplejpeg and without."""
    if request.param == "simplejpeg":
        request.getfixturevalue("with_simplejpeg")
    with hidden(*["simplejpeg"] * (request.param == "without")):
        yield str(request.param)


def by_torchvision(data: Tensor) -> Tensor:
    """Decode without simplejpeg."""
    with hidden("simplejpeg"):
        return images.decode(data)


KINDS: dict[str, dict[str, Any]] = {
    "4:4:4": {"subsampling": 0},
    "4:2:2": {"subsampling": 1},
    "4:2:0": {"subsampling": 2},
    "restarts": {"restart_marker_rows": 1},
    "progressive": {"progressive": True},
}


@functools.cache
def photo_and_pixels(kind: str) -> tuple[Tensor, Tensor]:
    """Return a file, and its pixels as torchvision decodes them."""
    photo: Any = smooth_image(400, 560)
    photo = Image.fromarray(photo).convert("CMYK") if kind == "CMYK" else photo[:, :, 0].copy() if kind == "gray" else photo
    data = tensor(encoded(photo, "PNG" if kind == "PNG" else "JPEG", **KINDS.get(kind, {})))
    return data, by_torchvision(data)


@pytest.mark.parametrize("kind", [*KINDS, "gray", "CMYK", "PNG"])
def test_decode_is_exact(kind: str, library: str) -> None:
    data, expected = photo_and_pixels(kind)
    assert torch.equal(images.decode(data), expected)


@pytest.mark.parametrize("kind", [*KINDS, "gray", "CMYK", "PNG"])
def test_decode_crop_is_exact(kind: str, library: str) -> None:
    for window in [*WINDOWS, *((k, 8, 30 + k, 200) for k in range(16))]:
        data, expected = photo_and_pixels(kind)
        y, x, h, w = window
        assert torch.equal(image_crops.decode_crop(data, *window), expected[y : y + h, x : x + w])


def test_only_the_rows_that_a_crop_needs_are_decoded(photo: Array, with_simplejpeg: None) -> None:
    view = memoryview(encoded(photo, "JPEG"))
    frame = jpeg_frame(view)[5]
    for bottom, rows in (1, 5), (100, 104), (396, 400), (400, 400):
        pixels = _turbo.decode_rows(view, frame, 400, bottom)
        assert pixels is not None and pixels.shape == (rows, 560, 3)
    progressive = memoryview(encoded(photo, "JPEG", progressive=True))
    pixels = _turbo.decode_rows(progressive, jpeg_frame(progressive)[5], 400, 100)
    assert pixels is not None and pixels.shape == (400, 560, 3)


def test_torchvision_decodes_jpegs_without_an_end_marker(
    photo: Array, with_simplejpeg: None
) -> None:
    data = encoded(photo, "JPEG")
    assert torch.equal(images.decode(tensor(data + b"tail")), by_torchvision(tensor(data)))
    with pytest.raises(DecodeError):
        image_crops.decode_crop(tensor(data[:3000]), 0, 0, 8, 8)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_crops_of_rotated_photos(photo: Array, orientation: int, library: str) -> None:
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
    """Compare each scaled pixel with the mean of the pixels that it covers."""
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
def test_scaled_crops(
    photo: Array,
    target: tuple[int, int],
    scale: int,
    library: str,
) -> None:
    data = tensor(encoded(photo, "JPEG"))
    check_scaled(data, images.decode(data), (16, 24, 320, 240), target, scale)


@pytest.mark.parametrize("scale", [2, 4, 8])
@pytest.mark.parametrize("kind", [*KINDS, "gray"])
def test_scaled_crops_match_the_whole_image(
    photo: Array, kind: str, scale: int, with_simplejpeg: None
) -> None:
    """No more rows are decoded than the crop needs."""
    data = encoded(photo[:, :, 0].copy(), "JPEG") if kind == "gray" else encoded(photo, "JPEG", **KINDS[kind])
    frame = jpeg_frame(memoryview(data))[5]
    decoded = _turbo.decode_scaled(memoryview(data), frame, 400, 400, scale)
    assert decoded is not None and decoded.shape == (400 // scale, 560 // scale, 3)
    whole = torch.from_numpy(decoded.copy())
    for top in range(0, 400 - 80, 24):
        crop = image_crops.decode_scaled_crop(tensor(data), top, 16, 80, 80, 80 // scale, 80 // scale)
        assert crop.scale == scale and crop.y == crop.x == 0
        assert torch.equal(crop.pixels, whole[top // scale :, 16 // scale :][: 80 // scale, : 80 // scale])
    part = _turbo.decode_scaled(memoryview(data), frame, 400, 80, scale)
    assert part is not None
    assert len(part) == (400 if kind == "progressive" else 80 + 4 * scale) // scale


def test_the_fast_transform_of_scaled_crops(photo: Array, with_simplejpeg: None) -> None:
    def crop(fast: bool, target: int) -> Tensor:
        return image_crops.decode_scaled_crop(data, 0, 0, 320, 320, target, target, fast=fast).pixels

    data = tensor(encoded(photo, "JPEG"))
    for target in 320, 160, 80:  # at a quarter, no block is transformed whole: not even one of halved chroma
        difference = (crop(True, target).int() - crop(False, target).int()).abs().max()
        assert (difference > 0) == (target > 80) and difference < 5


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


def test_a_crop_shares_no_memory(photo: Array, with_simplejpeg: None) -> None:
    """The next image does not overwrite the returned one."""
    first, second = tensor(encoded(photo, "JPEG")), tensor(encoded(photo[::-1], "JPEG"))
    crop = image_crops.decode_crop(first, 0, 0, 400, 560)
    image_crops.decode_crop(second, 0, 0, 400, 560)
    assert torch.equal(crop, images.decode(first))
    with ThreadPoolExecutor(4) as pool:
        for a, b in pool.map(
            lambda _: [image_crops.decode_crop(d, 5, 5, 300, 400) for d in (first, second)],
            range(16),
        ):
            assert torch.equal(a, images.decode(first)[5:305, 5:405])
            assert torch.equal(b, images.decode(second)[5:305, 5:405])


@pytest.mark.parametrize("window", [(0, 0, 401, 1), (-1, 0, 5, 5), (0, 550, 5, 11), (0, 0, 0, 5)])
def test_windows_outside(photo: Array, window: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="must be within the image of 400 x 560"):
        image_crops.decode_crop(tensor(encoded(photo, "JPEG")), *window)


@pytest.mark.parametrize("target", [(400, 560), (40, 56)])
def test_crops_of_truncated_photos(photo: Array, target: tuple[int, int]) -> None:
    data = encoded(photo, "JPEG")
    with pytest.raises(DecodeError, match="truncated"):
        image_crops.decode_scaled_crop(tensor(data[: len(data) // 2]), 0, 0, 400, 560, *target)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_windows_are_rotated_with_their_image(orientation: int) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (7, 11, 3), np.uint8)
    for format in ("PNG", "JPEG"):
        data = tensor(encoded(pixels, format, exif=exif(orientation)))
        upright = images.decode(data)
        for y, x, h, w in [(0, 0, *upright.shape[:2]), (1, 2, 3, 4), (4, 5, 2, 1)]:
            assert torch.equal(image_crops.decode_crop(data, y, x, h, w), upright[y : y + h, x : x + w])


def test_large_windows_are_exact_and_share_no_memory(
    photo: Array, with_simplejpeg: None
) -> None:
    large = np.tile(photo, (3, 3, 1))
    data = tensor(encoded(large, "JPEG"))
    image_crops.decode_crop(data, 5, 7, 30, 40)
    crop = image_crops.decode_crop(data, 5, 7, 1190, 1190)
    again = image_crops.decode_crop(data, 5, 7, 1190, 1190)
    assert torch.equal(again, crop)
    image_crops.decode_crop(tensor(encoded(large[::-1], "JPEG")), 0, 0, 1200, 1680)
    assert torch.equal(crop, images.decode(data)[5:1195, 7:1197])
    crop.zero_()  # it can be written to
