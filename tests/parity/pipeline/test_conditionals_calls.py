"""Conditionals in callables of a pipeline function, compared with the real DALI."""

from __future__ import annotations

import pytest

import torchdali
from tests.helpers.called_things import OURS_ALONE, THINGS, results

pytestmark = pytest.mark.parity


@pytest.mark.parametrize("name", [name for name in THINGS if name not in OURS_ALONE])
def test_dali_finds_the_same_ifs(name):
    dali = pytest.importorskip("nvidia.dali")
    assert results(dali, THINGS[name]) == results(torchdali, THINGS[name])
