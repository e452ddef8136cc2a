"""COCO annotations, saved as binary tables in DALI's format."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from torchdali.formats.coco import Annotations, Outlines
from torchdali.formats.shared_folder import open_for_reading, write_atomically

__all__ = ["load", "save"]

# For each file: a field of `Annotations` or `Outlines`, the dtype, and the count of numbers per row. In boxes.dat, each
# number is a row.
_TABLES: dict[str, tuple[str, Any, int]] = {
    "counts.dat": ("counts", np.int32, 1),
    "boxes.dat": ("boxes", np.float32, 1),
    "labels.dat": ("labels", np.int32, 1),
    "original_ids.dat": ("ids", np.int32, 1),
    "polygons_count.dat": ("polygon_counts", np.int64, 1),
    "polygon_data.dat": ("polygons", np.int32, 3),
    "vertices_count.dat": ("vertex_counts", np.int64, 1),
    "vertices.dat": ("vertices", np.float32, 2),
}
_OFFSETS = {
    "offsets.dat": ("counts", np.int32),
    "polygon_offset.dat": ("polygon_counts", np.int64),
    "vertices_offset.dat": ("vertex_counts", np.int64),
}
_POLYGON_TABLES = ("polygons_count.dat", "polygon_data.dat", "vertices_count.dat", "vertices.dat")


def save(annotations: Annotations, folder: str) -> None:
    """Write annotations as tables, which `load` and DALI read faster than JSON.

    Raises:
        RuntimeError: The folder cannot be written to.
    """
    columns = {**vars(annotations), **vars(annotations.outlines)}
    tables = {name: (columns[field], dtype, width) for name, (field, dtype, width) in _TABLES.items()}
    for name, (field, dtype) in _OFFSETS.items():
        counts = columns[field]
        tables[name] = (np.cumsum(counts) - counts, dtype, 1)
    try:
        for name, (values, dtype, width) in tables.items():
            count = np.uint32(values.size // width).tobytes()
            write_atomically(os.path.join(folder, name), [count, values.astype(dtype).tobytes()])
        text = "".join(f"{name}\n" for name in annotations.names)
        write_atomically(os.path.join(folder, "filenames.dat"), [text.encode("utf-8", "surrogateescape")])
    except OSError as error:
        raise RuntimeError(f"cannot save annotations in {folder}: {error.strerror}") from None


def load(folder: str, polygons: bool, ids: bool) -> Annotations:
    """Read saved annotations.

    Args:
        polygons: Read the polygons, too.
        ids: Read the ids of the images, too. Some folders don't contain ids.

    Raises:
        RuntimeError: The tables cannot be read, or contradict each other.
    """
    try:
        with open_for_reading(os.path.join(folder, "filenames.dat")) as file:
            names = file.read().decode("utf-8", "surrogateescape").splitlines()
        arrays = {
            field: _read_table(folder, name)
            for name, (field, _, _) in _TABLES.items()
            if (polygons or name not in _POLYGON_TABLES) and (ids or field != "ids")
        }
    except OSError as error:
        raise RuntimeError(f"no files found: cannot read annotations in {folder}: {error.strerror}") from None
    arrays["boxes"] = arrays["boxes"].reshape(-1, 4)
    outlines = Outlines.empty(len(names))
    if polygons:
        fields = ("polygon_counts", "polygons", "vertex_counts", "vertices")
        outlines = Outlines(*(arrays[field] for field in fields))
    image_ids = arrays["ids"] if ids else np.zeros(len(names), np.int32)
    annotations = Annotations(names, image_ids, arrays["counts"], arrays["boxes"], arrays["labels"], outlines, [], [])
    if not _are_consistent(annotations, outlines):
        raise RuntimeError(
            f"the files of the saved annotations in {folder} contradict each other. Save the annotations again"
        )
    return annotations


def _are_consistent(annotations: Annotations, outlines: Outlines) -> bool:
    tables = (
        (annotations.counts, annotations.boxes),
        (annotations.counts, annotations.labels),
        (outlines.polygon_counts, outlines.polygons),
        (outlines.vertex_counts, outlines.vertices),
    )
    return len(annotations.ids) == len(annotations.names) and all(
        len(counts) == len(annotations.names) and counts.min(initial=0) >= 0 and counts.sum() == len(table)
        for counts, table in tables
    )


def _read_table(folder: str, name: str) -> Any:
    _, dtype, width = _TABLES[name]
    with open_for_reading(os.path.join(folder, name)) as file:
        data = file.read()
    count = int.from_bytes(data[:4], "little") * width
    if len(data) != 4 + count * np.dtype(dtype).itemsize or (name == "boxes.dat" and count % 4):
        raise RuntimeError(
            f"{os.path.join(folder, name)} is damaged: its length of {len(data)} bytes contradicts its header"
        )
    values = np.frombuffer(data, dtype, offset=4).copy()
    if not np.isfinite(values).all():
        raise RuntimeError(f"{os.path.join(folder, name)} must contain only finite numbers. Save the annotations again")
    return values.reshape(-1, width) if width > 1 else values
