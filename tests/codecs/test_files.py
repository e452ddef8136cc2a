"""Files that are read into memory that is used again."""

from __future__ import annotations

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


def test_what_cannot_be_read(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "one").write_bytes(b"1")
    assert read_in_blocks([str(tmp_path / "one"), str(tmp_path / "empty")]) is None
    with pytest.raises(FileNotFoundError):
        read_in_blocks([str(tmp_path / "none")])
    found = read_in_blocks([str(tmp_path / "one")])
    assert found is not None and found[0].tolist() == [49]
