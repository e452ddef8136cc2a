"""The readers of LMDB databases that Caffe and Caffe2 wrote."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import reader
from torchdali.declaration.schema import FilePath, OutputCount, shares
from torchdali.formats import caffe as format
from torchdali.formats import lmdb
from torchdali.formats.storage import Bytes
from torchdali.ops._readers._records import PackedTexts, RecordsDataset, open_containers
from torchdali.reading.datasets import Dataset, LoaderOptions

__all__ = ["DatabaseDataset", "caffe", "caffe2"]

Parse = Callable[[Bytes], tuple[Tensor, ...]]
_SINGLE, _SPARSE, _DENSE, _WEIGHTED, _NONE = range(5)


class DatabaseDataset(RecordsDataset):
    """The values of LMDB databases, in the order of the keys.

    Args:
        path: Paths of the databases.
        mapped: If True, map the databases into memory; if False, read the databases with ordinary read calls.
        parse: Function that converts a value to the outputs.
    """

    def __init__(self, path: Sequence[str], mapped: bool, parse: Parse) -> None:
        files, options = [lmdb.data_file(each) for each in path], {"dont_use_mmap": not mapped}
        storages = [each.storage for each in open_containers("lmdb", files, None, options=options)]
        entries = [list(lmdb.read_entries(storage)) for storage in storages]
        super().__init__(storages, [np.array([e[1:] for e in each], np.int64).reshape(-1, 2) for each in entries])
        self._parse = parse
        self._keys = PackedTexts(
            f"{name} at key ".encode() + entry.key for name, each in zip(path, entries, strict=True) for entry in each
        )

    def parse(self, record: Bytes) -> tuple[Tensor, ...]:
        """Return the outputs of a value.

        Raises:
            ValueError: The value is damaged, or doesn't have the expected format.
            IndexError: The value is damaged.
        """
        return self._parse(record)

    def info(self, index: int, output: int | None = None) -> str:
        """Return the database's file and the record's offset in the file.

        If `output` is 0, return the path of the database and the record's key instead.
        """
        return self._keys[index] if output == 0 else super().info(index, output)


def _output_count(count: int) -> int | None:
    """Convert a number of outputs to the value of `Operator.outputs`, which is None for one output."""
    if count < 1:
        raise RuntimeError("image_available or label_available must be True, otherwise the reader has no output")
    return count if count > 1 else None


# ---------------------------------------------------------------- Caffe


@reader(
    marks=("encoded", "view"),
    name="readers.caffe",
    outputs=lambda a: _output_count(a["image_available"] + a["label_available"]),
)
def caffe(
    *,
    path: list[FilePath],
    image_available: bool = True,
    label_available: bool = True,
    **options: Annotated[Any, shares(LoaderOptions)],
) -> Annotated[Dataset, OutputCount(2)]:
    """Read images and labels from Caffe's LMDB databases, in the order of the keys.

    Args:
        path: Paths of the databases: either folders or the data files inside them.
        image_available: Return the image.
        label_available: Return the label.

    Returns:
        The image data, ``(n,)`` uint8, and the label, ``(1,)`` int32, or ``(0,)`` if the record has no label.

    Raises:
        RuntimeError: A database cannot be read or is empty, or both ``image_available`` and ``label_available`` are
            False. While the pipeline runs: a record is damaged.
    """

    def parse(record: Bytes) -> tuple[Tensor, ...]:
        (begin, end), label = format.parse_datum(record.data)
        outputs = []
        if image_available:
            outputs.append(torch.from_numpy(record[begin:end]))
        if label_available:
            labels = [] if label is None else [label]
            outputs.append(torch.from_numpy(np.array(labels, np.int32)))
        return tuple(outputs)

    return DatabaseDataset(path, not options.get("dont_use_mmap", False), parse)


# ---------------------------------------------------------------- Caffe2


def _count_caffe2(arguments: Mapping[str, Any]) -> int | None:
    kind = arguments["label_type"]
    labels = 0 if kind == _NONE else 2 if kind == _WEIGHTED else 1
    rest = arguments["additional_inputs"] + bool(arguments["bbox"])
    return _output_count(bool(arguments["image_available"]) + labels + rest)


@reader(name="readers.caffe2", outputs=_count_caffe2, marks=("encoded", "view"))
def caffe2(
    *,
    path: list[FilePath],
    image_available: bool = True,
    label_type: int = 0,
    num_labels: int = 1,
    bbox: bool = False,
    additional_inputs: int = 0,
    **options: Annotated[Any, shares(LoaderOptions)],
) -> Annotated[Dataset, OutputCount(2)]:
    """Read tensors from Caffe2's LMDB databases, in the order of the keys.

    A record is a list of tensors in this order: image, label (labels and weights for type 3), additional inputs, box.

    Args:
        path: Paths of the databases: either folders or the data files inside them.
        image_available: The records begin with an image.
        label_type: Format of the labels. 0: one label. 1: the indices of the positive labels. 2: one number per
            possible label. 3: the indices of the positive labels, and a weight per index. 4: no label.
        num_labels: Number of possible labels, for the types 1 and 3.
        bbox: The records end with a box.
        additional_inputs: Number of tensors between labels and box.

    Returns:
        The image: ``(n,)`` uint8 if it is stored encoded, otherwise pixels in the stored shape. The label, depending on
        ``label_type``: ``(1,)`` int32 or float32 (0); ``(num_labels,)`` int32, 1 for positive labels and 0 for the rest
        (1); the stored numbers (2); ``(k,)`` int32 indices and ``(k,)`` float32 weights (3). The additional inputs,
        each ``(n,)`` int32 or float32. The box, ``(4,)`` int32.

    Raises:
        RuntimeError: A database cannot be read or is empty, or an argument is wrong. While the pipeline runs: a record
            is damaged, or its tensors don't match the arguments.
    """
    if not _SINGLE <= label_type <= _NONE:
        raise RuntimeError(f"label_type must be between 0 and 4, got {label_type}")
    if additional_inputs < 0 or num_labels < 1:
        raise RuntimeError(
            f"additional_inputs must be at least 0 and num_labels at least 1, got {additional_inputs} and {num_labels}"
        )

    def parse(record: Bytes) -> tuple[Tensor, ...]:
        data = record.data
        remaining = format.parse_protos(data)[::-1]
        outputs = [_read_image(record, _pop_next(remaining))] if image_available else []
        if label_type != _NONE:
            outputs += _read_labels(data, remaining, label_type, num_labels)
        outputs += [torch.from_numpy(format.read_numbers(data, _pop_next(remaining))) for _ in range(additional_inputs)]
        if bbox:
            outputs.append(_read_box(data, _pop_next(remaining)))
        return tuple(outputs)

    return DatabaseDataset(path, not options.get("dont_use_mmap", False), parse)


def _pop_next(remaining: list[format.Proto]) -> format.Proto:
    if not remaining:
        raise ValueError("the record has fewer tensors than the arguments require")
    return remaining.pop()


def _read_image(record: Bytes, proto: format.Proto) -> Tensor:
    if proto.dtype not in (format.STRING, format.BYTE) or proto.content is None:
        raise ValueError(f"expected an image, found a tensor of type {proto.dtype}")
    begin, end = proto.content
    pixels = torch.from_numpy(record[begin:end])
    if proto.dtype == format.STRING:
        return pixels
    if min(proto.dims, default=0) < 0 or math.prod(proto.dims) != end - begin:
        raise ValueError(f"expected an image of shape {proto.dims}, found {end - begin} bytes")
    return pixels.reshape(proto.dims)


def _read_labels(data: memoryview, remaining: list[format.Proto], kind: int, count: int) -> list[Tensor]:
    numbers = format.read_numbers(data, _pop_next(remaining))
    if kind == _SINGLE and len(numbers) != 1:
        raise ValueError(f"expected one label, found {len(numbers)}")
    if kind in (_SINGLE, _DENSE):
        return [torch.from_numpy(numbers)]
    if numbers.dtype != np.int32:
        raise ValueError("labels must be int32, got float32")
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < count:
        raise ValueError(f"labels must be between 0 and {count - 1} (num_labels - 1), got {numbers.tolist()}")
    if kind == _WEIGHTED:
        weights = format.read_numbers(data, _pop_next(remaining)).astype(np.float32)
        if len(weights) != len(numbers):
            raise ValueError(f"expected one weight per label, found {len(numbers)} labels and {len(weights)} weights")
        return [torch.from_numpy(numbers), torch.from_numpy(weights)]
    dense = np.zeros(count, np.int32)
    dense[numbers] = 1
    return [torch.from_numpy(dense)]


def _read_box(data: memoryview, proto: format.Proto) -> Tensor:
    box = format.read_numbers(data, proto)
    if box.dtype != np.int32 or len(box) != 4:
        raise ValueError(f"a box must have four int32 numbers, got {len(box)} of {box.dtype}")
    return torch.from_numpy(box)
