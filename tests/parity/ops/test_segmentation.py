"""Masks against the real DALI: selections exactly, random choices by their distribution."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.check import PerSample, check, pipeline
from tests.helpers.crop_cases import message, refused_by_both
from tests.ops.test_segmentation import MAP, POLYGONS, SNAKE, VERTICES, ids

pytestmark = pytest.mark.golden

Array = npt.NDArray[Any]
BOTH = ("nvidia.dali", "torchdali")
COUNT = 600

EXCEPTIONS: dict[str, str] = {
    "segmentation.random_mask_pixel": "other random numbers, same distribution; a mask without pixels is an error",
    "segmentation.random_object_bbox": "other random numbers, same distribution; negative weights are an error",
}


def as_often(real: Counter[Any], ours: Counter[Any]) -> bool:
    """Return True if both have the same outcomes, equally often (chi-square, five standard deviations)."""
    square = sum((real[k] - ours[k]) ** 2 / (real[k] + ours[k]) for k in real | ours)
    freedom = max(len(real | ours) - 1, 1)
    return real.keys() == ours.keys() and square < freedom + 5 * math.sqrt(2 * freedom)


def outcomes(
    name: str, sample: Array, arguments: dict[str, Any], layout: str | None = None
) -> list[Counter[Any]]:
    """Return what DALI and torchdali choose for copies of a sample, with layouts, types and shapes."""
    counts = []
    for library in BOTH:
        found = pipeline(library, f"segmentation.{name}", [[sample] * COUNT], arguments, layout)
        kinds = [(o.layout, o.samples[0].dtype.name, o.samples[0].shape) for o in found]
        rows = zip(*[[s.ravel().tolist() for s in o.samples] for o in found], strict=True)
        counts.append(Counter((*kinds, *map(tuple, row)) for row in rows))
    return counts


# ---------------------------------------------------------------- random_mask_pixel

FINE = np.array([[0.1, 0.1001], [0.5, np.nan]], np.float32)
PIXELS: list[tuple[Array, dict[str, Any]]] = [
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


@pytest.mark.parametrize("mask, arguments", PIXELS, ids=message)
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


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", ["HW", "HWC"])
def test_random_mask_pixel_of_every_type(dtype: str, layout: str) -> None:
    mask = MAP.astype(dtype) if layout == "HW" else MAP[..., None].astype(dtype)
    assert as_often(*outcomes("random_mask_pixel", mask, {"foreground": 1}, layout))


def test_arguments_of_random_mask_pixel_for_each_sample() -> None:
    arguments = {"foreground": PerSample([1] * 4), "value": PerSample([3, 1, 3, 9])}
    for library in BOTH:
        (found,) = pipeline(library, "segmentation.random_mask_pixel", [[MAP] * 4], arguments)
        values = [int(MAP[tuple(place)]) for place in found.samples]
        assert values[:3] == [3, 1, 3]


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


@pytest.mark.parametrize("labels, arguments", OBJECTS, ids=message)
def test_random_object_bbox(labels: Array, arguments: dict[str, Any]) -> None:
    assert as_often(*outcomes("random_object_bbox", labels, arguments))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("layout", ["HW", "HWC"])
def test_random_object_bbox_of_every_type(dtype: str, layout: str) -> None:
    labels = MAP.astype(dtype) if layout == "HW" else MAP[..., None].astype(dtype)
    assert as_often(*outcomes("random_object_bbox", labels, LABEL, layout))


@pytest.mark.parametrize("shape", [(48,), (2, 3, 8), (2, 3, 1, 8), (2, 3, 1, 4, 1, 2)])
def test_random_object_bbox_in_other_dimensions(shape: Sequence[int]) -> None:
    assert as_often(*outcomes("random_object_bbox", MAP.reshape(shape), LABEL))


@pytest.mark.parametrize("seed", range(6))
def test_objects_of_random_maps(seed: int) -> None:
    labels = np.random.default_rng(seed).integers(0, 3, (5, 4, 3)[: 2 + seed % 2]).astype(np.uint8)
    assert as_often(*outcomes("random_object_bbox", labels, {"ignore_class": True}))


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


@pytest.mark.parametrize("labels, arguments", BAD, ids=message)
def test_random_object_bbox_errors(labels: Array, arguments: dict[str, Any]) -> None:
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


@pytest.mark.parametrize("chosen, polygons", SELECTIONS, ids=message)
@pytest.mark.parametrize("reindex", [False, True])
def test_select_masks(chosen: Array, polygons: Array, reindex: bool) -> None:
    inputs = [[chosen], [polygons], [VERTICES]]
    check("segmentation.select_masks", inputs, {"reindex_masks": reindex}, ["N", "HW", "WC"])
    check("segmentation.select_masks", inputs, {"reindex_masks": reindex})


@pytest.mark.parametrize("dtype", [*TYPES, "float16", "float64"])
def test_select_masks_of_every_type(dtype: str) -> None:
    vertices = np.arange(30).reshape(10, 3).astype(dtype)
    check("segmentation.select_masks", [[ids(2, 1)], [POLYGONS], [vertices]])


BAD_MASKS: list[tuple[Array, Array, Array]] = [
    (ids(5), POLYGONS, VERTICES),
    (ids(1, 1), POLYGONS, VERTICES),
    (ids(1)[None], POLYGONS, VERTICES),
    (ids(1).astype(np.int64), POLYGONS, VERTICES),
    (ids(1), POLYGONS.astype(np.int64), VERTICES),
    (ids(1), POLYGONS[0], VERTICES),
    (ids(1), np.ones((1, 4), np.int32), VERTICES),
    (ids(1), POLYGONS, VERTICES.ravel()),
    (ids(1), POLYGONS, VERTICES[:6]),
    (ids(1), ids(1, -1, 3)[None], VERTICES),
    (ids(1), ids(1, 5, 3)[None], VERTICES),
]


@pytest.mark.parametrize("inputs", BAD_MASKS, ids=message)
def test_select_masks_errors(inputs: tuple[Array, ...]) -> None:
    refused_by_both("segmentation.select_masks", [[i] for i in inputs], {})
