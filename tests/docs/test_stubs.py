"""The stubs of `fn`, `ops` and the dynamic mode are those that the declarations give."""

from __future__ import annotations

from pathlib import Path

import torchdali
import torchdali.ops
from torchdali import dynamic
from torchdali.experimental.dynamic import _stubs as of_dynamic
from torchdali.stubs import stubs

ROOT = Path(torchdali.__file__).parent
ALL = {**stubs(), **of_dynamic.stubs()}


def test_the_stub_files_are_up_to_date():
    stale = [path for path, text in ALL.items() if not (ROOT / path).is_file() or (ROOT / path).read_text() != text]
    assert not stale, f"run `python -m torchdali.stubs` and commit: {stale}"


def test_no_stub_is_left_over():
    written = {str(path.relative_to(ROOT)) for name in ("fn", "ops", "experimental") for path in (ROOT / name).rglob("*.pyi")}
    assert written == set(ALL)


def test_every_argument_stands_in_the_stub():
    text = stubs()["fn/__init__.pyi"]
    assert "def crop(" in text and "out_of_bounds_policy: str = 'error'" in text
    assert "crop_w: float | DataNode | TensorList = ..." in text


def test_the_dynamic_modes_own_names_stand_in_its_stub():
    text = ALL["experimental/dynamic/__init__.pyi"]
    for name in dynamic.__all__:
        assert f" import {name} as {name}\n" in text or f"\ndef {name}(" in text, name
    assert "def crop(\n    input: Batch,\n    /," in text
    assert "class File(Reader):" in ALL["experimental/dynamic/readers.pyi"]
    assert "from torchdali.experimental.dynamic._rng import RNG as RNG" in ALL["experimental/dynamic/random.pyi"]
