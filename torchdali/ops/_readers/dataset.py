"""The reader of Python datasets: map-style PyTorch datasets, Hugging Face datasets, sequences."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from torchdali import pickling
from torchdali.calls.decorators import reader
from torchdali.codecs.files import read_file
from torchdali.declaration.schema import OutputCount, shares
from torchdali.forks import cached_property
from torchdali.formats.daemon_pool import DaemonPool
from torchdali.ops._readers._nested import (
    ENCODED,
    NestedValue,
    get_features,
    list_feature_leaves,
    list_sample_leaves,
    nest,
    select_leaves,
)
from torchdali.reading.datasets import Dataset, LoaderOptions, Read
from torchdali.reading.sources import SourceWorkers, Work, WorkResult
from torchdali.reading.user_random import seed_sample
from torchdali.tensors import TensorList

__all__ = ["MapStyle", "PythonDataset", "as_tensor", "dataset", "extract_value", "is_image"]

Row = tuple[Tensor, ...]
_REQUESTS_PER_WORKER = 2  # requests per worker and batch: more than one, so that a slow worker does not delay the batch
_RECORDS_PER_CALL = 8  # records per call of `__getitems__` in a worker


# ---------------------------------------------------------------- values


def as_tensor(value: Any) -> Tensor:
    """Convert a value of a sample to a tensor.

    A Python float becomes float64; a list of floats becomes float32.

    Raises:
        TypeError: The value's type can't be converted.
    """
    if isinstance(value, Tensor):
        return _convert_tensor(value)
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return torch.from_numpy(np.frombuffer(value, np.uint8).copy())
    if isinstance(value, (np.ndarray, np.generic)):
        return _convert_array(np.asarray(value))
    if is_image(value):
        return _convert_image(value)
    if isinstance(value, float):
        return torch.tensor(value, dtype=torch.float64)
    if isinstance(value, (bool, int, list, tuple)):
        return torch.tensor(value)
    if isinstance(value, Mapping) and value.keys() == ENCODED:
        return as_tensor(value["bytes"]) if value["bytes"] is not None else read_file(value["path"])
    raise TypeError(f"a value must be a tensor, an array, an image, text or a number, got {type(value).__name__}")


def _convert_tensor(value: Tensor) -> Tensor:
    if value.layout != torch.strided:
        raise TypeError("the tensor is sparse; call its to_dense() first")
    return value.detach().cpu()


def _convert_array(array: Any) -> Tensor:
    if array.dtype.kind not in "biuf":
        raise TypeError(f"an array must have a numeric dtype, got {array.dtype}")
    native = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
    return torch.from_numpy(native if native.flags.writeable else native.copy())


def is_image(value: Any) -> bool:
    """Return whether a value is a PIL image, without importing Pillow."""
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(value, pillow.Image)


def _convert_image(image: Any) -> Tensor:
    """Return the pixels ``(H, W, C)``; for a palette image, the palette's indices, as torchvision does."""
    pixels = _convert_array(np.array(image.convert("L") if image.mode == "1" else image))
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


# ---------------------------------------------------------------- datasets


class MapStyle:
    """The user's dataset, and the structure of its samples.

    Args:
        dataset: A dataset with ``len`` and an item for each index from 0.

    Raises:
        TypeError: The dataset has no ``len`` or no ``__getitem__``.
    """

    def __init__(self, dataset: Any) -> None:
        if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
            raise TypeError(
                f"dataset must have len() and indexing, got a {type(dataset).__name__}; pass an iterable to "
                f"fn.external_source instead"
            )
        self.users_dataset = _disable_decoding(dataset)

    @classmethod
    def from_argument(cls, value: Any) -> MapStyle:
        """Wrap a dataset, unless it is already wrapped."""
        return value if isinstance(value, cls) else cls(value)

    def __repr__(self) -> str:
        return f"a {type(self.users_dataset).__name__}"

    def __len__(self) -> int:
        return len(self.users_dataset)

    @cached_property
    def first(self) -> Any:
        """The first sample. All samples must have the same structure."""
        if not len(self.users_dataset):
            raise RuntimeError(f"the dataset, a {type(self.users_dataset).__name__}, is empty")
        return self.users_dataset[0]

    @property
    def names(self) -> list[Any]:
        """The keys of samples that are dictionaries; empty for other samples."""
        return list(self.first) if isinstance(self.first, Mapping) else []

    @cached_property
    def _leaves(self) -> list[NestedValue]:
        features = get_features(self.users_dataset)
        return list_sample_leaves(self.first, as_tensor) if features is None else list_feature_leaves(features)

    def leaves(self, columns: Sequence[str] | None) -> list[NestedValue]:
        """Return the values of a sample that become outputs.

        Args:
            columns: Names of the values; None for all values.

        Raises:
            RuntimeError: A column doesn't exist.
        """
        if columns and not isinstance(self.first, Mapping):
            raise RuntimeError(
                f"columns={list(columns)}: samples must be dictionaries, got {type(self.first).__name__}"
            )
        return select_leaves(self._leaves, columns) if columns else self._leaves


def _disable_decoding(dataset: Any) -> Any:
    """Make a Hugging Face dataset return images and audio encoded; return other datasets unchanged."""
    module = sys.modules.get("datasets")
    if module is None or get_features(dataset) is None:
        return dataset
    output_format, encoded_types = dataset.format, (module.Image, module.Audio)
    for name, feature in dataset.features.items():
        if isinstance(feature, encoded_types):
            dataset = dataset.cast_column(name, type(feature)(decode=False))
    return dataset.with_format(None, columns=output_format["columns"])


def _label_features(dataset: Any) -> dict[str, Any]:
    """Return the features of a Hugging Face dataset that are labels with class names."""
    module = sys.modules.get("datasets")
    if module is None or not isinstance(dataset, module.Dataset):
        return {}
    return {name: feature for name, feature in dataset.features.items() if isinstance(feature, module.ClassLabel)}


class _RecordReader:
    """A function that reads records of a dataset, in this process or in a worker process.

    Args:
        leaves: The values to return for each sample.
        count: Length of each sample if samples are tuples; otherwise None.
    """

    def __init__(self, dataset: Any, leaves: Sequence[NestedValue], count: int | None) -> None:
        self.dataset, self._leaves, self._count = dataset, leaves, count

    def read_rows(self, records: list[int], epochs: list[int]) -> list[Row | Exception]:
        """Return the values of each record, or the exception that was raised while reading it."""
        samples: list[Any] = []
        if _has_getitems(self.dataset):
            seed_sample(epochs[0], records[0])
            with contextlib.suppress(Exception):  # after an exception, the records are read one by one
                items = self.dataset.__getitems__(records)
                samples = [] if isinstance(items, Mapping) else list(items)
        if len(samples) == len(records):
            return [self._convert_row(samples, i) for i in range(len(samples))]
        return [self._read(record, epoch) for record, epoch in zip(records, epochs, strict=True)]

    def _read(self, record: int, epoch: int) -> Row | Exception:
        seed_sample(epoch, record)
        return self._convert_row(self.dataset, record)

    def _convert_row(self, samples: Any, index: int) -> Row | Exception:
        try:
            sample = samples[index]
            count = len(sample) if isinstance(sample, tuple) else None
            if count != self._count:
                raise RuntimeError(
                    f"the sample must have {self._count or 1} values like the first sample, got {count or 1}"
                )
            return tuple([extract_value(leaf, sample) for leaf in self._leaves])
        except Exception as error:
            return error

    def __call__(self, request: tuple[list[int], list[int]]) -> WorkResult:
        """Read records in a worker process.

        Returns:
            One `TensorList` per value, without the records that raised an exception; and a dictionary with the key
            ``"errors"``. The value of this key is a dictionary from positions in the request to the exceptions.
        """
        rows = self.read_rows(*request)
        errors = {i: _make_picklable(row) for i, row in enumerate(rows) if isinstance(row, Exception)}
        succeeded = [row for row in rows if not isinstance(row, Exception)]
        batches = tuple(TensorList.from_samples(list(column)) for column in zip(*succeeded, strict=True))
        return batches or None, {"errors": errors}


def _has_getitems(dataset: Any) -> bool:
    """Return whether a dataset has ``__getitems__``, PyTorch's method that reads several records in one call."""
    return bool(getattr(dataset, "__getitems__", None))


def extract_value(leaf: NestedValue, sample: Any) -> Tensor:
    """Return a value of a sample as a tensor. If the conversion fails, the error names the value and a remedy."""
    kind: type[Exception] = RuntimeError
    try:
        return leaf.tensor(sample, as_tensor)
    except (TypeError, ValueError, RuntimeError, LookupError) as error:
        cause, reason = error, str(error).partition("\n")[0]
    if isinstance(cause, LookupError):
        reason = f"the sample doesn't have it ({type(cause).__name__}: {reason})"
    elif isinstance(cause, (TypeError, ValueError)):
        kind = TypeError if isinstance(cause, TypeError) else ValueError
    remedy = f": pass columns=[...] without {leaf.name!r}" if leaf.is_named else ""
    raise kind(
        f"{leaf.title} cannot become a tensor: {reason}. Return a number, an array of numbers, an image, text or "
        f"bytes instead, or omit the value{remedy}"
    ) from cause


def _make_picklable(error: Exception) -> Exception:
    try:
        pickling.loads(pickling.dumps(error))
        return error
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")


class _RecordBatch:
    """The records that one request reads."""

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def row(self, index: int) -> Row:
        """Wait for a record, and return its values.

        Raises:
            Exception: The exception that the dataset raised for this record.
        """
        row = self._rows[index]
        if isinstance(row, Exception):
            raise row
        return row

    @cached_property
    def _rows(self) -> list[Row | Exception]:
        # Several threads wait here for rows of a batch. If two threads unpack the result simultaneously, the rows of
        # both threads are views of the same result, so it doesn't matter whose rows are cached.
        result = self._future.result()
        if isinstance(result, list):
            return result
        batches, details = result
        errors = details["errors"]
        succeeded = zip(*(batch.samples() for batch in batches or ()), strict=True)
        count = len(errors) + (len(batches[0]) if batches else 0)
        return [errors[i] if i in errors else next(succeeded) for i in range(count)]


class PythonDataset:
    """Records of a dataset that are read ahead of the pipeline, by one thread or by worker processes.

    Args:
        leaves: The values to return for each sample.
        workers: Number of worker processes; 0 to read in one thread.
    """

    def __init__(self, source: MapStyle, leaves: Sequence[NestedValue], workers: int) -> None:
        self._source, self._leaves, self._workers = source, leaves, workers
        self._read = _RecordReader(
            source.users_dataset, leaves, len(source.first) if isinstance(source.first, tuple) else None
        )
        self._processes: SourceWorkers | None = None
        # Use a single thread, because few datasets are thread-safe. PyTorch's loaders use one thread per process, too.
        # The thread handles requests in the order of the batches.
        self._thread = DaemonPool(1, "torchdali-dataset")

    def start_processes(self, start: Callable[[Work, int], SourceWorkers]) -> SourceWorkers | None:
        """Start the worker processes; return None if there are none."""
        self._processes = start(self._read, self._workers) if self._workers else None
        return self._processes

    def __len__(self) -> int:
        return len(self._source)

    def read_many(self, records: Sequence[int], epochs: Sequence[int]) -> list[Read]:
        """Start to read records; return one function per record that waits for the record's values."""
        size, reads = max(1, self._request_size(len(records))), list[Read]()
        for start in range(0, len(records), size):
            subset = list(records[start : start + size])
            batch = _RecordBatch(self._submit(subset, list(epochs[start : start + size])))
            reads += [partial(batch.row, index) for index in range(len(subset))]
        return reads

    def _request_size(self, count: int) -> int:
        is_batched = _has_getitems(self._source.users_dataset)
        if self._processes is None:
            return count if is_batched else 1
        # The first record of a `__getitems__` call determines the seed of the whole call. Therefore, the number of
        # records per call must not depend on the number of workers.
        return _RECORDS_PER_CALL if is_batched else -(-count // (_REQUESTS_PER_WORKER * self._workers))

    def _submit(self, records: list[int], epochs: list[int]) -> Future[Any]:
        if self._processes is not None:
            return self._processes.submit((records, epochs))
        return self._thread.submit(self._read.read_rows, records, epochs)

    def read(self, index: int) -> Row:
        """Return the values of a record.

        Raises:
            Exception: The exception that the dataset raised for this record.
        """
        (read,) = self.read_many([index], [0])
        return read()

    @property
    def classes(self) -> Sequence[str]:
        """The class names that a torchvision or Hugging Face dataset defines; empty for other datasets."""
        dataset, names = self._source.users_dataset, {leaf.path[0] for leaf in self._leaves if leaf.path}
        classes: Sequence[str] = getattr(dataset, "classes", ())
        labels = [feature.names for name, feature in _label_features(dataset).items() if name in names]
        return classes or (labels[0] if len(labels) == 1 else ())

    def info(self, index: int, output: int | None = None) -> str:
        """Return a description of a record; an empty string if `output` is above 0."""
        return "" if output else f"record {index} of {type(self._source.users_dataset).__name__}"


def _infer_layouts(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    if arguments["layouts"]:
        return tuple(arguments["layouts"])
    dataset = arguments["dataset"]
    values = [leaf.value(dataset.first) for leaf in dataset.leaves(arguments["columns"])]
    return tuple("HWC" if is_image(value) else "" for value in values)


def _count_outputs(arguments: Mapping[str, Any]) -> int | None:
    dataset, columns = arguments["dataset"], arguments["columns"]
    count = len(dataset.leaves(columns))
    return count if count > 1 or isinstance(dataset.first, (Mapping, tuple)) else None


def _nest_outputs(arguments: Mapping[str, Any], outputs: Sequence[Any]) -> Any:
    leaves = arguments["dataset"].leaves(arguments.get("columns"))
    return nest(leaves, outputs)


@reader(name="readers.dataset", outputs=_count_outputs, layout=_infer_layouts, results=_nest_outputs, marks=("view",))
def dataset(
    *,
    dataset: MapStyle,
    columns: list[str] | None = None,
    layouts: list[str] | None = None,
    workers: int = 0,
    pure: bool = False,
    **options: Annotated[Any, shares(LoaderOptions)],
) -> Annotated[Dataset, OutputCount(1)]:
    """Read a Python dataset: a map-style PyTorch dataset, a Hugging Face dataset, or a sequence.

    DALI doesn't have this reader.

    **Outputs.** All samples must have the same structure, which the first sample or a Hugging Face dataset's features
    determine. If samples are tuples, each value is an output. If samples are dictionaries, each column is an output,
    and the call returns a dictionary. Otherwise, the sample is the single output. A nested dictionary is split into its
    values in the same way. A list of dictionaries becomes one list per key; an empty list has the dtype and axes of the
    column's other lists, for example ``(0, 4)`` for boxes.

    **Values.** Arrays and numbers are converted as by `torch.tensor`. PIL images become ``(H, W, C)`` with the layout
    HWC; images with a palette become the palette's indices. Bytes and text become ``(n,)`` uint8. Images and audio of a
    Hugging Face dataset stay encoded, for `decoders.image` and `decoders.audio`, unless the dataset has a transform.

    **Threads.** One thread, or worker processes, read batches before the pipeline needs them. If the dataset has
    ``__getitems__``, the reader calls this method with several indices.

    Args:
        dataset: A dataset with ``len`` and an item for each index from 0.
        columns: Keys of the dictionaries to return, in this order; by default, all keys. ``"objects.bbox"`` is the key
            ``bbox`` of the nested dictionary ``objects``.
        layouts: Layouts of the outputs.
        workers: Number of worker processes that read. ``py_start_method`` determines whether these processes
            are forked, or receive the pickled dataset.
        pure: True if samples depend only on the index and on `torchdali.Shared` values. Then, the pipeline's worker
            processes may read from copies of the dataset. If False, these processes don't read.

    Raises:
        TypeError: The dataset has no length or no items. While the pipeline runs: a value cannot become a tensor.
        RuntimeError: The dataset is empty, lacks one of the columns, or an argument is wrong.
        Exception: While the pipeline runs, the exceptions that the dataset raises.
    """
    leaves = dataset.leaves(columns)
    if workers < 0:
        raise RuntimeError(f"workers must be a number of processes or 0, got {workers}")
    if layouts and len(layouts) != len(leaves):
        raise RuntimeError(f"layouts must have {len(leaves)} values, one for each output, got {len(layouts)}")
    return PythonDataset(dataset, leaves, workers)
