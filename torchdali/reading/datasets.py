"""The common parts of readers: datasets, and the arguments that all readers accept."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt
import torch

from torchdali.errors import warn

__all__ = [
    "Dataset", "Indices", "LoaderOptions", "Read", "RecordNames", "WholeFiles", "check_dataset", "missing_output",
    "read_row", "reader_meta", "shard_start", "shared_arguments", "source_namer", "start_reads",
]  # fmt: skip

Indices = npt.NDArray[np.int64]
Read = Callable[..., tuple[torch.Tensor, ...]]
"""Reads one record: `read` of a data set, without the index."""


class Dataset(Protocol):
    """The records of a reader, with random access.

    Several worker threads call `read` at the same time, so it must be thread-safe. A reader declared with
    ``metadata=n`` has n more outputs than `read` returns: the results of ``metadata(records) -> tuple[Tensor, ...]``,
    ``(N, ...)`` for N records. Usually these are labels.

    ``read_many(records, epochs) -> Sequence[Read] | None`` is called when a batch is drawn, some batches ahead. It
    returns immediately. For each record, it returns a function that replaces `read`, without the index. If reading a
    record takes long, from a network or another process, `read_many` starts to read it, and the function waits for it.
    If all records are local files that are read unchanged, `read_many` returns `WholeFiles`, so that threads can read
    several files in one call. None means that `read` is used. The epochs are for the user's code whose random numbers
    differ from epoch to epoch.

    ``identity(index) -> bytes | None`` identifies a record of a local file by values that change with the file: the
    result of `formats.storage.file_identity`, and the record's position in the file. `fn.cache` needs it. It returns
    None if the file does not exist; then `read` raises the error. If the index may be omitted, ``identity()``
    identifies the list of all records, to which a saved position belongs, usually by `file_lists.list_digest`.

    ``lacks(index, output) -> str`` is defined if a substitute may replace a missing output of a record. It returns the
    reason for the error message about a batch whose samples differ; empty for other records.

    If a reader is declared with ``writes``, `read` accepts ``out``: a tensor for the first output, or None. It returns
    ``out`` if it wrote the output there.
    """

    def __len__(self) -> int: ...

    def read(self, index: int) -> tuple[torch.Tensor, ...]:
        """Return the outputs of one record."""
        ...

    def info(self, index: int) -> str:
        """Return the name of a record for error messages, usually its file.

        If `info` accepts a second argument, ``info(index, output)`` returns the source info of an output's samples, or
        an empty string.
        """
        ...


def check_dataset(dataset: Any) -> None:
    """Raise TypeError if an object doesn't have the methods of a `Dataset`."""
    missing = [name for name in ("__len__", "read", "info") if not hasattr(dataset, name)]
    if missing:
        names = ", ".join(missing)
        raise TypeError(f"a reader must return a dataset, but {type(dataset).__name__!r} has no {names}")


def read_row(read: Read, copied: Collection[int] = (), **arguments: Any) -> Sequence[Any]:
    """Read a record.

    Args:
        read: The function that reads the record.
        copied: Indices of the outputs to copy.
        arguments: Arguments of `read`.

    Raises:
        TypeError: The result is a single tensor or array; its first axis would be mistaken for the outputs.
    """
    outputs: Sequence[Any] = read(**arguments)
    if type(outputs) is not tuple:
        _check_row(outputs)
    return [each.clone() if i in copied else each for i, each in enumerate(outputs)] if copied else outputs


def _check_row(result: Any) -> None:
    if isinstance(result, (torch.Tensor, np.ndarray)):
        raise TypeError(
            f"`read` of a dataset must return a tuple of tensors, one per output, got a {type(result).__name__} of "
            f"shape {tuple(result.shape)}: for one output, return (tensor,)"
        )


class RecordNames(Sequence[str]):
    """Names of the records of a batch, computed only when a name is accessed.

    Args:
        name: Function that returns the name of a record.
        records: Indices of the records.
    """

    def __init__(self, name: Callable[[int], str], records: Indices) -> None:
        self._name, self._records = name, records

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i: int | slice) -> str | list[str]:
        if isinstance(i, slice):
            return [self._name(record) for record in self._records[i].tolist()]
        return self._name(self._records.item(i))

    def __reduce__(self) -> tuple[Any, ...]:
        """Convert to a list when copied or pickled, so that the dataset isn't included."""
        return list, (list(self),)


def source_namer(dataset: Any, output: int) -> Callable[[int], str] | None:
    """Return the function that returns an output's `source_info` for a record; None if nothing is known."""
    name: Callable[..., str] = dataset.info
    if _takes_output(getattr(name, "__func__", name)):
        return functools.partial(name, output=output)
    return None if output else name


@functools.cache
def _takes_output(info: Callable[..., str]) -> bool:
    return "output" in inspect.signature(info).parameters


class WholeFiles(Sequence[Read]):
    """Records that are whole local files. Code that can read several files in one call uses their paths.

    Args:
        records: Indices of the records.
        name: Function that returns the path of a record.
        read: The dataset's `read`, for a single record.
    """

    def __init__(self, records: Sequence[int], name: Callable[[int], str], read: Read) -> None:
        self._records, self._name, self._read = records, name, read

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, i: int) -> Read: ...
    @overload
    def __getitem__(self, i: slice) -> WholeFiles: ...
    def __getitem__(self, i: int | slice) -> Read | WholeFiles:
        if isinstance(i, slice):
            return WholeFiles(self._records[i], self._name, self._read)
        return functools.partial(self._read, self._records[i])

    @property
    def paths(self) -> list[str]:
        """The paths of the files."""
        return list(map(self._name, self._records))


def start_reads(dataset: Any, records: Sequence[int], epochs: Sequence[int]) -> Sequence[Read]:
    """Start to read records of a dataset; return a function per record that reads it, or waits for it."""
    # Runs in the thread that draws batches. The threads that compute batches call the returned functions.
    read_many = getattr(dataset, "read_many", None)
    reads: Sequence[Read] | None = None if read_many is None else read_many(records, epochs)
    return [functools.partial(dataset.read, record) for record in records] if reads is None else reads


def missing_output(dataset: Any, records: Sequence[int], output: int) -> tuple[int, str] | None:
    """Return the position of the first record that lacks an output, and the dataset's message; None if all have it."""
    lacks = getattr(dataset, "lacks", None)
    if lacks is None:
        return None
    with contextlib.suppress(Exception):  # the caller is already raising another error
        return next(((i, text) for i, record in enumerate(records) if (text := lacks(record, output))), None)
    return None


@dataclass(frozen=True)
class LoaderOptions:
    """The arguments that all readers share, with DALI's names and defaults.

    Args:
        shard_id: Which shard this reader walks first, ``0 .. num_shards - 1``.
        num_shards: Into how many shards the epoch is divided.
        stick_to_shard: Walk the same shard in every epoch; otherwise the shards rotate.
        pad_last_batch: Repeat the last record until the shard has ``ceil(N / num_shards)`` samples
            and the last batch is full.
        random_shuffle: Shuffle every epoch as a whole (within its shard with ``stick_to_shard``).
        initial_fill: Size of DALI's shuffle window. Accepted; a whole epoch is shuffled here.
        seed: Seed of the shuffling; -1 and None use the pipeline's.
        prefetch_queue_depth: Batches that DALI's reader reads ahead of its pipeline. Accepted; here
            the pipeline's own queue depth decides how much is read ahead.
        read_ahead: Accepted; whole files are read at once in any case.
        lazy_init: List the files, or read the index, with the first batch instead of when the pipeline is built.
        dont_use_mmap: Read files with plain reads, never by mapping them into memory.
        skip_cached_images: Accepted; nothing is cached between decoder and reader.
        tensor_init_bytes: First size of DALI's sample buffers. Accepted; sizes are exact here.
        shuffle_after_epoch: Shuffle all records again for each epoch, in the same way on all ranks
            and for every pipeline seed; each rank then keeps its shard number.
        shuffle_after_epoch_seed: Selects another series of these shuffles.

    Raises:
        RuntimeError: The shuffling modes exclude each other, ``shard_id`` is not one of
            ``0 .. num_shards - 1``, or a size is not positive.
        ValueError: ``prefetch_queue_depth`` is negative.
    """

    shard_id: int = 0
    num_shards: int = 1
    stick_to_shard: bool = False
    pad_last_batch: bool = False
    random_shuffle: bool = False
    initial_fill: int = 1024
    seed: int | None = -1
    prefetch_queue_depth: int = 1
    read_ahead: bool = False
    lazy_init: bool = False
    dont_use_mmap: bool = False
    skip_cached_images: bool = False
    tensor_init_bytes: int = 1048576
    shuffle_after_epoch: bool = False
    shuffle_after_epoch_seed: int | None = None

    def __post_init__(self) -> None:
        self._check_shards()
        self._check_shuffling()
        if self.prefetch_queue_depth < 0:
            raise ValueError(f"prefetch_queue_depth is {self.prefetch_queue_depth}; it must be positive.")
        if self.prefetch_queue_depth == 0:
            raise RuntimeError("prefetch_queue_depth is 0; it must be at least 1.")
        if self.tensor_init_bytes < 0:
            raise RuntimeError(f"tensor_init_bytes is {self.tensor_init_bytes}; it cannot be negative.")

    def _check_shards(self) -> None:
        if self.num_shards <= self.shard_id:
            raise RuntimeError(
                f"num_shards ({self.num_shards}) must be greater than shard_id ({self.shard_id}): "
                f"shards are numbered from 0 to num_shards - 1."
            )
        if self.shard_id < 0:
            raise RuntimeError(f"shard_id is {self.shard_id}; it cannot be negative.")

    def _check_shuffling(self) -> None:
        if self.shuffle_after_epoch and self.random_shuffle:
            raise RuntimeError("shuffle_after_epoch and random_shuffle cannot both be true: leave out one of them.")
        if self.shuffle_after_epoch and self.stick_to_shard:
            raise RuntimeError(
                "shuffle_after_epoch and stick_to_shard cannot both be true: shuffling changes the records of a shard."
            )
        if self.random_shuffle and self.initial_fill <= 0:
            raise RuntimeError(f"initial_fill is {self.initial_fill}; it must be at least 1.")
        if self.shuffle_after_epoch_seed is not None and not self.shuffle_after_epoch:
            warn("shuffle_after_epoch_seed has no effect without shuffle_after_epoch=True.")

    @property
    def rotates(self) -> bool:
        """True if a rank walks another shard in each epoch."""
        return not (self.stick_to_shard or self.shuffle_after_epoch)


def shared_arguments(constants: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `LoaderOptions` among a reader's arguments, with defaults for omitted ones."""
    return {field.name: constants.get(field.name, field.default) for field in fields(LoaderOptions)}


def shard_start(size: int, num_shards: int, shard: int) -> int:
    """Return the first position of a shard: ``shard * size // num_shards``."""
    return shard * size // num_shards


def reader_meta(size: int, options: LoaderOptions) -> dict[str, int]:
    """Describe a reader as DALI's ``Pipeline.reader_meta`` does."""
    padded = -(-size // options.num_shards) * options.num_shards
    return {
        "epoch_size": size,
        "epoch_size_padded": padded if options.pad_last_batch else size,
        "number_of_shards": options.num_shards,
        "shard_id": options.shard_id,
        "pad_last_batch": int(options.pad_last_batch),
        "stick_to_shard": int(not options.rotates),
    }
