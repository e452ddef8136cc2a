"""Read containers and files once, and list broken files and records."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from torchdali import fn
from torchdali.codecs.images import EXTENSIONS
from torchdali.containers._index import Progress
from torchdali.formats import lmdb, npy, recordio, tar, tfrecord
from torchdali.formats.remote import Remote
from torchdali.formats.storage import Bytes, ByteStorage, open_storage
from torchdali.formats.urls import is_url, redact

__all__ = ["IMAGES", "Problem", "check"]

IMAGES = frozenset(EXTENSIONS)


class Problem(NamedTuple):
    """A broken file or record.

    Attributes:
        offset: Offset of the record in the file; None if the problem concerns the whole file.
    """

    path: str
    offset: int | None
    message: str

    def __str__(self) -> str:
        location = "" if self.offset is None else f" at {self.offset}"
        return f"{self.path}{location}: {self.message}"


class CheckedRecord(NamedTuple):
    """Result of checking a record, or one file of a webdataset sample.

    Attributes:
        offset: Offset in the container; -1 if the result concerns the whole container.
        problem: Description of the problem; "" if the check passed.
        starts_sample: True if a new sample begins with the record or file.
    """

    offset: int
    problem: str
    starts_sample: bool = True


CheckedRecords = Iterator[CheckedRecord]


def check(
    paths: Sequence[str], decode: bool = True, progress: Progress | None = None
) -> tuple[list[Problem], dict[str, int]]:  # fmt: skip
    """Check containers, arrays and images.

    Args:
        paths: Paths of files, folders and databases, or their URLs. All files in folders are checked.
        decode: If True, decode all images. If False, an image file passes the check if it is not empty.
        progress: Function that is called with the number of checked bytes and the number of all bytes.

    Returns:
        The problems, in the files' order; and the numbers of samples, of files, and of files with unknown formats.

    Raises:
        RuntimeError: A path does not exist.
    """
    files = [file for path in paths for file in _list_files(path)]
    sizes = [os.path.getsize(file) if os.path.exists(file) else 0 for file in files]
    problems: list[Problem] = []
    counts, position = {"samples": 0, "files": 0, "unknown": 0}, 0
    for file, size in zip(files, sizes, strict=True):
        checker = _find_checker(file)
        counts["files" if checker is not None else "unknown"] += 1
        if checker is not None:
            for record in _report_exceptions(file, checker, decode):
                counts["samples"] += record.starts_sample
                if record.problem:
                    problems.append(Problem(file, None if record.offset < 0 else record.offset, record.problem))
                if progress is not None:
                    progress(position + max(record.offset, 0), sum(sizes))
        position += size
    problems += [problem for path in paths if os.path.isdir(path) for problem in _class_problems(path)]
    return problems, counts


def _class_problems(root: str) -> Iterator[Problem]:
    """Yield the empty and hidden folders among class folders, since `readers.file` treats them as classes."""
    names = {e.name: os.listdir(e.path) for e in sorted(os.scandir(root), key=lambda e: e.name) if e.is_dir()}
    endings = {name: {os.path.splitext(each)[1].lower() for each in entries} for name, entries in names.items()}
    images = {name: bool(extensions & IMAGES) for name, extensions in endings.items()}
    if not any(has_images and not name.startswith(".") for name, has_images in images.items()):
        return
    for name, entries in names.items():
        if name.startswith(".") and (images[name] or not entries):
            yield Problem(os.path.join(root, name), None, "readers.file reads this hidden folder as a class")
        elif not entries:
            yield Problem(os.path.join(root, name), None, "the folder is empty: a class without samples")


_WRITTEN = ("classes.txt", "pack.json")  # files that `pack` writes next to the shards


def _list_files(path: str) -> Iterator[str]:
    if is_url(path) and _find_checker(path) is None:
        yield from _list_objects(Remote(), path.rstrip("/"))
        return
    if not os.path.isdir(path):
        if not os.path.exists(path) and not is_url(path):
            raise RuntimeError(f"no such file or folder: {path}")
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        yield from (os.path.join(folder, n) for n in sorted(names) if not n.endswith(".idx") and n not in _WRITTEN)


def _list_objects(remote: Remote, url: str) -> Iterator[str]:
    folders, names = remote.list_folder(url)
    if not folders and not names:
        raise RuntimeError(f"no object found at {redact(url)}")
    yield from (f"{url}/{name}" for name in names if not name.endswith(".idx") and name not in _WRITTEN)
    for folder in folders:
        yield from _list_objects(remote, f"{url}/{folder}")


_Checker = Callable[[ByteStorage, bool], CheckedRecords]


def _find_checker(path: str) -> _Checker | None:
    name = os.path.basename(path).lower()
    ending = os.path.splitext(name)[1]
    if ending in IMAGES:
        return _check_image
    if "tfrecord" in name and ending != ".idx":
        return _check_tfrecord
    return {".tar": _check_tar, ".rec": _check_recordio, ".npy": _check_array, ".mdb": _check_database}.get(ending)


def _report_exceptions(path: str, checker: _Checker, decode: bool) -> CheckedRecords:
    """Yield the results of a check; an exception becomes a problem of the whole file."""
    try:
        yield from checker(open_storage(path, mapped=False), decode)
    except (RuntimeError, OSError, ValueError) as error:
        yield CheckedRecord(-1, str(error))


def _error_text(function: Callable[[], object]) -> str:
    """Call a function; return the text of its exception, or "" if it raises none."""
    try:
        function()
    except Exception as error:
        return str(error) or type(error).__name__
    return ""


def _decode(data: Bytes) -> None:
    fn.decoders.image(torch.from_numpy(np.array(data)))


def _is_image(data: Bytes) -> bool:
    head = data[:12].tobytes()
    starts = (b"\xff\xd8\xff", b"\x89PNG", b"BM", b"II*\0", b"MM\0*")
    return head.startswith(starts) or head[8:] == b"WEBP"


def _check_image(storage: ByteStorage, decode: bool) -> CheckedRecords:
    data = storage.read(0, storage.size)
    yield CheckedRecord(-1, _error_text(lambda: _decode(data)) if decode else "" if len(data) else "the file is empty")


def _check_array(storage: ByteStorage, decode: bool) -> CheckedRecords:
    yield CheckedRecord(-1, _error_text(lambda: npy.read_array(storage.read(0, storage.size))))


def _check_tfrecord(storage: ByteStorage, decode: bool) -> CheckedRecords:
    for offset, size in tfrecord.scan(storage):
        record = storage.read(offset, size)
        yield CheckedRecord(offset, _error_text(lambda: _check_example(record, decode)))  # noqa: B023  called at once


def _check_example(record: Bytes, decode: bool) -> None:
    tfrecord.verify(record)
    begin, end = tfrecord.payload(record)
    for value in tfrecord.features(record.data, begin, end).values():
        if decode and value.kind == "string":
            for start, stop in value.strings():
                if _is_image(record[start:stop]):
                    _decode(record[start:stop])


def _check_recordio(storage: ByteStorage, decode: bool) -> CheckedRecords:
    for offset, size in recordio.scan(storage):
        record = storage.read(offset, size)

        def verify(record: Bytes = record) -> None:
            image, _ = recordio.image(recordio.content(record))
            if decode and _is_image(image):
                _decode(image)

        yield CheckedRecord(offset, _error_text(verify))


def _check_tar(storage: ByteStorage, decode: bool) -> CheckedRecords:
    names: set[str] = set()
    last = ""
    archive = tar.Archive(storage)
    for name, offset, size, _ in archive.members():
        problem = ""
        if name in names:
            problem = f"a second member has the name {name!r}"
        elif name.startswith("/") or ".." in name.split("/"):
            problem = f"the name {name!r} leads out of the archive's folder"
        elif decode and os.path.splitext(name.lower())[1] in IMAGES:
            data = archive.read(offset, size)
            problem = _error_text(lambda: _decode(data))  # noqa: B023  called at once
        names.add(name)
        key, extension = tar.split_name(name)
        has_sample = bool(extension and key and not key.endswith("/"))  # other members belong to no sample
        yield CheckedRecord(archive.to_archive_offset(offset), problem, has_sample and key != last)
        last = key if has_sample else last
    for offset, description in archive.skipped:
        yield CheckedRecord(offset, f"readers skip {description}", False)


def _check_database(storage: ByteStorage, decode: bool) -> CheckedRecords:
    for entry in lmdb.read_entries(storage):
        yield CheckedRecord(entry.offset, _error_text(lambda: storage.read(entry.offset, entry.size)))  # noqa: B023  called at once
