"""slice, flip, pad, erase and random windows against slow references and the real DALI; also gradients and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.check import PerSample, check
from tests.helpers.crop_cases import PAD, SHAPES, Array, arrays, f32, i32, message, refused_by_both
from tests.helpers.native import native_codecs
from torchdali import fn
from torchdali.declaration.registry import registry
from torchdali.kernels.native import ENCODED, library
from torchdali.kernels.random_window import random_window, random_windows
from torchdali.rng import BatchRng
from torchdali.tensors import TensorList


def line(count: int = 10) -> torch.Tensor:
    return torch.arange(count, dtype=torch.uint8)


def cut(**arguments: Any) -> list[int]:
    found: list[int] = fn.slice(line(), axes=[0], **arguments).tolist()
    return found


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ({"rel_start": [0.05], "rel_shape": [0.5]}, [1, 2, 3, 4, 5]),
        ({"rel_start": [0.25], "rel_shape": [0.25]}, [3, 4]),
        ({"rel_start": [0.05], "rel_end": [0.1]}, []),
        ({"start": [2], "rel_end": [0.5]}, [2, 3, 4]),
        ({"end": [3]}, [0, 1, 2]),
        ({"start": [8]}, [8, 9]),
        ({"start": [-2], "end": [1], **PAD, "fill_values": [7.9]}, [7, 7, 0]),
        ({"start": [-2], "end": [1], "out_of_bounds_policy": "clamp"}, [0, 0, 0]),
        ({"start": [9], "end": [12], "out_of_bounds_policy": "wrap"}, [9, 0, 1]),
        ({"start": [9], "end": [12], "out_of_bounds_policy": "reflect_101"}, [9, 8, 7]),
        ({"start": [9], "end": [12], "out_of_bounds_policy": "reflect"}, [9, 9, 8]),
        ({"start": [9], "end": [12], "out_of_bounds_policy": "trim_to_shape"}, [9]),
    ],
)
def test_slice(arguments: dict[str, Any], expected: list[int]) -> None:
    assert cut(**arguments) == expected


def test_anchors_relative_to_the_image_are_x_and_y() -> None:
    image = torch.from_numpy(arrays([(8, 10, 3)])[0])
    found = fn.slice(image, torch.tensor([0.1, 0.5]), torch.tensor([0.2, 0.25]))
    assert torch.equal(found, image[4:6, 1:3])


def reflected(place: int, length: int, policy: str) -> int:
    while not 0 <= place < length:
        if policy == "wrap":
            place += length if place < 0 else -length
        elif policy == "reflect_1001":
            place = -1 - place if place < 0 else 2 * length - 1 - place
        else:
            place = -place if place < 0 else 2 * (length - 1) - place
    return place


@pytest.mark.parametrize("policy", ["wrap", "reflect_1001", "reflect_101"])
@pytest.mark.parametrize("length", [2, 3, 7])
def test_borders_far_outside(policy: str, length: int) -> None:
    arguments: dict[str, Any] = {"start": [-20], "end": [23], "out_of_bounds_policy": policy}
    found = fn.slice(line(length), axes=[0], **arguments).tolist()
    assert found == [reflected(i, length, policy) for i in range(-20, 23)]


def test_an_empty_image_cannot_be_repeated() -> None:
    with pytest.raises(RuntimeError, match="must be positive to repeat"):
        fn.slice(line(0), axes=[0], start=[0], end=[2], out_of_bounds_policy="clamp")


def test_six_axes() -> None:
    data = torch.arange(64).reshape(2, 2, 2, 2, 2, 2)
    found = fn.slice(data, axes=[0, 5], start=[1, 0], end=[2, 1])
    assert torch.equal(found, data[1:, ..., :1])


BODIES: list[tuple[str, dict[str, Any]]] = [
    ("slice", {"axes": [1, 0], "start": [-1, 1], "end": [2, 6], **PAD, "layout": "HWC"}),
    ("slice", {"axes": [0], "start": [-1], "end": [9], "out_of_bounds_policy": "wrap", "layout": ""}),
    ("flip", {"vertical": 1, "layout": "HWC"}),
    ("erase", {"anchor": [1.0, 1.0], "shape": [2.0, 2.0], "layout": "HWC"}),
]


@pytest.mark.parametrize("name, arguments", BODIES)
def test_gradients(name: str, arguments: dict[str, Any]) -> None:
    data = torch.rand(4, 5, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: registry[name].implementation(x, **arguments), (data,))


def test_pad_has_a_gradient() -> None:
    data = torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
    grown: Any = fn.pad(data, shape=[4, 4])
    grown.sum().backward()
    assert torch.equal(data.grad, torch.ones(2, 3, dtype=torch.float64))  # type: ignore[arg-type]


# ---------------------------------------------------------------- flip, pad, erase


@pytest.mark.parametrize("layout", ["HWC", "FCHW", "CDHW"])
def test_flipping_a_batch_of_one_shape_equals_flipping_its_samples(layout: str) -> None:
    samples = [torch.from_numpy(a) for a in arrays([tuple(range(2, 2 + len(layout)))] * 3)]
    arguments: dict[str, Any] = {"horizontal": 0, "vertical": 1, "depthwise": 1}
    whole: Any = fn.flip(TensorList.from_dense(torch.stack(samples), layout), **arguments)
    ragged: Any = fn.flip(TensorList.from_samples([*samples, samples[0][:1]], layout), **arguments)
    for i in range(3):
        assert np.array_equal(whole.at(i), ragged.at(i))


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=4),
    st.integers(1, 4),
    st.sampled_from([None, [0], [1], [-1, 0]]),
)
def test_pad(shapes: list[tuple[int, int]], align: int, axes: list[int] | None) -> None:
    samples = arrays(shapes, "int16")
    batch = TensorList.from_samples([torch.from_numpy(s) for s in samples], "HW")
    found: Any = fn.pad(batch, align=[align], axes=axes, fill_value=-3)
    largest = np.max([s.shape for s in samples], axis=0)
    for i, sample in enumerate(samples):
        grown = np.asarray(found.at(i))
        for axis in range(2):
            wanted = -(-largest[axis] // align) * align
            grows = axes is None or axis in [a % 2 for a in axes]
            assert grown.shape[axis] == (wanted if grows else sample.shape[axis])
        height, width = sample.shape
        assert np.array_equal(grown[:height, :width], sample)
        assert (grown[height:] == -3).all() and (grown[:, width:] == -3).all()


def test_erase_fills_each_channel_with_its_own_value() -> None:
    image = torch.ones(4, 5, 3)
    found: Any = fn.erase(
        TensorList.from_samples([image], "HWC"), anchor=[0.0, 1.0], shape=[2.0, 2.0], axis_names="WC",
        fill_value=[7.0, 8.0, 9.0],
    )  # fmt: skip
    expected = image.clone()
    expected[:, :2, 1], expected[:, :2, 2] = 8, 9
    assert np.array_equal(found.at(0), expected)
    assert (image == 1).all()


def test_erase_without_a_layout_needs_axes() -> None:
    with pytest.raises(RuntimeError, match="needs axes"):
        fn.erase(torch.ones(4, 5), anchor=[0, 1], shape=[2, 2])


ERRORS: list[tuple[str, dict[str, Any], str]] = [
    ("slice", {}, "needs"),
    ("slice", {"start": [5], "end": [2]}, "before its start"),
    ("slice", {"start": [5], "shape": [-1]}, "negative"),
    ("slice", {"start": [5], "end": [12]}, "out of bounds"),
    ("slice", {"start": [5], "rel_start": [0.1]}, "mutually exclusive"),
    ("slice", {"end": [5], "shape": [1]}, "mutually exclusive"),
    ("slice", {"start": [1], "axes": [3]}, "out of range"),
    ("slice", {"start": [1], "axes": [0, -1]}, "occurs more than once"),
    ("slice", {"start": [1, 2, 3]}, "but got 3 values"),
    ("pad", {"align": [0]}, "positive"),
    ("pad", {"axes": [0], "axis_names": "W"}, "passed together"),
    ("pad", {"axis_names": "Q"}, "layout"),
    ("erase", {"axes": [0], "anchor": [1, 2], "shape": [1]}, "one value per axis and region"),
    ("erase", {"axes": [1], "anchor": [1], "shape": [1]}, "out of range"),
]


@pytest.mark.parametrize("name, arguments, words", ERRORS)
def test_errors(name: str, arguments: dict[str, Any], words: str) -> None:
    if name == "slice":
        arguments = {"axes": [0], **arguments}
    with pytest.raises(RuntimeError, match=words):
        getattr(fn, name)(line(), **arguments)


# ---------------------------------------------------------------- random windows


@settings(deadline=None, max_examples=300, derandomize=True)
@given(
    st.integers(1, 300),
    st.integers(1, 300),
    st.integers(0, 10),
    st.tuples(st.floats(0, 2), st.floats(0, 2)).map(sorted),
    st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)).map(sorted),
    st.integers(0, 2**32),
)
def test_random_windows_are_inside_the_image(
    height: int, width: int, attempts: int, area: list[float], ratio: list[float], seed: int
) -> None:
    draw = np.random.default_rng(seed).random
    y, x, h, w = random_window(draw, height, width, attempts, area, ratio)
    assert h >= 1 and w >= 1 and y >= 0 and x >= 0
    assert y + h <= height and x + w <= width


@pytest.mark.parametrize("size, expected", [((11, 5), (5, 4)), ((100, 200), (67, 89)), ((7, 5), (4, 3))])
def test_the_largest_allowed_window(size: tuple[int, int], expected: tuple[int, int]) -> None:
    """Without attempts, the window equals DALI's, see the parity tests; the share is 0.5, 0.3 and 0.5."""
    area = [0.1, 0.3 if size[0] == 100 else 0.5]
    assert random_window(lambda: 0.0, *size, 0, area, [3 / 4, 4 / 3])[2:] == expected


@pytest.mark.parametrize("area, ratio", [([0.5, 0.4], [1, 1]), ([0.1, 1], [0, 1]), ([], [1]), ([0, 1, 2], [1]), ([0.1, float("inf")], [1])])
def test_random_windows_need_ranges(area: list[float], ratio: list[float]) -> None:
    with pytest.raises(RuntimeError, match="random_area"):
        random_window(lambda: 0.5, 10, 10, 1, area, ratio)


def test_slice_accepts_windows_of_random_crop_generator() -> None:
    image = torch.from_numpy(arrays([(30, 40, 3)])[0])
    anchor, shape = fn.random_crop_generator(torch.tensor(image.shape), seed=5)
    found = fn.slice(image, anchor, shape, axes=[0, 1])
    (y, x), (h, w) = anchor.tolist(), shape.tolist()
    assert torch.equal(found, image[y : y + h, x : x + w])


@pytest.mark.parametrize("attempts", [0, 1, 10])
@pytest.mark.parametrize("area, ratio", [([0.08, 1.0], [3 / 4, 4 / 3]), ([0.9, 1.0], [1.0]), ([0.5], [2.0, 3.0])])
def test_windows_of_a_batch_match_single_samples(attempts: int, area: list[float], ratio: list[float]) -> None:
    rng = np.random.default_rng(3)
    sizes, draws = rng.integers(1, 60, (200, 2)), rng.random((200, 2 + 2 * attempts))
    found = np.concatenate(random_windows(draws, sizes.T, attempts, area, ratio))
    for window, (height, width), row in zip(found.T.tolist(), sizes.tolist(), draws.tolist(), strict=True):
        assert window == list(random_window(iter(row).__next__, height, width, attempts, area, ratio))


@pytest.mark.skipif(library() is None, reason="without the library in C")
@pytest.mark.parametrize("attempts", [0, 1, 10, 40])
@pytest.mark.parametrize("area, ratio", [([0.08, 1.0], [3 / 4, 4 / 3]), ([0.9, 1.3], [1.0]), ([0.5], [2.0, 3.0]), ([-1.0, 0.01], [0.02, 30.0])])
@pytest.mark.parametrize("upright", [False, True])
def test_the_library_draws_the_same_windows(attempts: int, area: list[float], ratio: list[float], upright: bool) -> None:
    """Windows must be bit-identical: for other decoders and devices, Python draws them."""
    rng = np.random.default_rng(4)
    files = native_codecs.Table.of(400, ENCODED)
    files.rows["height"], files.rows["width"] = rng.choice([1, 2, 3, 500, 375, 4000, 65000], (2, 400))
    files.rows["orientation"], files.rows["lot"] = rng.integers(1, 9, 400), -1
    batch = BatchRng(int(rng.integers(1 << 62)), rng.integers(0, 3, 400), rng.integers(0, 1 << 40, 400))
    regions = native_codecs.Table.of(4 * 400, np.dtype(np.float64))
    choice = native_codecs.WindowChoice.random(upright, attempts, area, ratio)
    parts = native_codecs.Parts(files, choice, 0.0, batch.samples().words(), regions=regions)
    turned = upright & (files.rows["orientation"] > 4)
    sides = zip(files.rows["height"].tolist(), files.rows["width"].tolist(), turned.tolist(), strict=True)
    sizes = [(w, h) if turn else (h, w) for h, w, turn in sides]
    expected = [random_window(one.random, *size, attempts, area, ratio) for size, one in zip(sizes, batch.samples(), strict=True)]
    assert parts.table["window"].tolist() == list(map(list, expected))
    starts, ends = regions.rows.reshape(2, 400, 2).tolist()
    assert starts == [[0.0, 0.0]] * 400 and ends == [[float(h), float(w)] for _, _, h, w in expected]


def test_roi_random_crop_covers_or_stays_inside() -> None:
    data = torch.zeros(20, 30)
    for seed in range(20):
        found: Any = fn.roi_random_crop(
            data, crop_shape=[4, 25], roi_start=[5, 6], roi_end=[15, 16], seed=seed
        )
        y, x = found.tolist()
        assert y >= 5 and y + 4 <= 15, "smaller than the region: inside of it"
        assert x <= 6 and x + 25 >= 16 and x + 25 <= 30, "larger: it covers it, inside the data"


def test_numbers_depend_only_on_seed_and_sample() -> None:
    shapes: list[Array] = [np.array([30 + i, 40]) for i in range(6)]
    batch = TensorList.from_samples([torch.from_numpy(s) for s in shapes])
    made: list[Any] = [fn.random_crop_generator(batch, seed=9)[0] for _ in range(2)]
    one, other = made
    assert all(np.array_equal(one.at(i), other.at(i)) for i in range(6))
    assert len({tuple(one.at(i).tolist()) for i in range(6)}) > 1


# --------------------------------------------------------- compared with the real DALI


EXCEPTIONS: dict[str, str] = {
    "slice": "supports more dtypes and any number of axes; `rel_shape=0` is never refused (DALI sometimes refuses it)",
    "flip": "also supports bool and float16",
    "pad": "also supports float64",
    "erase": "also supports float64, bool and negative axes; axes that don't exist or are repeated are errors, and so "
    "is a missing layout without `axes` (DALI overwrites everything or crashes)",
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


@pytest.mark.golden
@pytest.mark.parametrize("arguments", LINES, ids=message)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_slice_by_arguments(arguments: dict[str, Any], dtype: str) -> None:
    check("slice", [arrays(VECTORS, dtype)], {"axes": [0], **arguments})


@pytest.mark.golden
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


@pytest.mark.golden
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


@pytest.mark.golden
@pytest.mark.parametrize("arguments, anchors, shapes", ANCHORS, ids=message)
def test_slice_by_inputs(
    arguments: dict[str, Any], anchors: list[Array], shapes: list[Array]
) -> None:
    inputs = [arrays(SHAPES["HWC"]), anchors, shapes]
    check("slice", inputs, arguments, ["HWC", None, None])


@pytest.mark.golden
@pytest.mark.slow
def test_slice_positions() -> None:
    """Starts and ends are rounded as in DALI, for every form of the arguments."""
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


@pytest.mark.golden
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


@pytest.mark.golden
@pytest.mark.parametrize("arguments", FLIPS, ids=message)
@pytest.mark.parametrize("layout", ["HWC", "CHW", "DHWC", "CDHW", "FHWC", "FCHW", "FDHWC", "FCDHW"])
def test_flip(layout: str, arguments: dict[str, Any]) -> None:
    shapes = SHAPES.get(layout) or [(2, *shape) for shape in SHAPES[layout[1:]]]
    check("flip", [arrays(shapes)], arguments, layout)


@pytest.mark.golden
@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
)
def test_flip_types(dtype: str) -> None:
    check("flip", [arrays(SHAPES["HWC"], dtype)], {"vertical": 1}, "HWC")
    check("flip", [arrays([(6, 5, 3)] * 3, dtype)], {}, "HWC")


@pytest.mark.golden
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


@pytest.mark.golden
@pytest.mark.parametrize("arguments, layout", PADS, ids=message)
def test_pad_matches_dali(arguments: dict[str, Any], layout: str | None) -> None:
    check("pad", [arrays([(2, 3), (5, 1)])], arguments, layout, over_batch=True)


@pytest.mark.golden
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


@pytest.mark.golden
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


@pytest.mark.golden
@pytest.mark.parametrize("arguments, layout", ERASED, ids=message)
def test_erase(arguments: dict[str, Any], layout: str | None) -> None:
    check("erase", [arrays([(8, 9), (5, 6)])], arguments, layout)


@pytest.mark.golden
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


@pytest.mark.golden
@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float16"]
)
def test_erase_types(dtype: str) -> None:
    arguments = {"anchor": [1, 2], "shape": [3, 4], "fill_value": -1.5}
    check("erase", [arrays([(8, 9), (5, 6)], dtype)], arguments, "HW")


@pytest.mark.golden
@pytest.mark.slow
def test_erase_positions() -> None:
    """Regions are cropped as in DALI at 400 positions, absolute, relative and centered."""
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


@pytest.mark.golden
@pytest.mark.parametrize("arguments", BAD_ERASED, ids=message)
def test_erase_errors(arguments: dict[str, Any]) -> None:
    refused_by_both("erase", [arrays([(5, 6)])], arguments, "HW")
