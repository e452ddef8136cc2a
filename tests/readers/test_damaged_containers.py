"""Containers with randomly changed bytes: each record is read, or raises an error."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.containers import (
    datum,
    proto,
    protos,
    write_lmdb,
    write_recordio,
    write_tar,
    write_tfrecord,
)
from torchdali import fn
from torchdali.formats import coco as formats
from torchdali.formats.coco_masks import draw
from torchdali.formats.protobuf import write_bytes
from torchdali.formats.tfrecord import write_record
from torchdali.tfrecord import Features, FixedLenFeature, VarLenFeature, float32, int64, string

FEATURES = Features(image=FixedLenFeature((), string, ""), label=FixedLenFeature([2], int64, 0), box=VarLenFeature([2], float32, 0.0))
EXAMPLES = [{"image": b"x" * 30, "label": [i, -i], "box": [0.5] * 4} for i in range(3)]


def tfrecord(path: Path) -> Callable[[str], Any]:
    write_tfrecord(path, EXAMPLES)
    return lambda changed: fn.readers.tfrecord.implementation(path=[changed], features=FEATURES)


def recordio(path: Path) -> Callable[[str], Any]:
    write_recordio(path, [(b"abc" * 5, [1.0]), (b"d", [2.0, 3.0])])
    return lambda changed: fn.readers.mxnet.implementation(path=[changed])


def tar(path: Path) -> Callable[[str], Any]:
    write_tar(path, [("a.jpg", b"1" * 20), ("n" * 120 + ".jpg", b"2"), ("a.cls", b"3")])
    return lambda changed: fn.readers.webdataset.implementation(paths=[changed], ext=["jpg", "cls"])


def lmdb(path: Path) -> Callable[[str], Any]:
    pytest.importorskip("lmdb", reason="the tests write databases by the package lmdb")
    folder = path.with_suffix(".db")
    write_lmdb(folder, [datum(b"abc" * 900 * (i % 2), i) for i in range(9)])
    path.write_bytes((folder / "data.mdb").read_bytes())
    return lambda changed: fn.readers.caffe.implementation(path=[changed])


def caffe2(path: Path) -> Callable[[str], Any]:
    pytest.importorskip("lmdb", reason="the tests write databases by the package lmdb")
    folder = path.with_suffix(".db")
    rest = proto(2, [1, 3]), proto(1, [0.5, 0.25]), proto(2, [1, 2, 3, 4])
    image = proto(3, bytes(range(24)), [2, 4, 3]), proto(4, b"x" * 20)
    write_lmdb(folder, [protos(image[i % 2], *rest) for i in range(4)], 1 << 16)
    path.write_bytes((folder / "data.mdb").read_bytes())
    return lambda changed: fn.readers.caffe2.implementation(path=[changed], label_type=3, num_labels=5, bbox=True)


def fits(path: Path) -> Callable[[str], Any]:
    units = pytest.importorskip("astropy.io.fits", reason="the tests write FITS files by astropy")
    pixels = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    packed = units.CompImageHDU(np.arange(64, dtype=np.int32).reshape(8, 8))
    units.HDUList([units.PrimaryHDU(pixels), packed]).writeto(path)
    return lambda changed: fn.experimental.readers.fits.implementation(files=[changed], hdu_indices=[1, 2])


def npy(path: Path) -> Callable[[str], Any]:
    with open(path, "wb") as file:
        np.save(file, np.arange(12.0).reshape(3, 4))
    return lambda changed: fn.readers.numpy.implementation(files=[changed])


def coco(path: Path) -> Callable[[str], Any]:
    boxes = [{"id": i, "image_id": i % 2, "category_id": 3, "iscrowd": 0, "bbox": [1.5, 2, 30, 40.25],
              "segmentation": [[1, 2, 3.5, 4, 5, 6]] if i else {"size": [4, 4], "counts": [3, 2, 11]}} for i in range(3)]  # fmt: skip
    images = [{"id": i, "file_name": f"{i}.jpg", "width": 4, "height": 4} for i in range(2)]
    path.write_text(json.dumps({"images": images, "categories": [{"id": 3}], "annotations": boxes}))
    return lambda changed: _Annotations(changed)


class _Annotations:
    """Additional outputs of `readers.coco`."""

    def __init__(self, path: str) -> None:
        self._found = formats.parse(path, formats.AnnotationOptions(ratio=True, polygons=True, masks=True))

    def __len__(self) -> int:
        return len(self._found.names)

    def read(self, index: int) -> list[Any]:
        ends = np.cumsum(self._found.counts)
        labels = self._found.labels[ends[index] - self._found.counts[index] : ends[index]]
        try:
            return [self._found.boxes, draw(self._found.sizes[index], self._found.segmentations[index], labels)]
        except ValueError as error:
            raise RuntimeError(error) from None


@pytest.mark.thin(3)
@pytest.mark.filterwarnings("ignore:in .* several components")
@pytest.mark.parametrize("count", [200, pytest.param(3000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", [tfrecord, recordio, tar, lmdb, caffe2, npy, fits, coco])
def test_changed_bytes(tmp_path: Path, make: Callable[[Path], Any], count: int) -> None:
    rng = np.random.default_rng(3)
    opened = make(tmp_path / "a")
    whole, changed = (tmp_path / "a").read_bytes(), tmp_path / "b"
    read = refused = 0
    used = np.flatnonzero(np.frombuffer(whole, np.uint8))
    for _ in range(count):
        data = bytearray(whole)
        for place in rng.choice(used, rng.integers(1, 4)):
            data[place] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.integers(256)])
        changed.write_bytes(data[: rng.integers(len(data))] if rng.random() < 0.2 else data)
        try:
            dataset = opened(str(changed))
            for index in range(len(dataset)):
                assert all(output.nbytes <= 1 << 20 for output in dataset.read(index))
            read += 1
        except (RuntimeError, ValueError) as error:
            assert make is coco or isinstance(error, RuntimeError)
            refused += 1
    assert read and refused


@pytest.mark.parametrize("algorithm, said, changed, message", [
    ("RICE_1", b"ZVAL2   =                    4", b"ZVAL2   =                   -4", "unsupported compression"),
    ("HCOMPRESS_1", bytes.fromhex("dd990000001000000010"), bytes.fromhex("dd990000003900000010"), "must match its region"),
    ("PLIO_1", bytes.fromhex("00000007ff9c"), bytes.fromhex("00008007ff9c"), "must match its region"),
    ("GZIP_1", b"ZNAXIS2 =                   16", b"ZNAXIS2 =           1600000000", "the image must have"),
])  # fmt: skip
def test_a_compressed_image_that_crashes_the_decoder(
    tmp_path: Path, algorithm: str, said: bytes, changed: bytes, message: str
) -> None:
    """Regression: each of these accessed memory out of bounds, or allocated as much as the file stated."""
    units = pytest.importorskip("astropy.io.fits", reason="the tests write FITS files by astropy")
    pixels = (np.arange(256) % 200).astype(np.int16).reshape(16, 16)
    packed = units.CompImageHDU(pixels, compression_type=algorithm, tile_shape=(16, 16) if algorithm == "HCOMPRESS_1" else None)
    units.HDUList([units.PrimaryHDU(), packed]).writeto(tmp_path / "a.fits")
    data = (tmp_path / "a.fits").read_bytes()
    if algorithm == "RICE_1":
        data = data.replace(b"ZVAL2   =                    2", said)
    (tmp_path / "a.fits").write_bytes(data)
    opened = fn.experimental.readers.fits.implementation(files=[str(tmp_path / "a.fits")], hdu_indices=[2])
    if algorithm != "RICE_1":
        np.testing.assert_array_equal(opened.read(0)[0].numpy(), pixels)
    assert said in data
    (tmp_path / "a.fits").write_bytes(data.replace(said, changed, 1))
    with pytest.raises(RuntimeError, match=message):
        opened.read(0)


@pytest.mark.parametrize("name", ["null", "3", "[]", '"a\\u0000b"'])
def test_an_invalid_file_name_in_coco(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(f'{{"images": [{{"id": 1, "file_name": {name}, "width": 4, "height": 4}}], "annotations": []}}')
    with pytest.raises(RuntimeError, match="the file_name of image 1 must be a string"):
        formats.parse(str(path), formats.AnnotationOptions())


def nested(depth: int) -> bytes:
    """Return a message in a message in a message ..."""
    message = b""
    for _ in range(depth):
        message = write_bytes(1, message)
    return message


@pytest.mark.parametrize("payload", [
    nested(5000), b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x0a\x05" * 20000, b"\x0a" + b"\x80" * 100000,
])  # fmt: skip
def test_a_protobuf_bomb(tmp_path: Path, payload: bytes) -> None:
    with open(tmp_path / "a.tfrecord", "wb") as file:
        write_record(file, payload)
    dataset = fn.readers.tfrecord.implementation(path=[str(tmp_path / "a.tfrecord")], features=FEATURES)
    tracemalloc.start()
    try:
        dataset.read(0)
    except RuntimeError as error:
        assert "a.tfrecord at index 0" in str(error)
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 10 << 20


def test_hostile_tar_names_and_sizes(tmp_path: Path) -> None:
    """Names do not cause writes, and sizes beyond the end of the file are rejected."""
    path = Path(write_tar(tmp_path / "a.tar", [("../../a.jpg", b"1"), ("/etc/a.cls", b"2"), ("a.jpg", b"3")]))
    dataset = fn.readers.webdataset.implementation(paths=[str(path)], ext=["jpg"])
    assert [bytes(dataset.read(i)[0].numpy()) for i in range(len(dataset))] == [b"1", b"", b"3"]
    data = bytearray(path.read_bytes())
    data[124:136] = b"77777777777\0"
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    path.write_bytes(data)
    with pytest.raises(RuntimeError, match=r"a\.tar: a member of 8589934591 bytes at 512 reaches beyond"):
        fn.readers.webdataset.implementation(paths=[str(path)], ext=["jpg"])
