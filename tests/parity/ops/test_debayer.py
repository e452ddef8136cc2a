"""`debayer` against the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.check import PerSample, check
from tests.helpers.opencv_switch import LIBRARIES, computing_with

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "debayer": (
        "default_npp (of GPUs) is bilinear, without the correlation of green values that NPP adds; "
        "a 4D output of unset layout has none; uint8 and uint16 as DALI"
    ),
}

RANDOM = np.random.default_rng(9)
SHAPES = {
    "HW": [(10, 14), (8, 10), (2, 4), (4, 6)],
    "HWC": [(10, 14, 1), (6, 16, 1)],
    "FHW": [(2, 10, 14), (3, 10, 8)],
    "FHWC": [(2, 10, 14, 1)],
}


@pytest.fixture(params=LIBRARIES, autouse=True)
def library(request):
    with computing_with(request.param, "color.debayer"):
        yield request.param


def mosaics(layout: str, dtype: str) -> list[np.ndarray]:
    most = np.iinfo(dtype).max
    return [RANDOM.integers(0, most, s, endpoint=True).astype(dtype) for s in SHAPES[layout]]


CASES = [
    (algorithm, dtype)
    for algorithm in ("bilinear_ocv", "edgeaware_ocv", "vng_ocv", "gray_ocv", None)
    for dtype in ("uint8", "uint16")
    if (algorithm, dtype) != ("vng_ocv", "uint16")
]


@pytest.mark.parametrize(("algorithm", "dtype"), CASES)
@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.parametrize("blue", [[0, 0], [0, 1], [1, 0], [1, 1], 1])
def test_debayer(library, algorithm, blue, layout, dtype):
    arguments = {"blue_position": blue, **({"algorithm": algorithm} if algorithm else {})}
    rounded = algorithm == "vng_ocv" and library == "torch"
    check("debayer", [mosaics(layout, dtype)], arguments, layout, level=float(rounded))


def test_a_position_per_sample():
    places = [np.int32(p) for p in ([0, 1], [1, 1], [1, 0], [0, 0])]
    check("debayer", [mosaics("HW", "uint8")], {"blue_position": PerSample(places)}, "HW")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_old_name():
    check("experimental.debayer", [mosaics("HW", "uint8")], {"blue_position": [0, 1]}, "HW")
