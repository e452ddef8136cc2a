"""Files of unexpected formats: each reader and decoder names the actual format, and the cure."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from torchdali import fn, pipeline_def, tfrecord
from torchdali.codecs.images import FORMATS
from torchdali.codecs.signatures import describe_content


def _archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("readme.txt", "x" * 200)
    return file.getvalue()


def _image(format: str) -> bytes:
    file = io.BytesIO()
    PIL.Image.new("RGB", (8, 8)).save(file, format)
    return file.getvalue()


def _array() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros(100))
    return file.getvalue()


FILES = {
    "Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n", "git lfs pull"),
    "git-annex": (b"/annex/objects/SHA256E-s123--4d7a21.jpg\n", "git annex get"),
    "gzip": (gzip.compress(bytes(range(256)) * 20, mtime=1), "gunzip"),
    # FFmpeg mistakes its header for an H.263 stream.
    "gzip of a certain second": (gzip.compress(bytes(range(256)) * 20, mtime=0x6B0A8200), "gunzip"),
    "ZIP": (_archive(), "unpack it first"),
    "HTML": (b"\n<!DOCTYPE html>\n<html><head><title>404</title></head></html>", "download the file again"),
    "HTML without a type": (b"\xef\xbb\xbf<HTML><body>Please sign in</body></HTML>", "download the file again"),
    "error of S3": (b'<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code></Error>', "download the file again"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(range(64)), "fn.readers.dataset"),
    "PDF": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj", "a PDF document"),
}
FEATURES = {"a": tfrecord.FixedLenFeature((), tfrecord.int64, 0)}


def _write_index(path: Path, text: str) -> str:
    index = Path(f"{path}.index")
    index.write_text(text)
    return str(index)


READERS: dict[str, Callable[[Path], Any]] = {
    "decoders.image": lambda path: fn.decoders.image(fn.readers.file(files=[str(path)])[0]),
    "decoders.audio": lambda path: fn.decoders.audio(fn.readers.file(files=[str(path)])[0])[0],
    "decoders.video": lambda path: fn.experimental.decoders.video(fn.readers.file(files=[str(path)])[0]),
    "readers.video": lambda path: fn.readers.video(filenames=[str(path)], sequence_length=2),
    "readers.numpy": lambda path: fn.readers.numpy(files=[str(path)]),
    "readers.tfrecord": lambda path: fn.readers.tfrecord(
        path=[str(path)], index_path=[_write_index(path, f"0 {path.stat().st_size}\n")], features=FEATURES
    )["a"],
    "readers.tfrecord, index": lambda path: fn.readers.tfrecord(
        path=[_write_index(path, "")], index_path=[str(path)], features=FEATURES
    )["a"],
    "readers.mxnet": lambda path: fn.readers.mxnet(path=[str(path)], index_path=[_write_index(path, "0\t0\n")])[0],
    "readers.webdataset": lambda path: fn.readers.webdataset(paths=[str(path)], ext=["jpg"]),
    "readers.webdataset, index": lambda path: fn.readers.webdataset(
        paths=[_write_index(path, "")], index_paths=[str(path)], ext=["jpg"]
    ),
    "readers.coco": lambda path: fn.readers.coco(file_root=str(path.parent), annotations_file=str(path))[0],
    "readers.nemo_asr": lambda path: fn.readers.nemo_asr(manifest_filepaths=[str(path)])[0],
    "readers.file, list": lambda path: fn.readers.file(file_root=str(path.parent), file_list=str(path))[0],
    "readers.video, list": lambda path: fn.readers.video(file_list=str(path), sequence_length=2)[0],
    "readers.caffe": lambda path: fn.readers.caffe(path=str(path.parent))[0],
}
NEEDS = {"decoders.audio": "soundfile", "decoders.video": "av", "readers.video": "av"}


@pytest.mark.thin(7)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", FILES)
def test_errors_name_the_actual_format(reader: str, kind: str, tmp_path: Path) -> None:
    if reader in NEEDS:
        pytest.importorskip(NEEDS[reader])
    content, cure = FILES[kind]
    path = tmp_path / "data.mdb"  # the name matters only to LMDB
    path.write_bytes(content)

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipe() -> Any:
        return READERS[reader](path)

    with pytest.raises(RuntimeError) as raised:
        made = pipe()
        made.build()
        made.run()
    assert cure in str(raised.value)
    assert str(path) in str(raised.value)


def test_errors_name_zeros_and_text() -> None:
    assert "begins with zeros" in describe_content(bytes(2000))
    assert describe_content(b"") == "; it is empty"
    assert describe_content(b"name,label\na.jpg,1\n").startswith("; it is text: 'name,label")
    assert describe_content(b' {"error": "AccessDenied"}').startswith("; it is JSON: ")
    assert describe_content(bytes(range(128, 256))) == ""


@pytest.mark.parametrize(("format", "ending"), [("GIF", ".gif"), *((each.name, end) for each in FORMATS.values() for end in each.extensions)])
def test_image_formats_are_recognized(format: str, ending: str) -> None:
    PIL.Image.init()
    data = _image(PIL.Image.registered_extensions()[ending])
    assert describe_content(data) == f"; it is a {format} image", "add the format to torchdali/codecs/signatures.py"
    assert describe_content(data, "image") == ""


def test_records_are_not_mistaken_for_other_formats() -> None:
    """A TFRecord file starts with the length of a record: two bytes do not identify a format."""
    assert [n for n in range(1 << 16) if describe_content(n.to_bytes(8, "little") + b"\x93\xf2\x1a\x07" + b"\x0a\x80" * 20)] == []


@pytest.mark.parametrize("name", ["PAR1/a.jpg", "GIF89a/a.jpg", "abcdftyp/a.jpg", "fLaC/a.jpg", "BM1234/a.jpg", "7z/a.jpg"])
def test_lists_may_start_with_any_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_bytes(_image("JPEG"))
    (tmp_path / "list.txt").write_text(f"{name} 3\n")

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipe() -> Any:
        return tuple(fn.readers.file(file_root=str(tmp_path), file_list=str(tmp_path / "list.txt")))

    assert pipe().run()[1].as_array().tolist() == [[3]]
