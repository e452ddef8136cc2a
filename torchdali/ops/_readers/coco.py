"""The reader of images with COCO annotations."""

from __future__ import annotations

import functools
import glob
import os
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.calls.decorators import reader
from torchdali.codecs.files import read_file
from torchdali.declaration.schema import FilePath, OutputCount, shares
from torchdali.formats import coco as format
from torchdali.formats import coco_saved
from torchdali.formats.coco_masks import draw
from torchdali.formats.storage import file_identity
from torchdali.ops._readers._records import check_local
from torchdali.reading.datasets import Dataset, LoaderOptions
from torchdali.reading.file_lists import list_digest

__all__ = ["COCODataset", "coco"]


class COCODataset:
    """Images with their boxes and labels, and masks if requested.

    Args:
        annotations: Annotations of all images.
        masks: Format of the masks: ``"polygons"``, ``"coordinates"``, ``"pixels"`` or "" for none. ``"coordinates"`` is
            the deprecated form of ``"polygons"``, with indices of coordinates (two per vertex) instead of vertices.
        image_ids: Return the image's id, too.
        mapped: Map large files into memory.
        files: Identity of the annotation files.

    Raises:
        RuntimeError: The annotations contain no images.
    """

    def __init__(
        self, annotations: format.Annotations, root: str, masks: str, image_ids: bool, mapped: bool,
        annotation_identity: bytes,
    ) -> None:  # fmt: skip
        if not annotations.names:
            raise RuntimeError("no files found: the annotations name no images")
        self._annotations, self._root = annotations, root
        self._masks, self._image_ids, self._annotation_identity = masks, image_ids, annotation_identity
        self._boxes = _accumulate(annotations.counts)
        self._read = functools.partial(read_file, mapped=mapped)

    def __len__(self) -> int:
        return len(self._annotations.names)

    def identity(self, index: int | None = None) -> bytes | None:
        """Return the identity of a record; if `index` is None, return the identity of the list of images.

        The identity of a record consists of the identities of the image file and the annotation files, and of the
        record's index.
        """
        if index is None:
            return list_digest(self._annotations.names)
        identity = file_identity(self.info(index))
        # A file may be listed twice.
        return None if identity is None else identity + self._annotation_identity + b" %d" % index

    def read(self, index: int) -> tuple[Tensor, ...]:
        """Return the outputs of an image.

        Raises:
            RuntimeError: The image cannot be read, or its masks cannot be drawn.
        """
        annotations = self._annotations
        begin, end = self._boxes[index], self._boxes[index + 1]
        labels = annotations.labels[begin:end].copy()
        outputs = [
            self._read(self.info(index)),
            *map(torch.from_numpy, (annotations.boxes[begin:end].copy(), labels)),
        ]
        if self._masks == "pixels":
            outputs.append(self._draw_masks(index, labels))
        elif self._masks:
            polygons, vertices = annotations.outlines.select_image(index)
            if self._masks == "coordinates":
                polygons[:, 1:] *= 2
            outputs += torch.from_numpy(polygons), torch.from_numpy(vertices)
        if self._image_ids:
            outputs.append(torch.from_numpy(annotations.ids[index : index + 1].copy()))
        return tuple(outputs)

    def _draw_masks(self, index: int, labels: npt.NDArray[np.int32]) -> Tensor:
        annotations = self._annotations
        try:
            mask = draw(annotations.sizes[index], annotations.segmentations[index], labels)
        except (ValueError, TypeError, AttributeError) as error:
            raise RuntimeError(f"cannot draw the masks of {self.info(index)}: {error}") from None
        return torch.from_numpy(mask[..., None])

    def info(self, index: int, output: int | None = None) -> str:
        """Return the path of an image.

        If `output` is 0, return the image's file name in the annotations; if `output` is above 0, an empty string.
        """
        if output is None:
            return os.path.join(self._root, self._annotations.names[index])
        return "" if output else self._annotations.names[index]


def _accumulate(counts: npt.NDArray[Any]) -> list[int]:
    return [0, *np.cumsum(counts, dtype=np.int64).tolist()]


def _count_outputs(arguments: Mapping[str, Any]) -> int:
    polygons = arguments["polygon_masks"] or arguments["masks"]
    masks = 2 if polygons else 1 if arguments["pixelwise_masks"] else 0
    return 3 + masks + bool(arguments["image_ids"])


@reader(
    marks=("encoded",),
    name="readers.coco",
    outputs=_count_outputs,
    layout=lambda layouts, arguments: ("", "", "", "HWC" if arguments["pixelwise_masks"] else ""),
    deprecated={
        "meta_files_path": "preprocessed_annotations",
        "dump_meta_files": "save_preprocessed_annotations",
        "dump_meta_files_path": "save_preprocessed_annotations_dir",
        "save_img_ids": "image_ids",
    },
)
def coco(
    *,
    file_root: FilePath | None = None,
    annotations_file: FilePath = "",
    preprocessed_annotations: FilePath = "",
    save_preprocessed_annotations: bool = False,
    save_preprocessed_annotations_dir: FilePath = "",
    images: list[str] | None = None,
    ltrb: bool = False,
    ratio: bool = False,
    size_threshold: float = 0.1,
    skip_empty: bool = False,
    include_iscrowd: bool = True,
    avoid_class_remapping: bool = False,
    polygon_masks: bool = False,
    masks: bool = False,
    pixelwise_masks: bool = False,
    image_ids: bool = False,
    **options: Annotated[Any, shares(LoaderOptions)],
) -> Annotated[Dataset, OutputCount(3)]:
    """Read images with COCO boxes, labels and masks.

    Args:
        file_root: Folder of the images.
        annotations_file: JSON file of the annotations.
        preprocessed_annotations: Folder of annotations that ``save_preprocessed_annotations`` saved; replaces
            ``annotations_file``.
        save_preprocessed_annotations: Save the annotations in a form that is faster to read.
        save_preprocessed_annotations_dir: Folder to save the annotations in.
        images: File names of the images to read, in this order; by default all images in the order of their ids.
        ltrb: If True, boxes are left, top, right, bottom; otherwise left, top, width, height.
        ratio: If True, coordinates are fractions of the image's size; otherwise pixels.
        size_threshold: Minimum width and height of a box in pixels. Smaller boxes are skipped.
        skip_empty: Skip images without annotations.
        include_iscrowd: Include annotations that are marked as crowds.
        avoid_class_remapping: If True, labels are the category ids; otherwise positions in the file's list of
            categories, counted from 1.
        polygon_masks: Return the masks as polygons.
        masks: Deprecated. Like ``polygon_masks``, but with indices of coordinates (two per vertex) instead of vertices.
        pixelwise_masks: Return the masks as pixels, drawn from polygons and run-length codes.
        image_ids: Return the image's id.

    Returns:
        The encoded image, ``(n,)`` uint8; the boxes, ``(k, 4)`` float32; the labels, ``(k,)`` int32. With
        ``polygon_masks``, two more outputs: the polygons, ``(p, 3)`` int32, each with the index of its box, the index
        of its first vertex, and the index after its last vertex; and the vertices, ``(v, 2)`` float32. With
        ``pixelwise_masks``, one more output, ``(H, W, 1)`` int32: for each pixel, the largest label whose mask covers
        the pixel, or 0. With ``image_ids``, the id, ``(1,)`` int32.

    Raises:
        RuntimeError: The annotations cannot be read, contain no images, or arguments exclude each other. While the
            pipeline runs: an image cannot be read, or a mask cannot be drawn.
        ValueError: A box doesn't have four numbers.
    """
    json_arguments = {
        "annotations_file": annotations_file, "skip_empty": skip_empty, "ratio": ratio, "ltrb": ltrb, "images": images,
        "avoid_class_remapping": avoid_class_remapping, "pixelwise_masks": pixelwise_masks,
    }  # fmt: skip
    _check_arguments(file_root, annotations_file, preprocessed_annotations, json_arguments)
    if pixelwise_masks and (polygon_masks or masks):
        raise RuntimeError("pixelwise_masks and polygon_masks are mutually exclusive")
    if save_preprocessed_annotations != bool(save_preprocessed_annotations_dir):
        raise RuntimeError(
            "save_preprocessed_annotations and save_preprocessed_annotations_dir should be provided together"
        )
    check_local(file_root=file_root, annotations_file=annotations_file)
    polygons = polygon_masks or masks
    annotation_options = format.AnnotationOptions(
        images, ltrb, ratio, size_threshold, skip_empty, include_iscrowd, avoid_class_remapping,
        polygons, pixelwise_masks,
    )  # fmt: skip
    pattern = os.path.join(glob.escape(preprocessed_annotations), "*")
    files = sorted(glob.glob(pattern)) if preprocessed_annotations else [annotations_file]
    identity = b"".join(file_identity(path) or b"" for path in files)
    if preprocessed_annotations:
        annotations = coco_saved.load(preprocessed_annotations, polygons, image_ids)
    else:
        annotations = format.parse(annotations_file, annotation_options)
    if save_preprocessed_annotations:
        coco_saved.save(annotations, save_preprocessed_annotations_dir)
    kind = "pixels" if pixelwise_masks else "coordinates" if masks else "polygons" if polygon_masks else ""
    assert file_root is not None
    return COCODataset(annotations, file_root, kind, image_ids, not options.get("dont_use_mmap", False), identity)


def _check_arguments(root: str | None, annotations: str, saved: str, arguments: Mapping[str, Any]) -> None:
    if root is None:
        raise RuntimeError("file_root, the folder of the images, must be passed")
    if not annotations and not saved:
        raise RuntimeError("either annotations_file or preprocessed_annotations must be provided")
    if saved:
        for name, value in arguments.items():
            if value:
                raise RuntimeError(
                    f"{name} cannot be combined with preprocessed_annotations: the reader uses them as they were saved"
                )
