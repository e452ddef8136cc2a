"""Random operators: reproducible, independent of batches and of how much is drawn, inside their ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.both import batches
from torchdali import fn, pipeline_def, types
from torchdali.rng import BatchRng
from torchdali.tensors import TensorList

KINDS = ["uniform", "normal", "coin_flip", "beta"]


def body(name: str) -> Any:
    return getattr(fn.random, name).body


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
def test_an_own_seed_overrides_that_of_the_pipeline(name: str) -> None:
    def define(lib: Any) -> Any:
        make = getattr(lib.fn.random, name)
        return make(shape=[50], seed=9), make(shape=[50], seed=9), make(shape=[50])

    (one, two, three), (other, *_) = (batches("torchdali", define, seed=s)[0] for s in (1, 2))
    assert np.array_equal(one.samples, two.samples) and np.array_equal(one.samples, other.samples)
    assert not np.array_equal(one.samples, three.samples)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("count", [6, 5000])
def test_a_sample_draws_the_same_in_any_batch(name: str, count: int) -> None:
    alone = body(name)(like((count,)), rng=rng([4]))[0]
    among = body(name)(like((3, 2), (count,), (9000,)), rng=rng([2, 4, 6]))[1]
    assert torch.equal(alone, among)


@pytest.mark.parametrize("name", ["uniform", "normal", "coin_flip"])
def test_the_first_numbers_do_not_depend_on_the_shape(name: str) -> None:
    short, long = (body(name)(shape=[count], rng=rng([7, 8])) for count in (5, 32))
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
        drawn = fn.random.uniform.body(range=[0.0, high], dtype=dtype, rng=Greatest(1, [0], [0]))
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
    drawn = fn.random.uniform.body(range=given, dtype=dtype, shape=[4000], rng=rng([0]))
    low, high = drawn.min().item(), drawn.max().item()
    assert least <= low <= least + (greatest - least) / 50
    assert greatest - (greatest - least) / 50 <= high <= greatest


def test_constant_fields_of_noise_are_uncorrelated() -> None:
    fields = fn.random.normal.body(shape=[100, 100], rng=rng([0, 1]))
    one, two = (field.double() for field in fields)
    shifted = (one[:, 1:] * one[:, :-1]).mean()
    assert max(abs((one * two).mean()), abs(shifted), abs(one.mean()), abs(one.std() - 1)) < 0.05


def test_a_permutation_has_each_index_once() -> None:
    for size in range(1, 30):
        records = list(range(100, 100 + size))
        assert sorted(fn.batch_permutation.body(rng=rng(records)).tolist()) == list(range(size))
        moved = fn.batch_permutation.body(no_fixed_points=True, rng=rng(records)).tolist()
        assert sorted(moved) == list(range(size))
        assert size == 1 or all(i != k for i, k in enumerate(moved))


def test_a_permutation_of_repeated_records_is_one() -> None:
    repeated = fn.batch_permutation.body(no_fixed_points=True, rng=rng([5] * 6)).tolist()
    assert sorted(repeated) == list(range(6)) and all(i != k for i, k in enumerate(repeated))


def test_choice_draws_rows_that_exist() -> None:
    table = torch.arange(12).reshape(6, 2)
    drawn = fn.random.choice.body(TensorList.from_samples([table]), shape=[3, 4], rng=rng([0]))
    assert drawn.shape() == [(3, 4, 2)]
    assert all(row in table.tolist() for row in drawn[0].torch().reshape(-1, 2).tolist())


def test_called_on_tensors_it_runs_at_once() -> None:
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
        (lambda: fn.random.uniform.body(values=[], rng=rng([0])), "values is empty"),
        (lambda: fn.random.uniform.body(range=[1.0, 0.0], rng=rng([0])), "low < high"),
        (lambda: fn.random.normal.body(dtype=torch.bool, rng=rng([0])), "type bool is not supported"),
        (lambda: fn.random.beta.body(alpha=0.0, rng=rng([0])), "`alpha` must be a positive"),
        (lambda: fn.random.beta.body(beta=float("inf"), rng=rng([0])), "`beta` must be a positive"),
        (
            lambda: fn.random.coin_flip.body(like((1,)), shape=[1], rng=rng([0])),
            "shape is given twice",
        ),
        (lambda: fn.random.choice(torch.tensor(2), p=[0.5, 0.4]), "add up to 0.9"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call()
