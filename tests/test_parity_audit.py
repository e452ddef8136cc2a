"""The audit of the parity tests: what it demands, counts and finds missing."""

from __future__ import annotations

import pytest

from tests import parity_table
from tests.parity_audit import ELSEWHERE, NARROW, Coverage, covered, demanded, short
from tests.parity_table import Case, Tolerance
from torchdali.operator import registry


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
def test_six_three_and_two(found: tuple[int, int, int], enough: bool) -> None:
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


def test_what_is_left_out_has_no_need_to_be_narrow() -> None:
    assert not ELSEWHERE.keys() & NARROW.keys()
    assert all(
        reason for reason in [*ELSEWHERE.values(), *(reason for _, reason in NARROW.values())]
    )


def test_aliases_do_not_count() -> None:
    assert not short([], {"coin_flip": registry["coin_flip"]})


def test_the_page_tells_what_is_missing() -> None:
    assert "## Too few cases\n\n- `rotate`: none\n" in parity_table.page({}, {}, ["`rotate`: none"])
    assert "Too few" not in parity_table.page({}, {})
