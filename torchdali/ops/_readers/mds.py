"""The reader of MDS, the format of mosaicml-streaming.

Format: https://docs.mosaicml.com/projects/streaming/en/stable/fundamentals/dataset_format.html.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import reader
from torchdali.declaration.schema import FilePath, OutputCount, shares
from torchdali.formats.remote import Remote, RemoteFile, RemoteOptions
from torchdali.formats.storage import Bytes, ByteStorage, MappedFile, read_text
from torchdali.formats.urls import is_url, redact
from torchdali.ops._readers._records import Offsets, RecordsDataset, call_in_threads, open_remote
from torchdali.reading.datasets import Dataset, LoaderOptions

__all__ = ["MDSDataset", "mds"]

_BYTES_ENCODINGS = frozenset(("bytes", "str", "json", "jpeg", "png"))
_NUMBER_DTYPES = {"int": np.dtype("<i8"), **{name: np.dtype(name).newbyteorder("<") for name in (
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
)}}  # fmt: skip


class MDSDataset(RecordsDataset):
    """Samples of MDS shards.

    Args:
        offsets: Offset and size of the samples of each shard; see `RecordsDataset`.
        column_sizes: Size of each column in bytes; None if the size differs from sample to sample.
        parsers: For each output, the index of its column, and the function that converts the column's bytes to a
            tensor.
    """

    error_prefix = "cannot read the sample"

    def __init__(
        self, storages: Sequence[ByteStorage], offsets: Sequence[Offsets], column_sizes: Sequence[int | None],
        parsers: Sequence[tuple[int, Callable[[Bytes], Tensor]]], arguments: Mapping[str, Any],
    ) -> None:  # fmt: skip
        super().__init__(storages, offsets, arguments)
        self._column_sizes, self._parsers = column_sizes, parsers

    def parse(self, record: Bytes) -> tuple[Tensor, ...]:
        """Return the requested columns of a sample.

        Raises:
            ValueError: The sample is damaged.
        """
        size_count = sum(size is None for size in self._column_sizes)
        sizes = iter(record[: 4 * size_count].view("<u4").tolist() if len(record) >= 4 * size_count else [])
        ends = [4 * size_count]
        for size in self._column_sizes:
            ends.append(ends[-1] + (next(sizes, 0) if size is None else size))
        if ends[-1] != len(record):
            raise ValueError(f"its columns must have {len(record)} bytes, got {ends[-1]}")
        return tuple(parse(record[ends[column] : ends[column + 1]]) for column, parse in self._parsers)


def _parse_numbers(dtype: np.dtype[Any], shape: tuple[int, ...], data: Bytes) -> Tensor:
    return torch.from_numpy(np.frombuffer(data.tobytes(), dtype).astype(dtype.newbyteorder("=")).reshape(shape))


def _choose_parser(name: str, encoding: str) -> Callable[[Bytes], Tensor]:
    kind, *details = encoding.split(":")
    if kind in _BYTES_ENCODINGS:
        return torch.from_numpy
    if kind in _NUMBER_DTYPES:
        return partial(_parse_numbers, _NUMBER_DTYPES[kind], ())
    if kind == "ndarray" and len(details) == 2 and details[0] in _NUMBER_DTYPES:
        return partial(_parse_numbers, _NUMBER_DTYPES[details[0]], tuple(map(int, details[1].split(","))))
    raise RuntimeError(
        f"column {name!r} has the encoding {encoding!r}; readers.mds supports bytes, str, json, jpeg, png, numbers, "
        "and ndarray with dtype and shape. Omit the column with columns=, or use fn.readers.stream with a "
        "StreamingDataset"
    )


@reader(
    name="readers.mds",
    outputs=lambda arguments: len(arguments["columns"]),
    results=lambda arguments, outputs: dict(zip(arguments["columns"], outputs, strict=True)),
    marks=("view",),
)
def mds(
    *,
    path: FilePath,
    columns: list[str],
    **options: Annotated[Any, shares(LoaderOptions), shares(RemoteOptions)],
) -> Annotated[Dataset, OutputCount(1)]:
    """Read samples of MDS shards, which mosaicml-streaming writes, by random access.

    DALI doesn't have this reader. A call returns a dictionary with one output per column. Opening a shard at a URL
    takes one small request.

    Args:
        path: Folder of ``index.json``, or its URL.
        columns: Columns to return.

    Returns:
        The bytes, ``(n,)`` uint8, of columns with the encodings ``bytes``, ``str``, ``json``, ``jpeg`` and ``png``; the
        values of numbers and arrays.

    Raises:
        RuntimeError: The index or a shard cannot be read, shards are compressed or differ in their columns, or a column
            does not exist or has an unsupported encoding. While the pipeline runs: a sample is damaged.
    """
    remote = open_remote([path], options)
    index_path = f"{path.rstrip('/')}/index.json" if is_url(path) else os.path.join(path, "index.json")
    try:
        shards = json.loads(read_text(index_path, remote))["shards"]
        fields = {
            tuple(zip(*(s[f"column_{part}"] for part in ("names", "encodings", "sizes")), strict=True)) for s in shards
        }
        counts = [(s["raw_data"]["basename"], int(s["raw_data"]["bytes"]), int(s["samples"])) for s in shards]
        compressed = [s["raw_data"]["basename"] for s in shards if s.get("compression")]
    except (ValueError, KeyError, TypeError) as error:
        raise RuntimeError(f"{redact(index_path)} is damaged: {type(error).__name__}: {error}") from None
    if compressed or len(fields) != 1:
        reason = f"shard {compressed[0]!r} is compressed" if compressed else "shards differ in their columns"
        raise RuntimeError(f"cannot read {redact(path)}: {reason}. Use fn.readers.stream with a StreamingDataset")
    (schema,) = fields
    names = [name for name, _, _ in schema]
    if missing := [name for name in columns if name not in names]:
        raise RuntimeError(f"columns must be among {names}, got {missing}")
    parsers = [(names.index(name), _choose_parser(name, schema[names.index(name)][1])) for name in columns]
    calls = [
        partial(_open_shard, os.path.join(os.path.dirname(index_path), name), size, count, remote)
        for name, size, count in counts
    ]
    opened = call_in_threads(calls, 1 if remote is None else remote.options.io_concurrency)
    storages, offsets = [each[0] for each in opened], [each[1] for each in opened]
    return MDSDataset(storages, offsets, [size for _, _, size in schema], parsers, options)


def _open_shard(path: str, size: int, count: int, remote: Remote | None) -> tuple[ByteStorage, Offsets]:
    length = 4 * (count + 2)
    storage: ByteStorage
    if remote is None:
        storage = MappedFile(path)
        head = storage.read(0, min(length, storage.size))
    else:
        head, version = remote.head(path, length)
        storage = RemoteFile(remote, path, version._replace(size=size if version.size is None else version.size))
    numbers = head[: len(head) // 4 * 4].view("<u4").astype(np.int64)
    starts = numbers[1:]
    if (
        storage.size != size
        or len(numbers) != count + 2
        or numbers[0] != count
        or (np.diff(starts) < 0).any()
        or starts[-1] > size
    ):
        raise RuntimeError(
            f"{storage.path} is damaged: its header doesn't match index.json ({count} samples, {size} bytes)"
        )
    return storage, np.stack([starts[:-1], np.diff(starts)], 1)
