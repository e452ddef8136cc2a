"""Colors of JPEGs, upsampled smoothly or repeated: by all decoders, on whole images and windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from tests.helpers.encoded_images import encoded, exif, smooth_image, tensor
from tests.helpers.hidden import hidden
from tests.helpers.native import switched_off
from torchdali.codecs.image_crops import decode_crop
from torchdali.codecs.images import decode
from torchdali.kernels.native import library

BLOCKS = {"4:4:4": (1, 1), "4:2:2": (1, 2), "4:2:0": (2, 2)}
"""Rows and columns of pixels that share their colors."""


@pytest.fixture(params=["library", "simplejpeg"])
def decoder(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run with the fast path's library, and with simplejpeg."""
    if request.param == "library":
        if library() is None:
            pytest.skip("needs the library in C")
        yield "library"
        return
    pytest.importorskip("simplejpeg", reason="needs simplejpeg: install the extra 'image'")
    with switched_off():
        yield "simplejpeg"


def pale(height: int, width: int, **options: Any) -> Tensor:
    """Return a JPEG whose colors are not at an end of their range."""
    return tensor(encoded(smooth_image(height, width) // 4 + 96, "JPEG", quality=92, **options))


def repeats(pixels: Tensor, luminance: Tensor, block: tuple[int, int]) -> bool:
    """Return whether pixels of a block differ only in luminance: libjpeg adds the colors to it."""
    colors = (pixels.int() - luminance.int()).numpy()
    assert pixels.min() > 0 and pixels.max() < 255
    rows, columns = block
    first = colors[::rows, ::columns].repeat(rows, 0).repeat(columns, 1)
    return np.array_equal(first[: colors.shape[0], : colors.shape[1]], colors)


@pytest.mark.parametrize("subsampling", BLOCKS)
@pytest.mark.parametrize("size", [(64, 48), (47, 33), (9, 70), (2, 3), (1, 1)])
@pytest.mark.parametrize("kind", [{}, {"progressive": True}, {"restart_marker_blocks": 2}])
def test_colors_are_repeated(subsampling: str, size: tuple[int, int], kind: dict[str, Any], decoder: str) -> None:
    data = pale(*size, subsampling=subsampling, **kind)
    plain, smooth, luminance = decode(data, fancy=False), decode(data), decode(data, output_type="GRAY")
    assert repeats(plain, luminance, BLOCKS[subsampling])
    differs = subsampling != "4:4:4" and min(size) > 3
    assert torch.equal(plain, smooth) != differs
    assert repeats(smooth, luminance, BLOCKS[subsampling]) != differs


@pytest.mark.parametrize("subsampling", ["440", "411"])
def test_other_subsamplings(subsampling: str, decoder: str) -> None:
    simplejpeg = pytest.importorskip("simplejpeg", reason="needs simplejpeg: install the extra 'image'")
    pixels = smooth_image(45, 61) // 4 + 96
    data = tensor(simplejpeg.encode_jpeg(np.ascontiguousarray(pixels), colorsubsampling=subsampling))
    luminance = decode(data, output_type="GRAY")
    assert repeats(decode(data, fancy=False), luminance, {"440": (2, 1), "411": (1, 4)}[subsampling])


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_both_decoders_are_bit_identical(orientation: int, fast: bool) -> None:
    pytest.importorskip("simplejpeg", reason="needs simplejpeg: install the extra 'image'")
    if library() is None:
        pytest.skip("needs the library in C")
    for k, subsampling in enumerate(BLOCKS):
        data = pale(51 + k, 66 - orientation, subsampling=subsampling, exif=exif(orientation))
        found = decode(data, fancy=False, fast=fast)
        with switched_off():
            assert torch.equal(found, decode(data, fancy=False, fast=fast))
            assert torch.equal(found[3:40, 5:31], decode_crop(data, 3, 5, 37, 26, fancy=False, fast=fast))


@pytest.mark.parametrize("subsampling", BLOCKS)
def test_windows_match_the_whole_image(subsampling: str, decoder: str) -> None:
    data = pale(75, 83, subsampling=subsampling)
    whole, rng = decode(data, fancy=False), np.random.default_rng(3)
    for _ in range(30):
        h, w = int(rng.integers(1, 76)), int(rng.integers(1, 84))
        y, x = int(rng.integers(0, 76 - h)), int(rng.integers(0, 84 - w))
        assert torch.equal(decode_crop(data, y, x, h, w, fancy=False), whole[y : y + h, x : x + w])


def test_other_color_spaces(decoder: str) -> None:
    data = pale(50, 62, subsampling="4:2:0")
    plain = decode(data, fancy=False)
    assert torch.equal(decode(data, fancy=False, output_type="BGR"), plain.flip(2))
    assert torch.equal(decode(data, fancy=False, output_type="ANY_DATA"), plain)
    floats = decode(data, fancy=False, dtype=torch.float32)
    assert torch.equal(floats.mul(255).round(), plain.float())
    assert torch.equal(decode(data, fancy=False, output_type="GRAY"), decode(data, output_type="GRAY"))
    assert not torch.equal(floats, decode(data, dtype=torch.float32))


def test_some_images_are_always_upsampled_smoothly(decoder: str) -> None:
    inks = tensor(encoded(Image.fromarray(smooth_image(40, 50)).convert("CMYK"), "JPEG", subsampling="4:2:0"))
    assert torch.equal(decode(inks, fancy=False), decode(inks))
    cut = torch.cat([pale(40, 50, subsampling="4:2:0"), torch.zeros(5, dtype=torch.uint8)])  # only torchvision decodes it
    assert torch.equal(decode(cut, fancy=False), decode(cut))


def test_without_a_decoder_that_repeats_colors_are_smooth() -> None:
    data = pale(50, 62, subsampling="4:2:0")
    expected = decode(data)
    with hidden("simplejpeg"), switched_off():
        assert torch.equal(decode(data, fancy=False), expected)
        assert torch.equal(decode_crop(data, 3, 4, 20, 30, fancy=False), expected[3:23, 4:34])
