"""Boxes against the real DALI: encodings to the bit, random windows by their distribution."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.check import PerSample, Result, check, pipeline
from tests.helpers.crop_cases import message, refused_by_both
from tests.ops.test_boxes import SOLID, THREE, f32, i32, some_boxes

pytestmark = pytest.mark.golden

Array = npt.NDArray[Any]
BOTH = ("nvidia.dali", "torchdali")

EXCEPTIONS: dict[str, str] = {
    "random_bbox_crop": "other random numbers, same distribution, but for volumes with fixed ratios beside ranges, "
    "where only the rules are kept; a search that cannot end is an error; labels may have any type",
    "ssd_random_crop": "other random numbers, same distribution; only HWC images; labels may have any type",
    "box_encoder": "too few labels, or boxes that are not (N, 4), are errors; DALI reads what lies behind them",
}

# ---------------------------------------------------------------- box_encoder

ANCHORS = some_boxes(300, 0).ravel().tolist()
ENCODINGS: list[dict[str, Any]] = [
    {},
    {"criteria": 0.3},
    {"criteria": 0.0},
    {"criteria": 1.0},
    {"offset": True},
    {"offset": True, "scale": 300.0, "means": [0.1, 0.2, 0.3, 0.4], "stds": [0.5, 0.6, 0.7, 0.8]},
    {"means": [0.1, 0.2, 0.3, 0.4], "scale": 3.0},
]


@pytest.mark.parametrize("arguments", ENCODINGS, ids=message)
def test_box_encoder(arguments: dict[str, Any]) -> None:
    boxes = [some_boxes(count, seed) for seed, count in enumerate((1, 3, 8, 30, 0))]
    labels = [np.random.default_rng(3).integers(1, 80, len(b)).astype(np.int32) for b in boxes]
    check(
        "box_encoder", [boxes, labels], {"anchors": ANCHORS, **arguments}, level=1e-6, relative=1e-6
    )


SPECIAL: list[tuple[Array, Array]] = [
    (f32([0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5]), i32(1, 2)),
    (f32([0, 0, 0.5, 0.5], [0, 0, 0.45, 0.5]), i32(1, 2)),
    (f32([0, 0, 0.45, 0.5], [0, 0, 0.5, 0.5]), i32([1], [2])),
    (f32([0, 0, 1, 0.5], [0, 0.5, 1, 1]), i32(1, 2)),
    (f32([0.5, 0.5, 0.5, 0.5], [0.1, 0.1, 0.1, 0.9]), i32(1, 2)),
    (f32([0.2, 0.2, 0.2, 0.2]), i32(4)),
    (f32([0.9, 0.9, 0.5, 0.5]), i32(1)),
    (f32([-1, -1, 2, 2], [2, 2, 3, 3]), i32(1, 2)),
    (f32([0.05, 0.05, 0.5, 0.5], [np.nan, 0, 1, 1]), i32(3, 4)),
    (f32([0, 0, 1, 1]), np.int32(1)),
    (f32([0, 0, 1, 1]), i32(1, 2)),
    (np.zeros((0,), np.float32), i32()),
]
FEW = [
    0,
    0,
    0.5,
    0.5,
    0.5,
    0.5,
    1,
    1,
    0,
    0,
    1,
    1,
    0.2,
    0.2,
    0.4,
    0.4,
    0.2,
    0.2,
    0.2,
    0.2,
    0,
    0,
    0.5,
    0.5,
]


@pytest.mark.parametrize("boxes, labels", SPECIAL, ids=message)
@pytest.mark.parametrize("offset", [False, True])
def test_box_encoder_on_special_boxes(boxes: Array, labels: Array, offset: bool) -> None:
    check("box_encoder", [[boxes], [labels]], {"anchors": FEW, "offset": offset}, level=1e-6)
    check(
        "box_encoder",
        [[boxes], [labels]],
        {"anchors": FEW, "criteria": 0.2},
        [None, None],
        level=1e-6,
    )


BAD_ENCODINGS: list[tuple[Array, Array, dict[str, Any]]] = [
    (THREE, i32(1, 2, 3), {"criteria": 1.1}),
    (THREE, i32(1, 2, 3), {"criteria": -0.1}),
    (THREE, i32(1, 2, 3), {"means": [0.0]}),
    (THREE, i32(1, 2, 3), {"stds": [1.0, 1.0, 1.0]}),
    (THREE, i32(1, 2, 3), {"stds": [1.0, 0.0, 1.0, 1.0]}),
    (THREE, i32(1, 2, 3), {"anchors": [0.0, 0.0, 1.0]}),
    (THREE, np.int64([1, 2, 3]), {}),
    (THREE.astype(np.float64), i32(1, 2, 3), {}),
]


@pytest.mark.parametrize("boxes, labels, arguments", BAD_ENCODINGS, ids=message)
def test_box_encoder_errors(boxes: Array, labels: Array, arguments: dict[str, Any]) -> None:
    refused_by_both("box_encoder", [[boxes], [labels]], {"anchors": FEW, **arguments})


# ---------------------------------------------------------------- distributions


def distance(a: Array, b: Array) -> float:
    """Return the largest distance of two cumulative distributions, in units of its own scale (Kolmogorov-Smirnov).

    It exceeds 2.4 for equal distributions once in 50,000 times.
    """
    a, b = np.sort(a), np.sort(b)
    both = np.concatenate([a, b])
    steps = (np.searchsorted(x, both, "right") / len(x) for x in (a, b))
    gap = np.abs(np.subtract(*steps)).max()
    return float(gap * math.sqrt(len(a) * len(b) / (len(a) + len(b))))


def alike(real: Array, ours: Array) -> bool:
    """Return True if rows may come from one distribution, as far as columns and their products tell."""
    columns = range(real.shape[1])
    apart = [distance(real[:, i], ours[:, i]) for i in columns]
    apart += [
        distance(real[:, i] * real[:, j], ours[:, i] * ours[:, j])
        for i in columns
        for j in range(i)
    ]
    return max(apart) < 2.4


def as_often(real: Counter[Any], ours: Counter[Any]) -> bool:
    """Return True if outcomes are as likely (chi-square, five standard deviations)."""
    square = sum((real[k] - ours[k]) ** 2 / (real[k] + ours[k]) for k in real | ours)
    freedom = max(len(real | ours) - 1, 1)
    return square < freedom + 5 * math.sqrt(2 * freedom)


def test_other_distributions_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.random((2, COUNT, 2))
    assert alike(one, other)
    assert not alike(one, other**1.2)
    assert not alike(one, np.stack([other[:, 0], other[:, 0]], axis=1))
    assert as_often(Counter(a=1000, b=1000), Counter(a=1030, b=970))
    assert not as_often(Counter(a=1000, b=1000), Counter(a=1130, b=870))


# ---------------------------------------------------------------- random_bbox_crop

COUNT = 4000
RANDOM = {"scaling": [0.3, 0.9], "aspect_ratio": [0.5, 2.0]}
SSD = {
    "scaling": [0.3, 1.0],
    "aspect_ratio": [0.5, 2.0],
    "thresholds": [0, 0.1, 0.3, 0.5, 0.7, 0.9],
}
ALL = {"all_boxes_above_threshold": False}
CROP = {"crop_shape": [100, 120], "input_shape": [300, 200]}


def limited(total: int, attempts: int, *thresholds: float) -> dict[str, Any]:
    return {
        "total_num_attempts": total,
        "num_attempts": attempts,
        "thresholds": list(thresholds),
        "quiet": True,
    }


WINDOWS: list[tuple[Array, dict[str, Any]]] = [
    (THREE, {}),
    (THREE, SSD),
    (THREE, {**SSD, "num_attempts": 50}),
    (THREE, {**SSD, **ALL, "num_attempts": 3}),
    (THREE, {**RANDOM, **ALL, "thresholds": [0.2, 0.5], "allow_no_crop": False}),
    (THREE, {**RANDOM, "thresholds": [0.5, 1.0], "threshold_type": "overlap", "num_attempts": 7}),
    (THREE, {**RANDOM, "thresholds": [0.5, 1.0], "threshold_type": "overlap", **ALL, "allow_no_crop": False}),
    (THREE, {**RANDOM, "bbox_prune_threshold": 0.3, "num_attempts": 5, "allow_no_crop": False}),
    (THREE, {**RANDOM, "bbox_prune_threshold": 0.0, "allow_no_crop": False}),
    (THREE, {**RANDOM, "bbox_prune_threshold": 1.0, "allow_no_crop": False}),
    (THREE, {"scaling": [0.3, 0.5], "allow_no_crop": False}),
    (THREE, {"scaling": [0.3, 0.9], "aspect_ratio": [2.0, 2.0], "allow_no_crop": False}),
    (THREE, {"scaling": [0.3, 0.9], "aspect_ratio": [0.5, 0.5], "input_shape": [300, 200]}),
    (THREE, {**RANDOM, "input_shape": [300, 200], "thresholds": [0.0, 0.02]}),
    (THREE, {**RANDOM, "input_shape": [200, 300], "shape_layout": "HW", "allow_no_crop": False}),
    (THREE, {"scaling": [1.0, 2.0], "aspect_ratio": [0.5, 2.0]}),
    (THREE, {**CROP}),
    (THREE, {**CROP, "crop_shape": [400, 120], "shape_layout": "HW"}),
    (THREE, {**CROP, **limited(11, 4, 0.0, 0.3)}),
    (THREE, {**CROP, **limited(2, 1, 0.0, 0.3)}),
    (THREE, {**CROP, **limited(20, 3, 0.0, 0.3, 0.9), **ALL}),
    (THREE, {**RANDOM, **limited(5, 2, 0.2, 0.9), "allow_no_crop": False}),
    (THREE, {**RANDOM, **limited(5, 1, 0.2, 0.9), **ALL}),
    (THREE, {**RANDOM, **limited(8, 3, 0.1, 0.9), **ALL, "threshold_type": "overlap", "aspect_ratio": [2.0, 2.0]}),
    (THREE, {**RANDOM, **limited(20, 1, 0.2), "aspect_ratio": [7.0, 8.0], "allow_no_crop": False}),
    (SOLID, {**RANDOM, "allow_no_crop": False}),
    (SOLID, {**RANDOM, **limited(30, 3, 0.0, 0.9)}),
    (SOLID, {**RANDOM, "aspect_ratio": [0.5, 2, 0.5, 3, 0.9, 4], "input_shape": [30, 20, 10], "shape_layout": "DHW"}),
    (SOLID, {**RANDOM, "aspect_ratio": [0.5, 0.5, 0.25, 0.25, 0.5, 0.5], "bbox_prune_threshold": 0.0}),
    (np.zeros((0, 4), np.float32), {**RANDOM, "thresholds": [0.5]}),
    (f32([0, 0, 1, 1]), {**SSD, "num_attempts": 2}),
]  # fmt: skip


def windows(
    library: str, boxes: Array, arguments: dict[str, Any]
) -> tuple[Array, Counter[Any], list[Result]]:
    """Return the windows, what is kept in them, and all results."""
    found = pipeline(
        library, "random_bbox_crop", [[boxes] * COUNT], {**arguments, "output_bbox_indices": True}
    )
    rows = np.concatenate([np.stack(found[0].samples), np.stack(found[1].samples)], axis=1)
    return rows, Counter(tuple(kept.tolist()) for kept in found[3].samples), found


@pytest.mark.parity  # many draws
@pytest.mark.parametrize("boxes, arguments", WINDOWS, ids=message)
def test_random_bbox_crop(boxes: Array, arguments: dict[str, Any]) -> None:
    (real, kept, results), (ours, ours_kept, others) = (
        windows(library, boxes, arguments) for library in BOTH
    )
    assert alike(real, ours)
    assert as_often(kept, ours_kept)
    for one, other in zip(results, others, strict=True):
        assert one.layout == other.layout and one.samples[0].dtype == other.samples[0].dtype
        assert {s.ndim for s in one.samples} == {s.ndim for s in other.samples}


@pytest.mark.parametrize("layout", ["xyXY", "xyWH", "WHxy", "yxYX", "xXyY"])
@pytest.mark.parametrize(
    "arguments", [RANDOM, CROP, {**RANDOM, "bbox_prune_threshold": 0.25}], ids=message
)
def test_boxes_in_the_windows_that_dali_chose(layout: str, arguments: dict[str, Any]) -> None:
    """Boxes that are kept, and their positions, given the window."""
    from torchdali.kernels.boxes import crop as box_crop
    from torchdali.ops._box_crop import _Order

    order = _Order(2, layout)
    boxes = np.ascontiguousarray(order.back((THREE[:, :2], THREE[:, 2:])))
    count = 500
    found = pipeline(
        "nvidia.dali",
        "random_bbox_crop",
        [[boxes] * count],
        {**arguments, "bbox_layout": layout, "output_bbox_indices": True},
    )
    low, high = order.corners(np.tile(boxes, (count, 1)))
    known = box_crop.Boxes(low, high, [3] * count)
    start, extent = (np.stack(r.samples) for r in found[:2])
    scale = f32(300, 200) if "crop_shape" in arguments else np.float32(1)
    whole = (extent == 1).all(axis=1)
    keep = box_crop.kept(
        known, start / scale, (start + extent) / scale, arguments.get("bbox_prune_threshold")
    )
    keep |= whole.repeat(3)
    places = np.flatnonzero(keep)
    moved = order.back(box_crop.moved(known, places, start / scale, (start + extent) / scale, whole))
    rows = keep.reshape(count, 3)
    assert [np.flatnonzero(row).tolist() for row in rows] == [
        kept.tolist() for kept in found[3].samples
    ]
    assert np.abs(moved - np.concatenate(found[2].samples)).max() < 1e-5


def test_results_without_a_choice() -> None:
    """The whole image, and windows as large as it, leave nothing to chance."""
    boxes = [THREE, f32([1, 1, 1, 1]), np.zeros((0, 4), np.float32)]
    labels = [i32(1, 2, 3), i32(4), i32()]
    for arguments in (
        {},
        {"output_bbox_indices": True},
        {"crop_shape": [30, 20], "input_shape": [30, 20]},
    ):
        chosen = [0, 2] if "crop_shape" in arguments else [0, 1, 2]
        inputs = [[column[i] for i in chosen] for column in (boxes, labels)]
        check("random_bbox_crop", inputs, arguments)
    check("random_bbox_crop", [[SOLID]], {"bbox_layout": "xyzXYZ"})
    check(
        "random_bbox_crop",
        [[THREE, THREE]],
        {"crop_shape": PerSample([[3, 4], [5, 6]]), "input_shape": PerSample([[3, 4], [5, 6]])},
    )
    never = {
        "scaling": [0.5, 0.5],
        "aspect_ratio": [9.0, 10.0],
        "total_num_attempts": 3,
        "allow_no_crop": False,
        "quiet": True,
    }
    check(
        "random_bbox_crop", [[THREE], [i32([1], [2], [3])]], {**never, "output_bbox_indices": True}
    )


BAD: list[dict[str, Any]] = [
    {"thresholds": []},
    {"thresholds": [1.5]},
    {"thresholds": [-0.5]},
    {"threshold_type": "area"},
    {"bbox_prune_threshold": 1.5},
    {"num_attempts": 0},
    {"total_num_attempts": 0},
    {"scaling": [0.5]},
    {"scaling": [0.5, 0.4]},
    {"scaling": [-0.5, 0.4]},
    {"aspect_ratio": [1.0]},
    {"aspect_ratio": [2.0, 1.0]},
    {"aspect_ratio": [1.0, 1.0, 1.0, 1.0]},
    {"bbox_layout": "xyxy"},
    {"bbox_layout": "xyzXYZ"},
    {"bbox_layout": "xyXH"},
    {"bbox_layout": "xyXY", "ltrb": True},
    {"bbox_layout": "xyWH", "ltrb": False},
    {"crop_shape": [10, 10]},
    {**CROP, "scaling": [1.0, 1.0]},
    {**CROP, "aspect_ratio": [1.0, 1.0]},
    {**CROP, "crop_shape": [10]},
    {**CROP, "crop_shape": [10, -1]},
    {**CROP, "shape_layout": "HWC"},
    {"unknown": 1},
]


@pytest.mark.parametrize("arguments", BAD, ids=message)
def test_random_bbox_crop_errors(arguments: dict[str, Any]) -> None:
    refused_by_both("random_bbox_crop", [[THREE]], arguments)


@pytest.mark.parametrize("boxes", [f32([-1e-6, 0, 1, 1]), f32([0, 0, 1.00001, 1]), f32([0, np.nan, 1, 1]), THREE[0], THREE[:, :3], THREE.astype(np.float64)], ids=message)  # fmt: skip
def test_random_bbox_crop_refuses_other_boxes(boxes: Array) -> None:
    refused_by_both("random_bbox_crop", [[boxes]], {})


# ---------------------------------------------------------------- ssd_random_crop


@pytest.mark.parity  # many draws
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("attempts", [1, 3, 50])
@pytest.mark.parametrize(
    "boxes", [THREE, f32([0, 0, 1, 1]), f32([0.2, 0.3, 0.6, 0.8])], ids=message
)
def test_ssd_random_crop(boxes: Array, attempts: int) -> None:
    image = np.stack(np.broadcast_arrays(*np.mgrid[:60, :100], np.uint8(0)), axis=-1).astype(
        np.uint8
    )
    labels = np.arange(len(boxes), dtype=np.int32)
    rows, kept = [], []
    for library in BOTH:
        inputs = [[image] * COUNT, [boxes] * COUNT, [labels] * COUNT]
        images, moved, names = pipeline(
            library, "ssd_random_crop", inputs, {"num_attempts": attempts}, ["HWC", None, None]
        )
        assert (
            images.layout == "HWC"
            and moved.samples[0].dtype == np.float32
            and names.samples[0].dtype == np.int32
        )
        rows.append(np.array([[*s[0, 0, :2], *s.shape[:2]] for s in images.samples], np.float64))
        kept.append(Counter(tuple(n.tolist()) for n in names.samples))
    assert alike(*rows)
    assert as_often(*kept)
