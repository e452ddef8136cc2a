"""readers.webdataset: features beyond DALI's."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.containers import SPARSE_FORMS, link, sparse_member, write_tar
from tests.helpers.lines import lines_of
from torchdali import fn, pipeline_def


def read(batch_size: int = 2, **arguments: Any) -> list[list[bytes]]:
    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=None)
    def define() -> Any:
        outputs = fn.readers.webdataset(**arguments)
        return tuple(outputs) if isinstance(outputs, list) else outputs

    pipe = define()
    try:
        return [[bytes(o.at(i).tobytes()) for i in range(len(o))] for o in pipe.run()]
    finally:
        pipe.close()


def test_names_of_pax_headers(tmp_path: Path) -> None:
    members = [("é" * 60 + "/" + "b" * 80 + ".jpg", b"1"), ("x" * 150 + ".jpg", b"2"), ("x" * 150 + ".cls", b"3")]
    path = write_tar(tmp_path / "a.tar", members, tarfile.PAX_FORMAT)
    assert read(paths=path, ext=["jpg", "cls"]) == [[b"1", b"2"], [b"", b"3"]]


def test_a_missing_index_is_written_with_a_warning(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [("a.jpg", b"1"), ("a.cls", b"2"), ("b.jpg", b"3")])
    index = tmp_path / "a.idx"
    with pytest.warns(UserWarning, match="does not exist") as said:
        wanted = read(paths=path, ext=["jpg"], index_paths=str(index))
    assert lines_of(said) == ["outputs = fn.readers.webdataset(**arguments)"]
    assert index.read_text() == "v1.2 2\njpg 512 1 a.jpg cls 1536 1 a.cls\njpg 2560 1 b.jpg\n"
    assert read(paths=path, ext=["jpg"], index_paths=str(index)) == wanted == [[b"1", b"3"]]


def test_several_matches_warn(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [("a.jpg", b"1"), ("a.png", b"2"), ("b.png", b"3")])
    with pytest.warns(UserWarning, match="several components") as said:
        assert read(paths=path, ext=["png;jpg"]) == [[b"1", b"3"]]
    assert lines_of(said) == ["outputs = fn.readers.webdataset(**arguments)"]


def test_the_case_of_extensions(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [("a.jpg", b"1"), ("b.JPG", b"2")])
    assert read(paths=path, ext=["Jpg"], case_sensitive_extensions=False) == [[b"1", b"2"]]
    assert read(paths=path, ext=["JPG"]) == [[b"", b"2"]]


def test_an_index_of_another_archive(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [("a.jpg", b"1")])
    (tmp_path / "a.idx").write_text("v1.1 1\njpg 512 1000000")
    with pytest.raises(RuntimeError, match=r"a\.idx, line 2: a component of 1000000 bytes"):
        read(paths=path, ext=["jpg"], index_paths=str(tmp_path / "a.idx"))


def test_errors_name_incomplete_samples(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [("a.jpg", b"1"), ("b.jpg", b"2"), ("a.cls", b"3"), ("b.cls", b"4")])
    with pytest.raises(RuntimeError, match=r"The sample 'a' has jpg, but not cls"):
        read(paths=path, ext=["jpg", "cls"], missing_component_behavior="error")


def test_extensions_without_any_member(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [("a.jpeg", b"1"), ("b.jpeg", b"2")])
    with pytest.raises(RuntimeError, match=r"no member of .*a\.tar has a requested extension.* samples have jpeg"):
        read(paths=path, ext=["jpg"], missing_component_behavior="skip")
    with pytest.warns(UserWarning, match=r"no member of .*a\.tar has a requested extension"):
        assert read(paths=path, ext=["jpg"]) == [[b"", b""]]


def linked(path: Path, form: str) -> str:
    """Write two samples: a sparse array with its label, and hard links to both."""
    sparse = sparse_member(form, "a.bin", 5000, [(4096, 3)], b"abc")
    rest = Path(write_tar(path, [("a.cls", b"1"), ("b.bin", link("a.bin")), ("b.cls", link("a.cls"))])).read_bytes()
    path.write_bytes(sparse + rest)
    return str(path)


WHOLE = b"abc".rjust(4099, b"\0").ljust(5000, b"\0")


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("form", SPARSE_FORMS)
def test_sparse_members_and_hard_links(tmp_path: Path, form: str, mapped: bool) -> None:
    path = linked(tmp_path / "a.tar", form)
    found = read(paths=path, ext=["bin", "cls"], missing_component_behavior="error", dont_use_mmap=not mapped)
    assert found == [[WHOLE, WHOLE], [b"1", b"1"]]


def test_sparse_members_by_url(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    path = linked(tmp_path / "a.tar", "1.0")
    assert read(paths=f"file://{path}", ext=["bin", "cls"]) == [[WHOLE, WHOLE], [b"1", b"1"]]


@pytest.mark.parametrize("form", SPARSE_FORMS)
def test_an_index_of_sparse_members_is_rejected(tmp_path: Path, form: str) -> None:
    path, index = linked(tmp_path / "a.tar", form), tmp_path / "a.idx"
    with pytest.warns(UserWarning, match="does not exist"), pytest.raises(RuntimeError, match=r"member 'a\.bin' is sparse"):
        read(paths=path, ext=["bin"], index_paths=str(index))
    assert not index.exists()
    index.write_text("v1.2 1\nbin 1536 515 GNUSparseFile.7/a.bin\n")  # by an older version
    with pytest.raises(RuntimeError, match="sparse member, which an index cannot"):
        read(paths=path, ext=["bin"], index_paths=str(index))


def test_an_index_has_hard_links(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [("a.jpg", b"A"), ("b.jpg", link("a.jpg"))])
    with pytest.warns(UserWarning, match="does not exist"):
        assert read(paths=path, ext=["jpg"], index_paths=str(tmp_path / "a.idx")) == [[b"A", b"A"]]
    assert (tmp_path / "a.idx").read_text() == "v1.2 2\njpg 512 1 a.jpg\njpg 512 1 b.jpg\n"


@pytest.mark.parametrize("behavior, count", [("empty", 2), ("skip", 1)])
def test_symbolic_links_warn(tmp_path: Path, behavior: str, count: int) -> None:
    path = write_tar(tmp_path / "a.tar", [("a.jpg", b"A"), ("a.cls", b"1"), ("b.jpg", "a.jpg"), ("b.cls", b"2")])
    with pytest.warns(UserWarning, match=r"a\.tar: .*for example 'b\.jpg', a symbolic link to 'a\.jpg'") as said:
        found = read(count, paths=path, ext=["jpg", "cls"], missing_component_behavior=behavior)
    assert found == [[b"A", b""][:count], [b"1", b"2"][:count]]
    assert lines_of(said) == ["outputs = fn.readers.webdataset(**arguments)"]


def test_the_source_info_of_a_sparse_member_is_its_file_offset(tmp_path: Path) -> None:
    path = linked(tmp_path / "a.tar", "1.0")

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.readers.webdataset(paths=path, ext=["bin"])

    with define() as pipe:
        (batch,) = pipe.run()
        assert batch[0].source_info() == f"{path}:2048:a.bin"  # after two headers, the records and the map
