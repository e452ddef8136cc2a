"""The data of `external_source`: valid return values, declarations, several outputs, wrong calls."""

from __future__ import annotations

import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.sources import batch, pipeline, run, source, values
from torchdali import Pipeline, fn, types
from torchdali.tensors import TensorCPU, TensorListCPU

B0 = batch(0)
b0, b2 = [0] * 3, [2] * 3


def generate() -> Iterator[list[Any]]:
    yield batch(0)


RAGGED = [np.array([1, 2], np.int32), np.array([3], np.int32)]
WHOLE = np.arange(6, dtype=np.float32).reshape(2, 3)


class Exported:
    """Data with only the DLPack protocol."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **arguments: Any) -> Any:
        return self.tensor.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


class Interfaced:
    """Data with only the array interface."""

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
    [
        "bool",
        "uint8",
        "int8",
        "uint16",
        "int16",
        "uint32",
        "int32",
        "uint64",
        "int64",
        "float16",
        "float32",
        "float64",
    ],
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


SQUARE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
STRIDED: list[tuple[str, Any]] = [
    ("strided", [SQUARE[:, ::2]] * 2),
    ("transposed", [SQUARE.T, SQUARE.T]),
    ("of two shapes", [SQUARE.T, SQUARE[:, ::2]]),
    ("backwards", [SQUARE[::-1]]),
    ("torch", [torch.from_numpy(SQUARE).permute(1, 2, 0)] * 2),
    ("torch of two shapes", [torch.from_numpy(SQUARE).permute(1, 2, 0), torch.from_numpy(SQUARE)]),
    ("batch", SQUARE[:, ::2]),
    ("batch of torch", torch.from_numpy(SQUARE)[:, ::2]),
    ("batch with one sample", SQUARE[None].T),
]


@pytest.mark.parametrize("no_copy", [False, True])
@pytest.mark.parametrize("data", [c[1] for c in STRIDED], ids=[c[0] for c in STRIDED])
def test_strided_data_is_made_contiguous(data, no_copy: bool) -> None:
    (output,) = pipeline(source(lambda: data, no_copy=no_copy), batch_size=4).run()
    assert len(output) == len(data)
    for i, sample in enumerate(data):
        np.testing.assert_array_equal(output.at(i), np.asarray(sample))
        assert output[i].torch().is_contiguous()


def test_both_types_of_64_bits() -> None:
    data = [np.array([1, 2**63], each) for each in (np.uint64, np.ulonglong)]
    (output,) = pipeline(source(lambda: data, no_copy=True)).run()
    assert [output.at(i).tolist() for i in range(2)] == [[1, 2**63]] * 2


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
    """The batch fails, and the pipeline continues."""
    pipe = pipeline(source(lambda i: data if i == 1 else batch(i)))
    assert run(pipe) == b0
    with pytest.raises(error) as caught:
        pipe.run()
    if hasattr(caught.value, "__notes__"):
        (note,) = caught.value.__notes__
        assert "external_source" in note and "batch 1" in note and "tests" in note
    assert run(pipe) == b2


DECLARED: list[tuple[dict[str, Any], Any, str]] = [
    ({"dtype": types.FLOAT}, RAGGED, "type float and got: int32"),
    ({"dtype": np.float32}, RAGGED, "type float and got: int32"),
    ({"ndim": 2}, RAGGED, "2 dimensions and got 1"),
    ({"layout": "HWC"}, RAGGED, "'HWC' cannot describe 1-dimensional"),
]


@pytest.mark.parametrize(("arguments", "data", "message"), DECLARED)
def test_declarations_are_checked(arguments, data, message) -> None:
    with pytest.raises(RuntimeError, match=message):
        pipeline(source(lambda: data, **arguments)).run()


def test_declarations_that_match() -> None:
    arguments = {"dtype": types.INT32, "ndim": 1, "layout": "X"}
    (output,) = pipeline(source(lambda: RAGGED, **arguments)).run()
    assert (output.dtype, output.ndim(), output.layout()) == (types.INT32, 1, "X")


CHANGES: list[tuple[str, Any, str]] = [
    ("type", [np.float32(1)], "another type than in the previous batch: int32, now float"),
    ("axes", [np.zeros(1, np.int32)], "another number of dimensions .*: 0, now 1"),
    ("layout", TensorListCPU(np.zeros((1, 2), np.int32), layout="X"), "another number of dimensions .*: 0, now 1"),
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
    ("unknown argument", {**PLACE, "color": 3}, ValueError),
    ("mixed device", {**PLACE, "device": "mixed"}, ValueError),
    ("axes against layout", {**PLACE, "ndim": 3, "layout": "HW"}, RuntimeError),
    ("negative axes", {**PLACE, "ndim": -1}, RuntimeError),
    ("unknown type", {**PLACE, "dtype": "color"}, TypeError),
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
    """They fail in the definition of the pipeline."""
    with pytest.raises(error):
        fn.external_source(**arguments)


def test_two_positional_arguments() -> None:
    with pytest.raises(TypeError):
        fn.external_source(lambda: B0, None, True)


def test_few_rows_a_sample_are_joined() -> None:
    rows = [np.arange(2 * n, dtype=np.float32).reshape(n, 2) for n in (3, 0, 1)]
    for no_copy in (False, True):
        (output,) = pipeline(source(lambda: rows, no_copy=no_copy)).run()
        assert (output.rows() is None) == no_copy
        assert all(np.array_equal(output.at(i), each) for i, each in enumerate(rows))
    others = [*rows[:2], np.zeros((40_000, 2), np.float32)], [*rows[:2], np.zeros((1, 3), np.float32)]
    for data in others:  # too large for a cheap copy, and ragged
        (output,) = pipeline(source(iter([data]))).run()
        assert output.rows() is None and output.shape() == [each.shape for each in data]


def test_a_list_that_is_refilled_for_each_batch() -> None:
    """With no_copy the pipeline shares the arrays, but the list belongs to the source."""
    rows: list[np.ndarray] = []

    def fill(i: int) -> list[np.ndarray]:
        rows[:] = [np.full((n, 4), 10 * i + n, np.float32) for n in (1, 3, 2)]
        return rows

    pipe = pipeline(source(fill, no_copy=True))
    for i in range(4):
        (output,) = pipe.run()
        assert output.shape() == [(1, 4), (3, 4), (2, 4)] and len(output) == 3 and output.ndim() == 2
        assert [sample.unique().tolist() for sample in output.samples()] == [[10 * i + n] for n in (1, 3, 2)]
        output.reinterpret(types.INT32)
        assert output.dtype == types.INT32 and output.at(1).dtype == np.int32
        assert output.as_reshaped_tensor([24]).shape() == [24]
