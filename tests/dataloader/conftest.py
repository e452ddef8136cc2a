"""Small in-memory batches of images are accelerated in these tests, except in tests of that rule."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers import inside


@pytest.fixture(autouse=True, scope="session")
def small_batches() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        inside.small_batches(patch, 0, 0)
        yield patch
