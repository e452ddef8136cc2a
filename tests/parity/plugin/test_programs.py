"""Programs that use DALI's inner names, run by the real DALI and by torchdali: they see the same."""

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
def test_the_same_is_seen(name: str) -> None:
    expected = results(name, dali)
    assert expected and expected[-1] not in ("AttributeError", "NameError", "TypeError")  # the program is right
    assert results(name, torchdali) == expected
