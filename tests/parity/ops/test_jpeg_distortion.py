"""`jpeg_compression_distortion` against the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.check import PerSample, check

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "jpeg_compression_distortion": "takes uint8 alone, as DALI; a per-sample quality may be a float",
}

RANDOM = np.random.default_rng(10)


def images(layout: str) -> list[np.ndarray]:
    """Noise, and noise on a ramp, in sizes that blocks do not divide."""
    found = []
    for height, width in ((12, 18), (17, 9), (1, 1), (8, 5)):
        ramp = np.linspace(0, 200, width)[:, None] + np.linspace(0, 30, height)[:, None, None]
        noise = RANDOM.integers(0, 25, (height, width, 3))
        image = (ramp + noise).astype(np.uint8)
        found += [image, RANDOM.integers(0, 256, image.shape).astype(np.uint8)]
    return found if layout == "HWC" else [np.stack([x, x[::-1]]) for x in found]


@pytest.mark.parametrize("layout", ["HWC", "FHWC"])
@pytest.mark.parametrize(
    "arguments",
    [{}, *({"quality": q} for q in (1, 10, 30, 50, 75, 95, 100, 0, 101, -1))],
)
def test_jpeg_compression_distortion(arguments, layout):
    check("jpeg_compression_distortion", [images(layout)], arguments, layout)


@pytest.mark.parametrize("layout", ["HWC", "FHWC"])
def test_quality_per_sample(layout):
    samples = images(layout)
    quality = PerSample(np.int32(q) for q in np.linspace(-5, 110, len(samples)))
    check("jpeg_compression_distortion", [samples], {"quality": quality}, layout)
