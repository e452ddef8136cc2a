"""Path arguments of readers accept `pathlib` objects, too."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from tests.helpers.containers import datum, proto, protos, write_lmdb, write_recordio, write_tar, write_tfrecord
from tests.helpers.encoded_audio import speech, wav
from torchdali import Pipeline, dynamic
from torchdali.declaration.registry import Operator, registry
from torchdali.declaration.schema import split
from torchdali.tfrecord import FixedLenFeature, int64

Arguments = dict[str, Any]


def is_path(operator: Operator, name: str) -> bool:
    """Return True for an argument that is a path, or a list of them."""
    base, marks, _ = split(operator.schema.arguments[name].annotation)
    elements = [split(each)[1] for each in getattr(base, "__args__", ())]
    return "path" in marks or any("path" in each for each in elements)


READERS = {o.name: o for o in registry.values() if o.kind == "reader" and not o.hidden}
PATHS = [(o.name, name) for o in READERS.values() for name in o.schema.arguments if is_path(o, name)]


class PathLike:
    """A path-like object outside of `pathlib`, whose `str` differs from its path."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return self.path


@pytest.mark.parametrize(("reader", "name"), PATHS)
def test_arguments_accept_paths(reader: str, name: str) -> None:
    convert = READERS[reader].schema.arguments[name].convert
    assert convert(Path("a")) == convert(PathLike("a")) == convert("a")
    if convert("a") == ["a"]:
        assert convert([Path("a"), "b", PathLike("c")]) == convert(("a", "b", "c")) == ["a", "b", "c"]


def files(folder: Path) -> Arguments:
    for i in range(2):
        (folder / f"{i}").mkdir()
        (folder / f"{i}" / "a.jpg").write_bytes(bytes([i]))
    (folder / "list.txt").write_text("0/a.jpg 3\n1/a.jpg 4\n")
    return {"file_root": str(folder)}


def in_list(folder: Path) -> Arguments:
    return files(folder) | {"file_list": str(folder / "list.txt")}


def named(folder: Path) -> Arguments:
    files(folder)
    return {"files": [str(folder / "0/a.jpg"), str(folder / "1/a.jpg")]}


def arrays(folder: Path) -> Arguments:
    np.save(folder / "a.npy", np.ones(3))
    np.save(folder / "b.npy", np.zeros(3))
    return {"file_root": str(folder)}


def some_arrays(folder: Path) -> Arguments:
    arrays(folder)
    return {"files": [str(folder / "a.npy")]}


def listed_arrays(folder: Path) -> Arguments:
    (folder / "list.txt").write_text("a.npy\nb.npy\n")
    return arrays(folder) | {"file_list": str(folder / "list.txt")}


def archive(folder: Path) -> Arguments:
    return {"paths": [write_tar(folder / "a.tar", [("a.jpg", b"1"), ("b.jpg", b"2")])], "ext": ["jpg"]}


def examples(folder: Path) -> Arguments:
    path, index = write_tfrecord(folder / "a.tfrecord", [{"label": [i]} for i in range(3)])
    return {"path": path, "index_path": index, "features": {"label": FixedLenFeature([], int64, -1)}}


def recordio(folder: Path) -> Arguments:
    path, index = write_recordio(folder / "a.rec", [(b"abc", [1.0]), (b"de", [2.0])])
    return {"path": [path], "index_path": [index]}


def caffe(folder: Path) -> Arguments:
    pytest.importorskip("lmdb")
    return {"path": write_lmdb(folder / "db", [datum(b"abc", 1)])}


def caffe2(folder: Path) -> Arguments:
    pytest.importorskip("lmdb")
    return {"path": write_lmdb(folder / "db", [protos(proto(4, b"abc", (1,)), proto(2, [5], (1,)))])}


def coco(folder: Path) -> Arguments:
    (folder / "a.jpg").write_bytes(b"abc")
    images = [{"id": 1, "file_name": "a.jpg", "width": 4, "height": 4}]
    boxes = [{"id": 1, "image_id": 1, "category_id": 3, "bbox": [0, 0, 2, 2], "iscrowd": 0, "area": 4}]
    text = json.dumps({"images": images, "categories": [{"id": 3}], "annotations": boxes})
    (folder / "annotations.json").write_text(text)
    return {"file_root": str(folder), "annotations_file": str(folder / "annotations.json")}


def sounds(folder: Path) -> Arguments:
    (folder / "a.wav").write_bytes(wav(speech(80)).tobytes())
    entry = {"audio_filepath": str(folder / "a.wav"), "text": "a", "duration": 0.005}
    (folder / "m.json").write_text(json.dumps(entry))
    return {"manifest_filepaths": [str(folder / "m.json")]}


def frames(folder: Path) -> Arguments:
    (folder / "a").mkdir()
    for i in range(2):
        PIL.Image.new("RGB", (4, 4), (i, 0, 0)).save(folder / "a" / f"{i}.png")
    return {"file_root": str(folder), "sequence_length": 2}


CASES = [
    ("readers.file", files), ("readers.file", named), ("readers.file", in_list), ("readers.numpy", arrays),
    ("readers.numpy", some_arrays), ("readers.numpy", listed_arrays), ("readers.webdataset", archive),
    ("readers.tfrecord", examples), ("readers.mxnet", recordio), ("readers.caffe", caffe), ("readers.caffe2", caffe2),
    ("readers.coco", coco), ("readers.nemo_asr", sounds), ("readers.sequence", frames),
]  # fmt: skip


@pytest.mark.parametrize(("reader", "make"), CASES)
def test_readers_read_paths(reader: str, make: Callable[[Path], Arguments], tmp_path: Path) -> None:
    arguments = make(tmp_path)
    as_paths = {
        name: value if not is_path(READERS[reader], name) else list(map(Path, value)) if isinstance(value, list) else Path(value)
        for name, value in arguments.items()
    }  # fmt: skip
    assert as_paths != arguments
    assert read(reader, as_paths) == read(reader, arguments)


def read(reader: str, arguments: Arguments) -> list[Any]:
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        outputs = READERS[reader].function(**arguments, name="Reader")
        outputs = outputs.values() if isinstance(outputs, dict) else outputs
        pipe.set_outputs(*(outputs if not hasattr(outputs, "source") else [outputs]))
    with pipe:
        return [output.at(0).tolist() for output in pipe.run()]


def test_the_dynamic_mode_accepts_paths(tmp_path: Path) -> None:
    frames(tmp_path)
    one = tmp_path / "a" / "0.png"
    ((images, _),) = dynamic.readers.File(files=[one]).next_epoch(batch_size=1)
    assert dynamic.decoders.image(images).torch().shape == (1, 4, 4, 3)
    assert dynamic.imread(one).shape == dynamic.imread(str(one)).shape == (4, 4, 3)
