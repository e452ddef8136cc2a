"""COCO annotations: boxes, labels and masks of images, from a JSON file.

The format is described at https://cocodataset.org/#format-data.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from torchdali.codecs.signatures import describe_file
from torchdali.forks import cached_property
from torchdali.formats.coco_masks import Mask
from torchdali.formats.shared_folder import open_for_reading

__all__ = ["AnnotationOptions", "Annotations", "Outlines", "parse"]

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class AnnotationOptions:
    """Options for the content and format of annotations.

    Attributes:
        images: File names of the selected images, in the requested order. None for all images, in the order of
            their ids.
        ltrb: If True, boxes are left, top, right, bottom; otherwise left, top, width, height.
        ratio: If True, coordinates are fractions of the image's size; otherwise pixels.
        size_threshold: Minimum width and height of a box in pixels. Smaller boxes are skipped.
        skip_empty: Skip images without annotations.
        include_iscrowd: Include annotations of crowds.
        avoid_class_remapping: If True, labels are the category ids. Otherwise, labels are positions in the file's list
            of categories, counted from 1.
        polygons: Collect polygons.
        masks: Store the data from which masks are drawn.
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
    """The concatenated polygons of all images.

    Attributes:
        polygon_counts: Number of polygons of each image.
        polygons: ``(P, 3)``: the index of the polygon's box, the index of the first vertex, and the index after the
            last vertex. All three are counted within the image.
        vertex_counts: Number of vertices of each image.
        vertices: ``(V, 2)``, x and y.
    """

    polygon_counts: npt.NDArray[np.int64]
    polygons: Ints
    vertex_counts: npt.NDArray[np.int64]
    vertices: Floats

    @classmethod
    def empty(cls, image_count: int) -> Outlines:
        """Create the outlines of `image_count` images that have no polygons."""
        counts = np.zeros(image_count, np.int64)
        return cls(counts, np.empty((0, 3), np.int32), counts, np.empty((0, 2), np.float32))

    def select_image(self, image: int) -> tuple[Ints, Floats]:
        """Return copies of the polygons and vertices of an image."""
        polygons, vertices = self._starts
        return (
            self.polygons[polygons[image] : polygons[image + 1]].copy(),
            self.vertices[vertices[image] : vertices[image + 1]].copy(),
        )

    @cached_property
    def _starts(self) -> tuple[list[int], list[int]]:
        counts = self.polygon_counts, self.vertex_counts
        polygons, vertices = ([0, *np.cumsum(each, dtype=np.int64).tolist()] for each in counts)
        return polygons, vertices


@dataclass
class Annotations:
    """The concatenated annotations of all images.

    Attributes:
        counts: Number of boxes of each image.
        boxes: ``(N, 4)``.
        labels: ``(N,)``.
        sizes: Height and width of each image.
        segmentations: For each image, a list with one item per box: the polygons or the run-length code of the box's
            mask, or None. The outer list is empty if `AnnotationOptions.masks` is False.
    """

    names: list[str]
    ids: Ints
    counts: Ints
    boxes: Floats
    labels: Ints
    outlines: Outlines
    sizes: list[tuple[int, int]]
    segmentations: list[list[Any]]


def parse(path: str, options: AnnotationOptions) -> Annotations:
    """Read annotations from a JSON file.

    Raises:
        RuntimeError: The file cannot be read, isn't COCO JSON, or contains a number that is not finite.
        ValueError: A box does not have four numbers.
    """
    try:
        with _disable_garbage_collector():
            return _Collector(_read(path), options).collect()
    except OSError as error:
        raise RuntimeError(f"could not open the annotations file {path}: {error.strerror}") from None
    except _NotFiniteError as error:
        raise RuntimeError(f"{path}: {error} must be finite. Correct the value, or remove the annotation") from None
    except RecursionError as error:
        raise _json_error(path, error) from None
    except (TypeError, KeyError, AttributeError, OverflowError) as error:
        raise RuntimeError(f"{path} isn't a valid COCO annotation file: {type(error).__name__}: {error}") from None


@contextlib.contextmanager
def _disable_garbage_collector() -> Iterator[None]:
    """Disable the garbage collector inside a ``with`` block.

    The block creates millions of objects, and the garbage collector would traverse these objects repeatedly.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


_EMPTY_BOX = (0, 0, 0, 0)


class _NotFiniteError(Exception):
    """A number of an annotation is NaN, infinite or too large for float32."""


def _read(path: str) -> Mapping[str, Any]:
    with open_for_reading(path) as file:
        text = file.read()
    try:
        data = json.loads(text)
    except ValueError as error:  # not JSON, or an integer with too many digits
        raise _json_error(path, error) from None
    return data if isinstance(data, dict) else {}


def _json_error(path: str, error: Exception) -> RuntimeError:
    return RuntimeError(f"{path} isn't JSON: {error}{describe_file(path, 'JSON')}")


def _read_boxes(annotations: list[Any]) -> npt.NDArray[np.float64]:
    boxes = [annotation.get("bbox", _EMPTY_BOX) for annotation in annotations]
    if None in boxes:
        number = annotations[boxes.index(None)].get("id")
        raise TypeError(f"the bbox of annotation {number} must be a list, got null")
    if set(map(len, boxes)) - {4}:
        box = next(box for box in boxes if len(box) != 4)
        raise ValueError(f"Invalid COCO annotation: `bbox` must have 4 numbers, got {len(box)}: {box}")
    flat = itertools.chain.from_iterable(boxes)
    try:
        numbers = np.fromiter(flat, np.float64, 4 * len(boxes)).reshape(-1, 4)
    except ValueError as error:  # a string instead of a number
        raise TypeError(f"bbox: {error}") from None
    is_finite = _are_finite(numbers).all(1)
    if not is_finite.all():
        invalid = annotations[int(is_finite.argmin())]
        location = f"annotation {invalid.get('id')} of image {invalid.get('image_id')}"
        raise _NotFiniteError(f"the bbox {invalid['bbox']} of {location}")
    return numbers


_MAX_NUMBER = float(np.finfo(np.float32).max) / 4  # sums and differences of two allowed numbers don't overflow float32


def _are_finite(numbers: npt.NDArray[Any]) -> Mask:
    finite: Mask = np.abs(numbers) <= _MAX_NUMBER
    return finite


def _check_ids(images: Iterable[Any]) -> None:
    for image in images:
        number = image["id"]
        if not isinstance(number, (int, float)):
            raise TypeError(f"the id of an image must be a number, got {number!r}")
        if not -(1 << 31) <= number < 1 << 31:
            raise OverflowError(f"the id of an image must fit into int32, got {number}")


class _Collector:
    """Collects the annotations of the selected images."""

    def __init__(self, data: Mapping[str, Any], options: AnnotationOptions) -> None:
        self._options = options
        categories = [category["id"] for category in data.get("categories", ())]
        self._labels = {number: index for index, number in enumerate(categories, 1)}
        _check_ids(data.get("images", ()))
        self._images = self._select_images(data.get("images", ()))
        indices = {number: index for index, number in enumerate({i["id"]: 0 for i in self._images})}
        annotations = [a for a in data.get("annotations", ()) if a.get("image_id") in indices]
        if any(a.get("image_id") != a.get("image_id") for a in data.get("annotations", ())):
            raise _NotFiniteError("image_id NaN")
        boxes = _read_boxes(annotations)
        selected = np.flatnonzero(self._find_selected(annotations, boxes))
        self._annotations, self._boxes = [annotations[index] for index in selected.tolist()], boxes[selected]
        image_indices = np.array([indices[annotation["image_id"]] for annotation in self._annotations], np.int64)
        # NumPy sorts 16-bit numbers several times as fast as 64-bit numbers.
        order = np.argsort(image_indices.astype(np.min_scalar_type(len(indices))), kind="stable")
        ends = np.searchsorted(image_indices[order], np.arange(len(indices)), "right")
        parts = np.split(order, ends[:-1]) if len(indices) else []
        self._by_image = dict(zip(indices, parts, strict=True))

    def _select_images(self, images: Iterable[Any]) -> list[Any]:
        if self._options.images is None:
            return sorted(images, key=lambda image: image["id"])
        by_name = {image["file_name"]: image for image in images}
        return [by_name[name] for name in self._options.images if name in by_name]

    def _find_selected(self, annotations: list[Any], boxes: npt.NDArray[np.float64]) -> Mask:
        is_selected: Mask = np.logical_and(*(boxes[:, 2:] >= self._options.size_threshold).T)
        if not self._options.include_iscrowd:
            is_selected &= np.fromiter(
                (not annotation.get("iscrowd", 0) for annotation in annotations), np.bool_, len(annotations)
            )
        return is_selected

    def collect(self) -> Annotations:
        """Return the annotations of the selected images."""
        options = self._options
        if options.skip_empty:
            self._images = [i for i in self._images if len(self._by_image[i["id"]])]
        parts = [self._by_image[image["id"]] for image in self._images]
        order = np.concatenate([np.empty(0, np.int64), *parts])
        counts = np.array([len(part) for part in parts], np.int32)
        sizes = [_read_size(image) for image in self._images]
        boxes = self._boxes[order].astype(np.float32)
        segmentations: list[list[Any]] = []
        if options.polygons or options.masks:
            shapes = [annotation.get("segmentation") for annotation in self._annotations]
            segmentations = [[shapes[index] for index in part.tolist()] for part in parts]
        outlines = Outlines.empty(len(parts))
        if options.polygons:
            outlines = _make_outlines(segmentations, sizes if options.ratio else None)
        return Annotations(
            [_read_file_name(image) for image in self._images],
            np.array([image["id"] for image in self._images], np.int32),
            counts,
            self._convert_boxes(boxes, counts, sizes),
            self._collect_labels()[order],
            outlines,
            sizes,
            segmentations if options.masks else [],
        )

    def _collect_labels(self) -> Ints:
        numbers = [annotation["category_id"] for annotation in self._annotations]
        if any(number != number for number in numbers):
            raise _NotFiniteError("category_id NaN")
        if not self._options.avoid_class_remapping:
            numbers = [self._labels.get(number, 0) for number in numbers]
        return np.array(numbers, np.int32)

    def _convert_boxes(self, boxes: Floats, counts: Ints, sizes: list[tuple[int, int]]) -> Floats:
        if self._options.ltrb:
            boxes[:, 2:] += boxes[:, :2]
        if self._options.ratio:
            boxes /= np.repeat(_extents(sizes), counts, axis=0)[:, [1, 0, 1, 0]]
        return boxes


def _read_size(image: Any) -> tuple[int, int]:
    try:
        return int(image.get("height", 0)), int(image.get("width", 0))
    except (ValueError, OverflowError):
        size = f"{image.get('height')!r} by {image.get('width')!r}"
        raise TypeError(f"height and width of image {image['id']} must be numbers of pixels, got {size}") from None


def _read_file_name(image: Any) -> str:
    name = image["file_name"]
    if not isinstance(name, str) or "\0" in name:
        raise TypeError(f"the file_name of image {image['id']} must be a string without NUL characters, got {name!r}")
    return name


def _make_outlines(segmentations: Iterable[list[Any]], sizes: list[tuple[int, int]] | None) -> Outlines:
    """Collect the polygons of all images. If `sizes` isn't None, divide the vertices by the image's size."""
    polygons: list[list[float]] = []
    mask_indices: list[int] = []
    ends: list[int] = []
    for image_segmentations in segmentations:
        for mask_index, segmentation in enumerate(image_segmentations):
            if isinstance(segmentation, list):  # run-length codes have no polygons
                polygons += segmentation
                mask_indices += [mask_index] * len(segmentation)
        ends.append(len(polygons))
    polygon_starts = np.array([0, *ends], np.int64)
    polygon_counts = polygon_starts[1:] - polygon_starts[:-1]
    lengths, vertices = _read_vertices(polygons)
    stops = np.concatenate([[0], np.cumsum(lengths)])
    vertex_starts = stops[polygon_starts]
    vertex_counts = vertex_starts[1:] - vertex_starts[:-1]
    if sizes is not None:
        vertices /= np.repeat(_extents(sizes)[:, ::-1], vertex_counts, axis=0)
    image_starts = np.repeat(vertex_starts[:-1], polygon_counts)
    table = np.stack([np.array(mask_indices, np.int64), stops[:-1] - image_starts, stops[1:] - image_starts], 1)
    return Outlines(polygon_counts, table.astype(np.int32), vertex_counts, vertices)


def _read_vertices(polygons: list[list[float]]) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the number of vertices of each polygon, and all vertices ``(V, 2)``."""
    if set(map(type, polygons)) - {list}:
        raise TypeError("segmentation: a polygon must be a list of numbers")
    sizes = np.fromiter(map(len, polygons), np.int64, len(polygons))
    if (sizes % 2).any():
        polygons, sizes = [polygon[: len(polygon) // 2 * 2] for polygon in polygons], sizes // 2 * 2
    flat = itertools.chain.from_iterable(polygons)
    try:
        with np.errstate(over="ignore"):
            numbers = np.fromiter(flat, np.float32, int(sizes.sum()))
    except ValueError as error:  # a string instead of a number
        raise TypeError(f"segmentation: {error}") from None
    if not _are_finite(numbers).all():
        raise _NotFiniteError("a vertex of a polygon in `segmentation`")
    return sizes // 2, numbers.reshape(-1, 2)


def _extents(sizes: list[tuple[int, int]]) -> Floats:
    if any(min(size) < 1 for size in sizes):
        raise KeyError("every image must have height and width for `ratio`")
    return np.array(sizes, np.float32).reshape(-1, 2)
