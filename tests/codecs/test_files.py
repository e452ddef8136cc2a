"""Files that are read into reused memory."""

from __future__ import annotations

import os
import tracemalloc

import numpy as np
import pytest

from torchdali.codecs import files
from torchdali.codecs.files import read_in_blocks

pytestmark = pytest.mark.skipif(not files._NO_WAIT, reason="the system cannot read only what is in its cache")


@pytest.mark.parametrize("sizes", [[10], [1, 70000, 3], [3 << 20] * 3, [(4 << 20) + 1, 5], [3 << 20] * 7])
def test_files_are_read_in_blocks(tmp_path, sizes):
    rng = np.random.default_rng(1)
    contents = [rng.integers(0, 256, size, np.uint8) for size in sizes]
    paths = [str(tmp_path / str(i)) for i in range(len(sizes))]
    for path, content in zip(paths, contents, strict=True):
        content.tofile(path)
    found, again = read_in_blocks(paths), read_in_blocks(paths)
    for each in (found, again):
        assert each is not None and all(map(np.array_equal, each, contents))


def test_unreadable_files_are_errors(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "one").write_bytes(b"1")
    assert read_in_blocks([str(tmp_path / "one"), str(tmp_path / "empty")]) is None
    with pytest.raises(FileNotFoundError):
        read_in_blocks([str(tmp_path / "none")])
    found = read_in_blocks([str(tmp_path / "one")])
    assert found is not None and found[0].tolist() == [49]


def test_a_large_file_is_mapped_and_its_bytes_are_opened_without_a_copy(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(b"head")
    os.truncate(path, 256 << 20)
    tracemalloc.start()
    with files.open_bytes(files.map_or_read(str(path)).numpy().data) as opened:
        assert opened.read(6) == b"head\0\0"
        assert opened.seek(-2, os.SEEK_END) == (256 << 20) - 2 == opened.tell()
        assert (opened.read(), opened.read(1), opened.seek(1), opened.read(3)) == (b"\0\0", b"", 1, b"ead")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    assert read_in_blocks([str(path)]) is None


def test_an_empty_file_is_read(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    assert not files.map_or_read(str(tmp_path / "empty")).numel()
