"""Reductions against the real DALI."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.check import check

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "reductions.mean": "with an integer `dtype`, DALI sums in that type and wraps around; here the mean is rounded",
    "reductions.variance": "with a scalar `mean` and only some of the axes, DALI reads past the end of the mean; here "
    "the scalar is used for all values",
    "reductions.std_dev": "the same as `reductions.variance`",
}

RANDOM = np.random.default_rng(12)
DTYPES = ("uint8", "int16", "float32", "uint64", "int32", "uint16")
AXES = [
    {},
    {"axes": [0]},
    {"axes": [0, 1]},
    {"axes": [-1], "keep_dims": True},
    {"axes": []},
    {"axis_names": "W"},
    {"axis_names": "HC", "keep_dims": True},
]


def samples(dtype: str) -> list[np.ndarray]:
    shapes = [(5, 7, 3), (4, 9, 3)]
    if dtype == "float32":
        return [RANDOM.normal(size=shape).astype(dtype) for shape in shapes]
    low = 0 if dtype.startswith("u") else -100
    return [RANDOM.integers(low, 200, shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize(("dtype", "layout"), list(itertools.product(DTYPES, ("HWC", "CHW"))))
@pytest.mark.parametrize("name", ["sum", "mean", "mean_square", "rms", "max", "min"])
def test_one_input(name, dtype, layout):
    for arguments in AXES:
        check(f"reductions.{name}", [samples(dtype)], arguments, layout, relative=1e-5, level=1e-5)


@pytest.mark.parametrize(("dtype", "layout"), list(itertools.product(DTYPES[:3], ("HWC", "CHW"))))
@pytest.mark.parametrize("name", ["variance", "std_dev"])
def test_around_a_mean(name, dtype, layout):
    scalar = [np.float32(3), np.float32(-2)]
    vector = [np.float32([1, 2, 3]), np.float32([4, 5, 6])]
    for arguments, mean in (
        ({}, scalar),
        ({"ddof": 1}, scalar),
        ({"axes": [0, 1], "ddof": 2}, vector),
        ({"axes": [0, 1], "keep_dims": True}, vector),
        ({"axes": [0, 1], "keep_dims": True}, [m.reshape(1, 1, 3) for m in vector]),
    ):
        check(
            f"reductions.{name}",
            [samples(dtype), mean],
            arguments,
            [layout, None],
            relative=1e-4,
            level=1e-5,
        )


def test_output_types():
    for dtype in ("types.FLOAT", "types.UINT8", "types.UINT64"):
        check("reductions.sum", [samples("uint8")], {"dtype": dtype}, "HWC", relative=1e-6)


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_of_nan_and_infinity(name):
    odd = np.float32([[1, np.nan, -np.inf], [np.nan, np.nan, -np.inf], [np.nan, 4, np.inf], [5, np.inf, np.nan]])
    for arguments in ({}, {"axes": [0]}, {"axes": [1], "keep_dims": True}):
        check(f"reductions.{name}", [[odd, odd[:2], odd[2:, ::-1].copy()]], arguments, "HW", relative=0, level=0)
