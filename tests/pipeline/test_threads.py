"""Threads and processes that run a pipeline, and the cores they are bound to."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers.counting import counting, note, note_sample, number, seen
from torchdali import (
    Pipeline,
    fn,
)


@pytest.fixture(autouse=True)
def _forget() -> None:
    seen.clear()


# ---------------------------------------------------------------- synchronous running


@pytest.mark.parametrize("setting", ["exec_async", "exec_pipelined"])
def test_without_asynchrony_steps_run_on_the_callers_thread(setting) -> None:
    me = threading.get_ident()

    def here() -> bool:
        return threading.get_ident() == me

    def source(i: int) -> Any:
        seen.append(here())
        return [np.array(i)] * 2

    pipe = Pipeline(2, 2, None, prefetch_queue_depth=2, **{setting: False})
    with pipe:
        first = note(fn.external_source(source=source), event=here)
        middle = note_sample(fn.decoders.image(_encoded_images()), event=lambda: True)
        second = note(middle, event=here)
        pipe.set_outputs(first, second)
    pipe.schedule_run()
    count = len(seen)
    assert count and all(seen), "everything is done when schedule_run returns"
    assert number(pipe.outputs()) == 0
    assert len(seen) == count
    pipe.close()


def _encoded_images() -> Any:
    """Encoded images, so that a chain runs between the steps."""
    data = np.frombuffer(b"P5\n2 1\n255\n\x01\x02", np.uint8)
    return fn.external_source(source=lambda: [data] * 2)


def test_asynchronous_steps_run_on_other_threads() -> None:
    me = threading.get_ident()
    pipe = Pipeline(2, 2, None)
    with pipe:
        pipe.set_outputs(note(fn.constant(idata=[1]), event=lambda: threading.get_ident() == me))
    pipe.run()
    pipe.close()
    assert seen and not any(seen)


def test_errors_of_a_synchronous_pipeline_are_raised_with_their_batch() -> None:
    calls = iter(range(9))

    def source(i: int) -> Any:
        if (call := next(calls)) == 1:
            raise ZeroDivisionError("source")
        return [np.array(call)] * 2

    pipe = counting(source, exec_async=False, exec_pipelined=False)
    pipe.schedule_run()
    assert number(pipe.outputs()) == 0
    pipe.schedule_run()
    with pytest.raises(ZeroDivisionError):
        pipe.outputs()
    pipe.schedule_run()
    assert number(pipe.outputs()) == 2
    pipe.close()


# ---------------------------------------------------------------- threads and processes


def test_two_threads_cannot_take_a_batch_concurrently() -> None:
    go = threading.Event()

    def source(i: int) -> Any:
        assert go.wait(30)
        return [np.array(i)] * 2

    pipe = counting(source, prefetch_queue_depth=1, background=True)
    pipe.schedule_run()
    found: queue.Queue[Any] = queue.Queue()

    def take() -> None:
        try:
            found.put(number(pipe.share_outputs()))
        except Exception as error:
            found.put(error)

    threads = [threading.Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    refused = found.get(timeout=30)  # the other one waits for the source
    assert isinstance(refused, RuntimeError) and "another thread" in str(refused)
    go.set()
    assert found.get(timeout=30) == 0
    for thread in threads:
        thread.join()
    pipe.close()


@pytest.mark.parametrize("options", [{"prefetch_queue_depth": 4097}, {"prefetch_queue_depth": {"cpu_size": 2, "gpu_size": 10**6}}, {"num_threads": 4097}])
def test_options_that_would_exhaust_memory(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be at most 4096"):
        Pipeline(**{"batch_size": 1, "num_threads": 1, "device_id": None} | options)


@pytest.mark.parametrize("name", ["num_processes", "py_num_workers"])
def test_numbers_of_processes_have_a_limit(name):
    with pytest.raises(ValueError, match=f"{name} must be at most 1024, got 1025"):
        Pipeline(batch_size=2, num_threads=1, device_id=None, **{name: 1025})


def test_one_thread_may_schedule_and_another_take() -> None:
    pipe = counting(prefetch_queue_depth=3)
    taken: list[int] = []
    scheduled = threading.Semaphore(0)

    def take() -> None:
        for _ in range(20):
            assert scheduled.acquire(timeout=30)
            taken.append(number(pipe.outputs()))

    thread = threading.Thread(target=take)
    thread.start()
    pipe.schedule_run()
    for _ in range(20):
        pipe.schedule_run()
        scheduled.release()
    thread.join()
    pipe.close()
    assert taken == list(range(20))


def in_child(run: Callable[[], Any]) -> str:
    """Run in a forked process; return its output."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = repr(run())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_raises_an_error_instead_of_hanging() -> None:
    pipe = counting()
    pipe.enable_api_check(False)
    assert number(pipe.run()) == 0
    place = pipe.state_dict()
    for call in (pipe.run, pipe.schedule_run, pipe.outputs, lambda: pipe.load_state_dict(place)):
        assert "built in process" in in_child(call)
    assert in_child(pipe.close) == "None"
    assert number(pipe.run()) == 1, "the parent's pipeline works on"
    pipe.close()
    assert in_child(lambda: number(counting().run())) == "0", "a pipeline of its own is fine"


def test_a_closed_pipeline_raises_an_error() -> None:
    pipe = counting()
    pipe.run()
    pipe.close()
    pipe.close()
    with pytest.raises(RuntimeError, match="closed"):
        pipe.run()


# ---------------------------------------------------------------- affinity

linux = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system cannot bind threads to cores"
)


def cores_of_workers(**arguments: Any) -> set[frozenset[int]]:
    """Return the cores that worker threads may use while they process samples."""
    gate = threading.Barrier(2)

    def where() -> frozenset[int]:
        gate.wait(30)  # so that both threads take part
        return frozenset(os.sched_getaffinity(0))

    pipe = Pipeline(2, 2, None, prefetch_queue_depth=1, **arguments)
    with pipe:
        pipe.set_outputs(note_sample(fn.decoders.image(_encoded_images()), event=where))
    pipe.run()
    pipe.close()
    return set(seen)


@linux
def test_worker_threads_are_bound_to_the_cores_of_the_mask(monkeypatch) -> None:
    cores = sorted(os.sched_getaffinity(0))
    monkeypatch.setenv("DALI_AFFINITY_MASK", f"{cores[0]},{cores[-1]}")
    assert cores_of_workers(set_affinity=True) == {frozenset([cores[0]]), frozenset([cores[-1]])}
    assert sorted(os.sched_getaffinity(0)) == cores, "the caller stays free"


@linux
def test_threads_beyond_the_mask_are_not_bound(monkeypatch) -> None:
    cores = sorted(os.sched_getaffinity(0))
    monkeypatch.setenv("DALI_AFFINITY_MASK", str(cores[0]))
    assert cores_of_workers(set_affinity=True) == {frozenset([cores[0]]), frozenset(cores)}


@linux
@pytest.mark.parametrize("bound", [True, False])
def test_without_mask_or_gpu_nothing_is_bound(monkeypatch, bound) -> None:
    if bound:
        monkeypatch.delenv("DALI_AFFINITY_MASK", raising=False)
    else:
        monkeypatch.setenv("DALI_AFFINITY_MASK", str(min(os.sched_getaffinity(0))))
    assert cores_of_workers(set_affinity=bound) == {frozenset(os.sched_getaffinity(0))}


@linux
@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [("a,b", ValueError, "core numbers"), ("0,99999", RuntimeError, "99999")],
)
def test_wrong_masks(monkeypatch, mask, error, message) -> None:
    monkeypatch.setenv("DALI_AFFINITY_MASK", mask)
    with pytest.raises(error, match=message):
        counting(set_affinity=True).build()
