"""Containers with bytes changed at random: each record is read, or is an error; nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.containers import datum, write_lmdb, write_recordio, write_tar, write_tfrecord
from torchdali import fn
from torchdali.tfrecord import Features, FixedLenFeature, VarLenFeature, float32, int64, string

FEATURES = Features(image=FixedLenFeature((), string, ""), label=FixedLenFeature([2], int64, 0), box=VarLenFeature([2], float32, 0.0))
EXAMPLES = [{"image": b"x" * 30, "label": [i, -i], "box": [0.5] * 4} for i in range(3)]


def tfrecord(path: Path) -> Callable[[str], Any]:
    write_tfrecord(path, EXAMPLES)
    return lambda changed: fn.readers.tfrecord.body(path=[changed], features=FEATURES)


def recordio(path: Path) -> Callable[[str], Any]:
    write_recordio(path, [(b"abc" * 5, [1.0]), (b"d", [2.0, 3.0])])
    return lambda changed: fn.readers.mxnet.body(path=[changed])


def tar(path: Path) -> Callable[[str], Any]:
    write_tar(path, [("a.jpg", b"1" * 20), ("n" * 120 + ".jpg", b"2"), ("a.cls", b"3")])
    return lambda changed: fn.readers.webdataset.body(paths=[changed], ext=["jpg", "cls"])


def lmdb(path: Path) -> Callable[[str], Any]:
    pytest.importorskip("lmdb", reason="the tests write databases by the package lmdb")
    folder = path.with_suffix(".db")
    write_lmdb(folder, [datum(b"abc" * 900 * (i % 2), i) for i in range(9)])
    path.write_bytes((folder / "data.mdb").read_bytes())
    return lambda changed: fn.readers.caffe.body(path=[changed])


def npy(path: Path) -> Callable[[str], Any]:
    with open(path, "wb") as file:
        np.save(file, np.arange(12.0).reshape(3, 4))
    return lambda changed: fn.readers.numpy.body(files=[changed])


@pytest.mark.filterwarnings("ignore:in .* several components")
@pytest.mark.parametrize("count", [200, pytest.param(10000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", [tfrecord, recordio, tar, lmdb, npy])
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
        except RuntimeError:
            refused += 1
    assert read and refused
