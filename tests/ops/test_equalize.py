"""Histogram equalization against slow references and the real DALI, with and without OpenCV."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.check import Result, check
from tests.helpers.opencv_switch import LIBRARIES, computing_with
from torchdali import Pipeline, fn

RANDOM = np.random.default_rng(8)


@pytest.fixture(params=LIBRARIES, autouse=True)
def library(request):
    with computing_with(request.param, "color.histogram", "color.lab"):
        yield request.param


def equalized(plane: np.ndarray) -> np.ndarray:
    """Equalize by the definition, value by value."""
    values = plane.ravel().tolist()
    first = values.count(min(values))
    if first == len(values):
        return plane
    scale = np.float32(255) / np.float32(len(values) - first)
    table = {
        v: int(np.rint(np.float32(sum(w <= v for w in values) - first) * scale))
        for v in set(values)
    }
    return np.array([table[v] for v in values], np.uint8).reshape(plane.shape)


def skewed(*shape: int) -> np.ndarray:
    return (RANDOM.random(shape) ** 2 * 90 + 40).astype(np.uint8)


@pytest.mark.parametrize(
    ("layout", "shape", "planes"),
    [
        ("HW", (9, 14), (0, 1)),
        ("HWC", (9, 14, 3), (0, 1)),
        ("HWC", (9, 14, 1), (0, 1)),
        ("CHW", (3, 9, 14), (1, 2)),
        ("FHW", (2, 9, 14), (1, 2)),
        ("FHWC", (2, 9, 14, 2), (1, 2)),
        ("FCHW", (2, 3, 9, 14), (2, 3)),
    ],
)
def test_equalize(layout, shape, planes):
    samples = [skewed(*shape), skewed(*shape)]
    wanted = []
    for sample in samples:
        moved = np.moveaxis(sample, planes, (-2, -1))
        flat = [equalized(plane) for plane in moved.reshape(-1, *moved.shape[-2:])]
        wanted.append(np.moveaxis(np.array(flat).reshape(moved.shape), (-2, -1), planes))
    check("equalize", [samples], {}, layout, expected=[Result(wanted, layout)])


def test_images_of_different_sizes():
    samples = [skewed(*shape) for shape in ((5, 7, 3), (8, 4, 3), (5, 7, 3), (1, 1, 3))]
    wanted = [np.stack([equalized(s[..., c]) for c in range(3)], -1) for s in samples]
    check("equalize", [samples], {}, "HWC", expected=[Result(wanted, "HWC")])


def test_a_channel_of_one_value_is_unchanged():
    image = torch.full((4, 5, 2), 77, dtype=torch.uint8)
    image[..., 1] = torch.arange(5, dtype=torch.uint8)
    found = fn.equalize(image)
    assert (found[..., 0] == 77).all()
    assert found[0, :, 1].tolist() == [0, 64, 128, 191, 255]


def test_the_old_name_warns():
    image = torch.from_numpy(skewed(5, 6, 3))
    with pytest.warns(DeprecationWarning, match="equalize"):
        found = fn.experimental.equalize(image)
    assert torch.equal(found, fn.equalize(image))


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (torch.zeros(4, 5, 3, dtype=torch.int16), "type"),
        (torch.zeros(4, 5, 0, dtype=torch.uint8), "channels"),
        (torch.zeros(4, 5, 129, dtype=torch.uint8), "channels"),
        (torch.zeros(0, 5, 3, dtype=torch.uint8), "no pixels"),
    ],
)
def test_equalize_rejects_invalid_inputs(image, message):
    with pytest.raises(RuntimeError, match=message):
        fn.equalize(image)


@pytest.mark.parametrize("luma_only", [None, True, False])
@pytest.mark.parametrize("channels", [1, 3])
def test_later_batches_are_written_in_place(luma_only, channels):
    """From the second batch on, results are written into the memory of the batch."""
    batches = [[skewed(6, 8, channels) for _ in range(3)] for _ in range(4)]
    arguments = {"tiles_x": 2, "tiles_y": 2, "clip_limit": 2.0, "luma_only": luma_only}
    name, arguments = ("equalize", {}) if luma_only is None else ("clahe", arguments)
    source = iter(batches)
    pipe = Pipeline(batch_size=3, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with pipe:
        images = fn.external_source(lambda: next(source), layout="HWC")
        pipe.set_outputs(getattr(fn, name)(images, **arguments))
    pipe.build()
    for batch in batches:
        (found,) = pipe.run()
        for i, sample in enumerate(batch):
            alone = getattr(fn, name)(torch.from_numpy(sample), **arguments)
            assert np.array_equal(np.array(found.at(i)), alone.numpy())
    pipe.close()


# ---------------------------------------------------------------- clahe


def tables_of(plane: np.ndarray, tiles: tuple[int, int], limit: float) -> np.ndarray:
    """Return the map of each tile, by the definition."""
    height, width = plane.shape
    if height % tiles[0] or width % tiles[1]:
        more = [(0, count - size % count) for size, count in zip(plane.shape, tiles, strict=True)]
        plane = np.pad(plane, more, mode="reflect")
        height, width = plane.shape
    h, w = height // tiles[0], width // tiles[1]
    made = np.empty((*tiles, 256))
    for y, x in np.ndindex(tiles):
        counts = np.bincount(plane[y * h : (y + 1) * h, x * w : (x + 1) * w].ravel(), minlength=256)
        if limit > 0:
            most = max(int(limit * h * w / 256), 1)
            cut = int((counts - most).clip(0).sum())
            counts = counts.clip(max=most) + cut // 256
            for i in range(cut % 256):
                counts[i * max(256 // (cut % 256), 1)] += 1
        made[y, x] = np.rint(counts.cumsum() * 255 / (h * w)).clip(0, 255)
    return made


def tiled(plane: np.ndarray, tiles: tuple[int, int], limit: float) -> np.ndarray:
    tables = tables_of(plane, tiles, limit)
    whole = all(size % count == 0 for size, count in zip(plane.shape, tiles, strict=True))
    extents = [
        (size if whole else size + count - size % count) // count
        for size, count in zip(plane.shape, tiles, strict=True)
    ]
    found = np.empty(plane.shape)
    for (y, x), v in np.ndenumerate(plane):
        places = [i / extent - 0.5 for i, extent in zip((y, x), extents, strict=True)]
        found[y, x] = sum(
            tables[
                tuple(
                    np.clip(int(np.floor(p)) + d, 0, n - 1)
                    for p, d, n in zip(places, delta, tiles, strict=True)
                )
            ][v]
            * np.prod([p % 1 if d else 1 - p % 1 for p, d in zip(places, delta, strict=True)])
            for delta in np.ndindex(2, 2)
        )
    return found


@pytest.mark.parametrize(
    ("shape", "tiles", "limit"),
    [
        ((24, 32), (2, 4), 2.0),
        ((24, 32), (1, 1), 0.0),
        ((21, 30), (2, 3), 3.0),
        ((20, 31), (4, 4), 40.0),
        ((7, 9), (3, 2), 0.5),
        ((5, 6), (8, 8), 2.0),
    ],
)
def test_clahe_of_a_channel(shape, tiles, limit):
    plane = skewed(*shape)
    found = fn.clahe(
        torch.from_numpy(plane)[..., None],
        tiles_y=tiles[0], tiles_x=tiles[1], clip_limit=limit,
    )  # fmt: skip
    difference = np.abs(found[..., 0].numpy() - tiled(plane, tiles, limit))
    assert difference.max() <= 0.501  # the reference is not rounded


def test_clahe_of_channels():
    image = torch.from_numpy(skewed(20, 30, 3))
    arguments = {"tiles_x": 3, "tiles_y": 2, "clip_limit": 2.0}
    found = fn.clahe(image, luma_only=False, **arguments)
    for c in range(3):
        assert torch.equal(found[..., c : c + 1], fn.clahe(image[..., c : c + 1], **arguments))


def test_clahe_of_luma_leaves_gray_gray():
    image = torch.from_numpy(skewed(20, 30, 1)).expand(-1, -1, 3)
    found = fn.clahe(image, tiles_x=3, tiles_y=2, clip_limit=4.0).int()
    assert (found - found[..., :1]).abs().max() <= 1
    assert found.max() - found.min() > 1.2 * (int(image.max()) - int(image.min()))


@pytest.mark.parametrize(
    ("image", "arguments", "error"),
    [
        (torch.zeros(4, 5, 3), {}, ValueError),
        (torch.zeros(4, 5, 2, dtype=torch.uint8), {}, ValueError),
        (torch.zeros(4, 5, dtype=torch.uint8), {}, ValueError),
        (torch.zeros(2, 4, 5, 3, dtype=torch.uint8), {}, ValueError),
        (torch.zeros(0, 5, 3, dtype=torch.uint8), {}, RuntimeError),
        (torch.zeros(4, 5, 3, dtype=torch.uint8), {"tiles_x": 0}, RuntimeError),
        (torch.zeros(4, 5, 3, dtype=torch.uint8), {"tiles_y": -1}, RuntimeError),
    ],
)
def test_clahe_rejects_invalid_inputs(image, arguments, error):
    with pytest.raises(error):
        fn.clahe(image, **{"tiles_x": 2, "tiles_y": 2, "clip_limit": 2.0, **arguments})


@pytest.mark.parametrize("missing", ["tiles_x", "tiles_y", "clip_limit"])
def test_clahe_needs_its_arguments(missing):
    arguments = {"tiles_x": 2, "tiles_y": 2, "clip_limit": 2.0}
    del arguments[missing]
    with pytest.raises(RuntimeError, match=missing):
        fn.clahe(torch.zeros(4, 5, 3, dtype=torch.uint8), **arguments)


# --------------------------------------------------------- compared with the real DALI


EXCEPTIONS = {
    "clahe": "`tiles_x=0` or `tiles_y=0` raises RuntimeError; DALI's process is killed by a signal",
    "equalize": "an input without a layout gives an output without a layout; DALI sets the layout that it assumed",
}


def images(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Return noise of some contrast around some brightness."""
    return [
        RANDOM.normal(RANDOM.uniform(40, 200), RANDOM.uniform(5, 70), shape)
        .clip(0, 255)
        .astype(np.uint8)
        for shape in shapes
    ]


@pytest.mark.golden
@pytest.mark.parametrize(
    ("layout", "shapes"),
    [
        ("HW", [(20, 30), (3, 1), (1, 1)]),
        ("HWC", [(20, 30, 3), (31, 17, 3)]),
        ("HWC", [(20, 30, 1), (20, 30, 1)]),
        ("HWC", [(12, 13, 7)]),
        ("CHW", [(3, 20, 30), (4, 9, 5)]),
        ("FHW", [(3, 20, 30), (2, 20, 30)]),
        ("FHWC", [(2, 20, 30, 3), (2, 20, 30, 3)]),
        ("FCHW", [(2, 3, 20, 30)]),
    ],
)
@pytest.mark.parametrize("name", ["equalize", "experimental.equalize"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_equalize_by_layout(name, layout, shapes):
    check(name, [images(*shapes)], {}, layout)


@pytest.mark.golden
def test_equalize_few_values():
    samples = [np.full((4, 5), 9), np.array([[5, 5, 5, 9]]), np.array([[10, 10, 20, 30]])]
    check("equalize", [[s.astype(np.uint8) for s in samples]], {}, "HW")


SETTINGS = [
    {"tiles_x": 2, "tiles_y": 3, "clip_limit": 2.0},
    {"tiles_x": 8, "tiles_y": 8, "clip_limit": 40.0},
    {"tiles_x": 5, "tiles_y": 4, "clip_limit": 0.0},
    {"tiles_x": 1, "tiles_y": 1, "clip_limit": -1.0},
    {"tiles_x": 3, "tiles_y": 2, "clip_limit": 1.5, "luma_only": False},
    {"tiles_x": 3, "tiles_y": 2, "clip_limit": 3.0, "bins": 64},
    {"tiles_x": 40, "tiles_y": 40, "clip_limit": 1.0},
]


@pytest.mark.golden
@pytest.mark.parametrize("arguments", SETTINGS)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("layout", ["HWC", None])
def test_clahe(library, arguments, channels, layout):
    samples = images((20, 30, channels), (31, 17, channels), (5, 7, channels))
    exact = library == "opencv" or channels == 1 or "luma_only" in arguments
    tolerance = {} if exact else {"level": 1, "share": 0.99}
    check("clahe", [samples], arguments, layout, **tolerance)
