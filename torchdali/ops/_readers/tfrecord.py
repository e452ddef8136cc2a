"""The reader of TFRecord files, which extracts features of the records."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali.calls.decorators import reader
from torchdali.declaration.schema import FilePath, OutputCount, shares
from torchdali.formats import tfrecord as format
from torchdali.formats.remote import RemoteOptions
from torchdali.formats.storage import Bytes, ByteStorage
from torchdali.graph.nodes import DataNode
from torchdali.ops._readers._records import Offsets, RecordsDataset, load_offsets, open_containers
from torchdali.reading.datasets import Dataset, LoaderOptions
from torchdali.tfrecord import Feature, Features

__all__ = ["TFRecordDataset", "tfrecord"]

Extract = Callable[[Bytes, "format.FeatureValue | None"], Tensor]


class TFRecordDataset(RecordsDataset):
    """Features of the records of TFRecord files.

    Args:
        features: The features to extract, by name.
        verify: Verify both checksums of each record that is read.
    """

    def __init__(
        self, storages: Sequence[ByteStorage], offsets: Sequence[Offsets], features: Mapping[str, Feature],
        verify: bool,
        arguments: Mapping[str, Any],
    ) -> None:  # fmt: skip
        super().__init__(storages, offsets, arguments)
        self._verify = verify
        self._names = {name.encode(): index for index, name in enumerate(features)}
        self._features = features
        self._extractors = [_create_extractor(name, feature) for name, feature in features.items()]

    def parse(self, record: Bytes) -> tuple[Tensor, ...]:
        """Return the features of a record.

        Raises:
            ValueError: The record is damaged, or a value doesn't match its feature.
            IndexError: The record is damaged.
        """
        begin, end = format.payload(record)
        if self._verify:
            format.verify(record)
        values = format.find_features(record.data, begin, end, self._names)
        return tuple(extract(record, value) for extract, value in zip(self._extractors, values, strict=True))

    def describe_missing(self, index: int, output: int) -> str:
        """Return a message if a record lacks a feature, and the feature's default is a scalar; otherwise ""."""
        name, feature = list(self._features.items())[output]
        default = self.read(index)[output]
        if feature.kind == "string" or default.ndim or (feature.fixed and not feature.shape):
            return ""
        return f"the record {self.info(index)} lacks the feature {name!r}, and its default is a scalar"


def _name_outputs(arguments: Mapping[str, Any], outputs: Sequence[DataNode]) -> dict[str, DataNode]:
    return dict(zip(arguments["features"], outputs, strict=True))


@reader(
    name="readers.tfrecord",
    outputs=lambda arguments: len(arguments["features"]),
    results=_name_outputs,
    marks=("view",),
)
def tfrecord(
    *,
    path: list[FilePath],
    index_path: list[FilePath] | None = None,
    features: Features,
    use_o_direct: bool = False,
    verify: bool = False,
    **options: Annotated[Any, shares(LoaderOptions), shares(RemoteOptions)],
) -> Annotated[Dataset, OutputCount(1)]:
    """Read features of the records of TFRecord files.

    A call returns a dictionary with one output per feature.

    Args:
        path: Paths of the files, or their URLs.
        index_path: Paths of the index files, or the path of one manifest (see ``torchdali index --manifest``). Without
            `index_path`, the files are scanned when the pipeline is built. If an index file doesn't exist, the reader
            creates the file, except at a URL.
        features: The features to extract, by name; see `torchdali.tfrecord`.
        use_o_direct: Bypass the system's file cache; requires ``dont_use_mmap``.
        verify: Verify the checksums of each record with google-crc32c (extra ``checksums``).

    Returns:
        For each feature, its value. A string is ``(n,)`` uint8. Numbers are int64 or float32. The output of a
        ``FixedLenFeature`` has the feature's shape; missing numbers at the end are filled with the default. The output
        of a ``VarLenFeature`` has the shape ``(n, *partial_shape)``. If a record lacks the feature, a string is the
        default's bytes, a ``FixedLenFeature`` is the default as a scalar, and a ``VarLenFeature`` is empty.

    Raises:
        MissingExtraError: google-crc32c is not installed.
        RuntimeError: A file or index cannot be read. Also raised while the pipeline runs, if a record is damaged, or if
            a feature has another dtype than requested, too many values for its shape, or several strings.
    """
    if verify:
        format.masked_crc32c(b"")  # if the package is missing, raise the error here instead of for each record
    containers = open_containers("tfrecord", path, index_path, use_o_direct, options)
    offsets = load_offsets(containers, format.parse_index, format.scan, format.index_text)
    storages = [each.storage for each in containers]
    return TFRecordDataset(storages, offsets, Features.from_argument(features), verify, options)


# ---------------------------------------------------------------- features


def _create_extractor(name: str, feature: Feature) -> Extract:
    if feature.kind == "string":
        return _string_extractor(name, feature)
    return _number_extractor(name, feature)


def _check_kind(name: str, feature: Feature, value: format.FeatureValue) -> None:
    if value.kind != feature.kind:
        raise ValueError(f"the feature {name!r} must be {feature.kind}, got {value.kind}")


def _string_extractor(name: str, feature: Feature) -> Extract:
    default = feature.default.encode()

    def extract(record: Bytes, value: format.FeatureValue | None) -> Tensor:
        if value is None or not value.kind:
            return torch.from_numpy(np.frombuffer(default, np.uint8).copy())
        _check_kind(name, feature, value)
        strings = value.strings()
        if not feature.fixed or math.prod(feature.shape) != 1:
            raise ValueError(f"the feature {name!r}: tensors of strings are not supported")
        begin, end = strings[0] if strings else (0, 0)
        return torch.from_numpy(record[begin:end])

    return extract


def _number_extractor(name: str, feature: Feature) -> Extract:
    dtype: Any = np.int64 if feature.kind == "int64" else np.float32
    shape = feature.shape if feature.fixed else (-1, *feature.shape)
    count, empty = math.prod(feature.shape), (0, *feature.shape)

    def extract(record: Bytes, value: format.FeatureValue | None) -> Tensor:
        if value is None or not value.kind:
            # A `VarLenFeature` gets an empty tensor, as in TensorFlow, so that the record fits into a batch with other
            # records. DALI returns a scalar, which makes its batch fail.
            return torch.from_numpy(np.array(feature.default, dtype) if feature.fixed else np.empty(empty, dtype))
        _check_kind(name, feature, value)
        values = value.floats() if dtype is np.float32 else np.array(value.integers(), dtype)
        if len(values) != count:
            values = _fit_shape(name, feature, values, count)
        return torch.from_numpy(values.reshape(shape))

    return extract


def _fit_shape(name: str, feature: Feature, values: Any, count: int) -> Any:
    """Fill a `FixedLenFeature` with its default; check the number of values of a `VarLenFeature`."""
    if not feature.fixed:
        if count == 0 or len(values) % count:
            raise ValueError(
                f"the number of values of the feature {name!r} must be a multiple of the partial shape "
                f"{list(feature.shape)}, got {len(values)}"
            )
        return values
    if len(values) > count:
        raise ValueError(
            f"the feature {name!r}: output tensor shape is too small: {list(feature.shape)}. "
            f"Expected at least {len(values)} elements"
        )
    filled = np.full(count, feature.default, values.dtype)
    filled[: len(values)] = values
    return filled
