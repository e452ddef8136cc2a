"""Output sizes of resize: a table of measured cases, errors, and random cases on the real DALI."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from torchdali.kernels.resample.shape import resize_shape

IMAGE = (213, 371)

SIZES: list[tuple[dict[str, Any], tuple[int, ...]]] = [
    ({"size": 100}, (100, 100)),
    ({"size": [100]}, (100, 100)),
    ({"size": [100, 0]}, (100, 174)),
    ({"size": [0, 0]}, IMAGE),
    ({"size": [-100, 0]}, (100, 174)),
    ({"resize_x": 100}, (57, 100)),
    ({"resize_x": 100, "resize_y": 50}, (50, 100)),
    ({"resize_x": 0.0}, IMAGE),
    ({"resize_x": 0.3}, (1, 1)),
    ({"resize_z": 5}, IMAGE),
    ({"resize_shorter": 100}, (100, 174)),
    ({"resize_longer": 100}, (57, 100)),
    ({"resize_shorter": 0.0}, IMAGE),
    ({"resize_shorter": 100, "max_size": 150}, (86, 150)),
    ({"resize_shorter": 100, "max_size": [150, 160]}, (92, 160)),
    ({"size": [100, 200], "mode": "default"}, (100, 200)),
    ({"size": [100, 200], "mode": "stretch"}, (100, 200)),
    ({"size": [100, 200], "mode": "not_larger"}, (100, 174)),
    ({"size": [100, 200], "mode": "not_smaller"}, (115, 200)),
    ({"resize_x": 100, "mode": "stretch"}, (213, 100)),
    ({"resize_x": 300, "max_size": 150}, (150, 150)),
    ({"size": [200, 300], "max_size": [0, 100]}, (200, 100)),
    ({"size": [200, 300], "mode": "not_smaller", "max_size": 150}, (86, 150)),
    ({"size": [0, 0], "max_size": 30}, IMAGE),
    ({"resize_x": 300, "max_size": -5}, (172, 300)),
    ({"resize_x": 100, "roi_start": [10, 20], "roi_end": [110, 320]}, (33, 100)),
    ({"resize_shorter": 100, "roi_start": [110, 20], "roi_end": [10, 320]}, (100, 300)),
    ({"resize_x": 100, "roi_start": [10], "roi_end": [20]}, (100, 100)),
    ({"size": [2.5, 3.5]}, (3, 4)),
]


@pytest.mark.parametrize(("arguments", "expected"), SIZES)
def test_sizes(arguments: dict[str, Any], expected: tuple[int, ...]) -> None:
    assert resize_shape(IMAGE, **arguments)[0] == expected


# Float32 decides exact halves: DALI divides the sizes first, and then multiplies.
HALVES: list[tuple[tuple[int, int], dict[str, Any], tuple[int, int]]] = [
    ((24, 30), {"resize_y": 50}, (50, 62)),
    ((18, 63), {"resize_y": 73, "mode": "not_larger"}, (73, 255)),
    ((24, 51), {"resize_shorter": 28}, (28, 59)),
    ((46, 23), {"resize_longer": 7}, (7, 3)),
    ((54, 27), {"size": 29, "mode": "not_larger"}, (29, 14)),
    ((50, 75), {"size": 39, "mode": "not_smaller"}, (39, 58)),
    ((22, 33), {"resize_shorter": 31}, (31, 47)),
]


@pytest.mark.parametrize(("lengths", "arguments", "expected"), HALVES)
def test_halves(
    lengths: tuple[int, int], arguments: dict[str, Any], expected: tuple[int, int]
) -> None:
    assert resize_shape(lengths, **arguments)[0] == expected


@pytest.mark.parity
@pytest.mark.parametrize(("lengths", "arguments", "expected"), HALVES)
def test_halves_equal_dali(
    lengths: tuple[int, int], arguments: dict[str, Any], expected: tuple[int, int]
) -> None:
    assert tuple(map(len, dali_resize(list(lengths), arguments))) == expected


@pytest.mark.parametrize(
    ("arguments", "size", "region"),
    [
        ({"size": [20, 30]}, (20, 30), [(0, 40), (0, 60)]),
        ({"size": [10.4, 20.6]}, (10, 21), [(0.7692, 39.2308), (-0.5825, 60.5825)]),
        ({"size": [10.4, 20.6], "subpixel_scale": False}, (10, 21), [(0, 40), (0, 60)]),
        ({"resize_x": -20.6}, (14, 21), [(-0.3883, 40.3883), (60.5825, -0.5825)]),
        ({"resize_shorter": -20}, (20, 30), [(40, 0), (60, 0)]),
        ({"size": [-20, 0], "mode": "stretch"}, (20, 60), [(40, 0), (0, 60)]),
        ({"size": [5, -9], "mode": "not_larger"}, (5, 8), [(0, 40), (62, -2)]),
        (
            {"size": [-20, 30], "roi_start": [30, 10], "roi_end": [10, 40]},
            (20, 30),
            [(10, 30), (10, 40)],
        ),
        (
            {"size": 20, "roi_start": [0.1, 0.25], "roi_end": [0.6, 0.75], "roi_relative": True},
            (20, 20),
            [(4, 24), (15, 45)],
        ),
    ],
)
def test_region(
    arguments: dict[str, Any], size: tuple[int, ...], region: list[tuple[float, float]]
) -> None:
    out_size, out_region = resize_shape((40, 60), **arguments)
    assert out_size == size
    assert out_region == [pytest.approx(axis, abs=1e-4) for axis in region]


def test_whole_image_is_exact() -> None:
    """The ends are whole numbers, which the fast path supports."""
    for wanted in (7, 33, 100, 224):
        size, region = resize_shape((213, 371), size=wanted)
        assert size == (wanted, wanted)
        assert region == [(0.0, 213.0), (0.0, 371.0)]


def test_volumes_scale_by_the_geometric_mean() -> None:
    assert resize_shape((12, 40, 60), size=[5, 20, 0])[0] == (5, 20, 27)
    assert resize_shape((12, 40, 60), resize_z=5, resize_x=50)[0] == (5, 24, 50)
    assert resize_shape((12, 40, 60), resize_shorter=8, max_size=[100, 20, 100])[0] == (6, 20, 30)


def test_axes_without_pixels() -> None:
    assert resize_shape((0, 30), size=[5, 0])[0] == (0, 30)
    assert resize_shape((0, 30), size=[5, 6], mode="not_larger")[0] == (0, 6)
    assert resize_shape((30, 0), resize_shorter=5)[0] == (5, 0)


REFUSED: list[dict[str, Any]] = [
    {},
    {"resize_shorter": 100, "resize_longer": 100},
    {"resize_shorter": 100, "resize_x": 10},
    {"size": [10, 10], "resize_x": 5},
    {"size": [10, 10], "resize_shorter": 5},
    {"size": [1, 2, 3]},
    {"resize_shorter": 100, "mode": "default"},
    {"resize_longer": 100, "mode": "stretch"},
    {"resize_x": 100, "mode": "bigger"},
    {"resize_x": 100, "max_size": [1, 2, 3]},
    {"resize_x": 100, "roi_start": [0, 0]},
    {"resize_x": 100, "roi_end": [0, 0]},
    {"resize_x": 100, "roi_start": [0, 0, 0], "roi_end": [1, 1, 1]},
]


@pytest.mark.parametrize("arguments", REFUSED)
def test_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError, match=r"size|mode|roi"):
        resize_shape(IMAGE, **arguments)


def dali_resize(lengths: list[int], arguments: dict[str, Any]) -> list[Any]:
    """Return the input positions of output pixels, one array per axis, by resizing coordinates."""
    dali = pytest.importorskip(
        "nvidia.dali",
        reason="the parity tests compare with the real DALI: install the extra 'parity'",
    )
    grid = np.stack(np.meshgrid(*map(np.arange, lengths), indexing="ij"), -1).astype(np.float32)
    pipe = dali.Pipeline(1, 1, None, prefetch_queue_depth=1)
    with pipe:
        x = dali.fn.external_source(lambda: [grid], layout="HWC" if len(lengths) == 2 else "DHWC")
        pipe.set_outputs(dali.fn.resize(x, antialias=False, **arguments))
    (out,) = pipe.run()
    positions = np.array(out.at(0))
    found = []
    for i in range(len(lengths)):
        line: list[Any] = [0] * len(lengths)
        line[i] = slice(None)
        found.append(positions[tuple(line)][:, i])
    return found


def random_number(rng: np.random.Generator, length: int) -> float:
    if rng.random() < 0.1:
        return 0.0
    whole = rng.random() < 0.5
    value = float(rng.integers(1, 2 * length + 2)) if whole else rng.uniform(0.2, 2 * length)
    return -value if rng.random() < 0.2 else float(np.float32(value))


def random_region(rng: np.random.Generator, lengths: list[int]) -> dict[str, Any]:
    starts, ends = [], []
    for length in lengths:
        low, high = sorted(float(v) for v in rng.uniform(-0.1 * length, length, 2))
        if rng.random() < 0.4:
            low, high = float(math.floor(low)), float(math.ceil(high))
        low, high = (high + 0.5, low) if rng.random() < 0.25 else (low, high + 0.5)
        starts.append(low)
        ends.append(high)
    relative = bool(rng.random() < 0.4)
    if relative:
        starts = [v / length for v, length in zip(starts, lengths, strict=True)]
        ends = [v / length for v, length in zip(ends, lengths, strict=True)]
    return {"roi_start": starts, "roi_end": ends, "roi_relative": relative}


def random_arguments(rng: np.random.Generator, lengths: list[int]) -> dict[str, Any]:
    way = rng.choice(["size", "one size", "by name", "resize_shorter", "resize_longer"])
    k: dict[str, Any] = {"subpixel_scale": bool(rng.random() < 0.6)}
    if way == "size":
        k["size"] = [random_number(rng, length) for length in lengths]
    elif way == "one size":
        k["size"] = [random_number(rng, lengths[0])]
    elif way == "by name":
        names = ["resize_x", "resize_y", "resize_z"][: len(lengths)]
        for name in rng.permutation(names)[: rng.integers(1, len(names) + 1)]:
            k[str(name)] = random_number(rng, max(lengths))
    else:
        k[str(way)] = random_number(rng, max(lengths))
    if way in ("size", "one size", "by name") and rng.random() < 0.7:
        k["mode"] = str(rng.choice(["default", "stretch", "not_larger", "not_smaller"]))
    if rng.random() < 0.35:
        limits = [abs(random_number(rng, length)) for length in lengths]
        k["max_size"] = limits if rng.random() < 0.6 else limits[:1]
    return {**k, **random_region(rng, lengths)} if rng.random() < 0.4 else k


@pytest.mark.parity
@pytest.mark.parametrize("seed", range(4))
def test_random_arguments_equal_dali(seed: int) -> None:
    rng = np.random.default_rng(seed)
    checked = 0
    while checked < 150:
        axes = int(rng.choice([2, 2, 2, 3]))
        lengths = [int(v) for v in rng.integers(1, 60 if axes == 2 else 20, axes)]
        k = random_arguments(rng, lengths)
        size, region = resize_shape(lengths, **k)
        inside = all(min(r) < n and max(r) > 0 for r, n in zip(region, lengths, strict=True))
        if not inside or math.prod(size) > 10**6:  # DALI crashes on a region outside of the image
            continue
        positions = dali_resize(lengths, k)
        assert size == tuple(map(len, positions)), (lengths, k)
        for (low, high), n, m, real in zip(region, lengths, size, positions, strict=True):
            expected = low + (np.arange(m) + 0.5) * (high - low) / m - 0.5
            np.testing.assert_allclose(real, expected.clip(0, n - 1), atol=2e-3, err_msg=f"{k}")
        checked += 1


@pytest.mark.parity
@pytest.mark.parametrize("arguments", REFUSED)
def test_dali_rejects_the_arguments_too(arguments: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError):
        dali_resize(list(IMAGE), arguments)
