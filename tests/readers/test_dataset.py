"""readers.dataset: data sets in Python."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from torchdali import dynamic as ndd
from torchdali import fn, pipeline_def


class Pictures(torch.utils.data.Dataset[Any]):
    """Images that grow, with number and name; the record 7 fails."""

    def __init__(self, size: int = 10) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        if index == 7:
            raise KeyError("seven")
        return Image.fromarray(np.full((4, 5 + index, 3), index, np.uint8)), index, f"n{index}"


class Batched:
    """Numbers that are read by batches."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    def __len__(self) -> int:
        return 9

    def __getitem__(self, index: int) -> int:
        return index * 10

    def __getitems__(self, indices: list[int]) -> list[int]:
        self.asked.append(indices)
        return [index * 10 for index in indices]


def build(dataset: Any, batch_size: int = 4, pipeline: dict[str, Any] | None = None, **arguments: Any) -> Any:
    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=None, **(pipeline or {}))
    def define() -> Any:
        outputs = fn.readers.dataset(dataset=dataset, name="Reader", **arguments)
        if isinstance(outputs, dict):
            return tuple(outputs.values())
        return tuple(outputs) if isinstance(outputs, list) else outputs

    return define()


def lists(outputs: Any) -> list[Any]:
    return [[sample.tolist() for sample in output.samples()] for output in outputs]


def words(output: Any) -> list[str]:
    return [bytes(sample.numpy()).decode() for sample in output.samples()]


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_samples_of_several_values(workers: int) -> None:
    with build(Pictures(), pipeline={"bad_samples": "skip"}, workers=workers) as pipe:
        found = [pipe.run() for _ in range(3)]
    images, numbers, names = zip(*found, strict=True)
    assert images[0].layout() == "HWC"
    assert [tuple(sample.shape) for sample in images[1].samples()] == [(4, 9, 3), (4, 10, 3), (4, 11, 3)]
    assert [int(n) for batch in numbers for n in batch.samples()] == [0, 1, 2, 3, 4, 5, 6, 8, 9, 0, 1]
    assert words(names[1]) == ["n4", "n5", "n6"]


def test_an_error_names_the_record() -> None:
    with build(Pictures()) as pipe:
        pipe.run()
        with pytest.raises(KeyError, match=r"sample 3 of batch 1 \(record 7 of Pictures\)"):
            pipe.run()


@pytest.mark.slow
def test_an_error_of_a_worker() -> None:
    with build(Pictures(), workers=1) as pipe:
        pipe.run()
        with pytest.raises(KeyError, match=r"record 7 of Pictures"):
            pipe.run()


def test_batches_are_asked_for_at_once() -> None:
    dataset = Batched()
    with build(dataset, batch_size=3, pad_last_batch=True) as pipe:
        assert lists(pipe.run()) == [[0, 10, 20]]
        assert lists(pipe.run()) == [[30, 40, 50]]
    assert dataset.asked[:2] == [[0, 1, 2], [3, 4, 5]]


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
    (0.5, torch.float32, 0.5),
    (np.float64(0.5), torch.float64, 0.5),
    (np.arange(3, dtype=">i4"), torch.int32, [0, 1, 2]),
    (np.arange(6)[::-2], torch.int64, [5, 3, 1]),
    (torch.ones(2, requires_grad=True), torch.float32, [1, 1]),
    (b"ab", torch.uint8, [97, 98]),
    ("ä", torch.uint8, [195, 164]),
    ([1.5, 2], torch.float32, [1.5, 2]),
    (Image.new("L", (2, 1), 7), torch.uint8, [[[7], [7]]]),
    (Image.new("1", (1, 1), 1), torch.uint8, [[[255]]]),
    (Image.new("P", (1, 1), 0), torch.uint8, [[[0, 0, 0]]]),
])  # fmt: skip
def test_values(value: Any, dtype: torch.dtype, expected: Any) -> None:
    with build([value], batch_size=1) as pipe:
        (output,) = pipe.run()
    sample = output.samples()[0]
    assert sample.dtype == dtype and sample.tolist() == expected


def test_what_is_delivered_may_be_changed() -> None:
    data = np.zeros((2, 3), np.int64)
    with build(data, batch_size=2) as pipe:
        for sample in pipe.run()[0].samples():
            sample.fill_(9)
    assert not data.any()


@pytest.mark.parametrize("dataset, arguments, error, match", [
    (iter([1]), {}, TypeError, "no len"),
    ([], {}, RuntimeError, "empty"),
    ([{"a": 1}], {"columns": ["b"]}, RuntimeError, r"no \['b'\], but \['a'\]"),
    ([1], {"columns": ["b"]}, RuntimeError, "no dictionaries"),
    ([1], {"layouts": ["", ""]}, RuntimeError, "2 layouts for 1 outputs"),
    ([1], {"workers": -1}, RuntimeError, "workers=-1"),
])  # fmt: skip
def test_refusals(dataset: Any, arguments: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        build(dataset, **arguments).build()


@pytest.mark.parametrize("dataset, match", [([1, None], "NoneType is no tensor"), ([(1, 2), (1,)], "has 1 values"), ([np.array("a")], "none of numbers")])
def test_samples_that_are_no_tensors(dataset: Any, match: str) -> None:
    with build(dataset, batch_size=2) as pipe, pytest.raises((TypeError, RuntimeError), match=match):
        pipe.run()


def test_shuffling_and_checkpoints() -> None:
    order = {"batch_size": 3, "random_shuffle": True, "seed": 5}
    with build(list(range(10)), pipeline={"enable_checkpointing": True}, **order) as pipe:
        seen = lists(pipe.run())[0] + lists(pipe.run())[0]
        state = pipe.checkpoint()
        rest = [lists(pipe.run()) for _ in range(3)]
    assert len(set(seen)) == 6 and seen != sorted(seen)
    with build(list(range(10)), pipeline={"checkpoint": state}, **order) as again:
        assert [lists(again.run()) for _ in range(3)] == rest


def test_a_pipeline_with_it_is_not_saved() -> None:
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


def test_hugging_face_images_come_encoded() -> None:
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
    with pytest.raises(RuntimeError, match=r"no \['objects.label'\], but \['id', 'objects.bbox', 'objects.category'\]"):
        pipe(["objects.label"]).build()


def test_a_dictionary_as_output_says_how_to_return_it() -> None:
    rows = [{"image": i, "label": i} for i in range(4)]

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.readers.dataset(dataset=rows)

    with pytest.raises(TypeError, match=r"dictionary.*return outputs\['image'\], outputs\['label'\]\. Loader"):
        define()


def test_labels_that_are_words_are_warned_of() -> None:
    rows = [(i, name) for i, name in enumerate(["cat", "dog", "cat"])]
    with pytest.warns(UserWarning, match=r"output 'cat' is text.*bytes, uint8.*names\.index\(label\)") as said:
        assert words(build(rows, 3).run()[1]) == ["cat", "dog", "cat"]
    assert [each.filename for each in said] == [__file__]


@pytest.mark.parametrize("text", ["folder/cat", "cat.jpg", "a cat sits on the roof"])
def test_paths_and_sentences_are_not(text: str) -> None:
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
def test_features_of_hugging_face_tell_what_an_empty_list_is(first: int) -> None:
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

    wanted = [((4,), torch.float32), ((), torch.int64), ((), torch.bool), ((), torch.int64), ((2,), torch.float32)]
    with pipe() as built:
        for output, (axes, dtype) in zip(built.run(), wanted, strict=True):
            assert [tuple(sample.shape) for sample in output.samples()] == [(n, *axes) for n in counts]
            assert {sample.dtype for sample in output.samples()} == {dtype}
