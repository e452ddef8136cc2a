"""The resize family against the real DALI; resize fused with a crop gives the same pixels."""

from __future__ import annotations

import hashlib
import importlib
import itertools

import numpy as np
import pytest
import torch

import torchdali
from tests import golden
from tests.check import PerSample, Result, check
from torchdali import fn, types

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "resize_crop_mirror": "with channel-first layouts, DALI's `mirror=1` turns the image upside down and `mirror=2` "
    "does nothing; here 1 mirrors horizontally and 2 vertically in every layout",
}

RANDOM = np.random.default_rng(15)
GRID = list(itertools.product(("uint8", "int16", "float32"), ("HWC", "CHW")))


def samples(dtype, layout, shapes=((25, 31), (27, 21), (19, 35))):
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
    {"size": [20.0, 20.0]},
    {"resize_shorter": 20.0},
    {"resize_longer": 20.0, "interp_type": "types.INTERP_CUBIC"},
    {"resize_x": PerSample([15.0, 20.0, 40.0])},
    {"resize_x": 15.0, "resize_y": 35.0, "interp_type": "types.INTERP_NN"},
    {"size": [20.0, -20.0], "dtype": "types.FLOAT"},
    {"size": [20.0, 20.0], "mode": "not_larger", "max_size": [17.0]},
    {"size": [20.0, 25.0], "mode": "not_smaller"},
    {"size": [0.0, 17.0], "mode": "stretch"},
    {"size": [20.0, 20.0], "roi_start": [2.0, 3.0], "roi_end": [15.0, 20.0]},
    {"size": [20.0, 22.0], "roi_start": [0.1, 0.2], "roi_end": [0.9, 0.7], "roi_relative": True},
    {"size": [15.0, 15.0], "antialias": False},
    {"size": [23.0, 23.0], "min_filter": "types.INTERP_TRIANGULAR", "mag_filter": "types.INTERP_LANCZOS3"},
    {"resize_shorter": 17.0, "subpixel_scale": False, "interp_type": "types.INTERP_GAUSSIAN"},
    {"size": [20.0, 20.0], "save_attrs": True},
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
    {"size": [20.0, 20.0], "crop": [10.0, 10.0], "mirror": PerSample([0, 1, 3])},
    {"resize_shorter": 20.0, "crop": [16.0, 15.0], "crop_pos_x": 0.2, "mirror": 1},
    {"resize_x": 25.0, "crop": [10.0, 22.0], "crop_pos_y": 0.0, "mirror": 2},
    {"resize_longer": 30.0, "interp_type": "types.INTERP_CUBIC", "crop": [10.0, 10.0]},
    {"size": [32.0, 32.0], "crop_w": 15.0, "crop_h": 16.0, "rounding": "truncate"},
    {"size": [15.0, 15.0], "mirror": 1},
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


# ---------------------------------------------------------------- bytes

INTERPOLATIONS = ("NN", "LINEAR", "TRIANGULAR", "CUBIC")


def smooth(height, width, channels=3):
    """Return bytes that vary slowly, like photos; they are the same on every machine."""
    small = RANDOM.random((height // 7 + 2, width // 7 + 2, channels))
    large = stretched(stretched(small, height).swapaxes(0, 1), width).swapaxes(0, 1)
    return np.ascontiguousarray(large * 255).astype(np.uint8)


def stretched(values, count):
    """Return `count` rows, interpolated between the passed rows."""
    places = np.linspace(0, len(values) - 1, count)
    before = places.astype(int).clip(max=len(values) - 2)
    share = (places - before)[:, None, None]
    return values[before] * (1 - share) + values[before + 1] * share


SMOOTH = [smooth(*shape) for shape in ((150, 200), (200, 150), (97, 131), (60, 240))]


def both(graph, data, layout="HWC", **options):
    """Return the outputs of a graph in DALI and torchdali, as arrays."""
    return delivered("nvidia.dali", graph, data, layout), delivered("torchdali", graph, data, layout, **options)


@golden.answered
def delivered(library, graph, data, layout, **options):
    """Return the outputs of a graph."""
    package, fn, types = (importlib.import_module(library + part) for part in ("", ".fn", ".types"))

    @package.pipeline_def(batch_size=len(data), num_threads=2, device_id=None)
    def pipe():
        return graph(fn, types, fn.external_source(lambda: data, layout=layout))

    made = pipe(**options)
    made.build()
    (out,) = made.run()
    return [np.array(out.at(i)) for i in range(len(data))]


def assert_same_bytes(graph, data, layout="HWC", **options):
    assert hashes("torchdali", graph, data, layout, exact=True, **options) == hashes("nvidia.dali", graph, data, layout)


@golden.answered
def hashes(library, graph, data, layout, **options):
    """Return dtype, shape and a hash of each sample: the bytes are too large to store."""
    samples = delivered.__wrapped__(library, graph, data, layout, **options)
    return [(x.dtype.str, x.shape, hashlib.sha256(x.tobytes()).hexdigest()) for x in samples]


EXACT = {
    "smaller": {"size": [90, 77]},
    "larger": {"size": [310, 333]},
    "smaller and larger": {"size": [41, 300]},
    "larger and smaller": {"size": [300, 41]},
    "without antialiasing": {"size": [90, 77], "antialias": False},
    "whole factors": {"size": [50, 50], "antialias": False},
    "mirrored": {"size": [90, -77]},
    "a region": {"size": [60, 70], "roi_start": [3.0, 5.0], "roi_end": [51.0, 93.0]},
    "one row less": {"resize_y": 96},
    "to float": {"size": [90, 77], "dtype": "FLOAT"},
}


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("case", EXACT)
@pytest.mark.parametrize("data", [SMOOTH, [x[..., :1].copy() for x in SMOOTH]], ids=["RGB", "gray"])
def test_exact_resize_has_dalis_bytes(data, case, interpolation):
    given = dict(EXACT[case])

    def graph(fn, types, image):
        kind = {"dtype": getattr(types, given["dtype"])} if "dtype" in given else {}
        interp = getattr(types, f"INTERP_{interpolation}")
        return fn.resize(image, **{**given, **kind}, interp_type=interp)

    assert_same_bytes(graph, data)


@pytest.mark.parametrize("kind", ["INT16", "UINT16", "FLOAT"])
def test_exact_resize_of_other_types(kind):
    def graph(fn, types, image):
        return fn.resize(fn.cast(image, dtype=getattr(types, kind)), size=[90, 77])

    assert_same_bytes(graph, SMOOTH)


@pytest.mark.slow  # one starts processes
@pytest.mark.parametrize("options", [{"num_processes": 1}, {"num_processes": 2}, {"exec_async": False}])
def test_exact_ways_that_are_fused(options):
    """Crop a resized image, with one operator or two, in threads, processes and the user's thread."""
    def graph(fn, types, image):
        resized = fn.resize(image, size=[80, 100])
        plain = {"mean": [0.0] * 3, "std": [1.0] * 3}
        return fn.crop_mirror_normalize(resized, crop=[64, 72], mirror=1, **plain)

    assert_same_bytes(graph, SMOOTH, **options)


@pytest.mark.parametrize("size", [[32, 200], [200, 48], [128, 24]], ids=str)
@pytest.mark.parametrize(("shrinking", "growing"), [("LINEAR", "NN"), ("NN", "LINEAR"), ("CUBIC", "NN"), ("NN", "CUBIC")])
def test_exact_filters_that_differ(shrinking, growing, size):
    """Halves of the sums reveal the rounding of the last axis."""
    data = [np.random.default_rng(i).integers(0, 256, (64, 96, 3), np.uint8) for i in range(3)]

    def graph(fn, types, image):
        filters = {"min_filter": getattr(types, f"INTERP_{shrinking}"), "mag_filter": getattr(types, f"INTERP_{growing}")}
        return fn.resize(image, size=size, antialias=False, **filters)

    assert_same_bytes(graph, data)


def test_exact_random_window():
    """Use the whole image, so that DALI's generator and ours draw the same window."""
    data = [smooth(120, 160)] * 4

    def graph(fn, types, image):
        return fn.random_resized_crop(
            image, size=[50, 60], random_area=[1.0, 1.0], random_aspect_ratio=[160 / 120, 160 / 120]
        )

    assert_same_bytes(graph, data)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("interpolation", "share"),
    [("NN", 0.0), ("LINEAR", 0.25), ("TRIANGULAR", 0.25), ("CUBIC", 0.0005), ("LANCZOS3", 0.001), ("GAUSSIAN", 0.002)],
)
@pytest.mark.parametrize("case", ["smaller", "larger", "smaller and larger", "without antialiasing"])
def test_bytes_that_are_not_exact(case, interpolation, share):
    """Check the shares that docs/differences.md states."""

    def graph(fn, types, image):
        return fn.resize(image, **EXACT[case], interp_type=getattr(types, f"INTERP_{interpolation}"))

    theirs, ours = (np.concatenate([x.ravel() for x in found]).astype(int) for found in both(graph, SMOOTH))
    assert np.abs(theirs - ours).max() <= (share > 0)
    assert (theirs != ours).mean() <= share


@pytest.mark.parity
@pytest.mark.parametrize("way", ["random window", "resize", "resize and crop"])
def test_exact_ways_of_decoders(way):
    torchvision_io = pytest.importorskip("torchvision.io", reason="encodes the JPEGs")
    data = [torchvision_io.encode_jpeg(torch.from_numpy(x).movedim(-1, 0)).numpy() for x in SMOOTH[:1] * 3]

    def graph(fn, types, encoded):
        image = fn.decoders.image(encoded)
        if way == "random window":
            aspect = [200 / 150, 200 / 150]
            return fn.random_resized_crop(image, size=[50, 60], random_area=[1.0, 1.0], random_aspect_ratio=aspect)
        image = fn.resize(image, size=[80, 100])
        plain = {"mean": [0.0] * 3, "std": [1.0] * 3}
        return image if way == "resize" else fn.crop_mirror_normalize(image, crop=[64, 72], mirror=1, **plain)

    assert_same_bytes(graph, data, layout=None)


@pytest.mark.parametrize("extent", [4096, 4097, 6500, 20_000])
@pytest.mark.parametrize("filter", ["LINEAR", "CUBIC", "LANCZOS3", "GAUSSIAN"])
def test_far_factors(extent, filter):
    image = np.random.default_rng(1).integers(0, 256, (1, extent, 1)).astype(np.uint8)

    def graph(fn, types, source):
        return fn.resize(source, size=(1, 1), interp_type=getattr(types, f"INTERP_{filter}"), dtype=types.FLOAT)

    ((theirs,), (ours,)) = both(graph, [image])
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-3)
