"""Describe a folder of images: sizes, formats, classes, mean and standard deviation, and broken files."""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from torchdali.codecs.images import EXTENSIONS, FORMATS, OTHER_EXTENSIONS, decode, peek_header
from torchdali.containers._check import Problem
from torchdali.containers._index import Progress

__all__ = ["Statistics", "statistics"]

_MAX_QUEUED = 1024  # maximum number of files in the threads' queue
_LISTED = 20  # maximum number of classes and of broken files that are printed


class _ImageStatistics(NamedTuple):
    """Statistics of one decoded image.

    Attributes:
        channels: Number of channels in the file.
        mean: Mean of red, green and blue, for pixels from 0 to 1.
        square: Mean of the squares of red, green and blue.
    """

    path: str
    size: int
    format: str
    channels: int
    height: int
    width: int
    mean: npt.NDArray[np.float64]
    square: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Statistics:
    """Result of `statistics`; `str` formats the result as a table.

    Attributes:
        root: The folder.
        images: Number of images that could be decoded.
        size: Total size of these images' files in bytes.
        formats: Number of images per format.
        channels: Number of images per number of channels in the file.
        heights: Minimum, median and maximum.
        widths: Minimum, median and maximum.
        classes: Number of images in each class folder, including its subfolders. The class folders are the folders
            directly in `root` whose names don't begin with a dot.
        deeper: Number of images in subfolders of class folders.
        left_out: Image files that were not examined, since readers skip their extensions by default.
        misnamed: Files with the extension of another format, each with its actual format.
        mean: Mean of red, green and blue, for pixels from 0 to 1; each image has the same weight.
        std: Standard deviation of red, green and blue, with the scale and weights of `mean`.
        problems: The files that cannot be decoded.
    """

    root: str
    images: int
    size: int
    formats: Mapping[str, int]
    channels: Mapping[int, int]
    heights: tuple[int, int, int]
    widths: tuple[int, int, int]
    classes: Mapping[str, int]
    deeper: int
    left_out: Sequence[str]
    misnamed: Sequence[tuple[str, str]]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    problems: Sequence[Problem]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        each = self.size / max(1, self.images) / 1e3
        yield f"{self.root}: {self.images:,} images, {self.size / 1e6:,.1f} MB, {each:,.1f} KB each on average"
        if self.images:
            yield f"  formats    {_format_counts(self.formats)}"
            yield f"  channels   {_format_counts(self.channels)}"
            for name, (least, middle, most) in (("height", self.heights), ("width", self.widths)):
                yield f"  {name:10} {least:,} to {most:,}, median {middle:,}"
            yield f"  mean       {_format_numbers(self.mean)}  of red, green, blue; each image has the same weight"
            yield f"  deviation  {_format_numbers(self.std)}  mean= and std= of a loader, for pixels from 0 to 1"
        yield from self._class_lines()
        yield from self._folder_lines()
        if self.misnamed:
            path, kind = self.misnamed[0]
            yield f"  names      {len(self.misnamed):,} with another format's extension, for example {path} ({kind})"
        yield f"  broken     {len(self.problems):,}"
        yield from (f"    {problem}" for problem in self.problems[:_LISTED])
        if len(self.problems) > _LISTED:
            yield f"    and {len(self.problems) - _LISTED:,} more"

    def _class_lines(self) -> Iterator[str]:
        if not self.classes:
            return
        counts = self.classes.values()
        yield f"  classes    {len(self.classes):,}, of {min(counts):,} to {max(counts):,} images"
        ordered = sorted(self.classes.items(), key=lambda each: each[1])
        shown = ordered if len(ordered) <= _LISTED else [*ordered[: _LISTED // 2], *ordered[-_LISTED // 2 :]]
        yield from (f"    {count:8,}  {name}" for name, count in shown)
        if len(shown) < len(ordered):
            yield f"    and {len(ordered) - len(shown):,} more in between"

    def _folder_lines(self) -> Iterator[str]:
        """Yield lines about folders and files that readers treat in unexpected ways."""
        empty = [name for name, count in self.classes.items() if not count]
        if empty:
            yield f"  empty      {len(empty):,} classes, such as {empty[0]}: no sample has these labels"
        if self.deeper and self.deeper == sum(self.classes.values()):
            first = os.path.join(self.root, next(name for name, count in self.classes.items() if count))
            yield f"  deeper     all images; these folders contain the class folders. Try: torchdali stats {first}"
        elif self.deeper:
            yield f"  deeper     {self.deeper:,} images in subfolders of class folders, which readers skip"
        if self.left_out:
            yield f"  left out   {len(self.left_out):,} images by extension, for example {self.left_out[0]}"


def _format_counts(counts: Mapping[str, int] | Mapping[int, int]) -> str:
    ordered = sorted(counts.items(), key=lambda each: -each[1])
    return ", ".join(f"{name}: {count:,}" for name, count in ordered)


def _format_numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


def statistics(root: str | os.PathLike[str], threads: int = 4, progress: Progress | None = None) -> Statistics:
    """Decode all images in a folder and its subfolders, and compute statistics of the images.

    Args:
        root: Path of the folder.
        threads: Number of threads that decode images.
        progress: Function that is called with the number of examined images and the number of all images.

    Raises:
        RuntimeError: The folder does not exist or contains no images.
    """
    root = os.fspath(root)
    names = list(_visible_files(root))
    paths = [name for name in names if name.lower().endswith(EXTENSIONS)]
    if not paths:
        raise RuntimeError(f"{root} must contain images ({', '.join(sorted(EXTENSIONS))})")
    summary = _Summary(root, [name for name in names if name.lower().endswith(OTHER_EXTENSIONS)])
    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, len(paths), _MAX_QUEUED):
            for count, image in enumerate(pool.map(_examine, paths[first : first + _MAX_QUEUED]), first + 1):
                summary.add(image)
                if progress is not None:
                    progress(count, len(paths))
    return summary.statistics()


def _visible_files(root: str) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (os.path.join(folder, name) for name in sorted(names) if not name.startswith("."))


def _examine(path: str) -> _ImageStatistics | Problem:
    try:
        data = torch.from_numpy(np.fromfile(path, np.uint8))
        header = peek_header(data)
        pixels = decode(data).numpy()
    except Exception as error:
        return Problem(path, None, str(error) or type(error).__name__)
    height, width = pixels.shape[:2]
    mean, square = (values.mean((0, 1), dtype=np.float64) for values in (pixels, np.square(pixels, dtype=np.float32)))
    return _ImageStatistics(path, len(data), header.format, header.channels, height, width, mean / 255, square / 255**2)


class _Summary:
    """Accumulates the statistics of images."""

    def __init__(self, root: str, left_out: Sequence[str]) -> None:
        self._root, self._left_out = root, left_out
        self._size = self._deeper = 0
        self._formats: Counter[str] = Counter()
        self._channels: Counter[int] = Counter()
        self._classes: Counter[str] = Counter()
        self._heights, self._widths = array("l"), array("l")
        self._means = np.zeros(3)
        self._squares = np.zeros(3)
        self._misnamed: list[tuple[str, str]] = []
        self._problems: list[Problem] = []

    def add(self, image: _ImageStatistics | Problem) -> None:
        """Add an image or a broken file."""
        if isinstance(image, Problem):
            self._problems.append(image)
            return
        self._size += image.size
        self._formats[image.format] += 1
        self._channels[image.channels] += 1
        self._heights.append(image.height)
        self._widths.append(image.width)
        self._means += image.mean
        self._squares += image.square
        folder, *rest = os.path.relpath(image.path, self._root).split(os.sep)
        if rest:
            self._classes[folder] += 1
            self._deeper += len(rest) > 1
        if _is_misnamed(image):
            self._misnamed.append((image.path, image.format))

    def statistics(self) -> Statistics:
        """Return the result. All folders directly in the root are classes, even empty ones."""
        count = len(self._heights)
        mean = self._means / max(1, count)
        red, green, blue = mean.tolist()
        std = np.sqrt((self._squares / max(1, count) - mean**2).clip(0)).tolist()
        folders = sorted(e.name for e in os.scandir(self._root) if e.is_dir() and not e.name.startswith("."))
        return Statistics(
            self._root, count, self._size, self._formats, self._channels, _min_median_max(self._heights),
            _min_median_max(self._widths), {name: self._classes[name] for name in folders}, self._deeper,
            self._left_out, self._misnamed, (red, green, blue), (std[0], std[1], std[2]), self._problems,
        )  # fmt: skip


def _min_median_max(sides: Sequence[int]) -> tuple[int, int, int]:
    return (min(sides), round(median(sides)), max(sides)) if sides else (0, 0, 0)


def _is_misnamed(image: _ImageStatistics) -> bool:
    format = FORMATS.get(image.format)
    return format is not None and not image.path.lower().endswith(format.extensions)
