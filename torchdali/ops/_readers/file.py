"""Files in class folders, or listed one by one."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import torch

from torchdali.codecs.images import read_file
from torchdali.loader import LoaderOptions
from torchdali.operator import reader
from torchdali.schema import Data, shares

__all__ = ["FileDataset", "file"]

IMAGE_AND_SOUND = [
    "*.jpg", "*.jpeg", "*.png", "*.bmp", "*.tif", "*.tiff", "*.pnm", "*.ppm", "*.pgm", "*.pbm", "*.jp2",
    "*.webp", "*.flac", "*.ogg", "*.wav",
]  # fmt: skip


class FileDataset:
    """Files and their labels.

    Args:
        paths: One a record.
        labels: One a record.
        root: Prepended to relative paths.
    """

    def __init__(self, paths: Sequence[str], labels: Sequence[int], root: str = "") -> None:
        self._paths = [os.path.join(root, path) for path in paths] if root else list(paths)
        self._labels = torch.tensor(labels, dtype=torch.int32).reshape(-1, 1).unbind(0)

    def __len__(self) -> int:
        return len(self._paths)

    def read(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the bytes of a file and its label."""
        return read_file(self._paths[index]), self._labels[index]

    def info(self, index: int) -> str:
        """Return the path of a file."""
        return self._paths[index]


@reader(name="readers.file")
def file(
    *,
    file_root: str | None = None,
    files: list[str] | None = None,
    labels: list[int] | None = None,
    file_list: str | None = None,
    file_filters: list[str] = IMAGE_AND_SOUND,
    dir_filters: list[str] | None = None,
    case_sensitive_filter: bool = False,
    **options: Annotated[Any, shares(LoaderOptions)],
) -> tuple[Data, Data]:
    """Read files and labels.

    One of three ways says which: ``file_root`` alone (each direct subfolder is a class, numbered in the order
    of its name's bytes, also when nothing in it matches); ``file_list``, a text file with lines ``path label``;
    or ``files``, with ``labels`` or numbered from 0.

    Args:
        file_root: Folder of class folders, or what relative paths start from.
        files: Paths.
        labels: One a file.
        file_list: A text file of lines ``path label``.
        file_filters: Patterns of file names to take, for ``file_root``.
        dir_filters: Patterns of folder names to take; others get no number.
        case_sensitive_filter: Whether the patterns tell upper from lower case.

    Returns:
        The bytes of the file, ``(n,)`` uint8, and the label, ``(1,)`` int32.

    Raises:
        RuntimeError: nothing says which files, more than one thing does, there are none, or a folder or list
            cannot be read.
    """
    if files is not None and file_list is not None:
        raise RuntimeError("readers.file: give either files or file_list, not both")
    if labels is not None and files is None:
        raise RuntimeError("readers.file: labels go with files")
    if files is not None:
        return _of_files(files, labels, file_root or "")  # type: ignore[return-value]
    if file_list is not None:
        return _of_list(file_list, file_root)  # type: ignore[return-value]
    if file_root is None:
        raise RuntimeError("readers.file: give file_root, files or file_list")
    matches = _Matcher(file_filters, case_sensitive_filter)
    chosen = _Matcher(dir_filters, case_sensitive_filter) if dir_filters else None
    return _of_folders(file_root, matches, chosen)  # type: ignore[return-value]


class _Matcher:
    """Whether a name matches one of several shell patterns."""

    def __init__(self, patterns: Iterable[str], case_sensitive: bool) -> None:
        self._fold = (lambda name: name) if case_sensitive else str.lower
        self._patterns = [self._fold(pattern) for pattern in patterns]

    def __call__(self, name: str) -> bool:
        name = self._fold(name)
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self._patterns)


def _of_files(files: Sequence[str], labels: Sequence[int] | None, root: str) -> FileDataset:
    if labels is not None and len(labels) != len(files):
        raise RuntimeError(f"readers.file: {len(files)} files, but {len(labels)} labels")
    if not files:
        raise RuntimeError("readers.file: the list of files is empty")
    return FileDataset(files, range(len(files)) if labels is None else labels, root)


def _of_list(path: str, root: str | None) -> FileDataset:
    try:
        with open(path, encoding="utf-8") as lines:
            rows = [line.rsplit(maxsplit=1) for line in lines if line.strip()]
    except OSError as error:
        raise RuntimeError(f"readers.file: cannot read the file_list {path!r}: {error.strerror}") from None
    for number, row in enumerate(rows, 1):
        if len(row) != 2 or not row[1].lstrip("-").isdigit():
            raise RuntimeError(f"readers.file: {path!r}, entry {number}: expected 'path label', found {' '.join(row)!r}")
    if not rows:
        raise RuntimeError(f"readers.file: the file_list {path!r} names no files")
    root = os.path.dirname(path) if root is None else root
    return FileDataset([row[0] for row in rows], [int(row[1]) for row in rows], root)


def _of_folders(root: str, matches: _Matcher, chosen: _Matcher | None) -> FileDataset:
    folders = [f for f in _names(root, folders=True) if chosen is None or chosen(f)]
    paths, labels = [], []
    for label, folder in enumerate(folders):
        found = [name for name in _names(os.path.join(root, folder), folders=False) if matches(name)]
        paths += [os.path.join(folder, name) for name in found]
        labels += [label] * len(found)
    if not paths:
        raise RuntimeError(
            f"readers.file: no files found in {root!r}: it has {len(folders)} folders, and a file counts when it "
            "lies directly in one of them and its name matches file_filters"
        )
    return FileDataset(paths, labels, root)


def _names(path: str, folders: bool) -> list[str]:
    """List the folders or the files of a folder, in the order of their names' bytes."""
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries if entry.is_dir() == folders]
    except OSError as error:
        raise RuntimeError(f"readers.file: cannot list the folder {path!r}: {error.strerror}") from None
    return sorted(names, key=os.fsencode)
