"""Records of one or several container files, numbered through."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from torchdali.formats.storage import Bytes, Storage, open_storage

__all__ = ["Records", "indices", "open_all"]

Offsets = npt.NDArray[np.int64]


class Records:
    """Positions of the records.

    Args:
        storages: The files.
        offsets: Of each file, offset and size of its records, ``(N, 2)``.

    Raises:
        RuntimeError: there are no records.
    """

    def __init__(self, storages: Sequence[Storage], offsets: Sequence[Offsets]) -> None:
        self.storages = storages
        self._files = np.repeat(np.arange(len(offsets)), [len(part) for part in offsets])
        self._offsets = np.concatenate([np.empty((0, 2), np.int64), *offsets])
        if not len(self._offsets):
            raise RuntimeError(f"no records found in {', '.join(s.path for s in storages)}")

    def __len__(self) -> int:
        return len(self._files)

    def read(self, index: int) -> Bytes:
        """Return a whole record."""
        storage = self.storages[self._files.item(index)]
        return storage.read(self._offsets.item(index, 0), self._offsets.item(index, 1))

    def info(self, index: int) -> str:
        """Name a record by its file and offset."""
        return (
            f"{self.storages[self._files.item(index)].path} at index {self._offsets.item(index, 0)}"
        )


def open_all(paths: Sequence[str], mapped: bool, direct: bool = False) -> list[Storage]:
    """Open the files of a reader.

    Raises:
        RuntimeError: there are none, one cannot be opened, or the options contradict each other.
    """
    if not paths:
        raise RuntimeError("no files specified: path is empty")
    if mapped and direct:
        raise RuntimeError("use_o_direct goes with dont_use_mmap=True: a mapped file is not read")
    return [open_storage(path, mapped=mapped, direct=direct) for path in paths]


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
        return [np.array(list(scan(storage)), np.int64).reshape(-1, 2) for storage in storages]
    if len(paths) != len(storages):
        raise RuntimeError(
            f"number of index files needs to match the number of data files: {len(paths)} and {len(storages)}"
        )
    for storage, path in zip(storages, paths, strict=True):
        if not os.path.exists(path):
            warnings.warn(
                f"the index {path} does not exist: it is made of {storage.path}", stacklevel=2
            )
            write(path, list(scan(storage)))
    return [read(path, storage) for storage, path in zip(storages, paths, strict=True)]
