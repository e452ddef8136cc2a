"""Sources of the samples to pack: folders and containers."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from torchdali.containers._check import IMAGES
from torchdali.declaration.registry import lookup
from torchdali.formats import caffe, lmdb, recordio, tar, tfrecord
from torchdali.formats.storage import ByteStorage, open_storage
from torchdali.formats.urls import is_url
from torchdali.ops._readers._class_folders import IMAGE_AND_AUDIO

__all__ = ["UNKNOWN", "Sample", "SampleSource", "open_source"]


UNKNOWN = "bin"  # extension of data with an unknown format, which may be an image


class Sample(NamedTuple):
    """A sample that consists of parts; a part becomes a file of a webdataset sample, or a feature of a TFRecord.

    Attributes:
        parts: Extension and content of each part.
        image: Index of the part that is the image; None if the sample has no image.
        key: Name of the sample in an archive.
    """

    parts: tuple[tuple[str, bytes], ...]
    image: int | None
    key: str = ""

    @property
    def size(self) -> int:
        """Total size of the parts in bytes."""
        return sum(len(content) for _, content in self.parts)


class SampleSource:
    """The samples of a folder or of containers, with random access.

    Args:
        names: Names of the samples, for messages. The names also identify the source when a stopped run is continued.
        sizes: Size of each sample in bytes.
        read: Function that returns the sample at an index.
        classes: Names of the classes, in the order of their labels.
    """

    def __init__(
        self,
        names: Sequence[str] | Callable[[int], str],
        sizes: npt.NDArray[np.int64],
        read: Callable[[int], Sample],
        classes: Sequence[str] = (),
    ) -> None:
        if not len(sizes):
            raise RuntimeError("the source has no samples")
        self._names, self._sizes, self.read, self.classes = names, sizes, read, classes

    def __len__(self) -> int:
        return len(self._sizes)

    def name(self, index: int) -> str:
        """Return the name of a sample."""
        return self._names(index) if callable(self._names) else self._names[index]

    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the size of each sample in bytes."""
        return self._sizes


def open_source(path: str) -> SampleSource:
    """Open a folder of class folders, a container, or a folder or pattern of containers.

    Raises:
        RuntimeError: The path contains nothing that can be packed.
    """
    if os.path.isdir(path) and os.path.exists(lmdb.data_file(path)) and lmdb.data_file(path) != path:
        return _open_database(path)
    files = [path] if is_url(path) or os.path.isfile(path) else sorted(glob.glob(path))
    if os.path.isdir(path):
        files = [os.path.join(path, name) for name in sorted(os.listdir(path)) if _find_opener(name)]
    files = [file for file in files if _find_opener(file)]
    if not files:
        return _open_folder(path)
    openers = {_find_opener(file) for file in files}
    if len(openers) > 1:
        raise RuntimeError(f"{path} must have containers of only one format")
    (opener,) = openers
    assert opener is not None
    return opener([open_storage(file) for file in files])


def _find_opener(path: str) -> Callable[[Sequence[ByteStorage]], SampleSource] | None:
    name = os.path.basename(path).lower()
    if name.endswith(".idx"):
        return None
    if name.endswith(".tar"):
        return _open_archives
    if name.endswith(".rec"):
        return _open_recordio
    return _open_tfrecord if "tfrecord" in name else None


def _detect_extension(content: bytes) -> str:
    starts = {
        b"\xff\xd8\xff": "jpg",
        b"\x89PNG": "png",
        b"BM": "bmp",
        b"II*\0": "tif",
        b"MM\0*": "tif",
    }
    extension = next((name for start, name in starts.items() if content.startswith(start)), "")
    return extension or ("webp" if content[8:12] == b"WEBP" else UNKNOWN)


_SHORT_EXTENSIONS = {"jpeg": "jpg", "tiff": "tif"}


def _add_label(image: bytes, label: Any, extension: str = "") -> Sample:
    parts = [(extension or _detect_extension(image), image)]
    if label is not None:
        parts.append(("cls", str(label).encode()))
    return Sample(tuple(parts), 0)


def _open_folder(path: str) -> SampleSource:
    if not is_url(path) and not os.path.isdir(path):
        raise RuntimeError(f"no such folder or container: {path}")
    filters = [f"[!.]{pattern}" for pattern in IMAGE_AND_AUDIO]
    try:
        options = {"file_filters": filters, "dir_filters": ["[!.]*"], "dont_use_mmap": True}
        dataset = lookup("readers.file").implementation(file_root=path, **options)
    except RuntimeError as error:
        if not str(error).startswith("no files found"):
            raise
        raise RuntimeError(
            f"no files found to pack: {path} has neither class folders with images or audio files, nor files whose "
            f"names "
            "end in .tar, .rec or .tfrecord"
        ) from None
    count = len(dataset)
    labels = dataset.metadata(np.arange(count))[0][:, 0].tolist()
    sizes = np.array(dataset.byte_counts(), np.int64)

    def read(index: int) -> Sample:
        content = dataset.read(index)[0].numpy().tobytes()
        extension = os.path.splitext(dataset.info(index))[1][1:].lower()
        return _add_label(content, labels[index], _SHORT_EXTENSIONS.get(extension, extension))

    return SampleSource(partial(dataset.info, output=0), sizes, read, dataset.classes)


def _open_archives(storages: Sequence[ByteStorage]) -> SampleSource:
    samples = [(archive, sample) for archive in map(tar.Archive, storages) for sample in tar.read_samples(archive)]

    def read(index: int) -> Sample:
        archive, sample = samples[index]
        parts = tuple((e.lower(), archive.read(offset, size).tobytes()) for e, offset, size, _ in sample)
        image = next((i for i, (e, _) in enumerate(parts) if f".{e.rpartition('.')[2]}" in IMAGES), None)
        return Sample(parts, image)

    sizes = np.array([sum(part[2] for part in sample) for _, sample in samples], np.int64)
    return SampleSource([f"{s.path}:{sample[0][3]}" for s, sample in samples], sizes, read)


Records = list[tuple[ByteStorage, int, int]]


def _name_of_index(records: Records) -> Callable[[int], str]:
    return lambda index: f"{records[index][0].path} at {records[index][1]}"


def _sizes(records: Records) -> npt.NDArray[np.int64]:
    return np.array([size for _, _, size in records], np.int64)


def _open_recordio(storages: Sequence[ByteStorage]) -> SampleSource:
    records = [(s, *each) for s in storages for each in recordio.scan(s)]

    def read(index: int) -> Sample:
        storage, offset, size = records[index]
        try:
            image, labels = recordio.image(recordio.content(storage.read(offset, size)))
        except ValueError as error:
            raise RuntimeError(f"{storage.path} at {offset}: {error}") from None
        if len(labels) == 1 and float(labels[0]).is_integer():
            return _add_label(image.tobytes(), int(labels[0]))
        content = " ".join(map(str, labels.tolist())).encode()
        return Sample(((_detect_extension(image.tobytes()), image.tobytes()), ("labels.txt", content)), 0)

    return SampleSource(_name_of_index(records), _sizes(records), read)


def _open_tfrecord(storages: Sequence[ByteStorage]) -> SampleSource:
    records = [(s, *each) for s in storages for each in tfrecord.scan(s)]

    def read(index: int) -> Sample:
        storage, offset, size = records[index]
        record = storage.read(offset, size)
        try:
            features = tfrecord.features(record.data, *tfrecord.payload(record))
            return _sample_from_features(record, features)
        except (ValueError, IndexError) as error:
            raise RuntimeError(f"{storage.path} at {offset}: {error}") from None

    return SampleSource(_name_of_index(records), _sizes(records), read)


_IMAGE_KEYS, _LABEL_KEYS = ("image/encoded", "image", "jpeg"), ("image/class/label", "label", "cls")


def _sample_from_features(record: Any, features: dict[str, tfrecord.FeatureValue]) -> Sample:
    image = next((features[key] for key in _IMAGE_KEYS if key in features), None)
    if image is None or image.kind != "string" or not image.strings():
        raise ValueError(
            f"a record must have an image in one of the features {', '.join(_IMAGE_KEYS)}, got {', '.join(features)}"
        )
    begin, end = image.strings()[0]
    label = next((features[key] for key in _LABEL_KEYS if key in features), None)
    numbers = label.integers() if label is not None and label.kind == "int64" else []
    return _add_label(record[begin:end].tobytes(), numbers[0] if numbers else None)


def _open_database(path: str) -> SampleSource:
    storage = open_storage(lmdb.data_file(path))
    records = [(storage, entry.offset, entry.size) for entry in lmdb.read_entries(storage)]

    def read(index: int) -> Sample:
        _, offset, size = records[index]
        record = storage.read(offset, size)
        try:
            (begin, end), label = caffe.parse_datum(record.data)
        except (ValueError, IndexError) as error:
            raise RuntimeError(f"{storage.path} at {offset}: {error}") from None
        return _add_label(record[begin:end].tobytes(), label)

    return SampleSource(_name_of_index(records), _sizes(records), read)
