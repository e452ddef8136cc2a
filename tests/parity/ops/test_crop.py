"""crop and crop_mirror_normalize against the real DALI."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.check import PerSample, check, dali
from tests.helpers.crop_cases import PAD, SHAPES, arrays, f32, message, refused_by_both
from tests.helpers.data import folder

pytestmark = pytest.mark.golden

EXCEPTIONS: dict[str, str] = {
    "crop": "float16 output is rounded half to even (DALI: half away from zero), and saturates with several fill "
    "values too (DALI: wraps). More element types: dtype may be any (DALI: the input's own, float, float16, uint8), "
    "data may be bool or have five axes",
    "crop_mirror_normalize": "more input types and five axes; scale=0 gives shift (DALI: NaN); mean and std may "
    "have different numbers of values from sample to sample; integer results that lie half-way between two levels "
    "may be off by one",
}

# ---------------------------------------------------------------- crop

BORDERS = ["clamp", "edge", "wrap", "reflect", "reflect_101", "reflect1001", "Pad", "FILL"]

CROPS: list[dict[str, Any]] = [
    {},
    {"crop": [5, 4]},
    {"crop": [5.9, 4.2], "crop_pos_x": 0.25, "crop_pos_y": 0.7},
    {"crop": [0.6, 4.2]},
    {"crop": [5, 4], "crop_pos_x": 0.7, "crop_pos_y": 0.45, "rounding": "truncate"},
    {"crop": [2, 5, 4], "crop_pos_z": 1.0},
    {"crop_h": 6, "crop_w": 3, "crop_pos_y": 0.0},
    {"crop_h": 6, "crop_w": 3, "crop_d": 2},
    {"crop": [25, 4], "out_of_bounds_policy": "pad", "fill_values": [9.6]},
    {"crop": [25, 40], "out_of_bounds_policy": "pad", "crop_pos_x": 0.3, "rounding": "truncate"},
    {"crop": [25, 4], "out_of_bounds_policy": "trim_to_shape", "crop_pos_x": 0.0},
    {"crop_w": PerSample([f32(3), f32(5)]), "crop_h": PerSample([f32(4.5), f32(2)])},
    {"crop_w": 3.0, "crop_h": 0.0},
    {"crop": PerSample([f32([3, 4]), f32([5, 2])]), "crop_pos_x": PerSample([f32(0.1), f32(0.9)])},
]


@pytest.mark.parametrize("arguments", CROPS, ids=message)
@pytest.mark.parametrize("layout", ["HWC", "CHW", "DHWC", "CDHW", "FHWC", "CFHW"])
def test_crop(layout: str, arguments: dict[str, Any]) -> None:
    check("crop", [arrays(SHAPES[layout])], arguments, layout)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float64"])
def test_crop_types(dtype: str) -> None:
    outside = {"out_of_bounds_policy": "pad", "crop": [22, 5], "fill_values": [7.9, -8.2, 300.0]}
    check("crop", [arrays(SHAPES["HWC"], dtype)], outside, "HWC")


@pytest.mark.parametrize("source", ["uint8", "int16", "int32", "float32", "float16"])
@pytest.mark.parametrize("target", ["UINT8", "FLOAT", "FLOAT16"])
def test_crop_conversions(source: str, target: str) -> None:
    """DALI rounds ties away from zero on the way to float16, we to even: one unit of 2**-11."""
    unit = 2.0**-10 if target == "FLOAT16" else 0.0
    images = arrays(SHAPES["HWC"], source)
    dtype = {"dtype": f"types.{target}"}
    one = {**PAD, "crop": [22, 5], "fill_values": [7.9], **dtype}
    check("crop", [images], one, "HWC", relative=unit)
    # With several fill values DALI does not saturate: only values that fit agree.
    images = [np.clip(image, 0, 255) for image in images]
    several = {**PAD, "crop": [22, 5], "fill_values": [7.9, -8.2, 1e6], **dtype}
    check("crop", [images], several, "HWC", relative=unit)


@pytest.mark.parametrize("policy", BORDERS)
def test_crop_and_slice_borders(policy: str) -> None:
    outside = {"out_of_bounds_policy": policy, "crop": [47, 17], "crop_pos_x": 0.3}
    check("crop", [arrays(SHAPES["HWC"])], outside, "HWC")
    lines = {"start": [-7], "end": [11], "axes": [0], "out_of_bounds_policy": policy}
    check("slice", [arrays([(3,), (1,)], "int32")], lines)


@pytest.mark.slow
def test_crop_positions() -> None:
    """Starts are rounded as DALI does for 400 positions, windows inside and outside."""
    rng = np.random.default_rng(3)
    extents, windows = rng.integers(5, 64, 400), rng.integers(1, 90, 400)
    positions = rng.integers(0, 41, 400) / 40
    images = [np.arange(1, e + 1, dtype=np.int32).reshape(1, -1, 1) for e in extents]
    arguments = {
        "crop_h": 1.0, "crop_w": PerSample(list(map(f32, windows))),
        "crop_pos_x": PerSample(list(map(f32, positions))), "out_of_bounds_policy": "pad",
    }  # fmt: skip
    for rounding in ("round", "truncate"):
        check("crop", [images], {**arguments, "rounding": rounding}, "HWC")


BAD_CROPS: list[tuple[dict[str, Any], str]] = [
    ({"crop": [30, 4]}, "HWC"),
    ({"crop": [3, 4], "crop_w": 4, "crop_h": 3}, "HWC"),
    ({"crop": [3]}, "HWC"),
    ({"crop": [3, 3, 3, 3]}, "HWC"),
    ({"crop_w": 3}, "HWC"),
    ({"crop_d": 3}, "HWC"),
    ({"crop": [3, 3], "crop_pos_x": 1.1}, "HWC"),
    ({"crop": [3, 3], "crop_pos_y": -0.1}, "HWC"),
    ({"crop": [3, 3], "rounding": "up"}, "HWC"),
    ({"crop": [3, 3], "out_of_bounds_policy": "repeat"}, "HWC"),
    ({"crop": [3, 3], "out_of_bounds_policy": "pad", "fill_values": [1, 2]}, "HWC"),
    ({"crop": [3, 3]}, "XYZ"),
    ({"crop": [3, 3], "croq": 3}, "HWC"),
]


@pytest.mark.parametrize("arguments, layout", BAD_CROPS, ids=message)
@pytest.mark.parametrize("name", ["crop", "crop_mirror_normalize"])
def test_crop_errors(name: str, arguments: dict[str, Any], layout: str) -> None:
    refused_by_both(name, [arrays(SHAPES["HWC"][:1])], arguments, layout)


# ---------------------------------------------------------------- crop_mirror_normalize

RGB = {"mean": [123.675, 116.28, 103.53], "std": [58.395, 57.12, 57.375]}

NORMALIZED: list[dict[str, Any]] = [
    {},
    {"mirror": 1},
    {**RGB, "crop": [8, 5], "mirror": PerSample([0, 1])},
    {**RGB, "scale": 1 / 3, "shift": 0.25, "mirror": 1, "crop": [5, 6], "crop_pos_x": 0.0},
    {"mean": [3], "std": [1, 2, 4], "scale": 10, "shift": 0.5},
    {"mean": [1, 2, 3], "std": [4.0]},
    {"mean": [1.0], "std": [0.0]},
    {"mean": [1.0, 2.0, 3.0], "std": [0.0, 1.0, 2.0], "shift": 3.0},
    {"pad_output": True, **RGB},
    {"pad_output": True, "mean": [1, 2, 3, 4], "mirror": 1},
    {**RGB, **PAD, "crop": [25, 6], "fill_values": [7.5], "mirror": 1},
    {**RGB, **PAD, "crop": [25, 36], "fill_values": [7.5, -8, 9], "crop_pos_x": 0.2, "mirror": 1},
    {**RGB, **PAD, "crop": [25, 6], "fill_values": [7.5], "pad_output": True},
    {**PAD, "crop": [5, 36], "fill_values": [1, 2, 3, 4], "pad_output": True, "mirror": 1},
    {"out_of_bounds_policy": "trim_to_shape", "crop": [25, 5], "mirror": 1, "std": [2]},
    {"mean": PerSample([f32([1, 2, 3]), f32([4, 5, 6])]), "std": PerSample([f32([2]), f32([3])])},
    {"mean": PerSample([f32(1), f32(2)])},
]


@pytest.mark.parametrize("arguments", NORMALIZED, ids=message)
@pytest.mark.parametrize("output_layout", ["CHW", "HWC", "WCH", ""])
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_crop_mirror_normalize(
    layout: str, output_layout: str, arguments: dict[str, Any]
) -> None:
    arguments = {**arguments, "output_layout": output_layout}
    check(
        "crop_mirror_normalize", [arrays(SHAPES[layout])], arguments, layout,
        level=1e-5, relative=1e-6,
    )  # fmt: skip


@pytest.mark.parametrize(
    "layout, output_layout",
    [("DHWC", "CDHW"), ("DHWC", "DHWC"), ("CDHW", "DHWC"), ("FHWC", "FCHW"), ("FHWC", "FWHC"),
     ("FCHW", "FCHW"), ("FCHW", "CFHW"), ("CFHW", "FHWC")],
)  # fmt: skip
def test_crop_mirror_normalize_frames_and_volumes(layout: str, output_layout: str) -> None:
    channels = SHAPES[layout][0][layout.index("C")]
    for arguments in (
        {"mirror": 1, "crop": [2, 5, 6]},
        {"mean": [5.0] * channels, "std": [3.0], "pad_output": True},
        {"crop": [12, 5], **PAD, "fill_values": [3], "mirror": PerSample([1, 0])},
    ):
        check(
            "crop_mirror_normalize", [arrays(SHAPES[layout])],
            {**arguments, "output_layout": output_layout}, layout, level=1e-5, relative=1e-6,
        )  # fmt: skip


@pytest.mark.parametrize("source", ["uint8", "int16", "uint16", "int32", "float32", "float16"])
@pytest.mark.parametrize("target", ["FLOAT", "FLOAT16", "UINT8", "INT8"])
def test_crop_mirror_normalize_types(source: str, target: str) -> None:
    fill = {**PAD, "crop": [25, 6], "fill_values": [7.9, -8.2, 300.0]}
    coarse = target == "FLOAT16"
    for arguments in ({}, RGB, {**RGB, "output_layout": "HWC", "mirror": 1}, fill):
        check(
            "crop_mirror_normalize", [arrays(SHAPES["HWC"], source)],
            {**arguments, "dtype": f"types.{target}"}, "HWC",
            level=1e-3 if coarse else 2e-5, relative=1e-3 if coarse else 1e-6,
        )  # fmt: skip


BAD_NORMALIZED: list[dict[str, Any]] = [
    {"mean": [1, 2]},
    {"mean": [1, 2, 3, 4]},
    {"mean": [1, 2], "std": [1, 2, 3]},
    {"pad_output": True, "mean": [1, 2, 3, 4, 5]},
    {"output_layout": "HW"},
    {"output_layout": "XYZ"},
    {"output_layout": "HHC"},
    {"dtype": "types.INT16"},
    {"dtype": "types.FLOAT64"},
    {**PAD, "fill_values": [1, 2, 3], "pad_output": True},
]


@pytest.mark.parametrize("arguments", BAD_NORMALIZED, ids=message)
def test_crop_mirror_normalize_errors(arguments: dict[str, Any]) -> None:
    refused_by_both("crop_mirror_normalize", [arrays(SHAPES["HWC"][:1])], arguments, "HWC")


@pytest.mark.parity
def test_crop_mirror_normalize_photos() -> None:
    """The training pipeline's step on real photos: within 1e-5 of DALI."""
    files = sorted(folder("imagenet").rglob("*.JPEG"))[:4] or sorted(folder("imagenet").rglob("*.jp*g"))[:4]
    encoded = [np.fromfile(f, np.uint8) for f in files]
    photos = dali("decoders.image", [encoded], {})[0].samples
    arguments: dict[str, Any] = {**RGB, "crop": [160, 160], "mirror": PerSample([1, 0] * (len(photos) // 2)), **PAD}
    check("crop_mirror_normalize", [photos], arguments, "HWC", level=1e-5)
