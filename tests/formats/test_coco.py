"""Hand-computed COCO masks, and damaged annotations."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torchdali.formats import coco, coco_masks, coco_saved
from torchdali.formats.coco_masks import draw, fill_polygon, fill_runs, uncompress


def test_a_polygon_of_whole_pixels() -> None:
    mask = fill_polygon(np.array([[1, 2], [4, 2], [4, 5], [1, 5]], np.float32), 6, 8)
    wanted = np.zeros((6, 8), bool)
    wanted[2:5, 1:4] = True
    np.testing.assert_array_equal(mask, wanted)


@pytest.mark.parametrize("points", [[], [[1, 1]], [[1, 1], [3, 1]], [[-50, -50], [-20, -50], [-20, -20]]])
def test_polygons_without_pixels(points: list[list[int]]) -> None:
    assert not fill_polygon(np.array(points, np.float32).reshape(-1, 2), 6, 8).any()


def test_a_polygon_of_many_vertices_is_processed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    polygons = [random.normal(20, 30, (n, 2)).astype(np.float32) for n in (3, 10, 100, 2000)]
    whole = [fill_polygon(points, 40, 50) for points in polygons]
    monkeypatch.setattr(coco_masks, "STEPS", 100)
    for points, mask in zip(polygons, whole, strict=True):
        np.testing.assert_array_equal(fill_polygon(points, 40, 50), mask)
    assert len(list(coco_masks._trace_outline(np.zeros((1000, 2), np.int64)))) == 11


@pytest.mark.parametrize("far", [100.0, 1e6, 1e30])
def test_a_polygon_around_the_whole_image(far: float) -> None:
    assert fill_polygon(np.array([[-far, -far], [far, -far], [far, far], [-far, far]], np.float32), 6, 8).all()


def test_runs_go_down_the_columns() -> None:
    np.testing.assert_array_equal(fill_runs([1, 3, 2], 2, 3), [[False, True, False], [True, True, False]])


@pytest.mark.parametrize("runs", [[7], [-1, 3], [3, 4], [2**62, 2**62, 2**62]])
def test_runs_that_do_not_fit_are_errors(runs: list[int]) -> None:
    with pytest.raises(ValueError, match="must fit into"):
        fill_runs(runs, 2, 3)


def test_compressed_runs() -> None:
    assert uncompress("32P31") == [3, 2, 96, 3]  # from the fourth on, as differences to the last but one
    assert uncompress("") == []


@pytest.mark.parametrize("text", ["P", "oooooooooooooooooooo"])
def test_compressed_runs_that_do_not_end(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        uncompress(text)


IMAGE = {"id": 1, "file_name": "a", "width": 4, "height": 3}
DAMAGED: dict[str, Any] = {
    "cut off": '{"images": [', "a number": "5x", "an image without an id": {"images": [{"file_name": "a"}]},
    "an image without a name": {"images": [{"id": 1}]}, "an annotation that is none": {"images": [IMAGE], "annotations": [5]},
    "a box of words": {"images": [IMAGE], "annotations": [{"image_id": 1, "category_id": 1, "bbox": ["a", "b", "c", "d"]}]},
    "no class": {"images": [IMAGE], "annotations": [{"image_id": 1, "bbox": [0, 0, 1, 1]}]},
    "deep": "[" * 100000, "100,000 digits": '{"images": [' + "9" * 100_000 + "]}",
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_annotations(tmp_path: Path, case: str) -> None:
    text = DAMAGED[case] if isinstance(DAMAGED[case], str) else json.dumps(DAMAGED[case])
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(RuntimeError, match=r"a\.json"):
        coco.parse(str(tmp_path / "a.json"), coco.AnnotationOptions())


BOX = {"id": 9, "image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]}
REFUSED: dict[str, Any] = {
    "the bbox of annotation 9 must be a list, got null": {"images": [IMAGE], "annotations": [BOX | {"bbox": None}]},
    "the id of an image must be a number, got '1'": {"images": [IMAGE | {"id": "1"}]},
    "the id of an image must fit into int32, got 2147483648": {"images": [IMAGE | {"id": 1 << 31}]},
}


@pytest.mark.parametrize("message", REFUSED)
def test_errors_name_the_value(tmp_path: Path, message: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps(REFUSED[message]))
    with pytest.raises(RuntimeError, match=message):
        coco.parse(str(tmp_path / "a.json"), coco.AnnotationOptions())


@pytest.mark.parametrize("name", ["boxes.dat", "counts.dat", "labels.dat", "vertices.dat"])
def test_damaged_tables(tmp_path: Path, name: str) -> None:
    annotation = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "segmentation": [[0, 0, 1, 0, 1, 1]]}
    (tmp_path / "a.json").write_text(json.dumps({"images": [IMAGE], "annotations": [annotation]}))
    coco_saved.save(coco.parse(str(tmp_path / "a.json"), coco.AnnotationOptions(polygons=True)), str(tmp_path))
    coco_saved.load(str(tmp_path), True, True)
    content = (tmp_path / name).read_bytes()
    for damaged in (b"", content[:-1], b"\0\0\0\0"):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(RuntimeError, match=r"damaged|contradict each other"):
            coco_saved.load(str(tmp_path), True, True)


def test_a_mask_in_an_image_without_end() -> None:
    (sizes, segmentations) = [(1 << 20, 1 << 20)], [[[[0, 0, 1, 0, 1, 1]]]]
    outlines = coco.Outlines(*[np.zeros(1, np.int64)] * 2, *[np.zeros(1, np.int64)] * 2)  # type: ignore[arg-type]
    made = coco.Annotations(
        ["a"],
        *[np.zeros(1, np.int32)] * 2,
        np.zeros((1, 4), np.float32),
        np.zeros(1, np.int32),
        outlines,
        sizes,
        segmentations,
    )  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must have 1 to 1073741824 pixels"):
        draw(made.sizes[0], made.segmentations[0], np.zeros(1, np.int32))


@pytest.mark.filterwarnings("error")
def test_parts_of_an_image_without_a_size(tmp_path: Path) -> None:
    annotation = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "segmentation": [[0, 0, 1, 0, 1, 1]]}
    (tmp_path / "a.json").write_text(json.dumps({"images": [{**IMAGE, "width": 0}], "annotations": [annotation]}))
    with pytest.raises(RuntimeError, match="must have height and width"):
        coco.parse(str(tmp_path / "a.json"), coco.AnnotationOptions(ratio=True, polygons=True))


def test_annotations_in_any_order(tmp_path: Path) -> None:
    """Annotations belong to their images, in the order of the file; an image that is listed twice is read twice."""
    images = [{**IMAGE, "id": i, "file_name": f"{i}"} for i in (3, 1, 2)]
    listed = [(1, 10.0), (9, 0.0), (3, 30.0), (1, 11.0), (3, 0.05), (1, 12.0)]
    annotations = [{"image_id": i, "category_id": 7, "bbox": [x, 0, x, 5], "iscrowd": int(x == 11)} for i, x in listed]
    (tmp_path / "a.json").write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": [{"id": 7}]})
    )

    def lefts(**form: Any) -> list[list[float]]:
        found = coco.parse(str(tmp_path / "a.json"), coco.AnnotationOptions(**form))
        return [part[:, 0].tolist() for part in np.split(found.boxes, np.cumsum(found.counts)[:-1])]

    assert lefts() == [[10, 11, 12], [], [30]]
    assert lefts(skip_empty=True, include_iscrowd=False) == [[10, 12], [30]]
    assert lefts(images=["3", "1", "3", "none"]) == [[30], [10, 11, 12], [30]]


def test_boxes_are_left_top_width_height_or_corners(tmp_path: Path) -> None:
    annotation = {"image_id": 1, "category_id": 1, "bbox": [1, 0.5, 2, 1]}
    (tmp_path / "a.json").write_text(json.dumps({"images": [IMAGE], "annotations": [annotation]}))
    forms = [{}, {"ltrb": True}, {"ltrb": True, "ratio": True}]
    found = [coco.parse(str(tmp_path / "a.json"), coco.AnnotationOptions(**form)).boxes.tolist() for form in forms]
    assert found == [[[1, 0.5, 2, 1]], [[1, 0.5, 3, 1.5]], [[0.25, pytest.approx(0.5 / 3), 0.75, 0.5]]]


def annotated(path: Path, **changes: Any) -> str:
    """Write an image with two annotations, of which the second is changed, and perhaps the image's width and height."""
    image = IMAGE | {key: changes.pop(key) for key in ("width", "height") if key in changes}
    second = {"id": 10, "image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "segmentation": [[0, 0, 1, 0, 1, 1]]}
    data = {"images": [image], "categories": [{"id": 1}], "annotations": [{**second, "id": 9}, second | changes]}
    text = json.dumps(data).replace('"1e999"', "1e999").replace('"-1e999"', "-1e999")
    path.write_text(text)
    return str(path)


NAN, INFINITY = math.nan, math.inf
NOT_FINITE: dict[str, tuple[dict[str, Any], str]] = {
    **{f"{value} at {place}": ({"bbox": [value if i == place else i + 1 for i in range(4)]}, r"bbox \[.*\] of annotation 10 of image 1")
       for value in (NAN, INFINITY, -INFINITY, "1e999", "-1e999", 1e39, -1e300, 10**38 * 3) for place in range(4)},
    **{f"polygon of {value}": ({"segmentation": [[0, 0, 1, 0, 1, value]]}, "polygon") for value in (NAN, INFINITY, "1e999", 1e39)},
    **{f"{side} of {value}": ({side: value}, "height and width") for side in ("width", "height") for value in (NAN, INFINITY, "wide")},
    "a category": ({"category_id": NAN}, "category_id"), "an image": ({"image_id": NAN}, "image_id"),
}  # fmt: skip


@pytest.mark.parametrize("ltrb", [False, True])
@pytest.mark.parametrize("case", NOT_FINITE)
def test_numbers_that_are_not_finite(tmp_path: Path, case: str, ltrb: bool) -> None:
    changes, message = NOT_FINITE[case]
    path = annotated(tmp_path / "a.json", **changes)
    with pytest.raises(RuntimeError, match=rf"a\.json.*{message}"):
        coco.parse(path, coco.AnnotationOptions(polygons=True, ltrb=ltrb))


@pytest.mark.parametrize("vertex", [NAN, INFINITY, -INFINITY, 1e39])
def test_masks_of_polygons_that_are_not_finite(vertex: float) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        draw((3, 4), [[[0, 0, 1, 0, 1, vertex]]], np.ones(1, np.int32))


def test_unused_numbers_may_be_invalid(tmp_path: Path) -> None:
    path = annotated(tmp_path / "a.json", area=NAN, score=INFINITY, segmentation=[[NAN] * 6])
    assert coco.parse(path, coco.AnnotationOptions()).boxes.tolist() == [[0, 0, 1, 1]] * 2


@pytest.mark.parametrize("name", ["boxes.dat", "vertices.dat"])
def test_saved_numbers_that_are_not_finite(tmp_path: Path, name: str) -> None:
    coco_saved.save(coco.parse(annotated(tmp_path / "a.json"), coco.AnnotationOptions(polygons=True)), str(tmp_path))
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[:-4] + np.float32(NAN).tobytes())
    with pytest.raises(RuntimeError, match=rf"{name} must contain only finite numbers"):
        coco_saved.load(str(tmp_path), True, True)
