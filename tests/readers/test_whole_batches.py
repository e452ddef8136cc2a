"""Batches that a reader gives as a whole: they are what it reads record by record, and the user's alone."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.containers import (
    datum,
    proto,
    protos,
    write_lmdb,
    write_recordio,
    write_tar,
    write_tfrecord,
)
from torchdali import fn, pipeline_def
from torchdali.formats import storage
from torchdali.tfrecord import Features, FixedLenFeature, VarLenFeature, float32, int64, string

COUNT = 32
FEATURES = {
    "image": FixedLenFeature((), string, ""),
    "label": FixedLenFeature([1], int64, 0),
    "box": FixedLenFeature([2, 2], float32, 0.0),
    "points": VarLenFeature([2], float32, 0.0),
    "ids": VarLenFeature(int64, 0),
    "filled": FixedLenFeature([3], int64, -1),
}
IMAGES = [bytes([i]) * (7 + 41 * i) for i in range(COUNT)]

Open = Callable[[str], Any]


def example(i: int) -> dict[str, Any]:
    row: dict[str, Any] = {"image": IMAGES[i], "other": [1, 2], "label": [i * 1000 - 5000], "box": [i + 0.5] * 4}
    row |= {"points": [i / 2] * 2 * (i % 4 + 1), "ids": list(range(i % 5 + 1)), "filled": [-i * 300] * (i % 3 + 1)}
    return dict(sorted(row.items(), reverse=i % 3 == 0))  # entries have no order


def tfrecord(path: Path) -> Open:
    write_tfrecord(path, [example(i) for i in range(COUNT)])
    return lambda changed: fn.readers.tfrecord.body(path=[changed], features=Features(**FEATURES))


def recordio(path: Path) -> Open:
    write_recordio(path, [(image, [float(i), 2.0]) for i, image in enumerate(IMAGES)])
    return lambda changed: fn.readers.mxnet.body(path=[changed])


def tar(path: Path) -> Open:
    members = [(f"{i:03}.{e}", c) for i in range(COUNT) for e, c in (("jpg", IMAGES[i]), ("cls", b"%d" % i))]
    write_tar(path, members)
    return lambda changed: fn.readers.webdataset.body(paths=[changed], ext=["jpg", "cls"])


def lmdb(path: Path) -> Open:
    pytest.importorskip("lmdb", reason="the tests write databases by the package lmdb")
    folder = path.with_suffix(".db")
    write_lmdb(folder, [datum(image, i) for i, image in enumerate(IMAGES)])
    path.write_bytes((folder / "data.mdb").read_bytes())
    return lambda changed: fn.readers.caffe.body(path=[changed])


def caffe2(path: Path) -> Open:
    pytest.importorskip("lmdb", reason="the tests write databases by the package lmdb")
    folder = path.with_suffix(".db")
    rows = [protos(proto(4, image), proto(2, [i]), proto(1, [0.5] * (i % 3))) for i, image in enumerate(IMAGES)]
    write_lmdb(folder, rows)
    path.write_bytes((folder / "data.mdb").read_bytes())
    return lambda changed: fn.readers.caffe2.body(path=[changed], additional_inputs=1)


KINDS = {"tfrecord": tfrecord, "recordio": recordio, "tar": tar, "lmdb": lmdb, "caffe2": caffe2}


def whole(dataset: Any, records: Any = None) -> Any:
    return dataset.read_batch(np.arange(COUNT) if records is None else records, torch_empty)


def torch_empty(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype)


def assert_same(dataset: Any, batches: Any, records: Any) -> None:
    for i, record in enumerate(records):
        for batch, wanted in zip(batches, dataset.read(int(record)), strict=True):
            torch.testing.assert_close(batch.samples()[i], wanted, rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_what_its_records_are(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "container"
    dataset = KINDS[kind](path)(str(path))
    for seed in range(3):
        records = np.random.default_rng(seed).permutation(COUNT)
        batches = whole(dataset, records)
        assert batches is not None
        assert [b.shape() for b in batches] == [[tuple(s.shape) for s in b.samples()] for b in batches]
        assert_same(dataset, batches, records)


@pytest.mark.parametrize("kind", KINDS)
def test_changed_bytes_give_what_records_give_or_nothing(tmp_path: Path, kind: str) -> None:
    path, changed = tmp_path / "container", tmp_path / "changed"
    open_, rng, whole_ones = KINDS[kind](path), np.random.default_rng(0), 0
    good = np.frombuffer(path.read_bytes(), np.uint8)
    for _ in range(150):
        data = good.copy()
        data[rng.integers(0, len(data), rng.integers(1, 30))] = rng.integers(0, 256)
        changed.unlink(missing_ok=True)  # what is mapped stays as it is
        changed.write_bytes(data.tobytes())
        try:
            dataset = open_(str(changed))
        except RuntimeError:
            continue
        try:
            records = np.arange(len(dataset))
            batches = whole(dataset, records)
        except Exception:
            continue
        if batches is not None:
            whole_ones += 1
            assert_same(dataset, batches, records)
    assert whole_ones


def read_all(reader: Any, epochs: int = 1, batch_size: int = COUNT, **arguments: Any) -> Any:
    options = {k: arguments.pop(k) for k in ("bad_samples",) if k in arguments}

    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=None, **options)
    def define() -> Any:
        outputs = reader(**arguments)
        return tuple(outputs) if isinstance(outputs, list) else outputs

    with define() as pipe:
        for _ in range(epochs):
            yield pipe.run()


def test_what_a_user_writes_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    recordio(path)
    for images, _ in read_all(fn.readers.mxnet, epochs=6, path=[str(path)]):
        for image, wanted in zip(images.samples(), IMAGES, strict=True):
            assert bytes(image.numpy()) == wanted
            image.fill_(255)


def test_a_record_that_is_there_twice_has_memory_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    recordio(path)
    ((images, _),) = read_all(fn.readers.mxnet, batch_size=COUNT + 4, path=[str(path)], pad_last_batch=True)
    images.samples()[-1].fill_(7)
    assert bytes(images.samples()[-2].numpy()) == IMAGES[-1]


def test_samples_are_saved_without_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    dataset = recordio(path)(str(path))
    images = whole(dataset)[0]
    assert images.samples()[3].untyped_storage().nbytes() == len(IMAGES[3])
    again = pickle.loads(pickle.dumps(images))
    assert [bytes(s.numpy()) for s in again.samples()] == IMAGES


def test_one_damaged_record_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    recordio(path)
    data = bytearray(path.read_bytes())
    data[0] ^= 255  # the first magic number
    index = tmp_path / "a.idx"
    from torchdali.formats import recordio as format

    found = list(format.scan(storage.open_storage(str(path))))
    path.write_bytes(data)
    format.write_index(str(index), found)
    (output,) = read_all(fn.readers.mxnet, path=[str(path)], index_path=[str(index)], bad_samples="skip")
    assert [bytes(s.numpy()) for s in output[0].samples()] == IMAGES[1:]
    assert output[0].source_infos is not None and "at index" in output[0].source_infos[0]
    with pytest.raises(RuntimeError, match="wrong magic number"):
        next(read_all(fn.readers.mxnet, path=[str(path)], index_path=[str(index)]))


def test_a_file_that_was_replaced_is_not_mapped_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    dataset = recordio(path)(str(path))
    assert whole(dataset) is not None
    other = tmp_path / "other"
    other.write_bytes(bytes(path.stat().st_size))
    os.replace(other, path)
    assert whole(dataset) is None
    assert bytes(dataset.read(2)[0].numpy()) == IMAGES[2]


def test_mappings_are_limited_and_go_with_their_samples(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    dataset = recordio(path)(str(path))
    before, kept = len(storage._private), []
    while (batch := whole(dataset)) is not None:
        kept.append(batch[0].samples()[0])
        assert len(kept) <= storage._MOST_PRIVATE
    kept.clear()
    assert len(storage._private) == before
    assert whole(dataset) is not None


@pytest.mark.parametrize("batch_size", [3, COUNT])
def test_files_and_arrays(tmp_path: Path, batch_size: int) -> None:
    for i, image in enumerate(IMAGES):
        (tmp_path / f"{i:02}.jpg").write_bytes(image)
        np.save(tmp_path / f"{i:02}.npy", np.full((3, 5), i, np.float32))
    files = [str(tmp_path / f"{i:02}.jpg") for i in range(COUNT)]
    arguments = {"batch_size": batch_size, "epochs": 4}
    for number, (images, labels) in enumerate(read_all(fn.readers.file, files=files, **arguments)):
        wanted = [(number * batch_size + i) % COUNT for i in range(batch_size)]
        assert [bytes(s.numpy()) for s in images.samples()] == [IMAGES[i] for i in wanted]
        assert labels.as_tensor().torch().flatten().tolist() == wanted
        assert list(images.source_infos) == [files[i] for i in wanted]
        images.samples()[0].fill_(99)
    arrays = read_all(fn.readers.numpy, file_root=str(tmp_path), **arguments)
    for number, (batch,) in enumerate(arrays):
        wanted = [(number * batch_size + i) % COUNT for i in range(batch_size)]
        assert batch.as_tensor().torch()[:, 0, 0].tolist() == wanted
        batch.as_tensor().torch().fill_(-1)


def test_arrays_of_other_shapes_and_files_that_became_shorter(tmp_path: Path) -> None:
    for i in range(COUNT):
        np.save(tmp_path / f"{i:02}.npy", np.full((3, 5) if i % 16 else (2, 2), i, np.float32))
    for (batch,) in read_all(fn.readers.numpy, file_root=str(tmp_path), epochs=3):
        assert [s.flatten()[0].item() for s in batch.samples()] == list(range(COUNT))
    np.save(tmp_path / "00.npy", np.zeros((3, 5), np.float32))
    np.save(tmp_path / "16.npy", np.full((3, 5), 16, np.float32))
    (tmp_path / "07.npy").write_bytes((tmp_path / "07.npy").read_bytes()[:-4])
    with pytest.raises(RuntimeError, match=r"07\.npy"):
        list(read_all(fn.readers.numpy, file_root=str(tmp_path), epochs=3))
