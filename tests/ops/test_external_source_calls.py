"""Calls of sources: the same calls, in the same order and thread, as in the real DALI.

DALI does not specify the order in which two sources are called for one batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.helpers.sources import batch, epochs, pipeline, run

pytestmark = pytest.mark.parity

Log = list[Any]
Make = Callable[[Log], Any]


def numbered(log: Log) -> Any:
    def get(i: int) -> Any:
        log.append(("number", i))
        if i == 3:
            raise StopIteration
        return batch(i)

    return get


def plain(log: Log) -> Any:
    def get() -> Any:
        log.append("plain")
        return batch(0)

    return get


def generated(log: Log) -> Any:
    def get() -> Iterator[Any]:
        log.append("start")
        for i in range(3):
            log.append(("item", i))
            yield batch(i)
        log.append("end")

    return get


def failing(log: Log) -> Any:
    def get(i: int) -> Any:
        log.append(("failing", i))
        if i == 2:
            raise LookupError
        return batch(i)

    return get


def sources(*makes: Make, **arguments: Any) -> Callable[[Log], Callable[[Any], Any]]:
    return lambda log: lambda dali: [dali.fn.external_source(m(log), **arguments) for m in makes]


def calls(library: str, case: Any, steps: Callable[[Any, Log], None], **options: Any) -> Log:
    log: Log = []
    steps(pipeline(case(log), library=library, **options), log)
    return log


def three_epochs(pipe: Any, log: Log) -> None:
    log.append(epochs(pipe, 3, 5))


def runs(pipe: Any, log: Log) -> None:
    for _ in range(4):
        log.append(run(pipe))


def scheduled(pipe: Any, log: Log) -> None:
    pipe.schedule_run()
    for _ in range(3):
        log.append(len(pipe.share_outputs()[0]))
        pipe.release_outputs()
        log.append("scheduling")
        pipe.schedule_run()


CASES = {
    "number": (sources(numbered), three_epochs),
    "plain": (sources(plain), runs),
    "generator": (sources(generated, cycle="raise"), three_epochs),
    "generator that cycles": (sources(generated, cycle=True), runs),
    "two": (sources(numbered, generated), three_epochs),
    "scheduled": (sources(numbered), scheduled),
}


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_calls(name: str, depth: int) -> None:
    case, steps = CASES[name]
    ours, theirs = (
        calls(library, case, steps, prefetch_queue_depth=depth)
        for library in ("torchdali", "nvidia.dali")
    )
    if name == "two":
        assert sorted(map(str, ours)) == sorted(map(str, theirs))
    else:
        assert ours == theirs


@pytest.mark.parametrize("library", ["torchdali", "nvidia.dali"])
def test_sources_share_the_state_of_the_thread_that_runs(library: str) -> None:
    """The source uses the seeds and thread-local state of the user's loop."""
    local, seen = threading.local(), []

    def get() -> Any:
        seen.append((local.step, np.random.randint(1000)))
        return batch(0)

    local.step = 0
    pipe = pipeline(lambda dali: dali.fn.external_source(get), library=library, prefetch_queue_depth=2)
    for step in range(3):
        local.step = step
        np.random.seed(step)
        pipe.run()
    expected = []
    for step, count in enumerate((2, 1, 1)):
        np.random.seed(step)
        expected += [(step, np.random.randint(1000)) for _ in range(count)]
    assert seen == expected
