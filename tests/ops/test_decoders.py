"""Image decoders against the real DALI: windows of small and large images, random windows, shapes from headers, and errors."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from tests.check import PerSample, check
from tests.helpers.data import folder
from tests.helpers.encoded_images import GRAY, RGB, RGB16, RGBA, encoded, exif, png, tensor
from tests.helpers.libraries import agree, batches, outcome
from torchdali import Pipeline, dynamic, fn, ops, pipeline_def, types
from torchdali.codecs.images import decode
from torchdali.kernels.native import library
from torchdali.kernels.random_window import random_window

PNG = tensor(encoded(RGB, "png"))
HEIGHT, WIDTH, _ = RGB.shape
WHOLE = torch.from_numpy(RGB)


# ---------------------------------------------------------------- windows


def test_windows_match_the_whole_image() -> None:
    assert torch.equal(fn.decoders.image(PNG), WHOLE)
    crop = fn.decoders.image_crop(PNG, crop=[10, 20], crop_pos_x=0.0, crop_pos_y=1.0)
    assert torch.equal(crop, WHOLE[-10:, :20])
    assert torch.equal(fn.decoders.image_slice(PNG, start=[5, 7], shape=[3, 4]), WHOLE[7:11, 5:8])
    places = torch.tensor([5, 7]), torch.tensor([3, 4])
    assert torch.equal(fn.decoders.image_slice(PNG, *places), WHOLE[7:11, 5:8])


@pytest.mark.parametrize("orientation", [1, 3, 6])
@pytest.mark.parametrize("adjust", [True, False])
def test_windows_of_rotated_photos_match_the_whole_image(orientation: int, adjust: bool) -> None:
    data = tensor(encoded(RGB, "jpeg", exif=exif(orientation), quality=95))
    whole = fn.decoders.image(data, adjust_orientation=adjust)
    height, width = whole.shape[:2]
    crop = fn.decoders.image_crop(
        data, crop=[11, 13], crop_pos_x=0.0, crop_pos_y=0.0, adjust_orientation=adjust
    )
    assert torch.equal(crop, whole[:11, :13])
    cut = fn.decoders.image_slice(data, start=[3, 4], end=[9, 5], adjust_orientation=adjust)
    assert torch.equal(cut, whole[4:5, 3:9])
    part = fn.decoders.image_random_crop(data, seed=5, adjust_orientation=adjust)
    h, w = part.shape[:2]
    places = [(y, x) for y in range(height - h + 1) for x in range(width - w + 1)]
    assert any(torch.equal(part, whole[y : y + h, x : x + w]) for y, x in places)


def test_other_dtypes_and_colors_match_the_whole_image() -> None:
    gray = fn.decoders.image(PNG, output_type=types.GRAY, dtype=types.FLOAT)
    crop = fn.decoders.image_crop(PNG, crop=[4, 5], output_type=types.GRAY, dtype=types.FLOAT)
    y, x = (HEIGHT - 4 + 1) // 2, (WIDTH - 5 + 1) // 2
    assert crop.shape == (4, 5, 1) and torch.equal(crop, gray[y : y + 4, x : x + 5])


# ---------------------------------------------------------------- random windows


def draws(*numbers: float) -> Any:
    return iter(numbers).__next__


def test_the_first_fitting_window_is_used() -> None:
    found = random_window(
        draws(0.99, 0.99, 0.0, 0.5, 0.999, 0.0), 40, 60, 5, [0.25, 1.0], [0.5, 2.0]
    )
    h, w = found[2:]
    assert (h, w) == (24, 24) and found[:2] == (16, 0)


def test_all_windows_are_inside_and_allowed() -> None:
    rng = np.random.default_rng(1)
    for _ in range(500):
        height, width = rng.integers(1, 60, 2).tolist()
        y, x, h, w = random_window(rng.random, height, width, 10, [0.08, 1.0], [3 / 4, 4 / 3])
        assert 0 <= y <= height - h and 0 <= x <= width - w and min(h, w) >= 1
        assert 3 / 4 <= w / h <= 4 / 3 or min(h, w) <= 3 or min(height, width) <= 3


@pytest.mark.parametrize(
    ("area", "ratio"),
    [([1.0, 0.5], [0.5, 2.0]), ([0.1, 1.0], [2.0, 0.5]), ([0.1, 1.0], [0.0, 1.0])],
)
def test_empty_ranges(area: list[float], ratio: list[float]) -> None:
    with pytest.raises(RuntimeError, match="must be ranges"):
        random_window(draws(), 10, 10, 10, area, ratio)


def test_random_windows_repeat_with_the_seed() -> None:
    def define(lib: Any) -> Any:
        return lib.fn.decoders.image_random_crop(lib.source([PNG.numpy()] * 4))

    one, two, other = (batches("torchdali", define, 2, batch_size=4, seed=s) for s in (1, 1, 2))
    flat = [
        [sample.tobytes() for (output,) in rows for sample in output.samples]
        for rows in (one, two, other)
    ]
    assert flat[0] == flat[1] != flat[2] and len(set(flat[0])) == 8


# ---------------------------------------------------------------- headers


def test_shapes_come_from_the_header() -> None:
    assert fn.peek_image_shape(PNG[:60]).tolist() == [HEIGHT, WIDTH, 3]
    turned = tensor(encoded(RGB, "jpeg", exif=exif(6)))
    assert fn.peek_image_shape(turned).tolist() == [WIDTH, HEIGHT, 3]
    assert fn.peek_image_shape(turned, adjust_orientation=False).tolist() == [HEIGHT, WIDTH, 3]


# ---------------------------------------------------------------- in pipelines


def test_mixed_decoders_run_in_the_chain_and_deliver_on_the_device() -> None:
    @pipeline_def(batch_size=2, num_threads=2, device_id="cpu", seed=1)
    def define() -> Any:
        data = fn.external_source(lambda: [PNG.numpy()] * 2)
        images = fn.decoders.image(data, device="mixed")
        assert images.device == "gpu"
        return (
            images,
            fn.decoders.image_crop(data, device="mixed", crop=[5, 6]),
            fn.cast(images, dtype=types.FLOAT),
        )

    pipe = define()
    images, crops, floats = pipe.run()
    assert torch.equal(images.samples()[1], WHOLE) and crops.shape() == [(5, 6, 3)] * 2
    assert floats.dtype == types.FLOAT and floats.layout() == "HWC"
    pipe.close()


@pytest.mark.parametrize("name", ["image", "image_crop", "image_slice", "image_random_crop"])
def test_old_arguments_warn(name: str) -> None:
    with pytest.warns(DeprecationWarning, match="split_stages"):
        given = {"start": [0, 0], "end": [1, 1]} if name == "image_slice" else {}
        getattr(fn.decoders, name)(PNG, split_stages=True, **given)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fn.peek_image_shape(PNG[None]), "one dimension, got 2"),
        (lambda: fn.decoders.image(PNG.float()), "unsupported input type: float32"),
        (lambda: fn.decoders.image(PNG, dtype=types.BOOL), "dtype must be"),
        (lambda: fn.decoders.image(PNG[:0]), "empty"),
        (lambda: fn.decoders.image_crop(PNG, crop=[99, 9]), r"is not valid for image dimensions .45 x 61"),
        (lambda: fn.decoders.image_slice(PNG), "needs the inputs anchor and shape, or start"),
        (lambda: fn.decoders.image_slice(PNG, start=[1, 1, 1]), "expected shape 2 but got 3 values"),
        (lambda: fn.decoders.image_slice(PNG, start=[5], shape=[0], axes=[0]), "is empty"),
        (lambda: fn.decoders.image_slice(PNG, start=[0, 0], axes=[1, 1]), "occurs more than once"),
        (lambda: fn.peek_image_shape(PNG, dtype=types.INT8), "dtype must be"),
    ],
)
def test_errors_describe_the_cause(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call()


# --------------------------------------------------------- compared with the real DALI


EXCEPTIONS = {
    "decoders.*": "the data must be uint8; DALI reads data of any dtype as bytes",
    "decoders.image_random_crop": "random numbers differ; the windows' distributions are compared",
}
F, I32 = np.float32, np.int32
Bytes = npt.NDArray[np.uint8]


def bytes_of(data: bytes) -> Bytes:
    return np.frombuffer(data, np.uint8).copy()


@functools.cache
def images(kind: str) -> list[Bytes]:
    """Return two encoded images of different sizes."""
    small = RGB[:31, :17]
    return {
        "png": [bytes_of(encoded(RGB, "png")), bytes_of(encoded(small, "png"))],
        "jpeg": [
            bytes_of(encoded(RGB, "jpeg", quality=90)),
            bytes_of(encoded(small, "jpeg", subsampling=0)),
        ],
        "turned": [bytes_of(encoded(RGB, "jpeg", exif=exif(turn))) for turn in (6, 3)],
        "gray": [bytes_of(encoded(GRAY, "png")), bytes_of(encoded(GRAY, "jpeg"))],
        "alpha": [
            bytes_of(encoded(RGBA, "png")),
            bytes_of(encoded(RGBA[:20], "webp", lossless=True)),
        ],
        "deep": [bytes_of(png(RGB16, 2, 16)), bytes_of(png(RGB16[:20], 2, 16))],
        "others": [bytes_of(encoded(RGB, "bmp")), bytes_of(encoded(RGB, "tiff"))],
    }[kind]


KINDS = ["png", "jpeg", "turned", "gray", "alpha", "deep", "others"]
PIXELS: list[dict[str, Any]] = [
    {},
    {"dtype": "types.FLOAT"},
    {"dtype": "types.UINT16"},
    {"dtype": "types.INT16"},
    {"output_type": "types.GRAY"},
    {"output_type": "types.BGR"},
    {"output_type": "types.YCbCr"},
    {"adjust_orientation": False},
    {"jpeg_fancy_upsampling": True, "affine": False, "preallocate_width_hint": 100},
]


@pytest.mark.parity
@pytest.mark.parametrize("arguments", PIXELS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_image(kind: str, arguments: dict[str, Any]) -> None:
    check("decoders.image", [images(kind)], arguments, level=_level(kind, arguments))


def _level(kind: str, arguments: dict[str, Any]) -> float:
    """The real decoders round gray of color files once more: one level of 255."""
    if arguments.get("output_type") in ("types.GRAY", "types.YCbCr") and kind != "gray":
        return 1.0
    return 1e-6 if arguments.get("dtype") == "types.FLOAT" else 0.0


@pytest.mark.parity
@pytest.mark.parametrize("kind", KINDS)
def test_the_fast_transform(kind: str) -> None:
    pytest.importorskip("simplejpeg", reason="needs simplejpeg: install the extra 'image'")
    check("decoders.image", [images(kind)], {"use_fast_idct": True})
    check("decoders.image_crop", [images(kind)], {"use_fast_idct": True, "crop": [5.0, 7.0]})


CROPS: list[dict[str, Any]] = [
    {"crop": [5.0, 7.0]},
    {},
    {"crop_h": 3.0, "crop_w": 7.0},
    {"crop_h": 3.0, "crop_w": 7.0, "crop_d": 2.0},
    {"crop": [2.0, 5.0, 7.0]},
    {"crop": [5.9, 7.9]},
    {"crop": [0.0, 7.0]},
    {"crop": [-1.0, 7.0]},
    {"crop": [5.0, 8.0], "crop_pos_x": 1.0, "crop_pos_y": 0.0},
    {"crop": [4.0, 6.0], "crop_pos_x": 0.25, "crop_pos_y": 0.3},
    {"crop": [4.0, 6.0], "rounding": "truncate"},
    {"crop": PerSample([[5.0, 7.0], [3.0, 4.0]])},
    {"crop_h": PerSample([5.0, 7.0]), "crop_w": 4.0, "crop_pos_y": PerSample([0.0, 1.0])},
    {"crop": [5.0, 7.0], "dtype": "types.FLOAT"},
    {"crop": [5.0, 7.0], "adjust_orientation": False, "hw_decoder_load": 0.0},
]


@pytest.mark.parity
@pytest.mark.parametrize("arguments", CROPS, ids=str)
@pytest.mark.parametrize("kind", ["png", "jpeg", "turned"])
def test_image_crop(kind: str, arguments: dict[str, Any]) -> None:
    check("decoders.image_crop", [images(kind)], arguments, level=_level(kind, arguments))


SLICES: list[tuple[Any, Any, dict[str, Any]]] = [
    (F([0.1, 0.2]), F([0.5, 0.4]), {}),
    (F([0.05, 0.05]), F([0.5, 0.5]), {}),
    (F([3, 2]), F([5, 4]), {"normalized_anchor": False, "normalized_shape": False}),
    (F([3, 2]), F([0.5, 0.4]), {"normalized_anchor": False}),
    (I32([3, 2]), I32([5, 4]), {}),
    (np.int64([3, 2]), np.int64([5, 4]), {"axes": [0, 1]}),
    (I32([3, 2]), I32([5, 4]), {"axis_names": "HW"}),
    (I32([3]), I32([5]), {"axis_names": "H"}),
    (I32([3]), I32([5]), {"axes": [-2]}),
    (None, None, {"start": [3, 2], "end": [8, 6]}),
    (None, None, {"start": [3, 2], "shape": [8, 6]}),
    (None, None, {"start": [3, 2]}),
    (None, None, {"end": [3, 2]}),
    (None, None, {"shape": [3, 2]}),
    (None, None, {"rel_start": [0.1, 0.2], "rel_end": [0.5, 0.9]}),
    (None, None, {"rel_start": [0.1, 0.2], "rel_shape": [0.5, 0.5]}),
    (None, None, {"start": [3, 2], "rel_shape": [0.5, 0.5]}),
    (None, None, {"start": [3, 2], "rel_end": [0.5, 0.5]}),
    (None, None, {"rel_start": [0.1, 0.2], "end": [15, 15]}),
    (None, None, {"start": 3, "end": 8, "axes": 0}),
    (None, None, {"start": [3], "end": [8]}),
    (None, None, {"start": PerSample([[3, 2], [1, 2]]), "end": [8, 6]}),
    (None, None, {"start": [3, 2], "end": [8, 6], "axes": PerSample([[0, 1], [1, 0]])}),
    (None, None, {"start": [3, 2], "end": [8, 6], "output_type": "types.BGR"}),
    (
        None,
        None,
        {"start": [3, 2], "end": [8, 6], "dtype": "types.UINT16", "adjust_orientation": False},
    ),
]


@pytest.mark.parity
@pytest.mark.parametrize(("anchor", "extents", "arguments"), SLICES, ids=str)
@pytest.mark.parametrize("kind", ["png", "jpeg", "turned"])
def test_image_slice(kind: str, anchor: Any, extents: Any, arguments: dict[str, Any]) -> None:
    inputs = [images(kind)] + [[values] * 2 for values in (anchor, extents) if values is not None]
    check("decoders.image_slice", inputs, arguments)


@pytest.mark.parity
@pytest.mark.parametrize("part", np.arange(0.05, 1.0, 0.1).round(2).tolist())
def test_slices_that_end_in_halves(part: float) -> None:
    """The precision of the product determines whether 0.35 of 10 is 3 or 4."""
    picture = np.zeros((10, 30, 3), np.uint8)
    picture[..., 0], picture[..., 1] = np.arange(10)[:, None], np.arange(30)
    data = [bytes_of(encoded(picture, "png"))] * 2
    rest = 0.35 if part < 0.6 else 0.05
    for arguments in (
        {"rel_start": [part], "rel_end": [1.0]},
        {"rel_end": [part]},
        {"rel_shape": [part]},
        {"rel_start": [part], "rel_shape": [rest]},
        {"start": [1], "rel_shape": [min(part, 0.85)]},
    ):
        agree(
            lambda lib, arguments=arguments: lib.fn.decoders.image_slice(
                lib.source(data), **arguments
            )
        )
    place = F([part] * 2), F([rest] * 2)
    agree(
        lambda lib: lib.fn.decoders.image_slice(
            lib.source(data), *(lib.source([v] * 2) for v in place)
        )
    )


PEEKS: list[dict[str, Any]] = [
    {},
    *[
        {"dtype": f"types.{kind}"}
        for kind in ("INT32", "UINT32", "INT64", "UINT64", "FLOAT", "FLOAT64")
    ],
    {"image_type": "types.GRAY"},
    {"image_type": "types.ANY_DATA"},
    {"image_type": "types.YCbCr"},
    {"adjust_orientation": False},
]


@pytest.mark.parity
@pytest.mark.parametrize("arguments", PEEKS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_peek_image_shape(kind: str, arguments: dict[str, Any]) -> None:
    check("peek_image_shape", [images(kind)], arguments, "X")


# ---------------------------------------------------------------- random windows


def windows(
    library: str, height: int, width: int, count: int, **arguments: Any
) -> npt.NDArray[np.int64]:
    """Return y, x, height, width of many random windows."""
    places = np.zeros((height, width, 3), np.uint8)
    places[..., 0], places[..., 1] = np.arange(height)[:, None], np.arange(width)
    data, size = bytes_of(encoded(places, "png", compress_level=1)), min(count, 250)

    def define(lib: Any) -> Any:
        return lib.fn.decoders.image_random_crop(lib.source([data] * size), **arguments)

    rows = batches(library, define, -(-count // size), batch_size=size)
    samples = [sample for (output,) in rows for sample in output.samples]
    return np.array([(*sample[0, 0, :2], *sample.shape[:2]) for sample in samples], np.int64)


FALLBACKS: list[tuple[int, int, dict[str, Any]]] = [
    (30, 150, {}),
    (30, 150, {"random_aspect_ratio": [0.75, 1.3]}),
    (20, 30, {}),
    (31, 17, {}),
    (100, 10, {}),
    (11, 55, {"random_aspect_ratio": [0.5, 1.45]}),
    (90, 7, {"random_aspect_ratio": [0.7, 1.45]}),
    (60, 60, {"random_area": [0.1, 0.2]}),
    (30, 90, {"random_area": [0.5, 0.5]}),
    (90, 30, {"random_area": [0.01, 0.3]}),
    (50, 60, {"random_area": [1.0]}),
]


@pytest.mark.parity
@pytest.mark.parametrize(("height", "width", "arguments"), FALLBACKS, ids=str)
def test_the_largest_window(height: int, width: int, arguments: dict[str, Any]) -> None:
    found, wanted = (
        windows(library, height, width, 4, num_attempts=0, **arguments)[:, 2:]
        for library in ("torchdali", "nvidia.dali")
    )
    assert np.array_equal(found, wanted) and len(np.unique(found, axis=0)) == 1


DISTRIBUTIONS: list[tuple[int, int, dict[str, Any]]] = [
    (100, 150, {}),
    (100, 150, {"num_attempts": 1}),
    (30, 150, {"num_attempts": 2}),
    (64, 64, {"random_area": [0.1, 0.3]}),
    (60, 60, {"random_area": [0.1, 0.1], "random_aspect_ratio": [0.25, 4.0]}),
    (10, 10, {"random_area": [0.005, 0.03], "random_aspect_ratio": [1.0, 1.0]}),
]


@pytest.mark.parity
@pytest.mark.parametrize(("height", "width", "arguments"), DISTRIBUTIONS, ids=str)
def test_distribution_of_windows(height: int, width: int, arguments: dict[str, Any]) -> None:
    count = 3000
    found, wanted = (
        windows(library, height, width, count, **arguments)
        for library in ("torchdali", "nvidia.dali")
    )
    for ours, theirs in zip(_traits(found), _traits(wanted), strict=True):
        places = np.unique(np.concatenate([ours, theirs]))
        shares = [np.searchsorted(np.sort(x), places, "right") / count for x in (ours, theirs)]
        assert np.abs(shares[0] - shares[1]).max() < 2.7 * np.sqrt(2 / count)
        assert abs(ours.min() - theirs.min()) <= 0.1 * np.ptp(theirs) + 1e-9


def _traits(found: npt.NDArray[np.int64]) -> list[npt.NDArray[Any]]:
    y, x, h, w = found.T
    return [y, x, h, w, h * w, w / h]


# ---------------------------------------------------------------- errors


def on(name: str, data: Any, layout: str | None = None, **arguments: Any) -> Any:
    def define(lib: Any) -> Any:
        made = {
            k: getattr(lib.types, v) if k in ("dtype", "image_type") else v
            for k, v in arguments.items()
        }
        operator = lib.fn.peek_image_shape if name == "peek" else getattr(lib.fn.decoders, name)
        return operator(lib.source(data, layout), **made)

    return define


PNGS = images("png")
DAMAGED = {
    "empty": b"",
    "garbage": b"\1\2\3",
    "text": b"not an image\n" * 10,
    "cut JPEG": images("jpeg")[0].tobytes()[:600],
    "JPEG without its end": images("jpeg")[0].tobytes()[:-400],
    "cut PNG": images("png")[0].tobytes()[:300],
}
ERRORS = {
    "float16": on("image", PNGS, dtype="FLOAT16"),
    "int64": on("image", PNGS, dtype="INT64"),
    "bool": on("image_crop", PNGS, dtype="BOOL", crop=[2, 2]),
    "floats": on("image", [F([1, 2, 3])] * 2),
    "crop_w alone": on("image_crop", PNGS, crop_w=7.0),
    "crop of one": on("image_crop", PNGS, crop=[2.0]),
    "crop and crop_h": on("image_crop", PNGS, crop=[5.0, 7.0], crop_h=3.0),
    "crop_pos outside": on("image_crop", PNGS, crop=[5.0, 7.0], crop_pos_x=1.5),
    "unknown rounding": on("image_crop", PNGS, crop=[5.0, 7.0], rounding="up"),
    "crop too large": on("image_crop", PNGS, crop=[50.0, 7.0]),
    "slice of nothing": on("image_slice", PNGS),
    "slice too large": on("image_slice", PNGS, start=[3, 2], end=[100, 6]),
    "slice before the image": on("image_slice", PNGS, start=[-3, 2], end=[10, 6]),
    "slice backwards": on("image_slice", PNGS, start=[8, 6], end=[3, 2]),
    "empty slice": on("image_slice", PNGS, start=[3, 2], end=[3, 2]),
    "two starts": on("image_slice", PNGS, start=[3, 2], rel_start=[0.1, 0.1]),
    "end and shape": on("image_slice", PNGS, start=[3, 2], end=[8, 6], shape=[2, 2]),
    "unknown axis": on("image_slice", PNGS, start=[0], end=[1], axis_names="C"),
    "axis out of range": on("image_slice", PNGS, start=[0], end=[1], axes=[2]),
    "area reversed": on("image_random_crop", PNGS, random_area=[1.0, 0.5]),
    "ratio reversed": on("image_random_crop", PNGS, random_aspect_ratio=[2.0, 1.0]),
    "peek as uint8": on("peek", PNGS, dtype="UINT8"),
    "peek at floats": on("peek", [F([1, 2, 3])] * 2),
    "peek at nothing": on("peek", [np.zeros(0, np.uint8)] * 2),
    "unknown argument": on("image", PNGS, color="RGB"),
    **{f"{k}, image": on("image", [bytes_of(v)] * 2) for k, v in DAMAGED.items()},
    **{f"{k}, random crop": on("image_random_crop", [bytes_of(v)] * 2) for k, v in DAMAGED.items()},
}


@pytest.mark.parity
@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    assert isinstance(agree(ERRORS[case]), type), "nothing was raised"


@pytest.mark.parity
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_anchor_and_extents_of_different_types(dtype: Any) -> None:
    other = {np.int32: F([0.5, 0.4]), np.float32: I32([5, 4])}[dtype]

    def define(lib: Any) -> Any:
        return lib.fn.decoders.image_slice(lib.source(PNGS), dtype([0, 0]), other)

    assert outcome("torchdali", define) is outcome("nvidia.dali", define) is RuntimeError


# ---------------------------------------------------------------- real photos


@pytest.mark.parity
def test_photos_with_windows() -> None:
    paths: list[Path] = sorted(folder("imagenet").rglob("*.JPEG"))[:6]
    assert paths
    data = [bytes_of(path.read_bytes()) for path in paths]
    for name, arguments in (
        ("decoders.image_crop", {"crop": [100.0, 90.0], "crop_pos_x": 0.3}),
        ("decoders.image_slice", {"rel_start": [0.2, 0.1], "rel_shape": [0.5, 0.6]}),
    ):
        check(name, [data], arguments)


# ------------------------------------------------------------------------- upsampled colors

SMOOTH = tensor(encoded(RGB, "jpeg", subsampling="4:2:0"))
PLAIN = decode(SMOOTH, fancy=False)
needs_plain = pytest.mark.skipif(torch.equal(PLAIN, decode(SMOOTH)), reason="needs the library in C, or simplejpeg")


@needs_plain
@pytest.mark.parametrize("space", [fn.decoders, fn.experimental.decoders])
def test_only_mixed_decoders_repeat_colors(space: Any) -> None:
    for given in ({}, {"jpeg_fancy_upsampling": False}, {"jpeg_fancy_upsampling": True}):
        smooth = decode(SMOOTH)
        on_mixed = smooth if given.get("jpeg_fancy_upsampling") else PLAIN
        for device, expected in {"cpu": smooth, "mixed": on_mixed, None: smooth}.items():
            how = {**given, "device": device}
            assert torch.equal(space.image(SMOOTH, **how), expected)
            assert torch.equal(space.image_crop(SMOOTH, crop=(20, 30), crop_pos_x=1, **how), expected[13:33, -30:])
            cut = space.image_slice(SMOOTH, start=[3, 5], shape=[21, 18], **how)  # x, y
            assert torch.equal(cut, expected[5:23, 3:24])
            window = space.image_random_crop(SMOOTH, seed=3, **how)
            others = space.image_random_crop(tensor(encoded(expected.numpy(), "png")), seed=3)
            assert torch.equal(window, others)


@needs_plain
def test_old_names_classes_and_the_dynamic_mode_upsample_equally() -> None:
    data = dynamic.as_tensor(SMOOTH.numpy())
    assert torch.equal(dynamic.decoders.image(data, jpeg_fancy_upsampling=False).torch(), decode(SMOOTH))
    assert torch.equal(ops.decoders.Image(device="mixed")(SMOOTH), PLAIN)
    with pytest.warns(DeprecationWarning, match="image_decoder"):
        assert torch.equal(fn.image_decoder(SMOOTH, device="mixed"), PLAIN)
        assert torch.equal(fn.image_decoder(SMOOTH, jpeg_fancy_upsampling=False), decode(SMOOTH))


@needs_plain
@pytest.mark.parametrize("options", [{}, {"debug": True}, {"exact": True}])
def test_the_pipeline_option_selects_the_upsampling(options: dict[str, Any], tmp_path: Path) -> None:
    """Two equal decoders on the CPU are merged; on "mixed" they are not."""
    (tmp_path / "smooth.jpg").write_bytes(SMOOTH.numpy())

    @pipeline_def(batch_size=2, num_threads=2, device_id="cpu", **options)
    def define() -> Any:
        data, _ = fn.readers.file(files=[str(tmp_path / "smooth.jpg")])
        return tuple(
            fn.decoders.image(data, device=device, jpeg_fancy_upsampling=fancy)
            for device in ("cpu", "mixed") for fancy in (True, False)
        )  # fmt: skip

    pipe = define()
    outputs = [batch.samples()[1].clone() for batch in pipe.run()]
    smooth = decode(SMOOTH)
    assert [torch.equal(each, smooth) for each in outputs] == [True, True, True, False]
    assert torch.equal(outputs[3], PLAIN)
    if "debug" not in options:
        assert library() is None or pipe.explain().count("fast path: decoders.image (") == 3
        with Pipeline.deserialize(pipe.serialize(), device_id="cpu") as again:
            assert all(torch.equal(a, b.samples()[0]) for a, b in zip(outputs, again.run(), strict=True))
    pipe.close()
