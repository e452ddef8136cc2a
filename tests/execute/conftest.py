"""Give these tests their own threads and free memory: many count them, and earlier tests may have left pipelines."""

from __future__ import annotations

import weakref

import pytest

from torchdali.execute import thread_pool
from torchdali.tensors import buffer_pool


@pytest.fixture(autouse=True)
def _own_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "_workers", weakref.WeakValueDictionary())
    monkeypatch.setattr(buffer_pool, "_plain", weakref.WeakValueDictionary())
