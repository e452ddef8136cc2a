"""Small batches of images in memory are accelerated in these tests, unless one asks for the rule."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from torchdali.dataloader import _picture_plans


@pytest.fixture(autouse=True, scope="session")
def small_batches() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_picture_plans, "FEW", 0)
        patch.setattr(_picture_plans, "FEW_MOVED", 0)
        yield patch
