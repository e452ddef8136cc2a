"""Arithmetic, comparisons, bitwise and mathematical functions against Python's integers, NumPy and the real DALI."""

from __future__ import annotations

import functools
import itertools
import math as pymath
import operator as op
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import torchdali
from tests.check import Result, compare
from tests.helpers.libraries import Expression, Given, evaluate, failure, given
from torchdali import fn, math, pipeline_def, types
from torchdali.calls.decorators import operator
from torchdali.declaration.schema import Data
from torchdali.kernels import arithmetic
from torchdali.kernels.arithmetic import Number, broadcast_batches, function, promote
from torchdali.tensors import TensorList

TABLE = """
     bool i8  u8  i16 u16 i32 u32 i64 u64 f32 f64
bool bool i8  u8  i16 u16 i32 u32 i64 u64 f32 f64
i8   .    i8  i16 i16 i32 i32 i64 i64 i64 f32 f64
u8   .    .   u8  i16 u16 i32 u32 i64 u64 f32 f64
i16  .    .   .   i16 i32 i32 i64 i64 i64 f32 f64
u16  .    .   .   .   u16 i32 u32 i64 u64 f32 f64
i32  .    .   .   .   .   i32 i64 i64 i64 f32 f64
u32  .    .   .   .   .   .   u32 i64 u64 f32 f64
i64  .    .   .   .   .   .   .   i64 i64 f32 f64
u64  .    .   .   .   .   .   .   .   u64 f32 f64
f32  .    .   .   .   .   .   .   .   .   f32 f64
f64  .    .   .   .   .   .   .   .   .   .   f64
"""
SHORT = {
    "bool": torch.bool, "i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "u16": torch.uint16,
    "i32": torch.int32, "u32": torch.uint32, "i64": torch.int64, "u64": torch.uint64,
    "f32": torch.float32, "f64": torch.float64,
}  # fmt: skip
INTEGERS = [name for name in SHORT if name[0] in "iu"]


def test_promotion_table() -> None:
    rows = [line.split() for line in TABLE.strip().splitlines()]
    for row in rows[1:]:
        for right, wanted in zip(rows[0], row[1:], strict=True):
            if wanted != ".":
                assert promote(SHORT[row[0]], SHORT[right]) == SHORT[wanted], (row[0], right)
                assert promote(SHORT[right], SHORT[row[0]]) == SHORT[wanted], (right, row[0])


# ---------------------------------------------------------------- integers, exactly


def limits(dtype: torch.dtype) -> tuple[int, int]:
    bits = 8 * dtype.itemsize
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.is_signed else (0, (1 << bits) - 1)


def wrapped(value: int, dtype: torch.dtype) -> int:
    low, high = limits(dtype)
    return (value - low) % (high - low + 1) + low


def quotient(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


EXACT: dict[str, Callable[[int, int], int]] = {
    "add": op.add, "sub": op.sub, "mul": op.mul, "floordiv": quotient,
    "mod": lambda x, y: x - y * quotient(x, y), "min": min, "max": max, "and": op.and_, "or": op.or_,
    "xor": op.xor, "pow": lambda x, y: x ** (y % 100) if y >= 0 else 0,
}  # fmt: skip
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": op.eq, "ne": op.ne, "lt": op.lt, "le": op.le, "gt": op.gt, "ge": op.ge,
}  # fmt: skip


def edges(dtype: torch.dtype) -> list[int]:
    """Return small numbers of both signs, and numbers around the ends and the middle of the range."""
    low, high = limits(dtype)
    near = [low, low + 1, high // 2, high // 2 + 1, high - 1, high]
    return sorted({v for v in [-7, -2, -1, 0, 1, 2, 3, 100, *near] if low <= v <= high})


def tensor(values: list[int], dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(np.array(values, dtype=str(dtype).removeprefix("torch.")))


def pairs(name: str, left: torch.dtype, right: torch.dtype) -> list[tuple[int, int]]:
    found = itertools.product(edges(left), edges(right))
    if name in ("floordiv", "mod"):
        common = promote(left, right)
        return [(x, y) for x, y in found if wrapped(y, common)]
    if name == "pow":
        return [(x, y) for x, y in found if y < 100]
    return list(found)


@pytest.mark.parametrize("name", [*EXACT, *COMPARE])
def test_integers(name: str) -> None:
    for left, right in itertools.product(INTEGERS, repeat=2):
        one, two = SHORT[left], SHORT[right]
        common = promote(one, two)
        given_pairs = pairs(name, one, two)
        x, y = (
            tensor(list(side), d)
            for side, d in zip(zip(*given_pairs, strict=True), (one, two), strict=True)
        )
        found = function(name, one, two)(x, y)
        if name in COMPARE:
            wanted: list[Any] = [COMPARE[name](a, b) for a, b in given_pairs]
        else:
            met = [(wrapped(a, common), wrapped(b, common)) for a, b in given_pairs]
            wanted = [wrapped(EXACT[name](a, b), common) for a, b in met]
        assert found.dtype == (torch.bool if name in COMPARE else common)
        assert found.tolist() == wanted, (name, left, right)


@pytest.mark.thin(2)
@pytest.mark.parametrize("name", [*EXACT, *COMPARE])
def test_integers_with_constants(name: str) -> None:
    """A constant on either side equals a tensor of its dtype."""
    for left, right in itertools.product(INTEGERS, repeat=2):
        one, two = SHORT[left], SHORT[right]
        for constant in edges(two):
            xs = [x for x, c in pairs(name, one, two) if c == constant]
            if xs:
                x = tensor(xs, one)
                wanted = function(name, one, two)(x, tensor([constant], two))
                found = function(name, one, Number(constant, two))(x)
                assert torch.equal(found, wanted), (name, left, constant, right)
            ys = [y for c, y in pairs(name, two, one) if c == constant]
            if ys:
                wanted = function(name, two, one)(tensor([constant], two), tensor(ys, one))
                found = function(name, Number(constant, two), one)(tensor(ys, one))
                assert torch.equal(found, wanted), (name, constant, right, left)


@pytest.mark.parametrize("name", INTEGERS)
def test_shifts(name: str) -> None:
    dtype = SHORT[name]
    bits = max(8 * dtype.itemsize, 32)
    for n in (0, 1, 3, 7, 8, 31, 32, 63, 100):
        if n > limits(dtype)[1]:
            continue
        values, shift = edges(dtype), n % bits
        for distance in (tensor([n], dtype), Number(n, dtype)):
            operands = (dtype, distance if isinstance(distance, Number) else dtype)
            rest = () if isinstance(distance, Number) else (distance,)
            left = function("lshift", *operands)(tensor(values, dtype), *rest)
            right = function("rshift", *operands)(tensor(values, dtype), *rest)
            assert left.tolist() == [wrapped(v << shift, dtype) for v in values]
            assert right.tolist() == [v >> shift for v in values]


@pytest.mark.parametrize("name", INTEGERS)
def test_signs(name: str) -> None:
    dtype = SHORT[name]
    values = edges(dtype)
    assert function("neg", dtype)(tensor(values, dtype)).tolist() == [
        wrapped(-v, dtype) for v in values
    ]
    assert function("abs", dtype)(tensor(values, dtype)).tolist() == [
        wrapped(abs(v), dtype) for v in values
    ]
    assert function("invert", dtype)(tensor(values, dtype)).tolist() == [
        wrapped(~v, dtype) for v in values
    ]


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_clamp_of_unsigned(dtype: torch.dtype) -> None:
    high = limits(dtype)[1]
    clamped = function("clamp", dtype, Number(2, torch.uint8), dtype)(
        tensor([0, 5, high], dtype), tensor([high - 1], dtype)
    )
    assert clamped.dtype == dtype
    assert clamped.tolist() == [2, 5, high - 1]


# ---------------------------------------------------------------- floats


def test_floats_and_negative_integers_compare_by_value() -> None:
    x = torch.tensor([-2.5, -1.0, 0.0])
    assert math.max(x, -1).tolist() == [-1, -1, 0]
    assert function("ge", torch.float32, Number(-1, torch.int32))(x).tolist() == [False, True, True]
    assert function("eq", torch.float32, torch.int8)(x, torch.full((3,), -1, dtype=torch.int8)).tolist() == [
        False, True, False,
    ]  # fmt: skip


def test_division() -> None:
    ints = torch.tensor([7, -2, 0], dtype=torch.int32)
    found = function("truediv", torch.int32, Number(0, torch.int32))(ints)
    assert found.dtype == torch.float32
    assert found[:2].tolist() == [pymath.inf, -pymath.inf]
    assert found[2].isnan()
    assert function("truediv", Number(3, torch.int32), torch.float32)(
        torch.tensor([7.0])
    ).item() == np.float32(3) / np.float32(7)
    assert (
        function("floordiv", torch.float32, torch.float32)(
            torch.tensor([-7.0]), torch.tensor([2.0])
        ).item()
        == -3.5
    )
    assert (
        function("mod", torch.float32, torch.float32)(
            torch.tensor([-7.5]), torch.tensor([2.0])
        ).item()
        == -1.5
    )


def test_constants_have_their_type() -> None:
    x = torch.zeros(1, dtype=torch.float64)
    single = function("add", torch.float64, Number(0.1, torch.float32))(x).item()
    double = function("add", torch.float64, Number(0.1, torch.float64))(x).item()
    assert single == float(np.float32(0.1))
    assert double == 0.1
    assert (
        function("mul", torch.float32, Number(-0.0, torch.float32))(torch.ones(1)).signbit().item()
    )


def test_reciprocal_root_of_zero() -> None:
    assert math.rsqrt(torch.zeros(1)).item() == pymath.inf


def test_cube_roots() -> None:
    x = torch.tensor([-27.0, -0.0, 0.0, 8.0, 1e30])
    assert math.cbrt(x).tolist() == pytest.approx([-3, 0, 0, 2, 1e10], rel=1e-7)


NUMPY = {
    "fabs": np.fabs, "floor": np.floor, "ceil": np.ceil, "sqrt": np.sqrt, "cbrt": np.cbrt, "exp": np.exp,
    "log": np.log, "log2": np.log2, "log10": np.log10, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NUMPY)
def test_functions(name: str) -> None:
    assert set(NUMPY) == set(arithmetic.FUNCTIONS)
    values = np.array([-20.5, -1, -0.7, 0.1, 0.5, 1, 1.5, 20.5])
    found = getattr(math, name)(torch.from_numpy(values))
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found.numpy(), NUMPY[name](values), rtol=1e-12)
    whole = np.array([0, 1, 3, 200], np.uint8)
    found = getattr(math, name)(torch.from_numpy(whole))
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.numpy(), NUMPY[name](whole.astype(np.float32)), rtol=1e-6)


DIFFERENTIABLE: list[Callable[..., Any]] = [
    lambda x, y: math.sqrt(x * x + y * y),
    lambda x, y: math.pow(x, 3) / y,
    lambda x, y: math.clamp(x, 0.5, 1.5) + math.max(x, y),
    lambda x, y: math.atan2(x, y) * math.exp(-x),
    lambda x, y: math.cbrt(x) % 0.3 - math.log(y),
]


@pytest.mark.parametrize("number", range(len(DIFFERENTIABLE)))
def test_gradients(number: int) -> None:
    x = torch.tensor([0.7, 1.2, 2.1], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([1.1, 0.4, 3.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(DIFFERENTIABLE[number], (x, y))


# ------------------------------------------------------------ eager calls


def test_eager_operands() -> None:
    x = torch.tensor([1, 2, 250], dtype=torch.uint8)
    assert math.max(x, 100).dtype == torch.int32
    assert math.max(x, types.Constant(100).uint8()).dtype == torch.uint8
    assert math.max(x, np.array([3, 3, 3], np.uint8)).tolist() == [3, 3, 250]
    assert math.sqrt(torch.tensor(4.0)).item() == 2
    batch = TensorList.from_samples([x, x[:2]], layout="W")
    found = math.min(batch, 100)
    assert [s.tolist() for s in found.samples()] == [[1, 2, 100], [1, 2]]
    assert found.layout() == "W"


def test_inputs_are_not_modified() -> None:
    x = torch.tensor([1.0, -2.0])
    for name, arity in arithmetic.ARITY.items():
        if name not in arithmetic.BITWISE:
            function(name, *[torch.float32] * arity)(*[x] * arity)
    assert x.tolist() == [1, -2]


def test_half_precision_is_rejected_on_the_cpu() -> None:
    with pytest.raises(RuntimeError, match="float16"):
        math.sqrt(torch.ones(2, dtype=torch.float16))


def test_broadcast_batches() -> None:
    a, b = broadcast_batches(torch.ones(5, 3), torch.ones(5, 2, 3))
    assert (a + b).shape == (5, 2, 3)
    (c,) = broadcast_batches(torch.ones(5))
    assert c.shape == (5,)


# ---------------------------------------------------------------- in pipelines


@operator
def _in_a_chain(data: Data, /) -> Data:
    """Return the data; later operators are fused with it."""
    return data


EXPRESSIONS: dict[str, Callable[..., Any]] = {
    "affine": lambda lib, x, n: (x - 128) / 64.0 + n,
    "uint8": lambda lib, x, n: (x + np.uint8(200)) * np.uint8(3),
    "uint16": lambda lib, x, n: fn.cast(x, dtype=types.UINT16) * np.uint16(999) - n,
    "mask": lambda lib, x, n: ((x > 3) & (x < n)) ^ (x == 7),
    "number first": lambda lib, x, n: 255 - x + 2.5 / (x + 1),
    "clamp": lambda lib, x, n: math.clamp(x, 5, n),
    "array": lambda lib, x, n: x * np.array([1, 2, 3]) + [0.5, 1, 2],
    "index": lambda lib, x, n: x[0] * 2 + x[:, 1:2, ...][1, 0],
    "index per sample": lambda lib, x, n: x[n // 9, ::-1],
    "shape": lambda lib, x, n: x.shape() * n,
    "stack": lambda lib, x, n: fn.stack(x, x + np.uint8(1), axis=2),
    "cat": lambda lib, x, n: fn.cat(x[0], x[1], x[0] * np.uint8(2)),
    "reshape": lambda lib, x, n: fn.reshape(x, shape=[3, -1]) + n,
    "axes": lambda lib, x, n: fn.squeeze(fn.expand_dims(fn.transpose(x), axes=[1]), axes=[1]),
    "table": lambda lib, x, n: fn.lookup_table(x, keys=[0, 1, 2], values=[5.5, 6, 7]),
    "one hot": lambda lib, x, n: fn.one_hot(n, num_classes=12) * 0.9 + 0.1 / 12,
}  # fmt: skip
IMAGES = [np.arange(6, dtype=np.uint8).reshape(2, 3) * (i + 1) for i in range(4)]
NUMBERS = [np.int32(k) for k in (5, 9, 10, 3)]


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_results_do_not_depend_on_the_execution_mode(name: str) -> None:
    """Steps over the batch, per-sample chains, ragged samples and debug mode agree."""
    inputs = [given(*IMAGES, layout="HW"), given(*NUMBERS)]
    cases = {name: EXPRESSIONS[name]}
    over_batch = evaluate("torchdali", inputs, cases)[name]
    for through in (_in_a_chain, fn.copy):
        chained = evaluate("torchdali", inputs, cases, through=through)[name]
        same(chained.samples, over_batch.samples)
        assert chained.layout == over_batch.layout
    odd = np.zeros((3, 3), np.uint8)
    ragged = evaluate(
        "torchdali", [Given([*IMAGES, odd], "HW"), given(*NUMBERS, np.int32(0))], cases
    )[name]
    same(ragged.samples[:4], over_batch.samples)
    assert ragged.layout == over_batch.layout
    same(debugged(inputs, EXPRESSIONS[name]), over_batch.samples)


def same(found: list[Any], wanted: list[Any]) -> None:
    for x, y in zip(found, wanted, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def debugged(inputs: list[Given], expression: Callable[..., Any]) -> list[Any]:
    found = evaluate("torchdali", inputs, {"": expression}, debug=True)
    return found[""].samples


def test_on_the_device_stage() -> None:
    @pipeline_def(batch_size=3, num_threads=1, device_id="cpu", seed=1)
    def define() -> Any:
        x = fn.external_source(source=lambda: [np.uint16([1, 2, 60000])] * 3).gpu()
        return x + np.uint16(6000), (x * 2.5)[0], fn.stack(x, x), x.shape()

    pipe = define()
    pipe.build()
    added, scaled, stacked, shape = pipe.run()
    assert added.as_cpu().at(0).tolist() == [6001, 6002, 464]
    assert scaled.as_cpu().at(1) == 2.5
    assert stacked.as_cpu().at(2).shape == (2, 3)
    assert shape.as_cpu().at(0).tolist() == [3]
    pipe.close()


def planned(define: Callable[[], Any], **settings: Any) -> str:
    pipe = pipeline_def(batch_size=4, num_threads=1, device_id=None, seed=1, **settings)(define)()
    pipe.build()
    pipe.run()
    text = str(pipe.explain())
    pipe.close()
    return text


def test_each_operator_is_one_node() -> None:
    def define() -> Any:
        return (fn.random.uniform() * 2 - 1) / types.Constant(3).float64()

    text = planned(define).partition("stage 0")[0]
    assert text.count(" = math.") == 3
    assert "constant(" not in text
    assert "math.sub(__mul_1, constants='_, 1:int32')" in text


def test_numbers_are_computed_over_the_batch_and_data_of_a_chain_in_it() -> None:
    def define() -> Any:
        angle = fn.random.uniform(range=[-10, 10]) * 2 + 1
        late = _in_a_chain(fn.external_source(source=lambda: [np.ones(3, np.float32)] * 4))
        return late * 2, angle, late + angle

    numbers, single = planned(define).partition("stage 0")[2].split("for each sample:")
    assert numbers.count("over the batch: ") == 4 and numbers.count(" = math.") == 2
    assert single.count(" = ") == 3  # with the operator before both


@pytest.mark.parametrize("extent", [10, 100])
def test_batches_of_one_tensor_are_computed_in_groups(extent: int) -> None:
    def define() -> Any:
        image = fn.external_source(source=lambda: [np.ones((extent, extent, 3), np.uint8)] * 4)
        return image + 1, fn.random.uniform() + 1

    pipe = pipeline_def(batch_size=4, num_threads=2, device_id=None)(define)()
    pipe.build()
    for _ in range(3):
        images, _numbers = pipe.run()
        assert (images.as_array() == 2).all()
    assert pipe.explain().count("for each chunk of samples:") == 1
    assert "for each sample:" not in pipe.explain()
    pipe.close()


def test_branches_compute_their_samples_only() -> None:
    @pipeline_def(batch_size=4, num_threads=1, device_id=None, enable_conditionals=True)
    def define() -> Any:
        n = fn.external_source(source=lambda: [np.int32(i) for i in (0, 1, 2, 0)])
        if n > 0:
            out = 12 // n
        else:
            out = n - 1
        return out

    pipe = define()
    pipe.build()
    (out,) = pipe.run()
    assert out.as_array().tolist() == [-1, 12, 6, -1]
    pipe.close()


def test_the_thread_count_of_torch_is_kept() -> None:
    seen = []

    @operator(over="batch")
    def _watch(data: Data, /) -> Data:
        seen.append(
            (threading.current_thread() is threading.main_thread(), torch.get_num_threads())
        )
        return data

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        pipe = pipeline_def(batch_size=2, num_threads=1, device_id=None)(
            lambda: _watch(fn.random.uniform()) + 1
        )()
        pipe.build()
        pipe.run()
        pipe.close()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {(False, 1)}


def test_shapes_that_do_not_match() -> None:
    with pytest.raises(RuntimeError, match="broadcastable, got 2 x 3 x 4 and 2 x 3 x 3"):
        torchdali.graph.nodes.apply("add", torch.ones(2, 3, 4), torch.ones(2, 3, 3))


@pytest.mark.parametrize("name", ["sinh", "cosh"])
def test_the_largest_hyperbolic_results_are_finite(name: str) -> None:
    x = torch.linspace(88, 89.4, 64)
    assert getattr(math, name)(x).isfinite().all()


def test_errors_name_the_line() -> None:
    error = failure("torchdali", [given(np.int32([1, 2]))], lambda lib, x: x // 0)
    assert isinstance(error, ValueError)
    assert "math.floordiv" in str(error)
    assert "test_arithmetic.py" in str(error)


def test_wrong_operands() -> None:
    x = torchdali.DataNode("x")
    with pytest.raises(TypeError, match="node, a number, an array"):
        x + object()  # type: ignore[operator]
    with pytest.raises(TypeError, match="write the node first"):
        np.ones(3) + x
    with pytest.raises(ValueError, match="at least one operand"):
        math.max(1, 2)
    with pytest.raises(OverflowError, match="out of range"):
        x + 2**31
    with pytest.raises(TypeError, match="2 operands"):
        torchdali.graph.nodes.apply("add", x)


def test_numpy_scalars_first_count_as_python_numbers() -> None:
    x = given(np.uint8([1, 2, 250]))
    cases = {"u8": lambda lib, n: np.uint8(2) + n, "f64": lambda lib, n: np.float64(2) * n}
    found = evaluate("torchdali", [x], cases)
    assert found["u8"].samples[0].dtype == np.int32
    assert found["f64"].samples[0].dtype == np.float32


def test_smallest_integer_by_minus_one() -> None:
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
        least = torch.full((40,), limits(dtype)[0], dtype=dtype)
        ones = torch.full((40,), -1, dtype=dtype)
        assert torch.equal(function("floordiv", dtype, dtype)(least, ones), least)
        assert not function("mod", dtype, dtype)(least, ones).any()
        assert torch.equal(function("floordiv", dtype, Number(-1, dtype))(least), least)


# --------------------------------------------------------------- in the memory of the result

SCALED = {
    "numbers": lambda x, y: (x * 0.5 + 3) / 7 - 1,
    "a number before": lambda x, y: 255 - (1 - x / 2),
    "both sides computed": lambda x, y: (x * 2.0) - (y * 3.0),
    "one result twice": lambda x, y: (lambda z: z * z + z)(x * 0.25),
    "two images": lambda x, y: (x - y * 1.0) * (y + 0.5),
    "integers": lambda x, y: (x * 2 + 1) - y,
    "bytes that wrap": lambda x, y: x * types.Constant(3).uint8() + y,
    "another type at the end": lambda x, y: (x * 0.5 + 3) > y,
    "a function in between": lambda x, y: math.sqrt(x * 0.5 + 3) * 2,
    "wider numbers": lambda x, y: (x * types.Constant(0.1).float64() + 1) * 3,
    "uint16": lambda x, y: (x * types.Constant(700).uint16() - y) * types.Constant(3).uint16(),
    "a row of numbers": lambda x, y: (fn.constant(fdata=[1.0, 2.0, 3.0]) * 2 + x) * 0.5,
}


@pytest.mark.thin(5)
@pytest.mark.parametrize("size", [4, 300], ids=["small", "large"])
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("expression", SCALED.values(), ids=SCALED)
def test_steps_in_the_memory_of_the_result(expression: Any, ragged: bool, size: int) -> None:
    """Intermediate results in the output's memory do not change results, in later batches either."""
    draw = np.random.default_rng(5)
    shapes = [(size, size + 3 * ragged * i, 3) for i in range(4)]
    images = [[draw.integers(0, 256, shape).astype(np.uint8) for shape in shapes] for _ in range(2)]

    def define() -> Any:
        x, y = (fn.external_source(functools.partial(list, own)) for own in images)
        return expression(x, y), x, y

    # In debug mode operators run one by one, on whole batches, each into its own memory.
    chain, alone = (
        pipeline_def(batch_size=4, num_threads=2, device_id=None, debug=debug)(define)() for debug in (False, True)
    )
    wanted = alone.run()
    for _ in range(3):
        for own, others in zip(chain.run(), wanted, strict=True):
            for one, other in zip(own, others, strict=True):
                assert one.torch().dtype == other.torch().dtype and one.torch().equal(other.torch())


@pytest.mark.parametrize("expression", [lambda x: x * 2, lambda x: +x, lambda x: math.sqrt(x)], ids=["*", "+", "sqrt"])
def test_results_are_contiguous(expression: Any) -> None:
    """In the first batch, whose samples have no slots yet, and on transposed images."""
    images = [np.ones((6, 5 + i, 3), np.float32) for i in range(2)]

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define() -> Any:
        return expression(fn.transpose(fn.external_source(lambda: images), perm=[2, 0, 1]))

    pipe = define()
    for _ in range(3):
        assert all(sample.torch().is_contiguous() for sample in pipe.run()[0])


# --------------------------------------------------------- compared with the real DALI


EXCEPTIONS = {
    "math.rsqrt": "of 0 is inf; DALI's CPU approximation returns nan",
    "node[...]": "works; DALI raises NotImplementedError",
    "node + np.float64(2)": "gives float64; DALI raises TypeError",
    "float < int": "compares the values; in DALI, every negative integer is less than any float",
    "Constant(0.1).float64()": "has float64's precision; DALI stores the constant as float32",
    "int_min // -1": "wraps around; DALI's process dies",
}

DTYPES = {
    name: np.dtype(name)
    for name in (
        "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64",
    )
}  # fmt: skip
BINARY: dict[str, Any] = {
    "+": op.add, "-": op.sub, "*": op.mul, "/": op.truediv, "//": op.floordiv, "%": op.mod,
    "==": op.eq, "!=": op.ne, "<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge,
    "&": op.and_, "|": op.or_, "^": op.xor, "<<": op.lshift, ">>": op.rshift,
}  # fmt: skip


COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
REAL = ("float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")


def values(dtype: np.dtype[Any], nonzero: bool = False) -> Any:
    """Return sixteen values: small ones of both signs, and the ends of the range."""
    if dtype.kind == "b":
        return np.arange(16) % 2 == 0 if not nonzero else np.ones(16, bool)
    if dtype.kind == "f":
        found = np.array(
            [0, 1, -1, 2.5, -2.5, 7, -7, 100.5, 1e6, -1e6, 0.1, 3, -3, 1e-3, 200, 5], dtype
        )
    else:
        info = np.iinfo(dtype)
        small = [1, 2, 3, 5, 7, 100, 0, 11]
        ends = [info.max, info.max - 1, info.max // 2, info.max // 3]
        signed = [-1, -2, -7, -100] if info.min else [13, 64, 31, 90]
        found = np.array([*small, *ends, *signed], dtype)
    return np.where(found == 0, found.dtype.type(4), found) if nonzero else found


def shuffled(array: Any) -> Any:
    return array[np.random.default_rng(3).permutation(len(array))]


def agree(
    inputs: list[Given], cases: dict[str, Expression], relative: float = 0.0, level: float = 0.0
) -> dict[str, Result]:
    """Evaluate in both libraries; raise AssertionError naming the cases that differ."""
    wanted = evaluate("nvidia.dali", inputs, cases)
    found = evaluate("torchdali", inputs, cases)
    wrong = []
    for name in cases:
        try:
            compare([found[name]], [wanted[name]], relative=relative, level=level)
        except AssertionError as error:
            wrong.append(f"{name}: {error}: {found[name]} instead of {wanted[name]}")
    assert not wrong, "\n".join(wrong)
    return found


def refused(symbol: str, *names: str) -> bool:
    """Return True if DALI rejects the dtypes: two booleans in arithmetic, floats in bitwise operators."""
    if symbol in "&|^<<>>" and symbol not in "<>":
        return any(name.startswith("float") for name in names)
    return set(names) == {"bool"} and symbol in ("+", "-", "/", "//", "%")


def misjudged(symbol: str, *names: str) -> bool:
    """Return True if DALI compares floats with negative integers, which it does not do by value."""
    kinds = {"float" if n in REAL else "signed" if n in SIGNED else "" for n in names}
    return symbol in COMPARISONS and {"float", "signed"} <= kinds


@pytest.mark.golden
@pytest.mark.parametrize("symbol", BINARY)
def test_promotion_beside_dali(symbol: str) -> None:
    divides = symbol in ("//", "%")
    inputs = [given(values(d)) for d in DTYPES.values()]
    inputs += [given(shuffled(values(d, nonzero=divides))) for d in DTYPES.values()]
    names, function = list(DTYPES), BINARY[symbol]
    cases: dict[str, Expression] = {}
    for i, left in enumerate(names):
        for j, right in enumerate(names):
            if not refused(symbol, left, right) and not misjudged(symbol, left, right):
                cases[f"{left} {symbol} {right}"] = lambda _, *nodes, i=i, j=j: function(
                    nodes[i], nodes[len(names) + j]
                )
    agree(inputs, cases, relative=1e-6)


@pytest.mark.golden
@pytest.mark.parametrize("symbol", COMPARISONS)
def test_floats_and_negative_integers_of_all_types(symbol: str) -> None:
    """DALI treats every negative integer as less than any float."""
    compared = BINARY[symbol]
    for real, whole in itertools.product(REAL, SIGNED):
        left, right = values(DTYPES[real]), shuffled(values(DTYPES[whole]))
        found = evaluate(
            "torchdali", [given(left), given(right)], {"": lambda _, x, y: compared(x, y)}
        )
        wanted = compared(left.astype(np.float64), right.astype(real).astype(np.float64))
        assert np.array_equal(found[""].samples[0], wanted), (real, whole)


# ---------------------------------------------------------------- constants


CONSTANTS: dict[str, Any] = {
    "2": 2, "-3": -3, "2.5": 2.5, "-0.1": -0.1, "True": True, "2**31-1": 2**31 - 1, "-2**31": -(2**31),
    "np.uint8(5)": np.uint8(5), "np.int8(-5)": np.int8(-5), "np.uint16(7)": np.uint16(7),
    "np.int16(-7)": np.int16(-7), "np.uint32(9)": np.uint32(9), "np.int64(2**40)": np.int64(2**40),
    "np.uint64(11)": np.uint64(11), "np.float32(0.1)": np.float32(0.1), "np.bool_(True)": np.True_,
    "np.array(3)": np.array(3), "np.array(3, uint8)": np.array(3, np.uint8),
}  # fmt: skip
SCALARS: dict[str, tuple[float, str]] = {
    "Constant(200).uint8()": (200, "uint8"), "Constant(-4).int8()": (-4, "int8"),
    "Constant(-4).int16()": (-4, "int16"), "Constant(60000).uint16()": (60000, "uint16"),
    "Constant(4000000000).uint32()": (4000000000, "uint32"), "Constant(6).int64()": (6, "int64"),
    "Constant(2**62).uint64()": (2**62, "uint64"), "Constant(0.5).float64()": (0.5, "float64"),
    "Constant(0.3).float32()": (0.3, "float32"), "Constant(1).bool()": (1, "bool"),
}  # fmt: skip


def constant(library: Any, name: str) -> Any:
    if name in CONSTANTS:
        return CONSTANTS[name]
    value, dtype = SCALARS[name]
    return getattr(library.types.Constant(value), dtype)()


def kind_of(name: str) -> str:
    if name in SCALARS:
        return SCALARS[name][1]
    value = CONSTANTS[name]
    if isinstance(value, (np.generic, np.ndarray)):
        return str(value.dtype)
    return "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"


@pytest.mark.golden
@pytest.mark.parametrize("symbol", BINARY)
def test_constants(symbol: str) -> None:
    divides = symbol in ("//", "%")
    function = BINARY[symbol]
    names = list(DTYPES)
    cases: dict[str, Expression] = {}
    for (i, dtype), name in itertools.product(enumerate(names), [*CONSTANTS, *SCALARS]):
        kinds = (dtype, kind_of(name))
        if refused(symbol, *kinds) or misjudged(symbol, *kinds):
            continue
        cases[f"{dtype} {symbol} {name}"] = lambda lib, *nodes, i=i, name=name: function(
            nodes[i], constant(lib, name)
        )
        if name.startswith("np."):
            continue  # NumPy decides there: see test_numpy_scalars_first
        if name == "-2**31" and divides:
            continue  # by -1: DALI's process crashes
        cases[f"{name} {symbol} {dtype}"] = lambda lib, *nodes, i=i, name=name: function(
            constant(lib, name), nodes[i]
        )
    agree([given(values(d, nonzero=divides)) for d in DTYPES.values()], cases, relative=1e-6)


@pytest.mark.golden
def test_numpy_scalars_first() -> None:
    cases: dict[str, Expression] = {
        name: lambda lib, x, name=name: constant(lib, name) + x
        for name in CONSTANTS
        if name.startswith("np.") and "2**40" not in name
    }
    agree([given(values(DTYPES["uint8"]))], cases)


ARRAYS: dict[str, Expression] = {
    "x + int64 array": lambda lib, x: x + np.array([1, 2, 3]),
    "x + float64 array": lambda lib, x: x + np.array([1, 2, 3.5]),
    "x + uint8 array": lambda lib, x: x + np.array([1, 2, 250], np.uint8),
    "x + bool array": lambda lib, x: x + np.array([True, False, True]),
    "x * column": lambda lib, x: x * np.array([[1], [2]], np.int16),
    "x + list": lambda lib, x: x + [1, 2, 3],  # noqa: RUF005
    "list - x": lambda lib, x: [1, 2, 3] - x,
    "x + tuple of floats": lambda lib, x: x + (1.5, 2, 3),  # noqa: RUF005
    "x < list": lambda lib, x: x < [1, 2, 250],
    "max(x, list)": lambda lib, x: lib.math.max(x, [1, 100, 250]),
    "clamp(x, array, list)": lambda lib, x: lib.math.clamp(x, np.float32([1, 2, 3]), [9, 9, 9]),
    "x + Constant list": lambda lib, x: x + lib.types.Constant([1, 2, 3]),
    "x + Constant node": lambda lib, x: x + lib.types.Constant(np.uint8([1, 2, 3]), device="cpu"),
    "Constant node - x": lambda lib, x: lib.types.Constant(np.uint8([1, 2, 3])) - x,
    "Constant node with layout": lambda lib, x: (
        lib.types.Constant(np.uint8([1, 2, 3]), layout="W") - x
    ),
    "Constant node + number": lambda lib, x: lib.types.Constant([1, 2, 3]) + 2.5,
    "-Constant node": lambda lib, x: -lib.types.Constant([1, 2, 3]),
    "node of two constants": lambda lib, x: lib.types.Constant([1, 2]) * lib.types.Constant([3, 4]),
    "sqrt(Constant node)": lambda lib, x: lib.math.sqrt(lib.types.Constant([1, 4])),
    "sqrt(array)": lambda lib, x: lib.math.sqrt(np.ones(3)),
    "min of lists": lambda lib, x: lib.math.min([1, 5], [2, 3]),
    "Constant node[0]": lambda lib, x: lib.types.Constant([7, 8, 9])[1],
}


@pytest.mark.golden
def test_arrays() -> None:
    agree([given(np.array([1, 2, 250], np.uint8))], ARRAYS)


# ---------------------------------------------------------------- one operand


@pytest.mark.golden
def test_signs_and_complement() -> None:
    cases: dict[str, Expression] = {}
    for i, (name, dtype) in enumerate(DTYPES.items()):
        cases[f"+{name}"] = lambda _, *nodes, i=i: +nodes[i]
        if name != "bool":
            cases[f"-{name}"] = lambda _, *nodes, i=i: -nodes[i]
            cases[f"abs({name})"] = lambda _, *nodes, i=i: abs(nodes[i])
            cases[f"math.abs({name})"] = lambda lib, *nodes, i=i: lib.math.abs(nodes[i])
        if dtype.kind != "f":
            cases[f"~{name}"] = lambda _, *nodes, i=i: ~nodes[i]
    agree([given(values(d)) for d in DTYPES.values()], cases)


FUNCTIONS = (
    "fabs", "floor", "ceil", "sqrt", "rsqrt", "cbrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
)  # fmt: skip


@pytest.mark.golden
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_beside_dali(function: str) -> None:
    kinds = [d for name, d in DTYPES.items() if name != "bool"]
    small = [np.clip(values(d), 0, 50).astype(d) for d in kinds]
    small += [
        np.array([-2.5, -1, -0.7, -0.1, 0, 0.1, 0.5, 0.99, 1, 1.5, 30], d) for d in kinds[-2:]
    ]
    small += [np.array([-3, -2, -1, 0, 1, 2, 20], d) for d in kinds if d.kind == "i"]
    if function == "rsqrt":
        small = [np.where(s == 0, s.dtype.type(1), s) for s in small]
    cases: dict[str, Expression] = {
        f"{i}: {s.dtype}": lambda lib, *nodes, i=i: getattr(lib.math, function)(nodes[i])
        for i, s in enumerate(small)
    }
    agree([given(s) for s in small], cases, relative=2e-6, level=1e-7)


TWO = ("min", "max", "pow", "fpow", "atan2")


@pytest.mark.golden
@pytest.mark.parametrize("function", TWO)
def test_functions_of_two(function: str) -> None:
    kinds = [d for name, d in DTYPES.items() if name != "bool"]
    left = [np.array([2, 3, 0, 5, 1, 9, 11], d) for d in kinds]
    right = [
        np.array([3, 2, 1, 0, 7, 1, 2] if d.kind == "u" else [3, -1, 0, -2, 2, 1, 1], d)
        for d in kinds
    ]
    count = len(kinds)
    cases: dict[str, Expression] = {}
    for i, j in itertools.product(range(count), repeat=2):
        name = f"{function}({kinds[i]}, {kinds[j]})"
        cases[name] = lambda lib, *n, i=i, j=j: getattr(lib.math, function)(n[i], n[count + j])
        cases[f"{name}, changed"] = lambda lib, *n, i=i, j=j: getattr(lib.math, function)(
            n[count + i], n[j]
        )
    for i in range(count):
        cases[f"{function}({kinds[i]}, 2)"] = lambda lib, *n, i=i: getattr(lib.math, function)(
            n[i], 2
        )
        cases[f"{function}(2.5, {kinds[i]})"] = lambda lib, *n, i=i: getattr(lib.math, function)(
            2.5, n[i]
        )
        cases[f"{kinds[i]} ** 3"] = lambda lib, *n, i=i: n[count + i] ** 3
        cases[f"{kinds[i]} ** -1"] = lambda lib, *n, i=i: n[i] ** -1
        cases[f"2 ** {kinds[i]}"] = lambda lib, *n, i=i: 2 ** n[count + i]
    agree([given(a) for a in (*left, *right)], cases, relative=1e-6)


@pytest.mark.golden
def test_clamp() -> None:
    cases: dict[str, Expression] = {
        "u8 0 255": lambda lib, u, f: lib.math.clamp(u, 3, 100),
        "u8 with u8": lambda lib, u, f: lib.math.clamp(u, np.uint8(3), np.uint8(100)),
        "u8 beyond": lambda lib, u, f: lib.math.clamp(u, -1, 300),
        "float": lambda lib, u, f: lib.math.clamp(f, 0.0, 1.0),
        "float by ints": lambda lib, u, f: lib.math.clamp(f, 0, 1),
        "crossed": lambda lib, u, f: lib.math.clamp(u, 5, 2),
        "nodes": lambda lib, u, f: lib.math.clamp(f, u, u + 1),
        "number first": lambda lib, u, f: lib.math.clamp(5, u, f),
        "wide": lambda lib, u, f: lib.math.clamp(lib.fn.cast(u, dtype=lib.types.UINT64), 3, 9),
        "wide by wide": lambda lib, u, f: lib.math.clamp(
            lib.fn.cast(u, dtype=lib.types.UINT64), np.uint64(3), np.uint64(9)
        ),
        "nan limits": lambda lib, u, f: lib.math.clamp(f, float("nan"), 2.0),
        "min nan": lambda lib, u, f: lib.math.min(f, 1.0),
        "min nan second": lambda lib, u, f: lib.math.min(1.0, f),
        "max nan": lambda lib, u, f: lib.math.max(f, 1.0),
        "max nan second": lambda lib, u, f: lib.math.max(1.0, f),
    }
    number = np.array([0, 1, 5, 200], np.uint8)
    agree([given(number), given(np.array([-1, 0.5, 7, np.nan], np.float32))], cases)


# ---------------------------------------------------------------- shapes and layouts

HW, WC, HWC = (
    np.arange(6, dtype=np.uint8).reshape(2, 3),
    np.ones((3, 4), np.uint8),
    np.ones((2, 3, 4), np.uint8),
)
LAYOUTS: list[tuple[Any, str | None, Any, str | None]] = [
    (HW, "HW", HW, None), (HW, None, HW, "HW"), (HW, "HW", HW, "HW"), (HW, None, HW, None),
    (HWC, "HWC", WC, None), (HWC, "HWC", WC, "WC"), (WC, "WC", HWC, "HWC"), (HWC, None, WC, "WC"),
    (HW[:1, :1], "HW", HWC, None), (HWC, None, HW[:1, :1], "HW"), (HWC, "HWC", np.uint8(3), None),
    (np.uint8(3), None, HWC, "HWC"), (HW[0], "W", HW, "HW"), (WC[0], "C", HWC, "HWC"),
    (HW, None, HW[:, :1].copy(), None), (HW[:1], None, HW[:, :1].copy(), None), (HW[0, :1], None, np.uint8(3), None),
    (HW[:0], "HW", HW[0], None), (HWC, "HWC", HW[:1, :1].copy(), None), (HW[0], None, HW, "HW"),
]  # fmt: skip


@pytest.mark.golden
@pytest.mark.parametrize("number", range(len(LAYOUTS)))
def test_layouts_and_broadcasting(number: int) -> None:
    left, left_layout, right, right_layout = LAYOUTS[number]
    inputs = [
        given(left, left + 1, layout=left_layout),
        given(right, right + 2, layout=right_layout),
    ]
    cases: dict[str, Expression] = {
        "x + y": lambda lib, x, y: x + y,
        "x < y": lambda lib, x, y: x < y,
        "max": lambda lib, x, y: lib.math.max(x, y),
        "clamp": lambda lib, x, y: lib.math.clamp(x, 1, y),
        "clamp others": lambda lib, x, y: lib.math.clamp(2, x, y),
        "one": lambda lib, x, y: lib.math.sqrt(x),
    }
    agree(inputs, cases, relative=1e-6)


@pytest.mark.golden
def test_ragged() -> None:
    left = [HW, np.arange(4, dtype=np.uint8).reshape(1, 4), np.zeros((0, 2), np.uint8)]
    right = [HW[:1], np.arange(3, dtype=np.uint8).reshape(3, 1), np.zeros((1, 1), np.uint8)]
    cases: dict[str, Expression] = {
        "x + y": lambda lib, x, y: x + y,
        "x / 3": lambda lib, x, y: x / 3,
        "expression": lambda lib, x, y: ((x * 2.5 - y) / 7 > 1) & (y < 2),
        "x[0:1]": lambda lib, x, y: x[0:1, -1:],
    }
    agree([given(*left, layout="HW"), given(*right)], cases, relative=1e-6)


FORMULAS: dict[str, Expression] = {
    "affine": lambda lib, x, y, n: (x - 128) / 64.0 * 3 + 1,
    "uint8 stays": lambda lib, x, y, n: (x + np.uint8(7)) * np.uint8(3) - np.uint8(200),
    "mask": lambda lib, x, y, n: (x > 3) & (x < 20) | (y == 2),
    "select": lambda lib, x, y, n: x * (y > 5) + y * (y <= 5),
    "bits": lambda lib, x, y, n: ((x << 3) | (x >> 5)) ^ 0x55,
    "norm": lambda lib, x, y, n: lib.math.sqrt(x * x + y * y),
    "angle": lambda lib, x, y, n: lib.math.atan2(x, y) * 180.0 / 3.14159,
    "power": lambda lib, x, y, n: (x / 255) ** 2.2 * 255,
    "quotients": lambda lib, x, y, n: (x * 100) // (y + 1) % 7,
    "by sample": lambda lib, x, y, n: x * n + y / (n + 1),
    "shape": lambda lib, x, y, n: x.shape()[0] * 2 + n,
    "shape scaled": lambda lib, x, y, n: x.shape(dtype=lib.types.FLOAT) * 0.5,
    "element": lambda lib, x, y, n: x[0, 1] * 2.0 - y[1, 0],
    "sample's element": lambda lib, x, y, n: x[n, 1:] + y[0, n],
    "stack of numbers": lambda lib, x, y, n: lib.fn.stack(n * 2, n + 1, n),
    "cat of rows": lambda lib, x, y, n: (
        lib.fn.cat(x[0], y[1] * 2 % 3) if False else lib.fn.cat(x[0], x[1])
    ),
    "transposed": lambda lib, x, y, n: lib.fn.transpose(x, perm=[1, 0]) * 2,
    "reshaped": lambda lib, x, y, n: lib.fn.reshape(x, shape=[-1]) + 1,
    "comparison chain": lambda lib, x, y, n: (x == y) == (y != x),
    "abs difference": lambda lib, x, y, n: abs(lib.fn.cast(x, dtype=lib.types.INT16) - y),
    "negated": lambda lib, x, y, n: -(x - 3) + ~x,
    "long sum": lambda lib, x, y, n: sum([x * k for k in range(2, 9)], y),
}


@pytest.mark.golden
@pytest.mark.parametrize("name", FORMULAS)
def test_expressions(name: str) -> None:
    x = np.random.default_rng(1).integers(0, 255, (2, 3, 5)).astype(np.uint8)
    y = np.random.default_rng(2).integers(0, 12, (2, 3, 5)).astype(np.int32)
    inputs = [given(*x, layout="HW"), given(*y), given(np.int32(1), np.int32(2))]
    agree(inputs, {name: FORMULAS[name]}, relative=1e-5)
