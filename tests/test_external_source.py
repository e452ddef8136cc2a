"""`external_source` in this process: sources of all kinds, data of all kinds, feeding, errors."""

from __future__ import annotations

import array
import functools
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from tests.sources import batch, batches, epochs, pipeline, run, source, values
from torchdali import Pipeline, fn, ops, types
from torchdali.tensors import TensorCPU, TensorListCPU


def generate() -> Iterator[list[Any]]:
    yield from batches(2)


def generate_many(count: int = 3) -> Iterator[list[Any]]:
    yield from batches(count)


class Batches:
    """A class whose instances iterate."""

    def __iter__(self) -> Iterator[list[Any]]:
        return iter(batches(2))


class Counted:
    """Batches of a data set that may have been changed."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[list[Any]]:
        return iter(batches(self.count))


class Numbered:
    """A callable object; and a method."""

    def __call__(self, i: int) -> list[Any]:
        return batch(i)

    def method(self, i: int) -> list[Any]:
        return batch(i)


class CallableIterable(Batches):
    def __call__(self) -> list[Any]:
        return batch(9)


def counting() -> Callable[[], list[Any]]:
    found = iter(batches(2))
    return lambda: next(found)


B0, B1, B2, B3 = batches(4)
BATCHES = [values([TensorListCPU(b)]) for b in (B0, B1, B2, B3)]
b0, b1, b2, b3 = BATCHES
STOP = "stop"

KINDS: list[tuple[str, Callable[[], Any], list[Any]]] = [
    ("no parameter", counting, [b0, b1, STOP, STOP]),
    ("the number of the batch", lambda: lambda i: batch(i), [b0, b1, b2, b3]),
    ("a default counts as a parameter", lambda: lambda i=7: batch(i), [b0, b1, b2, b3]),
    ("callable object", Numbered, [b0, b1, b2, b3]),
    ("method", lambda: Numbered().method, [b0, b1, b2, b3]),
    ("partial", lambda: functools.partial(lambda a, i: batch(a + i), 1), [b1, b2, b3]),
    ("list", lambda: batches(2), [b0, b1, STOP, STOP]),
    ("empty list", list, [STOP, STOP]),
    ("tuple", lambda: tuple(batches(1)), [b0, STOP]),
    ("iterator", lambda: iter(batches(2)), [b0, b1, STOP]),
    ("iterable", Batches, [b0, b1, STOP]),
    ("class that iterates", lambda: Batches, [b0, b1, STOP]),
    ("callable iterable iterates", CallableIterable, [b0, b1, STOP]),
    ("generator", generate, [b0, b1, STOP, STOP]),
    ("generator function", lambda: generate, [b0, b1, STOP, STOP]),
    ("its defaults", lambda: generate_many, [b0, b1, b2, STOP]),
    ("partial generator function", lambda: functools.partial(generate_many, 1), [b0, STOP]),
    ("function that returns an iterator", lambda: lambda: iter(batches(2)), [b0, b1, STOP]),
]


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(("make", "expected"), [k[1:] for k in KINDS], ids=[k[0] for k in KINDS])
def test_kinds_of_sources(make, expected, depth) -> None:
    pipe = pipeline(source(make()), prefetch_queue_depth=depth)
    assert [run(pipe) for _ in expected] == expected


# ---------------------------------------------------------------- epochs

CYCLES: list[tuple[Any, list[list[Any]]]] = [
    (None, [[b0, b1, STOP, STOP], [STOP] * 4]),
    (False, [[b0, b1, STOP, STOP], [STOP] * 4]),
    ("no", [[b0, b1, STOP, STOP], [STOP] * 4]),
    (True, [[b0, b1, b0, b1], [b0, b1, b0, b1]]),
    ("quiet", [[b0, b1, b0, b1], [b0, b1, b0, b1]]),
    ("raise", [[b0, b1, STOP, STOP], [b0, b1, STOP, STOP]]),
]
ANEW = {
    "list": lambda: batches(2),
    "generator function": lambda: generate,
    "class": lambda: Batches,
    "iterable": Batches,
}


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("kind", ANEW)
@pytest.mark.parametrize(("cycle", "expected"), CYCLES)
def test_cycles(kind, cycle, expected, depth) -> None:
    pipe = pipeline(source(ANEW[kind](), cycle=cycle), prefetch_queue_depth=depth)
    assert epochs(pipe) == expected


def test_places_of_samples_and_batches() -> None:
    seen: list[Any] = []

    def sample(info: types.SampleInfo) -> Any:
        place = (info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx)
        seen.append(place)
        if info.idx_in_epoch == 7:
            raise StopIteration
        return np.int32(info.idx_in_epoch)

    pipe = pipeline(source(sample, batch=False), prefetch_queue_depth=1)
    # The seventh sample is in a batch that is never full: it is dropped.
    assert epochs(pipe, runs=3) == [[[0, 1, 2], [3, 4, 5], STOP]] * 2
    first = [(i, i % 3, i // 3, 0) for i in range(8)]
    assert seen == first + [(*place[:3], 1) for place in first]


def test_batch_info() -> None:
    def whole(info: types.BatchInfo) -> Any:
        if info.iteration == 2:
            raise StopIteration
        return [np.int32([info.iteration, info.epoch_idx])]

    pipe = pipeline(source(whole, batch_info=True))
    assert epochs(pipe, runs=3) == [[[[0, 0]], [[1, 0]], STOP], [[[0, 1]], [[1, 1]], STOP]]


SAMPLES: list[tuple[Any, list[list[Any]]]] = [
    (None, [[[0, 1, 2], [3, 4, 5], STOP], [STOP] * 3]),
    (True, [[[0, 1, 2], [3, 4, 5], [6, 0, 1]], [[2, 3, 4], [5, 6, 0], [1, 2, 3]]]),
    ("raise", [[[0, 1, 2], [3, 4, 5], STOP]] * 2),
]


@pytest.mark.parametrize(("cycle", "expected"), SAMPLES)
def test_iterables_of_samples(cycle, expected) -> None:
    """A batch that is not full is dropped; with "quiet" it goes on in the next pass."""
    numbers = [np.int32(i) for i in range(7)]
    pipe = pipeline(source(numbers, batch=False, cycle=cycle), prefetch_queue_depth=1)
    assert epochs(pipe, runs=3) == expected


def test_sources_of_one_pipeline_advance_together() -> None:
    """Where one ends, the others lose a batch, as in DALI."""
    pipe = pipeline(
        lambda dali: [
            dali.fn.external_source(batches(2), cycle="raise"),
            dali.fn.external_source(batches(5, 10), cycle="raise"),
        ]
    )
    firsts = [[b if b == STOP else b[1][0] for b in epoch] for epoch in epochs(pipe, 3, 3)]
    assert firsts == [[10, 11, STOP], [13, 14, STOP], [10, 11, STOP]]


def test_reset_in_an_epoch_is_ignored() -> None:
    pipe = pipeline(source(lambda i: batch(i)))
    assert run(pipe) == b0
    pipe.reset()
    assert run(pipe) == b1


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_every_batch_before_the_end_is_delivered(depth) -> None:
    calls: list[int] = []

    def until_five(i: int) -> list[Any]:
        calls.append(i)
        if i == 5:
            raise StopIteration
        return batch(i)

    pipe = pipeline(source(until_five), prefetch_queue_depth=depth)
    assert [run(pipe) for _ in range(7)] == [[i] * 3 for i in range(5)] + [STOP] * 2
    assert calls == list(range(6))  # not asked again before reset


# ---------------------------------------------------------------- data

RAGGED = [np.array([1, 2], np.int32), np.array([3], np.int32)]
WHOLE = np.arange(6, dtype=np.float32).reshape(2, 3)


class Exported:
    """Data that DLPack alone shows."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **arguments: Any) -> Any:
        return self.tensor.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


class Interfaced:
    """Data that the array interface alone shows."""

    def __init__(self, data: np.ndarray[Any, Any]) -> None:
        self._data = data
        self.__array_interface__ = data.__array_interface__


DATA: list[tuple[str, Any, list[Any], str]] = [
    ("ragged list", RAGGED, [[1, 2], [3]], ""),
    ("tuple", tuple(RAGGED), [[1, 2], [3]], ""),
    ("array", WHOLE, WHOLE.tolist(), ""),
    ("numbers of NumPy", [np.float64(1), np.float64(2)], [1.0, 2.0], ""),
    ("1D array of scalars", np.arange(3), [0, 1, 2], ""),
    ("read-only bytes", [np.frombuffer(b"ab", np.uint8)] * 2, [[97, 98]] * 2, ""),
    ("torch list", [torch.tensor([1, 2]), torch.tensor([3])], [[1, 2], [3]], ""),
    ("torch batch", torch.from_numpy(WHOLE), WHOLE.tolist(), ""),
    ("torch with gradient", [torch.ones(2, requires_grad=True)], [[1.0, 1.0]], ""),
    ("both", [torch.ones(1), np.zeros(1, np.float32)], [[1.0], [0.0]], ""),
    ("DLPack", [Exported(torch.tensor([1])), Exported(torch.tensor([2, 3]))], [[1], [2, 3]], ""),
    ("DLPack batch", Exported(torch.from_numpy(WHOLE)), WHOLE.tolist(), ""),
    ("DLPack capsule", lambda: [torch.utils.dlpack.to_dlpack(torch.ones(1))], [[1.0]], ""),
    ("array interface", [Interfaced(WHOLE)], [WHOLE.tolist()], ""),
    ("array module", [array.array("i", [1, 2])], [[1, 2]], ""),
    ("memoryview", [memoryview(b"ab")], [[97, 98]], ""),
    ("TensorList", TensorListCPU(RAGGED, layout="X"), [[1, 2], [3]], "X"),
    ("dense TensorList", TensorListCPU(WHOLE, layout="X"), WHOLE.tolist(), "X"),
    ("list of TensorCPU", [TensorCPU(WHOLE, layout="HW")], [WHOLE.tolist()], "HW"),
    ("TensorCPU", TensorCPU(WHOLE), WHOLE.tolist(), ""),
    ("empty list", [], [], ""),
    ("empty array", np.zeros((0, 3), np.int32), [], ""),
    ("empty samples", [np.zeros(0, np.uint8)] * 2, [[], []], ""),
]


@pytest.mark.parametrize(
    ("data", "expected", "layout"), [c[1:] for c in DATA], ids=[c[0] for c in DATA]
)
def test_data(data, expected, layout) -> None:
    pipe = pipeline(source(data if callable(data) else lambda: data), prefetch_queue_depth=1)
    (output,) = pipe.run()
    assert values([output]) == expected
    assert output.layout() == layout


@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
    + ["float16", "float32", "float64"],
)
@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((1, 2), (3, 1))])
def test_element_types(dtype, shapes) -> None:
    samples = [np.arange(np.prod(shape)).reshape(shape).astype(dtype) for shape in shapes]
    (output,) = pipeline(source(lambda: samples)).run()
    for i, sample in enumerate(samples):
        assert output.at(i).dtype == sample.dtype
        assert np.array_equal(output.at(i), sample)


@pytest.mark.parametrize("no_copy", [None, False, True])
@pytest.mark.parametrize("kind", ["samples", "ragged", "array", "torch", "TensorList"])
def test_memory_is_shared_only_with_no_copy(kind, no_copy) -> None:
    memory = np.arange(4, dtype=np.int32)
    data: Any = {
        "samples": [memory[:2], memory[2:]],
        "ragged": [memory[:3], memory[3:]],
        "array": memory.reshape(2, 2),
        "torch": torch.from_numpy(memory).view(2, 2),
        "TensorList": TensorListCPU(memory.reshape(2, 2)),
    }[kind]
    (output,) = pipeline(source(lambda: data, no_copy=no_copy)).run()
    memory[0] = 99
    assert output.at(0).ravel()[0] == (99 if no_copy else 0)


REFUSED: list[tuple[str, Any, type[Exception]]] = [
    ("None", None, RuntimeError),
    ("number", 5, RuntimeError),
    ("text", "abc", RuntimeError),
    ("bytes", b"abc", RuntimeError),
    ("dictionary", {0: WHOLE}, RuntimeError),
    ("0-dimensional array", np.array(3), IndexError),
    ("numbers of Python", [1, 2], RuntimeError),
    ("lists of numbers", [[1, 2], [3, 4]], RuntimeError),
    ("texts", ["a", "b"], RuntimeError),
    ("bytes in a list", [b"a", b"b"], RuntimeError),
    ("None in a list", [np.int32(1), None], RuntimeError),
    ("strided", [np.zeros((4, 4))[::2]], RuntimeError),
    ("transposed", [np.zeros((4, 3)).T], RuntimeError),
    ("backwards", [np.zeros(4)[::-1]], RuntimeError),
    ("strided torch", [torch.zeros(4, 3).t()], RuntimeError),
    ("strided batch", np.zeros((3, 4))[:, ::2], RuntimeError),
    ("types differ", [np.zeros(2, np.int32), np.zeros(2, np.float32)], RuntimeError),
    ("axes differ", [np.zeros(2), np.zeros((2, 2))], RuntimeError),
    ("text array", [np.zeros(2, "U3")], RuntimeError),
    ("object array", [np.zeros(2, "O")], RuntimeError),
    ("complex", [np.zeros(2, np.complex64)], RuntimeError),
    ("dates", [np.zeros(2, "datetime64[s]")], RuntimeError),
    ("byte order", [np.zeros(2, ">i4")], RuntimeError),
    ("bfloat16", [torch.zeros(2, dtype=torch.bfloat16)], RuntimeError),
    ("larger than a batch", batch(0, 4), RuntimeError),
    ("larger array", np.zeros((4, 1)), RuntimeError),
]


@pytest.mark.parametrize(("data", "error"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_refused_data(data, error) -> None:
    """The batch fails, and the pipeline goes on."""
    pipe = pipeline(source(lambda i: data if i == 1 else batch(i)))
    assert run(pipe) == b0
    with pytest.raises(error) as caught:
        pipe.run()
    if hasattr(caught.value, "__notes__"):
        (note,) = caught.value.__notes__
        assert "external_source" in note and "batch 1" in note and "tests" in note
    assert run(pipe) == b2


DECLARED: list[tuple[dict[str, Any], Any, str]] = [
    ({"dtype": types.FLOAT}, RAGGED, "float32"),
    ({"dtype": np.float32}, RAGGED, "float32"),
    ({"ndim": 2}, RAGGED, "number of axes 2"),
    ({"layout": "HWC"}, RAGGED, "'HWC' cannot describe 1-dimensional"),
]


@pytest.mark.parametrize(("arguments", "data", "message"), DECLARED)
def test_declarations_are_checked(arguments, data, message) -> None:
    with pytest.raises(RuntimeError, match=message):
        pipeline(source(lambda: data, **arguments)).run()


def test_declarations_that_fit() -> None:
    arguments = {"dtype": types.INT32, "ndim": 1, "layout": "X"}
    (output,) = pipeline(source(lambda: RAGGED, **arguments)).run()
    assert (output.dtype, output.ndim(), output.layout()) == (types.INT32, 1, "X")


CHANGES: list[tuple[str, Any, str]] = [
    ("type", [np.float32(1)], "type"),
    ("axes", [np.zeros(1, np.int32)], "number of axes"),
    ("layout", TensorListCPU(np.zeros((1, 2), np.int32), layout="X"), "number of axes|layout"),
]


@pytest.mark.parametrize(("data", "message"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_batches_stay_alike(data, message) -> None:
    pipe = pipeline(source(lambda i: data if i == 1 else batch(i)))
    assert run(pipe) == b0
    with pytest.raises(RuntimeError, match=message):
        pipe.run()
    assert run(pipe) == b2


def test_sizes_and_shapes_may_change() -> None:
    data = [[np.zeros(i, np.int32)] * (i % 3) for i in range(5)]
    pipe = pipeline(source(data))
    assert [len(pipe.run()[0]) for _ in data] == [0, 1, 2, 0, 1]


# ---------------------------------------------------------------- several outputs

X, Y = [np.int32(1), np.int32(2)], [np.float32([1]), np.float32([2])]
SEVERAL: list[tuple[str, Any, dict[str, Any], Any]] = [
    ("tuple", (X, Y), {}, ([1, 2], [[1.0], [2.0]])),
    ("list", [X, Y], {}, ([1, 2], [[1.0], [2.0]])),
    ("array", np.zeros((2, 1, 1)), {}, ([[0.0]], [[0.0]])),
    ("dictionary", {0: X, 1: Y}, {}, ([1, 2], [[1.0], [2.0]])),
    ("more than asked for", (X, Y, X), {}, ([1, 2], [[1.0], [2.0]])),
    ("layouts", ([WHOLE], [WHOLE[0]]), {"layout": ["HW", "W"]}, ([WHOLE.tolist()], [[0, 1, 2]])),
    ("fewer layouts", ([WHOLE], Y[:1]), {"layout": ["HW"]}, ([WHOLE.tolist()], [[1.0]])),
    ("types", (X, Y), {"dtype": [types.INT32, types.FLOAT]}, ([1, 2], [[1.0], [2.0]])),
    ("axes", (X, Y), {"ndim": (0, 1)}, ([1, 2], [[1.0], [2.0]])),
]


@pytest.mark.parametrize(
    ("data", "arguments", "expected"), [c[1:] for c in SEVERAL], ids=[c[0] for c in SEVERAL]
)
def test_several_outputs(data, arguments, expected) -> None:
    outputs = pipeline(source(lambda i: data, 2, **arguments)).run()
    assert tuple(values(outputs)) == expected
    layouts = arguments.get("layout", [])
    assert [o.layout() for o in outputs] == [*layouts, *[""] * 2][:2]


FAULTY: list[tuple[str, Any, dict[str, Any], type[Exception]]] = [
    ("too few", (X,), {}, IndexError),
    ("None", None, {}, TypeError),
    ("number", 5, {}, TypeError),
    ("sizes", (X, Y[:1]), {}, RuntimeError),
    ("type of the second", (X, Y), {"dtype": types.INT32}, RuntimeError),
    ("axes of the second", (X, Y), {"ndim": [0, 0]}, RuntimeError),
]


@pytest.mark.parametrize(
    ("data", "arguments", "error"), [c[1:] for c in FAULTY], ids=[c[0] for c in FAULTY]
)
def test_faulty_outputs(data, arguments, error) -> None:
    with pytest.raises(error):
        pipeline(source(lambda i: data, 2, **arguments)).run()


def test_several_outputs_of_samples() -> None:
    def sample(info: types.SampleInfo) -> Any:
        return np.int32(info.idx_in_epoch), np.float32([info.iteration])

    pipe = pipeline(source(sample, 2, batch=False))
    assert run(pipe) == [[0, 1, 2], [[0.0]] * 3]
    assert run(pipe) == [[3, 4, 5], [[1.0]] * 3]
    with pytest.raises(IndexError):
        pipeline(source(lambda info: (np.int32(1),), 2, batch=False)).run()


def test_one_output_in_a_list() -> None:
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        nodes = fn.external_source(lambda: (X,), num_outputs=1)
        assert isinstance(nodes, list)
        pipe.set_outputs(*nodes)
    assert run(pipe) == [1, 2]


# ---------------------------------------------------------------- wrong calls

PLACE = {"source": lambda i: batch(i)}
WRONG: list[tuple[str, dict[str, Any], type[Exception]]] = [
    ("two parameters", {"source": lambda i, j: 0}, TypeError),
    ("two defaults", {"source": lambda i=1, j=2: 0}, TypeError),
    ("*args", {"source": lambda *args: 0}, TypeError),
    ("**kwargs", {"source": lambda **kwargs: 0}, TypeError),
    ("keyword", {"source": lambda *, a: 0}, TypeError),
    ("no source at all", {"source": 5}, TypeError),
    ("generator function with parameters", {"source": lambda a: (yield)}, TypeError),
    ("generator cycles", {"source": generate(), "cycle": True}, TypeError),
    ("generator raises", {"source": generate(), "cycle": "raise"}, TypeError),
    ("callable cycles", {**PLACE, "cycle": True}, ValueError),
    ("callable does not cycle", {**PLACE, "cycle": False}, ValueError),
    ("unknown cycle", {"source": [B0], "cycle": "bogus"}, ValueError),
    ("number as cycle", {"source": [B0], "cycle": 1}, ValueError),
    ("cycle without source", {"cycle": "raise"}, ValueError),
    ("outputs without source", {"num_outputs": 2}, ValueError),
    ("no outputs", {**PLACE, "num_outputs": 0}, ValueError),
    ("text as number of outputs", {**PLACE, "num_outputs": "2"}, TypeError),
    ("name and several outputs", {**PLACE, "num_outputs": 2, "name": "x"}, RuntimeError),
    ("unknown argument", {**PLACE, "colour": 3}, ValueError),
    ("mixed device", {**PLACE, "device": "mixed"}, ValueError),
    ("axes against layout", {**PLACE, "ndim": 3, "layout": "HW"}, RuntimeError),
    ("negative axes", {**PLACE, "ndim": -1}, RuntimeError),
    ("unknown type", {**PLACE, "dtype": "colour"}, TypeError),
    ("depth", {**PLACE, "prefetch_queue_depth": 2}, ValueError),
    ("hint", {**PLACE, "bytes_per_sample_hint": 100}, ValueError),
    ("parallel without source", {"parallel": True}, ValueError),
    ("parallel without parameter", {"source": lambda: B0, "parallel": True}, TypeError),
    ("parallel samples", {"source": [B0], "parallel": True, "batch": False}, TypeError),
    ("parallel copies", {**PLACE, "parallel": True, "no_copy": False}, ValueError),
    (
        "parallel without depth",
        {**PLACE, "parallel": True, "prefetch_queue_depth": 0},
        ValueError,
    ),
]


@pytest.mark.parametrize(("arguments", "error"), [c[1:] for c in WRONG], ids=[c[0] for c in WRONG])
def test_wrong_calls(arguments, error) -> None:
    """They fail when the pipeline is defined."""
    with pytest.raises(error):
        fn.external_source(**arguments)


def test_two_positional_arguments() -> None:
    with pytest.raises(TypeError):
        fn.external_source(lambda: B0, None, True)


# ---------------------------------------------------------------- errors of the user's code


class OwnError(Exception):
    def __init__(self, number: int, text: str) -> None:
        super().__init__(number, text)


ERRORS = [KeyError("key"), ValueError("value"), OwnError(1, "own"), OSError(2, "no file")]


@pytest.mark.parametrize("error", ERRORS, ids=[type(e).__name__ for e in ERRORS])
def test_exceptions_pass_through(error) -> None:
    """Unchanged, with the place in a note; the next run asks for the same batch again."""
    failures = [error]

    def fails_once(i: int) -> list[Any]:
        if i == 1 and failures:
            raise failures.pop()
        return batch(i)

    pipe = pipeline(source(fails_once))
    assert run(pipe) == b0
    with pytest.raises(type(error)) as caught:
        pipe.run()
    assert caught.value is error
    if sys.version_info >= (3, 11):
        (note,) = error.__notes__
        assert "external_source" in note and "batch 1" in note and "line" in note
    assert [run(pipe) for _ in range(2)] == [b1, b2]


def test_a_generator_that_fails_is_at_its_end() -> None:
    def fails() -> Iterator[list[Any]]:
        yield batch(0)
        raise ValueError("torn")

    pipe = pipeline(source(fails, cycle=True))
    assert [run(pipe) for _ in range(4)] == [b0, "ValueError", b0, "ValueError"]


def test_sizes_of_sources_clash() -> None:
    sizes = (2, 3)
    pipe = pipeline(lambda dali: [source([batch(0, n)])(dali) for n in sizes])
    with pytest.raises(RuntimeError, match="batch size clash"):
        pipe.run()


# ---------------------------------------------------------------- feeding


def fed(depth: int = 1, **arguments: Any) -> Any:
    return pipeline(source(name="in", **arguments), prefetch_queue_depth=depth)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_one_feed_for_every_run(depth) -> None:
    pipe = fed(depth)
    assert pipe.input_feed_count("in") == depth
    for i in range(depth):
        pipe.feed_input("in", batch(i))
    found = []
    for i in range(5):
        found.append(run(pipe))
        pipe.feed_input("in", batch(depth + i))
    assert found == [[i] * 3 for i in range(5)]


def test_data_in_stock() -> None:
    pipe = fed(2)
    for i in range(4):
        pipe.feed_input("in", batch(i))
    assert [run(pipe) for _ in range(6)] == [b0, b1, b2, b3, "IndexError", "IndexError"]


def test_data_fed_after_a_run_are_for_the_next() -> None:
    pipe = fed(2)
    pipe.feed_input("in", B0)
    pipe.schedule_run()  # two batches, and data for one
    pipe.feed_input("in", B1)
    assert values(pipe.outputs()) == b0
    with pytest.raises(IndexError):
        pipe.outputs()
    pipe.schedule_run()
    assert values(pipe.outputs()) == b1


def test_repeat_last() -> None:
    pipe = fed(repeat_last=True)
    assert run(pipe) == "IndexError"
    pipe.feed_input("in", B0)
    assert [run(pipe) for _ in range(3)] == [b0] * 3
    pipe.feed_input("in", B1)
    assert [run(pipe) for _ in range(2)] == [b1] * 2


def test_blocking_waits() -> None:
    pipe = fed(2, blocking=True)
    pipe.schedule_run()
    feeder = threading.Thread(target=lambda: [pipe.feed_input("in", batch(i)) for i in range(2)])
    feeder.start()
    assert [values(pipe.outputs()) for _ in range(2)] == [b0, b1]
    feeder.join()


def test_closing_ends_a_blocking_wait() -> None:
    pipe = fed(blocking=True)
    pipe.schedule_run()
    pipe.close()
    with pytest.raises(RuntimeError, match="closed"):
        pipe.outputs()


def test_a_waiting_pipeline_can_be_dropped() -> None:
    pipe = fed(blocking=True)
    pipe.schedule_run()
    gone = weakref.ref(pipe)
    del pipe
    gc.collect()
    assert gone() is None


def test_feed_by_name_node_and_operator() -> None:
    pipe = Pipeline(batch_size=3, num_threads=1, device_id=None, prefetch_queue_depth=1)
    operator = ops.ExternalSource()
    with pipe:
        nodes = [fn.external_source(name="a"), fn.external_source(), operator()]
        pipe.set_outputs(*nodes)
    pipe.feed_input("a", B0)
    pipe.feed_input(nodes[1], B1)
    pipe.feed_input(operator, B2)
    assert run(pipe) == [b0, b1, b2]


def test_feed_errors() -> None:
    pipe = Pipeline(batch_size=3, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with pipe:
        unused = fn.external_source(name="unused")
        own = fn.external_source(lambda: B0, name="own")
        constant = fn.constant(idata=[1], shape=[1], name="constant")
        pipe.set_outputs(own, constant, fn.external_source(name="in"))
    for unknown in ("unknown", "constant", constant, "unused", unused):
        with pytest.raises(KeyError):
            pipe.feed_input(unknown, B0)
    with pytest.raises(KeyError):
        pipe.input_feed_count("unknown")
    with pytest.raises(TypeError):
        pipe.feed_input(3, B0)
    for source_of_its_own in ("own", own):
        with pytest.raises(RuntimeError, match="source"):
            pipe.feed_input(source_of_its_own, B0)
    for wrong in ("text", None, batch(0, 4), [np.zeros((4, 4))[::2]]):
        with pytest.raises(RuntimeError):
            pipe.feed_input("in", wrong)
    pipe.feed_input("in", B1)
    assert run(pipe)[2] == b1


LAYOUTS: list[tuple[str | None, str | None, Any]] = [
    (None, None, ""),
    (None, "HW", "HW"),
    ("AB", None, "AB"),
    ("AB", "AB", "AB"),
    ("AB", "HW", RuntimeError),
]


@pytest.mark.parametrize(("declared", "given", "expected"), LAYOUTS)
def test_layouts_of_fed_data(declared, given, expected) -> None:
    pipe = fed(layout=declared)
    pipe.feed_input("in", [np.zeros((2, 2))], layout=given)
    if isinstance(expected, str):
        assert pipe.run()[0].layout() == expected
    else:
        with pytest.raises(expected):
            pipe.run()


@pytest.mark.parametrize("no_copy", [None, False, True])
def test_fed_memory(no_copy) -> None:
    pipe = fed(no_copy=no_copy)
    data = np.array([[1], [2]])
    pipe.feed_input("in", data)
    data[0] = 99
    assert run(pipe) == [[99] if no_copy else [1], [2]]


@pytest.mark.parametrize("arguments", [{"prefetch_queue_depth": 1}, {"exec_pipelined": False}])
def test_inputs_of_run(arguments) -> None:
    pipe = pipeline(source(name="in"), **arguments)
    assert values(pipe.run(**{"in": B0})) == b0
    assert values(pipe.run(**{"in": B1})) == b1
    with pytest.raises(KeyError):
        pipe.run(other=B0)
    with pytest.raises(IndexError):
        pipe.run()


def test_inputs_of_run_need_one_batch_in_flight() -> None:
    with pytest.raises(RuntimeError, match="prefetch_queue_depth=1"):
        pipeline(source(name="in")).run(**{"in": B0})


class Subclass(Pipeline):
    """The form of pipelines before `pipeline_def`."""

    def __init__(self, depth: int, last: int) -> None:
        super().__init__(2, 1, None, prefetch_queue_depth=depth)
        self.input = ops.ExternalSource()
        self.number, self.last = 0, last

    def define_graph(self) -> Any:
        self.images = self.input()
        return self.images

    def iter_setup(self) -> None:
        if self.number == self.last:
            raise StopIteration
        self.feed_input(self.images, batch(self.number, 2))
        self.number += 1


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_iter_setup(depth) -> None:
    """What was fed is delivered before the end."""
    pipe = Subclass(depth, last=3)
    found = []
    for _ in range(2):
        found.append([run(pipe) for _ in range(5)])
        pipe.reset()
        pipe.number = 0
    assert found == [[[0, 0], [1, 1], [2, 2], STOP, STOP]] * 2


# ---------------------------------------------------------------- the class


def used(make: Callable[[], Any], runs: int = 1) -> list[Any]:
    pipe = pipeline(lambda dali: make())
    return [run(pipe) for _ in range(runs)]


CLASSES: list[tuple[str, Callable[[], Any], Any]] = [
    ("source before", lambda: ops.ExternalSource(source=lambda: B1)(), b1),
    ("by position", lambda: ops.ExternalSource(lambda i: (B1, B2), 2)(), [b1, b2]),
    ("source at the call", lambda: ops.ExternalSource()(source=lambda: B1), b1),
    ("outputs before", lambda: ops.ExternalSource(num_outputs=1)(source=lambda i: [B1]), b1),
    (
        "samples",
        lambda: ops.ExternalSource(lambda i: np.int32(i.idx_in_epoch), batch=False)(),
        [0, 1, 2],
    ),
    (
        "samples at the call",
        lambda: ops.ExternalSource(lambda i: np.int32(i.idx_in_epoch))(batch=False),
        [0, 1, 2],
    ),
    ("checks at the call", lambda: ops.ExternalSource(lambda: B1)(dtype=types.INT32, ndim=0), b1),
    ("a name of the call", lambda: ops.ExternalSource(lambda: B1, name="a")(name="b"), b1),
]


@pytest.mark.parametrize(
    ("make", "expected"), [c[1:] for c in CLASSES], ids=[c[0] for c in CLASSES]
)
def test_class(make, expected) -> None:
    assert used(make) == [expected]


def test_class_cycles_and_is_used_twice() -> None:
    cycling = ops.ExternalSource([B1, B2], cycle=True)
    assert used(cycling, 3) == [b1, b2, b1]
    numbered = ops.ExternalSource(lambda i: batch(i))
    assert used(lambda: [numbered(), numbered()], 2) == [[b0, b0], [b1, b1]]


WRONG_CLASSES: list[tuple[str, Callable[[], Any], type[Exception]]] = [
    ("source twice", lambda: ops.ExternalSource(lambda: B0)(source=lambda: B1), RuntimeError),
    ("layout twice", lambda: ops.ExternalSource(lambda: B0, layout="H")(layout="W"), RuntimeError),
    ("batch twice", lambda: ops.ExternalSource(lambda: B0, batch=True)(batch=False), ValueError),
    ("cycle apart", lambda: ops.ExternalSource([B0])(cycle=True), ValueError),
    ("an input", lambda: ops.ExternalSource(lambda: B0)(3), TypeError),
    ("outputs at the call", lambda: ops.ExternalSource(lambda: B0)(num_outputs=1), KeyError),
    ("unknown", lambda: ops.ExternalSource(lambda: B0, colour=3), ValueError),
    ("named outputs", lambda: ops.ExternalSource(lambda: B0, 2, name="x"), ValueError),
]


@pytest.mark.parametrize(
    ("make", "error"), [c[1:] for c in WRONG_CLASSES], ids=[c[0] for c in WRONG_CLASSES]
)
def test_wrong_classes(make, error) -> None:
    with pytest.raises(error):
        make()


def test_module() -> None:
    from torchdali import external_source as module

    assert module.external_source is fn.external_source
    assert module.ExternalSource is ops.ExternalSource


# ---------------------------------------------------------------- devices and states


def test_gpu_sources() -> None:
    """The device stage on the CPU: the data end up on the pipeline's device."""
    pipe = pipeline(source(lambda i: batch(i), device="gpu"), device_id="cpu")
    assert [run(pipe) for _ in range(2)] == [b0, b1]
    with pytest.raises(RuntimeError, match="GPU"):
        pipeline(source(lambda i: batch(i), device="gpu")).run()


def infos(info: types.SampleInfo) -> Any:
    if info.idx_in_epoch >= 13:
        raise StopIteration
    return np.int32([info.idx_in_epoch, info.iteration, info.epoch_idx])


def until_four(i: int) -> list[Any]:
    if i == 4:
        raise StopIteration
    return batch(i)


def many_batches() -> Iterator[list[Any]]:
    yield from batches(4)


STATES: list[tuple[str, Callable[[], dict[str, Any]]]] = [
    ("samples", lambda: {"source": infos, "batch": False}),
    ("batches", lambda: {"source": until_four}),
    ("infos", lambda: {"source": lambda i: [np.int32([i.iteration])], "batch_info": True}),
    ("list", lambda: {"source": batches(4)}),
    ("cycling list", lambda: {"source": batches(3), "cycle": True}),
    ("list that ends", lambda: {"source": batches(4), "cycle": "raise"}),
    ("generator function", lambda: {"source": many_batches, "cycle": "raise"}),
    ("generator", lambda: {"source": many_batches()}),
    ("samples of a list", lambda: {"source": [np.int32(i) for i in range(14)], "batch": False}),
    (
        "cycling samples",
        lambda: {"source": [np.int32(i) for i in range(7)], "batch": False, "cycle": "quiet"},
    ),
    ("function without parameter", lambda: {"source": iter(batches(4)).__next__}),
]


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("make", [c[1] for c in STATES], ids=[c[0] for c in STATES])
def test_restored_at_every_batch(make, depth) -> None:
    """The rest of the epoch and the next one are the same; batches in flight do not count."""
    for before in range(5):
        pipe = pipeline(source(**make()), prefetch_queue_depth=depth)
        taken = [run(pipe) for _ in range(before)]
        state = pipe.state_dict()
        assert STOP not in taken
        again = pipeline(source(**make()), prefetch_queue_depth=depth)
        again.load_state_dict(state)
        assert epochs(again, 2, 5) == epochs(pipe, 2, 5), before


def test_an_iterator_does_not_go_back() -> None:
    pipe = pipeline(source(iter(batches(4))), prefetch_queue_depth=1)
    start = pipe.state_dict()
    run(pipe)
    with pytest.raises(RuntimeError, match="iterator"):
        pipe.load_state_dict(start)


def test_a_shorter_iterable_is_noticed() -> None:
    pipe = pipeline(source(Counted(4)), prefetch_queue_depth=1)
    assert [run(pipe) for _ in range(3)] == [b0, b1, b2]
    with pytest.raises(RuntimeError, match="2 items"):
        pipeline(source(Counted(2))).load_state_dict(pipe.state_dict())
