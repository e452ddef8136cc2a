"""crop and crop_mirror_normalize against a slow reference and the real DALI; also buffers, views, gradients and errors."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.check import PerSample, check
from tests.helpers.crop_cases import PAD, SHAPES, arrays, f32, message, refused_by_both
from torchdali import fn
from torchdali.declaration.registry import registry
from torchdali.kernels.window import anchor, fill_number
from torchdali.tensors import TensorList

Array = npt.NDArray[Any]

RGB: dict[str, Any] = {"mean": [123.675, 116.28, 103.53], "std": [58.395, 57.12, 57.375]}


CROP, NORMALIZE = registry["crop"].implementation, registry["crop_mirror_normalize"].implementation


def batch(image: Array, layout: str) -> TensorList:
    return TensorList.from_samples([torch.from_numpy(image)], layout)


def run(name: str, image: Array, layout: str, **arguments: Any) -> Array:
    found = getattr(fn, name)(batch(image, layout), **arguments)
    return np.asarray(found.at(0))


def cut_by_index(image: Array, layout: str, window: dict[str, tuple[int, int]]) -> Array:
    """Cut ``start, extent`` of named axes, element by element: channels last, NaN outside."""
    image = np.moveaxis(image, layout.index("C"), -1)
    names = layout.replace("C", "")
    spans = [window.get(name, (0, n)) for name, n in zip(names, image.shape, strict=False)]
    out = np.empty([extent for _, extent in spans] + [image.shape[-1]], np.float64)
    for place in np.ndindex(*out.shape[:-1]):
        there = tuple(i + start for i, (start, _) in zip(place, spans, strict=True))
        inside = all(0 <= i < n for i, n in zip(there, image.shape, strict=False))
        out[place] = image[there] if inside else np.nan
    return out


def reference(
    image: Array,
    layout: str,
    output_layout: str,
    window: dict[str, tuple[int, int]],
    mirror: int,
    mean: Array,
    std: Array,
    fill: Array,
    pad_output: bool,
) -> Array:
    """Compute crop_mirror_normalize step by step, in float64."""
    pixels = cut_by_index(image, layout, window)
    names = layout.replace("C", "") + "C"
    if mirror:
        pixels = np.flip(pixels, names.index("W"))
    outside = np.isnan(pixels)
    pixels = np.where(outside, fill, (pixels - mean) / std)
    channels = pixels.shape[-1]
    if pad_output:
        wanted = 1
        while wanted < channels:
            wanted *= 2
        more = np.full((*pixels.shape[:-1], wanted - channels), fill[0])
        pixels = np.concatenate([pixels, more], axis=-1)
    return np.transpose(pixels, [names.index(name) for name in output_layout])


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    layout = draw(st.sampled_from(["HWC", "CHW", "DHWC", "FCHW", "CFHW", "FDHWC"]))
    sizes = {name: draw(st.integers(1, 5)) for name in layout}
    window = {}
    for name in "HW":
        extent = draw(st.integers(1, 7))
        window[name] = (anchor(0.25, sizes[name], extent), extent)
    channels = sizes["C"]
    return {
        "image": arrays([tuple(sizes.values())], draw(st.sampled_from(["uint8", "int16", "float32"])))[0],
        "layout": layout,
        "output_layout": "".join(draw(st.permutations(layout))),
        "window": window,
        "mirror": draw(st.integers(0, 1)),
        "mean": np.arange(channels) * 3.0 + 1,
        "std": np.arange(channels) + 2.0,
        "fill": np.array([7.5]),
        "pad_output": draw(st.booleans()),
    }


@settings(deadline=None, max_examples=150, derandomize=True)
@given(cases())
def test_crop_mirror_normalize_of_any_layout(case: dict[str, Any]) -> None:
    found = run(
        "crop_mirror_normalize", case["image"], case["layout"],
        output_layout=case["output_layout"], mirror=case["mirror"], pad_output=case["pad_output"],
        mean=case["mean"].tolist(), std=case["std"].tolist(), fill_values=case["fill"].tolist(),
        crop=[case["window"]["H"][1], case["window"]["W"][1]],
        crop_pos_x=0.25, crop_pos_y=0.25, out_of_bounds_policy="pad",
    )  # fmt: skip
    np.testing.assert_allclose(found, reference(**case), rtol=1e-5, atol=1e-3)


def strided(image: Array, order: tuple[int, ...]) -> torch.Tensor:
    """Return an image whose axes have another order in memory."""
    back = np.argsort(order)
    return torch.from_numpy(np.ascontiguousarray(image.transpose(order))).permute(*back.tolist())


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.uint8, torch.int8])
@pytest.mark.parametrize("output_layout", ["CHW", "HWC"])
def test_results_do_not_depend_on_the_memory_order(
    order: tuple[int, ...], dtype: torch.dtype, output_layout: str
) -> None:
    image = arrays([(9, 7, 3)])[0]
    arguments: dict[str, Any] = {**RGB, "dtype": dtype, "output_layout": output_layout, "mirror": 1}
    expected = fn.crop_mirror_normalize(torch.from_numpy(image), **arguments)
    assert torch.equal(fn.crop_mirror_normalize(strided(image, order), **arguments), expected)


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.uint8])
def test_large_images_are_processed_in_pieces(layout: str, dtype: torch.dtype) -> None:
    image = arrays([(700, 400, 3) if layout == "HWC" else (3, 700, 400)])[0]
    for arguments in (RGB, {}):
        found = run("crop_mirror_normalize", image, layout, mirror=1, dtype=dtype, **arguments)
        pixels = image if layout == "HWC" else image.transpose(1, 2, 0)
        expected = pixels[:, ::-1].astype(np.float64)
        if arguments:
            expected = (expected - RGB["mean"]) / RGB["std"]
        if dtype == torch.uint8:
            expected = np.rint(expected).clip(0, 255)
        np.testing.assert_allclose(found, expected.transpose(2, 0, 1), rtol=1e-3, atol=1e-3)


def test_the_next_image_does_not_overwrite_results() -> None:
    images = [torch.from_numpy(a) for a in arrays([(6, 5, 3)] * 3)]
    kept = [fn.crop_mirror_normalize(image, **RGB) for image in images]
    copies = [k.clone() for k in kept]
    for image in reversed(images):
        fn.crop_mirror_normalize(image, **RGB, dtype=torch.uint8)
    assert all(torch.equal(a, b) for a, b in zip(kept, copies, strict=True))


def test_threads_have_their_own_buffers() -> None:
    images = [torch.from_numpy(a) for a in arrays([(50, 40, 3)] * 8)]
    expected = [fn.crop_mirror_normalize(image, **RGB) for image in images]
    found: list[Any] = [None] * len(images)

    def work(i: int) -> None:
        for _ in range(50):
            found[i] = fn.crop_mirror_normalize(images[i], **RGB)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(images))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_cached_tables_work_in_and_out_of_inference_mode() -> None:
    image = torch.from_numpy(arrays([(11, 13, 3)], "float32")[0])
    with torch.inference_mode():
        inside = fn.crop_mirror_normalize(image, **RGB)
    tracked = image.clone().requires_grad_()
    outside = fn.crop_mirror_normalize(tracked, **RGB)
    outside.sum().backward()
    assert torch.equal(inside, outside.detach())
    gradient = torch.tensor(RGB["std"]).reciprocal().expand(11, 13, 3)
    torch.testing.assert_close(tracked.grad, gradient)


class TestOut:
    """Results are written into the batch if it has slots for them."""

    def test_a_fitting_output_tensor_is_used(self) -> None:
        image = torch.from_numpy(arrays([(6, 5, 3)])[0])
        for dtype, layout, shape in (
            (torch.float32, "CHW", (3, 6, 5)),
            (torch.float16, "HWC", (6, 5, 3)),
            (torch.uint8, "CHW", (3, 6, 5)),
        ):
            out = torch.empty(shape, dtype=dtype)
            found = NORMALIZE(image, dtype=dtype, output_layout=layout, **RGB, layout="HWC", out=out)
            assert found is out
            assert torch.equal(out, fn.crop_mirror_normalize(image, dtype=dtype, output_layout=layout, **RGB))

    def test_other_output_tensors_are_not_used(self) -> None:
        image = torch.from_numpy(arrays([(6, 5, 3)])[0])
        for out in (torch.full((3, 6, 6), 7.0), torch.full((3, 6, 5), 7.0, dtype=torch.float64)):
            found = NORMALIZE(image, **RGB, layout="HWC", out=out)
            assert found is not out and found.shape == (3, 6, 5)
            assert (out == 7).all()


def test_crop_inside_is_a_view() -> None:
    image = torch.zeros(6, 5, 3)
    window = CROP(image, crop=[2, 2], crop_pos_x=0.0, crop_pos_y=0.0, layout="HWC")
    image[0, 0, 0] = 1
    assert window[0, 0, 0] == 1


@pytest.mark.parametrize("policy", ["pad", "clamp", "wrap", "reflect_101", "trim_to_shape"])
def test_crop_has_a_gradient(policy: str) -> None:
    image = torch.rand(4, 5, 2, dtype=torch.float64, requires_grad=True)

    def function(x: torch.Tensor) -> Any:
        return CROP(x, crop=[6, 3], out_of_bounds_policy=policy, fill_values=[2.0], layout="HWC")

    assert torch.autograd.gradcheck(function, (image,))


@pytest.mark.parametrize(
    "arguments",
    [{"mirror": 1}, {"output_layout": "HWC", "pad_output": True}, {"crop": [6, 3], "out_of_bounds_policy": "pad"}],
)
@pytest.mark.filterwarnings("ignore:Input #0 requires gradient and is not a double")
def test_crop_mirror_normalize_has_a_gradient(arguments: dict[str, Any]) -> None:
    """It is linear in the image, so that the steps may be large enough for float32."""
    image = torch.rand(4, 5, 3, requires_grad=True)

    def function(x: torch.Tensor) -> Any:
        return NORMALIZE(x, mean=[0.1, 0.2, 0.3], std=[0.5, 1.0, 2.0], layout="HWC", **arguments)

    assert torch.autograd.gradcheck(function, (image,), eps=0.125, atol=1e-4, check_batched_grad=False)


def test_frames_without_depth_are_cropped() -> None:
    frames = arrays([(5, 4, 3, 1)])[0]
    found = run("crop", frames, "FHWC", crop_d=2, crop_h=2, crop_w=2, crop_pos_z=1.0)
    assert np.array_equal(found, frames[3:5, 1:3, 1:3])  # 0.5 is rounded away from zero


@pytest.mark.parametrize(
    "position, extent, window, rounded, truncated",
    [(0.5, 10, 3, 4, 3), (0.25, 10, 4, 2, 1), (0.0, 10, 3, 0, 0), (1.0, 10, 3, 7, 7), (0.5, 3, 6, -2, -1)],
)
def test_anchor(position: float, extent: int, window: int, rounded: int, truncated: int) -> None:
    assert anchor(position, extent, window) == rounded
    assert anchor(position, extent, window, "truncate") == truncated


def test_positions_are_float32() -> None:
    """0.7 of 15 is 10.4999998 in float32 and 10.5 otherwise."""
    assert anchor(0.7, 35, 20) == 10


FILLS = [
    (7.9, torch.uint8, 7), (-7.6, torch.uint8, 249), (300.0, torch.uint8, 44), (1e10, torch.uint8, 0),
    (200.0, torch.int8, -56), (-1e6 + 3, torch.int8, -61), (40000.0, torch.int16, -25536), (1e10, torch.int32, -(2**31)),
    (1e10, torch.uint32, 1410065408), (-7.6, torch.uint64, 2**64 - 7), (0.1, torch.float64, 0.10000000149011612),
    (0.5, torch.bool, True), (0.0, torch.bool, False), (float("nan"), torch.uint8, 0),
]  # fmt: skip


@pytest.mark.parametrize("value, dtype, expected", FILLS)
def test_fill_values_are_converted_as_c_does(
    value: float, dtype: torch.dtype, expected: float
) -> None:
    assert fill_number(value, dtype) == expected


ERRORS: list[tuple[str, dict[str, Any], str]] = [
    ("crop", {"crop": [9, 2]}, "out of bounds"),
    ("crop", {"crop": [2]}, "2 elements"),
    ("crop", {"crop_h": 2}, "together"),
    ("crop", {"crop": [2, 2], "crop_w": 2, "crop_h": 2}, "combined"),
    ("crop", {"crop": [2, 2], "crop_pos_x": float("nan")}, "out of range"),
    ("crop", {"crop": [2, 2], "rounding": "up"}, "rounding"),
    ("crop", {"out_of_bounds_policy": "Error"}, "out_of_bounds_policy"),
    ("crop_mirror_normalize", {"out_of_bounds_policy": "wrap"}, "out_of_bounds_policy"),
    ("crop_mirror_normalize", {"mean": [1, 2]}, "channels"),
    ("crop_mirror_normalize", {"mean": [1, 2, 3], "std": [1, 2]}, "channels"),
    ("crop_mirror_normalize", {"output_layout": "CHWF"}, "permutation"),
    ("crop_mirror_normalize", {"dtype": torch.int32}, "dtype must be"),
    ("crop_mirror_normalize", {"out_of_bounds_policy": "pad", "fill_values": [1, 2]}, "fill values"),
]


@pytest.mark.parametrize("name, arguments, words", ERRORS)
def test_errors(name: str, arguments: dict[str, Any], words: str) -> None:
    image = torch.zeros(6, 5, 3, dtype=torch.uint8)
    with pytest.raises(RuntimeError, match=words):
        getattr(fn, name)(image, **arguments)


def test_layouts_other_than_images_are_value_errors() -> None:
    with pytest.raises(ValueError, match="layout"):
        fn.crop(torch.zeros(6, 5), crop=[2, 2])
    with pytest.raises(ValueError, match="layout"):
        run("crop", np.zeros((6, 5, 3), np.uint8), "HWF", crop=[2, 2])


# --------------------------------------------------------- compared with the real DALI


EXCEPTIONS: dict[str, str] = {
    "crop": "float16 output is rounded half to even (DALI: half away from zero), and saturates with several fill "
    "values too (DALI wraps around); `dtype` may be any dtype (DALI: the input's, float, float16 or uint8); data may "
    "be bool or have five axes",
    "crop_mirror_normalize": "supports more input dtypes and five axes; `scale=0` returns `shift` (DALI: NaN); the "
    "lengths of `mean` and `std` may differ between samples; an integer result halfway between two levels may be off "
    "by one",
}

# ---------------------------------------------------------------- crop

BORDERS = ["clamp", "edge", "wrap", "reflect", "reflect_101", "reflect1001", "Pad", "FILL"]

CROPS: list[dict[str, Any]] = [
    {},
    {"crop": [5, 4]},
    {"crop": [5.9, 4.2], "crop_pos_x": 0.25, "crop_pos_y": 0.7},
    {"crop": [0.6, 4.2]},
    {"crop": [5, 4], "crop_pos_x": 0.7, "crop_pos_y": 0.45, "rounding": "truncate"},
    {"crop": [2, 5, 4], "crop_pos_z": 1.0},
    {"crop_h": 6, "crop_w": 3, "crop_pos_y": 0.0},
    {"crop_h": 6, "crop_w": 3, "crop_d": 2},
    {"crop": [25, 4], "out_of_bounds_policy": "pad", "fill_values": [9.6]},
    {"crop": [25, 40], "out_of_bounds_policy": "pad", "crop_pos_x": 0.3, "rounding": "truncate"},
    {"crop": [25, 4], "out_of_bounds_policy": "trim_to_shape", "crop_pos_x": 0.0},
    {"crop_w": PerSample([f32(3), f32(5)]), "crop_h": PerSample([f32(4.5), f32(2)])},
    {"crop_w": 3.0, "crop_h": 0.0},
    {"crop": PerSample([f32([3, 4]), f32([5, 2])]), "crop_pos_x": PerSample([f32(0.1), f32(0.9)])},
]


@pytest.mark.golden
@pytest.mark.parametrize("arguments", CROPS, ids=message)
@pytest.mark.parametrize("layout", ["HWC", "CHW", "DHWC", "CDHW", "FHWC", "CFHW"])
def test_crop(layout: str, arguments: dict[str, Any]) -> None:
    check("crop", [arrays(SHAPES[layout])], arguments, layout)


@pytest.mark.golden
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float64"])
def test_crop_types(dtype: str) -> None:
    outside = {"out_of_bounds_policy": "pad", "crop": [22, 5], "fill_values": [7.9, -8.2, 300.0]}
    check("crop", [arrays(SHAPES["HWC"], dtype)], outside, "HWC")


@pytest.mark.golden
@pytest.mark.parametrize("source", ["uint8", "int16", "int32", "float32", "float16"])
@pytest.mark.parametrize("target", ["UINT8", "FLOAT", "FLOAT16"])
def test_crop_conversions(source: str, target: str) -> None:
    """DALI rounds ties away from zero in the conversion to float16, we to even: one unit of 2**-11."""
    unit = 2.0**-10 if target == "FLOAT16" else 0.0
    images = arrays(SHAPES["HWC"], source)
    dtype = {"dtype": f"types.{target}"}
    one = {**PAD, "crop": [22, 5], "fill_values": [7.9], **dtype}
    check("crop", [images], one, "HWC", relative=unit)
    # With several fill values DALI does not saturate: only values that fit agree.
    images = [np.clip(image, 0, 255) for image in images]
    several = {**PAD, "crop": [22, 5], "fill_values": [7.9, -8.2, 1e6], **dtype}
    check("crop", [images], several, "HWC", relative=unit)


@pytest.mark.golden
@pytest.mark.parametrize("policy", BORDERS)
def test_crop_and_slice_borders(policy: str) -> None:
    outside = {"out_of_bounds_policy": policy, "crop": [47, 17], "crop_pos_x": 0.3}
    check("crop", [arrays(SHAPES["HWC"])], outside, "HWC")
    lines = {"start": [-7], "end": [11], "axes": [0], "out_of_bounds_policy": policy}
    check("slice", [arrays([(3,), (1,)], "int32")], lines)


@pytest.mark.golden
@pytest.mark.slow
def test_crop_positions() -> None:
    """Starts are rounded as in DALI for 400 positions, in windows inside and outside."""
    rng = np.random.default_rng(3)
    extents, windows = rng.integers(5, 64, 400), rng.integers(1, 90, 400)
    positions = rng.integers(0, 41, 400) / 40
    images = [np.arange(1, e + 1, dtype=np.int32).reshape(1, -1, 1) for e in extents]
    arguments = {
        "crop_h": 1.0, "crop_w": PerSample(list(map(f32, windows))),
        "crop_pos_x": PerSample(list(map(f32, positions))), "out_of_bounds_policy": "pad",
    }  # fmt: skip
    for rounding in ("round", "truncate"):
        check("crop", [images], {**arguments, "rounding": rounding}, "HWC")


BAD_CROPS: list[tuple[dict[str, Any], str]] = [
    ({"crop": [30, 4]}, "HWC"),
    ({"crop": [3, 4], "crop_w": 4, "crop_h": 3}, "HWC"),
    ({"crop": [3]}, "HWC"),
    ({"crop": [3, 3, 3, 3]}, "HWC"),
    ({"crop_w": 3}, "HWC"),
    ({"crop_d": 3}, "HWC"),
    ({"crop": [3, 3], "crop_pos_x": 1.1}, "HWC"),
    ({"crop": [3, 3], "crop_pos_y": -0.1}, "HWC"),
    ({"crop": [3, 3], "rounding": "up"}, "HWC"),
    ({"crop": [3, 3], "out_of_bounds_policy": "repeat"}, "HWC"),
    ({"crop": [3, 3], "out_of_bounds_policy": "pad", "fill_values": [1, 2]}, "HWC"),
    ({"crop": [3, 3]}, "XYZ"),
    ({"crop": [3, 3], "croq": 3}, "HWC"),
]


@pytest.mark.golden
@pytest.mark.parametrize("arguments, layout", BAD_CROPS, ids=message)
@pytest.mark.parametrize("name", ["crop", "crop_mirror_normalize"])
def test_crop_errors(name: str, arguments: dict[str, Any], layout: str) -> None:
    refused_by_both(name, [arrays(SHAPES["HWC"][:1])], arguments, layout)


# ---------------------------------------------------------------- crop_mirror_normalize


NORMALIZED: list[dict[str, Any]] = [
    {},
    {"mirror": 1},
    {**RGB, "crop": [8, 5], "mirror": PerSample([0, 1])},
    {**RGB, "scale": 1 / 3, "shift": 0.25, "mirror": 1, "crop": [5, 6], "crop_pos_x": 0.0},
    {"mean": [3], "std": [1, 2, 4], "scale": 10, "shift": 0.5},
    {"mean": [1, 2, 3], "std": [4.0]},
    {"mean": [1.0], "std": [0.0]},
    {"mean": [1.0, 2.0, 3.0], "std": [0.0, 1.0, 2.0], "shift": 3.0},
    {"pad_output": True, **RGB},
    {"pad_output": True, "mean": [1, 2, 3, 4], "mirror": 1},
    {**RGB, **PAD, "crop": [25, 6], "fill_values": [7.5], "mirror": 1},
    {**RGB, **PAD, "crop": [25, 36], "fill_values": [7.5, -8, 9], "crop_pos_x": 0.2, "mirror": 1},
    {**RGB, **PAD, "crop": [25, 6], "fill_values": [7.5], "pad_output": True},
    {**PAD, "crop": [5, 36], "fill_values": [1, 2, 3, 4], "pad_output": True, "mirror": 1},
    {"out_of_bounds_policy": "trim_to_shape", "crop": [25, 5], "mirror": 1, "std": [2]},
    {"mean": PerSample([f32([1, 2, 3]), f32([4, 5, 6])]), "std": PerSample([f32([2]), f32([3])])},
    {"mean": PerSample([f32(1), f32(2)])},
]


@pytest.mark.golden
@pytest.mark.parametrize("arguments", NORMALIZED, ids=message)
@pytest.mark.parametrize("output_layout", ["CHW", "HWC", "WCH", ""])
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_crop_mirror_normalize(
    layout: str, output_layout: str, arguments: dict[str, Any]
) -> None:
    arguments = {**arguments, "output_layout": output_layout}
    check(
        "crop_mirror_normalize", [arrays(SHAPES[layout])], arguments, layout,
        level=1e-5, relative=1e-6,
    )  # fmt: skip


@pytest.mark.golden
@pytest.mark.parametrize(
    "layout, output_layout",
    [("DHWC", "CDHW"), ("DHWC", "DHWC"), ("CDHW", "DHWC"), ("FHWC", "FCHW"), ("FHWC", "FWHC"),
     ("FCHW", "FCHW"), ("FCHW", "CFHW"), ("CFHW", "FHWC")],
)  # fmt: skip
def test_crop_mirror_normalize_frames_and_volumes(layout: str, output_layout: str) -> None:
    channels = SHAPES[layout][0][layout.index("C")]
    for arguments in (
        {"mirror": 1, "crop": [2, 5, 6]},
        {"mean": [5.0] * channels, "std": [3.0], "pad_output": True},
        {"crop": [12, 5], **PAD, "fill_values": [3], "mirror": PerSample([1, 0])},
    ):
        check(
            "crop_mirror_normalize", [arrays(SHAPES[layout])],
            {**arguments, "output_layout": output_layout}, layout, level=1e-5, relative=1e-6,
        )  # fmt: skip


@pytest.mark.golden
@pytest.mark.parametrize("source", ["uint8", "int16", "uint16", "int32", "float32", "float16"])
@pytest.mark.parametrize("target", ["FLOAT", "FLOAT16", "UINT8", "INT8"])
def test_crop_mirror_normalize_types(source: str, target: str) -> None:
    fill = {**PAD, "crop": [25, 6], "fill_values": [7.9, -8.2, 300.0]}
    coarse = target == "FLOAT16"
    for arguments in ({}, RGB, {**RGB, "output_layout": "HWC", "mirror": 1}, fill):
        check(
            "crop_mirror_normalize", [arrays(SHAPES["HWC"], source)],
            {**arguments, "dtype": f"types.{target}"}, "HWC",
            level=1e-3 if coarse else 2e-5, relative=1e-3 if coarse else 1e-6,
        )  # fmt: skip


BAD_NORMALIZED: list[dict[str, Any]] = [
    {"mean": [1, 2]},
    {"mean": [1, 2, 3, 4]},
    {"mean": [1, 2], "std": [1, 2, 3]},
    {"pad_output": True, "mean": [1, 2, 3, 4, 5]},
    {"output_layout": "HW"},
    {"output_layout": "XYZ"},
    {"output_layout": "HHC"},
    {"dtype": "types.INT16"},
    {"dtype": "types.FLOAT64"},
    {**PAD, "fill_values": [1, 2, 3], "pad_output": True},
]


@pytest.mark.golden
@pytest.mark.parametrize("arguments", BAD_NORMALIZED, ids=message)
def test_crop_mirror_normalize_errors(arguments: dict[str, Any]) -> None:
    refused_by_both("crop_mirror_normalize", [arrays(SHAPES["HWC"][:1])], arguments, "HWC")
