"""Programs that use inner names, beside the real DALI."""

from __future__ import annotations

import importlib

import pytest

import torchdali
from tests.helpers.old_programs import PROGRAMS

pytestmark = pytest.mark.parity


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_dali_delivers_the_same(program):
    dali = pytest.importorskip("nvidia.dali")
    importlib.import_module("nvidia.dali.fn")
    assert program(dali) == program(torchdali)
