"""Messages about common mistakes."""

from __future__ import annotations

import inspect
import re
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torchvision.transforms import v2

from tests.helpers import pages
from torchdali import Pipeline, dynamic, fn, math, operator, ops, pipeline_def, types
from torchdali.pipeline import do_not_convert
from torchdali.plugin.pytorch import DALIGenericIterator
from torchdali.tensors import TensorList, TensorListCPU


def _image() -> Any:
    return fn.external_source(source=lambda: [np.zeros((6, 8, 3), np.uint8)] * 2)


def _run(function: Callable[[], Any]) -> None:
    pipeline_def(batch_size=2, num_threads=1, device_id=None)(function)().run()


RUNNING: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a layout": (
        lambda: fn.resize(fn.reshape(_image(), layout="XYZ"), size=4),
        ValueError,
        'the layout "XYZ" does not match any of the allowed layouts',
    ),
    "an order of axes": (
        lambda: fn.transpose(fn.copy(_image()), perm=[0, 1]),
        RuntimeError,
        "operator 'transpose' failed",
    ),
    "a GPU": (lambda: _image().gpu(), RuntimeError, ".gpu() runs on 'gpu', which requires"),
    "an operator on a GPU": (
        lambda: fn.copy(_image(), device="gpu"),
        RuntimeError,
        "operator 'copy' runs on 'gpu'",
    ),
}


def _files() -> Any:
    return fn.readers.file(files=[__file__])[0]


@pytest.mark.parametrize("operator_", [lambda files: fn.resize(files, size=4), lambda files: fn.flip(files)])
def test_bytes_of_files_must_be_decoded_first(operator_: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=r"dimensions 1 .*; decode the bytes of a file first, with fn\.decoders\.image"):
        _run(lambda: operator_(_files()))


@pytest.mark.parametrize("operator_", [lambda files: fn.gaussian_blur(files, sigma=1.0), fn.normalize, fn.noise.shot])
def test_operators_on_the_bytes_of_files_warn(operator_: Callable[[Any], Any]) -> None:
    with pytest.warns(UserWarning, match=r"bytes of files from readers\.file; decode them first, with fn\.decoders\.image") as said:
        _run(lambda: operator_(_files()))
    assert [each.filename for each in said] == [__file__]


@pytest.mark.parametrize("name", RUNNING)
def test_errors_of_a_run_name_operator_and_line(name: str) -> None:
    function, kind, message = RUNNING[name]
    with pytest.raises(kind) as error:
        _run(function)
    assert message in str(error.value)
    assert __file__ in str(error.value)


def test_a_pipeline_without_outputs_is_an_error() -> None:
    with pytest.raises(NotImplementedError, match="must return the outputs of the pipeline"):
        _run(lambda: None)


def test_a_tuple_of_reader_outputs_is_not_an_input() -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.decoders.image(fn.readers.file(files=["a.jpg"]))

    with pytest.raises(TypeError, match=r"nested list of 2.*files, labels = fn\.readers\.file"):
        define().build()


def test_user_operators_must_return_tensors() -> None:
    with pages.own_operators():

        @operator
        def forgetful(image: Any, /) -> Any:
            """Forget to return."""

        for use in (lambda x: x, lambda x: fn.crop(x, crop=(2, 2)), lambda x: x + 1):
            with pytest.raises(TypeError, match="'forgetful' failed on sample 0") as error:
                _run(lambda: use(fn.forgetful(_image())))  # noqa: B023
            assert "must return a tensor, got None" in str(error.value)
        with pytest.raises(TypeError, match="must return a tensor, got None"):
            fn.forgetful(torch.zeros(2))


RETURNED: dict[str, tuple[str, Any, str]] = {
    "a number": (
        "batch",
        3,
        "must return a TensorList, a list of tensors",
    ),
    "nothing": ("batch", None, "dimension is the batch, got None"),
    "an array": ("batch", np.zeros((2, 3)), "dimension is the batch, got a ndarray"),
    "a list of other things": (
        "batch",
        [torch.zeros(1), 3],
        "must return a tensor for sample 1, got an int",
    ),
    "a list with a hole": (
        "batch",
        [None, torch.zeros(1)],
        "must return a tensor for sample 0, got None",
    ),
    "a scalar": ("batch", torch.zeros(()), "got a tensor without dimensions"),
    "too few samples": ("batch", [torch.zeros(1)], "must return 2 samples, one per sample of the batch, got 1"),
    "too many samples": ("batch", torch.zeros(3, 1), "must return 2 samples, one per sample of the batch, got 3"),
    "two outputs": (
        "batch",
        (torch.zeros(2),) * 2,
        "returned 2 outputs, but is declared to return 1 output",
    ),
    "an array, by sample": ("sample", np.zeros(3), "must return a tensor, got a ndarray"),
    "a list, by sample": ("sample", [torch.zeros(1)], "must return a tensor, got a list"),
    "two outputs, by sample": (
        "sample",
        (torch.zeros(2),) * 2,
        "returned 2 outputs, but is declared to return 1",
    ),
}


@pytest.mark.parametrize("case", RETURNED)
def test_return_values_of_user_operators(case: str) -> None:
    over, result, message = RETURNED[case]
    with pages.own_operators():

        @operator(over=over)
        def mistaken(image: Any, /) -> Any:
            """Return something else."""
            return result

        with pytest.raises((TypeError, RuntimeError), match="'mistaken' failed on") as error:
            _run(lambda: fn.mistaken(_image()))
        with pytest.raises(type(error.value.__cause__), match=message):  # eagerly
            fn.mistaken(TensorListCPU([torch.zeros(1)] * 2))
    assert message in str(error.value)
    assert __file__ in str(error.value)


def test_user_operators_may_return_one_output_in_a_tuple() -> None:
    with pages.own_operators():

        @operator
        def tidy(image: Any, /) -> Any:
            """Return a tuple."""
            return (image + 1,)

        assert fn.tidy(torch.zeros(2)).tolist() == [1, 1]
        _run(lambda: fn.crop(fn.tidy(_image()), crop=(2, 2)))


def test_the_abstract_batch_class_cannot_be_created() -> None:
    with pytest.raises(TypeError, match="use TensorListCPU"):
        TensorList([torch.zeros(1)])


TYPES = {
    "cast": lambda dtype: fn.cast(_image(), dtype=dtype),
    "crop_mirror_normalize": lambda dtype: fn.crop_mirror_normalize(_image(), dtype=dtype),
    "random.uniform": lambda dtype: fn.random.uniform(dtype=dtype),
    "constant": lambda dtype: fn.constant(idata=1, dtype=dtype),
    "external_source": lambda dtype: fn.external_source(
        lambda: [np.zeros(1, np.float32)] * 2, dtype=dtype
    ),
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("dtype", ["float", "FLOAT", "uint8", float, bool, int, 99, True, 1.5])
def test_unknown_names_of_dtypes_are_errors(name: str, dtype: Any) -> None:
    message = f"argument 'dtype' of operator '{name}': invalid value {dtype!r}: pass a type from torchdali.types"
    with pytest.raises(TypeError, match=re.escape(message)):
        _run(lambda: TYPES[name](dtype))


@pytest.mark.parametrize("dtype", [types.FLOAT, 9, torch.float32, np.float32, np.dtype("float32")])
def test_dtypes_of_torch_and_numpy_are_accepted(dtype: Any) -> None:
    assert int(types.FLOAT) == 9
    for make in TYPES.values():
        pipe = pipeline_def(batch_size=2, num_threads=1, device_id=None)(make)(dtype)
        assert pipe.run()[0].dtype == types.FLOAT


DEFINING: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "a size by position": (
        lambda x: fn.resize(x, 224),
        ValueError,
        "operator 'resize' expects 1 input, but received 2; pass arguments by name",
    ),
    "a range by position": (
        lambda x: fn.random.uniform(0, 1),
        ValueError,
        "expects from 0 to 1 inputs, but received 2; pass arguments by name",
    ),
    "torchvision's name of an argument": (
        lambda x: fn.resize(x, size=4, interpolation="bilinear"),
        KeyError,
        '"interpolation" is not defined for operator "resize"; did you mean "interp_type"?',
    ),
    "torch's names of arguments": (
        lambda x: fn.random.uniform(low=0, high=1),
        KeyError,
        '"low" is not defined for operator "random.uniform"; it takes range, values, shape, dtype, seed',
    ),
    "a range for a number": (
        lambda x: fn.brightness(x, brightness=(0.5, 1.5)),
        TypeError,
        "for a random one, pass fn.random.uniform(range=[0.5, 1.5])",
    ),
    "a method of tensors": (
        lambda x: x.float(),
        AttributeError,
        "use fn.cast(node, dtype=types.FLOAT)",
    ),
    "another": (lambda x: x.permute(2, 0, 1), AttributeError, "use fn.transpose(node, perm=[...])"),
    "an operation of torchvision": (
        lambda x: fn.random_horizontal_flip(x),
        AttributeError,
        "use flip with horizontal=fn.random.coin_flip()",
    ),
    "a text for a bool": (
        lambda x: fn.resize(x, size=8, antialias="no"),
        TypeError,
        "pass True or False",
    ),
    "a method that nothing has": (
        lambda x: x.frobnicate(),
        AttributeError,
        "use the operators of fn and math",
    ),
    "the values": (lambda x: x.numpy(), AttributeError, "run() returns the values"),
    "an array of a node": (
        lambda x: np.asarray(x),
        TypeError,
        "has no values while the graph is built",
    ),
    "a function of NumPy": (
        lambda x: np.mean(x),
        TypeError,
        "NumPy's mean does not accept __external_source_0, which represents a batch: use the operators of fn",
    ),
    "an array of NumPy": (lambda x: np.asarray(x), TypeError, "has no values while the graph is built"),
    "outputs that were not announced": (
        lambda x: tuple(fn.python_function(x, function=lambda image: (image, image))),
        TypeError,
        "'DataNode' object is not iterable",
    ),
    "iterating a node": (lambda x: [y for y in x], TypeError, "is not iterable"),
    "unpacking a shape": (
        lambda x: [height * width for height, width, _ in [x.shape]],
        TypeError,
        "height, width = node.shape[0], node.shape[1]",
    ),
    "iterating a shape": (
        lambda x: [extent for extent, _ in zip(x.shape, range(9), strict=False)],
        TypeError,
        "has no length and cannot be unpacked",
    ),
    "the length of a shape": (lambda x: len(x.shape), TypeError, "index the shape, as in height"),
    "looking into a shape": (lambda x: 3 in x.shape, TypeError, "index the shape, as in height"),
    "a dataset": (
        lambda x: fn.external_source(torch.utils.data.TensorDataset(torch.zeros(3))),
        TypeError,
        "for a dataset, pass a function of a SampleInfo",
    ),
}


@pytest.mark.parametrize("name", DEFINING)
def test_habits_from_torch(name: str) -> None:
    function, kind, message = DEFINING[name]
    with pytest.raises(kind) as error:
        _run(lambda: function(_image()))
    assert message in str(error.value)


def test_methods_that_the_hints_name_exist() -> None:
    def every(x: Any) -> Any:
        number = fn.cast(x, dtype=types.FLOAT)
        reduced = [getattr(fn.reductions, r)(number) for r in ("sum", "mean", "min", "max")]
        reduced += [
            fn.reductions.std_dev(number, reduced[1]),
            fn.reductions.variance(number, reduced[1]),
        ]
        functions = [getattr(math, f)(number) for f in ("sqrt", "exp", "log")]
        shaped = [
            fn.transpose(x, perm=[2, 0, 1]),
            fn.reshape(x, shape=[-1]),
            fn.expand_dims(x, axes=[0]),
        ]
        return (
            *reduced,
            *functions,
            *shaped,
            math.clamp(x, 1, 2),
            fn.flip(x, horizontal=1),
            x.shape(),
            x.cpu(),
        )

    _run(lambda: every(_image()))
    for hidden in ("_nothing", "__nothing__"):
        with pytest.raises(AttributeError, match=r"^((?!use).)*$"):
            _run(lambda: getattr(_image(), hidden))  # noqa: B023


@pytest.mark.parametrize("name", ["numpy", "cuda", "float", "to"])
def test_errors_of_batches_and_samples_name_the_conversion_to_tensors(name: str) -> None:
    batch = TensorListCPU([torch.zeros(1)] * 2)
    with pytest.raises(AttributeError, match=r"as_tensor\(\)\.torch\(\)"):
        getattr(batch, name)
    with pytest.raises(AttributeError, match=r"have it: \.torch\(\)"):
        getattr(batch[0], name)
    with pytest.raises(
        AttributeError, match=r"^'TensorListCPU' object has no attribute 'nothing'$"
    ):
        batch.nothing  # noqa: B018
    assert batch.as_tensor().torch().shape == (2, 1)


def test_unknown_members_of_enums_are_errors() -> None:
    with pytest.raises(
        ValueError, match=r"'output_type' of operator 'decoders.image'.*pass one of types.RGB, "
    ):
        _run(lambda: fn.decoders.image(_image(), output_type="RGB"))
    with pytest.raises(
        ValueError,
        match=r"invalid value 'bilinear': pass one of types.INTERP_NN, types.INTERP_LINEAR",
    ):
        _run(lambda: fn.resize(_image(), size=4, interp_type="bilinear"))


def test_classes_reject_unknown_arguments_when_created() -> None:
    with pytest.raises(KeyError, match='did you mean "size"'):
        ops.Resize(sizee=3)
    assert ops.Resize(size=3, seed=1, preserve=True, bytes_per_sample_hint=8).device == "cpu"


CALLED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a module, on the batch": (
        lambda x: fn.torch_python_function(x, function=torch.nn.Flatten(), batch_processing=True),
        "pass batch_processing=False to call it once per sample",
    ),
    "an error that has to do with the data": (
        lambda x: fn.torch_python_function(
            x, function=lambda batch: batch[7], batch_processing=True
        ),
        "IndexError: list index out of range$",
    ),
    "a tensor of a Python function": (
        lambda x: fn.python_function(x, function=torch.tensor),
        "must return NumPy arrays, got Tensor; use fn.torch_python_function for tensors",
    ),
    "a list of a Python function": (
        lambda x: fn.python_function(x, function=lambda image: {1: 2}),
        "must return NumPy arrays, got dict$",
    ),
}


@pytest.mark.parametrize("name", CALLED)
def test_functions_of_the_user(name: str) -> None:
    function, message = CALLED[name]
    with pytest.raises(RuntimeError, match=message):
        _run(lambda: function(_image()))


def test_a_factory_is_not_a_pipeline() -> None:
    def training() -> Any:
        return _image()

    with pytest.raises(AttributeError, match=r"expected a Pipeline, got .*training.*; call"):
        DALIGenericIterator(training, ["images"])


def test_unknown_arguments_of_a_factory_raise_as_in_pipeline() -> None:
    with pytest.raises(TypeError, match=r"^Pipeline\.__init__\(\) got .* 'batch_sise'"):
        Pipeline(batch_sise=3)


def test_errors_correct_misspelt_words() -> None:
    with pytest.raises(AttributeError, match=r"did you mean .*INTERP_LINEAR"):
        getattr(types, "INTERP_LINAER")  # noqa: B009  mypy would see the mistake
    with pytest.raises(AttributeError, match="did you mean resize"):
        getattr(fn, "resise")  # noqa: B009


def test_the_error_of_a_missing_import_names_operator_and_file() -> None:
    def body(image: Imagee, /) -> Imagee:  # type: ignore[name-defined]  # noqa: F821
        return image

    with pytest.raises(
        NameError, match=r"operator 'mine'.*'Imagee' is not defined.*import it\n.*test_mistakes\.py"
    ):
        operator(name="mine")(body)


def test_the_tree_of_fn_is_finite() -> None:
    def walk(module: Any, depth: int = 0) -> None:
        assert depth < 5
        for name, member in inspect.getmembers(module, inspect.ismodule):
            assert member.__name__.startswith("torchdali.fn."), (module, name)
            walk(member, depth + 1)

    walk(fn)


@pytest.mark.parametrize("shape", [(2,), (2, 2)])
def test_an_array_with_too_many_values_for_an_argument(shape: tuple[int, ...]) -> None:
    with Pipeline(1, 1, None), pytest.raises(RuntimeError, match=r"'alpha' .* cannot be converted: expected one value"):
        fn.random.beta(alpha=np.ones(shape))


def normalized(**arguments: Any) -> list[warnings.WarningMessage]:
    """Return the warnings of a pipeline that decodes and normalizes."""

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define() -> Any:
        image = fn.decoders.image(fn.external_source(name="file"), **arguments.pop("decoding", {}))
        image = fn.flip(fn.resize(image, size=[8, 8], **arguments.pop("resizing", {})))
        return fn.crop_mirror_normalize(image, **arguments)

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        define().build()
    return found


FLIP, JITTER = v2.RandomHorizontalFlip(1), v2.ColorJitter(0.5)


@pytest.mark.parametrize(
    ("function", "by_planes", "warns"),
    [
        (FLIP, False, True),
        (v2.Compose([v2.ToDtype(torch.float32), JITTER]), False, True),
        (FLIP, True, False),
        (v2.ToDtype(torch.float32), False, False),
        (v2.Compose([v2.Lambda(lambda x: x.permute(2, 0, 1)), FLIP]), False, False),
        (torch.nn.Flatten(0), False, False),
        (lambda x: x, False, False),
    ],
)
def test_transforms_of_torchvision_on_channels_last_images(function: Any, by_planes: bool, warns: bool) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define() -> Any:
        image = fn.resize(fn.decoders.image(fn.external_source(name="file")), size=[8, 8])
        if by_planes:
            image = fn.transpose(image, perm=[2, 0, 1])
        return fn.torch_python_function(image, function=function)

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        define().build()
    assert ["expects (C, H, W)" in str(each.message) and each.filename == __file__ for each in found] == [True] * warns


@operator(name="marked_as_own", marks=("levels",))
def _marked(image: torch.Tensor, /) -> torch.Tensor:
    return image


@operator(name="without_mark")
def _unmarked(image: torch.Tensor, /) -> torch.Tensor:
    return image


@pytest.mark.parametrize(
    ("step", "warns"),
    [
        (lambda image: fn.cast(image, dtype=types.FLOAT), True),
        (lambda image: fn.reshape(image, rel_shape=[1, 1, 1]), False),  # the layout is unknown
        (lambda image: fn.brightness(image, brightness=1.1), True),
        (lambda image: fn.squeeze(image, axes=[]), False),
        (_marked, True),
        (_unmarked, False),
    ],
)
def test_layout_warnings_depend_on_the_operators_between(step: Callable[[Any], Any], warns: bool) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define() -> Any:
        image = step(fn.decoders.image(fn.external_source(name="file")))
        return fn.torch_python_function(image, function=FLIP)

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        define().build()
    assert any("expects (C, H, W)" in str(each.message) for each in found) == warns


MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def test_normalizing_bytes_as_if_in_0_to_1_warns() -> None:
    (warning,) = normalized(mean=MEAN, std=STD)
    assert "multiply both by 255" in str(warning.message) and warning.filename == __file__


@pytest.mark.parametrize(
    "arguments",
    [
        {"mean": [255 * m for m in MEAN], "std": [255 * s for s in STD]},
        {"mean": MEAN},
        {"mean": MEAN, "std": STD, "scale": 1 / 255},
        {"mean": MEAN, "std": STD, "decoding": {"dtype": types.FLOAT}},
        {"mean": MEAN, "std": STD, "resizing": {"dtype": types.FLOAT}},
        {"mean": [0.0], "std": [1.0]},
    ],
    ids=str,
)
def test_no_warning_of_other_scales(arguments: dict[str, Any]) -> None:
    assert normalized(**arguments) == []


def _numbers() -> Pipeline:
    return pipeline_def(lambda: fn.constant(idata=1))(batch_size=2, num_threads=1, device_id=None)


def _iterator() -> DALIGenericIterator:
    return DALIGenericIterator(_numbers(), ["number"], size=4)


def _images_without_a_class() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a.jpg", "b.png", "c.txt"):
            Path(folder, name).touch()
        pipeline_def(lambda: fn.readers.file(file_root=folder)[0])(batch_size=1, num_threads=1, device_id=None).build()


def _fed(**options: Any) -> Pipeline:
    pipe = Pipeline(1, 1, None, **options)
    with pipe:
        pipe.set_outputs(fn.external_source(name="images"))
    return pipe


def _with_foreign_node() -> None:
    kept: list[Any] = []

    def first() -> Any:
        kept.append(_image())
        return kept[0]

    pipeline_def(batch_size=2, num_threads=1, device_id=None)(first)()
    _run(lambda: (_image(), fn.flip(kept[0])))


def _of_two_sizes() -> Any:
    return _image(), fn.external_source(source=lambda: [np.zeros(1)])


def _gray() -> Any:
    return fn.external_source(lambda: [np.full((6, 8, 1), 9, np.uint8)] * 2, layout="HWC")


CURES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "augmentations": (lambda: getattr(fn, "rand_augment"), AttributeError, "use torchdali.auto_aug.rand_augment"),  # noqa: B009
    "channels first, and no layout": (
        lambda: fn.crop_mirror_normalize(torch.zeros(3, 40, 50, dtype=torch.uint8), mean=[1.0, 2.0, 3.0]),
        RuntimeError,
        'Images with channels first need the layout "CHW"',
    ),
    "the name of a checkpoint": (
        lambda: _fed(checkpoint="place.json").build(),
        RuntimeError,
        "for a file, pass its content, not its name",
    ),
    "a checkpoint as a state": (
        lambda: _numbers().load_state_dict(_numbers().checkpoint()),
        TypeError,
        "got bytes; pass the result of checkpoint() to a new pipeline",
    ),
    "the name of a source": (
        lambda: _fed().feed_input("image", [np.zeros(1)]),
        KeyError,
        "sources of this pipeline: images",
    ),
    "pictures without a class": (_images_without_a_class, RuntimeError, "outside of class folders (2 here), pass files or file_list"),
    "a definition that is not converted": (
        lambda: pipeline_def(do_not_convert(lambda: fn.constant(idata=1))),
        ValueError,
        "which is for the functions that it calls",
    ),
    "a function of NumPy that asks for axes": (
        lambda: _run(lambda: np.flip(_image())),
        TypeError,
        "NumPy's flip does not accept",
    ),
    "a function of Pillow": (
        lambda: _run(lambda: PIL.Image.fromarray(_image())),
        AttributeError,
        "use the operators of fn and math, or fn.python_function",
    ),
    "the name of a file": (lambda: _run(lambda: fn.decoders.image("a.jpg")), TypeError, "fn.readers.file(files=[...])"),
    "the path of a file": (lambda: _run(lambda: fn.decoders.image(Path("a"))), TypeError, "fn.readers.file(files=[...])"),
    "a data set as a source": (
        lambda: _run(lambda: fn.external_source([{"image": np.zeros(3), "label": 1}] * 4)),
        RuntimeError,
        "with fn.readers.dataset(dataset=...)",
    ),
    "a data set as a source of two": (
        lambda: _run(lambda: tuple(fn.external_source([{"image": np.zeros(3), "label": 1}] * 4, num_outputs=2))),
        KeyError,
        "with fn.readers.dataset(dataset=...)",
    ),
    "a node of another pipeline": (_with_foreign_node, RuntimeError, "one was created outside this pipeline's function"),
    "mixed without a GPU": (
        lambda: _run(lambda: fn.decoders.image(_image(), device="mixed")),
        RuntimeError,
        'device_id="cpu" to use the CPU',
    ),
    "a name too many": (
        lambda: DALIGenericIterator(_numbers(), ["a", "b"], size=4),
        KeyError,
        "pass one name for each",
    ),
    "batches of two sizes": (lambda: _run(_of_two_sizes), RuntimeError, "All sources must return the same number of samples per batch"),
    "a sum of two shapes": (lambda: _run(lambda: _image() + _gray()[:4]), RuntimeError, "crop or pad images to one shape"),
    "a stack of two shapes": (lambda: _run(lambda: fn.stack(_image(), _gray())), RuntimeError, "Resize, crop or pad them first"),
    "neither size nor threads": (
        lambda: pipeline_def(lambda: fn.constant(idata=1))().run(),
        TypeError,
        "batch_size and num_threads must be set before the pipeline is built: pass them to",
    ),
    "three angles": (
        lambda: _run(lambda: fn.rotate(_image(), angle=[1.0, 2.0, 3.0])),
        TypeError,
        "for a value per sample, pass a node, for example fn.random.uniform(range=[low, high])",
    ),
    "colors of gray": (
        lambda: _run(lambda: fn.color_twist(_gray(), saturation=2.0)),
        ValueError,
        "output_type=types.RGB, or use fn.brightness_contrast for gray images",
    ),
    "DataLoader's workers": (lambda: Pipeline(num_workers=2), TypeError, "use num_threads"),
    "a setting": (lambda: Pipeline(batch_sise=2), TypeError, "did you mean batch_size?"),
    "no settings": (lambda: pipeline_def(lambda: None)().run(), TypeError, "or the function that pipeline_def created"),
    "a decoded image": (
        lambda: fn.decoders.image(torch.zeros(4, 5, 3, dtype=torch.uint8)),
        ValueError,
        "is it a decoded image? With the proxy, pass loader=str to ImageFolder",
    ),
    "an argument in the dynamic mode": (
        lambda: dynamic.resize(np.zeros((4, 5, 3), np.uint8), sise=4),
        TypeError,
        "did you mean size?",
    ),
    "a batch as a condition": (
        lambda: bool(dynamic.as_batch([1, 2]) > 5),
        ValueError,
        "truth value of a batch is not defined",
    ),
    "an iterator's state for a pipeline": (
        lambda: _numbers().load_state_dict(_iterator().state_dict()),
        RuntimeError,
        "pass it to the iterator's",
    ),
    "a pipeline's state for an iterator": (
        lambda: _iterator().load_state_dict(_numbers().state_dict()),
        ValueError,
        "to the pipeline's load_state_dict",
    ),
}


@pytest.mark.parametrize("name", CURES)
def test_errors_name_the_cure(name: str) -> None:
    make, kind, message = CURES[name]
    with pytest.raises(kind, match=re.escape(message)):
        make()


def test_brightness_accepts_gray_as_the_error_states() -> None:
    _run(lambda: fn.brightness_contrast(_gray(), brightness=2.0))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have no notes")
@pytest.mark.parametrize(
    "source",
    [
        {"source": lambda: [np.zeros(1)] * 9},
        {"source": iter([[np.zeros(1)] * 2, [np.zeros(1, np.uint8)] * 2])},
        {"parallel": True, "batch": False},
    ],
    ids=["too many samples", "another type", "what cannot be pickled"],
)
def test_errors_of_sources_name_the_line(source: dict[str, Any]) -> None:
    lock = threading.Lock()
    if source.get("parallel"):
        source = {**source, "source": lambda info: lock}
    pipe = Pipeline(2, 1, None, py_num_workers=1, py_start_method="spawn")
    with pipe, pytest.raises((RuntimeError, TypeError)) as error:
        pipe.set_outputs(fn.external_source(**source))
        for _ in range(2):
            pipe.run()
    assert f'{__file__}", line' in "".join(traceback.format_exception_only(error.value))


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("Compose", "call the operators one after the other"), ("ToPILImage", r"PIL\.Image\.fromarray"), ("map", "python_function"),
        ("batch", "batch_size"), ("shuffle", "random_shuffle=True"), ("repeat", "a loop over a Loader"),
    ],
)  # fmt: skip
def test_names_of_other_libraries_suggest_ours(name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; use .*{instead}"):
        getattr(fn, name)


@pytest.mark.parametrize(("module", "name"), [(fn, "rotat"), (types, "UINT9"), (fn.decoders, "imag")])
def test_a_name_is_suggested_once(module: Any, name: str, capsys: Any) -> None:
    """Python adds its own suggestion to errors that have the object."""
    try:
        getattr(module, name)
    except AttributeError as error:
        sys.__excepthook__(type(error), error, error.__traceback__)
    assert capsys.readouterr().err.lower().count("did you mean") == 1
