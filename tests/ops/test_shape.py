"""Shape operators, sequences, lookup tables and indexing against NumPy and the real DALI."""

from __future__ import annotations

import functools
import random
import warnings
from typing import Any

import numpy as np
import pytest
import torch

from tests.check import PerSample, check, compare
from tests.helpers.libraries import evaluate, failure, given
from torchdali import fn, newaxis, pipeline_def, types
from torchdali.declaration.registry import registry
from torchdali.graph import nodes
from torchdali.tensors import TensorList


def data(*shape: int, dtype: torch.dtype = torch.uint8) -> torch.Tensor:
    count = int(np.prod(shape))
    return torch.arange(count).reshape(shape).to(dtype)


def at_once(x: torch.Tensor, index: Any) -> torch.Tensor:
    found: torch.Tensor = nodes.apply("subscript", x, index)
    return found


# ---------------------------------------------------------------- indexing


def random_index(draw: random.Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Return a random index that NumPy accepts, too: elements, ranges with any step, new axes, one ellipsis at most."""
    items: list[Any] = []
    for extent in shape[: draw.randint(0, len(shape))]:
        if extent and draw.random() < 0.4:
            items.append(draw.randrange(-extent, extent))
        else:
            ends = [None, *range(-extent - 2, extent + 3)]
            step = draw.choice([None, 1, 2, 3, -1, -2, -5])
            items.append(slice(draw.choice(ends), draw.choice(ends), step))
    for _ in range(draw.randint(0, 2)):
        items.insert(draw.randint(0, len(items)), np.newaxis)
    if draw.random() < 0.3:
        items.append(...)
    return tuple(items)


def ours(index: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(newaxis if item is None else item for item in index)


def test_random_indices() -> None:
    draw = random.Random(5)
    for _ in range(500):
        shape = tuple(draw.choice([0, 1, 2, 3, 7]) for _ in range(draw.randint(1, 4)))
        index = random_index(draw, shape)
        x = data(*shape)
        wanted = x.numpy()[index]
        found = at_once(x, ours(index))
        assert found.shape == wanted.shape, (shape, index)
        assert np.array_equal(found.numpy(), wanted), (shape, index)


def test_random_indices_over_the_batch() -> None:
    draw = random.Random(6)
    for _ in range(100):
        shape = tuple(draw.choice([1, 2, 3, 7]) for _ in range(draw.randint(1, 3)))
        index = random_index(draw, shape)
        batch = data(5, *shape)
        found = at_once(TensorList.from_dense(batch), ours(index))  # type: ignore[arg-type]
        wanted = np.stack([sample[index] for sample in batch.numpy()])
        assert np.array_equal(torch.stack(found.samples()).numpy(), wanted), (shape, index)


def test_an_index_is_a_view() -> None:
    x = data(4, 5, 6)
    part = at_once(x, (1, slice(1, None, 2), newaxis))
    part.fill_(255)
    assert (x[1, 1::2] == 255).all()


def test_ellipsis() -> None:
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    cases = {
        "last": lambda lib, n: n[..., 0],
        "first": lambda lib, n: n[1, ...],
        "both": lambda lib, n: n[0, ..., 1:3],
        "all": lambda lib, n: n[...],
        "none left": lambda lib, n: n[0, 1, ..., 2],
        "named": lambda lib, n: n[..., newaxis("N")],
    }
    found = evaluate("torchdali", [given(x, layout="HWC")], cases)
    wanted = {
        "last": (x[..., 0], "HW"), "first": (x[1], "WC"), "both": (x[0, ..., 1:3], "WC"), "all": (x, "HWC"),
        "none left": (x[0, 1, 2], ""), "named": (x[..., None], "HWCN"),
    }  # fmt: skip
    for name, (values, layout) in wanted.items():
        np.testing.assert_array_equal(found[name].samples[0], values)
        assert found[name].layout == layout
    error = failure("torchdali", [given(x)], lambda lib, n: n[..., 0, ...])
    assert isinstance(error, IndexError)


def test_many_positions_per_sample() -> None:
    x = np.arange(3**6, dtype=np.int32).reshape((3,) * 6)

    def expression(lib: Any, n: Any, i: Any) -> Any:
        return n[i : i + 2, i::-1, -1 : -i - 2 : -1, i, :i, i - 1 :]

    found = evaluate("torchdali", [given(x, x), given(np.int32(1), np.int32(2))], {"": expression})
    for i, sample in zip((1, 2), found[""].samples, strict=True):
        np.testing.assert_array_equal(sample, expression(None, x, i))


# ---------------------------------------------------------------- parts and axes


def test_joining() -> None:
    x, y = data(2, 3), data(2, 3) + 10
    for axis in (0, 1, 2, -1, -2):
        assert torch.equal(fn.stack(x, y, axis=axis), torch.stack((x, y), axis))
    for axis in (0, 1, -1, -2):
        assert torch.equal(fn.cat(x, y, axis=axis), torch.cat((x, y), axis))
    batch = TensorList.from_dense(data(4, 2, 3))
    assert fn.stack(batch, batch, axis=-1).dense().shape == (4, 2, 3, 2)
    assert fn.cat(batch, batch, axis=0).dense().shape == (4, 4, 3)


def test_joined_samples_are_written_into_the_slot() -> None:
    x = data(2, 3)
    for name, shape in (("stack", (2, 2, 3)), ("cat", (4, 3))):
        body = registry[name].implementation
        slot = torch.empty(shape, dtype=torch.uint8)
        assert body(x, x, layout="", out=slot) is slot
        other = torch.empty(5, 5, dtype=torch.uint8)
        assert body(x, x, layout="", out=other).shape == shape
        assert other.shape == (5, 5)


def test_axes_and_shapes_are_views() -> None:
    x = data(2, 1, 6)
    views = [
        fn.transpose(x, perm=[2, 0, 1]),
        fn.expand_dims(x, axes=[0, 2]),
        fn.squeeze(x, axes=[1]),
        fn.reshape(x, shape=[3, -1]),
        fn.reinterpret(x, dtype=types.INT16),
        fn.cat(x),
    ]
    assert [tuple(v.shape) for v in views] == [
        (6, 2, 1), (1, 2, 1, 1, 6), (2, 6), (3, 4), (2, 1, 3), (2, 1, 6),
    ]  # fmt: skip
    assert all(v.data_ptr() == x.data_ptr() for v in views)


def test_reshape_of_a_transposed_image() -> None:
    x = data(2, 3, 4)
    turned = fn.transpose(x, perm=[2, 1, 0])
    assert torch.equal(fn.reshape(turned, shape=[-1]), x.permute(2, 1, 0).reshape(-1))


def test_reinterpret_at_odd_addresses() -> None:
    x = data(9)[1:]
    assert fn.reinterpret(x, dtype=types.INT32).numpy().tobytes() == x.numpy().tobytes()
    turned = data(4, 3).T
    assert (
        fn.reinterpret(turned, dtype=types.UINT16).numpy().tobytes()
        == turned.contiguous().numpy().tobytes()
    )


def test_reinterpret_of_a_scalar() -> None:
    assert fn.reinterpret(torch.tensor(-1, dtype=torch.int8), dtype=types.UINT8).item() == 255
    with pytest.raises(RuntimeError):
        fn.reinterpret(torch.tensor(5, dtype=torch.int32), dtype=types.UINT8)


def test_squeeze_with_a_negative_axis_drops_none() -> None:
    x = data(2, 1, 1)
    node = functools.partial(evaluate, "torchdali", [given(x, layout="ABC")])
    found = node(
        {
            "some": lambda lib, n: lib.fn.squeeze(n, axes=[1, -1]),
            "both": lambda lib, n: lib.fn.squeeze(n, axes=[1, 2]),
        }
    )
    assert (found["some"].samples[0].shape, found["some"].layout) == ((2, 1, 1), "ABC")
    assert (found["both"].samples[0].shape, found["both"].layout) == ((2,), "A")


@pytest.mark.parametrize("name", ["reshape", "reinterpret"])
def test_axes_beyond_the_input_are_rejected_with_a_shape(name: str) -> None:
    with pytest.raises(RuntimeError, match=r"src_dims\[1\] == 3.* is out of bounds"):
        getattr(fn, name)(data(2, 1, 6), shape=[-1], src_dims=[0, 3])


def test_squeeze_per_sample() -> None:
    x = np.zeros((1, 2, 1), np.uint8)
    axes = given(np.int32([0]), np.int32([2]))
    found = evaluate(
        "torchdali", [given(x, x), axes], {"": lambda lib, n, a: lib.fn.squeeze(n, axes=a)}
    )
    assert [s.shape for s in found[""].samples] == [(2, 1), (1, 2)]


def test_a_layout_that_does_not_fit_any_more_is_dropped() -> None:
    x = np.zeros((2, 6), np.uint8)
    cases = {"": lambda lib, n, s: lib.fn.reshape(n, s)}
    found = evaluate(
        "torchdali", [given(x, x, layout="HW"), given(np.int32([12]), np.int32([12]))], cases
    )
    assert found[""].layout == ""


@pytest.mark.parametrize("name", ["stack", "cat", "transpose", "reshape", "expand_dims", "squeeze"])
def test_gradients(name: str) -> None:
    arguments = {
        "reshape": {"shape": [-1]}, "expand_dims": {"axes": [0]}, "squeeze": {"axes": [1]},
    }.get(name, {})  # fmt: skip
    x = torch.rand(2, 1, 3, dtype=torch.float64, requires_grad=True)
    inputs = (x, x * 2) if name in ("stack", "cat") else (x,)
    getattr(fn, name)(*inputs, **arguments).square().sum().backward()
    assert torch.allclose(x.grad, 2 * x * (5 if len(inputs) == 2 else 1))  # type: ignore[arg-type]


def test_empty_batches() -> None:
    empty = TensorList.from_dense(torch.empty(0, 2, 3))
    assert len(fn.transpose(empty)) == len(fn.stack(empty, empty)) == len(fn.one_hot(empty)) == 0
    assert len(fn.reshape(empty, shape=[6])) == 0


# ---------------------------------------------------------------- sequences and tables


def test_sequences() -> None:
    x = data(5, 2, 3)
    first, last = fn.element_extract(x, element_map=[0, 4])
    assert torch.equal(first, x[0])
    assert torch.equal(last, x[4])
    assert torch.equal(fn.element_extract(x, element_map=3), x[3])
    assert torch.equal(fn.sequence_rearrange(x, new_order=[4, 0, 0]), x[[4, 0, 0]])


def test_extracted_frames_in_a_pipeline() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define() -> Any:
        x = fn.copy(
            fn.external_source(source=lambda: [np.uint8([[1, 2], [3, 4]])] * 2, layout="FC")
        )
        first, second = fn.element_extract(x, element_map=[0, 1])
        return second - first, first

    pipe = define()
    pipe.build()
    difference, first = pipe.run()
    assert difference.as_array().tolist() == [[2, 2]] * 2
    assert first.layout() == "C"
    pipe.close()


def test_one_hot() -> None:
    x = torch.tensor([[0, 2], [3, -1]])
    for axis, dim in ((-1, 2), (0, 0), (1, 1)):
        wanted = (x[..., None] == torch.arange(3)).movedim(-1, dim).float()
        assert torch.equal(fn.one_hot(x, num_classes=3, axis=axis), wanted)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.int8, torch.int32, torch.int64])
def test_lookup_table(dtype: torch.dtype) -> None:
    x = data(3, 4, 5).to(dtype)
    values = {k: k * 1.5 - 20 for k in range(0, 60, 7)}
    found = fn.lookup_table(x, keys=list(values), values=list(values.values()), default_value=-1)
    wanted = np.vectorize(lambda k: values.get(int(k), -1))(x.numpy())
    assert found.dtype == torch.float32
    np.testing.assert_array_equal(found.numpy(), wanted.astype(np.float32))


def test_shapes_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="DataNode.shape") as caught:
        assert fn.shapes(data(2, 3)).tolist() == [2, 3]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fn.stack(data(2, 3), data(2, 3))


def test_constants_as_inputs() -> None:
    cases = {
        "number": lambda lib, x: lib.fn.stack(x, 5),
        "constant": lambda lib, x: lib.fn.stack(x, lib.types.Constant(5)),
        "list": lambda lib, x: lib.fn.cat(lib.fn.reshape(x, shape=[1]), [6, 7]),
        "tensor": lambda lib, x: lib.fn.stack(lib.fn.cast(x, dtype=types.INT64), torch.tensor(3)),
    }
    found = evaluate("torchdali", [given(np.int32(1))], cases)
    assert {k: v.samples[0].tolist() for k, v in found.items()} == {
        "number": [1, 5], "constant": [1, 5], "list": [1, 6, 7], "tensor": [1, 3],
    }  # fmt: skip
    assert found["tensor"].samples[0].dtype == np.int64


# --------------------------------------------------------- compared with the real DALI


EXCEPTIONS = {
    "squeeze": "`axes` may be per sample; DALI declares that, but refuses it",
    "reshape": "`src_dims` may be per sample without other arguments, and extents may be 0; a layout that doesn't fit "
    "the new number of axes is dropped, where DALI fails",
    "reinterpret": "0-D data is refused if the element sizes differ; DALI's process dies",
}


def array(*shape: int, dtype: Any = np.uint8, start: int = 0) -> Any:
    return (np.arange(int(np.prod(shape))) + start).reshape(shape).astype(dtype)


HWC = [array(2, 3, 4), array(3, 1, 4, start=50)]
SAME = [array(2, 3, 4), array(2, 3, 4, start=100)]
HW = [array(2, 3), array(4, 3, start=7)]
W = [array(3), array(5, start=9)]
SCALARS = [np.uint8(3), np.uint8(200)]


def shift(samples: list[Any]) -> list[Any]:
    return [np.asarray(s + 1).astype(np.asarray(s).dtype) for s in samples]


def of(samples: list[Any], dtype: Any) -> list[Any]:
    return [np.asarray(s).astype(dtype) for s in samples]


STACK: list[tuple[list[Any], dict[str, Any], Any]] = [
    ([HW, shift(HW)], {}, "HW"),
    ([HW], {}, "HW"),
    ([HW, shift(HW)], {"axis": 1}, None),
    ([HW, shift(HW), HW], {"axis": -1}, "HW"),
    ([HW, shift(HW)], {"axis": -2}, "HW"),
    ([HW, shift(HW)], {"axis": 2, "axis_name": "C"}, "HW"),
    ([HW, shift(HW)], {"axis": -1, "axis_name": "C"}, "HW"),
    ([HW, shift(HW)], {"axis_name": "N"}, "HW"),
    ([HW, shift(HW)], {"axis_name": "N"}, ["HW", "AB"]),
    ([HW, shift(HW)], {"axis_name": "N"}, ["HW", None]),
    ([SCALARS, shift(SCALARS)], {}, None),
    ([SCALARS, shift(SCALARS)], {"axis_name": "X"}, None),
    ([SAME, shift(SAME)], {"axis": 1}, "HWC"),
]
CAT: list[tuple[list[Any], dict[str, Any], Any]] = [
    ([HW, shift(HW)], {}, "HW"),
    ([HW], {}, "HW"),
    ([HW, shift(HW)], {"axis": 1}, "HW"),
    ([HW, shift(HW), HW], {"axis": -2}, None),
    ([HW, shift(HW)], {"axis_name": "W"}, "HW"),
    ([HW, shift(HW)], {}, [None, "HW"]),
    ([HW, shift(HW)], {}, ["AB", "HW"]),
    ([W, shift(W)[::-1]], {}, "W"),
    ([HWC, shift(HWC)], {"axis": 2}, "HWC"),
    ([W, [w[:0] for w in W]], {}, None),
]
RESHAPE: list[tuple[list[Any], dict[str, Any], Any]] = [
    ([SAME], {"shape": [6, 4]}, "HWC"),
    ([HWC], {"shape": [-1, 4]}, "HWC"),
    ([HWC], {"shape": [2, -1]}, None),
    ([SAME], {"shape": [6, 4], "layout": "AB"}, "HWC"),
    ([HWC], {"layout": "CHW"}, "HWC"),
    ([HWC], {"layout": ""}, "HWC"),
    ([SAME], {"shape": [4, 3, 2]}, "HWC"),
    ([SAME], {"shape": 24}, "HWC"),
    ([HWC], {"rel_shape": [1, 1, 1]}, "HWC"),
    ([SAME], {"rel_shape": [0.5, 2, 1]}, "HWC"),
    ([SAME], {"rel_shape": [-1, 2, 1]}, None),
    ([HWC], {"rel_shape": [1, -1]}, "HWC"),
    ([[array(5, 6), array(10, 6)]], {"rel_shape": [0.3, -1]}, "HW"),
    ([[array(5, 6), array(5, 6)]], {"rel_shape": [0.4, 2.5]}, "HW"),
    ([HWC], {"src_dims": [1, 0, 2]}, "HWC"),
    ([SAME], {"src_dims": [1, 0], "rel_shape": [1, -1]}, "HWC"),
    ([HWC], {"src_dims": [0, 1, -1, 2]}, None),
    ([HWC], {"src_dims": [0, -1, 1, 2], "layout": "HXWC"}, "HWC"),
    ([SAME, [np.int32([4, 6]), np.int32([2, 12])]], {}, None),
    ([SAME, [np.int64([-1, 1, 2]), np.int64([2, -1, 1])]], {}, ["HWC", None]),
    ([SAME], {"shape": PerSample([[4, 6], [12, 2]])}, None),
    ([SAME], {"rel_shape": PerSample([[2.0, 1.0, 0.5], [0.5, 1.0, 2.0]])}, "HWC"),
]
REINTERPRET: list[tuple[list[Any], dict[str, Any], Any]] = [
    ([HWC], {"dtype": "types.INT32"}, "HWC"),
    ([HWC], {"dtype": "types.UINT16"}, None),
    ([of(HWC, np.int32)], {"dtype": "types.UINT8"}, "HWC"),
    ([of(HWC, np.float32)], {"dtype": "types.UINT32"}, "HWC"),
    ([of(HWC, np.int64)], {"dtype": "types.FLOAT64"}, "HWC"),
    ([SAME], {"dtype": "types.INT32", "shape": [3, 2]}, "HWC"),
    ([SAME], {"shape": [3, 8]}, "HWC"),
    ([HWC], {"layout": "CHW"}, "HWC"),
    ([HWC], {"dtype": "types.INT32", "rel_shape": [1, 1, 0.25]}, "HWC"),
    ([SAME], {"dtype": "types.INT32", "rel_shape": [0.5, -1]}, "HWC"),
    ([HWC], {"dtype": "types.INT32", "src_dims": [1, 0, 2]}, "HWC"),
    ([of(SCALARS, np.int32)], {"dtype": "types.UINT8", "shape": [-1]}, None),
]
EXPAND: list[tuple[list[Any], dict[str, Any], Any]] = [
    ([HW], {"axes": [0]}, "HW"),
    ([HW], {"axes": 0}, None),
    ([HW], {"axes": [0], "new_axis_names": "F"}, "HW"),
    ([HW], {"axes": [2], "new_axis_names": "C"}, "HW"),
    ([HW], {"axes": [1, 3], "new_axis_names": "AB"}, "HW"),
    ([HWC], {"axes": [4, 0], "new_axis_names": "AB"}, "HWC"),
    ([HWC], {"axes": [3, 1]}, "HWC"),
    ([HWC], {"axes": []}, "HWC"),
    ([SCALARS], {"axes": [0], "new_axis_names": "A"}, None),
    ([W], {"axes": [0, 2]}, "W"),
]
ONES = [array(1, 2, 1, 3, 1), array(1, 4, 1, 2, 1, start=30)]
SQUEEZE: list[tuple[list[Any], dict[str, Any], Any]] = [
    ([ONES], {"axes": [0]}, "ABCDE"),
    ([ONES], {"axes": [4, 0]}, "ABCDE"),
    ([ONES], {"axes": [0, 2, 4]}, None),
    ([ONES], {"axes": [-1]}, "ABCDE"),
    ([ONES], {"axes": [2, -1, 0]}, "ABCDE"),
    ([ONES], {"axes": [9]}, "ABCDE"),
    ([ONES], {"axes": []}, "ABCDE"),
    ([ONES], {"axis_names": "AC"}, "ABCDE"),
    ([ONES], {"axis_names": ""}, "ABCDE"),
    ([[array(1, 1), array(1, 1, start=4)]], {"axes": [0, 1]}, "AB"),
]
TRANSPOSE: list[tuple[list[Any], dict[str, Any], Any]] = [
    ([HWC], {}, "HWC"),
    ([HWC], {"perm": [2, 0, 1]}, "HWC"),
    ([HWC], {"perm": [2, 0, 1]}, None),
    ([HWC], {"perm": [2, 0, 1], "transpose_layout": False}, "HWC"),
    ([SAME], {"transpose_layout": False}, "HWC"),
    ([HWC], {"perm": [2, 0, 1], "output_layout": "ABC"}, "HWC"),
    ([HWC], {"output_layout": "ABC"}, None),
    ([HWC], {"perm": [0, 1, 2]}, "HWC"),
    ([W], {}, "W"),
    ([SCALARS], {}, None),
    ([[np.zeros((1, 2, 1, 3, 1, 2, 1, 2), np.uint8)]], {}, None),
]
SEQUENCE = [array(5, 2), array(5, 2, start=20)]
EXTRACT: list[tuple[list[Any], dict[str, Any], Any]] = [
    ([SEQUENCE], {"element_map": [0]}, "FC"),
    ([SEQUENCE], {"element_map": 2}, None),
    ([SEQUENCE], {"element_map": [0, 3]}, "FC"),
    ([SEQUENCE], {"element_map": [3, 0, 0]}, None),
    ([[array(3, 2, 2, 3), array(4, 1, 2, 3)]], {"element_map": [2, 1]}, "FHWC"),
]
REARRANGE: list[tuple[list[Any], dict[str, Any], Any]] = [
    ([SEQUENCE], {"new_order": [0, 4, 2]}, "FC"),
    ([SEQUENCE], {"new_order": [1, 1, 1, 1, 1, 1]}, None),
    ([SEQUENCE], {"new_order": 3}, "FC"),
    ([SEQUENCE], {"new_order": PerSample([[3, 0], [1, 1]])}, "FC"),
    ([[array(3, 2, 2, 3), array(4, 1, 2, 3)]], {"new_order": [2, 1]}, "FHWC"),
]
FRAMES: list[tuple[list[Any], dict[str, Any], Any]] = [
    ([SEQUENCE], {}, None),
    ([SEQUENCE], {}, "FC"),
    ([SEQUENCE], {"replace": True}, "FC"),
    ([SEQUENCE], {"replace": True}, "XY"),
    ([W], {}, None),
    ([W], {"replace": True}, "W"),
]
CLASSES = [np.array([0, 2, 1, 9, -1], np.int32), np.array([1, 1, 0, 3, 2], np.int32)]
ONE_HOT: list[tuple[list[Any], dict[str, Any], Any]] = [
    ([CLASSES], {"num_classes": 4}, None),
    ([CLASSES], {}, None),
    ([CLASSES], {"num_classes": 4, "axis": 0}, "W"),
    ([CLASSES], {"num_classes": 4, "axis": 1}, None),
    ([CLASSES], {"num_classes": 3, "axis_name": "C"}, "W"),
    ([CLASSES], {"num_classes": 3, "axis_name": "C", "axis": 0}, "W"),
    ([of(CLASSES, np.float32)], {"num_classes": 3}, "W"),
    (
        [[np.float32([0.4, 1.6, 2.2, np.nan]), np.float32([-0.4, -1, 5, 1])]],
        {"num_classes": 3},
        None,
    ),
    ([[np.int32(2), np.int32(0)]], {"num_classes": 4}, None),
    ([[np.int32(2), np.int32(0)]], {"num_classes": 4, "axis_name": "C"}, None),
    ([[np.int32([2]), np.int32([0])]], {"num_classes": 4}, None),
    ([[np.int32([2]), np.int32([0])]], {"num_classes": 4, "axis_name": "C"}, "W"),
    ([[np.int32([2]), np.int32([0])]], {"num_classes": 4, "axis": 0}, None),
    ([[np.int32([[2]]), np.int32([[0, 1]])]], {"num_classes": 4, "axis": 1}, None),
    ([[np.int64([2**32 + 1]), np.int64([1])]], {"num_classes": 3}, None),
]
KEYED = [np.array([0, 2, 1, 9, 70], np.int32), np.array([[1, 1], [0, 3]], np.int32).reshape(-1)]
TABLE: list[tuple[list[Any], dict[str, Any], Any]] = [
    ([KEYED], {"keys": [0, 2], "values": [10.6, -20.5]}, None),
    ([KEYED], {"keys": [0, 2], "values": [10, 20], "default_value": 7.5}, "W"),
    ([KEYED], {}, "W"),
    ([KEYED], {"keys": [0, 0], "values": [1, 2]}, None),
    ([KEYED], {"keys": [0], "values": [5], "output_dtype": "types.INT32"}, None),
    ([HWC], {"keys": list(range(256)), "values": [i / 255 for i in range(256)]}, "HWC"),
    ([[np.int32([65535, 65536, -1])]], {"keys": [65535], "values": [5]}, None),
    ([[np.int8([-1, 1])]], {"keys": [255, 1], "values": [5, 6]}, None),
    ([[np.uint64([2**63, 1])]], {"keys": [0, 1], "values": [5, 6]}, None),
]
CASES = {
    "stack": STACK, "cat": CAT, "reshape": RESHAPE, "reinterpret": REINTERPRET, "expand_dims": EXPAND,
    "squeeze": SQUEEZE, "transpose": TRANSPOSE, "element_extract": EXTRACT, "sequence_rearrange": REARRANGE,
    "per_frame": FRAMES, "one_hot": ONE_HOT, "lookup_table": TABLE,
}  # fmt: skip


@pytest.mark.golden
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name, cases in CASES.items() for case in cases]
)
def test_like_dali(name: str, case: Any) -> None:
    inputs, arguments, layouts = case
    check(name, inputs, arguments, layouts, over_batch=name == "one_hot")


@pytest.mark.golden
def test_one_hot_of_single_elements_depends_on_the_batch() -> None:
    """Axes of extent 1 are removed only if all samples have one element."""
    for samples in ([[2], [0, 1]], [[2], [0]], [[[2]], [[0, 1]]]):
        inputs = [given(*[np.array(s, np.int32) for s in samples])]
        wanted, found = (
            evaluate(name, inputs, {"": lambda lib, x: lib.fn.one_hot(x, num_classes=3)})[""]
            for name in ("nvidia.dali", "torchdali")
        )
        compare([found], [wanted])


MOVED = {
    "stack": {}, "cat": {"axis": 1}, "reshape": {"shape": [-1, 2]}, "expand_dims": {"axes": [1]},
    "transpose": {"perm": [2, 0, 1]}, "element_extract": {"element_map": [1]},
    "sequence_rearrange": {"new_order": [1, 0, 1]}, "per_frame": {"replace": True},
}  # fmt: skip


@pytest.mark.golden
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int16", "uint32", "int64", "uint64", "float16", "float64"]
)
@pytest.mark.parametrize("name", MOVED)
def test_types(name: str, dtype: str) -> None:
    check(name, [of([array(2, 3, 4), array(2, 3, 4, start=3)], dtype)], MOVED[name])


@pytest.mark.golden
@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "int16", "uint16", "uint32", "int64", "uint64", "float64"]
)
def test_one_hot_types(dtype: str) -> None:
    check("one_hot", [[np.array([1, 0, 2], dtype)]], {"num_classes": 3})


OUTPUT_TYPES = (
    "UINT8",
    "INT8",
    "INT16",
    "UINT16",
    "INT32",
    "UINT32",
    "INT64",
    "UINT64",
    "FLOAT",
    "FLOAT64",
)


@pytest.mark.golden
@pytest.mark.parametrize("dtype", OUTPUT_TYPES)
def test_output_types(dtype: str) -> None:
    on_off = {"num_classes": 3, "on_value": 3e9, "off_value": -1.7, "dtype": f"types.{dtype}"}
    check("one_hot", [CLASSES], on_off)
    numbers = {"keys": [0, 1, 2], "values": [1000.5, -2.5, 2.0**40], "default_value": 2.5}
    check("lookup_table", [KEYED], {**numbers, "dtype": f"types.{dtype}"})


@pytest.mark.golden
@pytest.mark.parametrize("dtype", ["BOOL", "FLOAT16"])
def test_more_table_types(dtype: str) -> None:
    numbers = {"keys": [0, 1, 2], "values": [0.3, 0.5, 2], "default_value": 2.5}
    check("lookup_table", [KEYED], {**numbers, "dtype": f"types.{dtype}"})


@pytest.mark.golden
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("dtype", ["INT32", "UINT32", "INT64", "UINT64", "FLOAT", "FLOAT64", None])
def test_shapes(dtype: str | None) -> None:
    arguments = {"dtype": f"types.{dtype}"} if dtype else {}
    check("shapes", [HWC], arguments, "HWC")
    check("shapes", [SCALARS], arguments)


ERRORS: dict[str, Any] = {
    "stack of types": (given(HW[0]), lambda lib, x: lib.fn.stack(x, lib.fn.cast(x, dtype=lib.types.INT32))),
    "stack of shapes": (given(HW[0]), lambda lib, x: lib.fn.stack(x, x[0:1])),
    "stack of axes": (given(HW[0]), lambda lib, x: lib.fn.stack(x, x[0])),
    "stack axis": (given(HW[0]), lambda lib, x: lib.fn.stack(x, x, axis=3)),
    "stack negative axis": (given(HW[0]), lambda lib, x: lib.fn.stack(x, x, axis=-3)),
    "stack name": (given(HW[0]), lambda lib, x: lib.fn.stack(x, x, axis_name="N")),
    "stack long name": (given(HW[0], layout="HW"), lambda lib, x: lib.fn.stack(x, x, axis_name="NM")),
    "stack empty name": (given(HW[0], layout="HW"), lambda lib, x: lib.fn.stack(x, x, axis_name="")),
    "cat of types": (given(HW[0]), lambda lib, x: lib.fn.cat(x, lib.fn.cast(x, dtype=lib.types.INT32))),
    "cat of shapes": (given(HW[0]), lambda lib, x: lib.fn.cat(x, x[0:1], axis=1)),
    "cat of scalars": (given(SCALARS[0]), lambda lib, x: lib.fn.cat(x, x)),
    "cat axis": (given(HW[0]), lambda lib, x: lib.fn.cat(x, x, axis=2)),
    "cat name": (given(HW[0], layout="HW"), lambda lib, x: lib.fn.cat(x, x, axis_name="X")),
    "cat name and axis": (given(HW[0], layout="HW"), lambda lib, x: lib.fn.cat(x, x, axis_name="W", axis=1)),
    "reshape to nothing": (given(HW[0]), lambda lib, x: lib.fn.reshape(x)),
    "reshape size": (given(HW[0]), lambda lib, x: lib.fn.reshape(x, shape=[5])),
    "reshape two free": (given(HW[0]), lambda lib, x: lib.fn.reshape(x, shape=[-1, -1])),
    "reshape remainder": (given(HW[0]), lambda lib, x: lib.fn.reshape(x, shape=[-1, 4])),
    "reshape layout": (given(HW[0]), lambda lib, x: lib.fn.reshape(x, layout="HWC")),
    "reshape twice": (given(HW[0]), lambda lib, x: lib.fn.reshape(x, shape=[6], rel_shape=[1.0])),
    "reshape input and shape": (given(HW[0]), lambda lib, x: lib.fn.reshape(x, np.int32([6]), shape=[6])),
    "reshape rel length": (given(HW[0]), lambda lib, x: lib.fn.reshape(x, rel_shape=[1, 1, 1])),
    "reshape src length": (given(HW[0]), lambda lib, x: lib.fn.reshape(x, src_dims=[0, 1], rel_shape=[1])),
    "reshape src range": (given(HW[0]), lambda lib, x: lib.fn.reshape(x, src_dims=[0, 5])),
    "reshape src lost": (given(HW[0]), lambda lib, x: lib.fn.reshape(x, src_dims=[0])),
    "reshape float input": (given(HW[0]), lambda lib, x: lib.fn.reshape(x, np.float32([6]))),
    "reinterpret to nothing": (given(HW[0]), lambda lib, x: lib.fn.reinterpret(x)),
    "reinterpret size": (given(HW[0]), lambda lib, x: lib.fn.reinterpret(x, dtype=lib.types.INT64)),
    "expand twice": (given(HW[0]), lambda lib, x: lib.fn.expand_dims(x, axes=[0, 0])),
    "expand far": (given(HW[0]), lambda lib, x: lib.fn.expand_dims(x, axes=[4])),
    "expand negative": (given(HW[0]), lambda lib, x: lib.fn.expand_dims(x, axes=[-1])),
    "expand no layout": (given(HW[0]), lambda lib, x: lib.fn.expand_dims(x, axes=[0], new_axis_names="A")),
    "expand names": (given(HW[0], layout="HW"), lambda lib, x: lib.fn.expand_dims(x, axes=[0], new_axis_names="AB")),
    "squeeze what": (given(HW[0]), lambda lib, x: lib.fn.squeeze(x)),
    "squeeze both": (given(HW[0], layout="HW"), lambda lib, x: lib.fn.squeeze(x, axes=[0], axis_names="H")),
    "squeeze extent": (given(HW[0]), lambda lib, x: lib.fn.squeeze(x, axes=[0])),
    "squeeze twice": (given(ONES[0]), lambda lib, x: lib.fn.squeeze(x, axes=[0, 0])),
    "squeeze twice beyond": (given(ONES[0]), lambda lib, x: lib.fn.squeeze(x, axes=[9, 9])),
    "reshape from beyond": (given(ONES[0]), lambda lib, x: lib.fn.reshape(x, shape=[-1], src_dims=[9])),
    "squeeze name": (given(ONES[0], layout="ABCDE"), lambda lib, x: lib.fn.squeeze(x, axis_names="X")),
    "transpose repeats": (given(HW[0]), lambda lib, x: lib.fn.transpose(x, perm=[0, 0])),
    "transpose short": (given(HW[0]), lambda lib, x: lib.fn.transpose(x, perm=[0])),
    "transpose layout": (given(HW[0]), lambda lib, x: lib.fn.transpose(x, output_layout="ABC")),
    "extract beyond": (given(SEQUENCE[0]), lambda lib, x: lib.fn.element_extract(x, element_map=[5])),
    "extract negative": (given(SEQUENCE[0]), lambda lib, x: lib.fn.element_extract(x, element_map=[-1])),
    "extract layout": (given(SEQUENCE[0], layout="HW"), lambda lib, x: lib.fn.element_extract(x, element_map=[0])),
    "extract 1D": (given(W[0]), lambda lib, x: lib.fn.element_extract(x, element_map=[0])),
    "rearrange beyond": (given(SEQUENCE[0]), lambda lib, x: lib.fn.sequence_rearrange(x, new_order=[5])),
    "rearrange nothing": (given(SEQUENCE[0]), lambda lib, x: lib.fn.sequence_rearrange(x, new_order=[])),
    "rearrange layout": (given(SEQUENCE[0], layout="HW"), lambda lib, x: lib.fn.sequence_rearrange(x, new_order=[0])),
    "rearrange 1D": (given(W[0]), lambda lib, x: lib.fn.sequence_rearrange(x, new_order=[0])),
    "per_frame layout": (given(SEQUENCE[0], layout="HW"), lambda lib, x: lib.fn.per_frame(x)),
    "per_frame scalar": (given(SCALARS[0]), lambda lib, x: lib.fn.per_frame(x)),
    "one_hot axis": (given(W[0]), lambda lib, x: lib.fn.one_hot(x, num_classes=3, axis=2)),
    "one_hot negative axis": (given(W[0]), lambda lib, x: lib.fn.one_hot(x, num_classes=3, axis=-2)),
    "one_hot no layout": (given(W[0]), lambda lib, x: lib.fn.one_hot(x, num_classes=3, axis_name="C")),
    "one_hot name": (given(W[0], layout="W"), lambda lib, x: lib.fn.one_hot(x, num_classes=3, axis_name="CD")),
    "one_hot input": (given(np.array([True])), lambda lib, x: lib.fn.one_hot(x, num_classes=3)),
    "one_hot output": (given(W[0]), lambda lib, x: lib.fn.one_hot(x, num_classes=3, dtype=lib.types.BOOL)),
    "one_hot classes": (given(W[0]), lambda lib, x: lib.fn.one_hot(x, num_classes=-3)),
    "table lengths": (given(W[0]), lambda lib, x: lib.fn.lookup_table(x, keys=[0, 1], values=[1])),
    "table negative key": (given(W[0]), lambda lib, x: lib.fn.lookup_table(x, keys=[-1], values=[1])),
    "table large key": (given(W[0]), lambda lib, x: lib.fn.lookup_table(x, keys=[65536], values=[1])),
    "table of floats": (given(np.float32([1])), lambda lib, x: lib.fn.lookup_table(x, keys=[0], values=[1])),
    "shapes type": (given(W[0]), lambda lib, x: x.shape(dtype=lib.types.UINT8)),
}  # fmt: skip


@pytest.mark.golden
@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    data, expression = ERRORS[name]
    wanted = failure("nvidia.dali", [data], expression)
    found = failure("torchdali", [data], expression)
    assert wanted is not None
    assert found is not None, f"DALI raises {wanted!r}"
    kind = next(
        k for k in (ValueError, TypeError, IndexError, RuntimeError) if isinstance(wanted, k)
    )
    assert isinstance(found, kind), f"{found!r} instead of {wanted!r}"
