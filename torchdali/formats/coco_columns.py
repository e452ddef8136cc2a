"""Columns of numbers from large files of COCO annotations, found by their text without reading all of the JSON.

That works where annotations are written alike, as programs do. It is checked by counting; other files are read as JSON.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Columns", "Texts", "columns"]

_NO_NUMBERS = bytes(set(range(256)) - set(b"0123456789+-.,"))
_NUMBER = rb"[-+.0-9eE]+"
_VALUES = (
    re.compile(rb"%s(?P<comma>)" % _NUMBER),
    re.compile(rb"%s(?P<comma>\s*,\s*)%s(?P=comma)%s(?P=comma)%s(?=\s*\])" % ((_NUMBER,) * 4)),
)  # of one number, and of a box
_COUNTS = {"bbox": 4}
_LARGEST = 1 << 53  # of integers that are exact as float64
_SMALLEST, _HEAD, _PART = 1 << 16, 1 << 16, 1 << 20  # bytes: of files, of an annotation, and read at a time


class Columns(NamedTuple):
    """Annotations as columns.

    Attributes:
        rest: The JSON, with an empty list of annotations.
        found: By key, ``(N,)``; ``(N, 4)`` for ``bbox``; ``(N, 2)`` for ``segmentation``: where in the file it
            begins, and where it has ended.
    """

    rest: Any
    found: dict[str, npt.NDArray[Any]]


class Texts:
    """Parts of a JSON file that are read when they are needed.

    Args:
        path: Of the file.
    """

    _decoder = json.JSONDecoder()

    def __init__(self, path: str) -> None:
        self._path, self._stamp = path, _stamp(os.stat(path))

    def read(self, places: Iterable[Sequence[int]]) -> list[Any]:
        """Return the values that begin at some places, and have ended at others.

        Raises:
            ValueError: the file has changed, or has no JSON there. OSError: it cannot be read.
        """
        file = os.open(self._path, os.O_RDONLY)
        try:
            if _stamp(os.fstat(file)) != self._stamp:
                raise ValueError(f"{self._path} has changed since it was opened")
            read = (os.pread(file, end - begin, begin).decode() for begin, end in places)
            return [self._decoder.raw_decode(text)[0] for text in read]
        finally:
            os.close(file)


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def columns(path: str, keys: Sequence[str]) -> Columns | None:
    """Return columns of the annotations in a file.

    Args:
        path: Of the file.
        keys: Of annotations: ``bbox``, ``segmentation``, or such with an integer.

    Returns:
        The columns, or None where the file is small, or not in the usual form.

    Raises:
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        if not file.seek(0, 2) > _SMALLEST:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _columns(data, keys)


def _columns(data: mmap.mmap, keys: Sequence[str]) -> Columns | None:
    begins = re.search(rb'"annotations"\s*:\s*\[\s*(?=\{)', data)
    if begins is None:
        return None
    begin = begins.end()
    # Anything else than categories that follows has braces, which are counted too.
    after = data.rfind(b'"categories"', begin)
    end = data.rfind(b"]", begin, after if after > 0 else len(data))
    pattern = _pattern(data[begin : min(end, begin + _HEAD)], [key for key in keys if key != "segmentation"])
    mask = re.search(rb'"segmentation"\s*:\s*', data[begin : min(end, begin + _HEAD)])
    if pattern is None or end < 0 or (mask is None and "segmentation" in keys):
        return None
    tables: list[dict[str, npt.NDArray[Any]]] = []
    for start, stop in _parts(data, begin, end):
        found = pattern.text.findall(data, start, stop)
        table = pattern.columns(found) if found else None
        if table is None or len(found) != _objects(data, start, stop, len(found)):
            return None
        if mask is not None and "segmentation" in keys:
            places = _ends_of(mask[0], data, start, stop)
            if len(places) != len(found):
                return None
            table["segmentation"] = np.stack([places, np.append(places[1:], stop)], 1)
        tables.append(table)
    try:
        rest = json.loads(data[:begin] + data[end:])
    except ValueError:
        return None
    if not isinstance(rest, dict) or rest.get("annotations") != []:
        return None
    return Columns(rest, {key: np.concatenate([table[key] for table in tables]) for key in keys})


def _parts(data: mmap.mmap, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Divide the annotations into parts that fit into a cache, each of which begins as the first one does."""
    first = re.compile(rb'\{\s*"[^"]*"').match(data, begin)
    start = begin
    while first is not None and start < end:
        stop = data.rfind(first[0], start + 1, start + _PART) if end - start > _PART else end
        stop = end if stop < 0 else stop
        yield start, stop
        start = stop


def _ends_of(words: bytes, data: mmap.mmap, begin: int, end: int) -> npt.NDArray[np.int64]:
    """Return where some words end: the places behind them that there are."""
    text = np.frombuffer(data, np.uint8, end - begin, begin)
    found = np.flatnonzero((text[:-1] == words[0]) & (text[1:] == words[1]))
    found = found[found < len(text) - len(words)]
    for place, byte in enumerate(words):
        found = found[text[found + place] == byte]
    return found + (begin + len(words))


def _objects(data: mmap.mmap, begin: int, end: int, expected: int) -> int:
    """Count the annotations by their braces, without those of masks given as runs."""
    text = np.frombuffer(data, np.uint8, end - begin, begin)
    opened, closed = (int(np.count_nonzero(text == ord(brace))) for brace in "{}")
    if opened != closed:
        return -1
    if opened != expected:
        runs = re.compile(rb'"segmentation"\s*:\s*\{').findall(data, begin, end)
        return opened - len(runs)
    return opened


class _Pattern(NamedTuple):
    """Regular expression that finds the values of an annotation in its text.

    Attributes:
        text: Of the regular expression; a group holds the values of keys that follow each other.
        groups: Keys of each group.
        between: What stands between the values of a group.
    """

    text: re.Pattern[bytes]
    groups: list[list[str]]
    between: list[list[bytes]]

    def columns(self, found: list[Any]) -> dict[str, npt.NDArray[Any]] | None:
        """Return the numbers of all that was found; None where there is something else."""
        parts = [found] if len(self.groups) == 1 else list(zip(*found, strict=True))
        columns: dict[str, npt.NDArray[Any]] = {}
        for part, keys, between in zip(parts, self.groups, self.between, strict=True):
            counts = [_COUNTS.get(key, 1) for key in keys]
            table = _numbers(b",".join(part), between, len(found), sum(counts))
            if table is None:
                return None
            ends = np.cumsum(counts).tolist()
            for key, stop, count in zip(keys, ends, counts, strict=True):
                column = table[:, stop - count : stop]
                columns[key] = column if key == "bbox" else column[:, 0]
                if key != "bbox" and not (np.abs(column) < _LARGEST).all():
                    return None
        return columns


def _numbers(text: bytes, between: Sequence[bytes], rows: int, width: int) -> npt.NDArray[np.float64] | None:
    exponents = [text.count(e) - rows * b"".join(between).count(e) for e in (b"e", b"E")]
    if any(exponents):
        for words in between:
            text = text.replace(words, b",")
    else:
        text = text.translate(None, _NO_NUMBERS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of words, some versions of NumPy only warn
            flat = np.fromstring(text, np.float64, sep=",")
    except (ValueError, DeprecationWarning):
        return None
    return flat.reshape(rows, width) if len(flat) == rows * width else None


def _pattern(head: bytes, keys: Sequence[str]) -> _Pattern | None:
    """Learn from the first annotation how its keys are written."""
    places = {key: re.search(rb'"%s"\s*:\s*\[?\s*' % key.encode(), head) for key in keys}
    text = b""
    groups: list[list[str]] = []
    between: list[list[bytes]] = []
    last = -1
    for key in sorted(keys, key=lambda key: _start(places[key])):
        place = places[key]
        written = None if place is None else _VALUES[key == "bbox"].match(head, place.end())
        if place is None or written is None:
            return None
        name, words = place[0], head[last : place.start()]
        content = re.escape(written["comma"]).join([_NUMBER] * 4) if key == "bbox" else _NUMBER
        if last >= 0 and re.fullmatch(rb"\s*\]?\s*,\s*", words):
            text += re.escape(words + name) + content
            groups[-1].append(key)
            between[-1].append(words + name)
        else:
            if last >= 0:
                text += rb')(?:[^"{}]*"(?!%s"))*[^"{}]*' % key.encode()
            text += re.escape(name) + b"(" + content
            groups.append([key])
            between.append([])
        last = written.end()
    return _Pattern(re.compile(text + rb")\s*[\],}]"), groups, between)


def _start(place: re.Match[bytes] | None) -> int:
    return -1 if place is None else place.start()
