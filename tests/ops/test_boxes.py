"""Box operators: encodings are bit-identical to the real DALI's, random windows obey their constraints and have the right distribution, batches contain samples without boxes."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from tests.check import PerSample, Result, check, pipeline
from tests.helpers.boxes import f32, i32, overlap, some_boxes
from tests.helpers.crop_cases import message, refused_by_both
from torchdali import fn
from torchdali.declaration.registry import lookup
from torchdali.kernels.boxes import crop as box_crop
from torchdali.rng import BatchRng
from torchdali.tensors import TensorList

Array = npt.NDArray[Any]


# ---------------------------------------------------------------- bb_flip


@np.errstate(invalid="ignore")
def flipped(boxes: Array, flags: Sequence[int], ltrb: bool) -> Array:
    found = boxes.copy()
    for axis in (axis for axis in (0, 1) if flags[axis]):
        low, high = boxes[:, axis], boxes[:, axis + 2]
        found[:, axis] = 1 - high if ltrb else 1 - (low + high)
        found[:, axis + 2] = 1 - low if ltrb else high
    return found


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("ltrb", [False, True])
@pytest.mark.parametrize("horizontal, vertical", [([0, 1, 1], [0, 0, 1]), (1, [1, 0, 1]), ([1, 0, 0], 0), (1, 1), (0, 0)])
def test_boxes_are_flipped_one_by_one(ltrb: bool, horizontal: Any, vertical: Any) -> None:
    """NumPy computes the result, or torch if a gradient is needed; infinite boxes stay infinite."""
    batch = [np.random.default_rng(i).random((n, 4), np.float32) for i, n in enumerate((3, 0, 5))]
    batch[2][1] = [-np.inf, 0.25, np.inf, np.nan]
    wanted: list[Array] = []
    for gradient in (False, True):
        tensors = [torch.from_numpy(boxes).requires_grad_(gradient) for boxes in batch]
        for i, boxes in enumerate(tensors):
            flags = [value[i] if isinstance(value, list) else value for value in (horizontal, vertical)]
            found = fn.bb_flip(boxes, horizontal=flags[0], vertical=flags[1], ltrb=ltrb)
            np.testing.assert_array_equal(found.detach().numpy(), flipped(batch[i], flags, ltrb))
            wanted.append(flipped(batch[i], flags, ltrb))
    given = {name: PerSample(value) if isinstance(value, list) else value for name, value in (("horizontal", horizontal), ("vertical", vertical))}
    (result,) = pipeline("torchdali", "bb_flip", [batch], {**given, "ltrb": ltrb})
    for one, other in zip(result.samples, wanted[:3], strict=True):
        np.testing.assert_array_equal(one, other)


# ---------------------------------------------------------------- random_bbox_crop

THREE = f32([0.1, 0.1, 0.3, 0.4], [0.6, 0.6, 0.9, 0.9], [0.45, 0.4, 0.6, 0.6])
SOLID = f32([0.1, 0.1, 0.1, 0.4, 0.5, 0.6], [0.5, 0.5, 0.5, 0.7, 0.8, 0.9])
COUNT = 400


def crop(boxes: Array, count: int = COUNT, **arguments: Any) -> list[list[Array]]:
    """Return the outputs for copies of one sample, with the indices of the boxes last."""
    batch = TensorList.from_samples([torch.from_numpy(boxes)] * count)
    found = fn.random_bbox_crop(
        batch, **{"seed": 3, "output_bbox_indices": True, "quiet": True, **arguments}
    )
    return [[np.array(o.at(i)) for i in range(count)] for o in found]


RANDOM = {"scaling": [0.3, 0.9], "aspect_ratio": [0.5, 2.0], "allow_no_crop": False}
SIZED = {"crop_shape": [50, 60], "input_shape": [100, 80]}
RULES: list[tuple[Array, dict[str, Any]]] = [
    (THREE, {**RANDOM}),
    (THREE, {**RANDOM, "thresholds": [0.01, 0.02], "num_attempts": 5}),
    (THREE, {**RANDOM, "thresholds": [0.2, 0.3], "all_boxes_above_threshold": False}),
    (THREE, {**RANDOM, "thresholds": [0.5, 1.0], "threshold_type": "overlap"}),
    (
        THREE,
        {
            **RANDOM,
            "thresholds": [1.0],
            "threshold_type": "overlap",
            "all_boxes_above_threshold": False,
        },
    ),
    (THREE, {**RANDOM, "bbox_prune_threshold": 0.0}),
    (THREE, {**RANDOM, "bbox_prune_threshold": 0.4}),
    (THREE, {**RANDOM, "bbox_prune_threshold": 1.0}),
    (THREE, {**RANDOM, "input_shape": [200, 100]}),
    (THREE, {**RANDOM, "input_shape": [100, 200], "shape_layout": "HW"}),
    (THREE, {**RANDOM, "aspect_ratio": [2.0, 2.0]}),
    (THREE, {**RANDOM, "aspect_ratio": [0.5, 0.5], "scaling": [0.9, 1.3]}),
    (THREE, {**SIZED}),
    (THREE, {**SIZED, "crop_shape": [150, 60]}),
    (THREE, {**SIZED, "thresholds": [0.1], "all_boxes_above_threshold": False}),
    (SOLID, {**RANDOM}),
    (SOLID, {**RANDOM, "aspect_ratio": [0.8, 1.25, 0.5, 2.0, 1.0, 1.5]}),
    (SOLID, {**RANDOM, "aspect_ratio": [0.5, 0.5, 0.25, 0.25, 0.5, 0.5], "thresholds": [0.001]}),
    (SOLID, {**RANDOM, "aspect_ratio": [0.8, 1.2, 0.5, 0.5, 0.1, 10.0]}),
    (SOLID, {"crop_shape": [5, 6, 7], "input_shape": [10, 10, 20], "shape_layout": "DHW"}),
    (np.zeros((0, 4), np.float32), {**RANDOM, "thresholds": [0.5]}),
]


@pytest.mark.thin(2)
@pytest.mark.parametrize("boxes, arguments", RULES, ids=lambda v: str(v)[:80])
def test_windows_obey_the_constraints(boxes: Array, arguments: dict[str, Any]) -> None:
    axes = boxes.shape[1] // 2
    start, extent, moved, indices = crop(boxes, **arguments)
    assert (
        start[0].dtype == extent[0].dtype == moved[0].dtype == np.float32
        and indices[0].dtype == np.int32
    )
    low, size = np.stack(start).astype(np.float64), np.stack(extent).astype(np.float64)
    layout = arguments.get("shape_layout", "WHD"[:axes])
    shape = np.array(
        [arguments.get("input_shape", [1] * axes)[layout.index(n)] for n in "WHD"[:axes]]
    )
    check_window(low, size, shape if "crop_shape" in arguments else np.ones(axes))
    if "crop_shape" in arguments:
        wanted = [arguments["crop_shape"][layout.index(n)] for n in "WHD"[:axes]]
        assert (size == wanted).all() and (low == np.round(low)).all()
        low, size = low / shape, size / shape
    else:
        check_ratios(size * shape, arguments["aspect_ratio"])
        if all(
            a < b
            for a, b in zip(
                arguments["aspect_ratio"][::2], arguments["aspect_ratio"][1::2], strict=True
            )
        ):
            assert size.min() >= 0.3 - 1e-6 and size.max() <= 0.9 + 1e-6
    for place, side, inside, kept in zip(low, size, moved, indices, strict=True):
        check_boxes(boxes, place, side, inside, kept.tolist(), arguments)


def check_window(low: Array, size: Array, shape: Array) -> None:
    """Check that windows are in the image, or cover it, on each axis."""
    room = shape - size
    assert (low >= np.minimum(room, 0) - 1e-6).all() and (low <= np.maximum(room, 0) + 1e-6).all()


def check_ratios(size: Array, limits: Sequence[float]) -> None:
    pairs = [(i, j) for i in range(size.shape[1]) for j in range(i + 1, size.shape[1])]
    ranges = [limits[2 * k : 2 * k + 2] for k in range(len(limits) // 2)] * (
        3 if len(limits) == 2 else 1
    )
    for (i, j), (least, greatest) in zip(pairs, ranges, strict=False):
        ratio = size[:, i] / size[:, j]
        assert ratio.min() >= least * (1 - 1e-3) and ratio.max() <= greatest * (1 + 1e-3)


def check_boxes(
    boxes: Array,
    low: Array,
    size: Array,
    moved: Array,
    kept: list[int],
    arguments: Mapping[str, Any],
) -> None:
    """Check that boxes reach the threshold, and that the correct boxes are returned at correct positions."""
    axes = len(low)
    window = np.concatenate([low, low + size])
    sides = np.minimum(boxes[:, axes:], window[axes:]) - np.maximum(boxes[:, :axes], window[:axes])
    share = np.prod(sides.clip(0), axis=1) / np.prod(boxes[:, axes:] - boxes[:, :axes], axis=1)
    if len(boxes):
        whole = arguments.get("threshold_type") == "overlap"
        scores = (
            share.tolist() if whole else [overlap(box.astype(np.float64), window) for box in boxes]
        )
        score = min(scores) if arguments.get("all_boxes_above_threshold", True) else max(scores)
        assert score >= min(arguments.get("thresholds", [0.0])) - 1e-5
        assert kept
    prune = arguments.get("bbox_prune_threshold")
    center = (boxes[:, :axes] + boxes[:, axes:]) / 2
    margin = np.abs(np.concatenate([center - window[:axes], center - window[axes:]], axis=1)).min(
        axis=1, initial=1.0
    )
    inside = ((center >= window[:axes]) & (center < window[axes:])).all(axis=1)
    if prune is not None:
        margin, inside = np.abs(share - prune), (share >= prune) & (share > 0)
    for i in range(len(boxes)):
        assert (i in kept) == inside[i] or margin[i] < 1e-4
    expected = ((boxes.reshape(-1, 2, axes) - low) / size).clip(0, 1).reshape(-1, 2 * axes)[kept]
    assert np.allclose(moved, expected, atol=1e-5)


def test_the_whole_image_is_one_of_the_outcomes() -> None:
    boxes = np.concatenate([THREE, f32([1, 1, 1, 1])])
    start, extent, moved, indices = crop(
        boxes, 2000, scaling=[0.3, 0.5], thresholds=[0.0, 0.0, 0.0]
    )
    whole = [i for i in range(2000) if extent[i].tolist() == [1, 1]]
    assert 0.2 < len(whole) / 2000 < 0.45
    for i in whole:
        assert (
            start[i].tolist() == [0, 0]
            and np.array_equal(moved[i], boxes)
            and indices[i].tolist() == [0, 1, 2, 3]
        )


LAYOUTS = ["xyXY", "xyWH", "WHxy", "yxYX", "xXyY", "HyWx"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_boxes_are_equivalent(layout: str) -> None:
    def arranged(corners: Array) -> Array:
        low, high = corners[:, :2], corners[:, 2:]
        names = dict(zip("xyXYWH", np.concatenate([low, high, high - low], axis=1).T, strict=True))
        return np.stack([names[name] for name in layout], axis=1)

    arguments = {**RANDOM, "bbox_prune_threshold": 0.0}
    expected, found = (
        crop(THREE, 50, **arguments),
        crop(arranged(THREE), 50, **arguments, bbox_layout=layout),
    )
    for (a, b), (c, d) in zip(
        zip(expected[0], expected[2], strict=True),
        zip(found[0], found[2], strict=True),
        strict=True,
    ):
        assert np.array_equal(a, c) and np.allclose(arranged(b), d, atol=1e-5)


def test_without_ltrb_boxes_have_sizes() -> None:
    sized = np.concatenate([THREE[:, :2], THREE[:, 2:] - THREE[:, :2]], axis=1)
    for one, other in zip(
        crop(sized, 20, **RANDOM, ltrb=False),
        crop(sized, 20, **RANDOM, bbox_layout="xyWH"),
        strict=True,
    ):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    "labels",
    [i32(7, 8, 9), i32([7], [8], [9]), np.int64([[7, 1], [8, 2], [9, 3]]), i32(7, 8, 9, 10)],
)
def test_labels_follow_their_boxes(labels: Array) -> None:
    results = pipeline(
        "torchdali",
        "random_bbox_crop",
        [[THREE] * 40, [labels] * 40],
        {**RANDOM, "output_bbox_indices": True},
    )
    assert len(results) == 5 and all(r.layout == "" for r in results)
    for chosen, kept in zip(results[3].samples, results[4].samples, strict=True):
        assert chosen.dtype == labels.dtype and np.array_equal(chosen, labels[kept])


def test_the_number_of_outputs() -> None:
    for labels, indices in ((False, False), (True, False), (False, True), (True, True)):
        inputs = [[THREE] * 2, [i32(1, 2, 3)] * 2] if labels else [[THREE] * 2]
        for classes in (False, True):
            found = pipeline(
                "torchdali",
                "random_bbox_crop",
                inputs,
                {"output_bbox_indices": indices},
                classes=classes,
            )
            assert len(found) == 3 + labels + indices


def test_a_sample_does_not_depend_on_its_batch() -> None:
    batch = [some_boxes(count, count) for count in (3, 0, 9, 1, 5)]
    body = fn.random_bbox_crop.implementation
    arguments = {
        "scaling": [0.2, 1.0],
        "aspect_ratio": [0.5, 2.0],
        "thresholds": [0.0, 0.1, 0.3],
        "num_attempts": 7,
    }

    def run(chosen: Sequence[int]) -> Any:
        samples = TensorList.from_samples([torch.from_numpy(batch[i]) for i in chosen])
        return body(samples, rng=BatchRng(5, [0] * len(chosen), chosen), **arguments)

    together = run([0, 1, 2, 3, 4])
    for i in range(5):
        for whole, alone in zip(together, run([i]), strict=True):
            assert np.array_equal(np.asarray(whole[i]), np.asarray(alone[0]))


def test_an_extent_for_each_sample() -> None:
    sizes, shapes = [[50, 60], [20, 30], [80, 80]], [[100, 80], [40, 50], [80, 90]]
    found = pipeline(
        "torchdali", "random_bbox_crop", [[THREE] * 3],
        {"crop_shape": PerSample(sizes), "input_shape": PerSample(shapes)},
    )  # fmt: skip
    assert [e.tolist() for e in found[1].samples] == sizes
    for low, size, shape in zip(found[0].samples, sizes, shapes, strict=True):
        assert (low >= 0).all() and (low + size <= shape).all()


def test_the_best_window_after_all_attempts() -> None:
    arguments = {
        **RANDOM,
        "bbox_prune_threshold": 0.0,
        "thresholds": [1.0],
        "aspect_ratio": [0.1, 10.0],
    }
    means = [
        np.mean(
            [
                np.prod(e)
                for e in crop(f32([0, 0, 1, 1]), 3000, **arguments, total_num_attempts=total)[1]
            ]
        )
        for total in (1, 2, 5)
    ]
    draws = np.random.default_rng(0).uniform(0.3, 0.9, (20000, 5, 2)).prod(axis=2)
    for mean, total in zip(means, (1, 2, 5), strict=True):
        assert abs(mean - draws[:, :total].max(axis=1).mean()) < 0.02


def test_the_window_is_empty_when_no_ratio_was_allowed() -> None:
    found = crop(THREE, 5, **{**RANDOM, "aspect_ratio": [9.0, 10.0]}, total_num_attempts=20)
    assert (
        not np.any(found[0]) and not np.any(found[1]) and all(len(kept) == 0 for kept in found[3])
    )


def test_a_warning_if_no_window_fits() -> None:
    arguments = {**RANDOM, "thresholds": [1.0], "total_num_attempts": 3}
    found = r"no window .* in 3 attempts; sample 0 \(score 0(\.\d+)?\), 1 \(score 0(\.\d+)?\) got the best"
    with pytest.warns(UserWarning, match=found):
        crop(THREE, 2, **arguments, quiet=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        crop(THREE, 2, **arguments)


@pytest.mark.parametrize(
    "arguments", [{**RANDOM, "thresholds": [1.0]}, {**SIZED, "thresholds": [0.99]}], ids=str
)
def test_a_search_without_a_result_ends(
    arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(box_crop, "MAX_ATTEMPTS", 2000)
    with pytest.raises(RuntimeError, match="total_num_attempts"):
        crop(THREE, 2, **arguments)


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
    {**SIZED, "scaling": [1.0, 1.0]},
    {**SIZED, "aspect_ratio": [1.0, 1.0]},
    {**SIZED, "crop_shape": [10]},
    {**SIZED, "crop_shape": [10, -1]},
    {**SIZED, "shape_layout": "HWC"},
]


@pytest.mark.parametrize("arguments", [*BAD, {**SIZED, "input_shape": [0, 10]}], ids=str)  # the last hangs in DALI
def test_random_bbox_crop_errors(arguments: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError):
        crop(THREE, 2, **arguments)


BAD_BOXES: list[Array] = [
    f32([-0.1, 0, 1, 1]),
    f32([0, 0, 1.0001, 1]),
    f32([0, float("nan"), 1, 1]),
    f32(0, 0, 1, 1),
    f32([0, 0, 1, 1, 1]),
    THREE.astype(np.float64),
]


@pytest.mark.parametrize("boxes", BAD_BOXES, ids=str)
def test_random_bbox_crop_rejects_other_boxes(boxes: Array) -> None:
    with pytest.raises(RuntimeError):
        crop(boxes, 1)


def test_too_few_labels() -> None:
    with pytest.raises(RuntimeError, match="labels"):
        fn.random_bbox_crop(torch.from_numpy(THREE), torch.tensor([1, 2], dtype=torch.int32))


# ---------------------------------------------------------------- ssd_random_crop


def ssd(count: int, dtype: str = "uint8", layout: str = "HWC") -> list[Result]:
    image = np.stack(np.broadcast_arrays(*np.mgrid[:60, :100]), axis=-1).astype(dtype)
    inputs = [[image] * count, [THREE] * count, [i32(7, 8, 9)] * count]
    with pytest.warns(DeprecationWarning, match="random_bbox_crop"):
        return pipeline(
            "torchdali", "ssd_random_crop", inputs, {"num_attempts": 5}, [layout, None, None]
        )


@pytest.mark.parametrize("dtype", ["uint8", "float32", "int16"])
def test_ssd_random_crop_crops_the_image_as_the_boxes(dtype: str) -> None:
    images, boxes, labels = ssd(300, dtype)
    assert (images.layout, boxes.layout, labels.layout) == ("HWC", "", "")
    cropped = 0
    for image, moved, names in zip(images.samples, boxes.samples, labels.samples, strict=True):
        assert image.dtype == dtype and len(moved) == len(names) > 0
        y, x = image[0, 0]
        height, width = image.shape[:2]
        assert (image[-1, -1] == [y + height - 1, x + width - 1]).all()
        cropped += (height, width) != (60, 100)
        low, size = np.array([x / 100, y / 60]), np.array([width / 100, height / 60])
        expected = ((THREE[names - 7].reshape(-1, 2, 2) - low) / size).clip(0, 1).reshape(-1, 4)
        assert np.abs(moved - expected).max() < 0.06  # windows are rounded to pixels, boxes are not
    assert 100 < cropped < 250


def test_ssd_random_crop_has_a_class() -> None:
    from torchdali import ops

    assert ops.SSDRandomCrop.operator.name == "ssd_random_crop"
    assert ops.RandomBBoxCrop.operator.name == "random_bbox_crop"
    assert ops.segmentation.RandomObjectBBox.operator.name == "segmentation.random_object_bbox"


# ---------------------------------------------------------------- a batch without samples

EMPTY: dict[str, tuple[list[tuple[torch.dtype, list[int]]], dict[str, Any], int]] = {
    "segmentation.random_mask_pixel": ([(torch.uint8, [3, 3])], {}, 1),
    "segmentation.random_object_bbox": ([(torch.uint8, [3, 3])], {}, 2),
    "segmentation.select_masks": (
        [(torch.int32, [2]), (torch.int32, [2, 3]), (torch.float32, [9, 2])],
        {},
        2,
    ),
    "random_crop_generator": ([(torch.int64, [2])], {}, 2),
    "roi_random_crop": (
        [(torch.uint8, [3, 3])],
        {"crop_shape": [2, 2], "roi_start": [0, 0], "roi_end": [3, 3]},
        1,
    ),
    "bb_flip": ([(torch.float32, [2, 4])], {}, 1),
    "bbox_paste": ([(torch.float32, [2, 4])], {"ratio": 2.0}, 1),
    "bbox_rotate": (
        [(torch.float32, [2, 4]), (torch.int32, [2])],
        {"angle": 9.0, "input_shape": [3, 3]},
        2,
    ),
    "box_encoder": ([(torch.float32, [2, 4]), (torch.int32, [2])], {"anchors": [0, 0, 1, 1]}, 2),
    "coord_flip": ([(torch.float32, [5, 2])], {}, 1),
    "coord_transform": ([(torch.float32, [5, 2])], {"M": 2.0}, 1),
    "element_extract": ([(torch.uint8, [4, 3])], {"element_map": [0, 3]}, 2),
    "random_bbox_crop": ([(torch.float32, [2, 4]), (torch.int32, [2])], {}, 4),
    "sequence_rearrange": ([(torch.uint8, [4, 3])], {"new_order": [0, 3]}, 1),
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("dense", [True, False])
def test_a_batch_without_samples(name: str, dense: bool) -> None:
    kinds, arguments, outputs = EMPTY[name]
    inputs = [
        TensorList.from_dense(torch.zeros(0, *shape, dtype=dtype))
        if dense
        else TensorList.from_samples([], dtype=dtype, ndim=len(shape))
        for dtype, shape in kinds
    ]
    results = lookup(name)(*inputs, **arguments)
    found = results if isinstance(results, tuple) else (results,)
    assert [len(batch) for batch in found] == [0] * outputs


# --------------------------------------------------------- compared with the real DALI


BOTH = ("nvidia.dali", "torchdali")

EXCEPTIONS: dict[str, str] = {
    "random_bbox_crop": "draws different random numbers from the same distribution, except for volumes that combine "
    "fixed ratios with ranges, where only the constraints hold; an endless search is an error; labels may have any "
    "dtype",
    "ssd_random_crop": "draws different random numbers from the same distribution; accepts only HWC images; labels "
    "may have any dtype",
    "box_encoder": "too few labels, or boxes that aren't (N, 4), are errors; DALI reads past the end of the data",
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


@pytest.mark.golden
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


@pytest.mark.golden
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


@pytest.mark.golden
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
    """Return True if rows may come from one distribution, judging by columns and their products."""
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


@pytest.mark.golden
def test_the_comparison_detects_other_distributions() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.random((2, DRAWS, 2))
    assert alike(one, other)
    assert not alike(one, other**1.2)
    assert not alike(one, np.stack([other[:, 0], other[:, 0]], axis=1))
    assert as_often(Counter(a=1000, b=1000), Counter(a=1030, b=970))
    assert not as_often(Counter(a=1000, b=1000), Counter(a=1130, b=870))


# ---------------------------------------------------------------- random_bbox_crop

DRAWS = 4000
SCALES = {"scaling": [0.3, 0.9], "aspect_ratio": [0.5, 2.0]}
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
    (THREE, {**SCALES, **ALL, "thresholds": [0.2, 0.5], "allow_no_crop": False}),
    (THREE, {**SCALES, "thresholds": [0.5, 1.0], "threshold_type": "overlap", "num_attempts": 7}),
    (THREE, {**SCALES, "thresholds": [0.5, 1.0], "threshold_type": "overlap", **ALL, "allow_no_crop": False}),
    (THREE, {**SCALES, "bbox_prune_threshold": 0.3, "num_attempts": 5, "allow_no_crop": False}),
    (THREE, {**SCALES, "bbox_prune_threshold": 0.0, "allow_no_crop": False}),
    (THREE, {**SCALES, "bbox_prune_threshold": 1.0, "allow_no_crop": False}),
    (THREE, {"scaling": [0.3, 0.5], "allow_no_crop": False}),
    (THREE, {"scaling": [0.3, 0.9], "aspect_ratio": [2.0, 2.0], "allow_no_crop": False}),
    (THREE, {"scaling": [0.3, 0.9], "aspect_ratio": [0.5, 0.5], "input_shape": [300, 200]}),
    (THREE, {**SCALES, "input_shape": [300, 200], "thresholds": [0.0, 0.02]}),
    (THREE, {**SCALES, "input_shape": [200, 300], "shape_layout": "HW", "allow_no_crop": False}),
    (THREE, {"scaling": [1.0, 2.0], "aspect_ratio": [0.5, 2.0]}),
    (THREE, {**CROP}),
    (THREE, {**CROP, "crop_shape": [400, 120], "shape_layout": "HW"}),
    (THREE, {**CROP, **limited(11, 4, 0.0, 0.3)}),
    (THREE, {**CROP, **limited(2, 1, 0.0, 0.3)}),
    (THREE, {**CROP, **limited(20, 3, 0.0, 0.3, 0.9), **ALL}),
    (THREE, {**SCALES, **limited(5, 2, 0.2, 0.9), "allow_no_crop": False}),
    (THREE, {**SCALES, **limited(5, 1, 0.2, 0.9), **ALL}),
    (THREE, {**SCALES, **limited(8, 3, 0.1, 0.9), **ALL, "threshold_type": "overlap", "aspect_ratio": [2.0, 2.0]}),
    (THREE, {**SCALES, **limited(20, 1, 0.2), "aspect_ratio": [7.0, 8.0], "allow_no_crop": False}),
    (SOLID, {**SCALES, "allow_no_crop": False}),
    (SOLID, {**SCALES, **limited(30, 3, 0.0, 0.9)}),
    (SOLID, {**SCALES, "aspect_ratio": [0.5, 2, 0.5, 3, 0.9, 4], "input_shape": [30, 20, 10], "shape_layout": "DHW"}),
    (SOLID, {**SCALES, "aspect_ratio": [0.5, 0.5, 0.25, 0.25, 0.5, 0.5], "bbox_prune_threshold": 0.0}),
    (np.zeros((0, 4), np.float32), {**SCALES, "thresholds": [0.5]}),
    (f32([0, 0, 1, 1]), {**SSD, "num_attempts": 2}),
]  # fmt: skip


def windows(
    library: str, boxes: Array, arguments: dict[str, Any]
) -> tuple[Array, Counter[Any], list[Result]]:
    """Return the windows, the boxes in them, and all results."""
    found = pipeline(
        library, "random_bbox_crop", [[boxes] * DRAWS], {**arguments, "output_bbox_indices": True}
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


@pytest.mark.golden
@pytest.mark.parametrize("layout", ["xyXY", "xyWH", "WHxy", "yxYX", "xXyY"])
@pytest.mark.parametrize(
    "arguments", [SCALES, CROP, {**SCALES, "bbox_prune_threshold": 0.25}], ids=message
)
def test_boxes_in_the_windows_that_dali_chose(layout: str, arguments: dict[str, Any]) -> None:
    """Compare the returned boxes and their positions in equal windows."""
    from torchdali.kernels.boxes import crop as box_crop
    from torchdali.ops._box_crop import _NumberOrder

    order = _NumberOrder(2, layout)
    boxes = np.ascontiguousarray(order.from_corners((THREE[:, :2], THREE[:, 2:])))
    count = 500
    found = pipeline(
        "nvidia.dali",
        "random_bbox_crop",
        [[boxes] * count],
        {**arguments, "bbox_layout": layout, "output_bbox_indices": True},
    )
    low, high = order.to_corners(np.tile(boxes, (count, 1)))
    known = box_crop.Boxes(low, high, [3] * count)
    start, extent = (np.stack(r.samples) for r in found[:2])
    scale = f32(300, 200) if "crop_shape" in arguments else np.float32(1)
    whole = (extent == 1).all(axis=1)
    keep = box_crop.keep_boxes(
        known, start / scale, (start + extent) / scale, arguments.get("bbox_prune_threshold")
    )
    keep |= whole.repeat(3)
    places = np.flatnonzero(keep)
    moved = order.from_corners(box_crop.move_boxes(known, places, start / scale, (start + extent) / scale, whole))
    rows = keep.reshape(count, 3)
    assert [np.flatnonzero(row).tolist() for row in rows] == [
        kept.tolist() for kept in found[3].samples
    ]
    assert np.abs(moved - np.concatenate(found[2].samples)).max() < 1e-5


@pytest.mark.golden
def test_results_without_a_choice() -> None:
    """The whole image, and windows of its size, are deterministic."""
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


@pytest.mark.golden
@pytest.mark.parametrize("arguments", [*BAD, {"unknown": 1}], ids=message)
def test_random_bbox_crop_rejects_the_arguments_that_dali_rejects(arguments: dict[str, Any]) -> None:
    refused_by_both("random_bbox_crop", [[THREE]], arguments)


@pytest.mark.golden
@pytest.mark.parametrize("boxes", [f32([-1e-6, 0, 1, 1]), f32([0, 0, 1.00001, 1]), f32([0, np.nan, 1, 1]), THREE[0], THREE[:, :3], THREE.astype(np.float64)], ids=message)  # fmt: skip
def test_random_bbox_crop_rejects_the_boxes_that_dali_rejects(boxes: Array) -> None:
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
        inputs = [[image] * DRAWS, [boxes] * DRAWS, [labels] * DRAWS]
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
