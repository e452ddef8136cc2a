"""The audit of the parity tests: its demands, counts and missing cases."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.check import Result, distance
from tests.helpers import pages, parity_table
from tests.helpers.parity_audit import ELSEWHERE, NARROW, Coverage, covered, demanded, far, short
from tests.helpers.parity_table import Case, Distance, Tolerance
from torchdali.declaration.registry import registry


def cases(name: str, arguments: int, types: int, layouts: int) -> list[Case]:
    """Return a case for each of several arguments, types and layouts."""
    return [
        Case(name, f"angle={i}", frozenset({f"type {k}"}), frozenset({f"layout {n}"}), Tolerance(0, 0), 1.0)
        for i in range(arguments)
        for k in range(types)
        for n in range(layouts)
    ]  # fmt: skip


def test_cases_are_counted() -> None:
    assert covered([*cases("rotate", 2, 3, 1), *cases("flip", 1, 1, 2)]) == {
        "rotate": Coverage(2, 3, 1),
        "flip": Coverage(1, 1, 2),
    }


@pytest.mark.parametrize(
    ("found", "enough"),
    [
        ((6, 3, 2), True),
        ((5, 3, 2), False),
        ((6, 2, 2), False),
        ((6, 3, 1), False),
        ((9, 9, 9), True),
    ],
)
def test_demands_are_six_combinations_three_dtypes_and_two_layouts(found: tuple[int, int, int], enough: bool) -> None:
    rotate = {"rotate": registry["rotate"]}
    assert (not short(cases("rotate", *found), rotate)) is enough


def test_an_operator_without_cases_is_found() -> None:
    assert short([], {"rotate": registry["rotate"]}) == {"rotate": (Coverage(), Coverage(6, 3, 2))}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("flip", Coverage(6, 3, 2)),
        ("paste", Coverage(6, 1, 1)),  # bytes, HWC
        ("sphere", Coverage(6, 2, 1)),
        ("transforms.rotation", Coverage(6)),  # no input
        ("copy", Coverage(1, 3, 2)),  # no arguments
    ],
)
def test_demands_follow_the_declaration(name: str, wanted: Coverage) -> None:
    assert demanded(registry[name]) == wanted


def test_exempt_operators_need_no_narrow_entry() -> None:
    assert not ELSEWHERE.keys() & NARROW.keys()
    assert all(
        reason for reason in [*ELSEWHERE.values(), *(reason for _, reason in NARROW.values())]
    )


@pytest.mark.parametrize(
    ("distance", "close"),
    [
        (Distance(off=0.01), True),
        (Distance(off=0.011), False),
        (Distance(error=1e-4), True),
        (Distance(error=1.1e-4), False),
        (Distance(), True),
    ],
)
def test_results_must_be_close(distance: Distance, close: bool) -> None:
    (case,) = cases("rotate", 1, 1, 1)
    assert (not far([replace(case, distance=distance)])) is close


def result(*values: float, dtype: str = "float32") -> list[Result]:
    return [Result([np.array(values, dtype)], "")]


@pytest.mark.parametrize(
    ("found", "wanted", "far"),
    [
        (result(1, 2, 3, 5, dtype="uint8"), result(1, 3, 3, 3, dtype="uint8"), Distance(0.25, None, 2, 0.75)),
        (result(1, 2, 4), result(1, 3, 4), Distance(error=0.25, mean_error=1 / 12)),
        (result(math.nan, math.inf), result(math.nan, math.inf), Distance(error=0.0, mean_error=0.0)),
        (result(2048.0, dtype="float16"), result(2050.0, dtype="float16"), Distance(error=0.0, mean_error=0.0)),
        (result(), result(), Distance()),
        ([*result(1.0), *result(7, dtype="int8")], [*result(1.0), *result(7, dtype="int8")], Distance(*[0.0] * 5)),
    ],
)  # fmt: skip
def test_distances(found: list[Result], wanted: list[Result], far: Distance) -> None:
    assert distance(found, wanted) == far


def test_aliases_do_not_count() -> None:
    assert not short([], {"coin_flip": registry["coin_flip"]})


def test_readers_do_not_count() -> None:
    assert not short([], {"readers.file": registry["readers.file"]})


def test_the_page_lists_missing_cases() -> None:
    assert parity_table.pages({}, {}, ["`rotate`: none"])[""].endswith("## Too few cases, or results too far off\n\n- `rotate`: none\n")
    assert "Too few" not in parity_table.pages({}, {})[""]


def test_the_pages_match_the_documentation() -> None:
    """The pages keep the headings that the tests write, and state their author."""
    for suffix, page in parity_table.pages({}, {}).items():
        text = (pages.ROOT / "benchmarks" / f"parity{suffix}.md").read_text(encoding="utf-8")
        assert text.splitlines()[0] == page.splitlines()[0]
        assert parity_table.COMMAND in page and parity_table.COMMAND in text
