"""Fixtures that take packages away."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from torchdali.codecs import _flac


@pytest.fixture(autouse=True)
def _pyav_is_looked_for_anew() -> None:
    """A test elsewhere may have hidden it."""
    _flac._av.cache_clear()


@pytest.fixture
def without_pyav(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "av", None)
    _flac._av.cache_clear()
    yield
    _flac._av.cache_clear()
