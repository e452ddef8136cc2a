"""Filters against the real DALI."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.check import PerSample, check

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "experimental.median_blur": "runs on the GPU only in DALI; compared with a NumPy reference",
    "experimental.dilate": "as median_blur",
    "experimental.erode": "as median_blur",
}

RANDOM = np.random.default_rng(14)
GRID = list(itertools.product(("uint8", "int16", "float32"), ("HWC", "CHW")))


def samples(dtype: str, shapes=((5, 6, 2), (4, 7, 2))) -> list[np.ndarray]:
    if dtype == "float32":
        return [RANDOM.random(shape).astype(dtype) for shape in shapes]
    return [
        RANDOM.integers(0 if dtype == "uint8" else -900, 255, shape).astype(dtype)
        for shape in shapes
    ]


def tolerance(dtype: str, arguments: dict[str, object]) -> dict[str, float]:
    rounded = dtype != "float32" and "dtype" not in arguments
    return {"level": 1, "share": 0.99} if rounded else {"relative": 1e-4, "level": 1e-4}


BLUR = [
    {"sigma": 1.0},
    {"window_size": 5},
    {"sigma": 0.7, "window_size": 3},
    {"sigma": [0.5, 2.0]},
    {"window_size": [3, 7]},
    {"window_size": PerSample([3, 9])},
    {"sigma": 1.3, "dtype": "types.FLOAT"},
    {"window_size": 31},
]


@pytest.mark.parametrize(("dtype", "layout"), GRID)
def test_gaussian_blur(dtype, layout):
    for arguments in BLUR:
        check("gaussian_blur", [samples(dtype)], arguments, layout, **tolerance(dtype, arguments))


@pytest.mark.parametrize("layout", ["HW", "FHWC", "DHWC", "FCHW", None])
def test_gaussian_blur_of_other_layouts(layout):
    ndim = 3 if layout is None else len(layout)
    shapes = ((3, 5, 6, 2)[-ndim:] if ndim == 4 else (5, 6, 5)[:ndim],) * 2
    check(
        "gaussian_blur",
        [samples("float32", shapes)],
        {"sigma": 0.8},
        layout,
        relative=1e-4,
        level=1e-5,
    )


LAPLACE = [
    {},
    {"window_size": 5},
    {"window_size": [3, 5]},
    {"window_size": 3, "smoothing_size": 1},
    {"window_size": [5, 5], "smoothing_size": [1, 3], "dtype": "types.FLOAT"},
    {"window_size": [3, 5], "smoothing_size": [7, 1], "normalized_kernel": True},
    {"window_size": 5, "normalized_kernel": True, "dtype": "types.FLOAT"},
    {"scale": [0.5, 2.0]},
    {"window_size": [3, 7], "normalized_kernel": True},
    {"window_size": PerSample([3, 5]), "dtype": "types.FLOAT"},
]


@pytest.mark.parametrize(("dtype", "layout"), GRID)
def test_laplacian(dtype, layout):
    for arguments in LAPLACE:
        check(
            "laplacian",
            [samples(dtype)],
            arguments,
            layout,
            **{**tolerance(dtype, arguments), "relative": 1e-4},
        )


FILTER = [
    {},
    {"anchor": [0, 0]},
    {"anchor": [1, 2]},
    {"mode": "valid"},
    {"border": "constant"},
    {"border": "clamp"},
    {"border": "wrap"},
    {"border": "reflect_1001"},
    {"dtype": "types.FLOAT"},
]


@pytest.mark.parametrize(("dtype", "layout"), GRID)
def test_filter(dtype, layout):
    windows = [RANDOM.normal(size=(3, 4)).astype(np.float32) for _ in range(2)]
    shapes = ((5, 6, 2), (4, 7, 2)) if layout == "HWC" else ((2, 5, 6), (2, 4, 7))
    for arguments in FILTER:
        check(
            "filter",
            [samples(dtype, shapes), windows],
            arguments,
            [layout, None],
            **tolerance(dtype, arguments),
        )
    fill = [np.dtype(dtype).type(7), np.dtype(dtype).type(3)]
    arguments = {"border": "constant", "dtype": "types.FLOAT"}
    layouts = [layout, None, None]
    check(
        "filter",
        [samples(dtype, shapes), windows, fill],
        arguments,
        layouts,
        relative=1e-4,
        level=1e-3,
    )
