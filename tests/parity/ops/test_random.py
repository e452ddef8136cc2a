"""Random operators against the real DALI: distributions, types, shapes, layouts, errors.

Its streams of numbers cannot be reproduced, so that samples of both are compared by their distributions.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.check import PerSample, check
from tests.helpers.both import agree, batches, outcome

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "random.*": "the streams of numbers differ; distributions, types, shapes and layouts are compared",
    "random.uniform": "values=[] is a RuntimeError here; DALI ends the process (SIGFPE)",
    "random.normal": "arguments given per sample may have any type and one element; DALI wants float32 scalars",
}
COUNTS = [4_000, 20_000]  # few numbers of a sample are drawn with those of the batch, many apart
NUMBERS = ["UINT8", "INT8", "UINT16", "INT16", "INT32", "UINT32", "INT64", "FLOAT", "FLOAT64"]

Array = npt.NDArray[Any]


def draws(
    library: str, name: str, arguments: dict[str, Any], count: int, inputs: Any = ()
) -> Array:
    """Return numbers of two samples, ``(2, count)``."""

    def define(lib: Any) -> Any:
        made = {k: _value(lib, v) for k, v in arguments.items()}
        return getattr(lib.fn.random, name)(
            *[_value(lib, v) for v in inputs], **made, shape=[count]
        )

    (output,) = batches(library, define)[0]
    return np.stack(output.samples)


def _value(lib: Any, value: Any) -> Any:
    if isinstance(value, PerSample):
        return lib.source(
            [np.asarray(v, np.asarray(v).dtype.char.replace("d", "f")) for v in value]
        )
    if isinstance(value, str) and value.startswith("types."):
        return getattr(lib.types, value.removeprefix("types."))
    return value


def distance(one: Array, other: Array) -> float:
    """Return the largest difference of two empirical distribution functions (Kolmogorov, Smirnov)."""
    places = np.unique(np.concatenate([one, other]))
    shares = [np.searchsorted(np.sort(x), places, side="right") / x.size for x in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


DISTRIBUTIONS = [
    *[("uniform", {"dtype": f"types.{kind}"}) for kind in NUMBERS],
    *[("uniform", {"range": [0.0, 3.0], "dtype": f"types.{kind}"}) for kind in NUMBERS],
    ("uniform", {"range": [-10.0, 10.0], "dtype": "types.UINT8"}),
    ("uniform", {"range": [0.0, 300.0], "dtype": "types.UINT8"}),
    ("uniform", {"range": [-0.6, 1.6], "dtype": "types.INT32"}),
    ("uniform", {"range": [5.0, 5.5]}),
    ("uniform", {"range": PerSample([[0.0, 1.0], [10.0, 11.0]])}),
    ("uniform", {"values": [1.5, 3.0, -2.0, 1.5]}),
    ("uniform", {"values": [1.6, 300.0, -3.0], "dtype": "types.UINT8"}),
    ("uniform", {"values": PerSample([[0.0, 1.0], [10.0, 11.0, 12.0]])}),
    *[("normal", {"dtype": f"types.{kind}"}) for kind in NUMBERS],
    ("normal", {"mean": 100.0, "stddev": 60.0, "dtype": "types.UINT8"}),
    ("normal", {"mean": PerSample([3.0, -3.0]), "stddev": PerSample([0.5, 4.0])}),
    ("normal", {"stddev": -2.0}),
    *[("coin_flip", {"dtype": f"types.{kind}"}) for kind in ("BOOL", "UINT8", "INT32")],
    ("coin_flip", {"probability": 0.2}),
    ("coin_flip", {"probability": PerSample([0.1, 0.9])}),
    ("coin_flip", {"probability": 1.5}),
    ("coin_flip", {"probability": -1.0}),
    ("beta", {}),
    ("beta", {"alpha": 2.0, "beta": 5.0}),
    ("beta", {"alpha": 0.2, "beta": 0.2}),
    ("beta", {"alpha": 0.5, "dtype": "types.FLOAT64"}),
    ("beta", {"beta": 30.0}),
    ("beta", {"alpha": PerSample([1.0, 20.0]), "beta": PerSample([20.0, 1.0])}),
]


def alike(one: Array, other: Array) -> bool:
    """Return True if two samples may be of one distribution; wrong by chance once in 10**6 times."""
    return distance(one, other) < 2.7 * np.sqrt(2 / one.size)


@pytest.mark.parity  # many draws
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(("name", "arguments"), DISTRIBUTIONS, ids=str)
def test_distributions(name: str, arguments: dict[str, Any], count: int) -> None:
    found, wanted = (
        draws(library, name, arguments, count) for library in ("torchdali", "nvidia.dali")
    )
    assert found.dtype == wanted.dtype
    assert all(map(alike, found, wanted))


CHOICES = [
    (5, {}),
    (np.uint8(7), {}),
    ([10, 20, 30], {}),
    (np.array([0.5, 1.5], np.float32), {}),
    (np.array([True, False]), {}),
    (4, {"p": [0.1, 0.2, 0.3, 0.4]}),
    ([7, 8, 9], {"p": [0.0, 0.5, 0.5]}),
    (PerSample([np.int64(3), np.int64(6)]), {}),
    (PerSample([np.array([1, 2], np.int16), np.array([3], np.int16)]), {}),
    (3, {"p": PerSample([np.float32([0, 0, 1]), np.float32([0.5, 0.5, 0])])}),
]


@pytest.mark.parity  # many draws
@pytest.mark.parametrize(("elements", "arguments"), CHOICES, ids=str)
def test_distributions_of_choice(elements: Any, arguments: dict[str, Any]) -> None:
    found, wanted = (
        draws(library, "choice", arguments, 20_000, [elements])
        for library in ("torchdali", "nvidia.dali")
    )
    assert found.dtype == wanted.dtype
    for ours, theirs in zip(found.astype(float), wanted.astype(float), strict=True):
        assert set(ours) == set(theirs) and alike(ours, theirs)


LIKE = [np.zeros((2, 3), np.uint8), np.zeros((3, 1), np.uint8)]
TABLE = [np.arange(6, dtype=np.int16).reshape(3, 2), np.arange(8, dtype=np.int16).reshape(4, 2)]
FORMS = {
    "alone": lambda lib, make: make(),
    "shape": lambda lib, make: make(shape=[2, 3]),
    "shape of one": lambda lib, make: make(shape=4),
    "no dimensions": lambda lib, make: make(shape=[]),
    "nothing": lambda lib, make: make(shape=[0]),
    "shape per sample": lambda lib, make: make(shape=lib.source(np.int32([[2, 1], [3, 1]]))),
    "extent per sample": lambda lib, make: make(shape=lib.source(np.int32([2, 3]))),
    "like": lambda lib, make: make(lib.source(LIKE)),
    "like with a layout": lambda lib, make: make(lib.source(LIKE, "HW")),
    "like a constant": lambda lib, make: make(np.zeros((1, 2), np.float32)),
    "like and shape": lambda lib, make: make(lib.source(LIKE), shape=[2]),
    "negative": lambda lib, make: make(shape=[2, -1]),
}
TYPES = ["BOOL", *NUMBERS, "UINT64", "FLOAT16"]


def same_form(define: Any) -> None:
    """Compare all but the numbers: shapes, types, layouts; or the class of the error."""
    found, wanted = outcome("torchdali", define), outcome("nvidia.dali", define)
    if isinstance(wanted, type):
        assert found is wanted
        return
    assert not isinstance(found, type), found
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.layout == theirs.layout
        assert [(s.shape, s.dtype) for s in ours.samples] == [
            (s.shape, s.dtype) for s in theirs.samples
        ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["uniform", "normal", "coin_flip", "beta"])
def test_shapes_and_layouts(name: str, form: str) -> None:
    same_form(lambda lib: FORMS[form](lib, getattr(lib.fn.random, name)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["number", "row", "table"])
def test_shapes_and_layouts_of_choice(kind: str, form: str) -> None:
    def define(lib: Any) -> Any:
        elements = {
            "number": lambda: 5,
            "row": lambda: lib.source([np.uint8([1, 2]), np.uint8([3])], "X"),
            "table": lambda: lib.source(TABLE, "AB"),
        }[kind]()
        return FORMS[form](
            lib, lambda *like, **shape: lib.fn.random.choice(elements, *like, **shape)
        )

    same_form(define)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ["uniform", "normal", "coin_flip", "beta"])
def test_element_types(name: str, kind: str) -> None:
    same_form(lambda lib: getattr(lib.fn.random, name)(dtype=getattr(lib.types, kind), shape=[3]))


ERRORS = {
    "empty range": lambda lib: lib.fn.random.uniform(range=[2.0, 2.0]),
    "reversed range": lambda lib: lib.fn.random.uniform(range=[2.0, 1.0]),
    "one end": lambda lib: lib.fn.random.uniform(range=[2.0]),
    "three ends": lambda lib: lib.fn.random.uniform(range=[1.0, 2.0, 3.0]),
    "unknown argument": lambda lib: lib.fn.random.uniform(rnage=[1.0, 2.0]),
    "seed is a node": lambda lib: lib.fn.random.uniform(seed=lib.fn.random.uniform()),
    "alpha 0": lambda lib: lib.fn.random.beta(alpha=0.0),
    "beta negative": lambda lib: lib.fn.random.beta(beta=-1.0),
    "choice of nothing": lambda lib: lib.fn.random.choice(0),
    "choice below a float": lambda lib: lib.fn.random.choice(3.5),
    "choice of an empty sample": lambda lib: lib.fn.random.choice(lib.source([np.int32([])] * 2)),
    "p too large": lambda lib: lib.fn.random.choice(2, p=[0.0, 2.0]),
    "p negative": lambda lib: lib.fn.random.choice(3, p=[1.0, 1.0, -1.0]),
    "p sums to less": lambda lib: lib.fn.random.choice(2, p=[0.5, 0.4]),
    "p of another length": lambda lib: lib.fn.random.choice(3, p=[0.5, 0.5]),
    "choice without input": lambda lib: lib.fn.random.choice(),
    "choice has no dtype": lambda lib: lib.fn.random.choice(3, dtype=lib.types.UINT8),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    assert isinstance(agree(ERRORS[case]), type), "nothing was raised"


CERTAIN = [
    ("random.normal", [], {"mean": PerSample([2.5, -2.5]), "stddev": 0.0, "dtype": "types.INT32"}),
    ("random.normal", [LIKE], {"mean": 300.0, "stddev": 0.0, "dtype": "types.UINT8"}),
    ("random.uniform", [LIKE], {"values": [2.5], "dtype": "types.INT16"}),
    ("random.coin_flip", [LIKE], {"probability": 1.0}),
    ("random.coin_flip", [LIKE], {"probability": PerSample([0.0, 1.0]), "dtype": "types.BOOL"}),
    (
        "random.choice",
        [TABLE, LIKE],
        {"p": PerSample([np.float32([0, 1, 0]), np.float32([0, 0, 0, 1])])},
    ),
    ("random.choice", [[np.int64(1), np.int64(1)]], {"shape": [3]}),
]


@pytest.mark.parametrize(("name", "inputs", "arguments"), CERTAIN, ids=str)
def test_what_is_certain_is_equal(name: str, inputs: Any, arguments: dict[str, Any]) -> None:
    check(name, inputs, arguments)


PERMUTATIONS = [
    {},
    {"no_fixed_points": True},
    {"allow_repetitions": True},
    {"allow_repetitions": True, "no_fixed_points": True},
]


@pytest.mark.parity  # many draws
@pytest.mark.parametrize("arguments", PERMUTATIONS, ids=str)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_batch_permutations(arguments: dict[str, bool], size: int) -> None:
    runs = 1500
    found, wanted = (
        Counter(
            tuple(int(sample) for sample in outputs[0].samples)
            for outputs in batches(
                library, lambda lib: lib.fn.batch_permutation(**arguments), runs, batch_size=size
            )
        )
        for library in ("torchdali", "nvidia.dali")
    )
    kinds = found.keys() | wanted.keys()
    if len(kinds) <= 81:  # with 256 some are missing by chance
        assert found.keys() == wanted.keys()
    expected = runs / len(kinds)
    chi_square = sum((found[kind] - expected) ** 2 / expected for kind in kinds)
    assert chi_square <= len(kinds) + 5 * np.sqrt(2 * len(kinds))
