"""Open container files (files with many records) and their indices, and read the records."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from torch import Tensor

from torchdali.errors import warn
from torchdali.formats.manifest import Manifest, ManifestShard, is_manifest
from torchdali.formats.remote import NoSuchObject, PendingBytes, Remote, RemoteOptions
from torchdali.formats.storage import Bytes, ByteStorage, describe_storage, open_storage, read_text, write_text
from torchdali.formats.urls import is_url, redact
from torchdali.ops._readers._ranges import RangeReader
from torchdali.reading.datasets import Indices, Read
from torchdali.reading.file_lists import list_digest

__all__ = [
    "IndexedContainer",
    "Offsets",
    "PackedTexts",
    "RecordsDataset",
    "call_in_threads",
    "check_local",
    "load_offsets",
    "load_records",
    "map_containers",
    "open_containers",
    "open_ranges",
    "open_remote",
]  # fmt: skip

T = TypeVar("T")
Offsets = npt.NDArray[np.int64]


class RecordsDataset:
    """The records of container files, with indices that continue from one file to the next.

    Each subclass parses the records of one format.

    Args:
        offsets: For each file, the offset and the size of its records, ``(N, 2)``.
        arguments: Arguments of the reader.

    Raises:
        RuntimeError: The files have no records.
    """

    error_prefix = "cannot read the record"

    def __init__(
        self, storages: Sequence[ByteStorage], offsets: Sequence[Offsets], arguments: Mapping[str, Any] | None = None
    ) -> None:
        self._storages = storages
        self._files = np.repeat(np.arange(len(offsets)), [len(part) for part in offsets])
        self._offsets = np.concatenate([np.empty((0, 2), np.int64), *offsets])
        if not len(self._offsets):
            raise RuntimeError(f"no records found in {', '.join(s.path for s in storages)}")
        self._identities = [storage.identity for storage in storages]
        self._range_reader = open_ranges(storages, self._files, self._offsets[:, None], arguments or {})

    runs = property(lambda self: None if self._range_reader is None else self._range_reader.runs)
    bytes_ahead = property(lambda self: 0 if self._range_reader is None else self._range_reader.bytes_ahead)
    remotes = property(lambda self: () if self._range_reader is None else (self._range_reader.remote,))
    is_busy = property(lambda self: self._range_reader.is_busy)

    def byte_count(self, records: Indices) -> int:
        """Return the total size of records in bytes."""
        assert self._range_reader is not None
        return self._range_reader.byte_count(records)

    def __len__(self) -> int:
        return len(self._files)

    def read_many(self, records: Sequence[int], epochs: Sequence[int]) -> Sequence[Read] | None:
        """Start to read remote records, and return one function per record that returns the record's outputs.

        Return None if all containers are local.
        """
        if self._range_reader is None:
            return None
        parts = self._range_reader.start(records)
        return [functools.partial(self.read, record, part[0]) for record, part in zip(records, parts, strict=True)]

    def read(self, index: int, pending: PendingBytes | None = None) -> tuple[Tensor, ...]:
        """Return the outputs of a record.

        Args:
            pending: A pending read of the record; None to read the record now.

        Raises:
            RuntimeError: The record is damaged, or has another format.
        """
        record = self._read_bytes(index) if pending is None else pending.bytes()
        try:
            return self.parse(record)
        except (ValueError, IndexError) as error:
            description = describe_storage(self._storages[self._files.item(index)])
            raise RuntimeError(f"{self.error_prefix} {self.info(index)}: {error}{description}") from None

    def parse(self, record: Bytes) -> tuple[Tensor, ...]:
        """Convert the bytes of a record to the outputs.

        Raises:
            ValueError: The record is damaged.
            IndexError: The record is damaged.
        """
        raise NotImplementedError

    def _read_bytes(self, index: int) -> Bytes:
        storage = self._storages[self._files.item(index)]
        return storage.read(self._offsets.item(index, 0), self._offsets.item(index, 1))

    def identity(self, index: int | None = None) -> bytes | None:
        """Return the identity of a record; if `index` is None, return the identity of the list of files.

        The identity of a record consists of the file's identity when the file was opened, and of the record's offset
        and size.
        """
        if index is None:
            return list_digest(_list_paths(self._storages))
        file = self._identities[self._files.item(index)]
        return None if file is None else file + self._offsets[index].tobytes()

    def info(self, index: int, output: int | None = None) -> str:
        """Return the file and the offset of a record; an empty string if `output` is above 0."""
        if output:
            return ""
        return f"{self._storages[self._files.item(index)].path} at index {self._offsets.item(index, 0)}"


class PackedTexts:
    """A sequence of many short texts, stored in one block of memory."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        parts = list(texts)
        self._data = b"".join(parts)
        self._ends = np.cumsum([0, *map(len, parts)])

    def __getitem__(self, index: int) -> str:
        return self._data[self._ends.item(index) : self._ends.item(index + 1)].decode(errors="replace")


def open_ranges(
    storages: Sequence[ByteStorage], files: Indices, extents: Indices, arguments: Mapping[str, Any]
) -> RangeReader | None:
    """Return an object that requests records of remote containers; None if all containers are local."""
    remote = next((each for storage in storages if (each := getattr(storage, "remote", None)) is not None), None)
    return None if remote is None else RangeReader(remote, storages, files, extents, arguments)


def _list_paths(storages: Sequence[ByteStorage]) -> list[str]:
    return [storage.path for storage in storages]


def open_remote(paths: Sequence[str | None], options: Mapping[str, Any]) -> Remote | None:
    """Return a connection that reads URLs; None if no path is a URL.

    Args:
        options: Arguments of the reader, including the fields of `RemoteOptions`.
    """
    if not any(path is not None and is_url(path) for path in paths):
        return None
    names = RemoteOptions.__dataclass_fields__
    return Remote(RemoteOptions(**{name: options[name] for name in names if name in options}))


class IndexedContainer(NamedTuple):
    """A container and its index.

    Attributes:
        path: Path of the index or of the manifest; empty if the user passed no index.
        text: Text of the index; None if the container must be scanned.
    """

    storage: ByteStorage
    path: str = ""
    text: str | None = None


def open_containers(
    kind: str, paths: Sequence[str], index_paths: Sequence[str] | None, direct: bool = False,
    options: Mapping[str, Any] | None = None,
) -> list[IndexedContainer]:  # fmt: skip
    """Open the containers of a reader, and read their indices. Remote containers are opened concurrently.

    Args:
        kind: Name of the container format in manifests.
        index_paths: One path per container, or the path of a single manifest.
        options: Arguments of the reader, including the fields of `RemoteOptions`.

    Raises:
        RuntimeError: Containers are missing or cannot be opened, or the options contradict each other.
    """
    options = options or {}
    mapped = not options.get("dont_use_mmap", False)
    if not paths:
        raise RuntimeError("no files specified: path is empty")
    if mapped and direct:
        raise RuntimeError("use_o_direct needs dont_use_mmap=True")
    remote = open_remote([*paths, *(index_paths or ())], options)

    def open_indexed(path: str, index: str = "", shard: ManifestShard | None = None) -> IndexedContainer:
        version = None if shard is None else shard.version
        storage = open_storage(path, mapped=mapped, direct=direct, remote=remote, version=version)
        return IndexedContainer(storage, index, _read_index(index, remote) if shard is None else shard.text)

    if index_paths and len(index_paths) == 1 and is_manifest(index_paths[0]):
        manifest = Manifest.read(index_paths[0], kind, remote)
        calls = [functools.partial(open_indexed, path, index_paths[0], manifest.shard(path)) for path in paths]
    elif index_paths and len(index_paths) != len(paths):
        raise RuntimeError(
            f"index_path must have one index per file, in the same order, got {len(index_paths)} index files for "
            f"{len(paths)} files"
        )
    else:
        calls = [
            functools.partial(open_indexed, *each) for each in zip(paths, index_paths or [""] * len(paths), strict=True)
        ]
    return call_in_threads(calls, 1 if remote is None else remote.options.io_concurrency)


def _read_index(path: str, remote: Remote | None) -> str | None:
    if not path or not (is_url(path) or os.path.exists(path)):
        return None
    with contextlib.suppress(NoSuchObject):
        return read_text(path, remote)
    return None


def check_local(**arguments: str | Sequence[str] | None) -> None:
    """Check that all paths are local, for a reader that doesn't support URLs.

    Args:
        arguments: Values of the reader's arguments that are paths.

    Raises:
        RuntimeError: A path is a URL.
    """
    for name, value in arguments.items():
        for path in [value] if isinstance(value, str) else value or ():
            if is_url(path):
                raise RuntimeError(
                    f"{name}: this reader reads only local files, got the URL {redact(path)!r}. Download the file "
                    f"first (readers.file, numpy, webdataset, tfrecord and mxnet support URLs)"
                )


def map_containers(function: Callable[[IndexedContainer], T], containers: Sequence[IndexedContainer]) -> list[T]:
    """Call a function with each container. The calls are concurrent if remote containers must be scanned."""
    remote = any(is_url(each.storage.path) and each.text is None for each in containers)
    return call_in_threads([functools.partial(function, each) for each in containers], _MAX_SCANS if remote else 1)


_MAX_SCANS = 8  # maximum number of concurrent scans; low, because each scan already reads ahead


def call_in_threads(calls: Sequence[Callable[[], T]], threads: int) -> list[T]:
    if threads == 1 or len(calls) < 2:
        return [call() for call in calls]
    with ThreadPoolExecutor(min(threads, len(calls))) as pool:
        contexts = [contextvars.copy_context() for _ in calls]  # in these contexts, warnings name the user's line
        return list(pool.map(lambda context, call: context.run(call), contexts, calls))


def load_records(
    container: IndexedContainer,
    parse: Callable[[str, str, ByteStorage], T],
    scan: Callable[[ByteStorage], Iterator[Any]],
    describe: Callable[[list[Any]], str],
) -> T | list[Any]:
    """Return the records of a container, from its index or from a scan.

    If the index doesn't exist, create the index, unless its path is a URL.

    Args:
        parse: Function that parses an index. Its arguments are the index's text, the index's path and the container.
        scan: Function that yields the records of a container.
        describe: Function that converts records to the text of an index.
    """
    storage, path, text = container
    if text is not None:
        return parse(text, path, storage)
    if path and is_url(path):
        warn(
            f"the index {redact(path)} does not exist, so the reader scans {storage.path} instead. Create the index "
            f"with `torchdali index`"
        )
    elif path:
        warn(f"the index {redact(path)} does not exist, so the reader builds it from {storage.path}")
    records = list(scan(storage))
    if path and not is_url(path):
        write_text(path, describe(records))
    return records


def load_offsets(
    containers: Sequence[IndexedContainer],
    parse: Callable[[str, str, ByteStorage], Offsets],
    scan: Callable[[ByteStorage], Iterator[tuple[int, int]]],
    describe: Callable[[list[tuple[int, int]]], str],
) -> list[Offsets]:
    """Return the offset and the size of each container's records; see `load_records`."""

    def offsets(container: IndexedContainer) -> Offsets:
        return np.array(load_records(container, parse, scan, describe), np.int64).reshape(-1, 2)

    return map_containers(offsets, containers)
