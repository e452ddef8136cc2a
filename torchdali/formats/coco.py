"""Annotations of COCO: boxes, labels and masks of images, from JSON.

Form of the JSON: https://cocodataset.org/#format-data.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from torchdali.formats import coco_columns
from torchdali.formats.coco_masks import Mask
from torchdali.signatures import described_file

__all__ = ["Annotations", "Form", "Outlines", "parse"]

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Form:
    """Form in which annotations are delivered.

    Attributes:
        images: Names of the images, in the order wanted; None for all, in the order of their ids.
        ltrb: Boxes are left, top, right, bottom; otherwise left, top, width, height.
        ratio: Coordinates are parts of the image's size.
        size_threshold: Boxes whose width or height is smaller, in pixels, are left out.
        skip_empty: Images without annotations are left out.
        include_iscrowd: Annotations of crowds count.
        avoid_class_remapping: Labels are the ids of categories, not their places from 1.
        polygons: Collect polygons.
        masks: Keep what masks are drawn of.
    """

    images: Sequence[str] | None = None
    ltrb: bool = False
    ratio: bool = False
    size_threshold: float = 0.1
    skip_empty: bool = False
    include_iscrowd: bool = True
    avoid_class_remapping: bool = False
    polygons: bool = False
    masks: bool = False


@dataclass
class Outlines:
    """The polygons of all images, one after the other.

    Attributes:
        polygon_counts: Of each image.
        polygons: ``(P, 3)``: mask, first vertex and the one after the last, as counted in the image.
        vertex_counts: Of each image.
        vertices: ``(V, 2)``.
    """

    polygon_counts: npt.NDArray[np.int64]
    polygons: Ints
    vertex_counts: npt.NDArray[np.int64]
    vertices: Floats

    @classmethod
    def none(cls, images: int) -> Outlines:
        """Return no polygons for some images."""
        counts = np.zeros(images, np.int64)
        return cls(counts, np.empty((0, 3), np.int32), counts, np.empty((0, 2), np.float32))

    def of(self, image: int) -> tuple[Ints, Floats]:
        """Return polygons and vertices of an image."""
        polygons, vertices = self._starts
        return (
            self.polygons[polygons[image] : polygons[image + 1]].copy(),
            self.vertices[vertices[image] : vertices[image + 1]].copy(),
        )

    @functools.cached_property
    def _starts(self) -> tuple[list[int], list[int]]:
        counts = self.polygon_counts, self.vertex_counts
        polygons, vertices = ([0, *np.cumsum(each, dtype=np.int64).tolist()] for each in counts)
        return polygons, vertices


@dataclass
class Annotations:
    """The annotations of all images, one after the other.

    Attributes:
        names: Of the images.
        ids: Of the images.
        counts: Number of boxes of each image.
        boxes: ``(N, 4)``.
        labels: ``(N,)``.
        outlines: Polygons; None where `segmentations` are read when they are needed.
        sizes: Height and width of each image.
        segmentations: Of each image, what the masks of its boxes are drawn of.
        ratio: Vertices are parts of the image's size.
    """

    names: list[str]
    ids: Ints
    counts: Ints
    boxes: Floats
    labels: Ints
    outlines: Outlines | None
    sizes: list[tuple[int, int]]
    segmentations: Segmentations
    ratio: bool = False

    def polygons_of(self, image: int) -> tuple[Ints, Floats]:
        """Return the polygons of an image ``(P, 3)``, as those of `Outlines`, and their vertices.

        Raises:
            ValueError, TypeError: they are none.
        """
        if self.outlines is not None:
            return self.outlines.of(image)
        return _outlined([self.segmentations[image]], [self.sizes[image]] if self.ratio else None).of(0)

    def all_polygons(self) -> Outlines:
        """Return the polygons of all images; raises as `polygons_of`."""
        if self.outlines is not None:
            return self.outlines
        every = (self.segmentations[image] for image in range(len(self.names)))
        return _outlined(every, self.sizes if self.ratio else None)


class Segmentations(Protocol):
    """Polygons or runs of each image, of which masks are drawn."""

    def __getitem__(self, image: int, /) -> list[Any]:
        """Return polygons, runs or None for each box of an image."""


def parse(path: str, form: Form) -> Annotations:
    """Read annotations from JSON.

    Raises:
        RuntimeError: the file cannot be read, or is no such JSON. ValueError: a box has not four numbers.
    """
    try:
        with _without_collections():
            return _Collector(*_read(path, form), form).collect()
    except OSError as error:
        raise RuntimeError(f"could not open the annotations file {path}: {error.strerror}") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RuntimeError(f"{path} is no JSON: {error}{described_file(path, 'JSON')}") from None
    except (TypeError, KeyError, AttributeError, OverflowError) as error:
        raise RuntimeError(f"{path} has no annotations of COCO: {type(error).__name__}: {error}") from None


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Keep the garbage collector from walking millions of new objects again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


_NO_BOX = (0, 0, 0, 0)
_LARGEST_TABLE = 1 << 22


def _read(path: str, form: Form) -> tuple[Any, _Listed]:
    """Return what the JSON holds, and its annotations."""
    keys = ["image_id", "category_id", "bbox", *([] if form.include_iscrowd else ["iscrowd"])]
    texts = coco_columns.Texts(path)
    shaped = ["segmentation"] if form.polygons or form.masks else []
    columns = coco_columns.columns(path, [*keys, *shaped])
    if columns is not None:
        return columns.rest, _InColumns(columns.found, texts)
    with open(path, "rb") as file:
        data = json.loads(file.read())
    data = data if isinstance(data, dict) else {}
    return data, _InObjects(list(data.get("annotations", ())))


class _Listed(Protocol):
    """Annotations as they are in the file."""

    def keep(self, kept: Any) -> None:
        """Keep some, by their places."""

    def images(self, places: Mapping[Any, int]) -> npt.NDArray[np.int64]:
        """Return the place of the image of each; -1 where it has none."""

    def boxes(self) -> npt.NDArray[np.float64]:
        """Return the boxes, ``(N, 4)``."""

    def crowds(self) -> Mask:
        """Return which are of crowds."""

    def labels(self, labels: Mapping[Any, int] | None) -> Ints:
        """Return the labels by the ids of categories, 0 for others; the ids themselves without labels."""

    def segmentations(self, of_images: list[npt.NDArray[np.int64]]) -> Segmentations:
        """Return the masks of images, whose annotations are given by their places."""

    @property
    def is_read_later(self) -> bool:
        """True if masks are read when they are needed."""


class _InObjects:
    is_read_later = False

    def __init__(self, listed: list[Any]) -> None:
        self._listed = listed

    def keep(self, kept: Any) -> None:
        self._listed = [self._listed[i] for i in kept.tolist()]

    def images(self, places: Mapping[Any, int]) -> npt.NDArray[np.int64]:
        found = (places.get(a.get("image_id"), -1) for a in self._listed)
        return np.fromiter(found, np.int64, len(self._listed))

    def boxes(self) -> npt.NDArray[np.float64]:
        boxes = [annotation.get("bbox", _NO_BOX) for annotation in self._listed]
        if None in boxes:
            number = self._listed[boxes.index(None)].get("id")
            raise TypeError(f"the bbox of annotation {number} is null")
        if set(map(len, boxes)) - {4}:
            box = next(box for box in boxes if len(box) != 4)
            raise ValueError(f"Invalid COCO annotation: `bbox` has 4 numbers, and this one {len(box)}: {box}")
        flat = itertools.chain.from_iterable(boxes)
        try:
            return np.fromiter(flat, np.float64, 4 * len(boxes)).reshape(-1, 4)
        except ValueError as error:  # words
            raise TypeError(f"bbox: {error}") from None

    def crowds(self) -> Mask:
        found = (bool(annotation.get("iscrowd", 0)) for annotation in self._listed)
        return np.fromiter(found, np.bool_, len(self._listed))

    def labels(self, labels: Mapping[Any, int] | None) -> Ints:
        found = [annotation["category_id"] for annotation in self._listed]
        return np.array(found if labels is None else [labels.get(n, 0) for n in found], np.int32)

    def segmentations(self, of_images: list[npt.NDArray[np.int64]]) -> Segmentations:
        shapes = [annotation.get("segmentation") for annotation in self._listed]
        return [[shapes[place] for place in places.tolist()] for places in of_images]


class _ReadLater(NamedTuple):
    """Segmentations in a file."""

    texts: coco_columns.Texts
    places: npt.NDArray[np.int64]
    of_images: list[npt.NDArray[np.int64]]

    def __getitem__(self, image: Any, /) -> Any:
        return self.texts.read(self.places[self.of_images[image]].tolist())


class _InColumns:
    is_read_later = True

    def __init__(self, found: dict[str, npt.NDArray[Any]], texts: coco_columns.Texts) -> None:
        self._found, self._texts = found, texts

    def keep(self, kept: Any) -> None:
        self._found = {key: column[kept] for key, column in self._found.items()}

    def images(self, places: Mapping[Any, int]) -> npt.NDArray[np.int64]:
        return _looked_up(self._found["image_id"], places, -1)

    def boxes(self) -> npt.NDArray[np.float64]:
        return self._found["bbox"]

    def crowds(self) -> Mask:
        found: Mask = self._found["iscrowd"] != 0
        return found

    def labels(self, labels: Mapping[Any, int] | None) -> Ints:
        numbers = self._found["category_id"]
        if labels is None and np.abs(numbers).max(initial=0) >= 1 << 31:
            raise OverflowError("a category_id does not fit int32")
        return (numbers if labels is None else _looked_up(numbers, labels, 0)).astype(np.int32)

    def segmentations(self, of_images: list[npt.NDArray[np.int64]]) -> Segmentations:
        return _ReadLater(self._texts, self._found["segmentation"], of_images)


def _looked_up(numbers: npt.NDArray[np.float64], values: Mapping[Any, int], missing: int) -> npt.NDArray[np.int64]:
    low, high = numbers.min(initial=0), numbers.max(initial=0)
    if low < 0 or high >= _LARGEST_TABLE:
        return np.fromiter((values.get(n, missing) for n in numbers.tolist()), np.int64, len(numbers))
    table = np.fromiter((values.get(n, missing) for n in range(int(high) + 1)), np.int64)
    return table[numbers.astype(np.int64)]


def _check_ids(images: Iterable[Any]) -> None:
    for image in images:
        number = image["id"]
        if not isinstance(number, (int, float)):
            raise TypeError(f"the id of an image is a number, not {number!r}")
        if not -(1 << 31) <= number < 1 << 31:
            raise OverflowError(f"the id of an image, {number}, does not fit int32")


class _Collector:
    """Collects the annotations of the chosen images.

    Args:
        data: What the JSON holds.
        listed: Its annotations.
        form: How they are delivered.
    """

    def __init__(self, data: Any, listed: _Listed, form: Form) -> None:
        self._form = form
        categories = [category["id"] for category in data.get("categories", ())]
        self._labels = {number: place for place, number in enumerate(categories, 1)}
        _check_ids(data.get("images", ()))
        self._images = self._chosen(data.get("images", ()))
        places = {number: place for place, number in enumerate({i["id"]: 0 for i in self._images})}
        of = listed.images(places)
        if of.min(initial=0) < 0:
            listed.keep(np.flatnonzero(of >= 0))
            of = of[of >= 0]
        boxes = listed.boxes()
        counts = self._counts(listed, boxes)
        if not counts.all():
            kept = np.flatnonzero(counts)
            listed.keep(kept)
            of, boxes = of[kept], boxes[kept]
        self._listed, self._boxes = listed, boxes
        # Of numbers of 16 bits the order is found several times as fast.
        order = np.argsort(of.astype(np.min_scalar_type(len(places))), kind="stable")
        ends = np.searchsorted(of[order], np.arange(len(places)), "right")
        parts = np.split(order, ends[:-1]) if len(places) else []
        self._by_image = dict(zip(places, parts, strict=True))

    def _chosen(self, images: Iterable[Any]) -> list[Any]:
        if self._form.images is None:
            return sorted(images, key=lambda image: image["id"])
        named = {image["file_name"]: image for image in images}
        return [named[name] for name in self._form.images if name in named]

    def _counts(self, listed: _Listed, boxes: npt.NDArray[np.float64]) -> Mask:
        counts: Mask = np.logical_and(*(boxes[:, 2:] >= self._form.size_threshold).T)
        if not self._form.include_iscrowd:
            counts &= ~listed.crowds()
        return counts

    def collect(self) -> Annotations:
        """Return the annotations of the images."""
        form = self._form
        if self._form.skip_empty:
            self._images = [i for i in self._images if len(self._by_image[i["id"]])]
        parts = [self._by_image[image["id"]] for image in self._images]
        order = np.concatenate([np.empty(0, np.int64), *parts])
        counts = np.array([len(part) for part in parts], np.int32)
        sizes = [(int(image.get("height", 0)), int(image.get("width", 0))) for image in self._images]
        boxes = self._boxes[order].astype(np.float32)
        segmentations: Segmentations = []
        if form.polygons or form.masks:
            segmentations = self._listed.segmentations(parts)
        made = Annotations(
            [_file_name(image) for image in self._images],
            np.array([image["id"] for image in self._images], np.int32),
            counts,
            self._placed(boxes, counts, sizes),
            self._listed.labels(None if form.avoid_class_remapping else self._labels)[order],
            None if form.polygons else Outlines.none(len(parts)),
            sizes,
            segmentations,
            form.ratio,
        )
        if not self._listed.is_read_later:
            made.outlines = made.all_polygons()
        return made

    def _placed(self, boxes: Floats, counts: Ints, sizes: list[tuple[int, int]]) -> Floats:
        if self._form.ltrb:
            boxes[:, 2:] += boxes[:, :2]
        if self._form.ratio:
            boxes /= np.repeat(_extents(sizes), counts, axis=0)[:, [1, 0, 1, 0]]
        return boxes


def _file_name(image: Any) -> str:
    name = image["file_name"]
    if not isinstance(name, str) or "\0" in name:
        raise TypeError(f"the image {image['id']} has the file_name {name!r}")
    return name


def _outlined(found: Iterable[list[Any]], sizes: list[tuple[int, int]] | None) -> Outlines:
    """Make polygons of the segmentations of images, with vertices as parts of their sizes if there are any."""
    rows: list[list[float]] = []
    masks: list[int] = []
    ends: list[int] = []
    for of_image in found:
        for mask, segmentation in enumerate(of_image):
            if isinstance(segmentation, list):  # runs are no outlines
                rows += segmentation
                masks += [mask] * len(segmentation)
        ends.append(len(rows))
    places = np.array([0, *ends], np.int64)
    counts = places[1:] - places[:-1]
    lengths, vertices = _vertices(rows)
    stops = np.concatenate([[0], np.cumsum(lengths)])
    before = stops[places]
    vertex_counts = before[1:] - before[:-1]
    if sizes is not None:
        vertices /= np.repeat(_extents(sizes)[:, ::-1], vertex_counts, axis=0)
    of = np.repeat(before[:-1], counts)
    table = np.stack([np.array(masks, np.int64), stops[:-1] - of, stops[1:] - of], 1)
    return Outlines(counts, table.astype(np.int32), vertex_counts, vertices)


def _vertices(rows: list[list[float]]) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the numbers of vertices of polygons, and all vertices."""
    if set(map(type, rows)) - {list}:
        raise TypeError("segmentation: a polygon is a list of numbers")
    sizes = np.fromiter(map(len, rows), np.int64, len(rows))
    if (sizes % 2).any():
        rows, sizes = [row[: len(row) // 2 * 2] for row in rows], sizes // 2 * 2
    flat = itertools.chain.from_iterable(rows)
    try:
        numbers = np.fromiter(flat, np.float32, int(sizes.sum()))
    except ValueError as error:  # words
        raise TypeError(f"segmentation: {error}") from None
    return sizes // 2, numbers.reshape(-1, 2)


def _extents(sizes: list[tuple[int, int]]) -> Floats:
    if any(min(size) < 1 for size in sizes):
        raise KeyError("height and width of an image, which `ratio` needs")
    return np.array(sizes, np.float32).reshape(-1, 2)
