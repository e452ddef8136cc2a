"""Worker threads: jobs in order, items shared by idle threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from torchdali.execute.sync import OneShotEvent
from torchdali.execute.thread_pool import Job, ThreadPool


def _run(threads: ThreadPool, counts: list[int], run: Callable[[int], None]) -> None:
    """Run jobs of so many items together, and wait for all."""
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


def test_a_job_behind_a_narrow_one_gets_the_idle_threads(threads: ThreadPool) -> None:
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
    pool, begun, go, seen, left = ThreadPool(1), threading.Event(), threading.Event(), [], threading.Semaphore(0)

    def first(i: int) -> None:
        begun.set()
        assert go.wait(30)

    pool.submit(Job(first, 1, lambda failures: left.release(), order=0))
    assert begun.wait(30)
    for order in (3, 1, 2):
        pool.submit(Job(lambda i, o=order: seen.append(o), 2, lambda failures: left.release(), order=order))
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


def test_a_signal_wakes_all_who_wait_and_may_be_given_twice() -> None:
    signal, woken = OneShotEvent(), []
    assert not signal.wait(0.001) and not signal.is_set()
    waiting = [threading.Thread(target=lambda: woken.append(signal.wait(60))) for _ in range(3)]
    for thread in waiting:
        thread.start()
    giving = [threading.Thread(target=signal.set) for _ in range(2)]
    for thread in giving:
        thread.start()
    for thread in (*waiting, *giving):
        thread.join(60)
    assert woken == [True] * 3
    signal.set()
    assert signal.is_set() and signal.wait(0)
