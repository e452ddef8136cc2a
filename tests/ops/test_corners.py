"""Tables of corner cases: torchdali returns the same as the real DALI, or raises the same class of error."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.helpers.libraries import check

pytestmark = pytest.mark.golden


class Frames(NamedTuple):
    """Values of an argument per frame, one array per sample."""

    samples: list[Any]


class Each(NamedTuple):
    """Values of an argument, one array per sample."""

    samples: list[Any]


class Name(NamedTuple):
    """A member of ``types``."""

    name: str


Batch = tuple[list[Any], "str | None"]
RNG = np.random.default_rng(3)


def of(shape: tuple[int, ...], dtype: str = "uint8", layout: str | None = None, count: int = 2) -> Batch:
    """Return a batch of `count` samples, and its layout."""
    return [RNG.integers(0, 100, shape).astype(dtype) for _ in range(count)], layout


def run(library: Any, name: str, batches: list[Batch], arguments: dict[str, Any]) -> Any:
    """Run an operator on batches; return dtype, layout and values (four decimals) of its outputs."""
    fn, counts = library.fn, [len(samples) for samples, _ in batches]
    counts += [len(v.samples) for v in arguments.values() if isinstance(v, (Frames, Each))]
    pipe = library.Pipeline(batch_size=max(counts, default=1), num_threads=1, device_id=None)

    def source(samples: list[Any], layout: str | None = None) -> Any:
        return fn.external_source(lambda: [np.asarray(s) for s in samples], layout=layout)

    def value(given: Any) -> Any:
        if isinstance(given, Frames):
            return fn.per_frame(source(given.samples))
        if isinstance(given, Name):
            return getattr(library.types, given.name)
        return source(given.samples) if isinstance(given, Each) else given

    function = fn
    for part in name.split("."):
        function = getattr(function, part)
    with pipe:
        nodes = [source(*batch) for batch in batches]
        made = function(*nodes, **{k: value(v) for k, v in arguments.items()})
        pipe.set_outputs(*(made if isinstance(made, (list, tuple)) else [made]))
    pipe.build()
    outputs = pipe.run()
    return [
        (out.dtype.name, out.layout(), [np.round(out.at(i), 4).tolist() for i in range(len(out))], out.shape())
        for out in outputs
    ]


F32, I32 = np.float32, np.int32
MATRICES = np.stack([np.eye(2, 3, dtype=F32) * (i + 1) for i in range(3)])
POINTS = RNG.random((3, 5, 2), F32)
SQUARE = of((8, 8, 3), layout="HWC")
VIDEO = of((3, 4, 5, 3), layout="FHWC")
PAIRS = ([np.zeros((4, 5, 3), np.uint8), np.ones((6, 5, 1), np.uint8)], "HWC")

TRANSFORMS = [
    ("transforms.rotation", [], {"angle": Frames([F32([1, 2, 3])]), "center": Frames([F32([[1, 2]])])}),
    ("transforms.rotation", [], {"angle": Frames([F32([1])]), "center": Frames([F32([[1, 2]] * 3)])}),
    ("transforms.rotation", [], {"angle": Frames([F32([1, 2, 3])]), "center": Frames([F32([[1, 2]] * 2)])}),
    ("transforms.rotation", [([MATRICES], "F**")], {"angle": Frames([F32([9])])}),
    ("transforms.rotation", [([MATRICES[:1]], "F**")], {"angle": Frames([F32([1, 2, 3])])}),
    ("transforms.rotation", [([MATRICES, MATRICES[:2]], "F**")], {"angle": Frames([F32([1, 2, 3]), F32([4])])}),
    ("transforms.rotation", [], {"angle": Each([F32([1, 2, 3])])}),
    ("transforms.combine", [([MATRICES], "F**"), ([MATRICES[:2]], "F**")], {}),
    ("transforms.combine", [([MATRICES], "F**"), ([MATRICES[0]], None)], {}),
    ("transforms.shear", [], {"shear": Each([F32([[1, 2], [3, 4], [5, 6]])])}),
    ("transforms.shear", [], {"angles": Each([F32([[10], [20]])])}),
    ("transforms.shear", [], {"shear": Frames([F32([[1, 2], [3, 4]])])}),
    ("coord_transform", [([POINTS], "F**")], {"M": Frames([F32([[[1, 2], [3, 4]]])])}),
    ("coord_transform", [([POINTS], "F**")], {"M": Frames([F32([[[1, 2], [3, 4]]] * 2)])}),
    ("coord_transform", [([POINTS[0]], None)], {"M": Frames([F32([[[1, 2], [3, 4]]] * 3)])}),
    ("coord_transform", [([POINTS[0], POINTS[1]], "NC")], {"MT": Frames([F32([[[1, 2, 3], [3, 4, 5]]] * n) for n in (3, 1)])}),
    ("coord_transform", [([POINTS[0]], "NC")], {"M": Frames([F32([[[1, 2], [3, 4]]] * 3)]), "T": Frames([F32([[5, 6]])])}),
    ("coord_transform", [([POINTS[0]], "NC")], {"M": Frames([F32([[[1, 2], [3, 4]]] * 3)]), "T": Frames([F32([[5, 6]] * 2)])}),
    ("brightness", [VIDEO], {"brightness": Frames([F32([0.5])] * 2)}),
    ("brightness", [VIDEO], {"brightness": Frames([F32([0.5, 2])] * 2)}),
    ("rotate", [VIDEO], {"angle": Frames([F32([90, 90])] * 2)}),
    ("flip", [VIDEO], {"horizontal": Frames([I32([0, 1, 0])] * 2)}),  # rejects per-frame values, like the next ones
    ("flip", [of((1, 4, 5, 3), layout="FHWC")], {"horizontal": Frames([I32([1]), I32([0])])}),
    ("crop", [VIDEO], {"crop": [2, 2], "crop_pos_x": Frames([F32([0, 1, 0.5])] * 2)}),
    ("pad", [VIDEO], {"fill_value": Frames([F32([0, 1, 5])] * 2)}),
    ("pad", [of((2, 3))], {"shape": [], "align": []}),
    *[("slice", [of((6, 7, 3), layout="HWC")], given) for given in (
        {"shape": []}, {"start": [1, 2], "shape": []}, {"start": [2, 3], "end": []}, {"rel_shape": []}, {"start": []},
        {"shape": [], "end": []}, {"start": [], "rel_start": [0.1, 0.1]}, {"start": [2, 2], "axes": []},
    )],
    ("cat", [of((2, 3))], {"axis": 2}),  # axes of a single input are checked too
    ("cat", [of((2, 3), layout="HW")], {"axis_name": "C"}),
    ("jpeg_compression_distortion", [VIDEO], {"quality": Frames([I32([10, 50, 90])] * 2)}),
    ("grid_mask", [VIDEO], {"ratio": Frames([F32([0.1, 0.5, 0.9])] * 2)}),
    ("gaussian_blur", [of((3, 2, 4, 5), layout="CFHW")], {"window_size": Frames([I32([3, 5])] * 2)}),
    ("gaussian_blur", [of((3, 4, 5), layout="CHW")], {"window_size": Frames([I32([3, 3, 3])] * 2)}),
]

PASTES = [
    ("multi_paste", [SQUARE], {"in_ids": Each([I32([]), I32([0])])}),
    ("multi_paste", [SQUARE], {"in_ids": Each([I32([0]), I32([-1])])}),
    ("multi_paste", [SQUARE], {"in_ids": Each([I32([2]), I32([0])])}),
    ("multi_paste", [SQUARE], {"in_ids": [0, 1], "in_anchors": Each([I32([[5, 3]] * 3)] * 2)}),
    ("multi_paste", [SQUARE], {"in_ids": [0, 1], "in_anchors": Each([I32([[5, 3]])] * 2)}),
    ("multi_paste", [SQUARE], {"in_anchors": Each([I32([3, 3])] * 2)}),
    ("multi_paste", [SQUARE], {"in_anchors_rel": Each([F32([[1.3, 0.3]])] * 2)}),
    ("multi_paste", [SQUARE], {"shapes": Each([I32([[-2, 3]])] * 2)}),
    ("multi_paste", [SQUARE], {"output_size": [10, 10, 3]}),
    ("multi_paste", [SQUARE], {"output_size": [10]}),
    ("multi_paste", [SQUARE], {"output_size": [-1, 3]}),
    ("multi_paste", [PAIRS], {"in_ids": [0]}),
    ("multi_paste", [PAIRS], {}),
    ("multi_paste", [PAIRS], {"in_ids": [0, 1], "output_size": [9, 9]}),
    ("multi_paste", [PAIRS], {"in_ids": Each([I32([1]), I32([])]), "output_size": [9, 9]}),
    ("multi_paste", [SQUARE, of((8, 8, 3), "float32", "HWC")], {}),
    ("multi_paste", [of((8, 8))], {}),
    ("multi_paste", [of((8, 8, 3), "float64", "HWC")], {}),
]

SIZES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64")
BOXES = ([F32([[0, 0, 0.5, 0.5]] * 3)], None)
BOXED = [
    *[
        ("bbox_rotate", [BOXES], {"angle": 45.0, "input_shape": [25, 25], "size": Each([np.array([8, 8], dtype)])})
        for dtype in SIZES
    ],
    *[
        ("bbox_rotate", [BOXES, of(shape, "int32", count=1)], {"angle": 45.0, "input_shape": [25, 25]})
        for shape in ((3,), (3, 1), (3, 2), (1, 3), (3, 1, 1))
    ],
    *[
        ("bbox_rotate", [BOXES], {"angle": 45.0, "input_shape": shape, "shape_layout": layout})
        for shape, layout in (([8, 9, 3], "HW"), ([8, 9], "HWC"), ([8, 9, 3], "WH"), ([8], "HW"), ([3, 8, 9], "CHW"))
    ],
]
FILTERED = [
    (name, [of((2, 3, 4, 5, 1, 2)[: len(layout)], layout=layout)], {"window_size": 3})
    for name in ("gaussian_blur", "laplacian")
    for layout in ("DHCW", "HFWC", "FWXYZC", "FCHCW", "FCCHW", "CFHW", "FHW", "C", "FC", "HCW")
]

SHAPED = [
    *[
        ("squeeze", [of(shape)], {"axes": axes})
        for shape, axes in (
            ((10, 0, 0), [2]), ((10, 0, 0), [0]), ((10, 0, 0), [1, 2]), ((1, 0, 3), [2]), ((3, 2, 2), [1]), ((3, 1, 1), [1, 1])
        )
    ],
    *[
        ("reshape", [of(shape)], {"rel_shape": factors})
        for shape in ((320, 0), (4, 6))
        for factors in ([-1.0, 1.0], [1.0, 1.0, -1.0], [1.0, 1.0, 1.0], [1.0], [-1.0])
    ],
    ("reshape", [of((4, 6, 1))], {"src_dims": [1, 0, 3]}),
    ("reshape", [of((4, 6, 1))], {"src_dims": [1, 0], "rel_shape": [0.5]}),
    ("reshape", [of((4, 6))], {"shape": [-1, -1]}),
    ("reshape", [of((4, 6))], {"layout": "ABC"}),
    ("reinterpret", [of((0,), "float32", "X")], {"dtype": Name("UINT8")}),
    ("cat", [of((2, 3))] * 100, {}),
    ("stack", [of((2, 3))] * 100, {"axis": 1}),
]
EMPTY = [
    *[
        (f"reductions.{name}", [of((0, 3), dtype)], {"axes": axes, "keep_dims": len(axes) == 2})
        for name in ("max", "min")
        for dtype in ("uint8", "int8", "int32", "uint64", "int64", "float32")
        for axes in ([0], [1], [0, 1])
    ],
    ("reductions.sum", [of((2, 3), layout="HW")], {"axes": [0], "axis_names": "H"}),
    ("reductions.sum", [of((2, 3), layout="HW")], {"axis_names": "C"}),
    *[("coord_transform", [of((4, 0), dtype)], {"MT": 2.0}) for dtype in ("float64", "int64", "float32")],
    ("coord_transform", [of((4, 2), "float64")], {"M": 2.0}),
    ("warp_affine", [of((0, 6, 3), layout="HWC")], {"matrix": [1.0, 0, 0, 0, 1, 0]}),
    ("sphere", [of((4, 6, 0), layout="HWC")], {}),
    ("water", [of((4, 6, 0), "float32", "HWC")], {}),
]
RANDOM = [
    *[("random.beta", [], {name: value}) for name in ("alpha", "beta") for value in (0.0, -1.0, 1e100)],
    ("random.beta", [], {"dtype": Name("FLOAT16")}),
    ("random.choice", [of((), "int32")], {"p": [0.3] * 5}),
    ("random.uniform", [], {"range": [1.0, 0.0]}),
    ("random.uniform", [of((2, 3))], {"shape": [2]}),
    ("segmentation.random_object_bbox", [of((2, 3), "int32")], {"k_largest": 0}),
    ("segmentation.random_object_bbox", [of((2, 3), "int32")], {"classes": [0], "background": 0}),
]

PLAIN = of((8, 8, 3))  # without a layout
WINDOW = ([F32([[1, 2, 4], [8, 4, 2]])] * 2, None)
SIGNED = ([F32([5, -3, 0, 1e-30, 700])] * 2, None)
MISUSED = [
    *[("filter", [SQUARE, WINDOW], {"border": name, "dtype": Name("FLOAT")})
      for name in ("101", "reflect101", "1001", "reflect1001", "reflect", "edge", "fill", "pad", "nearest", "zero")],
    ("filter", [of((1, 8, 3), layout="HWC"), WINDOW], {"mode": "valid"}),
    ("to_decibels", [SIGNED], {"reference": 1.5, "multiplier": 2.79}),
    ("to_decibels", [SIGNED], {"multiplier": 4.0, "cutoff_db": -170.0}),
    *[("nonsilent_region", [of((300,), dtype)], {"window_length": 70, "reset_interval": 64})
      for dtype in ("int16", "uint8", "float32")],
    ("multi_paste", [PLAIN], {"in_ids": [0], "output_size": [9, 12]}),
    *[(name, [SQUARE], {"mask": mask, "interp_type": Name("INTERP_CUBIC")})
      for name in ("sphere", "water") for mask in (0, 1)],
    ("transpose", [SQUARE], {"output_layout": ""}),
    ("expand_dims", [SQUARE], {"axes": [], "new_axis_names": "XY"}),
    ("expand_dims", [SQUARE], {"axes": [0, 1], "new_axis_names": "X"}),
    ("coord_flip", [([F32([[1, 2, 3]])] * 2, None)], {"layout": "x"}),
    ("coord_flip", [([F32([[1, 2]])] * 2, None)], {"layout": "xz"}),
    *[("crop", [SQUARE], {"rounding": "up"} | window) for window in ({}, {"crop": [2, 2]})],
    *[("color_space_conversion", [of((4, 5, n), layout="HWC")], {"image_type": Name(kind), "output_type": Name("RGB")})
      for n, kind in ((2, "RGB"), (2, "GRAY"), (3, "GRAY"), (1, "RGB"), (4, "BGR"), (4, "ANY_DATA"))],
    ("random_resized_crop", [SQUARE], {"size": 4, "dtype": Name("UINT16")}),
    ("normalize", [of((4, 5), layout="HW")], {"axes": [3]}),
    *[(f"transforms.{name}", [], {argument: Each([F32([1, 2]), F32([1, 2, 3])])}) for name, argument in
      (("crop", "to_end"), ("translation", "offset"), ("scale", "scale"), ("shear", "shear"))],
]  # fmt: skip

TABLES = [
    *[("coord_transform", [([POINTS[0]], None)], {name: Each([F32(np.arange(rows * columns).reshape(rows, columns))])})
      for name in ("M", "MT") for rows, columns in ((2, 3), (3, 2), (2, 2), (1, 2), (2, 1), (3, 4))],
    *[("warp_affine", [SQUARE], {"matrix": Each([F32(np.zeros(shape))] * 2), "interp_type": Name("INTERP_NN")})
      for shape in ((2, 3), (3, 2), (6, 1), (3, 4))],
    *[("erase", [SQUARE], {"anchor": Each([F32(anchor)] * 2), "shape": [1.0, 2.0] * n, "axes": [0, 1]})
      for n, anchor in ((1, [[1, 2]]), (1, [[1], [2]]), (2, [[1, 2], [3, 0]]))],
    *[("transforms.shear", [], {name: Each([F32(np.ones(shape))] * 2)})
      for name in ("shear", "angles") for shape in ((2,), (2, 1), (1, 2), (3, 2), (2, 3))],
    *[("bbox_rotate", [([F32([[0.1, 0.2, 0.5, 0.6]])] * 2, None)],
       {"angle": 20.0, "input_shape": [20, 30], "shape_layout": "HW", "size": Each([F32(size)] * 2)})
      for size in ([20, 30], [20, 30, 3], [20, 30, 20, 30])],
]  # fmt: skip
"""Arguments per sample with a row for each coordinate or region: those of another shape are refused."""


@pytest.mark.parametrize(
    ("name", "batches", "arguments"),
    MISUSED + TRANSFORMS + PASTES + BOXED + FILTERED + SHAPED + EMPTY + RANDOM + TABLES,
)
def test_corners(name, batches, arguments):
    check(lambda library: run(library, name, batches, arguments))
