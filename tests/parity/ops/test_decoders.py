"""Image decoders with windows, and the shapes that headers tell, against the real DALI."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.check import PerSample, check
from tests.helpers.both import agree, batches, outcome
from tests.helpers.data import folder
from tests.helpers.encoded_images import GRAY, RGB, RGB16, RGBA, encoded, exif, png

pytestmark = pytest.mark.parity
pytest.importorskip(
    "nvidia.dali",
    reason="the parity tests compare with the real DALI: install the extra 'parity'",
)

EXCEPTIONS = {
    "decoders.*": "the data must be uint8; DALI takes the bytes of any type",
    "decoders.image_random_crop": "the streams of numbers differ; the distributions of windows are compared",
}
F, I32 = np.float32, np.int32
Bytes = npt.NDArray[np.uint8]


def bytes_of(data: bytes) -> Bytes:
    return np.frombuffer(data, np.uint8).copy()


@functools.cache
def images(kind: str) -> list[Bytes]:
    """Two encoded images; ragged."""
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


@pytest.mark.parametrize("arguments", PIXELS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_image(kind: str, arguments: dict[str, Any]) -> None:
    check("decoders.image", [images(kind)], arguments, level=_level(kind, arguments))


def _level(kind: str, arguments: dict[str, Any]) -> float:
    """Gray of color files is rounded once more in the real decoders: one level of 255."""
    if arguments.get("output_type") in ("types.GRAY", "types.YCbCr") and kind != "gray":
        return 1.0
    return 1e-6 if arguments.get("dtype") == "types.FLOAT" else 0.0


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


@pytest.mark.parametrize(("anchor", "extents", "arguments"), SLICES, ids=str)
@pytest.mark.parametrize("kind", ["png", "jpeg", "turned"])
def test_image_slice(kind: str, anchor: Any, extents: Any, arguments: dict[str, Any]) -> None:
    inputs = [images(kind)] + [[values] * 2 for values in (anchor, extents) if values is not None]
    check("decoders.image_slice", inputs, arguments)


@pytest.mark.parametrize("part", np.arange(0.05, 1.0, 0.1).round(2).tolist())
def test_slices_that_end_in_halves(part: float) -> None:
    """The precision of the product decides if 0.35 of 10 is 3 or 4."""
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


PNG = images("png")
DAMAGED = {
    "empty": b"",
    "garbage": b"\1\2\3",
    "text": b"not an image\n" * 10,
    "cut JPEG": images("jpeg")[0].tobytes()[:600],
    "JPEG without its end": images("jpeg")[0].tobytes()[:-400],
    "cut PNG": images("png")[0].tobytes()[:300],
}
ERRORS = {
    "float16": on("image", PNG, dtype="FLOAT16"),
    "int64": on("image", PNG, dtype="INT64"),
    "bool": on("image_crop", PNG, dtype="BOOL", crop=[2, 2]),
    "floats": on("image", [F([1, 2, 3])] * 2),
    "crop_w alone": on("image_crop", PNG, crop_w=7.0),
    "crop of one": on("image_crop", PNG, crop=[2.0]),
    "crop and crop_h": on("image_crop", PNG, crop=[5.0, 7.0], crop_h=3.0),
    "crop_pos outside": on("image_crop", PNG, crop=[5.0, 7.0], crop_pos_x=1.5),
    "unknown rounding": on("image_crop", PNG, crop=[5.0, 7.0], rounding="up"),
    "crop too large": on("image_crop", PNG, crop=[50.0, 7.0]),
    "slice of nothing": on("image_slice", PNG),
    "slice too large": on("image_slice", PNG, start=[3, 2], end=[100, 6]),
    "slice before the image": on("image_slice", PNG, start=[-3, 2], end=[10, 6]),
    "slice backwards": on("image_slice", PNG, start=[8, 6], end=[3, 2]),
    "empty slice": on("image_slice", PNG, start=[3, 2], end=[3, 2]),
    "two starts": on("image_slice", PNG, start=[3, 2], rel_start=[0.1, 0.1]),
    "end and shape": on("image_slice", PNG, start=[3, 2], end=[8, 6], shape=[2, 2]),
    "unknown axis": on("image_slice", PNG, start=[0], end=[1], axis_names="C"),
    "axis out of range": on("image_slice", PNG, start=[0], end=[1], axes=[2]),
    "area reversed": on("image_random_crop", PNG, random_area=[1.0, 0.5]),
    "ratio reversed": on("image_random_crop", PNG, random_aspect_ratio=[2.0, 1.0]),
    "peek as uint8": on("peek", PNG, dtype="UINT8"),
    "peek at floats": on("peek", [F([1, 2, 3])] * 2),
    "peek at nothing": on("peek", [np.zeros(0, np.uint8)] * 2),
    "unknown argument": on("image", PNG, color="RGB"),
    **{f"{k}, image": on("image", [bytes_of(v)] * 2) for k, v in DAMAGED.items()},
    **{f"{k}, random crop": on("image_random_crop", [bytes_of(v)] * 2) for k, v in DAMAGED.items()},
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    assert isinstance(agree(ERRORS[case]), type), "nothing was raised"


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_anchor_and_extents_of_different_types(dtype: Any) -> None:
    other = {np.int32: F([0.5, 0.4]), np.float32: I32([5, 4])}[dtype]

    def define(lib: Any) -> Any:
        return lib.fn.decoders.image_slice(lib.source(PNG), dtype([0, 0]), other)

    assert outcome("torchdali", define) is outcome("nvidia.dali", define) is RuntimeError


# ---------------------------------------------------------------- real photos


def test_photos_with_windows() -> None:
    paths: list[Path] = sorted(folder("imagenet").rglob("*.JPEG"))[:6]
    assert paths
    data = [bytes_of(path.read_bytes()) for path in paths]
    for name, arguments in (
        ("decoders.image", {}),
        ("decoders.image_crop", {"crop": [100.0, 90.0], "crop_pos_x": 0.3}),
        ("decoders.image_slice", {"rel_start": [0.2, 0.1], "rel_shape": [0.5, 0.6]}),
        ("peek_image_shape", {}),
    ):
        check(name, [data], arguments)
