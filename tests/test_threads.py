"""Worker threads: who works on what, and how many at once."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch

from torchdali.execute.order import Signal
from torchdali.execute.threads import Job, Threads
from torchdali.execute.width import Width


class _Fixed(Width):
    """A width that no trial changes."""

    def __init__(self, width: int) -> None:
        super().__init__(1)
        self.now = width


def _run(threads: Threads, jobs: list[tuple[int, int]], run: Callable[[int], None]) -> None:
    """Run jobs of (width, samples) together, and wait for all."""
    left = threading.Semaphore(0)
    for order, (width, count) in enumerate(jobs):
        threads.submit(Job(run, count, lambda failures: left.release(), _Fixed(width), order=order))
    for _ in jobs:
        assert left.acquire(timeout=30)


@pytest.fixture
def threads() -> object:
    made = Threads(4)
    yield made
    made.close()


@pytest.mark.parametrize("width", [1, 2, 4])
def test_no_more_threads_are_at_work_than_a_job_is_wide(threads: Threads, width: int) -> None:
    at_work, most, lock = set[int](), 0, threading.Lock()

    def run(i: int) -> None:
        nonlocal most
        with lock:
            at_work.add(threading.get_ident())
            most = max(most, len(at_work))
        torch.mm(values, values)  # which gives the interpreter's lock away for so long that others get to work
        with lock:
            at_work.discard(threading.get_ident())

    values = torch.rand(200, 200)
    _run(threads, [(width, 50)] * 6, run)
    assert most <= width and (width < 4 or most > 2)  # the latter shows that the work lets others in


def test_a_wide_job_after_narrow_ones_gets_all_threads(threads: Threads) -> None:
    together = threading.Barrier(4)

    def meet(i: int) -> None:
        together.wait(timeout=30)

    _run(threads, [(1, 20)], lambda i: None)
    _run(threads, [(4, 4)], meet)
    seen: list[int] = []
    _run(threads, [(1, 3), (4, 4)], lambda i: seen.append(i))
    assert sorted(seen) == [0, 0, 1, 1, 2, 2, 3]


def test_a_wide_job_in_line_behind_a_narrow_one_gets_all_threads(threads: Threads) -> None:
    together, begun, go = threading.Barrier(4), threading.Event(), threading.Event()
    left = threading.Semaphore(0)

    def narrow(i: int) -> None:
        begun.set()
        assert go.wait(30)

    def done(failures: dict[int, BaseException]) -> None:
        assert not failures
        left.release()

    threads.submit(Job(narrow, 1, done, _Fixed(1), order=0))
    assert begun.wait(30)
    threads.submit(Job(lambda i: together.wait(timeout=30) and None, 4, done, _Fixed(4), order=1))
    go.set()
    assert left.acquire(timeout=30) and left.acquire(timeout=30)


def _feed(width: Width, speed: Callable[[int], float], batches: int = 400, size: int = 64) -> list[int]:
    """Run batches, of which the threads together do so many samples a second; return the widths."""
    used = []
    for _ in range(batches):
        now = width.now
        used.append(now)
        width.note(now, size, size * now / speed(now))
    return used


def test_cheap_samples_that_one_thread_does_faster_get_one_thread() -> None:
    used = _feed(Width(8), lambda width: 40_000 / width)
    assert used[-300:].count(1) > 250


def test_cheap_samples_that_gain_from_threads_keep_them() -> None:
    used = _feed(Width(8), lambda width: 5_000.0 * width)
    assert used[-300:].count(8) > 250


def test_the_best_number_is_found_between() -> None:
    used = _feed(Width(16), lambda width: 10_000 * min(width, 4) / (1 + max(0, width - 4) / 8))
    assert used[-300:].count(4) > 200


def test_of_two_equally_fast_numbers_the_smaller_is_taken() -> None:
    used = _feed(Width(2), lambda width: 9_000)
    assert used[-300:].count(1) > 250


def test_slow_samples_get_all_threads_at_once() -> None:
    width = Width(4)
    _feed(width, lambda n: 40_000 / n)
    assert width.now == 1
    used = _feed(width, lambda n: 500 * n, batches=60)
    assert used[-20:] == [4] * 20
    assert set(_feed(Width(4), lambda n: 500 * n)) == {4}


def test_a_batch_begun_with_another_width_does_not_count() -> None:
    width = Width(2)
    for _ in range(100):
        width.note(1, 1000, 1e-6)
    assert width.now == 2


def test_a_signal_wakes_all_who_wait_and_may_be_given_twice() -> None:
    signal, woken = Signal(), []
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
