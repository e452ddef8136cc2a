"""Random windows against the real DALI: the windows differ, but their distributions agree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.check import PerSample, pipeline
from tests.helpers.crop_cases import Array, i32, message, refused_by_both

pytestmark = pytest.mark.golden

EXCEPTIONS: dict[str, str] = {
    "random_crop_generator": "draws different random numbers from the same distribution; ratio ranges must be positive",
    "roi_random_crop": "draws different random numbers from the same distribution",
}

COUNT = 6000


def agree(real: Array, ours: Array) -> bool:
    """Return True if two samples of integers may come from one distribution (chi-square, five standard deviations).

    Values that are rare in both are pooled.
    """
    one, other = (Counter(map(tuple, a.reshape(len(a), -1).tolist())) for a in (real, ours))
    pooled: Counter[Any] = Counter()
    table = []
    for key in one.keys() | other.keys():
        if one[key] + other[key] < 20:
            pooled.update({0: one[key], 1: other[key]})
        else:
            table.append((one[key], other[key]))
    if pooled.total() >= 20:
        table.append((pooled[0], pooled[1]))
    share = len(real) / (len(real) + len(ours))
    square = sum((a - (a + b) * share) ** 2 / ((a + b) * share * (1 - share)) for a, b in table)
    freedom = max(len(table) - 1, 1)
    return square < freedom + 5 * math.sqrt(2 * freedom)


def test_agree_detects_different_distributions() -> None:
    rng = np.random.default_rng(0)
    assert agree(rng.integers(0, 10, COUNT), rng.integers(0, 10, COUNT))
    assert not agree(rng.integers(0, 10, COUNT), rng.integers(0, 10, COUNT) * rng.integers(0, 2, COUNT))
    assert not agree(rng.binomial(20, 0.5, COUNT), rng.binomial(20, 0.52, COUNT))


def windows(library: str, height: int, width: int, arguments: Mapping[str, Any]) -> Array:
    """Return y, x, height and width of many windows."""
    shapes = [np.array([height, width, 3])] * COUNT
    anchor, shape = pipeline(library, "random_crop_generator", [shapes], arguments)
    assert anchor.layout == shape.layout == ""
    assert anchor.samples[0].dtype == shape.samples[0].dtype == np.int32
    return np.concatenate([np.stack(anchor.samples), np.stack(shape.samples)], axis=1)


RANDOM: list[tuple[int, int, dict[str, Any]]] = [
    (100, 100, {}),
    (300, 100, {}),
    (50, 400, {}),
    (7, 5, {}),
    (20, 30, {"random_area": [0.0001, 0.01]}),
    (20, 30, {"random_area": [0.0, 0.0]}),
    (100, 120, {"random_area": [0.3, 0.9], "random_aspect_ratio": [0.1, 10.0]}),
    (100, 200, {"random_area": [0.9, 1.0], "random_aspect_ratio": [4, 6]}),
    (100, 200, {"num_attempts": 1}),
    (97, 211, {"random_area": [1.0, 1.0]}),
    (64, 64, {"random_area": [0.2, 0.3], "random_aspect_ratio": [1.0, 1.0]}),
    (64, 80, {"random_area": [1.5, 2.0], "random_aspect_ratio": [0.5, 2.0]}),
    (24, 36, {"random_area": [0.5], "random_aspect_ratio": [0.8]}),
    (24, 36, {"random_area": [0.2, 0.4], "random_aspect_ratio": [0.8, 1.25]}),
]


@pytest.mark.parity  # many draws
@pytest.mark.parametrize("height, width, arguments", RANDOM, ids=message)
def test_random_crop_generator(height: int, width: int, arguments: dict[str, Any]) -> None:
    real = windows("nvidia.dali", height, width, arguments)
    ours = windows("torchdali", height, width, arguments)
    for part in (slice(0, 1), slice(1, 2), slice(2, 3), slice(3, 4)):
        assert agree(real[:, part], ours[:, part])
    cells = np.array([max(height // 12, 1), max(width // 12, 1)])
    assert agree(real[:, 2:] // cells, ours[:, 2:] // cells), "height and width together"
    assert agree(real // np.tile(3 * cells, 2), ours // np.tile(3 * cells, 2)), "place and extent"


FALLBACKS: list[tuple[int, int, dict[str, Any]]] = [
    (100, 200, {}),
    (100, 200, {"random_area": [0.1, 0.3]}),
    (101, 123, {"random_area": [0.2, 0.5], "random_aspect_ratio": [3.0, 10.0]}),
    (97, 211, {"random_area": [0.01, 0.02], "random_aspect_ratio": [0.3, 0.31]}),
    (7, 5, {}),
    (11, 5, {"random_area": [0.1, 0.5]}),
    (13, 4, {"random_area": [0.1, 0.5]}),
    (9, 50, {"random_aspect_ratio": [0.8, 1.57]}),
    (100, 200, {"random_area": [0.0, 0.001]}),
    (100, 200, {"random_area": [0.0, 0.00001]}),
    (1, 1, {}),
    (0, 5, {}),
]


@pytest.mark.parametrize("height, width, arguments", FALLBACKS, ids=message)
def test_the_window_when_no_attempt_fits(
    height: int, width: int, arguments: dict[str, Any]
) -> None:
    shapes = [np.array([height, width])] * 4
    real, ours = (
        pipeline(library, "random_crop_generator", [shapes], {**arguments, "num_attempts": 0})
        for library in ("nvidia.dali", "torchdali")
    )
    assert np.array_equal(real[1].samples, ours[1].samples)


@pytest.mark.parity  # many draws
def test_windows_of_the_decoder_and_of_random_resized_crop_have_the_same_distribution() -> None:
    """DALI draws windows of decoders.image_random_crop and random_resized_crop by the same rule."""
    height, width = 24, 36
    ramp = np.stack(np.broadcast_arrays(*np.mgrid[:height, :width], 0), axis=-1).astype(np.float32)
    expected = windows("torchdali", height, width, {})
    resized = pipeline(
        "nvidia.dali", "random_resized_crop", [[ramp] * COUNT],
        {"size": [2, 2], "antialias": False}, "HWC",
    )[0]  # fmt: skip
    corners = np.stack(resized.samples)[..., :2]
    step = corners[:, 1, 1] - corners[:, 0, 0]
    extents = np.rint(2 * step).astype(int)
    starts = np.rint(corners[:, 0, 0] - step / 2 + 0.5).astype(int)
    assert agree(extents, expected[:, 2:])
    assert agree(starts, expected[:, :2])


BAD: list[dict[str, Any]] = [
    {"random_area": [0.6, 0.5]},
    {"random_area": [0.5, 0.6, 0.7]},
    {"random_aspect_ratio": [1.6, 0.5]},
    {"random_aspect_ratio": [0.5, 0.6, 0.7]},
]


@pytest.mark.parametrize("arguments", BAD, ids=message)
def test_random_crop_generator_errors(arguments: dict[str, Any]) -> None:
    refused_by_both("random_crop_generator", [[np.array([100, 200, 3])]], arguments)


@pytest.mark.parametrize("shape", [[100], [100, 200, 3, 4], [[100, 200]]], ids=message)
def test_random_crop_generator_rejects_other_shapes(shape: Any) -> None:
    refused_by_both("random_crop_generator", [[np.array(shape)]], {})
    refused_by_both("random_crop_generator", [[np.array([100.0, 200.0], np.float32)]], {})


# ---------------------------------------------------------------- roi_random_crop

ROIS: list[dict[str, Any]] = [
    {"crop_shape": [3, 3], "roi_start": [2, 2], "roi_end": [7, 4]},
    {"crop_shape": [8, 6], "roi_start": [2, 2], "roi_end": [7, 4]},
    {"crop_shape": [8, 6], "roi_start": [2, 2], "roi_shape": [5, 2]},
    {"crop_shape": [10, 12], "roi_start": [2, 2], "roi_end": [7, 4]},
    {"crop_shape": [3, 3], "roi_start": [5, 5], "roi_end": [2, 2]},
    {"crop_shape": [3, 3], "roi_start": [0, 9], "roi_end": [0, 9]},
    {"crop_shape": [0, 3], "roi_start": [8, 9], "roi_end": [10, 12]},
    {"crop_shape": [3, 3], "roi_start": [5], "roi_end": [6]},
    {"crop_shape": [3], "roi_start": [5], "roi_end": [6]},
]


def roi(library: str, arguments: dict[str, Any], with_data: bool = True) -> Array:
    data = [np.zeros((10, 12), np.uint8)] * 4000
    if not with_data:
        arguments = {**arguments, "crop_shape": PerSample([i32(arguments["crop_shape"])] * 4000)}
    found = pipeline(library, "roi_random_crop", [data] if with_data else [], arguments)[0]
    assert found.layout == "" and found.samples[0].dtype == np.int64
    return np.stack(found.samples)


@pytest.mark.parametrize("arguments", ROIS, ids=message)
def test_roi_random_crop(arguments: dict[str, Any]) -> None:
    for with_data in (True, False):
        real, ours = (roi(name, arguments, with_data) for name in ("nvidia.dali", "torchdali"))
        assert agree(real, ours)
        assert real.min(0).tolist() == ours.min(0).tolist()
        assert real.max(0).tolist() == ours.max(0).tolist()


def test_roi_random_crop_in_a_shape() -> None:
    arguments = {**ROIS[1], "in_shape": [9, 9]}
    assert agree(roi("nvidia.dali", arguments, False), roi("torchdali", arguments, False))


BAD_ROIS: list[dict[str, Any]] = [
    {"roi_end": [5, 5], "roi_shape": [3, 3]},
    {},
    {"roi_end": [5, 5], "in_shape": [10, 12]},
    {"roi_end": [5, 5], "crop_shape": [11, 3]},
    {"roi_end": [5, 5], "crop_shape": [-1, 3]},
    {"roi_end": [5, 5], "roi_start": [-2, 2]},
    {"roi_end": [15, 5]},
    {"roi_end": [5, 5], "crop_shape": [3, 3, 3]},
    {"roi_end": [5, 5], "roi_start": [1, 1, 1]},
    {"roi_end": [5, 5], "roi_start": None},
    {"roi_end": [5, 5], "crop_shape": None},
]


@pytest.mark.parametrize("arguments", BAD_ROIS, ids=message)
def test_roi_random_crop_errors(arguments: dict[str, Any]) -> None:
    base = {"crop_shape": [3, 3], "roi_start": [2, 2]}
    refused_by_both("roi_random_crop", [[np.zeros((10, 12), np.uint8)]], {**base, **arguments})
