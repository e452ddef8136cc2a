"""Find the real data that some tests use; it is not part of the repository.

Set ``TORCHDALI_TEST_DATA`` to a folder with ``imagenet/``, ``formats/``, ``audio/`` ..., or put it at ``shared/data``
next to the checkout. If it is absent, tests that need it skip with a reason.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(
    os.environ.get("TORCHDALI_TEST_DATA")
    or Path(__file__).resolve().parents[3] / "shared" / "data"
)


def folder(name: str) -> Path:
    """Return the path of a data folder; skip the calling test if it is absent."""
    path = ROOT / name
    if not path.exists():
        pytest.skip(f"no real data {name!r}: set TORCHDALI_TEST_DATA (see tests/helpers/data.py)")
    return path
