"""A saved position contains the files of a reader: other names, or another order, cause a warning."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from torchdali import Loader, Pipeline, fn, pipeline_def, reshard
from torchdali.experimental import dynamic as ndd
from torchdali.reading import file_lists

COUNT = 6


def write_bytes(root: Path) -> None:
    for i in range(COUNT):
        folder = root / f"class{i % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i}.jpg").write_bytes(bytes([i]))


def write_arrays(root: Path) -> None:
    root.mkdir()
    for i in range(COUNT):
        np.save(root / f"{i}.npy", np.full(3, i))


def write_records(root: Path) -> None:
    from torchdali.formats import tar

    root.mkdir()
    for shard in range(2):
        with (root / f"{shard}.tar").open("wb") as file:
            for i in range(3):
                tar.write_member(file, f"{i}.jpg", bytes([i]))
            tar.write_end(file)


def write_coco(root: Path) -> None:
    root.mkdir()
    images = [{"id": i, "file_name": f"{i}.jpg", "width": 4, "height": 4} for i in range(COUNT)]
    for image in images:
        Image.new("RGB", (4, 4)).save(root / image["file_name"])
    (root / "a.json").write_text(json.dumps({"images": images, "annotations": [], "categories": []}))


def write_frames(root: Path) -> None:
    for i in range(3):
        (root / f"clip{i}").mkdir(parents=True)
        for frame in range(2):
            Image.new("RGB", (4, 4)).save(root / f"clip{i}" / f"{frame}.png")


def write_sounds(root: Path) -> None:
    import wave

    root.mkdir()
    lines = []
    for i in range(3):
        with wave.open(str(root / f"{i}.wav"), "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", ""))
            file.writeframes(bytes(80))
        lines.append(json.dumps({"audio_filepath": str(root / f"{i}.wav"), "duration": 0.005, "text": ""}))
    (root / "manifest.json").write_text("\n".join(lines))


def renamed_in(file: str, old: str, new: str) -> Callable[[Path], None]:
    """Return a function that renames a file, also in the file that lists it."""

    def rename(root: Path) -> None:
        (root / old).rename(root / new)
        path = root / file
        path.write_text(path.read_text().replace(old, new))

    return rename


def moved(old: str, new: str) -> Callable[[Path], Any]:
    return lambda root: (root / old).rename(root / new)


READERS: dict[str, tuple[Callable[[Path], None], Callable[[Path], Any], Callable[[Path], Any]]] = {
    "file_root": (write_bytes, lambda root: fn.readers.file(file_root=str(root))[0], moved("class0/0.jpg", "class0/9.jpg")),
    "files": (write_bytes, lambda root: fn.readers.file(files=sorted(map(str, root.glob("*/*"))))[0], moved("class1/1.jpg", "class1/9.jpg")),
    "a class": (write_bytes, lambda root: fn.readers.file(file_root=str(root))[0], moved("class0", "class2")),
    "arrays": (write_arrays, lambda root: fn.readers.numpy(file_root=str(root)), moved("0.npy", "9.npy")),
    "archives": (write_records, lambda root: fn.readers.webdataset(paths=sorted(map(str, root.glob("*.tar"))), ext="jpg"), moved("0.tar", "9.tar")),
    "coco": (write_coco, lambda root: fn.readers.coco(file_root=str(root), annotations_file=str(root / "a.json"))[0], renamed_in("a.json", "0.jpg", "9.jpg")),
    "sequences": (write_frames, lambda root: fn.readers.sequence(file_root=str(root), sequence_length=2), moved("clip0", "clip9")),
    "sounds": (write_sounds, lambda root: fn.readers.nemo_asr(manifest_filepaths=[str(root / "manifest.json")])[0], renamed_in("manifest.json", "0.wav", "9.wav")),
}  # fmt: skip
"""Functions that write the files, read them, and rename one of them."""


@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def read(reader: Callable[[Path], Any], root: Path) -> Any:
    return reader(root)


def warnings_of(pipe: Pipeline, state: dict[str, Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pipe.load_state_dict(state)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("name", READERS)
def test_a_renamed_file_warns_and_a_moved_folder_does_not(name: str, tmp_path: Path) -> None:
    write, reader, rename = READERS[name]
    write(tmp_path / "data")
    pipe = read(reader, tmp_path / "data")
    pipe.run()
    state = json.loads(json.dumps(pipe.state_dict()))
    assert warnings_of(pipe, state) == []
    if name != "sounds":  # whose manifest has absolute paths
        shutil.move(tmp_path / "data", tmp_path / "elsewhere" / "deeper")
        assert warnings_of(read(reader, tmp_path / "elsewhere" / "deeper"), state) == []
        shutil.move(tmp_path / "elsewhere" / "deeper", tmp_path / "data")
    rename(tmp_path / "data")
    (warning,) = warnings_of(read(reader, tmp_path / "data"), state)
    assert "has other files than when the checkpoint was saved" in warning


def test_another_order_of_files_warns(tmp_path: Path) -> None:
    write_bytes(tmp_path / "data")
    files = sorted(map(str, (tmp_path / "data").glob("*/*")))
    pipe = read(lambda root: fn.readers.file(files=files, name="images")[0], tmp_path)
    pipe.run()
    other = read(lambda root: fn.readers.file(files=files[::-1], name="images")[0], tmp_path)
    (warning,) = warnings_of(other, pipe.state_dict())
    assert warning.startswith("reader 'images' has other files")


def test_a_loader_with_other_numbers_of_ranks_warns(tmp_path: Path) -> None:
    write_bytes(tmp_path / "data")

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def labels(shard_id: int = 0, num_shards: int = 1) -> Any:
        return fn.readers.file(file_root=str(tmp_path / "data"), shard_id=shard_id, num_shards=num_shards)[1]

    with Loader(labels()) as loader:
        next(iter(loader))
        place = loader.state_dict()
    pipe = labels()
    pipe.run()
    places = reshard([pipe.state_dict()], 2)
    moved("class0/0.jpg", "class0/9.jpg")(tmp_path / "data")
    with Loader(labels()) as again, pytest.warns(UserWarning, match="other files"):
        again.load_state_dict(place)
    assert all(warnings_of(labels(shard_id=k, num_shards=2), place) for k, place in enumerate(places))


def test_the_dynamic_mode_warns(tmp_path: Path) -> None:
    write_bytes(tmp_path / "data")
    files = sorted(map(str, (tmp_path / "data").glob("*/*")))
    first = ndd.readers.File(files=files)
    next(iter(first.next_epoch(batch_size=2)))
    state = first.get_state()
    ndd.readers.File(files=files).set_state(state)
    with pytest.warns(UserWarning, match="other files"):
        ndd.readers.File(files=files[::-1]).set_state(state)


def test_a_state_of_an_earlier_version_has_no_files(tmp_path: Path) -> None:
    write_bytes(tmp_path / "data")
    pipe = read(READERS["file_root"][1], tmp_path / "data")
    state = pipe.state_dict()
    del state["files"]
    assert warnings_of(pipe, state) == []
    with pytest.raises(RuntimeError, match="'files' must be a dictionary"):
        pipe.load_state_dict({**state, "files": ["a"]})


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("/a/x/1", "/a/y/2"), ("x/1", "y/2"), True),
        (("s3://b/x/1", "s3://b/x/2"), ("/here/1", "/here/2"), True),
        (("a1", "a2"), ("b1", "b2"), False),
        (("x/1", "y/2"), ("x/12", "y/"), False),
        (("x/1", "y/2"), ("y/2", "x/1"), False),
        (("x/1", "y/2"), ("x/1", "y/2", "y/3"), False),
        (("one",), ("other",), True),
        ((), ("one",), True),
    ],
)
def test_digests(one: tuple[str, ...], other: tuple[str, ...], same: bool) -> None:
    assert (file_lists.list_digest(one) == file_lists.list_digest(other)) is same


class OfRecords:
    def identity(self, index: int) -> bytes:
        return b"%d" % index


class OfAll(OfRecords):
    def identity(self, index: int | None = None) -> bytes:
        return b"all" if index is None else super().identity(index)


@pytest.mark.parametrize(("dataset", "identity"), [(object(), None), (OfRecords(), None), (OfAll(), b"all")])
def test_only_datasets_that_list_files_are_compared(dataset: object, identity: bytes | None) -> None:
    assert file_lists.list_identity(dataset) == identity
