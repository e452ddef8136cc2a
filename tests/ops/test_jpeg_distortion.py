"""JPEG distortion by the codec, by its formulas and by the real DALI; the first two are bit-identical."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from tests.check import PerSample, Result, check
from torchdali import fn
from torchdali.codecs import jpeg as codec
from torchdali.kernels.jpeg import distort

RANDOM = np.random.default_rng(10)
SIZES = [(1, 1), (2, 3), (8, 8), (9, 5), (16, 16), (17, 33), (40, 30), (64, 70)]


def smooth_image(height: int, width: int) -> np.ndarray:
    """Return smooth colors with some noise."""
    small = RANDOM.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3)).astype(np.uint8)
    smooth = np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BILINEAR))
    grain = RANDOM.integers(-20, 20, smooth.shape)
    return (smooth + grain).clip(0, 255).astype(np.uint8)


@pytest.mark.thin(5)
@pytest.mark.parametrize("quality", [1, 20, 50, 75, 95, 100])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("make", [smooth_image, lambda h, w: RANDOM.integers(0, 256, (h, w, 3))])
def test_the_formulas_match_the_codec(make, size, quality):
    image = torch.from_numpy(make(*size).astype(np.uint8))
    assert torch.equal(distort(image, quality), codec.recode(image, quality))


def test_the_formulas_accept_leading_dimensions():
    images = torch.from_numpy(np.stack([smooth_image(20, 30) for _ in range(6)]))
    found = distort(images.view(2, 3, 20, 30, 3), 40).view(6, 20, 30, 3)
    for image, distorted in zip(images, found, strict=True):
        assert torch.equal(distorted, distort(image, 40))


def test_pillow_matches_torchvision(monkeypatch):
    image = torch.from_numpy(smooth_image(37, 45))
    wanted = codec.recode(image, 30)
    monkeypatch.setattr(codec, "image_operator", lambda name: None)
    assert torch.equal(codec.recode(image, 30), wanted)


@pytest.mark.parametrize("number", [np.int32, np.float32])  # as drawn by `random.uniform`
@pytest.mark.parametrize("layout", ["HWC", "FHWC"])
def test_results_match_writing_and_reading_with_pillow(tmp_path, layout, number):
    samples = [smooth_image(20, 30), smooth_image(33, 18)]
    wanted = []
    for sample, quality in zip(samples, (10, 80), strict=True):
        Image.fromarray(sample).save(tmp_path / "one.jpg", quality=quality, subsampling=2)
        wanted.append(np.array(Image.open(tmp_path / "one.jpg")))
    if layout == "FHWC":
        samples, wanted = ([np.stack([x, x]) for x in group] for group in (samples, wanted))
    arguments = {"quality": PerSample([number(10), number(80)])}
    check(
        "jpeg_compression_distortion", [samples], arguments, layout,
        expected=[Result(wanted, layout)],
    )  # fmt: skip


def test_quality_has_ends_and_an_order():
    image = torch.from_numpy(smooth_image(64, 64))
    found = {
        q: fn.jpeg_compression_distortion(image, quality=q) for q in (-3, 0, 1, 10, 50, 100, 120)
    }
    assert torch.equal(found[0], found[1]) and torch.equal(found[-3], found[1])
    assert torch.equal(found[120], found[100])
    errors = [(found[q].int() - image.int()).abs().sum() for q in (1, 10, 50, 100)]
    assert errors == sorted(errors, reverse=True)
    assert torch.equal(fn.jpeg_compression_distortion(image), found[50])


def test_a_sequence_without_frames():
    frames = torch.zeros(0, 8, 8, 3, dtype=torch.uint8)
    assert fn.jpeg_compression_distortion(frames).shape == (0, 8, 8, 3)


@pytest.mark.parametrize(
    ("image", "error"),
    [
        (torch.zeros(8, 8, 3), RuntimeError),
        (torch.zeros(8, 8, 1, dtype=torch.uint8), RuntimeError),
        (torch.zeros(8, 8, 4, dtype=torch.uint8), RuntimeError),
        (torch.zeros(0, 8, 3, dtype=torch.uint8), RuntimeError),
        (torch.zeros(8, 8, dtype=torch.uint8), ValueError),
    ],
)
def test_invalid_arguments_are_rejected(image, error):
    with pytest.raises(error):
        fn.jpeg_compression_distortion(image)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_the_accelerator():
    image = torch.from_numpy(smooth_image(40, 50))
    found = fn.jpeg_compression_distortion(image.cuda(), quality=30)
    assert torch.equal(found.cpu(), fn.jpeg_compression_distortion(image, quality=30))


# --------------------------------------------------------- compared with the real DALI


EXCEPTIONS = {
    "jpeg_compression_distortion": "accepts only uint8, as DALI does; a per-sample `quality` may be a float",
}


def images(layout: str) -> list[np.ndarray]:
    """Return noise, and noise on a ramp, in sizes that are not multiples of blocks."""
    found = []
    for height, width in ((12, 18), (17, 9), (1, 1), (8, 5)):
        ramp = np.linspace(0, 200, width)[:, None] + np.linspace(0, 30, height)[:, None, None]
        noise = RANDOM.integers(0, 25, (height, width, 3))
        image = (ramp + noise).astype(np.uint8)
        found += [image, RANDOM.integers(0, 256, image.shape).astype(np.uint8)]
    return found if layout == "HWC" else [np.stack([x, x[::-1]]) for x in found]


@pytest.mark.golden
@pytest.mark.parametrize("layout", ["HWC", "FHWC"])
@pytest.mark.parametrize(
    "arguments",
    [{}, *({"quality": q} for q in (1, 10, 30, 50, 75, 95, 100, 0, 101, -1))],
)
def test_jpeg_compression_distortion(arguments, layout):
    check("jpeg_compression_distortion", [images(layout)], arguments, layout)


@pytest.mark.golden
@pytest.mark.parametrize("layout", ["HWC", "FHWC"])
def test_quality_per_sample(layout):
    samples = images(layout)
    quality = PerSample(np.int32(q) for q in np.linspace(-5, 110, len(samples)))
    check("jpeg_compression_distortion", [samples], {"quality": quality}, layout)
