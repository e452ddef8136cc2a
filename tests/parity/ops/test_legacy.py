"""Deprecated operators against the real DALI: results, and where it warns too."""

from __future__ import annotations

import importlib
import inspect
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.check import PerSample, check, compare, dali, pipeline
from tests.helpers.encoded_images import encoded, picture
from torchdali import ops as ours
from torchdali.declaration.registry import registry

pytestmark = [pytest.mark.golden, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

EXCEPTIONS = {
    "fast_resize_crop_mirror": "channel-first layouts: DALI's mirror=1 turns the image upside down and 2 does "
    "nothing; here 1 mirrors rows and 2 columns in every layout",
}

LIBRARIES = ("torchdali", "nvidia.dali")
EACH = ("torchdali", pytest.param("nvidia.dali", marks=pytest.mark.parity))
IMAGES = [picture(20, 30), picture(25, 22)]
JPEGS = [np.frombuffer(encoded(picture(), "jpeg"), np.uint8)] * 2

FAST: list[dict[str, Any]] = [
    {"size": [10, 12], "crop": [6, 7]},
    {"size": [10, 12], "crop": [6, 7], "mirror": 1},
    {"size": [10, 12], "crop": [6, 7], "antialias": True},
    {"resize_shorter": 7.0, "crop": [5, 5], "crop_pos_x": 0.0, "mirror": PerSample([1, 2])},
    {"resize_x": 9.0, "crop": [5, 5], "interp_type": "types.INTERP_CUBIC"},
    {"resize_longer": 47.0, "crop_h": 20.0, "crop_w": 12.0, "interp_type": "types.INTERP_NN"},
]


@pytest.mark.parametrize("arguments", FAST, ids=lambda arguments: " ".join(arguments))
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_fast_resize_crop_mirror(layout: str, dtype: str, arguments: dict[str, Any]) -> None:
    if layout == "CHW":
        arguments = {key: value for key, value in arguments.items() if key != "mirror"}
    images = [
        i.astype(dtype) if layout == "HWC" else i.astype(dtype).transpose(2, 0, 1).copy()
        for i in IMAGES
    ]
    level, relative = (0.01, 1e-4) if dtype == "float32" else (1.0, 0.0)
    check("fast_resize_crop_mirror", [images], arguments, layout, level=level, relative=relative)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("image_decoder", {}),
        ("image_decoder_crop", {"crop": [9, 8]}),
        ("image_decoder_slice", {"start": [1, 2], "shape": [6, 7]}),
        ("experimental.decoders.image", {"output_type": "types.GRAY"}),
        ("experimental.decoders.image_crop", {"crop": [9, 8]}),
        ("experimental.decoders.image_slice", {"start": [1, 2], "shape": [6, 7]}),
        ("experimental.peek_image_shape", {}),
    ],
)
def test_decoders(name: str, arguments: dict[str, Any]) -> None:
    check(name, [JPEGS], arguments)


def test_filter_and_tensor_resize() -> None:
    kernel = np.arange(9, dtype=np.float32).reshape(3, 3) / 36
    check("experimental.filter", [IMAGES, [kernel] * 2], {}, ["HWC", None], level=1.0)
    check("experimental.tensor_resize", [IMAGES], {"sizes": [7, 9, 3]}, level=1.0)


def test_transform_translation() -> None:
    moves = PerSample([np.array([1, 2], np.float32), np.array([3, 4], np.float32)])
    check("transform_translation", [], {"offset": moves})


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("coin_flip", {"probability": 1.0}), ("uniform", {"values": [2.5]}), ("normal_distribution", {"stddev": 0.0, "mean": 2.0})],
)  # fmt: skip
def test_distributions(name: str, arguments: dict[str, Any]) -> None:
    shape = PerSample([np.array([3], np.int32), np.array([5], np.int32)])
    check(name, [], {**arguments, "shape": shape})


@pytest.mark.parametrize("library", EACH)
@pytest.mark.parametrize(
    ("name", "inputs", "arguments"),
    [
        ("image_decoder", [JPEGS], {}),
        ("crop", [IMAGES], {"crop": [3, 3], "output_dtype": "types.UINT8"}),
        ("crop", [IMAGES], {"crop": [3, 3], "image_type": "types.RGB"}),
        ("slice", [IMAGES], {"start": [1, 1], "shape": [2, 2], "output_dtype": "types.UINT8"}),
        ("rotate", [IMAGES], {"angle": 30.0, "output_dtype": "types.UINT8"}),
        ("resize", [IMAGES], {"size": [3, 3], "image_type": "types.RGB"}),
        ("decoders.image", [JPEGS], {"split_stages": True}),
        ("decoders.image", [JPEGS], {"use_chunk_allocator": True}),
        ("decoders.image", [JPEGS], {"memory_stats": True}),
        ("lookup_table", [IMAGES], {"keys": [1], "values": [2.0], "output_dtype": "types.UINT8"}),
        ("crop", [IMAGES], {"crop": [3, 3], "seed": 5}),
        ("shapes", [IMAGES], {}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_both_warn(library: str, name: str, inputs: Any, arguments: dict[str, Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pipeline(library, name, inputs, arguments, "HWC" if inputs is IMAGES else None)
    assert [w for w in caught if issubclass(w.category, DeprecationWarning)]


@pytest.mark.parametrize("library", EACH)
def test_both_refuse_an_old_argument_beside_the_new_one(library: str) -> None:
    arguments = {"crop": [3, 3], "dtype": "types.UINT8", "output_dtype": "types.UINT8"}
    with pytest.raises(TypeError):
        pipeline(library, "crop", [IMAGES], arguments, "HWC")


@pytest.mark.parametrize("library", EACH)
def test_compose(library: str) -> None:
    package, fn, ops, types = (
        importlib.import_module(library + part) for part in ("", ".fn", ".ops", ".types")
    )
    pipe = package.Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        images = fn.external_source(source=lambda: IMAGES, layout="HWC")
        both = ops.Compose([ops.Crop(crop=[4, 5]), ops.Cast(dtype=types.INT32), ops.Copy()])
        pipe.set_outputs(both(images))
    pipe.build()
    (found,) = pipe.run()
    assert found.layout() == "HWC" and np.array(found.at(1)).dtype == np.int32
    wanted = dali("crop", [IMAGES], {"crop": [4, 5]}, "HWC")[0].samples
    assert np.array_equal(np.array(found.at(1)), wanted[1])


@pytest.mark.parity
@pytest.mark.parametrize("name", ["cpu_ops", "gpu_ops", "mixed_ops"])
def test_operators_by_device(name: str) -> None:
    from nvidia.dali import ops as theirs

    # Read for the GPU by GPUDirect there; here a copy of what the CPU reads, by `.gpu()`.
    cpu_only = {"NumpyReader", "readers__Numpy"}
    here = {operator.schema_name for operator in registry.values()} - cpu_only
    assert getattr(theirs, name)() & here <= getattr(ours, name)(), "what runs there runs here"


# ---------------------------------------------------------------- frames in folders


@pytest.mark.parity
@pytest.mark.parametrize(
    "arguments",
    [
        {"sequence_length": 1},
        {"sequence_length": 3},
        {"sequence_length": 3, "step": 3},
        {"sequence_length": 2, "stride": 2},
        {"sequence_length": 2, "stride": 3, "step": 2},
        {"sequence_length": 2, "image_type": "GRAY"},
        {"sequence_length": 2, "image_type": "BGR"},
        {"sequence_length": 3, "num_shards": 2, "shard_id": 1, "stick_to_shard": True},
        {"sequence_length": 7, "dont_use_mmap": True},
    ],
    ids=str,
)
def test_sequences(tmp_path: Path, arguments: dict[str, Any]) -> None:
    random = np.random.default_rng(3)
    for folder, names in {"b": range(5), "a": ("x2", "x10", "X1", "z", "y"), "c": range(9)}.items():
        (tmp_path / folder).mkdir()
        for name in names:
            pixels = random.integers(0, 256, (8, 10, 3)).astype(np.uint8)
            (tmp_path / folder / f"{name}.png").write_bytes(encoded(pixels, "png"))
    (tmp_path / "a" / "notes.txt").write_text("no image")
    (tmp_path / "a" / ".hidden.png").write_bytes(b"")
    (tmp_path / "top.png").write_bytes(b"")
    found = []
    for library in LIBRARIES:
        package, fn, types = (
            importlib.import_module(library + part) for part in ("", ".fn", ".types")
        )
        given = dict(arguments)
        if "image_type" in given:
            given["image_type"] = getattr(types, given["image_type"])
        pipe = package.Pipeline(batch_size=2, num_threads=1, device_id=None)
        with pipe:
            pipe.set_outputs(fn.readers.sequence(file_root=str(tmp_path), name="R", **given))
        pipe.build()
        size = pipe.reader_meta("R")["epoch_size"]
        batches = [pipe.run()[0] for _ in range(-(-size // 2))]
        found.append((size, [(b.layout(), np.array(b.at(i))) for b in batches for i in range(2)]))
    (ours, batches), (theirs, wanted) = found
    assert ours == theirs
    for (layout, sample), (other, expected) in zip(batches, wanted, strict=True):
        assert layout == other == "FHWC"
        np.testing.assert_array_equal(sample, expected)


# ---------------------------------------------------------------- defaults

NOT_GIVEN = {
    "index_path": "required there; here an index is made where none is given",
    "reference": "the largest value of the sample where it is not given",
    "reference_power": "the largest power of the sample where it is not given",
    "roi_axes": "all axes where it is not given",
    "freq_x": "pi / 64, of which DALI shows six digits",
    "freq_y": "pi / 64, of which DALI shows six digits",
    "contrast_center": "the middle of the input's type where it is not given",
    "mag_filter": "interp_type where it is not given",
    "min_filter": "interp_type where it is not given",
    "mode": "an error beside resize_shorter and resize_longer, even as 'default'",
    "resize_longer": "one of the ways of giving the size, even as 0",
    "resize_shorter": "one of the ways of giving the size, even as 0",
    "resize_x": "one of the ways of giving the size, even as 0",
    "resize_y": "one of the ways of giving the size, even as 0",
    "resize_z": "one of the ways of giving the size, even as 0",
}
"""Arguments whose default DALI shows as a value, though it does something else when that value is given."""

SHOWN_OTHERWISE = {
    (
        "dl_tensor_python_function",
        "batch_processing",
    ): "DALI shows False and calls the function with lists",
}


@pytest.mark.parity
def test_signatures_show_the_defaults_that_dali_shows() -> None:
    from nvidia.dali import fn as theirs

    different = set()
    for name, operator in registry.items():
        function = theirs
        for part in name.split("."):
            function = getattr(function, part, None)
        if function is None or operator.hidden:
            continue
        shown = inspect.signature(operator.function).parameters
        theirs_shown = inspect.signature(function).parameters
        different |= {
            (name, key)
            for key in shown.keys() & theirs_shown.keys()
            if shown[key].kind is inspect.Parameter.KEYWORD_ONLY
            and str(shown[key].default) != str(theirs_shown[key].default)
        }
    assert {argument for _, argument in different - SHOWN_OTHERWISE.keys()} == NOT_GIVEN.keys()
    assert different >= SHOWN_OTHERWISE.keys()


WAYS: list[dict[str, Any]] = [
    {},
    {"size": [20.0, 20.0]},
    {"resize_x": 20.0},
    {"resize_x": 20.0, "resize_y": 10.0},
    {"resize_shorter": 20.0},
    {"resize_longer": 20.0},
]
EXPLICIT: list[tuple[str, dict[str, Any]]] = [
    ("resize", {**way, name: value})
    for way in WAYS
    for name, value in {
        "resize_x": 0.0, "resize_y": 0.0, "resize_z": 0.0, "resize_shorter": 0.0, "resize_longer": 0.0,
        "mode": "default",
    }.items()
    if name not in way
]  # fmt: skip
EXPLICIT += [
    ("resize", {"size": [9.0, 9.0], "interp_type": "types.INTERP_CUBIC", "min_filter": "types.INTERP_LINEAR"}),
    ("resize", {"size": [60.0, 60.0], "interp_type": "types.INTERP_CUBIC", "mag_filter": "types.INTERP_LINEAR"}),
    ("resize", {"size": [60.0, 60.0], "interp_type": "types.INTERP_LINEAR", "mag_filter": "types.INTERP_CUBIC"}),
    ("contrast", {"contrast": 2.0, "contrast_center": 0.5}),
    ("brightness_contrast", {"contrast": 2.0, "contrast_center": 0.5}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "arguments"),
    EXPLICIT,
    ids=lambda value: " ".join(value) if isinstance(value, dict) else value,
)
def test_giving_the_default_that_dali_shows(name: str, arguments: dict[str, Any]) -> None:
    found: dict[str, Any] = {}
    for library in LIBRARIES:
        try:
            found[library] = pipeline(library, name, [IMAGES], arguments, "HWC")
        except RuntimeError:
            found[library] = "refused"
    ours, theirs = (found[library] for library in LIBRARIES)
    if "refused" in (ours, theirs):
        assert ours == theirs
    else:
        compare(ours, theirs, level=1.0)
