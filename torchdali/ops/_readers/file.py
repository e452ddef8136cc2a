"""Files in class folders, or listed one by one."""

from __future__ import annotations

import fnmatch
import functools
import os
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch

from torchdali.calls.decorators import reader
from torchdali.codecs._native import read_files
from torchdali.codecs.files import read_file, read_lent
from torchdali.codecs.images import ENDINGS
from torchdali.declaration.schema import FilePath, OutputCount, shares
from torchdali.errors import hint_for_folder, warn
from torchdali.formats.remote import Pending, Remote, RemoteOptions, is_url, shown
from torchdali.formats.storage import file_identity, read_text
from torchdali.ops._readers._records import Begun, Key, index_of, open_remote
from torchdali.reading.datasets import Dataset, LoaderOptions
from torchdali.tensors._storage import Samples

__all__ = ["FileDataset", "file"]

IMAGE_AND_SOUND = ["*" + ending for ending in (*ENDINGS, ".flac", ".ogg", ".wav")]

Match = Callable[[str], bool]


class FileDataset:
    """Files and their labels.

    Args:
        paths: One a record.
        labels: One a record.
        root: What relative paths start from.
        mapped: Map the files into memory; otherwise they are read.
        remote: Reads URLs, if there may be some.
        classes: Names of the labels from 0, if they are known.
        file_list: Where the paths were listed, if they were.

    Raises:
        RuntimeError: there are no files, or a label does not fit int32.
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
        if not paths:
            raise RuntimeError("no files found")
        self._paths, self._folder = paths, os.path.join(root, "")
        try:
            self._labels = np.array(labels, np.int32)
        except OverflowError:
            raise RuntimeError("labels must fit int32") from None
        self._read = functools.partial(read_file, mapped=mapped)
        self._mapped, self._remote, self.classes = mapped, remote, classes
        self._file_list = file_list
        self._by_library = True  # read several at once by the library

    def __len__(self) -> int:
        return len(self._paths)

    def begin(self, records: Sequence[int]) -> list[Begun] | None:
        """Start to read files, if they are remote."""
        return begin_files(self._remote, self._path, records)

    def read(self, index: Key) -> tuple[torch.Tensor]:
        """Return the bytes of a file."""
        if self._remote is not None:
            return (read_begun(self._remote, self._path, index, self._mapped),)
        assert isinstance(index, int)
        try:
            return (self._read(self._path(index)),)
        except FileNotFoundError as error:
            if self._file_list:
                error.strerror = f"{error.strerror}, of line {_line_of(self._file_list, index)} of {self._file_list!r}"
            raise

    def identity(self, index: int) -> bytes | None:
        """Return path, size and time of change of a file."""
        return file_identity(self._path(index))

    def local_paths(self, records: Sequence[int]) -> list[str] | None:
        """Return the files of some records; None if there may be URLs among them."""
        return None if self._remote is not None else [self._path(record) for record in records]

    def read_several(self, records: Sequence[Key], lent: bool) -> Samples | None:
        """Return the bytes of a few files, read in one call."""
        indices = [record for record in records if isinstance(record, int)]
        if self._remote is not None or len(indices) < len(records):
            return None
        paths = [self._path(index) for index in indices]
        found = read_files(paths, lent) if self._by_library else None
        if found is None:
            self._by_library = False  # they are larger: it would read them in vain. Any thread may write this.
            found = read_lent(paths) if lent else None
        return None if found is None else Samples.of_arrays(found, torch.uint8)

    def metadata(self, records: npt.NDArray[np.int64]) -> tuple[torch.Tensor]:
        """Return the labels, ``(N, 1)``."""
        return (torch.from_numpy(self._labels[records, None]),)

    def _path(self, index: int) -> str:
        path = self._paths[index]
        if self._remote is not None and is_url(path):
            return path
        return path if os.path.isabs(path) else self._folder + path

    def info(self, index: int) -> str:
        """Return the path of a file."""
        return shown(self._path(index))

    def source_info(self, index: int) -> str:
        """Return the path of a file as it was listed."""
        return self._paths[index]


def begin_files(remote: Remote | None, path: Callable[[int], str], records: Sequence[int]) -> list[Begun] | None:
    """Start to read whole files, if there is something that reads URLs."""
    if remote is None:
        return None
    started: list[tuple[Pending | None, ...]] = [
        (remote.start(each),) if is_url(each) else () for each in map(path, records)
    ]
    return [Begun(record, parts) for record, parts in zip(records, started, strict=True)]


def read_begun(
    remote: Remote, path: Callable[[int], str], key: Key, mapped: bool, direct: bool = False
) -> torch.Tensor:
    """Return the bytes of a whole file.

    Raises:
        RuntimeError: it cannot be read, or is empty, unless ``mapped`` was switched off.
    """
    name = path(index_of(key))
    if not is_url(name):
        return read_file(name, mapped=mapped, direct=direct)
    part = key.parts[0] if isinstance(key, Begun) else remote.start(name)
    data = torch.from_numpy(part.bytes()) if part is not None else torch.empty(0, dtype=torch.uint8)
    if mapped and not data.numel():
        raise RuntimeError(f"the file {shown(name)} is empty")
    return data


class Labels(list[int]):
    """Whole numbers, one a file."""

    @classmethod
    def from_argument(cls, value: Any) -> Labels:
        """Return labels as the argument takes them; of fractions, as in DALI, what stands before the point.

        Raises:
            TypeError: a label is a text, a list or something else.
        """
        values = value.tolist() if hasattr(value, "tolist") else list(value)
        if wrong := [each for each in values if not isinstance(each, (int, float))][:1]:
            cure = _NUMBERED if isinstance(wrong[0], str) else _OTHER_LABELS
            raise TypeError(f"{wrong[0]!r} is no number; {cure}")
        if fractions := [each for each in values if each != int(each)][:1]:
            cut = f"{fractions[0]} is cut to {int(fractions[0])}"
            warn(f"readers.file: labels are whole numbers, and {cut}; {_OTHER_LABELS}")
        return cls(map(int, values))


_OTHER_LABELS = (
    "for others read pairs: paths, labels = fn.readers.dataset(dataset=list(zip(files, labels))), and then the files: "
    "data = fn.io.file.read(paths)"
)
_NUMBERED = "number the names: names = sorted(set(labels)); labels = [names.index(label) for label in labels]"


@reader(name="readers.file", metadata=1)
def file(
    *,
    file_root: FilePath | None = None,
    files: list[FilePath] | None = None,
    labels: Labels | None = None,
    file_list: FilePath | None = None,
    file_filters: list[str] = IMAGE_AND_SOUND,
    dir_filters: list[str] | None = None,
    case_sensitive_filter: bool = False,
    **options: Annotated[Any, shares(LoaderOptions), shares(RemoteOptions)],
) -> Annotated[Dataset, OutputCount(2)]:
    """Read files and labels.

    One of three ways says which: ``file_root`` alone (each direct subfolder is a class, numbered in the order
    of its name's bytes, also when nothing in it matches); ``file_list``, a text file with lines ``path label``;
    or ``files``, with ``labels`` or numbered from 0.

    Args:
        file_root: Folder of class folders, also as an URL, or what relative paths start from; with ``file_list`` alone
            they start from the folder of the list.
        files: Paths, or URLs.
        labels: One a file.
        file_list: A text file of lines ``path label``, the label a number from 0.
        file_filters: Shell patterns of file names to take, for ``file_root`` alone.
        dir_filters: Shell patterns of folder names to take, likewise; others get no number.
        case_sensitive_filter: Whether the patterns tell upper from lower case.

    Returns:
        The bytes of the file, ``(n,)`` uint8, and the label, ``(1,)`` int32.

    Raises:
        RuntimeError: nothing says which files, more than one thing does, there are none, or a folder or list
            cannot be read. While running: a file cannot be read, or is empty (unless ``dont_use_mmap``).
    """
    _check(file_root, files, labels, file_list)
    mapped = not options.get("dont_use_mmap", False)
    remote = open_remote([file_root, file_list, *(files or ())], options)
    dataset = functools.partial(FileDataset, mapped=mapped, remote=remote)
    if files is not None:
        numbers = list(range(len(files))) if labels is None else labels
        return dataset(files, numbers, file_root or "")
    if file_list is not None:
        root = os.path.dirname(file_list) if file_root is None else file_root
        return dataset(*_listed(file_list), root, file_list=file_list)
    assert file_root is not None
    names = _filter("file_filters", file_filters, case_sensitive_filter)
    folders = None
    if dir_filters is not None:
        folders = _filter("dir_filters", dir_filters, case_sensitive_filter)
    paths, numbers, classes = _in_folders(file_root, names, folders, remote)
    return dataset(paths, numbers, file_root, classes=classes)


def _check(root: str | None, files: list[str] | None, labels: list[int] | None, listed: str | None) -> None:
    if files is not None and listed is not None:
        raise RuntimeError("give either files or file_list, not both")
    if files is None and listed is None and root is None:
        raise RuntimeError("give file_root, files or file_list")
    for file in files or ():
        if "*" in file and not is_url(file) and not os.path.exists(os.path.join(root or "", file)):
            raise RuntimeError(
                f"there is no file {file!r}: patterns go with file_root, as file_filters; or give files=glob.glob(...)"
            )
    if labels is not None and files is None:
        raise RuntimeError("labels go with files")
    if labels is not None and files is not None and len(labels) != len(files):
        raise RuntimeError(f"there are {len(files)} files, but {len(labels)} labels")
    if files is not None and not files:
        raise RuntimeError("the list of files is empty")


# ---------------------------------------------------------------- lists


_ENTRY = re.compile(r"(?P<path>.*\S)\s+(?P<label>\d+)\s*")


def _listed(path: str) -> tuple[list[str], list[int]]:
    """Read a list of files and labels."""
    try:
        lines = _lines(path)
    except RuntimeError as error:
        reason = str(error).rpartition(f"{shown(path)}: ")[2]
        raise RuntimeError(f"cannot read the file_list {shown(path)!r}: {reason}") from None
    found = [_entry(path, number, line) for number, line in lines]
    if not found:
        raise RuntimeError(f"no files found: the file_list {path!r} names none")
    return [name for name, _ in found], [label for _, label in found]


def _lines(path: str) -> list[tuple[int, str]]:
    """Return the lines that are not empty, with their numbers from 1."""
    return [(number, line) for number, line in enumerate(read_text(path).split("\n"), 1) if line.strip()]


def _line_of(path: str, index: int) -> int:
    return _lines(path)[index][0]


def _entry(path: str, number: int, line: str) -> tuple[str, int]:
    entry = _ENTRY.fullmatch(line)
    if entry is None:
        raise RuntimeError(f"{path!r}, line {number}: expected a path and a label from 0, found {line.strip()!r}")
    return entry["path"], int(entry["label"])


# ---------------------------------------------------------------- folders


_IS_ENDING = re.compile(r"\*[^*?\[]*").fullmatch


def _filter(argument: str, patterns: Iterable[str], case_sensitive: bool) -> Match:
    """Return what tells whether a name matches one of several shell patterns."""
    folded = [pattern if case_sensitive else pattern.lower() for pattern in patterns]
    if not folded:
        raise RuntimeError(f"{argument} is empty: no name would match")
    # Almost all patterns are "*.jpg" or the like, and there may be millions of names.
    endings = tuple(p[1:] for p in folded if _IS_ENDING(p))
    others = [re.compile(fnmatch.translate(p)).match for p in folded if not _IS_ENDING(p)]

    def matches(name: str) -> bool:
        name = name if case_sensitive else name.lower()
        return name.endswith(endings) or any(match(name) for match in others)

    return matches


def _in_folders(
    root: str, matches: Match, chosen: Match | None, remote: Remote | None
) -> tuple[list[str], list[int], list[str]]:
    """List the files of all class folders, the numbers of these, and their names."""
    contents = _contents if remote is None else remote.contents
    folders, loose = contents(root)
    folders = [folder for folder in folders if chosen is None or chosen(folder)]

    deeper: list[str] = []  # folders whose files are left out

    def list_folder(folder: str) -> list[str]:
        inner, names = contents(os.path.join(root, folder))
        deeper.extend(os.path.join(folder, name) for name in inner)
        return [f"{folder}{os.sep}{name}" for name in names if matches(name)]

    if len(folders) < _FEW_FOLDERS:
        lists = list(map(list_folder, folders))
    else:
        with ThreadPoolExecutor(_LISTERS) as pool:
            lists = list(pool.map(list_folder, folders))
    paths = [path for found in lists for path in found]
    labels = [label for label, found in enumerate(lists) for _ in found]
    if not paths:
        count = sum(map(bool, map(matches, loose)))
        raise RuntimeError(
            f"no files found in {root!r}: it has {len(folders)} class folders, and none of them has a file whose name "
            f"matches file_filters; for files without a folder, {count} here, give files or file_list"
        )
    if deeper:
        warn(
            f"{shown(root)}: {len(deeper)} folders lie inside the class folders, {min(deeper)!r} the first; "
            "their files are left out"
        )
    return paths, labels, folders


_FEW_FOLDERS = 32  # below it threads cost more than they save
_LISTERS = 16  # a listing waits for the disk or the network


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Tell folders from files; a link that leads nowhere, or to itself, is taken for a file."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _contents(path: str) -> tuple[list[str], list[str]]:
    """List the folders and the files of a folder, each in the order of their names' bytes."""
    names: tuple[list[str], list[str]] = [], []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                names[0 if _is_folder(entry) else 1].append(entry.name)
    except OSError as error:
        raise RuntimeError(f"cannot list the folder {path!r}: {error.strerror}{hint_for_folder(path)}") from None
    return _sorted(names[0]), _sorted(names[1])


def _sorted(names: list[str]) -> list[str]:
    plain = all(map(str.isascii, names))  # then both orders are one
    return sorted(names) if plain else sorted(names, key=os.fsencode)
