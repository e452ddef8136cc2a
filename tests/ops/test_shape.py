"""Shape operators, sequences, tables and indexing against NumPy."""

from __future__ import annotations

import functools
import random
import warnings
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.expressions import evaluate, failure, given
from torchdali import fn, newaxis, pipeline_def, types
from torchdali.declaration.registry import registry
from torchdali.graph import nodes
from torchdali.ops._subscript import At, New, Range, Rest, _read, _write
from torchdali.tensors import TensorList


def data(*shape: int, dtype: torch.dtype = torch.uint8) -> torch.Tensor:
    count = int(np.prod(shape))
    return torch.arange(count).reshape(shape).to(dtype)


def at_once(x: torch.Tensor, index: Any) -> torch.Tensor:
    found: torch.Tensor = nodes.apply("subscript", x, index)
    return found


# ---------------------------------------------------------------- indexing


def random_index(draw: random.Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """An index that NumPy takes too: elements, ranges with any step, new axes, one ellipsis at most."""
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


def test_index_as_text() -> None:
    items = [At(0), At(-3), At("n0"), Range(None, None, None), Range(1, "n12", None), Rest()]
    items += [Range(None, None, -2), Range("n1", None, "n2"), New(""), New("C")]
    text = _write(items)
    assert text == "0, -3, n0, :, 1:n12, ..., ::-2, n1::n2, +, +C"
    assert _read(text) == tuple(items)


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


def test_joining_writes_into_the_slot() -> None:
    x = data(2, 3)
    for name, shape in (("stack", (2, 2, 3)), ("cat", (4, 3))):
        body = registry[name].body
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
def test_axes_beyond_the_input_are_refused_beside_a_shape(name: str) -> None:
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
