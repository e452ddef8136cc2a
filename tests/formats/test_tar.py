"""Archives against the standard library, and rejected archives."""

from __future__ import annotations

import io
import re
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.containers import link, sparse_member, write_tar
from torchdali.formats import tar
from torchdali.formats.storage import open_storage, read_text, write_text

LONG = "d" * 120 + "/" + "n" * 180 + ".jpg"
MEMBERS = [
    ("a.jpg", b"a1"), ("dir", None), ("dir/b.cls", b"x" * 1025), ("empty.txt", b""), ("link.jpg", "a.jpg"),
    (LONG, b"long"), ("ümlaut.jpg", b"u"), ("p" * 90 + "/" + "q" * 90 + ".jpg", b"prefix"), ("no space.txt", b"1"),
]  # fmt: skip


def members(path: str) -> list[tar.Member]:
    return list(tar.Archive(open_storage(path)).members())


@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_members_match_the_standard_library(tmp_path: Path, format: int) -> None:
    path = write_tar(tmp_path / "a.tar", MEMBERS, format)
    with tarfile.open(path) as archive:
        wanted = [(m.name, m.offset_data, m.size, m.offset) for m in archive if m.isreg()]
    assert [tuple(member) for member in members(path)] == wanted


def test_written_archives_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    content = {"a.jpg": b"1" * 700, "b/c.cls": b"", "x" * 100: b"2" * 512}
    with open(path, "wb") as file:
        for name, data in content.items():
            before = file.tell()
            assert tar.write_member(file, name, data) == file.tell() - before
        tar.write_end(file)
    with tarfile.open(path) as archive:
        assert {m.name: archive.extractfile(m).read() for m in archive} == content  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["", "x" * 101])
def test_names_that_do_not_fit(name: str) -> None:
    with pytest.raises(ValueError, match="1 to 100 bytes"):
        tar.write_member(io.BytesIO(), name, b"")


def damaged(data: bytearray, at: int, content: bytes) -> bytearray:
    """Change a header and correct its checksum."""
    data[at : at + len(content)] = content
    start = at // 512 * 512
    data[start + 148 : start + 156] = b" " * 8
    data[start + 148 : start + 156] = b"%06o\0 " % sum(data[start : start + 512])
    return data


HOSTILE = {
    "a size beyond the end": (124, b"77777777777\0", "reaches beyond the end"),
    "a size of base 256": (124, b"\xff" * 12, "reaches beyond the end"),
    "a name without end": (124, b"00077777777\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0L", "the name in the header"),
    "no number": (124, b"-0000000007\0", "must be a number"),
    "letters": (124, b"hello world\0", "must be a number"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_headers(tmp_path: Path, case: str) -> None:
    at, content, message = HOSTILE[case]
    path = Path(write_tar(tmp_path / "a.tar", [("a.jpg", b"abc"), ("b.jpg", b"d")]))
    data = damaged(bytearray(path.read_bytes()), at, content[:12])
    if len(content) > 12:
        data = damaged(data, 156, content[-1:])
    path.write_bytes(data)
    with pytest.raises(RuntimeError, match=message):
        members(str(path))


@pytest.mark.parametrize("record", [b"99 path=x\n", b"x path=x\n", b"11 path+x\n", b"14 size=-111\n", b"9999999999 path=x\n"])
def test_hostile_pax_headers(tmp_path: Path, record: bytes) -> None:
    path = write_tar(tmp_path / "a.tar", [("x", (tarfile.XHDTYPE, record)), ("a.jpg", b"abc")])
    with pytest.raises(RuntimeError, match="pax header"):
        members(path)


def test_a_pax_header_gives_name_and_size(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [("x", (tarfile.XHDTYPE, b"14 path=new.b\n9 size=2\n")), ("a.jpg", b"abc")])
    assert [(m.name, m.size) for m in members(path)] == [("new.b", 2)]


SPLITS = {
    "a.jpg": ("a", "jpg"), "d.e/a.x.jpg": ("d.e/a", "x.jpg"), ".hidden": ("", "hidden"), "d/.h": ("d/", "h"),
    "plain": ("plain", ""), "d/plain": ("d/plain", ""),
}  # fmt: skip


@pytest.mark.parametrize("path", SPLITS)
def test_split_name(path: str) -> None:
    assert tar.split_name(path) == SPLITS[path]


@pytest.mark.parametrize(("name", "version"), [("a.jpg", "v1.2"), ("a b.jpg", "v1.1")])
def test_an_index_reproduces_the_samples(tmp_path: Path, name: str, version: str) -> None:
    path = write_tar(tmp_path / "a.tar", [(name, b"abc"), ("a.cls", b"1"), ("z.cls", b"2")])
    storage = open_storage(path)
    samples = list(tar.read_indexable_samples(storage))
    write_text(str(tmp_path / "a.idx"), tar.index_text(samples))
    assert (tmp_path / "a.idx").read_text().startswith(version)
    found = tar.parse_index(read_text(str(tmp_path / "a.idx")), "a.idx", storage)
    assert [[part[:3] for part in s] for s in found] == [[part[:3] for part in s] for s in samples]


def test_an_index_cannot_hold_spaces_in_extensions() -> None:
    with pytest.raises(RuntimeError, match="space"):
        tar.index_text([[("j pg", 512, 1, "a.j pg")]])


Linked = list[tuple[str, Any]]
LINKS: dict[str, Linked] = {
    "to a file": [("a.jpg", b"A"), ("b.jpg", link("a.jpg"))],
    "to a link": [("a.jpg", b"A"), ("b.jpg", link("a.jpg")), ("c.jpg", link("b.jpg"))],
    "in another spelling": [("./d/a.jpg", b"A"), ("b.jpg", link("d//a.jpg"))],
    "to the later of two": [("a.jpg", b"A"), ("a.jpg", b"B"), ("b.jpg", link("a.jpg"))],
    "over itself": [("a.jpg", b"A"), ("a.jpg", link("a.jpg")), ("b.jpg", link("a.jpg"))],
    "long names": [(LONG, b"A"), (f"x{LONG}", link(LONG)), ("b.jpg", link(f"x{LONG}"))],
    "an empty file": [("a.jpg", b""), ("b.jpg", link("a.jpg"))],
}


@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("case", LINKS)
def test_hard_links_match_the_standard_library(tmp_path: Path, case: str, format: int) -> None:
    path = write_tar(tmp_path / "a.tar", LINKS[case], format)
    with tarfile.open(path) as archive:
        wanted = [(m.name, archive.extractfile(m).read()) for m in archive if m.name != "a.jpg" or not m.islnk()]  # type: ignore[union-attr]
    storage = open_storage(path)
    found = [(m.name, storage.read(m.offset, m.size).tobytes()) for m in members(path)]
    assert [each for each in found if each[0] != "a.jpg"] == [each for each in wanted if each[0] != "a.jpg"]
    assert len(found) == len(LINKS[case])


def test_a_hard_link_to_a_sparse_file(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    linked = Path(write_tar(tmp_path / "b.tar", [("b.bin", link("a.bin"))])).read_bytes()
    path.write_bytes(sparse_member("1.0", "a.bin", 9, [(4, 3)], b"abc") + linked)
    archive = tar.Archive(open_storage(str(path)))
    assert [archive.read(m.offset, m.size).tobytes() for m in archive.members()] == [b"\0\0\0\0abc\0\0"] * 2


NO_FILES: dict[str, tuple[Any, str]] = {
    "symbolic link": ("a.jpg", "'b.jpg', a symbolic link to 'a.jpg'"),
    "hard link to nothing": (link("z.jpg"), "'b.jpg', a hard link to 'z.jpg', and no file before it"),
    "hard link to what comes later": (link("c.jpg"), "'b.jpg', a hard link to 'c.jpg', and no file before it"),
    "hard link to itself": (link("b.jpg"), "'b.jpg', a hard link to 'b.jpg', and no file before it"),
    "hard link to a folder": (link("d"), "'b.jpg', a hard link to 'd', and no file before it"),
    "character device": ((tarfile.CHRTYPE, b""), "'b.jpg', a device"),
    "block device": ((tarfile.BLKTYPE, b""), "'b.jpg', a device"),
    "pipe": ((tarfile.FIFOTYPE, b""), "'b.jpg', a named pipe (FIFO)"),
    "part of a file": ((b"M", b"123"), "'b.jpg', the end of a file"),
}  # fmt: skip


@pytest.mark.parametrize("case", NO_FILES)
def test_errors_name_members_that_are_not_files(tmp_path: Path, case: str) -> None:
    content, text = NO_FILES[case]
    path = write_tar(tmp_path / "a.tar", [("a.jpg", b"A"), ("d", None), ("b.jpg", content), ("c.jpg", b"C")])
    archive = tar.Archive(open_storage(path))
    with pytest.warns(UserWarning, match=rf"a\.tar: members that aren't files .* 1 in total, for example {re.escape(text)}"):
        assert [sample[0][3] for sample in tar.read_samples(archive)] == ["a.jpg", "c.jpg"]
    assert [offset for offset, _ in archive.skipped] == [1536]


def test_time_is_linear_in_the_size_of_a_pax_header(tmp_path: Path) -> None:
    text = b"6 a=b\n" * 170_000
    path = write_tar(tmp_path / "a.tar", [("x", (tarfile.XHDTYPE, text)), ("a.jpg", b"abc")])
    start = time.process_time()
    assert [m.name for m in members(path)] == ["a.jpg"]
    assert time.process_time() - start < 2  # quadratic time was 5 s
