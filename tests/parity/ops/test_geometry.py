"""Geometry operators against the real DALI."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest

from tests import golden
from tests.check import PerSample, Result, check, compare
from tests.helpers.crop_cases import refused_by_both

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "warp_affine": "INTERP_NN: where a position falls on the edge of two pixels, float32 rounding picks one of them; "
    "a size per sample that is not whole is rounded, as a constant one is; DALI truncates it",
    "rotate": "INTERP_NN: as warp_affine",
    "sphere": "mask=0 as a constant leaves images as they are, as DALI documents; DALI warps them nevertheless",
    "water": "mask as of sphere",
    "bbox_rotate": "mode fixed and halfway at exactly 45 degrees: in DALI rounding decides if the sides are swapped",
    "grid_mask": "layouts other than HWC, on which DALI masks other axes or crashes",
    "multi_paste": "FHWC, on which DALI fails",
    "coord_transform": "no points: (0, rows) instead of DALI's (0, 0)",
    "jitter": "runs on the CPU too; random, and DALI has it on the GPU only: tested against its documentation",
    "experimental.remap": "runs on the CPU too; DALI has it on the GPU only: tested against a reference",
}

RANDOM = np.random.default_rng(5)
LEAD = {"HWC": (), "FHWC": (2,), "DHWC": (4,), "FDHWC": (2, 4)}
Arrays = list[np.ndarray]


def images(dtype: str, layout: str, channels: int = 3) -> Arrays:
    """Two samples of different sizes."""
    shapes = [(*LEAD[layout], *size, channels) for size in ((7, 10), (9, 6))]
    return [(RANDOM.random(shape) * 250).astype(dtype) for shape in shapes]


def close(arguments: dict[str, Any], dtype: str) -> dict[str, float]:
    """Return the tolerance: a level of 1 in 99 % of integers; 1e-4 of the range of floats."""
    whole = dtype != "float32" and arguments.get("dtype") != "types.FLOAT"
    return {"level": 1.0, "share": 0.99} if whole else {"level": 0.025}


def matrix(*rows: list[float]) -> np.ndarray:
    return np.array(rows, np.float32)


M = [0.87, -0.5, 3.0, 0.5, 0.9, -4.0]
M3 = [0.8713, -0.5071, 0.1013, 3.0077, 0.5057, 0.9031, 0.1091, -4.013, 0.1037, 0.2083, 1.1091, 0.5011]
AXIS = [1.0, 0.2, -0.3]

FLAT = [
    ("warp_affine", {"matrix": M}),
    ("warp_affine", {"matrix": M, "fill_value": 42.0}),
    ("warp_affine", {"matrix": M, "interp_type": "types.INTERP_NN"}),
    ("warp_affine", {"matrix": M, "interp_type": "types.INTERP_NN", "fill_value": 7.0}),
    ("warp_affine", {"matrix": M, "inverse_map": False, "size": [25.4, 32.5]}),
    ("warp_affine", {"matrix": M, "dtype": "types.FLOAT", "fill_value": -3.5}),
    ("warp_affine", {"matrix": M, "dtype": "types.FLOAT", "fill_value": 300.0, "interp_type": "types.INTERP_NN"}),
    ("warp_affine", {"matrix": PerSample([matrix([1, 0, 0.5], [0, 1, 0.25]), matrix([0.5, 0.1, 0], [0, 1, 2])])}),
    ("warp_affine", {"matrix": [2.0, 0, 0, 0, 2, 0], "interp_type": "types.INTERP_NN", "fill_value": 0.0}),
    ("warp_affine", {"matrix": M, "size": PerSample([[9.0, 8.0], [20.0, 30.0]])}),
    ("rotate", {"angle": 30.0}),
    ("rotate", {"angle": 90.0}),
    ("rotate", {"angle": -45.0, "fill_value": 0.0}),
    ("rotate", {"angle": 10.0, "keep_size": True}),
    ("rotate", {"angle": 100.0, "size": [40.0, 41.0], "interp_type": "types.INTERP_NN"}),
    ("rotate", {"angle": PerSample([10.0, 200.0]), "fill_value": 255.0}),
    ("rotate", {"angle": 180.0, "interp_type": "types.INTERP_NN"}),
    ("rotate", {"angle": 15.0, "dtype": "types.FLOAT"}),
]
SOLID = [
    ("warp_affine", {"matrix": M3}),
    ("warp_affine", {"matrix": M3, "fill_value": 42.0, "size": [5.0, 9.0, 12.0]}),
    ("warp_affine", {"matrix": M3, "interp_type": "types.INTERP_NN", "fill_value": 3.0}),
    ("warp_affine", {"matrix": M3, "interp_type": "types.INTERP_NN", "inverse_map": False}),
    ("rotate", {"angle": 30.0, "axis": AXIS}),
    ("rotate", {"angle": 90.0, "axis": [0.0, 0.0, 2.0], "interp_type": "types.INTERP_NN"}),
    ("rotate", {"angle": -45.0, "axis": [1.0, 0.0, 0.0], "fill_value": 0.0}),
    ("rotate", {"angle": 170.0, "axis": AXIS, "keep_size": True}),
    ("rotate", {"angle": PerSample([10.0, 200.0]), "axis": PerSample([[1.0, 1, 1], [0, 1.0, 0]])}),
    ("rotate", {"angle": 15.0, "axis": AXIS, "dtype": "types.FLOAT", "size": [4.0, 9.0, 9.0]}),
]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32"])
@pytest.mark.parametrize("layout", ["HWC", "FHWC"])
@pytest.mark.parametrize(("name", "arguments"), FLAT)
def test_flat_warps(name, arguments, layout, dtype):
    check(name, [images(dtype, layout)], arguments, layout, **close(arguments, dtype))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
@pytest.mark.parametrize("layout", ["DHWC", "FDHWC"])
@pytest.mark.parametrize(("name", "arguments"), SOLID)
def test_warps_of_volumes(name, arguments, layout, dtype):
    check(name, [images(dtype, layout, 2)], arguments, layout, **close(arguments, dtype))


@pytest.mark.parametrize("size", [(100, 200), (101, 201), (100, 201), (101, 200), (2, 9), (5, 7), (1, 1)])
def test_canvas_of_rotations(size):
    angles = [0.0, 0.001, 0.003, 10.0, 30.0, 44.9999, 45.0, 90.0, 89.9999, 135.0, 180.0, -45.0, -10.0, 225.0, 315.0]
    samples = [np.zeros((*size, 1), np.uint8)] * len(angles)
    check("rotate", [samples], {"angle": PerSample(angles)}, "HWC")


@pytest.mark.parametrize("angle", [0.0, 30.0, 45.0, 90.0, 120.0, 180.0])
def test_canvas_of_turned_volumes(angle):
    axes = [[0.0, 0, 1], [1.0, 0, 0], [0.0, 1, 0], [1.0, 1, 1], [1.0, 2, -3], [0.2, 0.1, 0.9]]
    arguments = {"angle": angle, "axis": PerSample(axes)}
    for size in ((4, 5, 6), (20, 31, 26)):
        check("rotate", [[np.zeros((*size, 1), np.uint8)] * len(axes)], arguments, "DHWC")


def test_matrix_as_an_input():
    matrices = [matrix([0.9, 0.1, 1], [0, 1.1, 2]), matrix([1, 0.3, 0], [-0.2, 1, 0.5])]
    check("warp_affine", [images("uint8", "HWC"), matrices], {}, ["HWC", None], level=1, share=0.99)


class Again:
    """A source of the same batch, again and again."""

    def __init__(self, batch: Any) -> None:
        self.batch = [np.array(x, np.float32) for x in batch]

    def __call__(self) -> Any:
        return self.batch


@golden.answered
def frames(library: str, name: str, video: Arrays, constants: dict[str, Any], values: dict[str, Any]) -> Result:
    """Run an operator on videos, with arguments that have one value a frame."""
    package = importlib.import_module(library)
    fn: Any = importlib.import_module(f"{library}.fn")

    @package.pipeline_def(batch_size=len(video), num_threads=1, device_id=None)
    def define() -> Any:
        function = fn
        for part in name.split("."):
            function = getattr(function, part)
        edges = {k: fn.per_frame(fn.external_source(source=Again(v))) for k, v in values.items()}
        inputs = [fn.external_source(source=lambda: video, layout="FHWC")] if video[0].size else []
        return function(*inputs, **constants, **edges)

    pipe = define()
    pipe.build()
    (out,) = pipe.run()
    return Result([np.array(out.at(i)) for i in range(len(video))], out.layout())


PER_FRAME = [
    ("rotate", {}, {"angle": [[0, 30], [90, 45]]}),
    ("rotate", {"keep_size": True, "fill_value": 1.0}, {"angle": [[0, 30], [90, 45]]}),
    ("warp_affine", {}, {"matrix": [[matrix([1, 0, i], [0, 1, j]) for i in range(2)] for j in range(2)]}),
]


@pytest.mark.parametrize(("name", "constants", "values"), PER_FRAME)
def test_values_per_frame(name, constants, values):
    video = images("uint8", "FHWC")
    found, wanted = (frames(library, name, video, constants, values) for library in ("torchdali", "nvidia.dali"))
    compare([found], [wanted], level=1, share=0.99)


DISPLACED = [
    ("water", {}),
    ("water", {"freq_x": math.pi / 6, "phase_x": math.pi / 3, "freq_y": math.pi / 12, "ampl_y": 4.0}),
    ("water", {"ampl_x": 3.0, "phase_y": 1.0, "freq_x": 0.2}),
    ("water", {"ampl_y": 2.0, "phase_x": -1.0, "freq_y": 0.5, "fill_value": 30.0}),
    ("water", {"interp_type": "types.INTERP_LINEAR", "fill_value": 9.0}),
    ("water", {"mask": PerSample([0, 1])}),
    ("water", {"mask": PerSample([1, 1])}),
    ("sphere", {}),
    ("sphere", {"fill_value": 200.0}),
    ("sphere", {"interp_type": "types.INTERP_LINEAR"}),
    ("sphere", {"interp_type": "types.INTERP_LINEAR", "fill_value": 77.5}),
    ("sphere", {"mask": PerSample([1, 0])}),
]


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize(("name", "arguments"), DISPLACED)
def test_displacements(name, arguments, channels, dtype):
    check(name, [images(dtype, "HWC", channels)], arguments, "HWC", **close(arguments, dtype))


@pytest.mark.parity
@pytest.mark.parametrize("arguments", [arguments for name, arguments in DISPLACED[:4] if name == "water"])
def test_every_pixel_of_water_comes_from_the_same_place(arguments):
    places = np.stack(np.meshgrid(np.arange(256), np.arange(256)), 2).astype(np.float32)
    check("water", [[places]], arguments, "HWC", level=0)


TRANSLATION = matrix([1, 0.5, 5], [0, 1, 7])
SOLID_TRANSFORM = matrix([1, 0.5, 0, 5], [0, 1, 0.1, 7], [0.2, 0, 1, 1])
TRANSFORMS = [
    ("translation", {"offset": [1.0, 2.0]}),
    ("translation", {"offset": [1.0, 2.0, 3.0]}),
    ("translation", {"offset": PerSample([[1.0, 2.0], [3.0, 4.0]])}),
    ("scale", {"scale": [2.0, 3.0]}),
    ("scale", {"scale": [2.0, 3.0], "center": [1.0, 2.0]}),
    ("scale", {"scale": [2.0, 3.0], "center": [1.0]}),
    ("scale", {"scale": PerSample([[1.0, 2.0], [3.0, 4.0]]), "center": [1.0, 2.0]}),
    ("rotation", {"angle": 30.0}),
    ("rotation", {"angle": -100.0, "center": [1.0, 2.0]}),
    ("rotation", {"angle": PerSample([30.0, 77.0])}),
    ("rotation", {"angle": 30.0, "axis": [1.0, 2.0, 3.0]}),
    ("rotation", {"angle": 30.0, "axis": [1.0, 2.0, 3.0], "center": [4.0, 0.0, 1.0]}),
    ("rotation", {"angle": PerSample([30.0, 77.0]), "axis": PerSample([[1.0, 0, 0], [0, 1.0, 1.0]])}),
    ("shear", {"shear": [1.0, 2.0]}),
    ("shear", {"shear": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "center": [1.0, 2.0, 3.0]}),
    ("shear", {"angles": [30.0, -10.0]}),
    ("shear", {"angles": [30.0, -10.0, 1.0, 2.0, 3.0, 4.0]}),
    ("shear", {"shear": PerSample([[1.0, 2.0], [0.1, 0.2]]), "center": [3.0, 4.0]}),
    ("crop", {"from_start": [0.0, 1.0], "from_end": [2.0, 5.0], "to_start": [1.0, 1.0], "to_end": [3.0, 9.0]}),
    ("crop", {"from_end": [2.0, 5.0], "to_end": 3.0}),
    ("crop", {"from_start": [2.0, 1.0], "from_end": [0.0, 5.0]}),
    ("crop", {"from_start": [2.0, 1.0], "from_end": [0.0, 5.0], "to_start": [1.0, 9.0], "absolute": True}),
    ("crop", {"to_start": PerSample([[1.0, 2.0, 3.0], [0.1, 0.2, 0.3]])}),
]


def vector_length(arguments: dict[str, Any]) -> int:
    values = [v[0] if isinstance(v, PerSample) else v for v in arguments.values()]
    return max([2, *(3 if len(v) == 6 else len(v) for v in values if isinstance(v, list))])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("name", "arguments"), TRANSFORMS)
def test_transforms_of_a_transform(name, arguments, reverse):
    given = [TRANSLATION, TRANSLATION * 2] if vector_length(arguments) == 2 else [SOLID_TRANSFORM] * 2
    arguments = {**arguments, "reverse_order": reverse}
    check(f"transforms.{name}", [given], arguments, relative=1e-5, level=2e-6)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *((n, a) for n, a in TRANSFORMS if any(isinstance(v, PerSample) for v in a.values())),
        ("crop", {"from_start": PerSample([[1.0, 1.0], [1.0, 2.0]]), "from_end": [1.0, 5.0]}),
    ],
)
def test_transforms_alone(name, arguments):
    check(f"transforms.{name}", [], arguments, relative=1e-5, level=1e-6)


@pytest.mark.parametrize("dims", [1, 3])
def test_scale_by_one_number(dims):
    check("transforms.scale", [], {"scale": PerSample([[2.0], [3.0]]), "ndim": dims})


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_combine(count, reverse):
    given = [[RANDOM.random((2, 3)).astype(np.float32) for _ in range(2)] for _ in range(count)]
    check("transforms.combine", given, {"reverse_order": reverse}, relative=1e-5, level=1e-6)


NOTHING = [np.zeros(0), np.zeros(0)]


@pytest.mark.parametrize(
    ("name", "constants", "values"),
    [
        ("transforms.rotation", {}, {"angle": [[0, 30], [90, 45, 10]]}),
        ("transforms.rotation", {"center": [1.0, 2.0]}, {"angle": [[0, 30], [90, 45]]}),
        ("transforms.translation", {}, {"offset": [[[0, 30], [1, 2]], [[90, 45], [3, 4]]]}),
        ("transforms.scale", {}, {"scale": [[[0, 30], [1, 2]], [[90, 45], [3, 4]]], "center": [[[1, 2]] * 2] * 2}),
    ],
)
def test_transforms_per_frame(name, constants, values):
    found, wanted = (frames(library, name, NOTHING, constants, values) for library in ("torchdali", "nvidia.dali"))
    compare([found], [wanted], relative=1e-5, level=1e-6)


POINTS = np.array([[1, 2], [3, 4], [250, 9]])
COORDINATES = [
    {"M": [1.0, 2.0, 3.0, 4.0]},
    {"M": 2.0},
    {"MT": [1.0, 0, 5, 0, 2, 7]},
    {"MT": [1.0, 2.0, 3.0]},
    {"T": [1.0, 2.0]},
    {"T": 1.0},
    {"M": [1.0, 1.0], "T": [1.0]},
    {"M": [1.0, 0, 0, 1, 1, 1], "T": [1.0, 2.0, 3.0]},
    {"M": PerSample([matrix([1, 2], [3, 4]), matrix([0.5, 2], [3, 4])]), "T": PerSample([[1.0, 2.0], [3.0, 4.0]])},
    {"M": PerSample([2.0, 0.5])},
    {},
]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "float32"])
@pytest.mark.parametrize("arguments", COORDINATES)
def test_coord_transform(arguments, dtype):
    points = [POINTS.astype(dtype), POINTS[:2].astype(dtype)]
    check("coord_transform", [points], arguments, "NX", relative=1e-5)
    if dtype != "float32":
        check("coord_transform", [points], {**arguments, "dtype": f"types.{dtype.upper()}"}, "NX", level=1, share=0.99)


FLIPS = [
    {},
    {"flip_x": 0, "flip_y": 1},
    {"layout": "yx"},
    {"center_x": 1.5},
    {"flip_x": PerSample([0, 1]), "flip_y": PerSample([1, 0])},
    {"center_y": PerSample([0.1, 0.2]), "flip_y": 1},
    {"flip_z": 1},
]


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("arguments", FLIPS)
def test_coord_flip(arguments, dims):
    if dims != 2 and "layout" in arguments:
        arguments = {"layout": "zyx"[-dims:], "flip_z": 1, "center_z": 1.0}
    points = [RANDOM.random((n, dims)).astype(np.float32) for n in (5, 3)]
    check("coord_flip", [points], arguments, level=1e-6)


def boxes(*counts: int, sized: bool = False) -> Arrays:
    """Return boxes in the unit square."""
    made = []
    for count in counts:
        corners = np.sort(RANDOM.random((count, 2, 2)), 1).astype(np.float32)
        corners[:, 1] -= corners[:, 0] * sized
        made.append(corners.reshape(count, 4))
    return made


@pytest.mark.parametrize("ltrb", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [{}, {"vertical": 1}, {"horizontal": 0}, {"horizontal": 0, "vertical": 1}, {"vertical": PerSample([0, 1])},
     {"horizontal": PerSample([0, 1])}],
)  # fmt: skip
def test_bb_flip(arguments, ltrb):
    check("bb_flip", [boxes(5, 3, sized=not ltrb)], {**arguments, "ltrb": ltrb}, level=1e-6)
    check("bb_flip", [[b[0] for b in boxes(5, 3)]], {**arguments, "ltrb": ltrb}, level=1e-6)


@pytest.mark.parametrize("mode", ["expand", "halfway", "fixed"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"angle": 30.0},
        {"angle": PerSample([90.0, -100.0])},
        {"angle": PerSample([46.0, 134.0]), "keep_size": True},
        {"angle": 0.0, "size": [150.0, 150.0]},
        {"angle": 20.0, "bbox_layout": "xyWH"},
        {"angle": 200.0, "keep_size": True, "remove_threshold": 0.6},
        {"angle": 70.0, "keep_size": True, "remove_threshold": 0.0},
        {"angle": 10.0, "input_shape": [3, 80, 60], "shape_layout": "CWH"},
    ],
)
def test_bbox_rotate(arguments, mode):
    arguments = {"input_shape": PerSample([[100, 200], [71, 30]]), "mode": mode, **arguments}
    given = boxes(9, 6, sized=arguments.get("bbox_layout") == "xyWH")
    check("bbox_rotate", [given], arguments, level=2e-6)
    labels = [np.arange(9, dtype=np.int32), np.arange(6, dtype=np.int32)]
    check("bbox_rotate", [given, labels], arguments, level=2e-6)
    check("bbox_rotate", [given, [x[:, None] for x in labels]], arguments, level=2e-6)


def test_bbox_rotate_needs_a_label_a_box():
    labels = [np.arange(6, dtype=np.int32), np.arange(9, dtype=np.int32)]
    refused_by_both("bbox_rotate", [boxes(9, 6), labels], {"angle": 5.0, "input_shape": [100, 200]})


def test_bbox_rotate_in_pixels():
    given = [b * np.float32([200, 100, 200, 100]) for b in boxes(5, 3)]
    arguments = {"angle": 30.0, "input_shape": [100, 200], "bbox_normalized": False}
    check("bbox_rotate", [given], arguments, level=1e-4)
    check("bbox_rotate", [given], {**arguments, "keep_size": True}, level=1e-4)


PASTED = [
    {"ratio": 2.0, "fill_value": [1, 2, 3]},
    {"ratio": 2.0, "fill_value": [7]},
    {"ratio": 1.5, "fill_value": [0], "paste_x": 0.0, "paste_y": 1.0},
    {"ratio": 1.0, "fill_value": [300], "min_canvas_size": 26.0},
    {"ratio": 1.7, "fill_value": [9], "paste_x": 0.3, "paste_y": 0.7},
    {"ratio": PerSample([1.2, 3.3]), "fill_value": [0], "paste_x": PerSample([0.1, 0.9]), "min_canvas_size": 15.5},
    {"ratio": 1.1, "fill_value": [3], "n_channels": 1},
]


@pytest.mark.parametrize("arguments", PASTED)
def test_paste(arguments):
    check("paste", [images("uint8", "HWC")], arguments, "HWC")


@pytest.mark.parametrize("ltrb", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        {"ratio": 2.0},
        {"ratio": 1.0},
        {"ratio": 1.5, "paste_x": 0.2, "paste_y": 0.9},
        {"ratio": PerSample([1.5, 3.0])},
        {"ratio": 2.5, "paste_x": PerSample([0.0, 1.0])},
        {"ratio": 1.2, "paste_y": PerSample([0.0, 1.0])},
        {"ratio": 0.4},
        {"ratio": PerSample([0.4, 1.5]), "paste_x": PerSample([0.2, -1.0]), "paste_y": PerSample([2.0, 3.0])},
    ],
)
def test_bbox_paste(arguments, ltrb):
    check("bbox_paste", [boxes(5, 3)], {**arguments, "ltrb": ltrb}, level=1e-6)


GRIDS = [
    {},
    {"tile": 4},
    {"tile": 10, "ratio": 0.3},
    {"tile": 5, "ratio": 0.4, "shift_x": 0.5, "shift_y": 1.5},
    {"tile": 7, "angle": 0.3, "shift_x": 2.5},
    {"tile": 6, "angle": -1.7, "ratio": 0.6, "shift_x": -3.3, "shift_y": 2.0},
    {"tile": PerSample([3, 8]), "ratio": PerSample([0.2, 0.8])},
]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32"])
@pytest.mark.parametrize("layout", ["HWC", None])
@pytest.mark.parametrize("arguments", GRIDS)
def test_grid_mask(arguments, layout, dtype):
    check("grid_mask", [images(dtype, "HWC")], arguments, layout)


def whole(*rows: list[int]) -> np.ndarray:
    return np.array(rows, np.int32)


IDS = PerSample([whole(0, 1), whole(1)])
REGIONS = [
    {"in_ids": IDS},
    {"in_ids": IDS, "out_anchors": PerSample([whole([0, 0], [2, 2]), whole([1, 1])])},
    {
        "in_ids": IDS,
        "in_anchors": PerSample([whole([1, 1], [2, 2]), whole([0, 0])]),
        "out_anchors": PerSample([whole([0, 0], [3, 3]), whole([1, 1])]),
        "shapes": PerSample([whole([2, 2], [2, 3]), whole([1, 1])]),
    },
    {
        "in_ids": IDS,
        "in_anchors_rel": PerSample([matrix([0.3, 0.5], [0.2, 0.15]), matrix([0, 0])]),
        "out_anchors_rel": PerSample([matrix([0, 0], [0.33, 0.19]), matrix([0.1, 0.1])]),
        "shapes_rel": PerSample([matrix([0.5, 0.5], [0.3, 0.35]), matrix([0.7, 1])]),
    },
    {"in_ids": PerSample([whole(1), whole(0)])},
    {"in_ids": IDS, "dtype": "types.FLOAT"},
    {"in_ids": IDS, "dtype": "types.UINT8"},
]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32"])
@pytest.mark.parametrize("arguments", REGIONS)
def test_multi_paste_of_the_batch(arguments, dtype):
    check("multi_paste", [images(dtype, "HWC")], {"output_size": [20, 26], **arguments}, "HWC")


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_multi_paste_of_inputs(dtype):
    given = [[RANDOM.integers(0, 255, (7, 9, 3)).astype(dtype) for _ in range(2)] for _ in range(3)]
    anchors = PerSample([whole([0, 0], [2, 2], [4, 1])] * 2)
    check("multi_paste", given[:1], {"output_size": [8, 10]}, "HWC")
    check("multi_paste", given, {}, "HWC")
    check("multi_paste", given, {"in_anchors": anchors}, "HWC")
    check("multi_paste", given, {"out_anchors": anchors, "output_size": PerSample([[12, 12], [13, 20]])}, "HWC")
