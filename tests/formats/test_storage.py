"""Files of records."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchdali.formats.storage import MappedFile


def test_a_truncated_mapped_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(range(200)) * 100)
    file = MappedFile(str(tmp_path / "a"))
    assert file.read(19_990, 10).tolist() == [*range(190, 200)]
    os.truncate(tmp_path / "a", 10_000)
    with pytest.raises(RuntimeError, match="a became shorter while it was read: it had 20000 bytes and has 10000"):
        file.read(19_990, 10)


def test_a_replaced_mapped_file_stays_readable(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(range(200)) * 100)
    file = MappedFile(str(tmp_path / "a"))
    (tmp_path / "b").write_bytes(b"short")
    os.replace(tmp_path / "b", tmp_path / "a")
    assert file.read(19_990, 10).tolist() == [*range(190, 200)]
    (tmp_path / "a").unlink()
    assert file.read(0, 3).tolist() == [0, 1, 2]
