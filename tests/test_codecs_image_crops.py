"""Windows of large photos: exact and scaled decoding, kept buffers, turned photos."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from PIL import Image
from torch import Tensor

from tests.encoded_images import Array, encoded, exif, picture, tensor
from torchdali.codecs import image_crops, images
from torchdali.codecs._image_orientation import stored_window, turn, upright_window
from torchdali.errors import DecodeError


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
