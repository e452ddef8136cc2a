"""readers.dataset: Python datasets."""

from __future__ import annotations

import io
import os
import re
import warnings
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision.transforms.functional import pil_to_tensor

from tests.helpers.own_process import in_own_process
from torchdali import Loader, Pipeline, Shared, fn, pipeline_def, reader
from torchdali import dynamic as ndd
from torchdali.declaration.schema import OutputCount, shares
from torchdali.errors import PipelineError
from torchdali.plugin.pytorch import DALIClassificationIterator, DALIGenericIterator, LastBatchPolicy
from torchdali.reading.datasets import Dataset, LoaderOptions


class Images(torch.utils.data.Dataset[Any]):
    """Images of growing sizes, with index and name; the record 7 fails."""

    def __init__(self, size: int = 10) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        if index == 7:
            raise KeyError("seven")
        return Image.fromarray(np.full((4, 5 + index, 3), index, np.uint8)), index, f"n{index}"


class Batched:
    """Numbers that are read in batches."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    def __len__(self) -> int:
        return 9

    def __getitem__(self, index: int) -> int:
        return index * 10

    def __getitems__(self, indices: list[int]) -> list[int]:
        self.asked.append(indices)
        return [index * 10 for index in indices]


def flat(outputs: Any) -> list[Any]:
    """Return the nodes in a structure of outputs."""
    if isinstance(outputs, (dict, list, tuple)):
        return [node for each in (outputs.values() if isinstance(outputs, dict) else outputs) for node in flat(each)]
    return [outputs]


def build(dataset: Any, batch_size: int = 4, pipeline: dict[str, Any] | None = None, **arguments: Any) -> Any:
    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=None, **(pipeline or {}))
    def define() -> Any:
        outputs = fn.readers.dataset(dataset=dataset, name="Reader", **arguments)
        return tuple(flat(outputs))

    return define()


def lists(outputs: Any) -> list[Any]:
    return [[sample.tolist() for sample in output.samples()] for output in outputs]


def words(output: Any) -> list[str]:
    return [bytes(sample.numpy()).decode() for sample in output.samples()]


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_samples_of_several_values(workers: int) -> None:
    with build(Images(), pipeline={"bad_samples": "skip"}, workers=workers) as pipe:
        found = [pipe.run() for _ in range(3)]
    images, numbers, names = zip(*found, strict=True)
    assert images[0].layout() == "HWC"
    assert [tuple(sample.shape) for sample in images[1].samples()] == [(4, 9, 3), (4, 10, 3), (4, 11, 3)]
    assert [int(n) for batch in numbers for n in batch.samples()] == [0, 1, 2, 3, 4, 5, 6, 8, 9, 0, 1]
    assert words(names[1]) == ["n4", "n5", "n6"]


def test_an_error_names_the_record() -> None:
    with build(Images()) as pipe:
        pipe.run()
        with pytest.raises(KeyError, match=r"sample 3 of batch 1 \(record 7 of Images\)"):
            pipe.run()


@pytest.mark.slow
def test_an_error_of_a_worker() -> None:
    with build(Images(), workers=1) as pipe:
        pipe.run()
        with pytest.raises(KeyError, match=r"record 7 of Images"):
            pipe.run()


def test_a_batch_is_read_in_one_call() -> None:
    dataset = Batched()
    with build(dataset, batch_size=3, pad_last_batch=True) as pipe:
        assert lists(pipe.run()) == [[0, 10, 20]]
        assert lists(pipe.run()) == [[30, 40, 50]]
    assert dataset.asked[:2] == [[0, 1, 2], [3, 4, 5]]


class Own(torch.utils.data.Dataset[Any]):
    """Small images of a number, and the number."""

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> Any:
        return torch.full((3, 4, 4), float(index)), index


class Several(Own):
    """The same dataset, which can return several samples in one call."""

    def __init__(self, form: Any) -> None:
        self.form = form

    def __getitems__(self, indices: list[int]) -> Any:
        return self.form(self[i] for i in indices)


def _parts() -> dict[str, Any]:
    data = torch.utils.data
    switched_off = Several(list)
    switched_off.__getitems__ = None  # type: ignore[method-assign,assignment]
    first, second = data.random_split(Own(), [12, 8], torch.Generator().manual_seed(1))  # type: ignore[var-annotated]
    return {
        "subset": data.Subset(Own(), range(3, 12)),
        "subset of a subset": data.Subset(data.Subset(Own(), range(3, 12)), [4, 1, 1, 0]),
        "random_split": second,
        "the other part": first,
        "subset of images": data.Subset([np.full((2, 2, 3), i, np.uint8) for i in range(9)], [5, 2, 7]),  # type: ignore[arg-type]
        "subset of tensors": data.Subset(data.TensorDataset(torch.arange(9)), [5, 2, 7]),
        "joined subsets": data.ConcatDataset([first, second]),
        "a subset of joined": data.Subset(data.ConcatDataset([first, second]), [19, 0, 12]),
        "one sample": data.Subset(Own(), [7]),
        "returns a tuple": Several(tuple),
        "returns what can be iterated over once": Several(iter),
        "returns too few": Several(lambda samples: list(samples)[1:]),
        "returns a dictionary": Several(lambda samples: dict(enumerate(samples))),
        "is switched off": switched_off,
    }


def loaded(name: str, processes: int) -> list[list[Any]]:
    """Return the values of each sample of a dataset that a Loader delivers."""
    data = _parts()[name]

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, num_processes=processes)
    def pipe() -> Any:
        outputs = fn.readers.dataset(dataset=data, name="Reader")
        return tuple(outputs) if isinstance(outputs, list) else outputs

    with Loader(pipe) as loader:
        batches = [batch if isinstance(batch, tuple) else (batch,) for batch in loader]
    return [[np.asarray(value).tolist() for value in values] for batch in batches for values in zip(*batch, strict=True)]


@pytest.mark.thin(5)
@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.skipif(not hasattr(os, "fork"), reason="forks"))])
@pytest.mark.parametrize("name", _parts())
def test_datasets_that_return_several_samples_in_one_call(name: str, processes: int) -> None:
    """With processes, as by default on two cores: the pipeline first checks whether the reader must run in this process."""
    data = _parts()[name]
    samples = [data[i] for i in range(len(data))]
    call = f"loaded({name!r}, {processes})"
    found = loaded(name, 1) if processes == 1 else in_own_process("tests.readers.test_dataset", call)
    assert found == [[np.asarray(v).tolist() for v in (s if isinstance(s, tuple) else (s,))] for s in samples]


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_subset_in_every_reading_mode(processes: int) -> None:
    part = torch.utils.data.Subset(Own(), range(3, 12))
    options = {"num_processes": processes}
    with build(part, pipeline=options, pad_last_batch=True) as pipe:
        assert [pipe.run()[1].tolist() for _ in range(3)] == [[3, 4, 5, 6], [7, 8, 9, 10], [11] * 4]
    for iterator in (DALIGenericIterator, DALIClassificationIterator):
        pipe = build(part, pipeline=options, random_shuffle=True)
        names = (["data", "label"],) if iterator is DALIGenericIterator else ()
        batches = iterator(pipe, *names, reader_name="Reader", last_batch_policy=LastBatchPolicy.PARTIAL)
        assert sorted(int(n) for (batch,) in batches for n in batch["label"]) == list(range(3, 12))


@pytest.mark.usefixtures("own_operators")
def test_a_user_reader_that_fails_to_load_its_first_record() -> None:
    class Ahead:
        def __len__(self) -> int:
            return 4

        def read_many(self, records: Any, epochs: Any) -> Any:
            return [partial(self.read, record) for record in records] if records[0] >= 0 else None

        def read(self, index: int) -> Any:
            return (torch.tensor(index),)

        def info(self, index: int) -> str:
            return "one"

    @reader(name="readers._ahead")
    def ahead(**options: Annotated[Any, shares(LoaderOptions)]) -> Dataset:
        return Ahead()

    pipe = pipeline_def(batch_size=4, num_threads=2, device_id=None, num_processes=2)(ahead)()
    assert pipe.run()[0].tolist() == [0, 1, 2, 3]


class Pairs:
    """Records of two outputs; `info` names only records."""

    def __len__(self) -> int:
        return 4

    def read(self, index: int) -> Any:
        return torch.tensor(index), torch.tensor([index])

    def info(self, index: int) -> str:
        return f"pair {index}"


class NamedPairs(Pairs):
    """The same dataset; `info` also names their outputs."""

    def info(self, index: int, output: int | None = None) -> str:
        return f"pair {index}" if output is None else f"{index}, {'ab'[output]}"


class NamedFirst(Pairs):
    """The same dataset; the second output has no name."""

    def info(self, index: int, output: int | None = None) -> str:
        return "" if output else f"pair {index}"


@pytest.mark.parametrize(
    ("dataset", "names"),
    [(Pairs(), ("pair 0", "")), (NamedPairs(), ("0, a", "0, b")), (NamedFirst(), ("pair 0", ""))],
    ids=["records", "outputs", "first output"],
)
@pytest.mark.usefixtures("own_operators")
@pytest.mark.parametrize("options", [{}, {"debug": True}, {"num_processes": 2}], ids=str)
def test_info_names_records_and_outputs(dataset: Any, names: tuple[str, str], options: dict[str, Any]) -> None:
    @reader(name="readers._pairs")
    def pairs(**options: Annotated[Any, shares(LoaderOptions)]) -> Annotated[Dataset, OutputCount(2)]:
        return dataset

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, **options)
    def pipe() -> Any:
        first, second = pairs(name="pairs")
        return first, second, fn.get_property(second, key="source_info")

    first, second, text = pipe().run()
    assert (first[0].source_info(), second[0].source_info()) == names
    assert bytes(np.asarray(text[0])).decode() == names[1]


def test_dictionaries_become_dictionaries() -> None:
    rows = [{"a": i, "b": i / 2, "c": [i, i]} for i in range(4)]

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define() -> Any:
        outputs = fn.readers.dataset(dataset=rows, columns=["c", "a"], layouts=["X", ""])
        assert list(outputs) == ["c", "a"]
        return outputs["c"], outputs["a"] + 1

    with define() as pipe:
        pairs, numbers = pipe.run()
    assert pairs.layout() == "X" and lists([pairs, numbers]) == [[[0, 0], [1, 1]], [1, 2]]


@pytest.mark.parametrize("value, dtype, expected", [
    (3, torch.int64, 3),
    (True, torch.bool, True),
    (0.5, torch.float64, 0.5),
    (1700000000.25, torch.float64, 1700000000.25),
    (0.1, torch.float64, 0.1),
    (-1e300, torch.float64, -1e300),
    (np.float64(0.5), torch.float64, 0.5),
    (np.arange(3, dtype=">i4"), torch.int32, [0, 1, 2]),
    (np.arange(6)[::-2], torch.int64, [5, 3, 1]),
    (torch.ones(2, requires_grad=True), torch.float32, [1, 1]),
    (b"ab", torch.uint8, [97, 98]),
    ("ä", torch.uint8, [195, 164]),
    ([1.5, 2], torch.float32, [1.5, 2]),
    (Image.new("L", (2, 1), 7), torch.uint8, [[[7], [7]]]),
    (Image.new("1", (1, 1), 1), torch.uint8, [[[255]]]),
    (Image.new("P", (1, 1), 3), torch.uint8, [[[3]]]),
])  # fmt: skip
def test_values(value: Any, dtype: torch.dtype, expected: Any) -> None:
    with build([value], batch_size=1) as pipe:
        (output,) = pipe.run()
    sample = output.samples()[0]
    assert sample.dtype == dtype and sample.tolist() == expected


@pytest.mark.parametrize("ending", ["png", "gif", "tiff", "bmp"])
@pytest.mark.parametrize("is_transparent", [False, True])
def test_masks_with_a_palette_have_their_classes(ending: str, is_transparent: bool, tmp_path: Path) -> None:
    classes = np.random.default_rng(0).integers(0, 21, (13, 17), np.uint8)
    mask = Image.fromarray(classes, "P")
    mask.putpalette([k * 37 % 256 for k in range(3 * 256)])
    mask.save(tmp_path / f"mask.{ending}", **({"transparency": 0} if is_transparent and ending in ("png", "gif") else {}))
    with Image.open(tmp_path / f"mask.{ending}") as image, build([(0, image)], batch_size=1) as pipe:
        assert image.mode == "P"
        found = torch.as_tensor(pipe.run()[1].at(0))
        assert torch.equal(found.permute(2, 0, 1), pil_to_tensor(image))


def test_delivered_samples_may_be_modified() -> None:
    data = np.zeros((2, 3), np.int64)
    with build(data, batch_size=2) as pipe:
        for sample in pipe.run()[0].samples():
            sample.fill_(9)
    assert not data.any()


@pytest.mark.parametrize("dataset, arguments, error, match", [
    (iter([1]), {}, TypeError, r"must have len\(\)"),
    ([], {}, RuntimeError, "empty"),
    ([{"a": 1}], {"columns": ["b"]}, RuntimeError, r"columns must be among \['a'\], got \['b'\]"),
    ([1], {"columns": ["b"]}, RuntimeError, "samples must be dictionaries"),
    ([1], {"layouts": ["", ""]}, RuntimeError, "must have 1 values, one for each output, got 2"),
    (torch.utils.data.Subset([1, 2], []), {}, RuntimeError, "a Subset, is empty"),
    (torch.utils.data.TensorDataset(torch.zeros(0, 3)), {}, RuntimeError, "a TensorDataset, is empty"),
    ([1], {"workers": -1}, RuntimeError, r"workers must be .*, got -1"),
])  # fmt: skip
def test_invalid_arguments_are_rejected(dataset: Any, arguments: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        build(dataset, **arguments).build()


@pytest.mark.parametrize("dataset, match", [([1, None], "got NoneType"), ([(1, 2), (1,)], "got 1"), ([np.array("a")], "numeric dtype")])
def test_samples_that_are_not_tensors(dataset: Any, match: str) -> None:
    with build(dataset, batch_size=2) as pipe, pytest.raises((TypeError, RuntimeError), match=match):
        pipe.run()


REMEDY = "Return a number, an array of numbers, an image, text or bytes instead, or omit the value"


@pytest.mark.parametrize("value, reason", [
    (None, "a value must be a tensor, an array, an image, text or a number, got NoneType"),
    ({1}, "a value must be a tensor, an array, an image, text or a number, got set"),
    ([b"a", b"b"], "invalid data type 'bytes'"),
    (["a", "b"], "too many dimensions 'str'"),
    ([[1], [1, 2]], "expected sequence of length 1"),
    (np.array(["a", "bb"]), "a numeric dtype, got <U2"),
    (np.array([b"a", 1], object), "a numeric dtype, got object"),
    (np.zeros(2, "M8[D]"), "a numeric dtype, got datetime64"),
    (torch.eye(3).to_sparse(), "the tensor is sparse; call its to_dense()"),
])  # fmt: skip
@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_the_error_names_a_value_that_is_not_a_tensor(value: Any, reason: str, workers: int) -> None:
    for sample, name, remedy in (
        ((1, value), "value 1 of the sample", "or omit the value$"),
        ({"n": 1, "word": value}, "the value 'word' of the sample", "or omit the value: pass columns=.* without 'word'$"),
        ((1, {"words": {"first": value}}), "the value '1.words.first' of the sample", "or omit the value: pass columns"),
        (value, "the sample", "or omit the value$"),
    ):
        with build([sample] * 3, workers=workers) as pipe, pytest.raises(PipelineError) as said:
            pipe.run()
        assert re.search(f"{name} cannot become a tensor: .*{re.escape(reason)}.*{REMEDY}", str(said.value)), said.value
        assert re.search(remedy, str(said.value)) and "record 0 of list" in str(said.value)


@pytest.mark.parametrize("first, later, match", [
    ({"a": 1}, {"b": 1}, "the value 'a' of the sample cannot become a tensor: the sample doesn't have it"),
    ({"a": {"b": 1}}, {"a": {}}, "the value 'a.b' of the sample cannot"),
    ((1, [{"a": 1}]), (1, [{}]), "the value '1.a' of the sample"),
])  # fmt: skip
def test_a_sample_that_lacks_a_value(first: Any, later: Any, match: str) -> None:
    with build([first, later], batch_size=2) as pipe, pytest.raises(RuntimeError, match=match):
        pipe.run()


@pytest.mark.parametrize("text", [np.str_("abc"), np.bytes_(b"abc"), bytearray(b"abc"), memoryview(b"abc")])
def test_text_of_numpy(text: Any) -> None:
    assert words(build([text] * 2, 2).run()[0]) == ["abc"] * 2


IMAGES = [np.zeros((4, 4, 3), np.uint8)] * 4
UNPACKED: dict[str, tuple[list[Any], str]] = {
    "images": (IMAGES, r"'readers.dataset', has 1, as in a = fn.readers.dataset.*samples of the type ndarray are one output.*columns="),
    "numbers": ([1, 2], "samples of the type int are one output"),
    "tensors": ([torch.zeros(2)], "samples of the type Tensor are one output"),
    "lists": ([[1, 2], [3, 4]], "a list is one output: return a tuple"),
    "dictionaries": ([{"image": i, "label": 1} for i in IMAGES], r"'image'.*name of an output in a dictionary.*columns=\['image', 'label'\].*outputs\['image'\], outputs\['label'\]"),
}


@pytest.mark.parametrize("use", [
    lambda a, b: (a, b),
    lambda a, b: (fn.resize(a, size=(3, 3)), b),
])  # fmt: skip
@pytest.mark.parametrize("name", UNPACKED)
def test_unpacking_outputs_into_another_structure(name: str, use: Any) -> None:
    data, message = UNPACKED[name]

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipe() -> Any:
        a, b = fn.readers.dataset(dataset=data)
        return use(a, b)

    with pytest.raises(TypeError, match=message):
        pipe()


def test_datasets_in_the_class_api_and_in_with_blocks() -> None:
    class Defined(Pipeline):
        def define_graph(self) -> Any:
            a, b = fn.readers.dataset(dataset=IMAGES)
            return a, b

    with pytest.raises(TypeError, match="ndarray are one output"):
        Defined(1, 1, None).build()
    with pytest.raises(TypeError, match="ndarray are one output"), Pipeline(1, 1, None):
        _a, _b = fn.readers.dataset(dataset=IMAGES)


def test_errors_of_other_operators_state_their_output_count() -> None:
    with pytest.raises(TypeError, match=r"'python_function', has 1, .*num_outputs="), Pipeline(1, 1, None):
        _a, _b = fn.python_function(fn.constant(idata=[1]), function=lambda x: (x, x))


def test_shuffling_and_checkpoints() -> None:
    order = {"batch_size": 3, "random_shuffle": True, "seed": 5}
    with build(list(range(10)), pipeline={"enable_checkpointing": True}, **order) as pipe:
        seen = lists(pipe.run())[0] + lists(pipe.run())[0]
        state = pipe.checkpoint()
        rest = [lists(pipe.run()) for _ in range(3)]
    assert len(set(seen)) == 6 and seen != sorted(seen)
    with build(list(range(10)), pipeline={"checkpoint": state}, **order) as again:
        assert [lists(again.run()) for _ in range(3)] == rest


def test_a_pipeline_with_a_dataset_cannot_be_saved() -> None:
    with build([1, 2]) as pipe, pytest.raises(RuntimeError, match="argument 'dataset' cannot be saved: a list"):
        pipe.serialize()


def test_the_dynamic_mode() -> None:
    reader = ndd.readers.Dataset(dataset=[5, 6, 7])
    assert [int(x) for x in reader.next_epoch()] == [5, 6, 7]


def test_hugging_face_labels_name_the_classes_if_one_column_has_them() -> None:
    datasets = pytest.importorskip("datasets", reason="the test makes a data set of Hugging Face")
    form = datasets.Features({"coarse": datasets.ClassLabel(names=["a"]), "fine": datasets.ClassLabel(names=["b", "c"])})
    data = datasets.Dataset.from_dict({"coarse": [0, 0], "fine": [0, 1]}, features=form)
    with build(data, batch_size=2, columns=["fine"]) as pipe:
        assert pipe.classes == ["b", "c"]
    with build(data, batch_size=2) as pipe, pytest.raises(AttributeError, match="no reader"):
        pipe.classes  # noqa: B018


def test_hugging_face_images_are_delivered_encoded() -> None:
    datasets = pytest.importorskip("datasets", reason="the test makes a data set of Hugging Face")
    images = [Image.new("RGB", (4, 3), (i, 0, 0)) for i in range(3)]
    form = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])})
    data = datasets.Dataset.from_dict({"image": images, "label": [0, 1, 1]}, features=form)
    with build(data, batch_size=3) as pipe:
        encoded, labels = pipe.run()
        assert pipe.classes == ["a", "b"]
    decoded = [np.asarray(Image.open(io.BytesIO(bytes(sample.numpy())))) for sample in encoded.samples()]
    assert [pixels[0, 0, 0] for pixels in decoded] == [0, 1, 2]
    assert lists([labels]) == [[0, 1, 1]]
    changed = data.with_transform(lambda rows: {"label": [-1 for _ in rows["label"]]})
    with build(changed, batch_size=3) as pipe:
        assert lists(pipe.run()) == [[-1, -1, -1]]


TIMES = [1700000000.25 + i for i in range(4)]
FORMS: dict[str, list[Any]] = {
    "alone": TIMES, "tuple": [(np.int64(0), t) for t in TIMES], "dictionary": [{"n": 0, "at": t} for t in TIMES],
    "nested": [(0, {"at": t}) for t in TIMES],
}  # fmt: skip


@pytest.mark.thin(3)
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("form", FORMS)
def test_python_floats_keep_their_precision(form: str, workers: int) -> None:
    """The same values as from a DataLoader, also through a Loader."""

    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def pipe() -> Any:
        found = fn.readers.dataset(dataset=FORMS[form], workers=workers)
        found = found[1] if isinstance(found, (list, tuple)) else found
        return found["at"] if isinstance(found, dict) else found

    with Loader(pipe()) as loader:
        (batch,) = loader
    wanted = next(iter(DataLoader(TIMES, batch_size=4)))  # type: ignore[arg-type]
    assert batch.dtype == wanted.dtype == torch.float64 and batch.tolist() == wanted.tolist() == TIMES


def boxes(count: int) -> list[list[float]]:
    return [[float(i), 1.0, 2.0, 3.0] for i in range(count)]


NESTED = {
    "dictionary": [{"id": n, "objects": {"bbox": boxes(n), "category": list(range(n))}} for n in (2, 0, 1)],
    "list of dictionaries": [{"id": n, "objects": [{"bbox": b, "category": i} for i, b in enumerate(boxes(n))]} for n in (2, 0, 1)],
}


@pytest.mark.parametrize("form", NESTED)
def test_nested_samples(form: str) -> None:
    rows = NESTED[form]

    @pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def pipe() -> Any:
        data = fn.readers.dataset(dataset=rows)
        return data["id"], data["objects"]["bbox"], data["objects"]["category"]

    with pipe() as built:
        ids, found, categories = built.run()
    assert lists([ids]) == [[2, 0, 1]]
    assert [tuple(sample.shape) for sample in found.samples()] == [(2, 4), (0, 4), (1, 4)]
    assert {sample.dtype for sample in found.samples()} == {torch.float32}
    assert [sample.tolist() for sample in categories.samples()] == [[0, 1], [], [0]]
    assert {sample.dtype for sample in categories.samples()} == {torch.int64}


def test_columns_of_nested_samples() -> None:
    rows = NESTED["dictionary"]

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipe(columns: list[str]) -> Any:
        data = fn.readers.dataset(dataset=rows, columns=columns)
        return tuple(data["objects"].values())

    with pipe(["objects.category"]) as one, pipe(["objects"]) as all_:
        assert [len(built.run()) for built in (one, all_)] == [1, 2]
    with pytest.raises(RuntimeError, match=r"among \['id', 'objects.bbox', 'objects.category'\], got \['objects.label'\]"):
        pipe(["objects.label"]).build()


def test_the_error_of_a_dictionary_output_has_a_cure() -> None:
    rows = [{"image": i, "label": i} for i in range(4)]

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.readers.dataset(dataset=rows)

    with pytest.raises(TypeError, match=r"dictionary.*return outputs\['image'\], outputs\['label'\]\. Loader"):
        define()


def test_text_labels_warn() -> None:
    rows = [(i, name) for i, name in enumerate(["cat", "dog", "cat"])]
    with pytest.warns(UserWarning, match=r"output 'cat' is text.*bytes, as uint8.*names\.index\(label\)") as said:
        assert words(build(rows, 3).run()[1]) == ["cat", "dog", "cat"]
    assert [each.filename for each in said] == [__file__]


@pytest.mark.parametrize("text", ["folder/cat", "cat.jpg", "a cat sits on the roof"])
def test_paths_and_sentences_do_not_warn(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert words(build([text] * 2, 2).run()[0]) == [text] * 2


def test_dictionaries_in_tuples() -> None:
    rows = [(np.full((2, 2, 3), n, np.uint8), {"boxes": boxes(n), "labels": list(range(n))}) for n in (1, 0)]

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipe() -> Any:
        image, target = fn.readers.dataset(dataset=rows)
        return image, target["boxes"], target["labels"]

    with pipe() as built:
        assert [tuple(sample.shape) for sample in built.run()[1].samples()] == [(1, 4), (0, 4)]


@pytest.mark.parametrize("first", [0, 2])
def test_features_of_hugging_face_determine_the_dtype_of_empty_lists(first: int) -> None:
    datasets = pytest.importorskip("datasets", reason="the test makes data sets of Hugging Face")
    several = getattr(datasets, "List", datasets.Sequence)
    form = datasets.Features({
        "objects": {
            "bbox": several(several(datasets.Value("float32"), length=4)),
            "category": several(datasets.ClassLabel(names=["a", "b", "c"])),
            "crowd": several(datasets.Value("bool")),
        },
        "people": several({"age": datasets.Value("int8"), "at": several(datasets.Value("float64"), length=2)}),
    })
    counts = [first, 2, 0]
    rows = [
        {
            "objects": {"bbox": boxes(n), "category": list(range(n)), "crowd": [True] * n},
            "people": [{"age": i, "at": [0.5, i]} for i in range(n)],
        }
        for n in counts
    ]
    data = datasets.Dataset.from_list(rows, features=form)

    @pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def pipe() -> Any:
        columns = fn.readers.dataset(dataset=data)
        return *columns["objects"].values(), *columns["people"].values()

    wanted = [((4,), torch.float32), ((), torch.int64), ((), torch.bool), ((), torch.int64), ((2,), torch.float64)]
    with pipe() as built:
        for output, (axes, dtype) in zip(built.run(), wanted, strict=True):
            assert [tuple(sample.shape) for sample in output.samples()] == [(n, *axes) for n in counts]
            assert {sample.dtype for sample in output.samples()} == {dtype}


class Scaled(torch.utils.data.Dataset[Any]):
    """Process ids, times a number that a program may change."""

    def __init__(self, scale: Any) -> None:
        self.scale = scale

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> tuple[float, int]:
        return index * (self.scale.value if isinstance(self.scale, Shared) else self.scale), os.getpid()


@pytest.mark.slow
@pytest.mark.parametrize("is_pure", [False, True])
def test_an_epoch_reads_the_values_at_its_start(is_pure: bool) -> None:
    data = Scaled(Shared(0.0) if is_pure else 0.0)

    @pipeline_def(batch_size=4, num_threads=2, num_processes=2, device_id=None)
    def define() -> Any:
        numbers, processes = fn.readers.dataset(dataset=data, pure=is_pure)
        return numbers, processes

    with Loader(define) as loader:
        for scale in (1.0, 2.0, 3.0):
            if is_pure:
                data.scale.value = scale
            else:
                data.scale = scale
            batches = list(loader)
            assert torch.cat([numbers for numbers, _ in batches]).tolist() == [scale * i for i in range(8)]
            processes = {int(pid) for _, pids in batches for pid in pids}
            assert len(processes) <= 2 and (os.getpid() in processes) != is_pure
        assert ("2 worker processes" in loader.pipeline.explain()) == is_pure
