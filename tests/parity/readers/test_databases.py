"""readers.caffe, readers.caffe2 and readers.mxnet against the real DALI."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.containers import datum, proto, protos, write_lmdb, write_recordio
from tests.helpers.libraries import agree
from torchdali.formats.recordio import write_record

pytestmark = pytest.mark.golden
pytest.importorskip("lmdb", reason="the tests write databases by the package lmdb")

EXCEPTIONS = {
    "readers.caffe": "`random_shuffle` shuffles the whole epoch",
    "readers.caffe2": "`label_type=1` works, `label_type=3` returns indices and weights, and a box without labels is "
    "found (DALI fails, or its process ends); a record without the image or label is an error",
    "readers.mxnet": "reads several files, and files without an index; `random_shuffle` shuffles the whole epoch",
}
ENCODED = proto(4, b"jpegbytes", (1,))
LABEL = proto(2, [5], (1,))

DATUMS = {
    "encoded": [datum(b"abc", 5, encoded=1), datum(b"defg", -7, encoded=1)],
    "raw": [datum(b"abcdef", 5, channels=3, height=2, width=1), datum(b"abcdef", channels=3, height=2, width=1)],
    "no shape": [datum(b"abcdef", 5), datum(label=3)],
    "damaged": [b"\xff\xff\xff", b""],
}
CAFFE: dict[str, dict[str, Any]] = {
    "both": {}, "images": {"label_available": False}, "labels": {"image_available": False},
    "read": {"dont_use_mmap": True}, "shards": {"num_shards": 2, "shard_id": 1}, "too many shards": {"num_shards": 3},
}  # fmt: skip


@pytest.mark.parametrize("arguments", CAFFE)
@pytest.mark.parametrize("values", DATUMS)
def test_caffe(tmp_path: Path, values: str, arguments: str) -> None:
    path = write_lmdb(tmp_path / "db", DATUMS[values])
    agree(lambda lib: lib.fn.readers.caffe(path=path, **CAFFE[arguments]))
    agree(lambda lib: lib.fn.readers.caffe(path=[path, path], **CAFFE[arguments]), batch_size=4)


@pytest.mark.parametrize("kind", ["missing", "junk", "none"])
def test_no_database(tmp_path: Path, kind: str) -> None:
    (tmp_path / "db").mkdir()
    if kind == "junk":
        (tmp_path / "db/data.mdb").write_bytes(b"x" * 9000)
    path: Any = [] if kind == "none" else str(tmp_path / ("db" if kind == "junk" else "nope"))
    assert agree(lambda lib: lib.fn.readers.caffe(path=path)) is RuntimeError


FOUR, FOURTH = proto(2, [1, 2, 3, 4], (4,)), proto(1, [1.0, 2.0, 3.0, 4.0], (4,))
RECORDS: dict[str, tuple[list[bytes], dict[str, Any]]] = {
    "single": ([ENCODED, LABEL], {}),
    "dense": ([ENCODED, proto(2, [1, 0, 1, 0])], {"label_type": 2, "num_labels": 4}),
    "dense floats": ([ENCODED, proto(1, [1.0, 0.0, 0.5])], {"label_type": 2, "num_labels": 3}),
    "none": ([ENCODED], {"label_type": 4}),
    "a float as the label": ([ENCODED, proto(1, [1.0])], {}),
    "two labels": ([ENCODED, proto(2, [1, 2])], {}),
    "box": ([ENCODED, LABEL, FOUR], {"bbox": True}),
    "box of floats": ([ENCODED, LABEL, FOURTH], {"bbox": True}),
    "one more": ([ENCODED, LABEL, FOUR], {"additional_inputs": 1}),
    "one more, floats": ([ENCODED, LABEL, FOURTH], {"additional_inputs": 1}),
    "two more": ([ENCODED, LABEL, FOURTH, proto(2, [9, 8])], {"additional_inputs": 2}),
    "a string more": ([ENCODED, LABEL, proto(4, b"abc")], {"additional_inputs": 1}),
    "bytes": ([proto(3, b"abcdef", (1, 2, 3)), LABEL], {}),
    "no image": ([LABEL], {"image_available": False}),
    "an image that is none": ([LABEL], {}),
    "type 5": ([ENCODED, LABEL], {"label_type": 5}),
    "type -1": ([ENCODED, LABEL], {"label_type": -1}),
}


@pytest.mark.parametrize("case", RECORDS)
def test_caffe2(tmp_path: Path, case: str) -> None:
    tensors, arguments = RECORDS[case]
    path = write_lmdb(tmp_path / "db", [protos(*tensors)] * 2)
    agree(lambda lib: lib.fn.readers.caffe2(path=path, **arguments))


IMAGES = {
    "plain": [(b"abc", [3.0]), (b"defgh", [4.5])],
    "several labels": [(b"abc", [1.0, 2.0, 3.0]), (b"q", [9.0])],
    "an empty image": [(b"", [3.0]), (b"d", [4.5])],
}
INDICES = {
    "none": None, "another order": "1\t36\n0\t0\n", "empty": "", "a number": "0\n", "words": "a b\n", "inside": "0\t4\n",
    "negative": "0\t-4\n", "beyond": "0\t100000\n", "one": "5\t0\n", "twice": "0\t0\n1\t0\n",
}  # fmt: skip


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("images", IMAGES)
def test_mxnet(tmp_path: Path, images: str, mapped: bool) -> None:
    path, index = write_recordio(tmp_path / "a.rec", IMAGES[images])
    agree(lambda lib: lib.fn.readers.mxnet(path=path, index_path=index, dont_use_mmap=not mapped))


@pytest.mark.parametrize("index", INDICES)
def test_indices_of_mxnet(tmp_path: Path, index: str) -> None:
    path, written = write_recordio(tmp_path / "a.rec", IMAGES["plain"])
    if INDICES[index] is not None:
        Path(written).write_text(INDICES[index])
    agree(lambda lib: lib.fn.readers.mxnet(path=path, index_path=written))


@pytest.mark.parametrize("kept", [3, 20, 50, 75])
def test_truncated_files_of_mxnet(tmp_path: Path, kept: int) -> None:
    path, index = write_recordio(tmp_path / "a.rec", IMAGES["plain"])
    Path(path).write_bytes(Path(path).read_bytes()[:kept])
    Path(index).write_text("0\t0\n")
    agree(lambda lib: lib.fn.readers.mxnet(path=path, index_path=index), batch_size=1)


def test_records_in_parts(tmp_path: Path) -> None:
    def part(kind: int, data: bytes) -> bytes:
        return struct.pack("<II", 0xCED7230A, kind << 29 | len(data)) + data + bytes(-len(data) % 4)

    whole = struct.pack("<IfQQ", 0, 7.0, 0, 0) + b"12345678"
    (tmp_path / "a.rec").write_bytes(part(1, whole) + part(2, b"xxxx") + part(3, b"yyyyy"))
    (tmp_path / "i").write_text("0\t0\n")
    agree(lambda lib: lib.fn.readers.mxnet(path=str(tmp_path / "a.rec"), index_path=str(tmp_path / "i")))


def test_a_record_too_short_for_an_image(tmp_path: Path) -> None:
    with open(tmp_path / "a.rec", "wb") as file:
        write_record(file, b"1234")
    (tmp_path / "i").write_text("0\t0\n")
    found = agree(lambda lib: lib.fn.readers.mxnet(path=str(tmp_path / "a.rec"), index_path=str(tmp_path / "i")))
    assert found is RuntimeError
