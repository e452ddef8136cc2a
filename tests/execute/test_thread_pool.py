"""Worker threads: jobs in order, items shared by idle threads."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from torchdali.execute import thread_pool
from torchdali.execute.thread_pool import Job, ThreadPool


def _run(threads: ThreadPool, counts: list[int], run: Callable[[int], None]) -> None:
    """Run jobs with these numbers of items, and wait for all."""
    left = threading.Semaphore(0)
    for order, count in enumerate(counts):
        threads.submit(Job(run, count, lambda failures: left.release(), order=order))
    for _ in counts:
        assert left.acquire(timeout=30)


@pytest.fixture
def threads() -> object:
    made = ThreadPool(4)
    yield made
    made.close()


def test_every_item_runs_once(threads: ThreadPool) -> None:
    seen: list[int] = []
    _run(threads, [3, 4], lambda i: seen.append(i))
    assert sorted(seen) == [0, 0, 1, 1, 2, 2, 3]


def test_idle_threads_run_the_next_job(threads: ThreadPool) -> None:
    begun, go, left = threading.Event(), threading.Event(), threading.Semaphore(0)
    together = threading.Barrier(3)

    def narrow(i: int) -> None:
        begun.set()
        assert go.wait(30)

    def done(failures: dict[int, BaseException]) -> None:
        assert not failures
        left.release()

    threads.submit(Job(narrow, 1, done, order=0))
    assert begun.wait(30)
    threads.submit(Job(lambda i: together.wait(timeout=30) and None, 3, done, order=1))
    assert left.acquire(timeout=30)  # while the first job still runs
    go.set()
    assert left.acquire(timeout=30)


def test_the_job_with_the_smallest_order_goes_first() -> None:
    pool, begun, go, seen, left = (
        ThreadPool(1),
        threading.Event(),
        threading.Event(),
        [],
        threading.Semaphore(0),
    )

    def first(i: int) -> None:
        begun.set()
        assert go.wait(30)

    pool.submit(Job(first, 1, lambda failures: left.release(), order=0))
    assert begun.wait(30)
    for order in (3, 1, 2):
        pool.submit(
            Job(lambda i, o=order: seen.append(o), 2, lambda failures: left.release(), order=order)
        )
    go.set()
    assert all(left.acquire(timeout=30) for _ in range(4))
    pool.close()
    assert seen == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("keep_going", [True, False])
def test_a_failure_is_passed_to_done(threads: ThreadPool, keep_going: bool) -> None:
    found, ended, ran = {}, threading.Event(), []

    def run(i: int) -> None:
        ran.append(i)
        raise ValueError(i)

    def done(failures: dict[int, BaseException]) -> None:
        found.update(failures)
        ended.set()

    pool = ThreadPool(1)
    pool.submit(Job(run, 5, done, keep_going=keep_going))
    assert ended.wait(30)
    pool.close()
    assert ran == list(found) == (list(range(5)) if keep_going else [0])


def _busy(
    pool: ThreadPool, count: int, go: threading.Event
) -> tuple[threading.Barrier, threading.Semaphore]:
    """Submit a job whose items wait for each other, the caller, and then `go`."""
    met, left = threading.Barrier(count + 1), threading.Semaphore(0)

    def run(i: int) -> None:
        met.wait(timeout=30)
        assert go.wait(30)

    pool.submit(Job(run, count, lambda failures: left.release(0 if failures else 1)))
    return met, left


def _workers() -> set[threading.Thread]:
    return {
        t
        for t in threading.enumerate()
        if t.name.startswith("torchdali-") and t.name[10:].isdigit()
    }


@pytest.fixture
def before() -> set[threading.Thread]:
    gc.collect()
    return _workers()


def _start(number: int) -> None:
    """Start threads as no other test does."""


def test_pools_share_threads_and_each_has_one(before: set[threading.Thread]) -> None:
    one, go = ThreadPool(3, _start), threading.Event()
    assert len(_workers() - before) == 3
    other = ThreadPool(2, _start)
    assert len(_workers() - before) == 4
    met, left = _busy(one, 3, go)
    met.wait(timeout=30)
    _run(other, [5, 1], lambda i: None)  # by the remaining thread
    go.set()
    assert left.acquire(timeout=30)
    go.clear()
    met, left = _busy(other, 2, go)
    met.wait(timeout=30)
    _run(one, [5, 1], lambda i: None)
    go.set()
    assert left.acquire(timeout=30)
    one.close()
    assert len(_workers() - before) == 2
    _run(other, [4], lambda i: None)
    other.close()
    assert _workers() <= before


def test_a_pool_has_no_more_threads_than_it_asked_for() -> None:
    wide, narrow = ThreadPool(4, _start), ThreadPool(1, _start)
    at_once, most, lock = 0, 0, threading.Lock()

    def run(i: int) -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        for _ in range(1000):
            pass
        with lock:
            at_once -= 1

    _run(narrow, [50] * 20, run)
    assert most == 1
    wide.close()
    narrow.close()


def test_threads_with_another_initializer_are_not_shared(before: set[threading.Thread]) -> None:
    pools = [ThreadPool(2, _start), ThreadPool(2), ThreadPool(2, lambda number: None)]
    others = len(_workers() - before)
    pools.append(ThreadPool(2, _start))
    assert len(_workers() - before) == others + 1 >= 5
    for pool in pools:
        pool.close()
    assert _workers() <= before


def test_an_interrupt_while_threads_start_leaves_none(
    before: set[threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(thread_pool.keep_torch_threads):
        def __exit__(self, *exc: object) -> None:
            super().__exit__(*exc)
            raise KeyboardInterrupt

    kept = ThreadPool(1, _start)
    first = _workers()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(thread_pool, "keep_torch_threads", Interrupted)
        ThreadPool(3, _start)
    for thread in _workers() - first:
        thread.join(30)
    assert _workers() == first
    _run(kept, [5], lambda i: None)
    kept.close()
    assert _workers() <= before


def test_a_job_may_create_and_close_a_pool() -> None:
    outer, left = ThreadPool(1), threading.Semaphore(0)
    found: list[int] = []

    def run(i: int) -> None:
        inner = ThreadPool(1)
        _run(inner, [3], found.append)
        inner.close()

    outer.submit(Job(run, 2, lambda failures: left.release(0 if failures else 1)))
    assert left.acquire(timeout=60)
    outer.close()
    assert found == [0, 1, 2] * 2


def test_a_closed_pool_holds_no_reference_to_its_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go, checked = threading.Event(), threading.Event(), threading.Event()
    workers = thread_pool._WorkerThreads
    mark_idle = workers.mark_idle

    def mark_idle_and_pause(self: Any, queue: Any) -> None:
        mark_idle(self, queue)
        assert checked.wait(30)  # as if the machine were busy at this moment

    def wait(i: int, held: set[int]) -> None:
        begun.set()
        assert go.wait(30)

    monkeypatch.setattr(workers, "mark_idle", mark_idle_and_pause)
    pool, held = ThreadPool(1), {1}
    alive = weakref.ref(held)
    for _ in range(2):  # one runs, and one waits
        pool.submit(Job(partial(wait, held=held), 1, lambda failures: None))
    del held
    assert begun.wait(30)
    threading.Thread(target=go.set).start()
    other = ThreadPool(1)  # holds the thread, for which the pool would otherwise wait
    pool.close()
    is_held = alive() is not None
    checked.set()
    other.close()
    assert not is_held
