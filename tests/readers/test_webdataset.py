"""readers.webdataset: what goes beyond DALI's."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.containers import write_tar
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


def test_an_index_of_another_archive(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [("a.jpg", b"1")])
    (tmp_path / "a.idx").write_text("v1.1 1\njpg 512 1000000")
    with pytest.raises(RuntimeError, match=r"a\.idx, line 2: a component of 1000000 bytes"):
        read(paths=path, ext=["jpg"], index_paths=str(tmp_path / "a.idx"))


def test_torn_samples_are_named(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [("a.jpg", b"1"), ("b.jpg", b"2"), ("a.cls", b"3"), ("b.cls", b"4")])
    with pytest.raises(RuntimeError, match=r"The sample 'a' has jpg, and not cls"):
        read(paths=path, ext=["jpg", "cls"], missing_component_behavior="error")


def test_extensions_that_nothing_has(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [("a.jpeg", b"1"), ("b.jpeg", b"2")])
    with pytest.raises(RuntimeError, match=r"no member of .*a\.tar has an extension .* samples have jpeg"):
        read(paths=path, ext=["jpg"], missing_component_behavior="skip")
    with pytest.warns(UserWarning, match=r"no member of .*a\.tar has an extension"):
        assert read(paths=path, ext=["jpg"]) == [[b"", b""]]
