"""Databases against the real library."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.containers import write_lmdb
from torchdali.formats import lmdb
from torchdali.formats.storage import open_storage

pytest.importorskip("lmdb", reason="the tests write databases by the package lmdb")


def read_entries(path: str) -> list[tuple[bytes, bytes]]:
    storage = open_storage(lmdb.data_file(path))
    return [(e.key, storage.read(e.offset, e.size).tobytes()) for e in lmdb.read_entries(storage)]


SIZES = {"none": [], "one": [3], "inline and large": [0, 1, 100, 2000, 5000, 200000, 7], "a deep tree": [40] * 5000}


@pytest.mark.parametrize("case", SIZES)
def test_entries(tmp_path: Path, case: str) -> None:
    rng = np.random.default_rng(1)
    values = [rng.bytes(size) for size in SIZES[case]]
    path = write_lmdb(tmp_path / "db", values)
    wanted = [(b"%08d" % number, value) for number, value in enumerate(values)]
    assert read_entries(path) == wanted
    assert read_entries(f"{path}/data.mdb") == wanted


def test_the_newest_transaction_counts(tmp_path: Path) -> None:
    path = write_lmdb(tmp_path / "db", [b"a", b"b"])
    for value in (b"c", b"d", b"e"):
        write_lmdb(tmp_path / "db", [value])
        assert read_entries(path) == [(b"00000000", value), (b"00000001", b"b")]


def test_a_tree_in_a_circle(tmp_path: Path) -> None:
    """A branch page that is its own child, and a depth that matches."""
    path = Path(write_lmdb(tmp_path / "db", [b"v" * 40] * 5000)) / "data.mdb"
    data = bytearray(path.read_bytes())
    meta = max((0, 4096), key=lambda at: struct.unpack_from("<Q", data, at + 16 + 24 + 96 + 8)[0])
    (root,) = struct.unpack_from("<Q", data, meta + 16 + 24 + 48 + 40)
    struct.pack_into("<H", data, meta + 16 + 24 + 48 + 6, 9)
    (lower,) = struct.unpack_from("<H", data, root * 4096 + 12)
    for node in struct.unpack_from(f"<{(lower - 16) // 2}H", data, root * 4096 + 16):
        struct.pack_into("<I", data, root * 4096 + node, root)
    path.write_bytes(data)
    with pytest.raises(RuntimeError, match="circle"):
        read_entries(str(path))


@pytest.mark.parametrize("content", [b"", b"x" * 9000, bytes(9000)])
def test_other_files(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data.mdb").write_bytes(content)
    with pytest.raises(RuntimeError, match="not an LMDB database"):
        read_entries(str(tmp_path))
