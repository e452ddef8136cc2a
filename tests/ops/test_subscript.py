"""Indexing of nodes, and the errors of indexing and arithmetic, against the real DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.check import compare
from tests.helpers.libraries import Expression, Given, evaluate, failure, given

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "node[...]": "works; DALI raises NotImplementedError",
    "float64 + np.float64": "gives float64; DALI raises TypeError",
}

HWC = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
SCALAR = np.int32(3)

CONSTANT: dict[str, Expression] = {
    "[0]": lambda lib, x: x[0],
    "[1]": lambda lib, x: x[1],
    "[-1]": lambda lib, x: x[-1],
    "[-2]": lambda lib, x: x[-2],
    "[:, 0]": lambda lib, x: x[:, 0],
    "[:, -1]": lambda lib, x: x[:, -1],
    "[:, :, 2]": lambda lib, x: x[:, :, 2],
    "[1, 2]": lambda lib, x: x[1, 2],
    "[1, :, 2]": lambda lib, x: x[1, :, 2],
    "[1, 2, 3]": lambda lib, x: x[1, 2, 3],
    "[0][1][2]": lambda lib, x: x[0][1][2],
    "[:]": lambda lib, x: x[:],
    "[()]": lambda lib, x: x[()],
    "[None]": lambda lib, x: x[None],
    "[:, :, :]": lambda lib, x: x[:, :, :],
    "[:, 1:3]": lambda lib, x: x[:, 1:3],
    "[:, 1:]": lambda lib, x: x[:, 1:],
    "[:, :2]": lambda lib, x: x[:, :2],
    "[:, -2:]": lambda lib, x: x[:, -2:],
    "[:, :-1]": lambda lib, x: x[:, :-1],
    "[:, -3:-1]": lambda lib, x: x[:, -3:-1],
    "[0:5]": lambda lib, x: x[0:5],
    "[-5:2]": lambda lib, x: x[-5:2],
    "[:, 5:1]": lambda lib, x: x[:, 5:1],
    "[:, 2:1]": lambda lib, x: x[:, 2:1],
    "[0:0]": lambda lib, x: x[0:0],
    "[7:9]": lambda lib, x: x[7:9],
    "[::2]": lambda lib, x: x[::2],
    "[:, ::2]": lambda lib, x: x[:, ::2],
    "[:, 1::2]": lambda lib, x: x[:, 1::2],
    "[:, :, 1:4:2]": lambda lib, x: x[:, :, 1:4:2],
    "[:, ::7]": lambda lib, x: x[:, ::7],
    "[:, ::-1]": lambda lib, x: x[:, ::-1],
    "[::-1, ::-1, ::-1]": lambda lib, x: x[::-1, ::-1, ::-1],
    "[:, 2:0:-1]": lambda lib, x: x[:, 2:0:-1],
    "[:, -1:-10:-1]": lambda lib, x: x[:, -1:-10:-1],
    "[:, 10::-1]": lambda lib, x: x[:, 10::-1],
    "[:, ::-2]": lambda lib, x: x[:, ::-2],
    "[:, :, ::-3]": lambda lib, x: x[:, :, ::-3],
    "[:, 0:2:-1]": lambda lib, x: x[:, 0:2:-1],
    "[0, 1:, ::-1]": lambda lib, x: x[0, 1:, ::-1],
    "[1:, 0, 1:3]": lambda lib, x: x[1:, 0, 1:3],
    "[True]": lambda lib, x: x[True],
    "[True:]": lambda lib, x: x[True:],
    "[1.0:]": lambda lib, x: x[1.0:],
    "[np.int64(1)]": lambda lib, x: x[np.int64(1)],
    "[np.array(1)]": lambda lib, x: x[np.array(1)],
    "[:, np.uint8(1):]": lambda lib, x: x[:, np.uint8(1) :],
    "[Constant(1)]": lambda lib, x: x[lib.types.Constant(1)],
    "[:, Constant(1):]": lambda lib, x: x[:, lib.types.Constant(1) :],
    "[newaxis]": lambda lib, x: x[lib.newaxis],
    "[:, newaxis]": lambda lib, x: x[:, lib.newaxis],
    "[:, :, :, newaxis]": lambda lib, x: x[:, :, :, lib.newaxis],
    "[0, newaxis]": lambda lib, x: x[0, lib.newaxis],
    "[newaxis, 0]": lambda lib, x: x[lib.newaxis, 0],
    "[newaxis, newaxis]": lambda lib, x: x[lib.newaxis, lib.newaxis],
}
NAMED: dict[str, Expression] = {
    "[newaxis('N')]": lambda lib, x: x[lib.newaxis("N")],
    "[:, newaxis('A')]": lambda lib, x: x[:, lib.newaxis("A")],
    "[0, newaxis('A')]": lambda lib, x: x[0, lib.newaxis("A")],
    "[:, 1, newaxis('A')]": lambda lib, x: x[:, 1, lib.newaxis("A")],
    "[newaxis('A'), :, newaxis('B')]": lambda lib, x: x[lib.newaxis("A"), :, lib.newaxis("B")],
    "[1:, newaxis('A'), ::-1]": lambda lib, x: x[1:, lib.newaxis("A"), ::-1],
}
OF_SCALAR: dict[str, Expression] = {
    "[()]": lambda lib, x: x[()],
    "[newaxis]": lambda lib, x: x[lib.newaxis],
    "[newaxis('A')]": lambda lib, x: x[lib.newaxis("A")],
    "[newaxis, newaxis]": lambda lib, x: x[lib.newaxis, lib.newaxis],
}
PER_SAMPLE: dict[str, Expression] = {
    "[n]": lambda lib, x, n: x[n],
    "[:, n]": lambda lib, x, n: x[:, n],
    "[-n]": lambda lib, x, n: x[-n],
    "[n, n, n]": lambda lib, x, n: x[n, n, n],
    "[n:]": lambda lib, x, n: x[n:],
    "[:n]": lambda lib, x, n: x[:n],
    "[:, n:n+1]": lambda lib, x, n: x[:, n : n + 1],
    "[:, -n-1:]": lambda lib, x, n: x[:, -n - 1 :],
    "[:, ::n+1]": lambda lib, x, n: x[:, :: n + 1],
    "[:, ::-n-1]": lambda lib, x, n: x[:, :: -n - 1],
    "[:, n:3:2]": lambda lib, x, n: x[:, n:3:2],
    "[n, 1:, n]": lambda lib, x, n: x[n, 1:, n],
    "[0, n, newaxis]": lambda lib, x, n: x[0, n, lib.newaxis],
    "[n, newaxis('A')]": lambda lib, x, n: x[n, lib.newaxis("A")],
    "[n] of uint8": lambda lib, x, n: x[lib.fn.cast(n, dtype=lib.types.UINT8)],
    "[n] of int64": lambda lib, x, n: x[lib.fn.cast(n, dtype=lib.types.INT64)],
    "[n // 2]": lambda lib, x, n: x[n // 2],
    "[shape]": lambda lib, x, n: x[x.shape()[0] - 1],
    "[:shape // 2]": lambda lib, x, n: x[:, : x.shape()[1] // 2],
}


def agree(inputs: list[Given], cases: dict[str, Expression]) -> None:
    wanted = evaluate("nvidia.dali", inputs, cases)
    found = evaluate("torchdali", inputs, cases)
    for name in cases:
        try:
            compare([found[name]], [wanted[name]])
        except AssertionError as error:
            raise AssertionError(
                f"{name}: {error}: {found[name]} instead of {wanted[name]}"
            ) from None


@pytest.mark.parametrize("layout", [None, "HWC"])
def test_constant_indices(layout: str | None) -> None:
    agree([given(HWC, HWC + 100, layout=layout)], CONSTANT)


def test_constant_indices_of_ragged_batches() -> None:
    safe = {k: e for k, e in CONSTANT.items() if k not in ("[1, 2, 3]", "[0][1][2]")}
    other = np.arange(90, dtype=np.int32).reshape(3, 5, 6)
    agree([given(HWC, other, HWC[:, ::-1].copy(), layout="HWC")], safe)


def test_named_axes() -> None:
    agree([given(HWC, HWC + 100, layout="HWC")], NAMED)


def test_scalars() -> None:
    agree([given(SCALAR, np.int32(4))], OF_SCALAR)


@pytest.mark.parametrize("layout", [None, "HWC"])
def test_indices_per_sample(layout: str | None) -> None:
    cases = {name: case for name, case in PER_SAMPLE.items() if layout or "'A'" not in name}
    agree([given(HWC, HWC + 100, layout=layout), given(np.int32(0), np.int32(1))], cases)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "uint16", "uint32", "uint64", "float16", "float64"]
)
def test_types(dtype: str) -> None:
    names = ("[1]", "[:, 1:3]", "[:, ::-1]", "[::2]", "[newaxis]")
    agree([given(HWC.astype(dtype))], {name: CONSTANT[name] for name in names})


X, FLOATS, BOOLS = (
    given(HWC, layout="HWC"),
    given(np.float32([1, 2])),
    given(np.array([True, False])),
)
HALVES = given(np.float16([1, 2]))
ERRORS: dict[str, tuple[list[Given], Expression]] = {
    "out of range": ([X], lambda lib, x: x[5]),
    "negative out of range": ([X], lambda lib, x: x[-3]),
    "out of an empty axis": ([given(np.zeros((0, 3), np.int32))], lambda lib, x: x[0]),
    "too many elements": ([X], lambda lib, x: x[0, 0, 0, 0]),
    "too many ranges": ([X], lambda lib, x: x[:, :, :, :]),
    "step of 0": ([X], lambda lib, x: x[::0]),
    "float": ([X], lambda lib, x: x[1.5]),
    "str": ([X], lambda lib, x: x["a"]),
    "list": ([X], lambda lib, x: x[[0, 1]]),
    "scalar": ([given(SCALAR)], lambda lib, x: x[0]),
    "range of a scalar": ([given(SCALAR)], lambda lib, x: x[:]),
    "some names": ([X], lambda lib, x: x[lib.newaxis("A"), lib.newaxis]),
    "long name": ([X], lambda lib, x: x[lib.newaxis("AB")]),
    "empty name": ([X], lambda lib, x: x[lib.newaxis("")]),
    "number as name": ([X], lambda lib, x: x[lib.newaxis(5)]),
    "name without layout": ([given(HWC)], lambda lib, x: x[lib.newaxis("A")]),
    "node out of range": ([X, given(np.int32(9))], lambda lib, x, n: x[n]),
    "node of floats": ([X, given(np.float32(1))], lambda lib, x, n: x[n]),
    "node of bools": ([X, given(np.array(True))], lambda lib, x, n: x[n]),
    "large int": ([X], lambda lib, x: x + 2**31),
    "large uint8": ([X], lambda lib, x: x + lib.types.Constant(300).uint8()),
    "negative uint8": ([X], lambda lib, x: x + lib.types.Constant(-1).uint8()),
    "None": ([X], lambda lib, x: x + None),
    "equal to None": ([X], lambda lib, x: x == None),  # noqa: E711
    "a string": ([X], lambda lib, x: x + "x"),
    "complex": ([X], lambda lib, x: x + 1j),
    "nested list": ([X], lambda lib, x: x + [[1, 2]]),  # noqa: RUF005
    "array first": ([X], lambda lib, x: np.ones(4, np.int32) + x),
    "two scalar constants": ([X], lambda lib, x: lib.types.Constant(1) + lib.types.Constant(2)),
    "minus a scalar constant": ([X], lambda lib, x: -lib.types.Constant(1)),
    "bool + bool": ([BOOLS], lambda lib, x: x + x),
    "bool - True": ([BOOLS], lambda lib, x: x - True),
    "bool / bool": ([BOOLS], lambda lib, x: x / x),
    "bool // bool": ([BOOLS], lambda lib, x: x // x),
    "bool % bool": ([BOOLS], lambda lib, x: x % x),
    "bool ** bool": ([BOOLS], lambda lib, x: x**x),
    "-bool": ([BOOLS], lambda lib, x: -x),
    "abs(bool)": ([BOOLS], lambda lib, x: abs(x)),
    "min of bools": ([BOOLS], lambda lib, x: lib.math.min(x, x)),
    "clamp of bools": ([BOOLS], lambda lib, x: lib.math.clamp(x, False, True)),
    "atan2 of bools": ([BOOLS], lambda lib, x: lib.math.atan2(x, x)),
    "sqrt of bools": ([BOOLS], lambda lib, x: lib.math.sqrt(x)),
    "float & int": ([FLOATS], lambda lib, x: x & 1),
    "float | float": ([FLOATS], lambda lib, x: x | x),
    "~float": ([FLOATS], lambda lib, x: ~x),
    "float << int": ([FLOATS], lambda lib, x: x << 1),
    "half + half": ([HALVES], lambda lib, x: x + x),
    "half * 2": ([HALVES], lambda lib, x: x * 2),
    "-half": ([HALVES], lambda lib, x: -x),
    "half < half": ([HALVES], lambda lib, x: x < x),
    "sqrt of halves": ([HALVES], lambda lib, x: lib.math.sqrt(x)),
    "int + half constant": ([X], lambda lib, x: x + lib.types.Constant(1).float16()),
    "int // 0": ([X], lambda lib, x: x // 0),
    "int % 0": ([X], lambda lib, x: x % 0),
    "int // zeros": ([X, given(np.zeros(4, np.int32))], lambda lib, x, y: x // y),
    "uint64 // zeros": ([given(np.ones(2, np.uint64)), given(np.zeros(2, np.uint64))], lambda lib, x, y: x // y),
    "shapes": ([X, FLOATS], lambda lib, x, y: x + y),
    "layouts": ([X, given(HWC, layout="ABC")], lambda lib, x, y: x + y),
    "layouts of three": ([X, given(HWC, layout="ABC")], lambda lib, x, y: lib.math.clamp(1, x, y)),
    "sqrt of a number": ([X], lambda lib, x: lib.math.sqrt(4.0)),
    "sqrt of a constant": ([X], lambda lib, x: lib.math.sqrt(lib.types.Constant(4))),
    "max of numbers": ([X], lambda lib, x: lib.math.max(1, 2)),
    "divmod": ([X], lambda lib, x: divmod(x, 2)),
    "matrix product": ([X], lambda lib, x: x @ x),
    "round": ([X], lambda lib, x: round(x)),
}  # fmt: skip
CLASSES = (ValueError, TypeError, OverflowError, NotImplementedError, IndexError, RuntimeError)


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    inputs, expression = ERRORS[name]
    wanted = failure("nvidia.dali", inputs, expression)
    found = failure("torchdali", inputs, expression)
    assert wanted is not None
    assert found is not None, f"DALI raises {wanted!r}"
    kind = next(k for k in CLASSES if isinstance(wanted, k))
    assert isinstance(found, kind), f"{found!r} instead of {wanted!r}"


def test_half_precision_can_be_passed_on() -> None:
    agree([HALVES], {"+half": lambda lib, x: +x})


def test_functions_of_numpy_are_refused() -> None:
    error = failure("torchdali", [FLOATS], lambda lib, x: np.sqrt(x))
    assert isinstance(error, TypeError)
    assert "torchdali.math" in str(error)
