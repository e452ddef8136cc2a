"""The search on simulated machines: functions from settings to samples/s, with noise."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import pytest

from torchdali import tuning
from torchdali.tuning.search import Comparison, Setting, Settings, compare, search

CORES = 16
NOISE = 0.05


def few_cores_and_a_gil(settings: Settings) -> float:
    """A process keeps two and a half threads busy; more threads wait for each other."""
    processes = settings["num_processes"]
    threads = max(settings["num_threads"], processes) / processes
    return 100 * min(processes * min(threads, 2.5 - 0.05 * threads), 6) * (1 - 0.002 * processes)


def slow_disk(settings: Settings) -> float:
    """The disk delivers 1,100 samples/s to many readers, and a short queue loses some."""
    threads = max(settings["num_threads"], settings["num_processes"])
    return min(1100, 100 * threads) * (1 if settings["prefetch_queue_depth"] > 2 else 0.9)


def slow_step(settings: Settings) -> float:
    return min(250, few_cores_and_a_gil(settings))


class Pretence:
    """Measures with noise, and counts."""

    def __init__(self, rate: Callable[[Settings], float], seed: int) -> None:
        self.rate, self.count, self._random = rate, 0, random.Random(seed)

    def __call__(self, settings: Settings) -> float:
        self.count += 1
        return self.rate(settings) * math.exp(self._random.gauss(0, NOISE))


def _searched(machine: Pretence, threads: int, processes: int, most: float = math.inf) -> Settings:
    start = {"num_threads": threads, "num_processes": processes, "prefetch_queue_depth": 2}
    over = lambda: machine.count >= most  # noqa: E731
    found = search(machine, tuning.list_settings(start, CORES), start, tuning.full_settings(start, CORES), over, over)
    return found.best


@pytest.mark.parametrize("rate", [few_cores_and_a_gil, slow_disk, slow_step])
@pytest.mark.parametrize(("threads", "processes"), [(1, 1), (4, 1), (16, 1), (16, 16)])
def test_within_five_percent_of_a_full_search(rate: Callable[[Settings], float], threads: int, processes: int) -> None:
    choices = tuning.list_settings({"num_threads": 1, "num_processes": 1, "prefetch_queue_depth": 2}, CORES)
    grid = [dict(zip([c.name for c in choices], values, strict=True)) for values in itertools.product(*[c.values for c in choices])]
    best, counts = max(map(rate, grid)), []
    for seed in range(10):
        machine = Pretence(rate, seed)
        assert rate(_searched(machine, threads, processes)) > 0.95 * best
        counts.append(machine.count)
    # A full search that measures each setting as often as a comparison.
    assert sum(counts) / len(counts) < 0.1 * 12 * len(grid)


@pytest.mark.parametrize("rate", [few_cores_and_a_gil, slow_disk, slow_step])
def test_after_the_time_limit_the_best_setting_is_returned(rate: Callable[[Settings], float]) -> None:
    for seed in range(10):
        machine = Pretence(rate, seed)
        start = rate({"num_threads": 1, "num_processes": 1, "prefetch_queue_depth": 2})
        assert rate(_searched(machine, 1, 1, most=20)) > 2 * start
        assert machine.count <= 21 + 4  # the started pair, and the last comparison


def test_settings_without_gain_are_not_changed() -> None:
    kept = [_searched(Pretence(lambda settings: 500, seed), 4, 1) for seed in range(20)]
    assert sum(each["num_threads"] == 4 and each["num_processes"] == 1 for each in kept) >= 17


def test_one_lucky_measurement_changes_nothing() -> None:
    for lucky in range(2, 12):
        count = itertools.count()
        rates = (3000 if k == lucky else 1000 + k % 7 for k in count)
        found = compare(lambda settings: next(rates), {"a": 1}, {"a": 2}, lambda: False)  # noqa: B023
        assert not found.wins, lucky


def test_temporary_load_does_not_mislead_the_search() -> None:
    """Every few measurements, other programs leave a third of the machine: by itself, this exceeds the gain of settings."""
    for period in (3, 5, 8, 13):
        machine = Pretence(lambda settings: 100 * settings["a"], period)
        busy = lambda machine=machine, period=period: 0.33 if machine.count // period % 2 else 1.0  # noqa: E731
        found = compare(lambda settings: busy() * machine(settings), {"a": 10}, {"a": 9}, lambda: False)  # noqa: B023
        assert not found.wins
        assert not compare(lambda settings: busy() * machine(settings), {"a": 10}, {"a": 7}, lambda: False).wins  # noqa: B023


def test_unusable_settings_are_skipped() -> None:
    tried: list[Settings] = []

    def measure(settings: Settings) -> float | None:
        tried.append(settings)
        return None if settings["a"] > 2 else float(settings["a"])

    found = search(measure, [Setting("a", (1, 2, 3, 4))], {"a": 1})
    assert found.best == {"a": 2}
    assert found.comparisons[-1] == Comparison({"a": 3}, ())
    assert {"a": 4} not in tried


def test_an_order_that_alternates_cancels_a_load_that_grows() -> None:
    rates = (1000 * 0.9**k for k in itertools.count())
    found = compare(lambda settings: next(rates), {"a": 1}, {"a": 2}, lambda: False)
    assert len(found.ratios) == 12 or not found.wins
    assert abs(found.gain) < 0.12 and not found.wins


@pytest.mark.parametrize(
    ("ratios", "decided", "wins"),
    [
        ((0.2,), False, False),
        ((0.2, 0.3), True, True),
        ((-0.2, -0.3), True, False),
        ((0.2, 0.05), False, True),
        ((0.05, 0.051, 0.049), True, True),
        ((0.0, 0.001, -0.001), True, False),
        ((0.5, -0.5, 0.4, -0.4, 0.5, -0.5), True, False),  # more would show no difference
        ((0.06, -0.02, 0.1, 0.0), False, True),
    ],
)
def test_decisions(ratios: tuple[float, ...], decided: bool, wins: bool) -> None:
    found = Comparison({}, ratios)
    assert (found.is_decided, found.wins) == (decided, wins)
