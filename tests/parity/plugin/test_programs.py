"""Programs that use DALI's internal names return the same with the real DALI and torchdali."""

from __future__ import annotations

import logging

import pytest

import torchdali
from tests.helpers.programs import PROGRAMS, results

pytestmark = pytest.mark.parity
dali = pytest.importorskip(
    "nvidia.dali", reason="the parity tests compare with the real DALI: install the extra 'parity'"
)


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.ERROR)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_observe_the_same(name: str) -> None:
    expected = results(name, dali)
    assert expected and expected[-1] not in ("AttributeError", "NameError", "TypeError")  # the program is correct
    assert results(name, torchdali) == expected
