"""The reader of files that are stored in class folders or listed."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch

from torchdali.calls.decorators import reader
from torchdali.codecs.files import read_file
from torchdali.declaration.schema import FilePath, OutputCount, shares
from torchdali.errors import warn
from torchdali.formats.remote import PendingBytes, Remote, RemoteOptions
from torchdali.formats.storage import file_identity, read_text
from torchdali.formats.urls import is_url, redact
from torchdali.ops._readers._class_folders import IMAGE_AND_AUDIO, compile_filter, list_class_folders
from torchdali.ops._readers._records import open_remote
from torchdali.reading.datasets import Dataset, Indices, LoaderOptions, Read, WholeFiles
from torchdali.reading.file_lists import list_digest

__all__ = ["FileDataset", "ListedFiles", "file", "load_file"]

_IS_POSIX = os.sep == "/"


class ListedFiles:
    """Records that are whole files.

    Args:
        paths: One path per record.
        root: Folder that relative paths start from.
        remote: Connection that reads URLs; None if all files are local.

    Raises:
        RuntimeError: No files were found.
        ValueError: `remote` has a ``shuffle_window``.
    """

    def __init__(self, paths: Sequence[str], root: str, remote: Remote | None = None) -> None:
        if not paths:
            raise RuntimeError(f"no files found in {redact(root)!r}" if root else "no files found")
        self._paths, self._folder, self._remote = paths, os.path.join(root, ""), remote
        if remote is not None and remote.options.shuffle_window is not None:
            raise ValueError("shuffle_window is only for containers; omit it for single files")
        self.bytes_ahead = 0 if remote is None else int(remote.options.io_ahead)

    @property
    def remotes(self) -> tuple[Remote, ...]:
        """The connections that read files at URLs."""
        return () if self._remote is None else (self._remote,)

    @property
    def is_busy(self) -> bool:
        """True if new requests must wait for earlier requests to end."""
        return self._remote is not None and self._remote.is_busy

    def byte_count(self, records: Indices) -> int:
        """Estimate the total size of files in bytes, from the mean size of the files that were read so far."""
        return 0 if self._remote is None else int(len(records) * self._remote.mean_size)

    def __len__(self) -> int:
        return len(self._paths)

    def identity(self, index: int | None = None) -> bytes | None:
        """Return the identity of a file; if `index` is None, return the identity of the list of files."""
        if index is None:
            return list_digest(self._paths)
        path = self._path(index)
        return file_identity(path) if self._remote is None or not is_url(path) else self._remote.identity(path)

    def _path(self, index: int) -> str:
        path = self._paths[index]
        # This method must be fast, because it is called for every file, and Python code holds the GIL.
        if path.startswith("/") if _IS_POSIX else os.path.isabs(path):
            return path
        if self._remote is not None and is_url(path):
            return path
        return self._folder + path

    def info(self, index: int, output: int | None = None) -> str:
        """Return the full path of a file.

        If `output` is 0, return the path that the user listed; if `output` is above 0, an empty string.
        """
        if output is None:
            return redact(self._path(index))
        return "" if output else self._paths[index]


class FileDataset(ListedFiles):
    """Files and their labels. See `ListedFiles` for the other arguments.

    Args:
        labels: One label per record.
        mapped: If True, map large files into memory; if False, read all files with ordinary read calls.
        classes: Class names of the labels, from label 0 on; empty if the names are unknown.
        file_list: Path of the text file that lists the paths; empty if the paths come from elsewhere.

    Raises:
        RuntimeError: No files were found, or a label does not fit int32.
    """

    def __init__(
        self,
        paths: Sequence[str],
        labels: Sequence[int],
        root: str = "",
        mapped: bool = True,
        remote: Remote | None = None,
        classes: Sequence[str] = (),
        file_list: str = "",
    ) -> None:
        super().__init__(paths, root, remote)
        try:
            self._labels = np.array(labels, np.int32)
        except OverflowError:
            raise RuntimeError("labels must fit int32") from None
        self._mapped, self.classes, self._file_list = mapped, classes, file_list

    def read_many(self, records: Sequence[int], epochs: Sequence[int]) -> Sequence[Read]:
        """Start to read remote files; return one function per record that returns the file's bytes."""
        if self._remote is None:
            return WholeFiles(records, self._path, self.read)
        pending = {record: self._start(self._remote, record) for record in dict.fromkeys(records)}
        return [functools.partial(self.read, record, pending[record]) for record in records]

    def _start(self, remote: Remote, record: int) -> PendingBytes | None:
        path = self._path(record)
        return remote.start(path) if is_url(path) else None

    def read(self, index: int, pending: PendingBytes | None = None) -> tuple[torch.Tensor]:
        """Return the bytes of a file.

        Args:
            pending: A pending read of the file; None to read the file now.
        """
        try:
            return (load_file(self._path(index), self._remote, pending, self._mapped),)
        except FileNotFoundError as error:
            if self._file_list:
                error.strerror = (
                    f"{error.strerror}, of line {_find_line(self._file_list, index)} of {redact(self._file_list)!r}"
                )
            raise

    def byte_counts(self) -> list[int]:
        """Return the size of each file in bytes, with one request per URL.

        If a local file cannot be read, its size is 0, and `read` raises an error later.
        """
        paths = map(self._path, range(len(self)))
        return list(map(_file_size, paths)) if self._remote is None else self._remote.map(self._remote_size, paths)

    def _remote_size(self, path: str) -> int:
        assert self._remote is not None
        return (self._remote.info(path).size or 0) if is_url(path) else _file_size(path)

    def metadata(self, records: npt.NDArray[np.int64]) -> tuple[torch.Tensor]:
        """Return the labels, ``(N, 1)``."""
        return (torch.from_numpy(self._labels[records, None]),)


def _file_size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def load_file(
    path: str, remote: Remote | None, pending: PendingBytes | None, mapped: bool, direct: bool = False
) -> torch.Tensor:
    """Return the bytes of a whole file.

    Args:
        pending: A pending read of the file at the URL; None to request the file now.
        mapped: Map a large local file into memory.
        direct: If ``mapped`` is False, bypass the system's file cache.

    Raises:
        RuntimeError: The file cannot be read, or the file is empty and ``mapped`` is True.
    """
    if remote is None or not is_url(path):
        return read_file(path, mapped=mapped, direct=direct)
    data = torch.from_numpy((remote.start(path) if pending is None else pending).bytes())
    if mapped and not data.numel():
        raise RuntimeError(f"the file {redact(path)} is empty")
    return data


class Labels(list[int]):
    """Integer labels, one per file."""

    @classmethod
    def from_argument(cls, value: Any) -> Labels:
        """Convert labels to integers; fractions are truncated with a warning, as in DALI.

        Raises:
            TypeError: A label is not a number.
        """
        values = value.tolist() if hasattr(value, "tolist") else list(value)
        if invalid := [each for each in values if not isinstance(each, (int, float))][:1]:
            advice = _STRING_LABELS_ADVICE if isinstance(invalid[0], str) else _OTHER_LABELS_ADVICE
            raise TypeError(f"labels must be numbers, got {invalid[0]!r}; {advice}")
        if fractions := [each for each in values if each != int(each)][:1]:
            detail = f"{fractions[0]} is cut to {int(fractions[0])}"
            warn(f"readers.file: labels must be integers; {detail}; {_OTHER_LABELS_ADVICE}")
        return cls(map(int, values))


_OTHER_LABELS_ADVICE = (
    "for other labels, read pairs: paths, labels = fn.readers.dataset(dataset=list(zip(files, labels))), then the "
    "files: data = fn.io.file.read(paths)"
)
_STRING_LABELS_ADVICE = (
    "number the names: names = sorted(set(labels)); labels = [names.index(label) for label in labels]"
)


@reader(name="readers.file", metadata=1, marks=("encoded",))
def file(
    *,
    file_root: FilePath | None = None,
    files: list[FilePath] | None = None,
    labels: Labels | None = None,
    file_list: FilePath | None = None,
    file_filters: list[str] = IMAGE_AND_AUDIO,
    dir_filters: list[str] | None = None,
    case_sensitive_filter: bool = False,
    **options: Annotated[Any, shares(LoaderOptions), shares(RemoteOptions)],
) -> Annotated[Dataset, OutputCount(2)]:
    """Read files and labels.

    The files are selected in one of three ways:

    - ``file_root`` alone: the files in the direct subfolders. Each subfolder is a class, even if none of its files
      matches ``file_filters``. Classes are numbered in the order of their names' bytes.
    - ``file_list``: the files that a text file lists, with lines ``path label``.
    - ``files``: a list of paths. Without ``labels``, the label of each file is the file's index in the list.

    Args:
        file_root: Folder or URL that contains class folders; with ``files`` or ``file_list``, the folder that relative
            paths start from. By default, relative paths in a ``file_list`` start from the list's own folder.
        files: Paths, or URLs.
        labels: Labels, one per file of ``files``.
        file_list: A text file with lines ``path label``; labels are integers from 0.
        file_filters: Shell patterns of file names; used only if ``file_root`` selects the files.
        dir_filters: Shell patterns of class folders; used only if ``file_root`` selects the files. Folders that don't
            match are skipped, and don't count as classes.
        case_sensitive_filter: Make the patterns case-sensitive.

    Returns:
        The bytes of the file, ``(n,)`` uint8, and the label, ``(1,)`` int32.

    Raises:
        RuntimeError: No argument selects files, ``files`` and ``file_list`` are both passed, no files were found, or a
            folder or list cannot be read. While the pipeline runs: a file cannot be read, or a file is empty and
            ``dont_use_mmap`` is False.
    """
    _check_arguments(file_root, files, labels, file_list)
    mapped = not options.get("dont_use_mmap", False)
    remote = open_remote([file_root, file_list, *(files or ())], options)
    dataset = functools.partial(FileDataset, mapped=mapped, remote=remote)
    if files is not None:
        numbers = list(range(len(files))) if labels is None else labels
        return dataset(files, numbers, file_root or "")
    if file_list is not None:
        root = os.path.dirname(file_list) if file_root is None else file_root
        return dataset(*_read_list(file_list), root, file_list=file_list)
    assert file_root is not None
    matches_file = compile_filter("file_filters", file_filters, case_sensitive_filter)
    is_class_folder = None
    if dir_filters is not None:
        is_class_folder = compile_filter("dir_filters", dir_filters, case_sensitive_filter)
    paths, numbers, classes = list_class_folders(file_root, matches_file, is_class_folder, remote)
    return dataset(paths, numbers, file_root, classes=classes)


def _check_arguments(
    root: str | None, files: list[str] | None, labels: list[int] | None, file_list: str | None
) -> None:
    if files is not None and file_list is not None:
        raise RuntimeError("pass either files or file_list, not both")
    if files is None and file_list is None and root is None:
        raise RuntimeError("pass file_root, files or file_list")
    for file in files or ():
        if "*" in file and not is_url(file) and not os.path.exists(os.path.join(root or "", file)):
            raise RuntimeError(
                f"no such file: {file!r}; pass patterns as file_filters with file_root, or files=glob.glob(...)"
            )
    if labels is not None and files is None:
        raise RuntimeError("labels must be passed together with files")
    if labels is not None and files is not None and len(labels) != len(files):
        raise RuntimeError(f"labels must have one value per file, got {len(files)} files and {len(labels)} labels")
    if files is not None and not files:
        raise RuntimeError("the list of files must not be empty")


# ---------------------------------------------------------------- lists


_ENTRY = re.compile(r"(?P<path>.*\S)\s+(?P<label>\d+)\s*")


def _read_list(path: str) -> tuple[list[str], list[int]]:
    try:
        lines = _read_lines(path)
    except RuntimeError as error:
        reason = str(error).rpartition(f"{redact(path)}: ")[2]
        raise RuntimeError(f"cannot read the file_list {redact(path)!r}: {reason}") from None
    entries = [_parse_entry(path, number, line) for number, line in lines]
    if not entries:
        raise RuntimeError(f"no files found: the file_list {redact(path)!r} lists no files")
    return [name for name, _ in entries], [label for _, label in entries]


def _read_lines(path: str) -> list[tuple[int, str]]:
    return [(number, line) for number, line in enumerate(read_text(path).split("\n"), 1) if line.strip()]


def _find_line(path: str, index: int) -> int:
    return _read_lines(path)[index][0]


def _parse_entry(path: str, number: int, line: str) -> tuple[str, int]:
    entry = _ENTRY.fullmatch(line)
    if entry is None:
        raise RuntimeError(
            f"{redact(path)!r}, line {number}: expected a path and a label from 0, found {redact(line.strip())!r}"
        )
    return entry["path"], int(entry["label"])
