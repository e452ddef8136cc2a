"""Old names of operators and arguments work, warn on the user's line, and mean what the new ones mean."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers import encoded_images
from torchdali import Pipeline, fn, ops, types
from torchdali.backend import GetSchema
from torchdali.declaration.registry import Operator, registry
from torchdali.tensors import TensorList

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
def test_an_old_name_warns_and_gives_what_the_new_one_gives(old: str) -> None:
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
    aliases = {o.name: o for o in registry.values() if o.instead in registry and _same_body(o)}
    read = {name for name, o in aliases.items() if o.instead.startswith(("readers.", "decoders.audio", "decoders.video", "decoders.inflate"))}
    assert aliases.keys() - read == ALIASES.keys()  # files, streams, optional packages: see their own tests
    for name, operator in aliases.items():
        assert operator.schema.arguments == registry[operator.instead].schema.arguments, name


def _same_body(operator: Operator) -> bool:
    return operator.body is registry[operator.instead].body


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
        ({"sequence_length": 3}, "no folder has frames enough"),
        ({"sequence_length": 0}, "sequence_length is 0"),
        ({"sequence_length": 1, "step": 0}, "step is 0"),
        ({"sequence_length": 1, "stride": -1}, "stride is -1"),
        ({"sequence_length": 1, "image_type": types.YCbCr}, "not YCbCr"),
        ({"sequence_length": 2}, "the frames of a sequence have one shape"),
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


def test_old_arguments_warn_where_they_are_given() -> None:
    with pytest.warns(DeprecationWarning, match="`output_dtype`.*Use `dtype`") as warned:
        made = fn.crop(IMAGE, crop=[3, 3], output_dtype=types.FLOAT)
    assert made.dtype is torch.float32
    assert warned[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="`image_type` is no longer used") as warned:
        fn.crop(IMAGE, crop=[3, 3], image_type=types.RGB)
    assert warned[0].filename == __file__


def test_an_old_argument_beside_the_new_one_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"unexpected 'output_dtype'.*old name of 'dtype'"):
        fn.crop(IMAGE, crop=[3, 3], dtype=types.FLOAT, output_dtype=types.FLOAT)


# ---------------------------------------------------------------- hidden arguments


def test_a_random_state_stands_for_the_seed() -> None:
    shape = TensorList.from_samples([torch.zeros(4)] * 3)

    def draw(state: Any, **arguments: Any) -> Any:
        return fn.random.uniform(shape, _random_state=state, **arguments).as_array()

    state = np.arange(7, dtype=np.uint32)
    np.testing.assert_array_equal(draw(state), draw(state, seed=5))
    states = TensorList.from_samples([torch.arange(7)] + [torch.ones(7)] * 2)
    np.testing.assert_array_equal(draw(state), draw(states), "the first sample's counts")
    assert not np.array_equal(draw(state), draw(state + 1))
    assert len(np.unique(draw(state))) == 12, "samples differ"


def test_a_random_state_is_refused_where_it_cannot_work() -> None:
    with pytest.raises(RuntimeError, match="at least 7 numbers"):
        fn.random.uniform(torch.zeros(4), _random_state=np.arange(6))
    with Pipeline(batch_size=1, num_threads=1, device_id=None):
        state = fn.constant(idata=[1] * 7)
        with pytest.raises(TypeError, match="give a seed"):
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


def test_compose_passes_all_outputs_on() -> None:
    with Pipeline(batch_size=2, num_threads=1, device_id=None) as pipe:
        images = fn.external_source(source=lambda: [IMAGE] * 2, layout="HWC")
        second = ops.Compose([ops.Resize(size=[6, 8], save_attrs=True), lambda image, size: size])
        pipe.set_outputs(second(images))
    assert pipe.run()[0].as_array().tolist() == [list(IMAGE.shape[:2])] * 2
    pipe.close()


def test_compose_of_one_is_that_one() -> None:
    only = ops.Copy()
    assert ops.Compose([only]) is only


@pytest.mark.parametrize(("chain", "error"), [([], ValueError), ([ops.Copy(), 3], TypeError)])
def test_compose_refuses_what_it_cannot_call(chain: list[Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        ops.Compose(chain)


def test_operators_by_device() -> None:
    assert {"Resize", "readers__File", "decoders__Image", "CoinFlip"} <= ops.cpu_ops()
    assert "Resize" in ops.gpu_ops() and "readers__File" not in ops.gpu_ops()
    assert {"decoders__Image", "ImageDecoder"} <= ops.mixed_ops()
    assert "Resize" not in ops.mixed_ops()
