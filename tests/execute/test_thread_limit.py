"""The number of threads for a chain: what it settles on, fed with the times of machines that are made up."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import pytest

from torchdali.execute.thread_limit import ThreadLimit
from torchdali.execute.thread_pool import Job, ThreadPool

pytestmark = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="without the GIL all threads are used"
)

Speed = Callable[[int], float]
"""Samples a second with so many threads."""

MACHINES: dict[str, tuple[Speed, int]] = {
    "Python alone: each thread hinders the others": (lambda n: 8000 / n, 1),
    "most of it in the GIL: two threads are the best": (lambda n: {1: 6000, 2: 9000}.get(n, 12000 / n), 2),
    "threads that help each other": (lambda n: 5000.0 * n, 8),
    "samples of 3 ms, for which the threads wait for each other": (lambda n: 300 / n, 1),
    "slow samples, whatever the threads do": (lambda n: 150 / n, 8),
}


@pytest.mark.parametrize(("speed", "best"), MACHINES.values(), ids=MACHINES)
def test_the_fastest_number_is_found_and_kept(speed: Speed, best: int) -> None:
    limit, used = ThreadLimit(8), []
    for _ in range(4000):
        used.append(limit.now)
        limit.note(limit.now, 32, 32 * limit.now / speed(limit.now), 32 / speed(1))
    assert used.count(best) > 0.8 * len(used)
    assert used[-500:].count(best) > 0.9 * 500


def test_one_that_became_wrong_is_left() -> None:
    limit = ThreadLimit(4)
    for speed in (lambda n: 8000 / n, lambda n: 5000.0 * n):
        for _ in range(20_000):
            limit.note(limit.now, 32, 32 * limit.now / speed(limit.now), 32 / 8000)
    assert limit.now == 4


def test_threads_that_only_wake_each_other_are_too_many() -> None:
    """Two threads take twice the processor time of one, as measured for `box_encoder` on a virtual machine."""
    limit, used = ThreadLimit(2), []
    seconds, cpu_seconds = {1: 0.55e-3, 2: 1.5e-3}, {1: 0.53e-3, 2: 1.0e-3}  # a sample
    for _ in range(1000):
        used.append(limit.now)
        limit.note(limit.now, 32, 32 * seconds[limit.now], 32 * cpu_seconds[limit.now])
    assert used.count(1) > 0.9 * len(used)


def test_batches_from_before_a_change_do_not_count() -> None:
    limit = ThreadLimit(2)
    for _ in range(100):
        limit.note(1, 1000, 1000.0, 0.001)
    assert limit.now == 2


class _Fixed(ThreadLimit):
    """A limit that learns nothing."""

    def __init__(self, threads: int) -> None:
        self.now = threads

    def note(self, *measured: float) -> None:
        pass


def test_a_job_of_one_thread_is_not_shared() -> None:
    pool, left, lock = ThreadPool(4), threading.Semaphore(0), threading.Lock()
    busy = most = 0

    def count(i: int) -> None:
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        sum(range(2000))  # long enough for others to come
        with lock:
            busy -= 1

    for order in range(20):
        pool.submit(Job(count, 50, lambda failures: left.release(), order=order, limit=_Fixed(1)))
    assert all(left.acquire(timeout=30) for _ in range(20))
    pool.close()
    assert most == 1


def test_a_job_behind_a_limited_one_gets_more_threads() -> None:
    few, many, pool = _Fixed(1), _Fixed(3), ThreadPool(3)
    begun, go, left = threading.Event(), threading.Event(), threading.Semaphore(0)
    together = threading.Barrier(3)

    def first(i: int) -> None:
        begun.set()
        assert go.wait(30)

    def done(failures: dict[int, BaseException]) -> None:
        assert not failures
        left.release()

    pool.submit(Job(first, 1, done, order=0, limit=few))
    assert begun.wait(30)
    pool.submit(Job(lambda i: together.wait(timeout=30) and None, 3, done, order=1, limit=many))
    go.set()
    assert all(left.acquire(timeout=60) for _ in range(2))
    pool.close()
