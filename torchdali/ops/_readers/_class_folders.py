"""List and label the files in class folders (one folder per class), and warn about surprising contents."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from torchdali.codecs.images import EXTENSIONS, OTHER_EXTENSIONS
from torchdali.errors import hint_for_folder, warn
from torchdali.formats.remote import Remote
from torchdali.formats.urls import redact

__all__ = ["IMAGE_AND_AUDIO", "NamePredicate", "compile_filter", "list_class_folders", "warn_of_classes"]

IMAGE_AND_AUDIO = ["*" + ending for ending in (*EXTENSIONS, ".flac", ".ogg", ".wav")]
# Extensions of formats that torchdali decodes, but DALI's default `file_filters` omit.
_OTHER_DECODABLE = (*OTHER_EXTENSIONS, ".mp3", ".aif", ".aiff", ".au", ".opus")

NamePredicate = Callable[[str], bool]

_match_suffix = re.compile(r"\*[^*?\[]*").fullmatch


def compile_filter(argument: str, patterns: Iterable[str], case_sensitive: bool) -> NamePredicate:
    """Return a function that tests whether a name matches one of several shell patterns.

    Args:
        argument: Name of the reader's argument, for the error.
        patterns: The shell patterns.
        case_sensitive: Distinguish upper and lower case.

    Raises:
        RuntimeError: `patterns` is empty.
    """
    normalized = [pattern if case_sensitive else pattern.lower() for pattern in patterns]
    if not normalized:
        raise RuntimeError(f"{argument} must not be empty: no name would match")
    # There may be millions of names, so patterns like "*.jpg" are tested with `str.endswith`, which is faster.
    suffixes = tuple(p[1:] for p in normalized if _match_suffix(p))
    regexes = [fnmatch.translate(p) for p in normalized if not _match_suffix(p)]
    match_regex = re.compile("|".join(regexes) if regexes else "(?!)").match

    def matches(name: str) -> bool:
        name = name if case_sensitive else name.lower()
        return name.endswith(suffixes) or match_regex(name) is not None

    return matches


class _Listing:
    """Collects the files in class folders.

    Args:
        matches: Function that returns whether the reader reads files with this name.
        list_folder: Function that lists the folders and the files in a folder.
    """

    def __init__(
        self, root: str, matches: NamePredicate, list_folder: Callable[[str], tuple[list[str], list[str]]]
    ) -> None:  # fmt: skip
        self.nested: list[str] = []  # folders whose files are skipped
        self.skipped: list[str] = []  # skipped files that could be decoded
        self._root, self._matches, self._list_folder = root, matches, list_folder
        self._reads_images = all(matches(f"a{ending}") for ending in EXTENSIONS)

    def list_files(self, folder: str) -> list[str]:
        """Return the files of a class folder that the reader reads."""
        folders, names = self._list_folder(os.path.join(self._root, folder))
        self.nested.extend(os.path.join(folder, name) for name in folders)
        files = [f"{folder}{os.sep}{name}" for name in names if self._matches(name)]
        if self._reads_images and len(files) < len(names):
            self.skipped.extend(
                os.path.join(folder, n) for n in names if n.lower().endswith(_OTHER_DECODABLE) and n[0] != "."
            )
        return files


def list_class_folders(
    root: str, matches: NamePredicate, is_class_folder: NamePredicate | None, remote: Remote | None
) -> tuple[list[str], list[int], list[str]]:
    """Return the files of all class folders, the label of each file, and the names of the class folders.

    Args:
        matches: Function that returns whether the reader reads files with this name.
        is_class_folder: Function that returns whether a folder with this name is a class folder; None for all folders.
        remote: Connection that reads URLs; None for a local folder.

    Raises:
        RuntimeError: No files were found, or a folder cannot be listed.
    """
    list_folder = _list_folder if remote is None else remote.list_folder
    folders, root_files = list_folder(root)
    folders = [folder for folder in folders if is_class_folder is None or is_class_folder(folder)]
    listing = _Listing(root, matches, list_folder)
    if len(folders) < _FEW_FOLDERS:
        lists = list(map(listing.list_files, folders))
    else:
        with ThreadPoolExecutor(_LIST_THREADS) as pool:
            lists = list(pool.map(listing.list_files, folders))
    paths = [path for files in lists for path in files]
    labels = [label for label, files in enumerate(lists) for _ in files]
    if not paths:
        count = sum(map(bool, map(matches, root_files)))
        raise RuntimeError(
            f"no files found in {redact(root)!r}: none of its {len(folders)} class folders has a file whose name "
            f"matches file_filters. For files outside of class folders ({count} here), pass files or file_list"
            f"{_suggest_split(root, listing.nested)}"
        )
    warn_of_classes(root, folders, list(map(len, lists)), "pass dir_filters=['[!.]*'] to skip hidden folders")
    _warn_of_files(root, listing)
    return paths, labels, folders


def _suggest_split(root: str, nested: Sequence[str]) -> str:
    """Return advice for the error if `root` contains training and validation sets instead of class folders."""
    if not nested:
        return ""
    example = os.path.join(redact(root), os.path.dirname(min(nested)))
    return f". These folders contain folders, for example {min(nested)!r}; if those are the classes, pass {example!r}"


_MAX_SHOWN = 5  # maximum number of folders in a message


def warn_of_classes(root: str, folders: Sequence[str], counts: Sequence[int], advice: str) -> None:
    """Warn about hidden class folders, and about class folders without files.

    As in DALI, these folders are classes and have labels.

    Args:
        counts: Number of files in each folder.
        advice: Advice for hidden folders.
    """
    hidden = [folder for folder in folders if folder.startswith(".")]
    if hidden:
        label = folders.index(hidden[0])
        warn(
            f"{redact(root)}: the hidden folder {hidden[0]!r} is read as a class, with label {label}, which shifts "
            f"the labels of the following classes ({len(hidden)} such folders); {advice}"
        )
    empty = [f for f, count in zip(folders, counts, strict=True) if not count and f not in hidden]
    if empty:
        names = ", ".join(map(repr, empty[:_MAX_SHOWN])) + (", ..." if len(empty) > _MAX_SHOWN else "")
        warn(
            f"{redact(root)}: {len(empty)} of {len(folders)} class folders have no readable file, {names}; the "
            f"classes keep their labels, but no sample has these labels"
        )


def _warn_of_files(root: str, listing: _Listing) -> None:
    nested, skipped = listing.nested, listing.skipped
    if nested:
        warn(
            f"{redact(root)}: {len(nested)} folders are inside class folders, for example {min(nested)!r}; the reader "
            f"skips their files"
        )
    if skipped:
        warn(
            f"{redact(root)}: {len(skipped)} decodable files are skipped because of their extension, for example "
            f"{min(skipped)!r}; choose files with file_filters= of readers.file"
        )


_FEW_FOLDERS = 32  # for fewer folders, threads cost more than they save
_LIST_THREADS = 16  # number of threads, which mostly wait for the disk or the network


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder. A link that cannot be resolved counts as a file."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _list_folder(path: str) -> tuple[list[str], list[str]]:
    """List the folders and the files of a folder, each in the order of their names' bytes."""
    names: tuple[list[str], list[str]] = [], []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                names[0 if _is_folder(entry) else 1].append(entry.name)
    except OSError as error:
        raise RuntimeError(f"cannot list the folder {path!r}: {error.strerror}{hint_for_folder(path)}") from None
    return _sort_names(names[0]), _sort_names(names[1])


def _sort_names(names: list[str]) -> list[str]:
    is_ascii = all(map(str.isascii, names))  # sorting ASCII names without a key has the same result, and is faster
    return sorted(names) if is_ascii else sorted(names, key=os.fsencode)
