"""Arithmetic, comparison, bitwise and mathematical functions, and indexing, against the real DALI."""

from __future__ import annotations

import itertools
import operator as op
from typing import Any

import numpy as np
import pytest

pytest.importorskip(
    "nvidia.dali",
    reason="the parity tests compare with the real DALI: pip install 'torchdali[parity]'",
)

from tests.check import Result, compare
from tests.expressions import Expression, Given, evaluate, failure, given

pytestmark = pytest.mark.parity

EXCEPTIONS = {
    "math.rsqrt": "of 0 is inf; DALI's CPU approximation gives nan",
    "node[...]": "works; DALI raises NotImplementedError",
    "node + np.float64(2)": "is float64; DALI raises TypeError",
    "float < int": "compares values; DALI takes every negative integer for less than any float",
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
    """Whether DALI refuses the types: two booleans in arithmetic, floats in bitwise operators."""
    if symbol in "&|^<<>>" and symbol not in "<>":
        return any(name.startswith("float") for name in names)
    return set(names) == {"bool"} and symbol in ("+", "-", "/", "//", "%")


def misjudged(symbol: str, *names: str) -> bool:
    """Whether DALI compares floats with negative integers, which it does not do by value."""
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
