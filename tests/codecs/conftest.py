"""Fixtures that hide packages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.hidden import LOOKED_FOR, hidden


@pytest.fixture(autouse=True)
def _forget_pyav_import() -> None:
    """Another test may have hidden it."""
    LOOKED_FOR["av"].cache_clear()


@pytest.fixture
def without_pyav() -> Iterator[None]:
    with hidden("av"):
        yield
