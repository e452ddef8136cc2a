"""Constants, conversion, copies and permutations against the real DALI."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.check import PerSample, check
from tests.helpers.both import agree

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "cast": "dtype may also be a torch or NumPy type, which DALI refuses",
    "constant": "also makes float64, which DALI refuses",
    "full": "without a shape and of an input with a layout it is 0D; DALI fails with an internal error",
    "zeros, ones, full": "a shape given per sample may have any type; DALI wants int32",
}
F = np.float32

AWKWARD = [0.5, -0.5, 1.5, 2.5, -2.5, 254.5, 300.0, -3.0, 1e10, -1e10, 0.3, np.inf, -np.inf, np.nan]
INTEGERS = ["UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "UINT64", "INT64"]
DTYPES = ["BOOL", *INTEGERS, "FLOAT16", "FLOAT", "FLOAT64"]
GIVEN = {
    "float32": [np.array(AWKWARD, F), np.array(AWKWARD[:7], F).reshape(7, 1)[:, 0]],
    "int64": [np.array([-1, 0, 1, 127, 128, 300, 70000, 2**40, -(2**40)]), np.array([5])],
    "uint8": [np.arange(0, 256, 5, dtype=np.uint8), np.array([], np.uint8)],
    "bool": [np.array([True, False]), np.array([True])],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("layout", [None, "X"])
def test_cast(given: str, dtype: str, layout: str | None) -> None:
    check("cast", [GIVEN[given]], {"dtype": f"types.{dtype}"}, layout)


@pytest.mark.parametrize("other", ["uint8", "int16", "float32"])
@pytest.mark.parametrize("layouts", [(None, None), ("X", "Y"), ("X", None)])
def test_cast_like(other: str, layouts: tuple[str | None, ...]) -> None:
    others = [np.zeros(3, other), np.zeros(1, other)]
    check("cast_like", [GIVEN["float32"], others], layouts=list(layouts))


PICTURES = {
    "uint8 HWC": ([np.full((2, 3, 1), 7, np.uint8), np.full((1, 2, 1), 9, np.uint8)], "HWC"),
    "float32 HW": ([np.full((2, 3), 0.5, F), np.full((4, 1), -1.5, F)], "HW"),
    "int16": ([np.arange(3, dtype=np.int16), np.arange(4, dtype=np.int16)], None),
    "bool 0D": ([np.array(True), np.array(False)], None),
}
SAME_FORM = [
    ("copy", {}),
    ("zeros_like", {}),
    ("ones_like", {}),
    ("zeros_like", {"dtype": "types.FLOAT"}),
    ("ones_like", {"dtype": "types.UINT8"}),
    ("permute_batch", {"indices": [1, 0]}),
    ("permute_batch", {"indices": [1, 1]}),
    ("permute_batch", {"indices": PerSample([1, 0])}),
]


@pytest.mark.parametrize(("name", "arguments"), SAME_FORM, ids=str)
@pytest.mark.parametrize("kind", PICTURES)
def test_operators_on_any_data(name: str, arguments: dict[str, Any], kind: str) -> None:
    samples, layout = PICTURES[kind]
    if name == "permute_batch":  # `check` also tries a batch of one, which has no second sample
        agree(lambda lib: _permuted(lib, samples, layout, arguments))
    else:
        check(name, [samples], arguments, layout)


def _permuted(lib: Any, samples: Any, layout: str | None, arguments: dict[str, Any]) -> Any:
    indices = arguments["indices"]
    given = lib.source(np.int32(indices)) if isinstance(indices, PerSample) else indices
    return lib.fn.permute_batch(lib.source(samples, layout), indices=given)


FILLS = {
    "number": 7,
    "float": 2.5,
    "row": np.array([5, 6, 7], np.int16),
    "lower": np.array([[-3]], np.int32),
}


LIKE = {
    "uint8 HW": ([np.zeros((2, 3), np.uint8), np.zeros((4, 3), np.uint8)], "HW"),
    "float32": ([np.zeros((5, 2, 3), F), np.zeros((1, 2, 3), F)], None),
    "bool X": ([np.zeros(3, bool), np.zeros(3, bool)], "X"),
}


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("kind", LIKE)
def test_full_like(kind: str, fill: str) -> None:
    samples, layout = LIKE[kind]
    agree(lambda lib: lib.fn.full_like(lib.source(samples, layout), FILLS[fill]))


def case(text: str) -> Any:
    """Return a definition from its text: what stands after ``fn.``; ``S`` makes a source."""

    def define(lib: Any) -> Any:
        names = {"fn": lib.fn, "types": lib.types, "S": lib.source, "np": np, "F": F}
        return eval(f"fn.{text}", names)

    return define


CALLS = [
    "constant(idata=[1, 2, 3])",
    "constant(idata=[1, 2, 3], dtype=types.FLOAT)",
    "constant(fdata=[1.5, 2.5, 3])",
    "constant(fdata=[1.5, 2.5, 300], dtype=types.UINT8)",
    "constant(fdata=[0.3, 0.0, 300], dtype=types.BOOL)",
    "constant(idata=[0, 1, 300], dtype=types.BOOL)",
    "constant(idata=[-1, 1, 300], dtype=types.UINT8)",
    "constant(idata=[2**40], dtype=types.INT64)",
    "constant(idata=[2**40])",
    "constant(idata=[2], dtype=types.FLOAT16)",
    "constant(idata=[1, 2, 3, 4], shape=[2, 2], layout='HW')",
    "constant(idata=[1], shape=[])",
    "constant(idata=[1], shape=[2, 2])",
    "constant(idata=3)",
    "constant(fdata=[1.5], dtype=types.INT64)",
    "constant(idata=[2], fdata=[1.0])",
    "constant()",
    "constant(idata=[1, 2, 3], shape=[2, 2])",
    "constant(idata=[1, 2, 3, 4], shape=[2, 2], layout='HWC')",
    "zeros(shape=[2, 3])",
    "zeros()",
    "zeros(shape=4)",
    "zeros(shape=[])",
    "zeros(shape=[2, 3], layout='HW', dtype=types.FLOAT)",
    "zeros(shape=[2, 3], layout='H')",
    "zeros(shape=[2, -3])",
    "zeros(shape=S(np.int32([[2, 3], [1, 2]])), layout='HW')",
    "zeros(shape=S(np.int32([2, 3])))",
    "zeros(shape=[2], dtype=types.BOOL)",
    "ones(shape=[2], dtype=types.FLOAT16)",
    "ones(shape=[2], dtype=types.UINT64)",
    "ones(shape=[2], dtype=types.FLOAT64)",
    "ones(shape=S(np.int32([[2, 3], [1, 2]])), dtype=types.UINT8)",
    "ones(shape=[2, 3], layout='HWC')",
    "full(7)",
    "full(7, shape=[2])",
    "full(1.5, shape=[2, 2], layout='HW')",
    "full(np.int32([1, 2, 3]), shape=[2, 3])",
    "full(np.int32([[1, 2, 3]]), shape=[3])",
    "full(np.int32([1, 2, 3]), shape=[3, 2])",
    "full(S(np.uint8([3, 4])), shape=[2])",
    "full(S(np.uint8([[3], [4]]), 'X'), shape=[2, 2])",
    "full(S(F([[1, 2], [3, 4]])))",
    "full(5, shape=S(np.int32([[2, 3], [1, 2]])))",
    "full(5, shape=[2], layout='HW')",
    "zeros_like(np.array([1, 2, 3]))",
    "ones_like(1.5)",
    "full_like(S(F([[1, 2], [3, 4]])), np.int32([1, 2, 3]))",
    "cast(S(F([1.5, 2.5])))",
    "cast(S(F([1.5, 2.5])), dtype=None)",
    "cast_like(S(F([1.5, 2.5])), np.uint8(1))",
    "cast_like(S(F([1.5, 2.5])), 1)",
    "cast_like(S(F([1.5, 2.5])))",
    "copy()",
    "permute_batch(S(F([1.5, 2.5])), indices=[1])",
    "permute_batch(S(F([1.5, 2.5])), indices=[1, 0, 1])",
    "permute_batch(S(F([1.5, 2.5])), indices=[1, 2])",
    "permute_batch(S(F([1.5, 2.5])), indices=[1, -1])",
    "permute_batch(S(F([1.5, 2.5])))",
    "permute_batch(S(F([1.5, 2.5])), indices=S(np.int32([[1], [0]])))",
    "permute_batch(S(F([1.5, 2.5])), indices=S(np.int32([[1, 0], [0, 1]])))",
    "get_property(S(F([[1], [2]]), 'X'), key='layout')",
    "get_property(S(F([[1], [2]])), key='layout')",
    "get_property(S(F([[1], [2]])), key='source_info')",
    "get_property(S(F([[1], [2]])), key='other')",
    "get_property(S(F([[1], [2]])))",
    "copy(S(F([[1], [2]]), 'X')).shape()",
    "copy(S(F([1, 2]))).shape()",
    *[f"copy(S(F([[1], [2]]))).shape(dtype=types.{kind})" for kind in DTYPES],
]


@pytest.mark.parametrize("text", CALLS)
def test_calls_agree(text: str) -> None:
    agree(case(text))
