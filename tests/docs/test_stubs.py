"""The stubs of `fn` and `ops` are those that the declarations give."""

from __future__ import annotations

from pathlib import Path

import torchdali
import torchdali.ops
from torchdali.stubs import stubs

ROOT = Path(torchdali.__file__).parent


def test_the_stub_files_are_up_to_date():
    stale = [path for path, text in stubs().items() if not (ROOT / path).is_file() or (ROOT / path).read_text() != text]
    assert not stale, f"run `python -m torchdali.stubs` and commit: {stale}"


def test_no_stub_is_left_over():
    written = {str(path.relative_to(ROOT)) for name in ("fn", "ops") for path in (ROOT / name).rglob("*.pyi")}
    assert written == set(stubs())


def test_every_argument_stands_in_the_stub():
    text = stubs()["fn/__init__.pyi"]
    assert "def crop(" in text and "out_of_bounds_policy: str = 'error'" in text
    assert "crop_w: float | DataNode | TensorList = ..." in text
