"""Annotations found by their text: they are those of the JSON, or the JSON is read."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torchdali.formats import coco, coco_columns, coco_saved

RNG = np.random.default_rng(0)
POLYGON = [[1, 2, 3.5, 4, 5, 6]]
RUNS = {"size": [4, 4], "counts": [3, 2, 11]}


def row(i: int, order: str, **other: Any) -> dict[str, Any]:
    values = {"i": ("image_id", int(RNG.integers(0, 12))), "c": ("category_id", int(RNG.integers(1, 6))),
              "b": ("bbox", np.round(RNG.uniform(-1, 50, 4), 2).tolist()), "s": ("segmentation", [[i, *POLYGON[0][1:]]]),
              "w": ("iscrowd", int(RNG.integers(0, 2))), "n": ("id", i)}  # fmt: skip
    return dict(values[letter] for letter in order) | other


def document(rows: list[Any], **other: Any) -> dict[str, Any]:
    images = [{"id": i, "file_name": f"{i}.jpg", "width": 40, "height": 30} for i in range(10)]
    return {"images": images, "annotations": rows, "categories": [{"id": 3}, {"id": 5}, {"id": 1}], **other}


def many(order: str, **other: Any) -> list[Any]:
    return [row(i, order, **other) for i in range(60)]


ALIKE: dict[str, str] = {
    "as COCO has it": json.dumps(document(many("swibcn"))),
    "as others have it": json.dumps(document(many("nicsbw"))),
    "without spaces": json.dumps(document(many("nicbws")), separators=(",", ":")),
    "indented": json.dumps(document(many("bwscin")), indent=4),
    "exponents": json.dumps(document([row(i, "nicbw", bbox=[1e-7, 2e10, 3, 4.5]) for i in range(60)])),
    "runs": json.dumps(document([row(i, "swibcn", segmentation=(RUNS, POLYGON, None)[i % 3]) for i in range(60)])),
    "several polygons": json.dumps(document([row(i, "sbicn", segmentation=POLYGON * (i % 3)) for i in range(60)])),
    "masks last": json.dumps(document(many("nicbws"))),
    "annotations last": json.dumps({k: document(many("nicbw"))[k] for k in ("categories", "images", "annotations")}),
    "large numbers": json.dumps(document([row(i, "nicbw", category_id=1 << 40) for i in range(60)])),
}
OTHERS: dict[str, str] = {
    "annotations first": json.dumps({k: document(many("nicbw"))[k] for k in ("annotations", "images", "categories")}),
    "different order": json.dumps(document([row(i, "nicbw" if i % 2 else "wbcin") for i in range(60)])),
    "a box less": json.dumps(document([row(i, "nicbw" if i != 30 else "nicw") for i in range(60)])),
    "texts": json.dumps(document(many("nicbw", caption='} ] "image_id": 3, {'))),
    "objects": json.dumps(document(many("nicbw", attributes={"occluded": True, "bbox": [1, 2, 3, 4]}))),
    "none": json.dumps(document([])),
    "ids that are texts": json.dumps(document([row(i, "nicbw", image_id="3") for i in range(60)])),
    "annotations of something else": json.dumps({"info": {"annotations": many("nicbw")}, **document([])}),
}
FORMS = [
    {}, {"include_iscrowd": False}, {"ltrb": True, "ratio": True}, {"avoid_class_remapping": True}, {"size_threshold": 20.0},
    {"skip_empty": True, "images": ["7.jpg", "2.jpg", "11.jpg"]}, {"polygons": True}, {"masks": True},
    {"polygons": True, "ratio": True, "images": ["7.jpg", "2.jpg"]},
]  # fmt: skip


def outcome(path: Path, form: dict[str, Any]) -> Any:
    try:
        found = coco.parse(str(path), coco.Form(**form))
    except (RuntimeError, ValueError) as error:
        return type(error), str(error).rpartition(": ")[0]
    values = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
    count = len(found.names) if form.keys() & {"polygons", "masks"} else 0
    values["segmentations"] = [found.segmentations[image] for image in range(count)]
    values["outlines"] = [[each.tolist() for each in found.polygons_of(image)] for image in range(count)]
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coco_columns, "_SMALLEST", 0)
    monkeypatch.setattr(coco_columns, "_PART", 3000)


def both(path: Path, form: dict[str, Any]) -> tuple[Any, Any]:
    """Return what comes of the text, and of the JSON."""
    found = outcome(path, form)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coco_columns, "columns", lambda *_: None)
        return found, outcome(path, form)


@pytest.mark.parametrize("name", [*ALIKE, *OTHERS])
def test_the_text_says_what_the_json_says(tmp_path: Path, name: str) -> None:
    path = tmp_path / "annotations.json"
    path.write_text((ALIKE | OTHERS)[name])
    found = coco_columns.columns(str(path), ["image_id", "category_id", "bbox"])
    assert (found is not None) == (name in ALIKE)
    for form in FORMS:
        text, parsed = both(path, form)
        assert text == parsed, form


def test_masks_are_read_when_they_are_needed(tmp_path: Path) -> None:
    path, folder = tmp_path / "annotations.json", tmp_path / "saved"
    path.write_text(ALIKE["as COCO has it"])
    folder.mkdir()
    found = coco.parse(str(path), coco.Form(polygons=True))
    assert found.outlines is None
    coco_saved.save(found, str(folder))
    saved = coco_saved.load(str(folder), polygons=True, ids=True)
    for image in range(len(found.names)):
        for ours, theirs in zip(found.polygons_of(image), saved.polygons_of(image), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    path.write_text(ALIKE["as COCO has it"] + " ")
    with pytest.raises(ValueError, match=r"annotations.json has changed"):
        found.polygons_of(0)


def test_words_for_vertices_are_an_error_of_the_image(tmp_path: Path) -> None:
    path = tmp_path / "annotations.json"
    path.write_text(ALIKE["as COCO has it"].replace("2, 3.5, 4", '2, "x", 4'))
    found = coco.parse(str(path), coco.Form(polygons=True))
    with pytest.raises(TypeError, match="segmentation"):
        found.polygons_of(0)


def test_changed_bytes(tmp_path: Path) -> None:
    path = tmp_path / "annotations.json"
    good = np.frombuffer(ALIKE["as COCO has it"].encode(), np.uint8)
    letters = np.frombuffer(b'0123456789.,:{}[]" -eax', np.uint8)
    agreed = 0
    for _ in range(300):
        data = good.copy()
        data[RNG.integers(0, len(data), 3)] = RNG.choice(letters, 3)
        path.write_bytes(data.tobytes())
        text, parsed = both(path, {})
        agreed += text == parsed
        # What is not looked at may be broken: then the text is read, and the JSON is not.
        assert text == parsed or (isinstance(parsed, tuple) and "is no JSON" in parsed[1]), (text, parsed)
    assert agreed > 100
