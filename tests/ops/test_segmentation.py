"""Masks: objects match a slow flood fill, polygons belong to the right mask, random choices have the right distribution, and selections equal the real DALI's."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from tests.check import PerSample, Result, check, pipeline
from tests.helpers.crop_cases import message, refused_by_both
from torchdali import fn
from torchdali.kernels.masks.blobs import blobs
from torchdali.kernels.masks.foreground import above, equal, nth
from torchdali.rng import BatchRng
from torchdali.tensors import TensorList

Array = npt.NDArray[Any]
Found = list[tuple[int, list[int], list[int]]]


def flood(labels: Array, background: int, classes: Sequence[int] | None = None) -> Found:
    """Find objects one element at a time."""
    seen = (labels == background) if classes is None else ~np.isin(labels, classes)
    found = []
    for first in np.ndindex(*labels.shape):
        if seen[first]:
            continue
        seen[first] = True
        waiting, members = deque([first]), []
        while waiting:
            place = waiting.popleft()
            members.append(place)
            for axis in range(labels.ndim):
                for step in (-1, 1):
                    other = (*place[:axis], place[axis] + step, *place[axis + 1 :])
                    if (
                        0 <= other[axis] < labels.shape[axis]
                        and not seen[other]
                        and labels[other] == labels[first]
                    ):
                        seen[other] = True
                        waiting.append(other)
        found.append(
            (int(labels[first]), np.min(members, 0).tolist(), (np.max(members, 0) + 1).tolist())
        )
    return found


def listed(found: tuple[Array, Array, Array]) -> Found:
    return [
        (int(label), low.tolist(), high.tolist()) for label, low, high in zip(*found, strict=True)
    ]


def test_objects_match_a_flood_fill() -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        shape = tuple(rng.integers(1, 7, rng.integers(1, 5)).tolist())
        labels = rng.integers(0, rng.integers(2, 4), shape).astype(
            rng.choice(["uint8", "int32", "int8"])
        )
        assert listed(blobs(labels, 0)) == flood(labels, 0)
        assert listed(blobs(labels, 1, [0, 2])) == flood(labels, 1, [0, 2])


SNAKE = np.array([[1, 1, 1, 1], [0, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 1], [1, 1, 1, 1]], np.uint8)


def test_a_winding_object_is_one_object() -> None:
    assert listed(blobs(SNAKE, 0)) == [(1, [0, 0], [5, 4])]
    assert len(blobs(np.kron(SNAKE, SNAKE), 0)[0]) == len(flood(np.kron(SNAKE, SNAKE), 0))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,)])
def test_an_empty_map_has_no_object(shape: tuple[int, ...]) -> None:
    labels, low, high = blobs(np.zeros(shape, np.uint8), 0)
    assert not len(labels) and low.shape == high.shape == (0, len(shape))


# ---------------------------------------------------------------- random_object_bbox

MAP = np.zeros((6, 8), np.uint8)
MAP[0, 0] = MAP[2:4, 2:5] = 1
MAP[5, 7] = MAP[4, 0] = MAP[5, 1] = 2
MAP[1, 6:8] = 3


def choose(name: str, sample: Array, count: int = 300, **arguments: Any) -> Counter[Any]:
    """Return an operator's choices for copies of one sample."""
    batch = TensorList.from_samples([torch.from_numpy(sample)] * count)
    operator = getattr(fn.segmentation, name)
    found = operator(batch, **arguments)
    outputs = found if isinstance(found, tuple) else (found,)
    rows = zip(*[[s.flatten().tolist() for s in o.samples()] for o in outputs], strict=True)
    return Counter(tuple(tuple(part) for part in row) for row in rows)


def boxes_of(labels: Array, background: int = 0, classes: Sequence[int] | None = None) -> set[Any]:
    return {(*low, *high) for _, low, high in flood(labels, background, classes)}


CHOICES: list[tuple[dict[str, Any], set[Any]]] = [
    ({}, boxes_of(MAP)),
    ({"classes": [2]}, boxes_of(MAP, classes=[2])),
    ({"background": 1}, boxes_of(MAP, background=1)),
    ({"classes": [0, 3]}, boxes_of(MAP, -1, [0, 3])),
    ({"class_weights": [1, 0, 2]}, boxes_of(MAP, classes=[1, 3])),
    ({"k_largest": 1}, {(2, 2, 4, 5), (4, 0, 5, 1), (1, 6, 2, 8)}),
    ({"k_largest": 2, "ignore_class": True}, {(2, 2, 4, 5), (1, 6, 2, 8)}),
    ({"threshold": [2, 2]}, {(2, 2, 4, 5)}),
    ({"threshold": [1, 2]}, {(2, 2, 4, 5), (1, 6, 2, 8)}),
    ({"threshold": 7}, {(0, 0, 6, 8)}),
    ({"foreground_prob": 0.0}, {(0, 0, 6, 8)}),
    ({"foreground_prob": 0.5, "classes": [3]}, {(0, 0, 6, 8), (1, 6, 2, 8)}),
    ({"classes": [9]}, {(0, 0, 6, 8)}),
    ({"classes": []}, {(0, 0, 6, 8)}),
]


@pytest.mark.parametrize("arguments, expected", CHOICES, ids=str)
def test_chosen_objects(arguments: dict[str, Any], expected: set[Any]) -> None:
    assert {
        box for (box,) in choose("random_object_bbox", MAP, format="box", **arguments)
    } == expected


def test_formats_are_equivalent() -> None:
    one, two, three = (
        fn.segmentation.random_object_bbox.implementation(torch.from_numpy(MAP), rng=BatchRng(1, [0], [i]).samples()[0], format=f)
        for f in ("box", "start_end", "anchor_shape")
        for i in [5]
    )  # fmt: skip
    assert one.tolist() == [*two[0].tolist(), *two[1].tolist()]
    assert three[0].tolist() == two[0].tolist()
    assert (three[0] + three[1]).tolist() == two[1].tolist()
    assert one.dtype == two[0].dtype == three[1].dtype == torch.int32


def test_the_label_matches_the_box() -> None:
    expected = {((*low, *high), (label,)) for label, low, high in flood(MAP, 0)}
    assert set(choose("random_object_bbox", MAP, format="box", output_class=True)) == expected
    whole = choose("random_object_bbox", MAP, foreground_prob=0, background=7, output_class=True)
    assert set(whole) == {((0, 0), (6, 8), (7,))}
    below = choose("random_object_bbox", MAP, classes=[0, 1], foreground_prob=0, output_class=True)
    assert set(below) == {((0, 0), (6, 8), (-1,))}
    labels = MAP.astype(np.uint32) + np.uint32(2**32 - 4)
    far = choose("random_object_bbox", labels, k_largest=1, output_class=True, classes=[2**32 - 3])
    assert {label for *_, (label,) in far} == {-3}


def test_classes_are_chosen_by_weight() -> None:
    found = choose("random_object_bbox", MAP, 4000, output_class=True, class_weights=[1, 2, 5])
    counts: Counter[int] = Counter()
    for (*_, (label,)), times in found.items():
        counts[label] += times
    for label, share in ((1, 1 / 8), (2, 2 / 8), (3, 5 / 8)):
        assert abs(counts[label] / 4000 - share) < 0.04


@pytest.mark.parametrize(
    "shape", [(48,), (6, 8), (6, 1, 8), (1, 6, 8, 1), (2, 3, 8), (2, 3, 1, 4, 1, 2)]
)
def test_maps_of_other_dimensions(shape: tuple[int, ...]) -> None:
    labels = MAP.reshape(shape)
    found = choose("random_object_bbox", labels, ignore_class=True, format="box")
    assert {box for (box,) in found} == boxes_of(labels)


def test_cached_objects_are_the_same() -> None:
    batch = TensorList.from_samples(
        [torch.from_numpy(m) for m in (MAP, MAP.T.copy(), MAP, 3 - MAP, MAP)]
    )
    kept, found = (
        fn.segmentation.random_object_bbox(batch, cache_objects=cache, seed=5)
        for cache in (True, False)
    )
    for a, b in zip(kept, found, strict=True):
        assert all(torch.equal(x, y) for x, y in zip(a.samples(), b.samples(), strict=True))


def test_objects_of_maps_are_cached() -> None:
    from torchdali.ops._segmentation import _ObjectFinder

    seen = _ObjectFinder()
    rngs = iter(BatchRng(1, [0] * 9, range(9)).samples())
    for labels in (MAP, MAP.copy(), MAP.T.copy()):
        seen(torch.from_numpy(labels), rng=next(rngs), cache_objects=True)
    seen(torch.from_numpy(MAP), rng=next(rngs), cache_objects=True, background=1)
    seen(torch.from_numpy(MAP + 9), rng=next(rngs))
    assert len(seen._blobs) == 3


BAD_CHOICES: list[dict[str, Any]] = [
    {"format": "boxes"},
    {"k_largest": 0},
    {"ignore_class": True, "classes": [1]},
    {"ignore_class": True, "class_weights": [1.0]},
    {"ignore_class": True, "output_class": True},
    {"classes": [1, 2], "background": 1},
    {"classes": [0, 1], "background": 0},
    {"classes": [1, 2], "class_weights": [1.0]},
    {"class_weights": [1.0, -1.0]},
    {"threshold": [1, 2, 3]},
]


@pytest.mark.parametrize("arguments", BAD_CHOICES, ids=str)
def test_random_object_bbox_errors(arguments: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError):
        fn.segmentation.random_object_bbox(torch.from_numpy(MAP), **arguments)


@pytest.mark.parametrize(
    "labels", [np.float32([[1]]), np.int64([[1]]), np.zeros((1,) * 7, np.uint8), np.uint8(1)]
)
def test_random_object_bbox_rejects_other_maps(labels: Any) -> None:
    with pytest.raises(RuntimeError):
        fn.segmentation.random_object_bbox(torch.from_numpy(np.asarray(labels)))


# ---------------------------------------------------------------- random_mask_pixel


@pytest.mark.parametrize("size, share", [(10, 0.5), (20000, 0.5), (20000, 0.001), (5000, 1.0)])
def test_nth_true_element(size: int, share: float) -> None:
    flags = np.random.default_rng(1).random(size) < share
    flags[size // 2] = True
    places = np.flatnonzero(flags)
    for index in {0, len(places) // 3, len(places) - 1}:
        assert nth(flags, index) == places[index]


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "int64", "float32"]
)
def test_above_compares_as_numbers(dtype: str) -> None:
    for threshold in [-300.0, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 300.0, float("inf")]:
        mask = np.arange(5).astype(dtype)
        assert above(mask, threshold).tolist() == [float(v) > threshold for v in mask]


def test_equal_does_not_wrap() -> None:
    for value in [-1, 0, 2, 255, 256, 300]:
        for dtype in ("uint8", "int8", "int32", "float32"):
            mask = np.array([0, 2, -1, 127]).astype(dtype)
            assert equal(mask, value).tolist() == [float(v) == value for v in mask]


PIXELS: list[tuple[dict[str, Any], Array]] = [
    ({}, MAP >= 0),
    ({"foreground": 1}, MAP > 0),
    ({"foreground": -1, "threshold": 1.0}, MAP > 1),
    ({"foreground": 1, "threshold": 2.5}, MAP > 2.5),
    ({"foreground": 1, "value": 1}, MAP == 1),
    ({"foreground": 1, "value": 9}, MAP >= 0),
    ({"foreground": 0, "value": 1}, MAP >= 0),
]


@pytest.mark.parametrize("arguments, allowed", PIXELS, ids=lambda v: str(v)[:40])
def test_pixels_come_from_the_foreground(arguments: dict[str, Any], allowed: Array) -> None:
    found = choose("random_mask_pixel", MAP, 1500, **arguments)
    assert {place for (place,) in found} == set(
        zip(*(axis.tolist() for axis in np.nonzero(allowed)), strict=True)
    )
    expected = 1500 / allowed.sum()
    assert max(abs(times - expected) for times in found.values()) < 6 * expected**0.5


def test_pixels_of_strided_masks() -> None:
    mask = torch.from_numpy(MAP).t()
    found = fn.segmentation.random_mask_pixel(mask, foreground=1, value=3)
    assert mask[tuple(found.tolist())] == 3


@pytest.mark.parametrize(
    "mask", [np.zeros((0, 3), np.uint8), np.uint8(1), np.float64([1.0]), np.float16([1.0])]
)
def test_random_mask_pixel_rejects_invalid_arguments(mask: Any) -> None:
    with pytest.raises(RuntimeError):
        fn.segmentation.random_mask_pixel(torch.from_numpy(np.asarray(mask)))


def test_threshold_and_value_exclude_each_other() -> None:
    with pytest.raises(RuntimeError, match="pass only one of"):
        fn.segmentation.random_mask_pixel(torch.from_numpy(MAP), threshold=0.0, value=1)


# ---------------------------------------------------------------- select_masks

POLYGONS = np.array([[0, 0, 3], [1, 3, 7], [2, 7, 10]], np.int32)
VERTICES = np.arange(20, dtype=np.float32).reshape(10, 2)


def ids(*numbers: int) -> Array:
    return np.array(numbers, np.int32)


def selected(name: str, inputs: Any, arguments: Any, layouts: Any) -> list[Result]:
    """Select masks with NumPy."""
    rows, points = [], []
    for chosen, polygons, vertices in zip(*inputs, strict=True):
        ranges = {mask: (start, end) for mask, start, end in polygons.tolist()}
        parts = [vertices[slice(*ranges[mask])] for mask in chosen.tolist()]
        ends = np.cumsum([len(part) for part in parts]).tolist()
        rows.append(np.array(
            [[i if arguments.get("reindex_masks") else mask, end - len(part), end]
             for i, (mask, part, end) in enumerate(zip(chosen.tolist(), parts, ends, strict=True))], np.int32,
        ).reshape(-1, 3))  # fmt: skip
        points.append(np.concatenate([vertices[:0], *parts]))
    return [Result(rows, ""), Result(points, "")]


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("reindex", [False, True])
def test_select_masks(dtype: str, reindex: bool) -> None:
    chosen = [ids(1), ids(2, 0), ids(), ids(0, 1, 2)]
    inputs = [chosen, [POLYGONS] * 4, [VERTICES.astype(dtype)] * 4]
    check("segmentation.select_masks", inputs, {"reindex_masks": reindex}, expected=selected)


BAD_MASKS: list[tuple[Array, Array, Array]] = [
    (ids(5), POLYGONS, VERTICES),
    (ids(1, 1), POLYGONS, VERTICES),
    (ids(1)[None], POLYGONS, VERTICES),
    (ids(1).astype(np.int64), POLYGONS, VERTICES),
    (ids(1), POLYGONS.astype(np.int64), VERTICES),
    (ids(1), POLYGONS[0], VERTICES),
    (ids(1), POLYGONS[:, :2], VERTICES),
    (ids(1), POLYGONS, VERTICES[:, 0]),
    (ids(1), POLYGONS, VERTICES[:6]),
    (ids(1), ids(1, -1, 3)[None], VERTICES),
    (ids(1), ids(1, 5, 3)[None], VERTICES),
]


@pytest.mark.parametrize("inputs", BAD_MASKS, ids=lambda v: str(v)[:40])
def test_select_masks_errors(inputs: tuple[Array, ...]) -> None:
    with pytest.raises(RuntimeError):
        fn.segmentation.select_masks(*(torch.from_numpy(i) for i in inputs))


# --------------------------------------------------------- compared with the real DALI


BOTH = ("nvidia.dali", "torchdali")
COUNT = 600

EXCEPTIONS: dict[str, str] = {
    "segmentation.random_mask_pixel": "draws different random numbers from the same distribution; a mask without "
    "pixels is an error",
    "segmentation.random_object_bbox": "draws different random numbers from the same distribution; negative weights "
    "are an error",
}


def as_often(real: Counter[Any], ours: Counter[Any]) -> bool:
    """Return True if both have the same outcomes, equally often (chi-square, five standard deviations)."""
    square = sum((real[k] - ours[k]) ** 2 / (real[k] + ours[k]) for k in real | ours)
    freedom = max(len(real | ours) - 1, 1)
    return real.keys() == ours.keys() and square < freedom + 5 * math.sqrt(2 * freedom)


def outcomes(
    name: str, sample: Array, arguments: dict[str, Any], layout: str | None = None
) -> list[Counter[Any]]:
    """Return the choices of DALI and torchdali for copies of a sample, with layouts, dtypes and shapes."""
    counts = []
    for library in BOTH:
        found = pipeline(library, f"segmentation.{name}", [[sample] * COUNT], arguments, layout)
        kinds = [(o.layout, o.samples[0].dtype.name, o.samples[0].shape) for o in found]
        rows = zip(*[[s.ravel().tolist() for s in o.samples] for o in found], strict=True)
        counts.append(Counter((*kinds, *map(tuple, row)) for row in rows))
    return counts


# ---------------------------------------------------------------- random_mask_pixel

FINE = np.array([[0.1, 0.1001], [0.5, np.nan]], np.float32)
MAPS: list[tuple[Array, dict[str, Any]]] = [
    (MAP, {}),
    (MAP, {"foreground": 1}),
    (MAP, {"foreground": -1, "threshold": 1.5}),
    (MAP, {"foreground": 1, "threshold": -1.0}),
    (MAP, {"foreground": 1, "threshold": 300.0}),
    (MAP, {"foreground": 1, "value": 2}),
    (MAP, {"foreground": 1, "value": 258}),
    (255 - MAP, {"foreground": 1, "value": -1}),
    (MAP > 0, {"foreground": 1, "value": 2}),
    (MAP.astype(np.float32) + 0.5, {"foreground": 1, "value": 2}),
    (FINE, {"foreground": 1, "threshold": 0.1}),
    (np.array([[2**40, 0, 2**24 + 1]]), {"foreground": 1, "threshold": 2.0**24}),
    (MAP.reshape(2, 3, 8), {"foreground": 1}),
    (MAP.ravel(), {"foreground": 1, "value": 3}),
    (np.zeros((3, 2), np.uint8), {"foreground": 1}),
]


@pytest.mark.golden
@pytest.mark.parametrize("mask, arguments", MAPS, ids=message)
def test_random_mask_pixel(mask: Array, arguments: dict[str, Any]) -> None:
    assert as_often(*outcomes("random_mask_pixel", mask, arguments))


TYPES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float32",
]


@pytest.mark.golden
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", ["HW", "HWC"])
def test_random_mask_pixel_of_every_type(dtype: str, layout: str) -> None:
    mask = MAP.astype(dtype) if layout == "HW" else MAP[..., None].astype(dtype)
    assert as_often(*outcomes("random_mask_pixel", mask, {"foreground": 1}, layout))


@pytest.mark.golden
def test_arguments_of_random_mask_pixel_for_each_sample() -> None:
    arguments = {"foreground": PerSample([1] * 4), "value": PerSample([3, 1, 3, 9])}
    for library in BOTH:
        (found,) = pipeline(library, "segmentation.random_mask_pixel", [[MAP] * 4], arguments)
        values = [int(MAP[tuple(place)]) for place in found.samples]
        assert values[:3] == [3, 1, 3]


@pytest.mark.golden
@pytest.mark.parametrize("mask, arguments", [(MAP, {"threshold": 0.0, "value": 1}), (MAP.astype(np.float64), {}), (MAP.astype(np.float16), {}), (MAP, {"unknown": 1})], ids=message)  # fmt: skip
def test_random_mask_pixel_errors(mask: Array, arguments: dict[str, Any]) -> None:
    refused_by_both("segmentation.random_mask_pixel", [[mask]], arguments)


# ---------------------------------------------------------------- random_object_bbox

TIES = np.zeros((6, 9), np.uint8)
TIES[0, 0] = TIES[2, 2] = 3
TIES[0, 2] = TIES[2, 0] = 1
TIES[0, 4], TIES[4, 4], TIES[4, 6] = 2, 200, 7
ROW = np.array([[0, 1, 2, 3, 4, 5, 0]], np.uint8)
LABEL = {"output_class": True}
OBJECTS: list[tuple[Array, dict[str, Any]]] = [
    (MAP, {}),
    (MAP, {"format": "start_end", **LABEL}),
    (MAP, {"format": "box"}),
    (MAP, {"format": "box", **LABEL}),
    (MAP, {"foreground_prob": 0.5, **LABEL}),
    (MAP, {"foreground_prob": 0.0, "background": 7, **LABEL}),
    (MAP, {"foreground_prob": 2.0, "format": "box"}),
    (MAP, {"background": 1, **LABEL}),
    (MAP, {"background": 9, **LABEL}),
    (MAP, {"classes": [2]}),
    (MAP, {"classes": [1, 1, 2], **LABEL}),
    (MAP, {"classes": [9, 1], **LABEL}),
    (MAP, {"classes": [9], **LABEL}),
    (MAP, {"classes": []}),
    (MAP, {"classes": [0], **LABEL}),
    (MAP, {"classes": [0, 1], "foreground_prob": 0.5, **LABEL}),
    (MAP.astype(np.int32), {"classes": [-1, 0, 1], "foreground_prob": 0.5, **LABEL}),
    (MAP, {"class_weights": [1, 2, 1], **LABEL}),
    (MAP, {"class_weights": [1, 2], **LABEL}),
    (MAP, {"class_weights": [0, 0, 0], **LABEL}),
    (MAP, {"class_weights": [1, 3], "classes": [1, 3], **LABEL}),
    (ROW, {"class_weights": [1, 2, 4], "background": 2, **LABEL}),
    (ROW, {"class_weights": [1, 2, 4], "background": 5, **LABEL}),
    (ROW, {"class_weights": [1, 2, 4], **LABEL}),
    (MAP, {"ignore_class": True}),
    (MAP, {"ignore_class": True, "k_largest": 2}),
    (MAP, {"k_largest": 1, **LABEL}),
    (MAP, {"k_largest": 2, "threshold": [1, 2]}),
    (TIES, {"k_largest": 1, **LABEL}),
    (TIES, {"k_largest": 3, "ignore_class": True}),
    (TIES, {"k_largest": 5, "ignore_class": True}),
    (MAP, {"threshold": [2, 2], **LABEL}),
    (MAP, {"threshold": [1, 2], **LABEL}),
    (MAP, {"threshold": 2, "ignore_class": True}),
    (MAP, {"threshold": [9, 9], **LABEL}),
    (MAP, {"threshold": [-1, 0]}),
    (MAP, {"cache_objects": True, **LABEL}),
    (np.kron(SNAKE, SNAKE), {}),
    (MAP * 0, LABEL),
    (np.zeros((0, 3), np.uint8), {}),
    (np.full((2, 2), 255, np.uint8), {"classes": [-1], **LABEL}),
    (-MAP.astype(np.int8), {"classes": [-1, -2], **LABEL}),
]


@pytest.mark.golden
@pytest.mark.parametrize("labels, arguments", OBJECTS, ids=message)
def test_random_object_bbox(labels: Array, arguments: dict[str, Any]) -> None:
    assert as_often(*outcomes("random_object_bbox", labels, arguments))


@pytest.mark.golden
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("layout", ["HW", "HWC"])
def test_random_object_bbox_of_every_type(dtype: str, layout: str) -> None:
    labels = MAP.astype(dtype) if layout == "HW" else MAP[..., None].astype(dtype)
    assert as_often(*outcomes("random_object_bbox", labels, LABEL, layout))


@pytest.mark.golden
@pytest.mark.parametrize("shape", [(48,), (2, 3, 8), (2, 3, 1, 8), (2, 3, 1, 4, 1, 2)])
def test_random_object_bbox_in_other_dimensions(shape: Sequence[int]) -> None:
    assert as_often(*outcomes("random_object_bbox", MAP.reshape(shape), LABEL))


@pytest.mark.golden
@pytest.mark.parametrize("seed", range(6))
def test_objects_of_random_maps(seed: int) -> None:
    labels = np.random.default_rng(seed).integers(0, 3, (5, 4, 3)[: 2 + seed % 2]).astype(np.uint8)
    assert as_often(*outcomes("random_object_bbox", labels, {"ignore_class": True}))


@pytest.mark.golden
def test_arguments_of_random_object_bbox_for_each_sample() -> None:
    each: dict[str, list[Any]] = {
        "background": [1, 0, 2],
        "classes": [[3], [1], [3]],
        "threshold": [[1, 1], [2, 2], [1, 2]],
        "foreground_prob": [1.0, 1.0, 0.0],
    }
    arguments = {**{key: PerSample(values) for key, values in each.items()}, **LABEL}
    check("segmentation.random_object_bbox", [[MAP] * 3], arguments)
    check(
        "segmentation.random_object_bbox",
        [[MAP] * 2],
        {"class_weights": PerSample([[0.0, 0.0, 1.0]] * 2)},
    )


BAD: list[tuple[Array, dict[str, Any]]] = [
    (MAP, {"format": "boxes"}),
    (MAP, {"k_largest": 0}),
    (MAP, {"ignore_class": True, "classes": [1]}),
    (MAP, {"ignore_class": True, "class_weights": [1.0]}),
    (MAP, {"ignore_class": True, "output_class": True}),
    (MAP, {"classes": [1, 2], "background": 1}),
    (MAP, {"classes": [0, 1], "background": 0}),
    (MAP, {"classes": [1, 2], "class_weights": [1.0]}),
    (MAP, {"threshold": [1, 2, 3]}),
    (MAP.astype(np.float32), {}),
    (MAP.astype(np.int64), {}),
    (np.array(1, np.uint8), {}),
]


@pytest.mark.golden
@pytest.mark.parametrize("labels, arguments", BAD, ids=message)
def test_random_object_bbox_rejects_the_arguments_that_dali_rejects(labels: Array, arguments: dict[str, Any]) -> None:
    refused_by_both("segmentation.random_object_bbox", [[labels]], arguments)


# ---------------------------------------------------------------- select_masks

SELECTIONS: list[tuple[Array, Array]] = [
    (ids(1), POLYGONS),
    (ids(2, 0), POLYGONS),
    (ids(), POLYGONS),
    (ids(0), np.array([[0, 0, 3], [1, 3, 7], [0, 7, 10]], np.int32)),
    (ids(0, 1), np.array([[0, 0, 5], [1, 3, 7]], np.int32)),
    (ids(0, 1), np.array([[0, 5, 8], [1, 0, 3]], np.int32)),
    (ids(1, -1), np.array([[1, 3, 3], [-1, 5, 6], [7, 0, 99]], np.int32)),
]


@pytest.mark.golden
@pytest.mark.parametrize("chosen, polygons", SELECTIONS, ids=message)
@pytest.mark.parametrize("reindex", [False, True])
def test_select_masks_matches_dali(chosen: Array, polygons: Array, reindex: bool) -> None:
    inputs = [[chosen], [polygons], [VERTICES]]
    check("segmentation.select_masks", inputs, {"reindex_masks": reindex}, ["N", "HW", "WC"])
    check("segmentation.select_masks", inputs, {"reindex_masks": reindex})


@pytest.mark.golden
@pytest.mark.parametrize("dtype", [*TYPES, "float16", "float64"])
def test_select_masks_of_every_type(dtype: str) -> None:
    vertices = np.arange(30).reshape(10, 3).astype(dtype)
    check("segmentation.select_masks", [[ids(2, 1)], [POLYGONS], [vertices]])


@pytest.mark.golden
@pytest.mark.parametrize("inputs", BAD_MASKS, ids=message)
def test_select_masks_rejects_the_arguments_that_dali_rejects(inputs: tuple[Array, ...]) -> None:
    refused_by_both("segmentation.select_masks", [[i] for i in inputs], {})
