"""normalize against the real DALI."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.check import PerSample, check

pytestmark = pytest.mark.golden

RANDOM = np.random.default_rng(13)
CASES = [
    {},
    {"axes": [0, 1]},
    {"axis_names": "W"},
    {"mean": 3.0},
    {"stddev": 2.0},
    {"mean": 3.0, "stddev": 2.0, "epsilon": 5.0},
    {"mean": PerSample([np.float32([[[1, 2, 3]]]), np.float32([[[20, 30, 40]]])]), "axes": [0, 1]},
    {"axes": [0, 1], "mean": np.float32([[[1, 2, 3]]]), "stddev": np.float32([[[1, 2, 4]]])},
    {"ddof": 1, "scale": 10.0, "shift": 1.0, "epsilon": 0.1},
    {"scale": 64.0, "shift": 128.0, "dtype": "types.UINT8"},
    {"axes": [0, 1], "dtype": "types.INT16", "scale": 100.0},
    {"batch": True},
    {"batch": True, "axes": [0, 1]},
    {"batch": True, "axes": [0, 1], "ddof": 1, "scale": 3.0},
    {"batch": True, "mean": 5.0},
    {"batch": True, "stddev": 5.0, "axes": [0, 1]},
]


def samples(dtype: str) -> list[np.ndarray]:
    shapes = [(5, 7, 3), (4, 9, 3)]
    if dtype == "float32":
        return [RANDOM.normal(size=shape).astype(dtype) for shape in shapes]
    return [
        RANDOM.integers(0 if dtype == "uint8" else -500, 200, shape).astype(dtype)
        for shape in shapes
    ]


@pytest.mark.parametrize(
    ("dtype", "layout"), list(itertools.product(("uint8", "int16", "float32"), ("HWC", "CHW")))
)
def test_normalize(dtype, layout):
    for arguments in CASES:
        if layout == "CHW" and isinstance(arguments.get("mean"), (np.ndarray, PerSample)):
            continue  # its shape belongs to HWC
        rounded = "dtype" in arguments
        tolerance = {"level": 1, "share": 0.99} if rounded else {"relative": 1e-4, "level": 2e-5}
        check(
            "normalize",
            [samples(dtype)],
            arguments,
            layout,
            over_batch="batch" in arguments,
            **tolerance,
        )


def test_no_deviation_gives_the_shift():
    check("normalize", [[np.full((3,), 3.0, np.float32)] * 2], {"shift": 2.0})


@pytest.mark.parametrize("dtype", ["UINT8", "INT8", "UINT16", "INT16", "INT32", "UINT32", "FLOAT"])
@pytest.mark.parametrize("axes", [{}, {"axes": [0, 1]}, {"axes": [2]}], ids=str)
@pytest.mark.parametrize("given", [np.uint8, np.int16, np.float32])
def test_a_batch_of_one_shape(given, axes, dtype):
    """Samples that are one tensor in memory, whose results are written into one, whatever their type."""
    images = [RANDOM.integers(0, 200, (5, 8, 3)).astype(given) for _ in range(3)]
    arguments = {"batch": True, "scale": 50.0, "shift": 9.0, "dtype": f"types.{dtype}", **axes}
    check("normalize", [images], arguments, "HWC", over_batch=True, level=1, share=0.99)
