"""Sparse members of archives: read as by the standard library, or rejected; never more memory than bytes in the file."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.containers import SPARSE_FORMS, sparse_member
from torchdali.formats import tar
from torchdali.formats.storage import open_storage

# size, and offset and number of bytes of stored data
MAPS: dict[str, tuple[int, list[tuple[int, int]]]] = {
    "a hole in front": (8192, [(4096, 512)]),
    "a hole behind": (8192, [(0, 700), (8192, 0)]),
    "nothing but a hole": (5000, [(5000, 0)]),
    "no part at all": (5000, []),
    "an empty file": (0, []),
    "no hole": (1000, [(0, 1000)]),
    "unaligned": (3001, [(7, 13), (1000, 1), (1001, 2), (2999, 2)]),
    "many parts": (100_000, [(i * 1000 + 5, 10 + i % 7) for i in range(100)]),
}
NOT_BY_TARFILE = [("0.1", "no part at all"), ("0.1", "an empty file")]


def stored(extents: list[tuple[int, int]]) -> bytes:
    return bytes(1 + i % 255 for i in range(sum(count for _, count in extents)))


def contents(path: Path) -> list[tuple[str, bytes]]:
    archive = tar.Archive(open_storage(str(path)))
    found = list(archive.members())
    return [(m.name, archive.storage.read(m.offset, m.size).tobytes()) for m in found]


@pytest.mark.parametrize("form", SPARSE_FORMS)
def test_sparse_members_match_the_standard_library(tmp_path: Path, form: str) -> None:
    path = tmp_path / "a.tar"
    maps = [MAPS[name] for name in MAPS if (form, name) not in NOT_BY_TARFILE]
    parts = [sparse_member(form, f"{i}.bin", size, e, stored(e)) for i, (size, e) in enumerate(maps)]
    path.write_bytes(b"".join(parts) + bytes(1024))
    with tarfile.open(path) as archive:
        wanted = [(m.name, archive.extractfile(m).read()) for m in archive]  # type: ignore[union-attr]
    assert [len(content) for _, content in wanted] == [size for size, _ in maps]
    assert contents(path) == wanted


@pytest.mark.skipif(not shutil.which("tar"), reason="GNU tar writes the archive")
@pytest.mark.parametrize("options", [["--format=gnu"], *(["--format=pax", f"--sparse-version={v}"] for v in ("0.0", "0.1", "1.0"))])
def test_archives_of_gnu_tar(tmp_path: Path, options: list[str]) -> None:
    whole = b"begin".ljust(1 << 16, b"\0") + b"middle".ljust(1 << 18, b"\0")
    (tmp_path / "a.bin").write_bytes(whole)
    (tmp_path / "a.cls").write_bytes(b"7")
    with open(tmp_path / "a.bin", "r+b") as file:
        file.truncate(1 << 20)
    command = ["tar", "-S", *options, "-cf", "a.tar", "a.bin", "a.cls"]
    if subprocess.run(command, cwd=tmp_path, capture_output=True).returncode:
        pytest.skip("this tar has no such options")
    assert contents(tmp_path / "a.tar") == [("a.bin", whole.ljust(1 << 20, b"\0")), ("a.cls", b"7")]


def test_zeros_are_read_in_proportion_to_stored_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(sparse_member("1.0", "a.bin", 1 << 25, [(0, 1 << 15)], bytes(1 << 15)) + bytes(1024))
    assert [len(data) for _, data in contents(path)] == [1 << 25]


def test_a_range_across_members(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(b"".join(sparse_member("1.0", f"{n}.bin", 10, [(4, 3)], b"abc") for n in range(2)) + bytes(1024))
    archive = tar.Archive(open_storage(str(path)))
    first, second = (m.offset for m in archive.members())
    both = b"\0\0\0\0abc\0\0\0" * 2
    for start in range(20):
        for stop in range(start, 21):
            assert archive.read(first + start, stop - start).tobytes() == both[start:stop]
    assert archive.read(first - 1024, 1044).tobytes() == bytes(1024) + both
    assert second == first + 10


HOSTILE: dict[str, tuple[str, int, list[tuple[int, int]], bytes, list[tuple[str, Any]], str]] = {
    **{f"2^50 bytes in {f}": (f, 1 << 50, [(0, 3)], b"abc", [], "must have at most .* bytes of zeros") for f in SPARSE_FORMS[1:]},
    "2^32 bytes in S": ("S", 1 << 32, [(0, 3)], b"abc", [], "must have at most .* bytes of zeros"),
    **{f"32 MiB of 3 bytes in {f}": (f, 1 << 25, [(0, 3)], b"abc", [], "must have at most .* bytes of zeros") for f in SPARSE_FORMS},
    "a GiB of 1 KiB": ("1.0", 1 << 30, [(0, 1024)], bytes(1024), [], "must have at most 17825792 bytes of zeros"),
    **{f"more than is stored in {f}": (f, 900, [(0, 600)], b"abc", [], "contradicts its 3 stored") for f in SPARSE_FORMS},
    **{f"beyond the size in {f}": (f, 9, [(7, 3)], b"abc", [], "contradicts its") for f in SPARSE_FORMS},
    **{f"overlap in {f}": (f, 9, [(0, 3), (2, 3)], b"abcdef", [], "contradicts its") for f in SPARSE_FORMS},
    **{f"out of order in {f}": (f, 9, [(5, 3), (0, 3)], b"abcdef", [], "contradicts its") for f in SPARSE_FORMS},
    "another version": ("0.1", 9, [(0, 3)], b"abc", [("GNU.sparse.major", "2")], "sparse format 2.0"),
    "another form": ("0.1", 9, [(0, 3)], b"abc", [("SCHILY.realsize", "9")], "in an unknown format"),
    "no number": ("0.0", 9, [(0, 3)], b"abc", [("GNU.sparse.offset", "x")], "must consist of numbers, got 'x'"),
    "digits without end": ("0.0", 9, [(0, 3)], b"abc", [("GNU.sparse.offset", "9" * 5000)], "must consist of numbers"),
    "half a pair": ("0.0", 9, [(0, 3)], b"abc", [("GNU.sparse.offset", "5")], "must have an even number of entries"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_maps(tmp_path: Path, case: str) -> None:
    form, size, extents, data, more, message = HOSTILE[case]
    path = tmp_path / "a.tar"
    path.write_bytes(sparse_member(form, "a.bin", size, extents, data, more) + bytes(1024))
    with pytest.raises(RuntimeError, match=rf"corrupted tar file .*a\.tar: .*{message}"):
        contents(path)


@pytest.mark.parametrize("lines", [b"", b"x\n", b"999999999999999999\n0\n", b"9" * 600, b"1\n0\n"])
def test_maps_of_content_that_do_not_end(tmp_path: Path, lines: bytes) -> None:
    path = tmp_path / "a.tar"
    whole = sparse_member("1.0", "a.bin", 9, [(0, 3)], b"abc")
    path.write_bytes(whole[:-1024] + lines.ljust(1024, b"\0") + bytes(1024))
    with pytest.raises(RuntimeError, match="sparse member"):
        contents(path)


def test_an_extension_of_the_map_beyond_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(sparse_member("S", "a.bin", 100_000, MAPS["many parts"][1], b"")[:1024])
    with pytest.raises(RuntimeError, match="cannot read 512 bytes"):
        contents(path)
