"""Histogram equalization against the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.check import check
from tests.helpers.opencv_switch import LIBRARIES, computing_with

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "clahe": "tiles_x or tiles_y of 0 raises RuntimeError; DALI's process ends with a signal",
    "equalize": "without a layout the output has none; DALI names the one it assumed",
}

RANDOM = np.random.default_rng(8)


@pytest.fixture(params=LIBRARIES, autouse=True)
def library(request):
    with computing_with(request.param, "color.histogram", "color.lab"):
        yield request.param


def images(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Noise of some contrast around some brightness."""
    return [
        RANDOM.normal(RANDOM.uniform(40, 200), RANDOM.uniform(5, 70), shape)
        .clip(0, 255)
        .astype(np.uint8)
        for shape in shapes
    ]


@pytest.mark.parametrize(
    ("layout", "shapes"),
    [
        ("HW", [(20, 30), (3, 1), (1, 1)]),
        ("HWC", [(20, 30, 3), (31, 17, 3)]),
        ("HWC", [(20, 30, 1), (20, 30, 1)]),
        ("HWC", [(12, 13, 7)]),
        ("CHW", [(3, 20, 30), (4, 9, 5)]),
        ("FHW", [(3, 20, 30), (2, 20, 30)]),
        ("FHWC", [(2, 20, 30, 3), (2, 20, 30, 3)]),
        ("FCHW", [(2, 3, 20, 30)]),
    ],
)
@pytest.mark.parametrize("name", ["equalize", "experimental.equalize"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_equalize(name, layout, shapes):
    check(name, [images(*shapes)], {}, layout)


def test_equalize_few_values():
    samples = [np.full((4, 5), 9), np.array([[5, 5, 5, 9]]), np.array([[10, 10, 20, 30]])]
    check("equalize", [[s.astype(np.uint8) for s in samples]], {}, "HW")


SETTINGS = [
    {"tiles_x": 2, "tiles_y": 3, "clip_limit": 2.0},
    {"tiles_x": 8, "tiles_y": 8, "clip_limit": 40.0},
    {"tiles_x": 5, "tiles_y": 4, "clip_limit": 0.0},
    {"tiles_x": 1, "tiles_y": 1, "clip_limit": -1.0},
    {"tiles_x": 3, "tiles_y": 2, "clip_limit": 1.5, "luma_only": False},
    {"tiles_x": 3, "tiles_y": 2, "clip_limit": 3.0, "bins": 64},
    {"tiles_x": 40, "tiles_y": 40, "clip_limit": 1.0},
]


@pytest.mark.parametrize("arguments", SETTINGS)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("layout", ["HWC", None])
def test_clahe(library, arguments, channels, layout):
    samples = images((20, 30, channels), (31, 17, channels), (5, 7, channels))
    exact = library == "opencv" or channels == 1 or "luma_only" in arguments
    tolerance = {} if exact else {"level": 1, "share": 0.99}
    check("clahe", [samples], arguments, layout, **tolerance)
