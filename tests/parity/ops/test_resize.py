"""The resize family against the real DALI; fused with a crop it gives the same pixels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import torchdali
from tests.check import PerSample, check
from torchdali import fn, types

pytestmark = pytest.mark.parity
pytest.importorskip(
    "nvidia.dali", reason="the parity tests compare with the real DALI: install the extra 'parity'"
)

EXCEPTIONS = {
    "resize_crop_mirror": "channel-first layouts: DALI's mirror=1 turns the image upside down and 2 does nothing; "
    "here 1 mirrors rows and 2 columns in every layout",
}

RANDOM = np.random.default_rng(15)
GRID = list(itertools.product(("uint8", "int16", "float32"), ("HWC", "CHW")))


def samples(dtype, layout, shapes=((50, 62), (53, 41), (38, 70))):
    made = []
    for height, width in shapes:
        shape = (height, width, 3) if layout == "HWC" else (3, height, width)
        low = 0 if dtype == "uint8" else -900
        values = RANDOM.random(shape) if dtype == "float32" else RANDOM.integers(low, 255, shape)
        made.append(values.astype(dtype))
    return made


def tolerance(dtype, arguments):
    rounded = dtype != "float32" and "dtype" not in arguments
    if rounded:
        return {"level": 1.0, "share": 0.999}
    return {"level": 2e-2 if dtype == "int16" else 1e-3, "relative": 2e-4}


RESIZE = [
    {"size": [40.0, 40.0]},
    {"resize_shorter": 40.0},
    {"resize_longer": 40.0, "interp_type": "types.INTERP_CUBIC"},
    {"resize_x": PerSample([30.0, 40.0, 80.0])},
    {"resize_x": 30.0, "resize_y": 70.0, "interp_type": "types.INTERP_NN"},
    {"size": [40.0, -40.0], "dtype": "types.FLOAT"},
    {"size": [40.0, 40.0], "mode": "not_larger", "max_size": [35.0]},
    {"size": [40.0, 50.0], "mode": "not_smaller"},
    {"size": [0.0, 33.0], "mode": "stretch"},
    {"size": [40.0, 40.0], "roi_start": [5.0, 5.0], "roi_end": [30.0, 40.0]},
    {"size": [40.0, 44.0], "roi_start": [0.1, 0.2], "roi_end": [0.9, 0.7], "roi_relative": True},
    {"size": [30.0, 30.0], "antialias": False},
    {"size": [45.0, 45.0], "min_filter": "types.INTERP_TRIANGULAR", "mag_filter": "types.INTERP_LANCZOS3"},
    {"resize_shorter": 33.0, "subpixel_scale": False, "interp_type": "types.INTERP_GAUSSIAN"},
    {"size": [40.0, 40.0], "save_attrs": True},
]


@pytest.mark.parametrize(("dtype", "layout"), GRID)
def test_resize(dtype, layout):
    for arguments in RESIZE:
        check("resize", [samples(dtype, layout)], arguments, layout, **tolerance(dtype, arguments))


@pytest.mark.parametrize("layout", ["FHWC", "DHWC", "FCHW", "CDHW"])
def test_resize_of_frames_and_volumes(layout):
    shapes = {"FHWC": (3, 20, 24, 2), "DHWC": (12, 20, 24, 2), "FCHW": (3, 2, 20, 24), "CDHW": (2, 12, 20, 24)}
    data = [RANDOM.random(shapes[layout]).astype(np.float32) for _ in range(2)]
    size = [9.0, 14.0, 30.0] if "D" in layout else [14.0, 30.0]
    check("resize", [data], {"size": size}, layout, level=1e-4)


MIRROR = [
    {"size": [40.0, 40.0], "crop": [20.0, 20.0], "mirror": PerSample([0, 1, 3])},
    {"resize_shorter": 40.0, "crop": [32.0, 30.0], "crop_pos_x": 0.2, "mirror": 1},
    {"resize_x": 50.0, "crop": [20.0, 44.0], "crop_pos_y": 0.0, "mirror": 2},
    {"resize_longer": 60.0, "interp_type": "types.INTERP_CUBIC", "crop": [20.0, 20.0]},
    {"size": [64.0, 64.0], "crop_w": 30.0, "crop_h": 31.0, "rounding": "truncate"},
    {"size": [30.0, 30.0], "mirror": 1},
]


@pytest.mark.parametrize(("dtype", "layout"), GRID)
def test_resize_crop_mirror(dtype, layout):
    for arguments in MIRROR:
        if layout == "CHW" and "mirror" in arguments:
            continue  # see EXCEPTIONS
        check("resize_crop_mirror", [samples(dtype, layout)], arguments, layout, **tolerance(dtype, arguments))


def test_random_resized_crop_has_the_size_and_values_of_its_window():
    image = [np.full((40, 60, 3), 77, np.uint8)] * 3

    def expected(*_):
        from tests.check import Result

        return [Result([np.full((30, 20, 3), 77, np.uint8)] * 3, "HWC")]

    check("random_resized_crop", [image], {"size": [30, 20], "seed": 5}, "HWC", expected=expected, over_batch=True)


@pytest.mark.parametrize("crop", [[20.0, 20.0], [40.0, 40.0], [50.0, 30.0]])
@pytest.mark.parametrize("resize", [{"resize_shorter": 40.0}, {"size": [45.0, 52.0]}, {"resize_longer": 60.5}])
def test_fused_with_a_crop_the_pixels_are_the_same(resize, crop):
    images = samples("uint8", "HWC")
    settings = dict(mean=[1.0, 2.0, 3.0], std=[4.0], out_of_bounds_policy="pad", crop=crop)

    @torchdali.pipeline_def(batch_size=3, num_threads=2, device_id=None)
    def pipe():
        x = fn.external_source(source=lambda: images, layout="HWC")
        return fn.crop_mirror_normalize(fn.resize(x, **resize), mirror=1, **settings)

    made = pipe()
    (found,) = made.run()
    assert "_resize_crop_mirror_normalize" in made.explain()
    made.close()
    for image, result in zip(images, found, strict=True):
        whole = fn.resize(torch.from_numpy(image), **resize)
        expected = fn.crop_mirror_normalize(whole, mirror=1, **settings)
        assert torch.equal(torch.from_numpy(np.array(result)), expected)


@pytest.mark.parametrize("own", [{"dtype": types.FLOAT}, {"save_attrs": False}])
def test_arguments_of_the_resize_alone_are_kept(own):
    images = samples("uint8", "HWC")

    @torchdali.pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def pipe():
        x = fn.external_source(source=lambda: images, layout="HWC")
        return fn.crop_mirror_normalize(fn.resize(x, resize_shorter=40.0, **own), crop=[30.0, 30.0])

    made = pipe()
    (found,) = made.run()
    made.close()
    for image, result in zip(images, found, strict=True):
        whole = fn.resize(torch.from_numpy(image), resize_shorter=40.0, **own)
        assert torch.equal(torch.from_numpy(np.array(result)), fn.crop_mirror_normalize(whole, crop=[30.0, 30.0]))


def test_contradictions_are_refused():
    image = torch.zeros(10, 10, 3, dtype=torch.uint8)
    for arguments in ({}, {"size": [5, 5], "resize_x": 3}, {"resize_shorter": 3, "mode": "stretch"}):
        with pytest.raises(RuntimeError):
            fn.resize(image, **arguments)
    with pytest.raises(ValueError, match="dtype"):
        fn.resize(image, size=[5, 5], dtype=types.INT16)
