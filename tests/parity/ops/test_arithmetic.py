"""Arithmetic, comparison, bitwise and mathematical functions, and indexing, against the real DALI."""

from __future__ import annotations

import itertools
import operator as op
from typing import Any

import numpy as np
import pytest

from tests.check import Result, compare
from tests.helpers.expressions import Expression, Given, evaluate, given

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "math.rsqrt": "of 0 is inf; DALI's CPU approximation gives nan",
    "node[...]": "works; DALI raises NotImplementedError",
    "node + np.float64(2)": "is float64; DALI raises TypeError",
    "float < int": "compares values; DALI takes every negative integer for less than any float",
    "Constant(0.1).float64()": "has the precision of float64; DALI stores it as float32",
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
    """Sixteen values: small ones of both signs, and the ends of the range."""
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
    """Return True if DALI refuses the types: two booleans in arithmetic, floats in bitwise operators."""
    if symbol in "&|^<<>>" and symbol not in "<>":
        return any(name.startswith("float") for name in names)
    return set(names) == {"bool"} and symbol in ("+", "-", "/", "//", "%")


def misjudged(symbol: str, *names: str) -> bool:
    """Return True if DALI compares floats with negative integers, which it does not do by value."""
    kinds = {"float" if n in REAL else "signed" if n in SIGNED else "" for n in names}
    return symbol in COMPARISONS and {"float", "signed"} <= kinds


@pytest.mark.parametrize("symbol", BINARY)
def test_promotion_table(symbol: str) -> None:
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


@pytest.mark.parametrize("symbol", COMPARISONS)
def test_floats_and_negative_integers_compare_by_value(symbol: str) -> None:
    """DALI takes every negative integer for less than any float."""
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
            continue  # NumPy has the say there: see test_numpy_scalars_first
        if name == "-2**31" and divides:
            continue  # by -1: DALI's process dies
        cases[f"{name} {symbol} {dtype}"] = lambda lib, *nodes, i=i, name=name: function(
            constant(lib, name), nodes[i]
        )
    agree([given(values(d, nonzero=divides)) for d in DTYPES.values()], cases, relative=1e-6)


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


def test_arrays() -> None:
    agree([given(np.array([1, 2, 250], np.uint8))], ARRAYS)


# ---------------------------------------------------------------- one operand


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


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions(function: str) -> None:
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


EXPRESSIONS: dict[str, Expression] = {
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


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions(name: str) -> None:
    x = np.random.default_rng(1).integers(0, 255, (2, 3, 5)).astype(np.uint8)
    y = np.random.default_rng(2).integers(0, 12, (2, 3, 5)).astype(np.int32)
    inputs = [given(*x, layout="HW"), given(*y), given(np.int32(1), np.int32(2))]
    agree(inputs, {name: EXPRESSIONS[name]}, relative=1e-5)
