"""Index files of containers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from torchdali.formats import recordio, tar, tfrecord
from torchdali.formats.storage import Storage, open_storage

__all__ = ["KINDS", "Progress", "index", "index_path"]

Progress = Callable[[int, int], None]
"""Called with what is done, and how much there is, in bytes or in samples."""


def _end_of_sample(sample: Any) -> int:
    return int(sample[-1][1] + sample[-1][2])


def _end_of_record(record: Any) -> int:
    return int(record[0] + record[1])


_SCANS: dict[str, tuple[Callable[[Storage], Iterator[Any]], Callable[[Any], int], Callable[[str, Any], None]]] = {
    "tfrecord": (tfrecord.scan, _end_of_record, tfrecord.write_index),
    "webdataset": (tar.indexed_samples, _end_of_sample, tar.write_index),
    "mxnet": (recordio.scan, _end_of_record, recordio.write_index),
}  # fmt: skip
KINDS = tuple(_SCANS)
"""Containers that have index files."""

_ENDING = {"tfrecord": ".tfrecord", "webdataset": ".tar", "mxnet": ".rec"}
_ENDINGS = (".tar", ".rec", ".tfrecord", ".tfrecords")


def index_path(path: str, folder: str | None = None) -> str:
    """Return where the index of a container is written: beside it, or in another folder."""
    for ending in _ENDINGS:
        path = path.removesuffix(ending)
    return f"{path}.idx" if folder is None else os.path.join(folder, f"{os.path.basename(path)}.idx")


def index(
    kind: str, path: str, folder: str | None = None, force: bool = False, progress: Progress | None = None
) -> tuple[str, int]:  # fmt: skip
    """Write the index of a container.

    Args:
        kind: One of `KINDS`.
        path: Of the container, or its URL.
        folder: Of the index; that of the container if left out.
        force: Replace an index that is there.
        progress: Called with bytes.

    Returns:
        The path of the index, and the number of samples.

    Raises:
        RuntimeError: the container is damaged, or there is an index.
    """
    scan, end, write = _SCANS[kind]
    target = index_path(path, folder)
    if os.path.exists(target) and not force:
        raise RuntimeError(f"{target} exists already; --force replaces it")
    if os.path.isdir(path):
        pattern = os.path.join(path, f"*{_ENDING[kind]}")
        raise RuntimeError(f"{path} is a folder, and each file gets an index of its own: give the files, as {pattern}")
    storage = open_storage(path)
    tables: list[Any] = []
    for record in scan(storage):
        tables.append(record)
        if progress is not None:
            progress(end(record), storage.size)
    if not tables:
        raise RuntimeError(f"{path} has no samples")
    write(target, tables)
    return target, len(tables)
