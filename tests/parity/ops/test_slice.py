"""slice, flip, pad and erase against the real DALI."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.check import PerSample, check
from tests.helpers.crop_cases import PAD, SHAPES, Array, arrays, f32, i32, message, refused_by_both

pytestmark = pytest.mark.golden

EXCEPTIONS: dict[str, str] = {
    "slice": "more element types and any number of axes; rel_shape=0 is never refused (DALI: sometimes)",
    "flip": "bool and float16 too",
    "pad": "float64 too",
    "erase": "float64 and bool too, and axes counted from the end; axes that do not exist or occur twice, and data "
    "without a layout and without axes, are errors (DALI overwrites everything or crashes)",
}

# ---------------------------------------------------------------- slice

VECTORS = [(10,), (7,)]

LINES: list[dict[str, Any]] = [
    {"start": [2], "end": [5]},
    {"start": [2], "shape": [4]},
    {"end": [6]},
    {"start": [3]},
    {"shape": [3]},
    {"rel_start": [0.55]},
    {"rel_end": [0.55]},
    {"rel_shape": [0.55]},
    {"rel_start": [0.25], "rel_shape": [0.25]},
    {"rel_start": [0.25], "shape": [3]},
    {"start": [2], "rel_shape": [0.25]},
    {"start": [2], "rel_end": [0.5]},
    {"rel_start": [0.2], "rel_end": [0.5]},
    {"start": [7], "end": [7]},
    {"start": [-2], "end": [2], **PAD, "fill_values": [7.9]},
    {"start": [-2], "end": [12], "out_of_bounds_policy": "trim_to_shape"},
    {"start": [12], "end": [14], **PAD, "fill_values": [-7.9]},
    {"start": [12], "end": [14], "out_of_bounds_policy": "trim_to_shape"},
    {"start": [-5], "end": [-2], "out_of_bounds_policy": "trim_to_shape"},
    {"rel_start": [-0.25], "rel_end": [1.25], **PAD},
    {"start": PerSample([1, 2]), "end": PerSample([3, 6])},
    {"rel_start": PerSample([f32(0.1), f32(0.3)]), "rel_end": PerSample([f32(0.3), f32(0.8)])},
    {"start": [2], "end": [4], "dtype": "types.FLOAT"},
]


@pytest.mark.parametrize("arguments", LINES, ids=message)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_slice_by_arguments(arguments: dict[str, Any], dtype: str) -> None:
    check("slice", [arrays(VECTORS, dtype)], {"axes": [0], **arguments})


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float64"])
def test_slice_types(dtype: str) -> None:
    outside = {**PAD, "fill_values": [7.9, -8.2, 300.0], "start": [4, 9], "shape": [3, 14]}
    check("slice", [arrays(SHAPES["HWC"], dtype)], outside, "HWC")


IMAGES: list[tuple[dict[str, Any], str | None]] = [
    ({"start": [2, 1], "end": [5, 8]}, "HWC"),
    ({"start": [2, 1], "end": [5, 8]}, "CHW"),
    ({"start": [2, 1], "end": [5, 8]}, "FHWC"),
    ({"start": [2, 1], "end": [5, 8]}, None),
    ({"start": 1, "end": 5}, "HWC"),
    ({"start": [2, 1, 0], "end": [5, 8, 2], "axis_names": "HWC"}, "HWC"),
    ({"start": [2, 1], "end": [5, 2], "axis_names": "HC"}, "CHW"),
    ({"start": [2, 1, 1], "end": [5, 8, 2], "axis_names": ""}, "HWC"),
    ({"start": [1], "end": [2], "axes": [-1]}, "HWC"),
    ({"start": [1, 2], "end": [2, 5], "axes": [-1, 0]}, None),
    ({"start": PerSample([i32([1, 2]), i32([0, 0])]), "end": PerSample([i32([3, 3]), i32([2, 9])])}, "HWC"),
    ({"axes": PerSample([i32([0]), i32([1])]), "start": PerSample([i32([1]), i32([2])])}, None),
    ({"start": [8, 9], "shape": [5, 9], **PAD, "fill_values": [1, 2, 3]}, "HWC"),
    ({"start": [8, 9], "shape": [5, 9], **PAD, "fill_values": [1, 2, 3]}, None),
    ({"axes": [2], "start": [1], "shape": [4], **PAD, "fill_values": [1, 2, 3, 4]}, "HWC"),
]


@pytest.mark.parametrize("arguments, layout", IMAGES, ids=message)
def test_slice_of_images(arguments: dict[str, Any], layout: str | None) -> None:
    check("slice", [arrays(SHAPES[layout or "HWC"])], arguments, layout)


ANCHORS: list[tuple[dict[str, Any], list[Array], list[Array]]] = [
    ({}, [f32([0.2, 0.5]), f32([0.1, 0.0])], [f32([0.4, 0.5]), f32([0.45, 1.0])]),
    ({}, [i32([2, 1]), i32([0, 3])], [i32([4, 8]), i32([1, 0])]),
    ({}, [np.array([2, 1]), np.array([0, 3])], [np.array([4, 8]), np.array([1, 0])]),
    ({"axis_names": "HW"}, [f32([0.2, 0.5]), f32([0.1, 0.0])], [f32([0.4, 0.5]), f32([0.45, 1.0])]),
    ({"axes": [2]}, [f32([0.3]), f32([0.4])], [f32([0.7]), f32([0.6])]),
    ({"normalized_anchor": False}, [f32([2.5, 1.4]), f32([0.5, 0])], [f32([0.4, 0.3]), f32([0.3, 1])]),
    ({"normalized_shape": False}, [f32([0.2, 0.5]), f32([0.1, 0.0])], [f32([2.5, 3.4]), f32([4.5, 1])]),
    ({"normalized_anchor": False, "normalized_shape": False}, [f32([2.5, 1])] * 2, [f32([2, 3.4])] * 2),
    ({**PAD, "fill_values": [5]}, [f32([-0.1, 0.5]), f32([0.9, 0.0])], [f32([0.4, 0.7]), f32([0.4, 1])]),
    ({"out_of_bounds_policy": "trim_to_shape"}, [f32([-0.1, 0.5])] * 2, [f32([0.4, 0.7])] * 2),
]


@pytest.mark.parametrize("arguments, anchors, shapes", ANCHORS, ids=message)
def test_slice_by_inputs(
    arguments: dict[str, Any], anchors: list[Array], shapes: list[Array]
) -> None:
    inputs = [arrays(SHAPES["HWC"]), anchors, shapes]
    check("slice", inputs, arguments, ["HWC", None, None])


@pytest.mark.slow
def test_slice_positions() -> None:
    """Starts and ends are rounded as DALI does, for every way of giving them."""
    rng = np.random.default_rng(2)
    count = 400
    lengths = rng.integers(5, 64, count)
    lines = [np.arange(1, n + 1, dtype=np.int32) for n in lengths]
    first = [f32([v / 40]) for v in rng.integers(-8, 41, count)]
    size = [f32([v / 40]) for v in rng.integers(1, 41, count)]
    last = [np.maximum(a, b) for a, b in zip(first, size, strict=True)]
    whole = [i32([v]) for v in rng.integers(0, 20, count)]
    base = {"axes": [0], **PAD}
    for arguments in (
        {"rel_start": PerSample(first), "rel_shape": PerSample(size)},
        {"rel_start": PerSample(first), "rel_end": PerSample(last)},
        {"rel_start": PerSample(first), "shape": PerSample(whole)},
        {"start": PerSample(whole), "rel_shape": PerSample(size)},
    ):
        check("slice", [lines], {**base, **arguments})
    check("slice", [lines, first, size], base)
    for absolute in ("normalized_anchor", "normalized_shape"):
        check("slice", [lines, first, size], {**base, absolute: False})


BAD_SLICES: list[tuple[dict[str, Any], list[Array]]] = [
    ({}, []),
    ({"start": [-2], "end": [2]}, []),
    ({"start": [5], "end": [2]}, []),
    ({"start": [5], "shape": [-2]}, []),
    ({"start": [2], "rel_start": [0.1]}, []),
    ({"end": [2], "shape": [1]}, []),
    ({"end": [2], "rel_end": [0.1]}, []),
    ({"start": [1, 2]}, []),
    ({"start": [1], "out_of_bounds_policy": "repeat"}, []),
    ({"start": [1], "axes": [1]}, []),
    ({"start": [1], "axes": [0, 0]}, []),
    ({"start": [1], "axis_names": "X"}, []),
    ({"start": [1], "axis_names": "H"}, []),
    ({"start": [1], "end": [12], **PAD, "fill_values": [1, 2]}, []),
    ({}, [i32([2])]),
    ({}, [i32([2]), f32([0.3])]),
    ({}, [np.array([2], np.uint8), np.array([3], np.uint8)]),
    ({}, [i32([2]), i32([3, 4])]),
    ({}, [i32([5]), i32([-2])]),
    ({"start": [1]}, [i32([2]), i32([3])]),
]


@pytest.mark.parametrize("arguments, others", BAD_SLICES, ids=message)
def test_slice_errors(arguments: dict[str, Any], others: list[Array]) -> None:
    inputs = [arrays(VECTORS[:1]), *[[other] for other in others]]
    refused_by_both("slice", inputs, {"axes": [0], **arguments})


# ---------------------------------------------------------------- flip, pad, erase

FLIPS: list[dict[str, Any]] = [
    {},
    {"horizontal": 0},
    {"vertical": 1},
    {"horizontal": 0, "vertical": 2, "depthwise": 1},
    {"depthwise": -1, "vertical": 1},
    {"horizontal": PerSample([0, 1]), "vertical": PerSample([1, 0])},
]


@pytest.mark.parametrize("arguments", FLIPS, ids=message)
@pytest.mark.parametrize("layout", ["HWC", "CHW", "DHWC", "CDHW", "FHWC", "FCHW", "FDHWC", "FCDHW"])
def test_flip(layout: str, arguments: dict[str, Any]) -> None:
    shapes = SHAPES.get(layout) or [(2, *shape) for shape in SHAPES[layout[1:]]]
    check("flip", [arrays(shapes)], arguments, layout)


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
)
def test_flip_types(dtype: str) -> None:
    check("flip", [arrays(SHAPES["HWC"], dtype)], {"vertical": 1}, "HWC")
    check("flip", [arrays([(6, 5, 3)] * 3, dtype)], {}, "HWC")


@pytest.mark.parametrize("layout", ["CFHW", "HW", "XYZ"])
def test_flip_errors(layout: str) -> None:
    refused_by_both("flip", [arrays([(3,) * len(layout)])], {}, layout)


PADS: list[tuple[dict[str, Any], str | None]] = [
    ({}, None),
    ({}, "HW"),
    ({"axes": [0]}, None),
    ({"axes": [-1]}, None),
    ({"axes": []}, None),
    ({"axis_names": "W"}, "HW"),
    ({"align": [4]}, None),
    ({"align": [1, 4]}, "HW"),
    ({"align": 4, "axes": [1]}, None),
    ({"shape": [4, 4]}, None),
    ({"shape": [-1, 4]}, None),
    ({"shape": [4]}, None),
    ({"shape": [5, 5], "align": [4]}, None),
    ({"shape": [1, 1]}, None),
    ({"shape": [1, 1], "align": [4]}, None),
    ({"shape": [7], "axes": [1]}, None),
    ({"fill_value": 300}, None),
    ({"fill_value": -1.5}, None),
    ({"fill_value": PerSample([f32(7.9), f32(-1)])}, None),
    ({"shape": PerSample([i32([4, 4]), i32([7, 7])])}, None),
    ({"shape": PerSample([4, 7]), "axes": [0]}, None),
    ({"align": PerSample([i32([4, 4]), i32([7, 7])])}, None),
    ({"axes": PerSample([i32([0]), i32([1])])}, None),
    ({"axes": PerSample([i32([0, 1]), i32([1])]), "align": 3}, None),
]


@pytest.mark.parametrize("arguments, layout", PADS, ids=message)
def test_pad(arguments: dict[str, Any], layout: str | None) -> None:
    check("pad", [arrays([(2, 3), (5, 1)])], arguments, layout, over_batch=True)


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "bool"]
)
def test_pad_types(dtype: str) -> None:
    for shapes in ([(3,), (1,)], [(1, 2, 3), (3, 2, 1)], [(1, 2, 1, 2, 1), (2, 2, 2, 2, 2)]):
        check("pad", [arrays(shapes, dtype)], {"fill_value": -1.5}, over_batch=True)


BAD_PADS: list[dict[str, Any]] = [
    {"axes": [2]},
    {"axes": [0, 0]},
    {"axes": [0], "axis_names": "H"},
    {"axis_names": "X"},
    {"align": [0]},
    {"align": [-1]},
    {"align": [4, 4, 4]},
    {"align": [1, 4], "axes": [1]},
    {"shape": [4, 4, 4]},
]


@pytest.mark.parametrize("arguments", BAD_PADS, ids=message)
def test_pad_errors(arguments: dict[str, Any]) -> None:
    refused_by_both("pad", [arrays([(2, 3), (5, 1)])], arguments, "HW")


ERASED: list[tuple[dict[str, Any], str | None]] = [
    ({}, "HW"),
    ({"anchor": [1, 2], "shape": [2, 3]}, "HW"),
    ({"anchor": [1, 2], "shape": [2, 3], "axis_names": "WH"}, "HW"),
    ({"anchor": [1, 2], "shape": [2, 3], "axes": [0, 1]}, None),
    ({"anchor": [1, 2], "shape": [2, 3], "axes": [1, 0]}, "HW"),
    ({"anchor": [1], "shape": [2], "axes": [1]}, None),
    ({"anchor": [1, 2], "shape": [2, 3]}, "ft"),
    ({"shape": [2, 3]}, "HW"),
    ({"anchor": [0, 0, 3, 3, 1, 4], "shape": [1, 1, 2, 2, 3, 1]}, "HW"),
    ({"anchor": [0.5, 1.5], "shape": [1.5, 2.5]}, "HW"),
    ({"anchor": [-1.5, 4.2], "shape": [3.1, 5]}, "HW"),
    ({"anchor": [10, 10], "shape": [3, 5]}, "HW"),
    ({"anchor": [3, 3], "shape": [-2, -2]}, "HW"),
    ({"anchor": [0.25, 0.25], "shape": [0.5, 0.5], "normalized": True}, "HW"),
    ({"anchor": [0.25, 0.25], "shape": [1, 2], "normalized_anchor": True}, "HW"),
    ({"anchor": [1, 1], "shape": [0.5, 0.5], "normalized_shape": True}, "HW"),
    ({"anchor": [2, 3], "shape": [3, 3], "centered_anchor": True}, "HW"),
    ({"anchor": [0.5, 0.5], "shape": [0.4, 0.6], "centered_anchor": True, "normalized": True}, "HW"),
    ({"anchor": [1, 1], "shape": [1, 1], "fill_value": 300}, "HW"),
    ({"anchor": [1, 1], "shape": [1, 1], "fill_value": -1.5}, "HW"),
    (
        {
            "anchor": PerSample([f32([1, 1]), f32([0, 0, 3, 3])]),
            "shape": PerSample([f32([2, 2]), f32([1, 6, 1, 1])]),
        },
        "HW",
    ),
    ({"anchor": [1, 1], "shape": [1, 2], "fill_value": PerSample([f32([5]), f32([6])])}, "HW"),
]


@pytest.mark.parametrize("arguments, layout", ERASED, ids=message)
def test_erase(arguments: dict[str, Any], layout: str | None) -> None:
    check("erase", [arrays([(8, 9), (5, 6)])], arguments, layout)


@pytest.mark.parametrize("layout", sorted(SHAPES))
def test_erase_of_images(layout: str) -> None:
    channels = SHAPES[layout][0][layout.index("C")]
    fill = [7.0, 8.9, -1.2][:channels]
    extents = len(layout) - 1
    for arguments in (
        {"anchor": [1] * extents, "shape": [3] * extents},
        {"anchor": [1, 2], "shape": [3, 4], "axis_names": "HW"},
        {"anchor": [1, 2], "shape": [3, 4], "axis_names": layout[:2]},
    ):
        check("erase", [arrays(SHAPES[layout])], {**arguments, "fill_value": fill}, layout)


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float16"]
)
def test_erase_types(dtype: str) -> None:
    arguments = {"anchor": [1, 2], "shape": [3, 4], "fill_value": -1.5}
    check("erase", [arrays([(8, 9), (5, 6)], dtype)], arguments, "HW")


@pytest.mark.slow
def test_erase_positions() -> None:
    """Regions are cut as DALI does for 400 places, absolute, relative and centred."""
    rng = np.random.default_rng(4)
    lines = [np.ones((n, 1), np.uint8) for n in rng.integers(5, 64, 400)]
    for steps, relative in ((40, True), (2, False)):
        first = PerSample([f32([v / steps]) for v in rng.integers(-8, 41, 400)])
        size = PerSample([f32([v / steps]) for v in rng.integers(1, 41, 400)])
        for centred in (False, True):
            arguments = {"anchor": first, "shape": size, "axis_names": "H", "normalized": relative,
                         "centered_anchor": centred}  # fmt: skip
            check("erase", [lines], arguments, "HW")


BAD_ERASED: list[dict[str, Any]] = [
    {"anchor": [1, 2]},
    {"anchor": [1], "shape": [2]},
    {"anchor": [1, 2], "shape": [2]},
    {"anchor": [1, 2, 3], "shape": [2, 2, 2]},
    {"anchor": [1, 2], "shape": [2, 2], "axis_names": "HX"},
    {"anchor": [0, 0], "shape": [1, 1], "fill_value": [1, 2]},
    {"anchor": [0, 0], "shape": [1, 1], "normalized": True, "normalized_anchor": True},
]


@pytest.mark.parametrize("arguments", BAD_ERASED, ids=message)
def test_erase_errors(arguments: dict[str, Any]) -> None:
    refused_by_both("erase", [arrays([(5, 6)])], arguments, "HW")
