"""Color operators against the real DALI."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.check import PerSample, check

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "color_space_conversion": "converting a color space to itself returns the image; DALI refuses it",
    "hue": "int16: the 3x3 matrix is rounded to float32 at a different step, so 0.02 % of the values differ by 1",
}

RANDOM = np.random.default_rng(11)


def images(dtype: str, layout: str, channels: int = 3) -> list[np.ndarray]:
    """Two samples; ragged in height."""
    lead = (2,) if len(layout) == 4 else ()
    shapes = [(*lead, height, 6, channels) for height in (4, 5)]
    if dtype == "float32":
        return [RANDOM.random(shape).astype(dtype) for shape in shapes]
    limits = np.iinfo(dtype)
    low, high = max(limits.min, -30000), min(limits.max, 30000)
    return [RANDOM.integers(low, high, shape).astype(dtype) for shape in shapes]


INTENSITY = [
    ("brightness", {"brightness": 1.3}),
    ("brightness", {"brightness": 0.0}),
    ("brightness", {"brightness_shift": -0.2}),
    ("brightness", {"brightness": 0.7, "brightness_shift": 0.3}),
    ("brightness", {"brightness": PerSample([0.3, 2.5])}),
    ("brightness", {"brightness": 1.5, "dtype": "types.FLOAT"}),
    ("brightness", {"brightness": 0.01, "dtype": "types.UINT8"}),
    ("contrast", {"contrast": 1.7}),
    ("contrast", {"contrast": 0.0}),
    ("contrast", {"contrast": -1.0}),
    ("contrast", {"contrast": 2.0, "contrast_center": 0.25}),
    ("contrast", {"contrast": PerSample([0.5, 1.5])}),
    ("contrast", {"contrast": 1.2, "dtype": "types.FLOAT"}),
    ("brightness_contrast", {"contrast": 1.7, "brightness": 0.7}),
    ("brightness_contrast", {"contrast": 0.4, "brightness": 1.4, "contrast_center": 0.2}),
    ("brightness_contrast", {"contrast": 2.0, "brightness_shift": 0.1}),
    (
        "brightness_contrast",
        {"contrast": PerSample([0.5, 1.5]), "brightness": PerSample([2.0, 0.5])},
    ),
    ("brightness_contrast", {"contrast": 1.7, "dtype": "types.FLOAT"}),
    ("brightness_contrast", {"brightness": 0.5, "dtype": "types.INT16"}),
]
TWISTED = [
    ("hsv", {"hue": 30.0}),
    ("hsv", {"saturation": 1.8}),
    ("hsv", {"value": 0.6}),
    ("hsv", {"hue": -100.0, "saturation": 0.3, "value": 1.4, "dtype": "types.FLOAT"}),
    ("hsv", {"hue": PerSample([10.0, 200.0]), "dtype": "types.INT16"}),
    ("hsv", {}),
    ("hue", {"hue": 30.0}),
    ("hue", {"hue": 180.0}),
    ("hue", {"hue": -50.5}),
    ("hue", {"hue": PerSample([10.0, 350.0])}),
    ("hue", {"hue": 77.0, "dtype": "types.FLOAT"}),
    ("hue", {"hue": 0.0}),
    ("saturation", {"saturation": 0.0}),
    ("saturation", {"saturation": 0.5}),
    ("saturation", {"saturation": 2.0}),
    ("saturation", {"saturation": PerSample([0.2, 1.7])}),
    ("saturation", {"saturation": 1.3, "dtype": "types.FLOAT"}),
    ("saturation", {"saturation": 1.0}),
    ("color_twist", {"brightness": 1.4}),
    ("color_twist", {"contrast": 0.5}),
    ("color_twist", {"hue": 45.0, "saturation": 1.5}),
    ("color_twist", {"hue": 300.0, "saturation": 0.5, "brightness": 1.2, "contrast": 0.7}),
    ("color_twist", {"hue": PerSample([10.0, 20.0]), "contrast": PerSample([0.6, 1.6])}),
    ("color_twist", {"hue": 12.0, "brightness": 0.9, "dtype": "types.FLOAT"}),
]
GRID = list(itertools.product(("uint8", "int16", "float32"), ("HWC", "FHWC")))


@pytest.mark.parametrize(("dtype", "layout"), GRID)
@pytest.mark.parametrize(("name", "arguments"), [*INTENSITY, *TWISTED])
def test_color(name, arguments, dtype, layout):
    tolerance = {"level": 1.0, "share": 0.99} if _integer(arguments, dtype, name) else {}
    # The centre of int16 is 16384, so float32 carries an absolute error of a few 1/1024 into small results.
    level = 1e-2 if dtype == "int16" else 2e-4
    check(
        name,
        [images(dtype, layout)],
        arguments,
        layout,
        **{"relative": 1e-4, "level": level, **tolerance},
    )


BYTES = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
FACTORS = [0.0, 0.3, 0.5, 0.7, 0.9, 1.1, 1.25, 1.5, 1.7, 2.5, -1.0, *RANDOM.uniform(0, 2, 20).tolist()]
TONES = [
    ("brightness", {"brightness": PerSample(FACTORS)}),
    ("brightness", {"brightness": PerSample(FACTORS), "brightness_shift": 0.1}),
    ("contrast", {"contrast": PerSample(FACTORS)}),
    ("contrast", {"contrast": PerSample(FACTORS), "contrast_center": 33.0}),
    ("brightness_contrast", {"contrast": 0.5, "brightness": PerSample(FACTORS)}),
    ("brightness_contrast", {"contrast": PerSample(FACTORS), "brightness_shift": -0.3}),
    ("brightness_contrast", {"contrast": 1.5, "brightness_shift": 1.0, "brightness": -1.0}),
]


@pytest.mark.parametrize(("name", "arguments"), TONES)
def test_halves_of_bytes_go_up(name, arguments):
    check(name, [[BYTES] * len(FACTORS)], arguments, "HWC", level=0)


def _integer(arguments: dict[str, object], dtype: str, name: str) -> bool:
    result = arguments.get("dtype", "types.UINT8" if name == "hsv" else dtype)
    return result not in ("types.FLOAT", "float32")


SPACES = ("RGB", "BGR", "YCbCr", "GRAY")


@pytest.mark.parametrize("layout", ["HWC", "FHWC"])
@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(SPACES, 2)))
def test_color_space_conversion(source, target, layout):
    arguments = {"image_type": f"types.{source}", "output_type": f"types.{target}"}
    samples = images("uint8", layout, 1 if source == "GRAY" else 3)
    check("color_space_conversion", [samples], arguments, layout, level=1, share=0.99)
