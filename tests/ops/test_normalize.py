"""`normalize` against the real DALI, and axes inferred from the shape of `mean` or `stddev`."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest

from tests import golden
from tests.check import PerSample, check
from torchdali import fn, pipeline_def, types

IMAGES = [np.random.default_rng(i).integers(0, 255, (4 + i, 5, 3)).astype(np.uint8) for i in range(3)]
OF_CHANNELS = np.float32([[[10, 20, 30]]])
OF_PLACES = np.arange(1, 16, dtype=np.float32).reshape(1, 5, 3)
ONE = np.float32([7])

CASES = [
    ({"mean": OF_CHANNELS}, (0, 1)),
    ({"stddev": OF_CHANNELS}, (0, 1)),
    ({"mean": OF_CHANNELS, "stddev": OF_CHANNELS}, (0, 1)),
    ({"mean": OF_CHANNELS, "stddev": 2.0}, (0, 1)),
    ({"mean": 3.0, "stddev": OF_CHANNELS}, (0, 1)),
    ({"mean": OF_CHANNELS.astype(np.float64)}, (0, 1)),
    ({"mean": OF_PLACES}, (0,)),
    ({"mean": OF_PLACES, "ddof": 1, "epsilon": 2.0, "scale": 3.0, "shift": 1.0}, (0,)),
    ({"stddev": OF_PLACES, "epsilon": 2.0, "scale": 3.0, "shift": 1.0}, (0,)),
    ({"mean": ONE}, (0, 1, 2)),
    ({"mean": ONE.reshape(1, 1, 1), "stddev": ONE}, (0, 1, 2)),
    ({"mean": OF_CHANNELS, "axes": [0, 1]}, (0, 1)),
    ({"mean": OF_CHANNELS, "axis_names": "HW"}, (0, 1)),
]


def expected(image, over, mean=None, stddev=None, ddof=0, epsilon=0.0, scale=1.0, shift=0.0, **_):
    image = image.astype(np.float64)
    center = image.mean(over, keepdims=True) if mean is None else mean
    count = np.prod([image.shape[axis] for axis in over]) - ddof
    variance = ((image - center) ** 2).sum(over, keepdims=True) / count if stddev is None else np.square(stddev)
    return (image - center) / np.sqrt(variance + epsilon) * scale + shift


def normalized(images, **arguments):
    @pipeline_def(batch_size=3, num_threads=2, device_id=None)
    def define():
        nodes = {
            name: fn.external_source(source=itertools.repeat(value)) if isinstance(value, list) else value
            for name, value in arguments.items()
            if name not in ("axes",)
        }
        axes = {"axes": arguments["axes"]} if "axes" in arguments else {}
        return fn.normalize(fn.external_source(source=itertools.repeat(images), layout="HWC"), **nodes, **axes)

    return [np.asarray(sample) for sample in define().run()[0].samples()]


@pytest.mark.parametrize("images", [IMAGES, [IMAGES[0]] * 3], ids=["ragged", "of one shape"])
@pytest.mark.parametrize(("arguments", "axes"), CASES)
def test_axes_of_extent_one_are_inferred(images, arguments, axes):
    for made, image in zip(normalized(images, **arguments), images, strict=True):
        assert np.allclose(made, expected(image, axes, **arguments), atol=2e-3)


def test_an_array_for_each_sample():
    means = [OF_CHANNELS * i for i in (1, 2, 3)]
    for made, image, mean in zip(normalized(IMAGES, mean=means), IMAGES, means, strict=True):
        assert np.allclose(made, expected(image, (0, 1), mean=mean), atol=2e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mean": OF_CHANNELS, "stddev": OF_PLACES}, "must have the same shape"),
        ({"mean": np.float32([1, 2, 3])}, "must have 3 axes like the data"),
        ({"mean": np.ones((2, 1, 1), np.float32)}, r"must be a number or have the shape \[4, 1, 1\]"),
        ({"mean": OF_CHANNELS, "axes": [0]}, r"\[1, 5, 3\]"),
    ],
)
def test_shapes_that_do_not_fit_are_rejected(arguments, message):
    with pytest.raises(RuntimeError, match=message):
        normalized(IMAGES[:1] * 3, **arguments)


def test_decoded_images_are_normalized_in_one_pass(tmp_path):
    from PIL import Image

    Image.fromarray(IMAGES[0]).save(tmp_path / "a.png")

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define(**axes):
        files, _ = fn.readers.file(files=[str(tmp_path / "a.png")])
        images = fn.decoders.image(files)
        return fn.normalize(images, mean=OF_CHANNELS, stddev=OF_CHANNELS, dtype=types.FLOAT, **axes)

    plain, named = (np.asarray(define(**axes).run()[0].samples()[0]) for axes in ({}, {"axes": [0, 1]}))
    assert np.array_equal(plain, named)


# --------------------------------------------------------- compared with the real DALI


@golden.answered
def delivered(library, arguments):
    package = importlib.import_module(library)
    importlib.import_module(f"{library}.fn")

    def define():
        images = package.fn.external_source(source=itertools.repeat(IMAGES), layout="HWC")
        return package.fn.normalize(images, **arguments)

    pipe = package.pipeline_def(define, batch_size=3, num_threads=1, device_id=None)()
    pipe.build()
    (output,) = pipe.run()
    return [np.array(output.at(i)) for i in range(3)]


@pytest.mark.golden
@pytest.mark.parametrize("arguments", [arguments for arguments, _ in CASES])
def test_dali_takes_the_same_axes(arguments):
    pairs = zip(delivered("nvidia.dali", arguments), delivered("torchdali", arguments), strict=True)
    for theirs, ours in pairs:
        assert np.allclose(ours, theirs, rtol=2e-3, atol=2e-3)


RANDOM = np.random.default_rng(13)
SETTINGS = [
    {},
    {"axes": [0, 1]},
    {"axis_names": "W"},
    {"mean": 3.0},
    {"stddev": 2.0},
    {"mean": 3.0, "stddev": 2.0, "epsilon": 5.0},
    {"mean": PerSample([np.float32([[[1, 2, 3]]]), np.float32([[[20, 30, 40]]])]), "axes": [0, 1]},
    {"axes": [0, 1], "mean": np.float32([[[1, 2, 3]]]), "stddev": np.float32([[[1, 2, 4]]])},
    {"ddof": 1, "scale": 10.0, "shift": 1.0, "epsilon": 0.1},
    {"scale": 64.0, "shift": 128.0, "dtype": "types.UINT8"},
    {"axes": [0, 1], "dtype": "types.INT16", "scale": 100.0},
    {"batch": True},
    {"batch": True, "axes": [0, 1]},
    {"batch": True, "axes": [0, 1], "ddof": 1, "scale": 3.0},
    {"batch": True, "mean": 5.0},
    {"batch": True, "stddev": 5.0, "axes": [0, 1]},
]


def samples(dtype: str) -> list[np.ndarray]:
    shapes = [(5, 7, 3), (4, 9, 3)]
    if dtype == "float32":
        return [RANDOM.normal(size=shape).astype(dtype) for shape in shapes]
    return [
        RANDOM.integers(0 if dtype == "uint8" else -500, 200, shape).astype(dtype)
        for shape in shapes
    ]


@pytest.mark.golden
@pytest.mark.parametrize(
    ("dtype", "layout"), list(itertools.product(("uint8", "int16", "float32"), ("HWC", "CHW")))
)
def test_normalize(dtype, layout):
    for arguments in SETTINGS:
        if layout == "CHW" and isinstance(arguments.get("mean"), (np.ndarray, PerSample)):
            continue  # its shape belongs to HWC
        rounded = "dtype" in arguments
        tolerance = {"level": 1, "share": 0.99} if rounded else {"relative": 1e-4, "level": 2e-5}
        check(
            "normalize",
            [samples(dtype)],
            arguments,
            layout,
            over_batch="batch" in arguments,
            **tolerance,
        )


@pytest.mark.golden
def test_no_deviation_gives_the_shift():
    check("normalize", [[np.full((3,), 3.0, np.float32)] * 2], {"shift": 2.0})


@pytest.mark.golden
@pytest.mark.parametrize("dtype", ["UINT8", "INT8", "UINT16", "INT16", "INT32", "UINT32", "FLOAT"])
@pytest.mark.parametrize("axes", [{}, {"axes": [0, 1]}, {"axes": [2]}], ids=str)
@pytest.mark.parametrize("given", [np.uint8, np.int16, np.float32])
def test_a_batch_of_one_shape(given, axes, dtype):
    """Samples of one tensor: results are written into one tensor of any dtype."""
    images = [RANDOM.integers(0, 200, (5, 8, 3)).astype(given) for _ in range(3)]
    arguments = {"batch": True, "scale": 50.0, "shift": 9.0, "dtype": f"types.{dtype}", **axes}
    check("normalize", [images], arguments, "HWC", over_batch=True, level=1, share=0.99)
