"""Batches that are delivered unprocessed: only the user holds their memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.containers import write_recordio
from torchdali import fn, pipeline_def
from torchdali.formats import storage
from torchdali.formats.storage import write_text

COUNT = 32
IMAGES = [bytes([i]) * (7 + 41 * i) for i in range(COUNT)]

def recordio(path: Path) -> None:
    write_recordio(path, [(image, [float(i), 2.0]) for i, image in enumerate(IMAGES)])


def read_all(reader: Any, epochs: int = 1, batch_size: int = COUNT, **arguments: Any) -> Any:
    options = {k: arguments.pop(k) for k in ("bad_samples",) if k in arguments}

    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=None, **options)
    def define() -> Any:
        outputs = reader(**arguments)
        return tuple(outputs) if isinstance(outputs, list) else outputs

    with define() as pipe:
        for _ in range(epochs):
            yield pipe.run()


def test_modified_samples_do_not_change_later_batches(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    recordio(path)
    for images, _ in read_all(fn.readers.mxnet, epochs=6, path=[str(path)]):
        for image, wanted in zip(images.samples(), IMAGES, strict=True):
            assert bytes(image.numpy()) == wanted
            image.fill_(255)


def test_a_repeated_record_has_its_own_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    recordio(path)
    ((images, _),) = read_all(fn.readers.mxnet, batch_size=COUNT + 4, path=[str(path)], pad_last_batch=True)
    images.samples()[-1].fill_(7)
    assert bytes(images.samples()[-2].numpy()) == IMAGES[-1]


def test_a_damaged_record_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.rec"
    recordio(path)
    data = bytearray(path.read_bytes())
    data[0] ^= 255  # the first magic number
    index = tmp_path / "a.idx"
    from torchdali.formats import recordio as format

    found = list(format.scan(storage.open_storage(str(path))))
    path.write_bytes(data)
    write_text(str(index), format.index_text(found))
    (output,) = read_all(fn.readers.mxnet, path=[str(path)], index_path=[str(index)], bad_samples="skip")
    assert [bytes(s.numpy()) for s in output[0].samples()] == IMAGES[1:]
    assert output[0].source_infos is not None and "at index" in output[0].source_infos[0]
    with pytest.raises(RuntimeError, match="wrong magic number"):
        next(read_all(fn.readers.mxnet, path=[str(path)], index_path=[str(index)]))


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
