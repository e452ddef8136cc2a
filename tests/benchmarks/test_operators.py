"""The operator benchmark: its arithmetic, its page, and a run of both sides."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from benchmarks import operators, rounds
from benchmarks.operator_cases import Api
from benchmarks.operator_cases_small import EXPRESSIONS
from benchmarks.operator_inputs import FEEDS, SIZED, batches
from benchmarks.operator_side import CASES
from benchmarks.operators import Result, geometric_mean, ratio_by_operator
from torchdali import fn, math, types


def _result(name: str, size: str, *costs: tuple[float, float]) -> Result:
    def answer(cost: float) -> dict[str, Any]:
        return {"cpu": cost, "wall": cost / 2, "batches": 1}

    pairs = tuple((answer(ours), answer(theirs)) for ours, theirs in costs)
    return Result(name.split()[0], name, size, pairs)


FAST = _result("rotate nn", "224", (2.0, 8.0), (9.0, 7.0))
SLOW = _result("rotate linear", "720p", (8.0, 2.0), (8.0, 5.0))
OTHER = _result("copy", "224", (1.0, 2.0))
BROKEN = Result("clahe", "clahe", "224", error="dali: RuntimeError: no")


def test_a_ratio_compares_the_best_rounds() -> None:
    assert FAST.ratio() == FAST.ratio("wall") == 3.5
    assert SLOW.ratio() == 0.25


def test_cost_is_in_microseconds_per_sample() -> None:
    assert FAST.cost(0) == pytest.approx(2.0 * 1000 / 32)
    assert FAST.cost(1) == pytest.approx(7.0 * 1000 / 32)


def test_an_operators_ratio_is_the_geometric_mean_of_its_cases() -> None:
    assert geometric_mean([0.5, 8.0]) == pytest.approx(2.0)
    found = ratio_by_operator([FAST, SLOW, OTHER])
    assert found == {"rotate": pytest.approx((3.5 * 0.25) ** 0.5), "copy": pytest.approx(2.0)}


def test_the_page_lists_slow_and_failed_cases() -> None:
    options = argparse.Namespace(threads=2, rounds=3)
    source = [_result("source", "224", (0.1, 0.2))]
    pages = operators.reports([FAST, SLOW, OTHER, BROKEN], source, options)
    slowest = pages[""].partition("## Where torchdali is slowest")[2]
    assert "`rotate` linear" in slowest
    assert "`copy`" not in slowest
    assert "| `copy`" in pages["_images"]
    assert "- `clahe`, 224: dali: RuntimeError: no" in pages[""]
    assert all((operators.ROOT / "benchmarks" / f"speed{suffix}.md").read_text().splitlines()[0] == page.splitlines()[0] for suffix, page in pages.items())


def test_cases_are_chosen_by_operator_or_by_name() -> None:
    choose = operators._chosen
    chosen = choose("rotate,flip vertical")
    assert {case.operator for case in chosen} == {"rotate", "flip"}
    assert [case.name for case in chosen if case.operator == "flip"] == ["flip vertical"]
    with pytest.raises(argparse.ArgumentTypeError, match="rotation"):
        choose("rotation")


def test_every_case_has_a_unique_name_and_an_operator() -> None:
    api = Api(fn, types, math, 10, 10)
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    for case in CASES:
        assert case.operator in EXPRESSIONS or callable(api.named(case.operator))


@pytest.mark.parametrize("feed", FEEDS)
def test_every_feed_has_a_batch_and_a_layout_an_output(feed: str) -> None:
    given = batches(feed, 20, 30, "uint8")
    assert [len(batch) for batch in given] == [32] * len(FEEDS[feed][1])
    assert {case.sizes for case in CASES if case.feed == feed} == {("224", "720p") if feed in SIZED else (feed,)}


@pytest.mark.slow
def test_the_command_measures_both_sides(tmp_path: Path) -> None:
    if package := rounds.missing("dali"):
        pytest.skip(f"the side dali needs {package}: install the extra 'bench'")
    page = tmp_path / "speed.md"
    counts = ["--rounds=1", "--seconds=0.01", "--sizes=224"]
    operators.main(["--only=copy,hue", *counts, f"--output={page}"])
    text = page.with_stem("speed_images").read_text()
    assert "| `copy`" in text
    assert "| `hue`" in text
    assert "Not measured" not in page.read_text()
