"""Old names of operators and arguments: they work, warn on the user's line where DALI warns, and equal the new ones."""

from __future__ import annotations

import importlib
import inspect
import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.check import PerSample, check, compare, dali, pipeline
from tests.helpers import encoded_images
from tests.helpers.encoded_images import encoded, smooth_image
from tests.helpers.own_process import in_own_process
from torchdali import Pipeline, fn, ops, types
from torchdali.backend import GetSchema
from torchdali.declaration.registry import Operator, registry
from torchdali.tensors import TensorList

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

IMAGE = torch.from_numpy(encoded_images.RGB)
JPEG = encoded_images.tensor(encoded_images.encoded(encoded_images.RGB, "jpeg"))

ALIASES: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "coin_flip": ("random.coin_flip", [], {"seed": 7}),
    "normal_distribution": ("random.normal", [], {"mean": 3.0, "shape": [4], "seed": 7}),
    "uniform": ("random.uniform", [], {"range": [2.0, 5.0], "shape": [4], "seed": 7}),
    "image_decoder": ("decoders.image", [JPEG], {"output_type": types.GRAY}),
    "image_decoder_crop": ("decoders.image_crop", [JPEG], {"crop": [9, 8]}),
    "image_decoder_random_crop": ("decoders.image_random_crop", [JPEG], {"seed": 5}),
    "image_decoder_slice": ("decoders.image_slice", [JPEG], {"start": [1, 2], "shape": [6, 7]}),
    "experimental.decoders.image": ("decoders.image", [JPEG], {}),
    "experimental.decoders.image_crop": ("decoders.image_crop", [JPEG], {"crop": [9, 8]}),
    "experimental.decoders.image_random_crop": ("decoders.image_random_crop", [JPEG], {"seed": 5}),
    "experimental.decoders.image_slice": (
        "decoders.image_slice", [JPEG], {"start": [1, 2], "shape": [6, 7]},
    ),
    "experimental.debayer": ("debayer", [IMAGE[:44, :60, 0].contiguous()], {"blue_position": [0, 1]}),
    "experimental.equalize": ("equalize", [IMAGE], {}),
    "experimental.filter": ("filter", [IMAGE, torch.full((3, 3), 1 / 9)], {}),
    "experimental.peek_image_shape": ("peek_image_shape", [JPEG], {}),
    "experimental.audio_resample": ("audio_resample", [torch.linspace(-1, 1, 30)], {"scale": 2.0}),
    "experimental.tensor_resize": ("tensor_resize", [IMAGE], {"sizes": [7, 9, 3]}),
    "transform_translation": ("transforms.translation", [], {"offset": [1.0, 2.0]}),
}  # fmt: skip


def find(name: str, where: Any = fn) -> Any:
    for part in name.split("."):
        where = getattr(where, part)
    return where


def outcome(name: str, inputs: list[Any], arguments: dict[str, Any]) -> Any:
    """Run one operator in a pipeline, on a batch of two."""
    with Pipeline(batch_size=2, num_threads=1, device_id=None, seed=1) as pipe:
        nodes = [fn.external_source(source=itertools.repeat([value] * 2)) for value in inputs]
        pipe.set_outputs(find(name)(*nodes, **arguments))
    (result,) = pipe.run()
    pipe.close()
    return [np.asarray(result.at(i)) for i in range(2)]


@pytest.mark.parametrize("old", ALIASES)
def test_an_old_name_warns_and_equals_the_new_one(old: str) -> None:
    new, inputs, arguments = ALIASES[old]
    with pytest.warns(DeprecationWarning, match=f"'{old}' is deprecated: use {new}") as warned:
        found = outcome(old, inputs, arguments)
    assert len(warned) == 1 and warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wanted = outcome(new, inputs, arguments)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_alias_is_tested_and_has_the_arguments_of_its_operator() -> None:
    aliases = {o.name: o for o in registry.values() if o.replacement in registry and _same_implementation(o)}
    read = {name for name, o in aliases.items() if o.replacement.startswith(("readers.", "decoders.audio", "decoders.video", "decoders.inflate"))}
    assert aliases.keys() - read == ALIASES.keys()  # files, streams, optional packages: see their own tests
    for name, operator in aliases.items():
        assert operator.schema.arguments == registry[operator.replacement].schema.arguments, name


def _same_implementation(operator: Operator) -> bool:
    return operator.implementation is registry[operator.replacement].implementation


def test_file_reader() -> None:
    with Pipeline(batch_size=1, num_threads=1, device_id=None) as pipe:
        with pytest.warns(DeprecationWarning, match="use readers.file"):
            content, label = fn.file_reader(files=[__file__], labels=[3], name="Reader")
        pipe.set_outputs(content, label)
    content, label = pipe.run()
    assert pipe.reader_meta("Reader")["epoch_size"] == 1
    assert label.as_array().tolist() == [[3]]
    with open(__file__, "rb") as file:
        assert bytes(np.asarray(content.at(0))) == file.read()
    pipe.close()


def test_sequence_reader(tmp_path: Path) -> None:
    frames(tmp_path, {"a": [1, 2], "b": [3]})
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe, pytest.warns(DeprecationWarning, match="use readers.sequence"):
        pipe.set_outputs(fn.sequence_reader(file_root=str(tmp_path), sequence_length=1))
    assert [int(np.asarray(pipe.run()[0].at(0))[0, 0, 0, 0]) for _ in range(3)] == [1, 2, 3]
    pipe.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_sequences_reach_the_last_frame(tmp_path: Path) -> None:
    frames(tmp_path, {"a": [1, 2, 3, 4, 5]})
    with Pipeline(batch_size=3, num_threads=1, device_id=None) as pipe:
        pipe.set_outputs(fn.readers.sequence(file_root=str(tmp_path), sequence_length=2, stride=2))
    (batch,) = pipe.run()
    assert [np.asarray(sample)[:, 0, 0, 0].tolist() for sample in batch.samples()] == [[1, 3], [2, 4], [3, 5]]
    pipe.close()


def frames(root: Path, folders: dict[str, list[int]], shape: tuple[int, ...] = (8, 10, 3)) -> None:
    """Write one image for each gray, in the folder of its video."""
    for folder, values in folders.items():
        (root / folder).mkdir()
        for number, value in enumerate(values):
            pixels = np.full(shape, value, np.uint8)
            (root / folder / f"{number:03}.png").write_bytes(encoded_images.encoded(pixels, "png"))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"sequence_length": 3}, "no folder has enough frames"),
        ({"sequence_length": 0}, "sequence_length must be positive, got 0"),
        ({"sequence_length": 1, "step": 0}, "step must be positive, got 0"),
        ({"sequence_length": 1, "stride": -1}, "stride must be positive, got -1"),
        ({"sequence_length": 1, "image_type": types.YCbCr}, "got YCbCr"),
        ({"sequence_length": 2}, "the frames of a sequence must have the same shape"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_sequences_that_cannot_be_read(tmp_path: Path, arguments: Any, error: str) -> None:
    frames(tmp_path, {"a": [1, 2]})
    (tmp_path / "a" / "001.png").write_bytes(encoded_images.encoded(encoded_images.RGB, "png"))
    with Pipeline(batch_size=1, num_threads=1, device_id=None) as pipe:
        pipe.set_outputs(fn.readers.sequence(file_root=str(tmp_path), **arguments))
    with pytest.raises(RuntimeError, match=error):
        pipe.run()
    pipe.close()


def test_a_class_warns_where_it_is_called() -> None:
    with Pipeline(batch_size=2, num_threads=1, device_id=None):
        flip = ops.CoinFlip(probability=1.0)
        with pytest.warns(DeprecationWarning, match="use random.coin_flip") as warned:
            flip()
    assert warned[0].filename == __file__


def test_old_arguments_warn_where_they_are_passed() -> None:
    with pytest.warns(DeprecationWarning, match="`output_dtype`.*Use `dtype`") as warned:
        made = fn.crop(IMAGE, crop=[3, 3], output_dtype=types.FLOAT)
    assert made.dtype is torch.float32
    assert warned[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="`image_type` is no longer used") as warned:
        fn.crop(IMAGE, crop=[3, 3], image_type=types.RGB)
    assert warned[0].filename == __file__


def test_an_old_argument_with_the_new_one_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"unexpected 'output_dtype'.*old name of 'dtype'"):
        fn.crop(IMAGE, crop=[3, 3], dtype=types.FLOAT, output_dtype=types.FLOAT)


# ---------------------------------------------------------------- hidden arguments


def test_a_random_state_replaces_the_seed() -> None:
    shape = TensorList.from_samples([torch.zeros(4)] * 3)

    def draw(state: Any, **arguments: Any) -> Any:
        return fn.random.uniform(shape, _random_state=state, **arguments).as_array()

    state = np.arange(7, dtype=np.uint32)
    np.testing.assert_array_equal(draw(state), draw(state, seed=5))
    states = TensorList.from_samples([torch.arange(7)] + [torch.ones(7)] * 2)
    np.testing.assert_array_equal(draw(state), draw(states), "the first sample's counts")
    assert not np.array_equal(draw(state), draw(state + 1))
    assert len(np.unique(draw(state))) == 12, "samples differ"


def test_a_random_state_is_rejected_where_it_cannot_work() -> None:
    with pytest.raises(RuntimeError, match="at least 7 numbers"):
        fn.random.uniform(torch.zeros(4), _random_state=np.arange(6))
    with Pipeline(batch_size=1, num_threads=1, device_id=None):
        state = fn.constant(idata=[1] * 7)
        with pytest.raises(TypeError, match="pass a seed"):
            fn.random.uniform(_random_state=state)
    with pytest.raises(KeyError, match="_random_state"):
        fn.flip(IMAGE, _random_state=np.arange(7))


def test_a_permutation_is_as_long_as_its_scope() -> None:
    scope = TensorList.from_samples([torch.tensor(i) for i in range(5)])
    assert sorted(fn.batch_permutation(_scope=scope).as_array().tolist()) == list(range(5))


def test_schemas_know_hidden_arguments() -> None:
    assert GetSchema("random__Uniform").HasArgument("_random_state")
    assert not GetSchema("Flip").HasArgument("_random_state")
    permutation = GetSchema("BatchPermutation")
    assert permutation.HasArgument("_scope") and "_scope" not in permutation.GetArgumentNames()


# ---------------------------------------------------------------- ops.Compose and the lists of operators


def test_compose_applies_one_after_another() -> None:
    chain = ops.Compose([ops.Resize(size=[6, 8]), ops.Cast(dtype=types.FLOAT)])
    assert torch.equal(chain(IMAGE), fn.resize(IMAGE, size=[6, 8]).float())


def test_compose_forwards_all_outputs() -> None:
    with Pipeline(batch_size=2, num_threads=1, device_id=None) as pipe:
        images = fn.external_source(source=lambda: [IMAGE] * 2, layout="HWC")
        second = ops.Compose([ops.Resize(size=[6, 8], save_attrs=True), lambda image, size: size])
        pipe.set_outputs(second(images))
    assert pipe.run()[0].as_array().tolist() == [list(IMAGE.shape[:2])] * 2
    pipe.close()


def test_compose_of_one_operator_equals_the_operator() -> None:
    only = ops.Copy()
    assert ops.Compose([only]) is only


@pytest.mark.parametrize(("chain", "error"), [([], ValueError), ([ops.Copy(), 3], TypeError)])
def test_compose_rejects_objects_that_are_not_callable(chain: list[Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        ops.Compose(chain)


def test_operators_by_device() -> None:
    assert {"Resize", "readers__File", "decoders__Image", "CoinFlip"} <= ops.cpu_ops()
    assert "Resize" in ops.gpu_ops() and "readers__File" not in ops.gpu_ops()
    assert {"decoders__Image", "ImageDecoder"} <= ops.mixed_ops()
    assert "Resize" not in ops.mixed_ops()


# --------------------------------------------------------- compared with the real DALI


EXCEPTIONS = {
    "fast_resize_crop_mirror": "with channel-first layouts, DALI's `mirror=1` turns the image upside down and "
    "`mirror=2` does nothing; here 1 mirrors horizontally and 2 vertically in every layout",
}

LIBRARIES = ("torchdali", "nvidia.dali")
EACH = ("torchdali", pytest.param("nvidia.dali", marks=pytest.mark.parity))
IMAGES = [smooth_image(20, 30), smooth_image(25, 22)]
JPEGS = [np.frombuffer(encoded(smooth_image(), "jpeg"), np.uint8)] * 2

FAST: list[dict[str, Any]] = [
    {"size": [10, 12], "crop": [6, 7]},
    {"size": [10, 12], "crop": [6, 7], "mirror": 1},
    {"size": [10, 12], "crop": [6, 7], "antialias": True},
    {"resize_shorter": 7.0, "crop": [5, 5], "crop_pos_x": 0.0, "mirror": PerSample([1, 2])},
    {"resize_x": 9.0, "crop": [5, 5], "interp_type": "types.INTERP_CUBIC"},
    {"resize_longer": 47.0, "crop_h": 20.0, "crop_w": 12.0, "interp_type": "types.INTERP_NN"},
]


@pytest.mark.golden
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


@pytest.mark.golden
def test_filter_and_tensor_resize() -> None:
    kernel = np.arange(9, dtype=np.float32).reshape(3, 3) / 36
    check("experimental.filter", [IMAGES, [kernel] * 2], {}, ["HWC", None], level=1.0)
    check("experimental.tensor_resize", [IMAGES], {"sizes": [7, 9, 3]}, level=1.0)


@pytest.mark.golden
def test_transform_translation() -> None:
    moves = PerSample([np.array([1, 2], np.float32), np.array([3, 4], np.float32)])
    check("transform_translation", [], {"offset": moves})


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("coin_flip", {"probability": 1.0}), ("uniform", {"values": [2.5]}), ("normal_distribution", {"stddev": 0.0, "mean": 2.0})],
)  # fmt: skip
def test_distributions(name: str, arguments: dict[str, Any]) -> None:
    shape = PerSample([np.array([3], np.int32), np.array([5], np.int32)])
    check(name, [], {**arguments, "shape": shape})


@pytest.mark.golden
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


@pytest.mark.golden
@pytest.mark.parametrize("library", EACH)
def test_both_reject_an_old_argument_with_the_new_one(library: str) -> None:
    arguments = {"crop": [3, 3], "dtype": "types.UINT8", "output_dtype": "types.UINT8"}
    with pytest.raises(TypeError):
        pipeline(library, "crop", [IMAGES], arguments, "HWC")


@pytest.mark.golden
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
def test_operators_by_device_of_dali(name: str) -> None:
    from nvidia.dali import ops as theirs

    # DALI reads for the GPU by GPUDirect; torchdali copies the data that the CPU reads, by `.gpu()`.
    cpu_only = {"NumpyReader", "readers__Numpy"}
    here = {operator.schema_name for operator in registry.values()} - cpu_only
    assert getattr(theirs, name)() & here <= getattr(ops, name)(), "what runs there runs here"


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


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "arguments"),
    EXPLICIT,
    ids=lambda value: " ".join(value) if isinstance(value, dict) else value,
)
def test_passing_the_default_that_dali_shows(name: str, arguments: dict[str, Any]) -> None:
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


@pytest.mark.slow
def test_schemas_exist_without_another_import() -> None:
    assert in_own_process("torchdali.backend", "GetSchema('Resize').Name()", OMP_NUM_THREADS="1") == "Resize"
