"""readers.caffe2 and readers.mxnet: features beyond DALI's; the parity tests cover readers.caffe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.containers import proto, protos, write_lmdb, write_recordio
from torchdali import fn, pipeline_def

ENCODED, LABEL = proto(4, b"jpegbytes", (1,)), proto(2, [5], (1,))


def read(reader: Any, batch_size: int = 1, **arguments: Any) -> list[Any]:
    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=None)
    def define() -> Any:
        outputs = reader(**arguments)
        return tuple(outputs) if isinstance(outputs, list) else outputs

    pipe = define()
    try:
        return [[np.array(o.at(i)) for i in range(batch_size)] for o in pipe.run()]
    finally:
        pipe.close()


CASES: dict[str, tuple[list[bytes], dict[str, Any], Any]] = {
    "sparse": ([ENCODED, proto(2, [1, 3])], {"label_type": 1, "num_labels": 5}, [[0, 1, 0, 1, 0]]),
    "weighted": ([ENCODED, proto(2, [1, 3]), proto(1, [0.25, 0.5])], {"label_type": 3, "num_labels": 5}, [[1, 3], [0.25, 0.5]]),
    "box alone": ([ENCODED, proto(2, [1, 2, 3, 4])], {"label_type": 4, "bbox": True}, [[1, 2, 3, 4]]),
    "box and more": ([ENCODED, LABEL, proto(2, [9]), proto(2, [1, 2, 3, 4])], {"additional_inputs": 1, "bbox": True}, [[5], [9], [1, 2, 3, 4]]),
}  # fmt: skip
WRONG: dict[str, tuple[list[bytes], dict[str, Any], str]] = {
    "a label too many": ([ENCODED, proto(2, [7])], {"label_type": 1, "num_labels": 5}, "between 0 and 4"),
    "a weight too few": ([ENCODED, proto(2, [1, 2]), proto(1, [0.5])], {"label_type": 3, "num_labels": 5}, "2 labels and 1 weights"),
    "no label": ([ENCODED], {}, "fewer tensors"),
    "a box of three": ([ENCODED, proto(2, [1, 2, 3])], {"label_type": 4, "bbox": True}, "four int32 numbers"),
    "bytes that are no image": ([proto(3, b"abc", (2, 2, 1)), LABEL], {}, "expected an image of shape"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_tensors_of_caffe2(tmp_path: Path, case: str) -> None:
    pytest.importorskip("lmdb", reason="the tests write databases by the package lmdb")
    tensors, arguments, wanted = CASES[case]
    path = write_lmdb(tmp_path / "db", [protos(*tensors)])
    image, *rest = read(fn.readers.caffe2, path=path, **arguments)
    assert image[0].tobytes() == b"jpegbytes"
    assert [values[0].tolist() for values in rest] == wanted


@pytest.mark.parametrize("case", WRONG)
def test_other_tensors_of_caffe2(tmp_path: Path, case: str) -> None:
    pytest.importorskip("lmdb", reason="the tests write databases by the package lmdb")
    tensors, arguments, message = WRONG[case]
    path = write_lmdb(tmp_path / "db", [protos(*tensors)])
    with pytest.raises(RuntimeError, match=message):
        read(fn.readers.caffe2, path=path, **arguments)


def test_mxnet_reads_several_files_without_indices(tmp_path: Path) -> None:
    paths = [write_recordio(tmp_path / f"{i}.rec", [(b"%d" % i, [float(i)])] * 2)[0] for i in range(3)]
    images, labels = read(fn.readers.mxnet, 6, path=paths)
    assert [image.tobytes() for image in images] == [b"0", b"0", b"1", b"1", b"2", b"2"]
    assert [label.tolist() for label in labels] == [[0], [0], [1], [1], [2], [2]]


def test_an_index_of_mxnet_is_written_with_a_warning(tmp_path: Path) -> None:
    path, index = write_recordio(tmp_path / "a.rec", [(b"abc", [1.0]), (b"d", [2.0])])
    wanted = Path(index).read_text()
    Path(index).unlink()
    with pytest.warns(UserWarning, match="does not exist"):
        read(fn.readers.mxnet, path=path, index_path=index)
    assert Path(index).read_text() == wanted
