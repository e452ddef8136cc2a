"""Random operators: reproducible, independent of batch size and of other draws, and in range; dtypes, shapes, layouts and errors match the real DALI's.

DALI's random streams cannot be reproduced, so samples of both are compared by their distributions.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from tests.check import PerSample, check
from tests.helpers.libraries import agree, batches, outcome
from torchdali import fn, pipeline_def, types
from torchdali.rng import BatchRng
from torchdali.tensors import TensorList

KINDS = ["uniform", "normal", "coin_flip", "beta"]


def implementation(name: str) -> Any:
    return getattr(fn.random, name).implementation


def rng(records: list[int], seed: int = 3) -> BatchRng:
    return BatchRng(seed, [0] * len(records), records)


def like(*shapes: tuple[int, ...]) -> TensorList:
    return TensorList.from_samples([torch.zeros(shape) for shape in shapes])


def run(define: Any, runs: int = 1, **settings: Any) -> list[np.ndarray]:
    """Return the first output of some runs, as one array each."""
    return [
        np.stack(outputs[0].samples) for outputs in batches("torchdali", define, runs, **settings)
    ]


@pytest.mark.parametrize("name", KINDS)
def test_the_seed_decides(name: str) -> None:
    def define(lib: Any) -> Any:
        return getattr(lib.fn.random, name)(shape=[50])

    one, two = run(define, 2, seed=5)
    again = run(define, 2, seed=5)
    assert np.array_equal(one, again[0]) and np.array_equal(two, again[1])
    assert not np.array_equal(one, two), "the second batch repeats the first"
    assert not np.array_equal(one, run(define, seed=6)[0])


@pytest.mark.parametrize("name", KINDS)
def test_two_operators_draw_different_numbers(name: str) -> None:
    def define(lib: Any) -> Any:
        make = getattr(lib.fn.random, name)
        return make(shape=[50]), make(shape=[50])

    ((one, two),) = batches("torchdali", define, seed=5)
    assert not np.array_equal(one.samples, two.samples)


@pytest.mark.parametrize("name", KINDS)
def test_an_explicit_seed_overrides_the_pipelines(name: str) -> None:
    def define(lib: Any) -> Any:
        make = getattr(lib.fn.random, name)
        return make(shape=[50], seed=9), make(shape=[50], seed=9), make(shape=[50])

    (one, two, three), (other, *_) = (batches("torchdali", define, seed=s)[0] for s in (1, 2))
    assert np.array_equal(one.samples, two.samples) and np.array_equal(one.samples, other.samples)
    assert not np.array_equal(one.samples, three.samples)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("count", [6, 5000])
def test_a_sample_draws_the_same_in_any_batch(name: str, count: int) -> None:
    alone = implementation(name)(like((count,)), rng=rng([4]))[0]
    among = implementation(name)(like((3, 2), (count,), (9000,)), rng=rng([2, 4, 6]))[1]
    assert torch.equal(alone, among)


@pytest.mark.parametrize("name", ["uniform", "normal", "coin_flip"])
def test_the_first_numbers_do_not_depend_on_the_shape(name: str) -> None:
    short, long = (implementation(name)(shape=[count], rng=rng([7, 8])) for count in (5, 32))
    assert torch.equal(short, long[:, :5])


@pytest.mark.parametrize("batch_size", [1, 4, 5])
def test_records_keep_their_numbers_for_any_batch_size(tmp_path: Any, batch_size: int) -> None:
    files = [tmp_path / f"{i}.bin" for i in range(10)]
    for file in files:
        file.write_bytes(b"x")

    def define(lib: Any) -> Any:
        _, label = lib.fn.readers.file(files=[str(f) for f in files])
        return lib.fn.random.uniform(), label

    def by_record(size: int, runs: int) -> dict[int, float]:
        rows = batches("torchdali", define, runs, batch_size=size, seed=1)
        pairs = [
            (int(k.item()), float(v))
            for u, label in rows
            for v, k in zip(u.samples, label.samples, strict=True)
        ]
        return dict(pairs[:10])

    assert by_record(batch_size, 10) == by_record(10, 1)


@pytest.mark.parametrize("high", [1.0, 1e-30, 3.0, 16777216.0])
def test_the_end_of_a_range_is_never_drawn(high: float) -> None:
    class Greatest(BatchRng):
        def uniform(self, count: int) -> Any:
            return np.full((self.size, count), 1.0 - 2.0**-32)

    for dtype in (torch.float32, torch.float64):
        drawn = fn.random.uniform.implementation(range=[0.0, high], dtype=dtype, rng=Greatest(1, [0], [0]))
        assert drawn.dtype == dtype and drawn.item() < torch.tensor(high, dtype=dtype).item()


@pytest.mark.parametrize(
    ("dtype", "given", "least", "greatest"),
    [
        (torch.uint8, [-1.0, 1.0], 1, 255),  # the ends wrap before anything is drawn
        (torch.uint8, [0.0, 300.0], 0, 44),
        (torch.int8, [0.0, 300.0], 0, 44),
        (torch.int32, [0.6, 1.6], 0, 1),
        (torch.int32, [-2.9, 2.9], -2, 2),
        (torch.int64, [0.0, 2.0**40], 0, 2**40),
    ],
)
def test_integer_ranges(dtype: torch.dtype, given: list[float], least: int, greatest: int) -> None:
    drawn = fn.random.uniform.implementation(range=given, dtype=dtype, shape=[4000], rng=rng([0]))
    low, high = drawn.min().item(), drawn.max().item()
    assert least <= low <= least + (greatest - least) / 50
    assert greatest - (greatest - least) / 50 <= high <= greatest


def test_constant_fields_of_noise_are_uncorrelated() -> None:
    fields = fn.random.normal.implementation(shape=[100, 100], rng=rng([0, 1]))
    one, two = (field.double() for field in fields)
    shifted = (one[:, 1:] * one[:, :-1]).mean()
    assert max(abs((one * two).mean()), abs(shifted), abs(one.mean()), abs(one.std() - 1)) < 0.05


def test_a_permutation_has_each_index_once() -> None:
    for size in range(1, 30):
        records = list(range(100, 100 + size))
        assert sorted(fn.batch_permutation.implementation(rng=rng(records)).tolist()) == list(range(size))
        moved = fn.batch_permutation.implementation(no_fixed_points=True, rng=rng(records)).tolist()
        assert sorted(moved) == list(range(size))
        assert size == 1 or all(i != k for i, k in enumerate(moved))


def test_a_permutation_of_repeated_records_is_one() -> None:
    repeated = fn.batch_permutation.implementation(no_fixed_points=True, rng=rng([5] * 6)).tolist()
    assert sorted(repeated) == list(range(6)) and all(i != k for i, k in enumerate(repeated))


def test_choice_draws_rows_that_exist() -> None:
    table = torch.arange(12).reshape(6, 2)
    drawn = fn.random.choice.implementation(TensorList.from_samples([table]), shape=[3, 4], rng=rng([0]))
    assert drawn.shape() == [(3, 4, 2)]
    assert all(row in table.tolist() for row in drawn[0].torch().reshape(-1, 2).tolist())


def test_calls_on_tensors_run_immediately() -> None:
    drawn = fn.random.uniform(torch.zeros(2, 3), range=[5.0, 6.0])
    assert drawn.shape == (2, 3) and ((drawn >= 5) & (drawn < 6)).all()
    assert torch.equal(
        fn.random.normal(torch.zeros(9), seed=1), fn.random.normal(torch.zeros(9), seed=1)
    )


def test_on_a_device() -> None:
    @pipeline_def(batch_size=3, num_threads=1, device_id="cpu", seed=1)
    def define() -> Any:
        return fn.random.uniform(device="gpu", shape=[4]), fn.random.coin_flip(
            device="gpu", dtype=types.BOOL
        )

    pipe = define()
    numbers, flips = pipe.run()
    assert numbers.shape() == [(4,)] * 3 and flips.dtype == types.BOOL
    pipe.close()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fn.random.uniform.implementation(values=[], rng=rng([0])), "values must not be empty"),
        (lambda: fn.random.uniform.implementation(range=[1.0, 0.0], rng=rng([0])), "low < high"),
        (lambda: fn.random.normal.implementation(dtype=torch.bool, rng=rng([0])), "type bool isn't supported"),
        (lambda: fn.random.beta.implementation(alpha=0.0, rng=rng([0])), "`alpha` must be a positive"),
        (lambda: fn.random.beta.implementation(beta=float("inf"), rng=rng([0])), "`beta` must be a positive"),
        (
            lambda: fn.random.coin_flip.implementation(like((1,)), shape=[1], rng=rng([0])),
            "not both",
        ),
        (lambda: fn.random.choice(torch.tensor(2), p=[0.5, 0.4]), "add up to 1, got 0.9"),
    ],
)
def test_errors_describe_the_cause(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call()


# --------------------------------------------------------- compared with the real DALI


EXCEPTIONS = {
    "random.*": "random numbers differ; distributions, types, shapes and layouts are compared",
    "random.uniform": "`values=[]` raises RuntimeError; DALI's process ends (SIGFPE)",
    "random.normal": "per-sample arguments may have any dtype and one element; DALI requires float32 scalars",
}
COUNTS = [4_000, 20_000]  # few numbers per sample are drawn with the batch, many separately
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
    """Return True if two samples may have one distribution; wrong by chance once in 10**6 times."""
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
    """Compare shapes, dtypes and layouts, but not the numbers; or the class of the error."""
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


@pytest.mark.golden
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["uniform", "normal", "coin_flip", "beta"])
def test_shapes_and_layouts(name: str, form: str) -> None:
    same_form(lambda lib: FORMS[form](lib, getattr(lib.fn.random, name)))


@pytest.mark.golden
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


@pytest.mark.golden
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


@pytest.mark.golden
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


@pytest.mark.golden
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
