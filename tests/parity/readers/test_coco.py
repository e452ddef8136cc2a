"""readers.coco against the real DALI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.check import compare
from tests.helpers.data import folder as real_data
from tests.helpers.libraries import agree, batches

pytestmark = pytest.mark.golden

EXCEPTIONS = {
    "readers.coco": "truncated JSON is an error (DALI's process ends); ids may be written as 1.0 and may repeat; mask "
    "pixels whose centers are exactly on a polygon's border may differ (3 pixels in 64 images); `random_shuffle` "
    "shuffles the whole epoch",
}
IMAGES = [
    {"id": 10, "file_name": "1.jpg", "width": 20, "height": 10}, {"id": 3, "file_name": "0.jpg", "width": 8, "height": 6},
    {"id": 7, "file_name": "2.jpg", "width": 30, "height": 30},
]  # fmt: skip
ANNOTATIONS = [
    {"image_id": 10, "category_id": 9, "bbox": [1, 2, 5, 4], "iscrowd": 0, "segmentation": [[1, 2, 6, 2, 6, 6], [0, 0, 1, 0, 1, 1, 0, 1]]},
    {"image_id": 3, "category_id": 2, "bbox": [0.5, 1.5, 3, 0.05], "iscrowd": 0, "segmentation": [[0, 0, 3, 0, 3, 3]]},
    {"image_id": 10, "category_id": 5, "bbox": [0, 0, 2, 2], "iscrowd": 1, "segmentation": {"size": [10, 20], "counts": [3, 5, 192]}},
    {"image_id": 3, "category_id": 5, "bbox": [2, 2, 4, 3], "iscrowd": 0, "segmentation": [[2, 2, 6, 2, 6, 5, 2, 5]]},
]  # fmt: skip
BASE = {"images": IMAGES, "categories": [{"id": i} for i in (5, 2, 9)], "annotations": ANNOTATIONS}


def one(**changed: Any) -> dict[str, Any]:
    """Return only the first annotation, changed; a value of None removes a key."""
    found = {k: v for k, v in {**ANNOTATIONS[0], **changed}.items() if v is not None}
    return {**BASE, "annotations": [found]}


CASES: dict[str, dict[str, Any]] = {
    "plain": {}, "ratio": {"ratio": True}, "ltrb": {"ltrb": True}, "both": {"ltrb": True, "ratio": True},
    "not empty": {"skip_empty": True}, "large": {"size_threshold": 2.5}, "all sizes": {"size_threshold": 0.0},
    "ids": {"image_ids": True}, "no crowds": {"include_iscrowd": False}, "ids of classes": {"avoid_class_remapping": True},
    "some images": {"images": ["2.jpg", "0.jpg", "0.jpg"], "image_ids": True}, "others": {"images": ["2.jpg", "zz.jpg"]},
    "only others": {"images": ["zz.jpg"]}, "some, not empty": {"images": ["2.jpg", "0.jpg"], "skip_empty": True},
    "polygons": {"polygon_masks": True}, "polygons, ratio": {"polygon_masks": True, "ratio": True},
    "polygons and ids": {"polygon_masks": True, "image_ids": True}, "coordinates": {"masks": True},
    "masks": {"pixelwise_masks": True}, "masks, ratio": {"pixelwise_masks": True, "ratio": True, "ltrb": True},
    "two kinds": {"polygon_masks": True, "pixelwise_masks": True},
    "large polygons": {"polygon_masks": True, "skip_empty": True, "size_threshold": 2.5},
    "polygons, no crowds": {"polygon_masks": True, "include_iscrowd": False}, "read": {"dont_use_mmap": True},
    "no root": {"file_root": None}, "no annotations": {"annotations_file": None}, "no file": {"annotations_file": "/nope"},
    "no folder to save in": {"save_preprocessed_annotations": True}, "unknown": {"preprocessed_annotations_dir": "x"},
    "shards": {"num_shards": 3, "shard_id": 2, "pad_last_batch": True}, "saved and JSON": {"preprocessed_annotations": "/x"},
}  # fmt: skip
FILES: dict[str, Any] = {
    "no categories": {**BASE, "categories": []}, "no boxes": {**BASE, "annotations": []}, "no images": {**BASE, "images": []},
    "nothing": {}, "a list": [], "another class": one(category_id=77), "another image": one(image_id=77),
    "three numbers": one(bbox=[1, 2, 3]), "no box": one(bbox=None), "an id as text": one(image_id="10"),
    "no masks": one(segmentation=None), "one and a half vertices": one(segmentation=[[1, 2, 3]]),
    "an image that is not there": {**BASE, "images": [*IMAGES, {"id": 50, "file_name": "none.jpg", "width": 3, "height": 3}]},
    "compressed runs": one(segmentation={"size": [10, 20], "counts": "32P31"}),
}  # fmt: skip


def square(label: int, x: int, y: int) -> dict[str, Any]:
    """An annotation whose mask is a square of 5 pixels."""
    corners = [x, y, x + 5, y, x + 5, y + 5, x, y + 5]
    return {"image_id": 7, "category_id": label, "bbox": [x, y, 5, 5], "iscrowd": 0, "segmentation": [corners]}


OVERLAPS = [[2, 9], [9, 2], [9, 5, 2], [5, 9, 5], [2, 5, 9, 2]]  # categories, in the order of the annotations


@pytest.mark.parametrize("order", OVERLAPS, ids=str)
@pytest.mark.parametrize("remap", [True, False])
def test_masks_that_overlap(images: str, tmp_path: Path, order: list[int], remap: bool) -> None:
    annotations = [square(label, 3 + 2 * i, 4 + 2 * i) for i, label in enumerate(order)]
    (tmp_path / "a.json").write_text(json.dumps({**BASE, "annotations": annotations}))
    arguments = {"pixelwise_masks": True, "avoid_class_remapping": not remap}
    agree(lambda lib: read(lib, images, tmp_path / "a.json", arguments), batch_size=3)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> str:
    made: Path = tmp_path_factory.mktemp("images")
    for number in range(3):
        (made / f"{number}.jpg").write_bytes(b"image %d" % number)
    return str(made)


def read(lib: Any, root: str, annotations: Path, arguments: dict[str, Any]) -> Any:
    made = {"file_root": root, "annotations_file": str(annotations), **arguments}
    return tuple(lib.fn.readers.coco(**{k: v for k, v in made.items() if v is not None}))


@pytest.mark.filterwarnings("ignore:.*polygon_masks")
@pytest.mark.parametrize("case", CASES)
def test_arguments(images: str, tmp_path: Path, case: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps(BASE))
    agree(lambda lib: read(lib, images, tmp_path / "a.json", CASES[case]), batch_size=3)


@pytest.mark.parametrize("arguments", [{}, {"polygon_masks": True}, {"pixelwise_masks": True}], ids=str)
@pytest.mark.parametrize("case", FILES)
def test_files(images: str, tmp_path: Path, case: str, arguments: dict[str, bool]) -> None:
    (tmp_path / "a.json").write_text(json.dumps(FILES[case]))
    agree(lambda lib: read(lib, images, tmp_path / "a.json", arguments), batch_size=4)


@pytest.mark.parity
@pytest.mark.parametrize("written", ["torchdali", "nvidia.dali"])
def test_saved_annotations_are_the_same_files(images: str, tmp_path: Path, written: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps(BASE))
    folders = {name: tmp_path / name for name in ("torchdali", "nvidia.dali")}
    for name, folder in folders.items():
        folder.mkdir()
        saving = {"save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": str(folder)}
        batches(name, lambda lib: read(lib, images, tmp_path / "a.json", {**saving, "polygon_masks": True, "image_ids": True}))  # noqa: B023
    content = [{p.name: p.read_bytes() for p in folder.iterdir()} for folder in folders.values()]
    assert content[0] == content[1]
    saved = {"preprocessed_annotations": str(folders[written]), "annotations_file": None}
    for more in ({}, {"polygon_masks": True, "image_ids": True}, {"skip_empty": True}):
        agree(lambda lib: read(lib, images, tmp_path, {**saved, **more}), batch_size=3)  # noqa: B023


@pytest.mark.parity
@pytest.mark.parametrize("arguments", [{"pixelwise_masks": True}, {"polygon_masks": True, "ratio": True}], ids=str)
@pytest.mark.parametrize(("data", "size"), [("coco", 64), ("coco_masks", 6)])
def test_real_annotations(data: str, size: int, arguments: dict[str, bool]) -> None:
    root = real_data(data)
    found, wanted = (
        batches(name, lambda lib: read(lib, str(root / "images"), root / "instances.json", arguments), batch_size=size)[0]
        for name in ("torchdali", "nvidia.dali")
    )
    compare(found[:3], wanted[:3])
    # Three pixels of 64 images, on a border that runs through their centers, belong to the other side of it.
    compare(found[3:], wanted[3:], share=1.0 if arguments.get("polygon_masks") else 1 - 1e-6)
