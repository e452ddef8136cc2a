"""The contract at the top of `executor.py`, line by line, with operators that a test controls."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.garbage import released
from tests.helpers.inside import executor_of
from torchdali import Pipeline, fn, pipeline_def
from torchdali.calls.decorators import operator
from torchdali.declaration.registry import lookup
from torchdali.declaration.schema import Data

PATIENCE = 30  # seconds until a test gives up


class Script:
    """Script of the fake operator: its action for a sample that holds a number."""

    def __init__(self) -> None:
        self.actions: dict[int, Callable[[], None]] = {}
        self.started = threading.Event()
        self.seen: list[int] = []

    def run(self, number: int) -> None:
        self.seen.append(number)
        self.started.set()
        self.actions.get(number, lambda: None)()


script = Script()


@operator(name="_scripted")
def scripted(data: Data, /) -> Data:
    script.run(int(data.reshape(-1)[0]))
    return data.clone()


@pytest.fixture(autouse=True)
def new_script() -> None:
    global script
    script = Script()


def pipeline(batches: int = 1000, *, size: int = 2, **settings: Any) -> Pipeline:
    """Deliver numbers: batch b starts at the sample b * size."""
    counter = iter(range(batches))

    def source() -> np.ndarray:
        number = next(counter)
        return np.arange(number * size, (number + 1) * size)

    given = {"batch_size": size, "num_threads": 2, "device_id": None, "prefetch_queue_depth": 3, **settings}

    @pipeline_def(**given)
    def define() -> Any:
        return lookup("_scripted")(fn.external_source(source, cycle=None))

    return define()


def first(pipe: Pipeline) -> int:
    return int(pipe.run()[0].samples()[0])


def test_success_batches_are_delivered_in_the_order_they_were_scheduled() -> None:
    """The first batch is the slowest: it waits for samples of the third."""
    later = threading.Event()
    script.actions = {0: lambda: None if later.wait(PATIENCE) else pytest.fail(), 5: later.set}
    pipe = pipeline(num_threads=2, size=2)
    found = [first(pipe) for _ in range(4)]
    pipe.close()
    assert found == [0, 2, 4, 6]


def test_success_sources_see_batches_in_order() -> None:
    pipe = pipeline(num_threads=1, size=1)
    found = [first(pipe) for _ in range(6)]
    pipe.close()
    assert found == [0, 1, 2, 3, 4, 5] and script.seen[:6] == found


@pytest.mark.parametrize("settings", [{}, {"exec_async": False, "exec_pipelined": False}], ids=str)
def test_failure_belongs_to_its_batch(settings: dict[str, Any]) -> None:
    def fail() -> None:
        raise ValueError("as scripted")

    script.actions = {3: fail}
    pipe = pipeline(**settings)
    assert first(pipe) == 0
    with pytest.raises(ValueError, match=r"'_scripted' failed on sample 1 of batch 1(.|\n)*as scripted") as caught:
        pipe.run()
    assert "lookup" in str(caught.value)  # the user's line
    assert [first(pipe) for _ in range(2)] == [4, 6]
    pipe.close()


def test_end_raises_until_reset() -> None:
    pipe = pipeline(batches=2)
    assert [first(pipe), first(pipe)] == [0, 2]
    for _ in range(3):
        with pytest.raises(StopIteration):
            pipe.run()
    pipe.close()


def test_a_waiting_batch_does_not_delay_other_batches() -> None:
    go = threading.Event()
    script.actions = {1: lambda: None if go.wait(PATIENCE) else pytest.fail()}
    pipe = pipeline(size=1)
    found = first(pipe)
    go.set()
    assert [found, first(pipe)] == [0, 1]
    pipe.close()


def test_one_at_a_time() -> None:
    go, refused = threading.Event(), []
    script.actions = {0: lambda: None if go.wait(PATIENCE) else pytest.fail()}
    pipe = pipeline()
    pipe.build()
    taker = threading.Thread(target=pipe.run)
    taker.start()
    assert script.started.wait(PATIENCE)
    taking = executor_of(pipe)._single_caller
    while not refused:  # until the other thread waits for its batch
        try:
            taking.lock()
        except RuntimeError as error:
            refused.append(str(error))
    go.set()
    taker.join(PATIENCE)
    pipe.close()
    assert "another thread is taking a batch" in refused[0]


def test_shutdown_ends_batches_in_flight_with_an_error() -> None:
    go, errors = threading.Event(), []
    script.actions = {0: lambda: None if go.wait(PATIENCE) else pytest.fail()}
    pipe = pipeline()
    pipe.build()

    def take() -> None:
        try:
            pipe.run()
        except RuntimeError as error:
            errors.append(str(error))

    taker = threading.Thread(target=take)
    taker.start()
    assert script.started.wait(PATIENCE)
    closer = threading.Thread(target=pipe.close)
    closer.start()
    taker.join(PATIENCE)
    go.set()
    closer.join(PATIENCE)
    pipe.close()  # again
    assert errors and "closed" in errors[0]


def test_shutdown_by_dropping_the_last_reference() -> None:
    before = set(threading.enumerate())
    pipe = pipeline()
    pipe.run()
    executor = weakref.ref(executor_of(pipe))
    threads = set(threading.enumerate()) - before
    del pipe
    assert released(lambda: executor() is None)
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)


def test_bad_samples_of_a_group_are_dropped() -> None:
    """Small samples are one call; running them one by one finds the failing one."""

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, bad_samples="skip")
    def define() -> Any:
        data = fn.external_source(lambda: np.ones((4, 3), np.uint8))
        index = fn.external_source(lambda: np.array([0, 1, 9, 2], np.int32))
        return fn.slice(data, start=index, shape=1, axes=[0])

    pipe = define()
    assert len(pipe.run()[0]) == 3
    assert [bad.sample for bad in pipe.bad_sample_report()[:1]] == [2]
    pipe.close()


def test_the_caller_owns_the_results() -> None:
    pipe = pipeline(prefetch_queue_depth=2)
    kept = [pipe.run()[0] for _ in range(5)]
    pipe.close()
    assert [k.stack().tolist() for k in kept] == [[2 * i, 2 * i + 1] for i in range(5)]
    assert torch.is_tensor(kept[0].stack())
