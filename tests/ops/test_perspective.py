"""`experimental.warp_perspective` and `tensor_resize` against the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.check import PerSample, check

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "experimental.warp_perspective": "INTERP_CUBIC with a repeated border: values far outside the image differ",
    "experimental.resize": "DALI has it only on the GPU; here it's another name of `resize`",
    "tensor_resize": "resizes any number of axes; DALI resizes at most three adjacent ones",
}

RANDOM = np.random.default_rng(6)


def images(dtype: str, layout: str, channels: int = 3) -> list[np.ndarray]:
    """Two samples of different sizes, in the layout."""
    samples = []
    for size in ((7, 10), (9, 6)):
        shape = {"HW": size, "HWC": (*size, channels), "CHW": (channels, *size)}[layout.removeprefix("F")]
        samples.append((RANDOM.random((2, *shape) if layout[0] == "F" else shape) * 250).astype(dtype))
    return samples


TILTED = [0.9, 0.1, 1.0, -0.1, 1.1, 0.5, 0.003, -0.002, 1.0]
AWAY = [1.3, -0.2, -9.0, 0.1, 1.2, -8.0, 0.001, 0.002, 1.0]
PERSPECTIVES = [
    {"matrix": TILTED},
    {"matrix": AWAY, "fill_value": [7.0]},
    {"matrix": AWAY, "interp_type": "types.INTERP_NN"},
    {"matrix": TILTED, "inverse_map": False, "size": [12.4, 16.5]},
    {"matrix": TILTED, "pixel_origin": "center"},
    {"matrix": AWAY, "interp_type": "types.INTERP_CUBIC", "fill_value": [300.0]},
    {"matrix": PerSample([np.float32(TILTED).reshape(3, 3), np.float32(AWAY).reshape(3, 3)])},
]


def close(dtype: str) -> dict[str, float]:
    return {"level": 0.05, "share": 0.99} if dtype == "float32" else {"level": 1.0, "share": 0.99}


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "float32"])
@pytest.mark.parametrize("layout", ["HW", "HWC", "FHWC", "CHW", "FCHW"])
@pytest.mark.parametrize("arguments", PERSPECTIVES)
def test_warp_perspective(arguments, layout, dtype):
    check("experimental.warp_perspective", [images(dtype, layout)], arguments, layout, **close(dtype))


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("interp", ["NN", "LINEAR", "CUBIC"])
@pytest.mark.parametrize("border", ["constant", "replicate", "reflect", "reflect_101", "wrap"])
def test_borders_of_perspectives(border, interp, dtype):
    arguments = {"matrix": AWAY, "border_mode": border, "interp_type": f"types.INTERP_{interp}", "size": [15, 18]}
    check("experimental.warp_perspective", [images(dtype, "HWC")], arguments, "HWC", **close(dtype))


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_fill_of_perspectives(channels):
    arguments = {"matrix": AWAY, "fill_value": [float(10 * c) for c in range(channels)]}
    check("experimental.warp_perspective", [images("uint8", "HWC", channels)], arguments, "HWC", level=1, share=0.99)


def test_perspective_as_an_input():
    matrices = [np.float32(TILTED).reshape(3, 3), np.float32(AWAY).reshape(3, 3)]
    check("experimental.warp_perspective", [images("uint8", "HWC"), matrices], {}, ["HWC", None], level=1, share=0.99)


def tensors(dtype: str, *shape: int) -> list[np.ndarray]:
    return [(RANDOM.random(shape) * 250).astype(dtype) for _ in range(2)]


RESIZED = [
    {"sizes": [9.0, 20.0]},
    {"sizes": [9.0]},
    {"scales": [1.5, 0.6]},
    {"scales": [1.3]},
    {"sizes": [20.0], "axes": [1]},
    {"scales": [2.0], "axes": [-2]},
    {"sizes": [9.0, -20.0]},
    {"sizes": [9.4, 20.5]},
    {"sizes": [9.4, 20.5], "size_rounding": "truncate"},
    {"scales": [1.21, 1.33], "size_rounding": "ceil"},
    {"sizes": [9.4, 20.5], "subpixel_scale": False},
    {"sizes": [9.4, 20.4], "alignment": [0.0]},
    {"sizes": [9.4, 20.4], "alignment": [1.0, 0.3]},
    {"scales": PerSample([[1.3, 1.0], [0.77, 2.2]]), "alignment": PerSample([[0.0, 1.0], [0.2, 0.9]])},
    {"sizes": [20.0, 20.0], "mode": "not_larger"},
    {"sizes": [6.0, 6.0], "mode": "not_smaller"},
    {"sizes": [6.0, 0.0]},
    {"sizes": [6.0, 0.0], "mode": "stretch"},
    {"sizes": [6.0, 30.0], "max_size": [7.0, 22.0]},
    {"sizes": [9.0, 20.0], "roi_start": [1.0, 2.0], "roi_end": [5.0, 8.0]},
    {"scales": [1.5], "roi_start": [0.1, 0.2], "roi_end": [0.7, 0.9], "roi_relative": True},
    {"sizes": [9.0, 20.0], "interp_type": "types.INTERP_NN"},
    {"sizes": [3.0, 5.0], "antialias": False},
    {"sizes": [3.0, 5.0], "min_filter": "types.INTERP_CUBIC"},
    {"sizes": PerSample([[9.0, 20.0], [4.0, 5.0]])},
]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "float32"])
@pytest.mark.parametrize("arguments", RESIZED)
def test_tensor_resize(arguments, dtype):
    check("tensor_resize", [tensors(dtype, 8, 12)], arguments, **close(dtype))
    if not {"axes"} & set(arguments):
        check("tensor_resize", [tensors(dtype, 8, 12, 3)], {**arguments, "axes": [0, 1]}, **close(dtype))


@pytest.mark.parametrize(
    ("shape", "arguments", "layout"),
    [
        ((9,), {"sizes": [14.0]}, None),
        ((9, 7), {"sizes": [14.0], "axis_names": "W"}, "HW"),
        ((9, 7), {"sizes": [14.0, 4.0], "axis_names": "WH"}, "HW"),
        ((3, 9, 7), {"sizes": [5.0, 6.0], "axis_names": "HW"}, "CHW"),
        ((5, 6, 7), {"sizes": [7.0, 8.0, 9.0]}, None),
        ((5, 6, 7), {"scales": [1.4, 0.6], "axes": [0, 2]}, None),
        ((2, 5, 6, 3), {"sizes": [8.0, 9.0], "axes": [1, 2]}, "DHWC"),
        ((4, 5, 6, 3), {"scales": [1.5], "axes": [0, 1, 2]}, "DHWC"),
        ((9, 7), {"sizes": [5.0, 11.0], "dtype": "types.FLOAT"}, None),
    ],
)
def test_axes_of_tensor_resize(shape, arguments, layout):
    check("tensor_resize", [tensors("uint8", *shape)], arguments, layout, level=1, share=0.99)
