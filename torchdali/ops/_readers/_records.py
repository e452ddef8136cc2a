"""Records of one or several container files, numbered through."""

from __future__ import annotations

import contextvars
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from torchdali.errors import warn
from torchdali.formats.remote import Pending, Remote, RemoteOptions, start_ranges
from torchdali.formats.storage import Bytes, Storage, described_storage, open_storage
from torchdali.formats.urls import is_url, shown
from torchdali.reading.datasets import Read
from torchdali.reading.file_lists import list_digest

__all__ = [
    "Names",
    "Offsets",
    "RecordsDataset",
    "exists",
    "indices",
    "local_only",
    "open_all",
    "open_remote",
    "over_files",
]

Offsets = npt.NDArray[np.int64]


class RecordsDataset:
    """The records of container files, in one row; a class of it parses those of one format.

    Args:
        storages: The files.
        offsets: Of each file, offset and size of its records, ``(N, 2)``.

    Raises:
        RuntimeError: there are no records.
    """

    wrong = "cannot read the record"

    def __init__(self, storages: Sequence[Storage], offsets: Sequence[Offsets]) -> None:
        self._storages = storages
        self._remote = any(is_url(path) for path in _paths(storages))
        self._files = np.repeat(np.arange(len(offsets)), [len(part) for part in offsets])
        self._offsets = np.concatenate([np.empty((0, 2), np.int64), *offsets])
        if not len(self._offsets):
            raise RuntimeError(f"no records found in {', '.join(s.path for s in storages)}")
        self._identities = [storage.identity for storage in storages]

    def __len__(self) -> int:
        return len(self._files)

    def read_many(self, records: Sequence[int], epochs: Sequence[int]) -> Sequence[Read] | None:
        """Start to read records, if any are remote."""
        if not self._remote:
            return None
        files, offsets = self._files[records].tolist(), self._offsets[records].tolist()
        ranges = [(file, *range_) for file, range_ in zip(files, offsets, strict=True)]
        parts = start_ranges(self._storages, ranges)
        return [functools.partial(self.read, record, part) for record, part in zip(records, parts, strict=True)]

    def read(self, index: int, part: Pending | None = None) -> tuple[Tensor, ...]:
        """Return the outputs of a record.

        Args:
            part: Its bytes are on their way.

        Raises:
            RuntimeError: it is damaged, or another one.
        """
        record = self._bytes(index) if part is None else part.bytes()
        try:
            return self.parse(record)
        except (ValueError, IndexError) as error:
            kind = described_storage(self._storages[self._files.item(index)])
            raise RuntimeError(f"{self.wrong} {self.info(index)}: {error}{kind}") from None

    def parse(self, record: Bytes) -> tuple[Tensor, ...]:
        """Return the outputs of a record; ValueError or IndexError if it is damaged."""
        raise NotImplementedError

    def _bytes(self, index: int) -> Bytes:
        storage = self._storages[self._files.item(index)]
        return storage.read(self._offsets.item(index, 0), self._offsets.item(index, 1))

    def identity(self, index: int | None = None) -> bytes | None:
        """Return the identity of a file, as it was when it was opened, and the place of a record in it; or of all."""
        if index is None:
            return list_digest(_paths(self._storages))
        file = self._identities[self._files.item(index)]
        return None if file is None else file + self._offsets[index].tobytes()

    def info(self, index: int, output: int | None = None) -> str:
        """Return file and offset of a record; nothing for other outputs than the first."""
        if output:
            return ""
        return f"{self._storages[self._files.item(index)].path} at index {self._offsets.item(index, 0)}"


class Names:
    """Many short texts in one block of memory."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        parts = list(texts)
        self._data = b"".join(parts)
        self._ends = np.cumsum([0, *map(len, parts)])

    def __getitem__(self, index: int) -> str:
        return self._data[self._ends.item(index) : self._ends.item(index + 1)].decode(errors="replace")


def _paths(storages: Sequence[Storage]) -> list[str]:
    return [storage.path for storage in storages]


def open_remote(paths: Sequence[str | None], options: Mapping[str, Any]) -> Remote | None:
    """Return what reads URLs, if any path is one.

    Args:
        options: Arguments of the reader, those of `RemoteOptions` among them.
    """
    if not any(path is not None and is_url(path) for path in paths):
        return None
    names = RemoteOptions.__dataclass_fields__
    return Remote(RemoteOptions(**{name: options[name] for name in names if name in options}))


def open_all(
    paths: Sequence[str],
    mapped: bool,
    direct: bool = False,
    options: Mapping[str, Any] | None = None,
) -> list[Storage]:
    """Open the files of a reader.

    Args:
        paths: Of files, or URLs.
        options: Arguments of the reader, those of `RemoteOptions` among them.

    Raises:
        RuntimeError: there are none, one cannot be opened, or the options contradict each other.
    """
    if not paths:
        raise RuntimeError("no files specified: path is empty")
    if mapped and direct:
        raise RuntimeError("use_o_direct goes with dont_use_mmap=True: a mapped file is not read")
    remote = open_remote(paths, options or {})
    if remote is None:
        return [open_storage(path, mapped=mapped, direct=direct) for path in paths]
    return remote.map(lambda path: open_storage(path, mapped=mapped, direct=direct, remote=remote), paths)


def local_only(**arguments: str | Sequence[str] | None) -> None:
    """Refuse URLs, for a reader that cannot read them.

    Args:
        arguments: Paths by the name of their argument.

    Raises:
        RuntimeError: names the argument and the URL.
    """
    for name, value in arguments.items():
        for path in [value] if isinstance(value, str) else value or ():
            if is_url(path):
                raise RuntimeError(
                    f"{name}: {shown(path)!r} is an URL, and this reader takes files of this machine: download "
                    "it first (URLs are for readers.file, numpy, webdataset, tfrecord and mxnet)"
                )


def exists(path: str) -> bool:
    """Return whether there is a file; of URLs, whether it can be asked about."""
    if not is_url(path):
        return os.path.exists(path)
    try:
        Remote(RemoteOptions(io_concurrency=1)).info(path)
    except RuntimeError:
        return False
    return True


def over_files(function: Callable[[Storage], Any], storages: Sequence[Storage]) -> list[Any]:
    """Call a function, which reads, on each file; on several remote ones at a time."""
    if not any(is_url(path) for path in _paths(storages)):
        return list(map(function, storages))
    with ThreadPoolExecutor(_FILES_AT_A_TIME) as pool:
        contexts = [contextvars.copy_context() for _ in storages]  # whose warnings name the user's line
        return list(pool.map(lambda context, storage: context.run(function, storage), contexts, storages))


_FILES_AT_A_TIME = 8


def indices(
    storages: Sequence[Storage],
    paths: Sequence[str] | None,
    read: Callable[[str, Storage], Offsets],
    scan: Callable[[Storage], Iterator[tuple[int, int]]],
    write: Callable[[str, Sequence[tuple[int, int]]], None],
) -> list[Offsets]:
    """Return offset and size of the records of each file: from index files, or found by reading the file.

    Args:
        paths: Of index files, one a file. One that does not exist is written, with a warning.

    Raises:
        RuntimeError: there are more files than indices or fewer, or something cannot be read.
    """
    if not paths:
        return over_files(lambda s: np.array(list(scan(s)), np.int64).reshape(-1, 2), storages)
    if len(paths) != len(storages):
        raise RuntimeError(
            f"index_path has {len(paths)} files for {len(storages)} of data: give one for each, in the same order"
        )
    for storage, path in zip(storages, paths, strict=True):
        if not exists(path):
            warn(f"the index {shown(path)} does not exist: it is made of {storage.path}")
            write(path, list(scan(storage)))
    return [read(path, storage) for storage, path in zip(storages, paths, strict=True)]
