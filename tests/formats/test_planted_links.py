"""Files that are written next to data, in a folder of other users: planted links are not followed, and pipes do not block."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from torchdali import fn, pipeline_def
from torchdali.containers import pack
from torchdali.experimental.dynamic.checkpoint import Checkpoint
from torchdali.formats import coco, coco_saved, nemo, storage, tfrecord

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links and pipes")


def _annotations(folder: Path) -> coco.Annotations:
    path = folder.parent / "annotations.json"
    annotation = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "segmentation": [[0, 0, 1, 0, 1, 1]]}
    path.write_text(json.dumps({"images": [{"id": 1, "file_name": "a"}], "annotations": [annotation]}))
    return coco.parse(str(path), coco.AnnotationOptions(polygons=True))


def _dumped(folder: Path) -> None:
    before = Path.cwd()
    os.chdir(folder)
    try:
        fn.dump_image(torch.zeros(2, 2, 3, dtype=torch.uint8), suffix="x")
    finally:
        os.chdir(before)


def _checkpoint(folder: Path) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define() -> Any:
        return fn.constant(idata=[1])

    define().checkpoint(str(folder / "state.json"))


def _packed(folder: Path) -> None:
    images = folder.parent / f"images of {folder.name}" / "a"
    images.mkdir(parents=True)
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(images / "0.png")
    pack(str(images.parent), str(folder))


WRITERS: dict[str, Callable[[Path], object]] = {
    "index": lambda folder: storage.write_text(str(folder / "a.idx"), "0 10\n"),
    "coco": lambda folder: coco_saved.save(_annotations(folder), str(folder)),
    "dump_image": _dumped, "checkpoint": _checkpoint, "pack": _packed,
    "dynamic": lambda folder: Checkpoint().save(folder / "state.json"),
}  # fmt: skip


@pytest.mark.parametrize("target", ["precious", "new"])
@pytest.mark.parametrize("writer", WRITERS)
def test_links_that_replace_files_are_not_followed(writer: str, target: str, tmp_path: Path) -> None:
    for name in ("known", "shared"):
        (tmp_path / name).mkdir()
    WRITERS[writer](tmp_path / "known")
    names = sorted(path.name for path in (tmp_path / "known").iterdir())
    (tmp_path / "precious").write_bytes(b"precious")
    unread = [name for name in names if name not in ("pack.json", "classes.txt")]  # an existing plan is read
    for name in (*unread, *(f"{name}.part" for name in unread), *(f"{name}.{os.getpid()}.part" for name in unread)):
        (tmp_path / "shared" / name).symlink_to(tmp_path / target)
    if writer == "pack":
        for name in unread:
            (tmp_path / "shared" / name).unlink()  # an existing shard is kept
    WRITERS[writer](tmp_path / "shared")
    assert (tmp_path / "precious").read_bytes() == b"precious" and not (tmp_path / "new").exists()
    assert all(not (tmp_path / "shared" / name).is_symlink() for name in names)


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "index": ("a.idx", lambda folder: storage.read_text(str(folder / "a.idx"))),
    "nemo": ("a.json", lambda folder: nemo.read_manifest(str(folder / "a.json"), 0, 0)),
    "coco": ("a.json", lambda folder: coco.parse(str(folder / "a.json"), coco.AnnotationOptions())),
    "saved names": ("filenames.dat", lambda folder: coco_saved.load(str(folder), True, True)),
    "saved boxes": ("boxes.dat", lambda folder: coco_saved.load(str(folder), True, True)),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_without_a_writer_does_not_block(reader: str, tmp_path: Path) -> None:
    name, read = READERS[reader]
    (tmp_path / "folder").mkdir()
    if reader.startswith("saved"):
        coco_saved.save(_annotations(tmp_path / "folder"), str(tmp_path / "folder"))
        (tmp_path / "folder" / name).unlink()
    os.mkfifo(tmp_path / "folder" / name)
    with pytest.raises(RuntimeError, match="must not be a pipe"):
        read(tmp_path / "folder")


def test_a_pipe_of_a_shell_is_read() -> None:
    there, here = os.pipe()
    os.write(here, b"0 16\n")
    os.close(here)
    try:
        assert tfrecord.parse_index(storage.read_text(f"/dev/fd/{there}"), "").tolist() == [[0, 16]]
    finally:
        os.close(there)
