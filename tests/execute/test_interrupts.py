"""An exception at any moment of a call loses no batch, doubles none, and keeps sources synchronized."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.helpers.interrupts import Interrupt, interrupts, limit
from torchdali import dynamic as ndd
from torchdali import fn, pipeline_def
from torchdali.pipeline import Pipeline

SIZE = 2
WAYS = {
    "ahead": {},
    "one by one": {"prefetch_queue_depth": 1},
    "synchronous": {"exec_pipelined": False, "exec_async": False},
    "debug": {"debug": True},
}


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    with limit():
        yield


def numbered(ends: int = 1_000_000) -> Iterator[Any]:
    for number in range(ends):
        yield np.full((SIZE, 1), number)


class Counter:
    """A function without parameters, which counts its results."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Any:
        self.calls += 1
        return np.full((SIZE, 1), self.calls - 1)


def sources(**options: Any) -> Pipeline:
    counter, iterator = Counter(), numbered()

    @pipeline_def(batch_size=SIZE, num_threads=1, device_id=None, **options)
    def pipe() -> Any:
        sample = fn.external_source(lambda info: np.array([info.iteration]), batch=False)
        return (
            fn.external_source(numbered), fn.external_source(counter), fn.external_source(iterator),
            fn.external_source(lambda batch: np.full((SIZE, 1), batch)), sample,
        )  # fmt: skip

    made: Pipeline = pipe()
    return made


def number_of(outputs: Any) -> int:
    """Return the number of a batch, which all its outputs must share."""
    numbers = {int(output.as_array().ravel()[0]) for output in outputs}
    assert len(numbers) == 1, numbers
    return numbers.pop()


def check(make: Callable[[], Any], run: Callable[[Any, int], Any], interrupt: Interrupt, before: int = 2) -> None:
    """Check the order of batches; only a batch that was returned at the moment of the interrupt may be missing."""
    made, failed = make(), issubclass(interrupt.error, Exception)  # the error might belong to the batch
    found = [number_of(run(made, number)) for number in range(before)]
    found += map(number_of, interrupt.call(lambda: run(made, before)))
    for number in range(before + 1, before + 6):
        try:
            found.append(number_of(run(made, number)))
        except interrupt.error:
            assert failed
    assert Pipeline.current() is None, interrupt.place
    missing = sorted(set(range(found[-1] + 1)) - set(found))
    assert found == sorted(set(found)), (found, interrupt.place)
    assert len(missing) <= failed or (missing == [before] and interrupt.place.endswith(LAST)), (found, interrupt.place)
    made.close()


LAST = ("(_take)", "(_outputs)", "(outputs)", "(run)", "(__exit__)", "(_run_with)")  # on their way to the user, after the count


@pytest.mark.thin(5)
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError], ids=lambda error: error.__name__)
@pytest.mark.parametrize("way", WAYS)
def test_sources_advance_together(way: str, error: type[BaseException]) -> None:
    for interrupt in interrupts(1, 29, error):
        check(lambda: sources(**WAYS[way]), lambda pipe, _: pipe.run(), interrupt)


@pytest.mark.parametrize("failing", ["function", "iterator"])
def test_a_source_that_fails_shifts_no_other(failing: str) -> None:
    failures = [ValueError("once")]

    def function(number: int) -> Any:
        if number == 3 and failures and failing == "function":
            raise failures.pop()
        return np.full((SIZE, 1), number)

    class Items:
        def __init__(self) -> None:
            self.number = -1

        def __iter__(self) -> Items:
            return self

        def __next__(self) -> Any:
            self.number += 1
            if self.number == 3 and failing == "iterator":
                raise ValueError("once")
            return np.full((SIZE, 1), self.number)

    @pipeline_def(batch_size=SIZE, num_threads=1, device_id=None)
    def pipe() -> Any:
        return fn.external_source(numbered), fn.external_source(function), fn.external_source(Items()), fn.external_source(numbered)

    made, found = pipe(), []
    for _ in range(7):
        try:
            found.append(number_of(made.run()))
        except ValueError:
            found.append(-1)
    assert found == ([0, 1, 2, -1, 3, 4, 5] if failing == "function" else [0, 1, 2, -1, 4, 5, 6])


def test_inputs_match_their_run() -> None:
    @pipeline_def(batch_size=SIZE, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipe() -> Any:
        return fn.external_source(name="first"), fn.external_source(name="second")

    def run(made: Pipeline, number: int) -> Any:
        batch = np.full((SIZE, 1), number)
        return made.run(first=batch, second=batch)

    for interrupt in interrupts(1, 19):
        made = pipe()
        assert [number_of(run(made, number)) for number in range(2)] == [0, 1]
        interrupt.call(lambda made=made: run(made, 2))
        assert [number_of(run(made, number)) for number in range(3, 6)] == [3, 4, 5], interrupt.place


def test_results_of_the_dynamic_mode_match_their_operators() -> None:
    def run(number: int) -> Any:
        values = ndd.batch([np.full((64, 64, 3), number, np.uint8)] * SIZE)
        return [np.asarray(each)[0, 0, 0] for each in ndd.resize(ndd.flip(values), size=(32, 32))]

    for interrupt in interrupts(1, 101):
        assert run(1) == [1] * SIZE
        interrupt.call(lambda: run(2))
        assert [run(number) for number in range(3, 6)] == [[number] * SIZE for number in range(3, 6)], interrupt.place
