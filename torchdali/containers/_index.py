"""Create index files and manifests of containers: TFRecord, webdataset and RecordIO files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from torchdali.formats import recordio, tar, tfrecord
from torchdali.formats.manifest import Manifest, ManifestShard
from torchdali.formats.remote import RemoteFile
from torchdali.formats.storage import ByteStorage, exists, open_storage, write_text
from torchdali.formats.stores import ObjectVersion
from torchdali.formats.urls import redact
from torchdali.ops._readers._records import IndexedContainer, map_containers, open_containers

__all__ = ["KINDS", "Progress", "index", "index_path", "manifest"]

Progress = Callable[[int, int], None]
"""Function that is called with the amount of finished work and of all work, in bytes, samples or shards."""


def _end_of_sample(sample: Any) -> int:
    return int(sample[-1][1] + sample[-1][2])


def _end_of_record(record: Any) -> int:
    return int(record[0] + record[1])


class _ContainerFormat(NamedTuple):
    """Functions for one container format.

    Attributes:
        scan: Yields the records of a container.
        end: Returns the offset after a record.
        text: Converts a list of records to the text of an index.
    """

    scan: Callable[[ByteStorage], Iterator[Any]]
    end: Callable[[Any], int]
    text: Callable[[Any], str]


_KINDS = {
    "tfrecord": _ContainerFormat(tfrecord.scan, _end_of_record, tfrecord.index_text),
    "webdataset": _ContainerFormat(tar.read_indexable_samples, _end_of_sample, tar.index_text),
    "mxnet": _ContainerFormat(recordio.scan, _end_of_record, recordio.index_text),
}
KINDS = tuple(_KINDS)
"""Names of the container formats that have index files."""

_EXTENSION_BY_FORMAT = {"tfrecord": ".tfrecord", "webdataset": ".tar", "mxnet": ".rec"}
_EXTENSIONS = (".tar", ".rec", ".tfrecord", ".tfrecords")


def index_path(path: str, folder: str | None = None) -> str:
    """Return the path of a container's index, in `folder`, or in the container's folder if `folder` is None."""
    for extension in _EXTENSIONS:
        path = path.removesuffix(extension)
    return f"{path}.idx" if folder is None else os.path.join(folder, f"{os.path.basename(path)}.idx")


def index(
    kind: str, path: str, folder: str | None = None, force: bool = False, progress: Progress | None = None
) -> tuple[str, int]:  # fmt: skip
    """Write the index of a container.

    Args:
        kind: One of `KINDS`.
        path: Path of the container, or its URL.
        folder: Folder of the index; the container's folder by default.
        force: Replace an existing index.
        progress: Function that is called with the number of scanned bytes and the number of all bytes.

    Returns:
        The path of the index, and the number of samples.

    Raises:
        RuntimeError: The container is damaged or empty, or the index exists and `force` is False.
    """
    scan, end, text = _KINDS[kind]
    target = index_path(path, folder)
    if not force and exists(target):
        raise RuntimeError(f"{target} already exists; pass --force to replace it")
    if os.path.isdir(path):
        pattern = os.path.join(path, f"*{_EXTENSION_BY_FORMAT[kind]}")
        raise RuntimeError(
            f"{path} must be a file, got a folder. Each file gets its own index: pass the files, for example {pattern}"
        )
    storage = open_storage(path)
    records: list[Any] = []
    for record in scan(storage):
        records.append(record)
        if progress is not None:
            progress(end(record), storage.size)
    if not records:
        raise RuntimeError(f"{path} has no samples")
    write_text(target, text(records))
    return target, len(records)


def manifest(kind: str, paths: Sequence[str], target: str, progress: Progress | None = None) -> tuple[str, int]:
    """Write the manifest of a dataset: one file with the indices of all shards.

    With a manifest, a reader can open the shards without a request for each shard.

    Args:
        kind: One of `KINDS`.
        paths: Paths of the shards, or their URLs. Index files in the shards' folders are used; shards without an index
            are scanned.
        target: Path of the manifest, or its URL; must end in ``.json``.
        progress: Function that is called with the number of processed shards and the number of all shards.

    Returns:
        The path of the manifest, and the number of samples.

    Raises:
        RuntimeError: A shard is damaged, two shards have the same file name, or `target` does not end in ``.json``.
    """
    if not target.endswith(".json"):
        raise RuntimeError(f"the manifest's name must end in .json, got {redact(target)!r}")
    if len({os.path.basename(path) for path in paths}) < len(paths):
        raise RuntimeError("the shards must have different file names")
    done, count = 0, 0

    def index_shard(container: IndexedContainer) -> ManifestShard:
        nonlocal done, count
        storage, text = container.storage, container.text
        if text is None:
            text = _KINDS[kind].text(list(_KINDS[kind].scan(storage)))
        done, count = done + 1, count + len(text.splitlines()) - (kind == "webdataset")
        if progress is not None:
            progress(done, len(paths))
        return ManifestShard(storage.version if isinstance(storage, RemoteFile) else ObjectVersion(storage.size), text)

    containers = open_containers(kind, paths, [index_path(path) for path in paths], options={"dont_use_mmap": True})
    shards = map_containers(index_shard, containers)
    Manifest(kind, dict(zip(map(os.path.basename, paths), shards, strict=True))).write(target)
    return target, count
