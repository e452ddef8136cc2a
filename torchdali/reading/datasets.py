"""The interface of readers' datasets, and the arguments that all readers accept."""

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
"""Function that reads one record: a dataset's `read` with the index already bound."""


class Dataset(Protocol):
    """The records of a reader, with random access.

    Several worker threads call `read` at the same time, so `read` must be thread-safe.

    A dataset may define these optional methods and attributes:

    ``metadata(records) -> tuple[Tensor, ...]`` is required if the reader is declared with ``metadata=n``. For N record
    indices, the method returns n tensors of shape ``(N, ...)``, for example labels. These tensors become the last n
    outputs of the reader, after the outputs of `read`.

    ``read_many(records, epochs) -> Sequence[Read] | None`` is called when a batch is scheduled, some batches before the
    batch is needed. The method must return immediately. The result is one function per record, which is later called
    without arguments in place of `read`. If a record comes from a network or another process, `read_many` starts the
    transfer, and the function waits for the record. If all records are whole local files, `read_many` returns
    `WholeFiles`, so that threads can read several files in one call. If `read_many` returns None, `read` is called.
    ``epochs`` contains the epoch of each record, for datasets whose random numbers differ between epochs.

    ``identity(index) -> bytes | None`` identifies the content of a record in a local file, usually by
    `formats.storage.file_identity` and the record's position in the file. If the file changes, the identity must
    change. If the file does not exist, the method returns None, and `read` raises the error. `fn.cache` needs this
    method. If the method can also be called without an index, ``identity()`` identifies the list of all records,
    usually by `file_lists.list_digest`. If a saved position is loaded and this identity has changed, torchdali warns.

    ``describe_missing(index, output) -> str`` is needed if `read` may return a substitute for a missing output.
    If the record lacks the output, `describe_missing` returns a reason, otherwise an empty string. If the samples of
    a batch have different shapes, the error contains this reason.

    If a reader is declared with ``writes``, `read` accepts the argument ``out``: memory for the first output, or None.
    If `read` writes the output to ``out``, `read` must return ``out`` itself.
    """

    def __len__(self) -> int: ...

    def read(self, index: int) -> tuple[torch.Tensor, ...]:
        """Return the outputs of one record."""
        ...

    def info(self, index: int) -> str:
        """Return the name of a record for error messages, usually its file.

        `info` may have a second parameter, ``output``. Then ``info(index, output)`` returns the `source_info` of the
        record's sample in that output, or an empty string.
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
        copied: Indices of the outputs that must be copied.

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
            f"shape {tuple(result.shape)}. For one output, return (tensor,)"
        )


class RecordNames(Sequence[str]):
    """Names of the records of a batch, computed only when a name is accessed.

    Args:
        name: Function that returns the name of a record.
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
        """Copy and pickle the names as a list, without the dataset."""
        return list, (list(self),)


def source_namer(dataset: Any, output: int) -> Callable[[int], str] | None:
    """Return a function that returns the `source_info` of an output for a record index.

    Return None if the output has no `source_info`.
    """
    name: Callable[..., str] = dataset.info
    if _accepts_output(getattr(name, "__func__", name)):
        return functools.partial(name, output=output)
    return None if output else name


@functools.cache
def _accepts_output(info: Callable[..., str]) -> bool:
    return "output" in inspect.signature(info).parameters


class WholeFiles(Sequence[Read]):
    """The functions that read a batch's records, if each record is a whole local file.

    Code that can read several files in one call uses the attribute `paths` instead of the functions.

    Args:
        name: Function that returns the path of a record.
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
    """Start to read records of a dataset; return one function per record.

    The function returns the outputs of the record. The function either waits for a read that the dataset has started,
    or reads the record itself.
    """
    # The pipeline's thread that starts batches calls this function. The threads that compute batches call the returned
    # functions.
    read_many = getattr(dataset, "read_many", None)
    reads: Sequence[Read] | None = None if read_many is None else read_many(records, epochs)
    return [functools.partial(dataset.read, record) for record in records] if reads is None else reads


def missing_output(dataset: Any, records: Sequence[int], output: int) -> tuple[int, str] | None:
    """Find the first record that lacks an output.

    Returns:
        The record's position in `records`, and the reason that the dataset reports; None if no record lacks the output.
    """
    describe_missing = getattr(dataset, "describe_missing", None)
    if describe_missing is None:
        return None
    with contextlib.suppress(Exception):  # the caller is already raising another error
        return next(((i, text) for i, record in enumerate(records) if (text := describe_missing(record, output))), None)
    return None


@dataclass(frozen=True)
class LoaderOptions:
    """The arguments that all readers share, with DALI's names and defaults.

    Args:
        shard_id: Index of the shard that this reader reads in the first epoch, ``0 .. num_shards - 1``.
        num_shards: Number of shards that the records are divided into.
        stick_to_shard: If True, read the same shard in every epoch; if False, read the next shard in each epoch.
        pad_last_batch: Repeat the shard's last record until the shard has ``ceil(N / num_shards)`` samples, for N
            records, and the last batch is full.
        random_shuffle: Shuffle all records in every epoch; with ``stick_to_shard``, only the records of the shard.
        initial_fill: Size of DALI's shuffle buffer. Accepted without effect: torchdali shuffles whole epochs.
        seed: Seed of the shuffling; with -1 or None, the pipeline's seed.
        prefetch_queue_depth: Number of batches that DALI's reader reads ahead. Accepted without effect: the pipeline's
            own queue depth determines how much torchdali reads ahead.
        read_ahead: Accepted without effect.
        lazy_init: List the files or read the index for the first batch, not when the pipeline is built.
        dont_use_mmap: Read files with ordinary read calls instead of mapping them into memory.
        skip_cached_images: Accepted without effect: torchdali's decoders have no cache.
        tensor_init_bytes: Initial size of DALI's sample buffers. Accepted without effect.
        shuffle_after_epoch: Shuffle all records again for each epoch. The order is the same on all ranks and doesn't
            depend on the pipeline's seed. Each rank reads the same shard index in every epoch.
        shuffle_after_epoch_seed: Seed of the shuffling with ``shuffle_after_epoch``.

    Raises:
        RuntimeError: Two shuffling arguments exclude each other, ``shard_id`` is not in ``0 .. num_shards - 1``, or a
            size or ``prefetch_queue_depth`` is too small.
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
            raise ValueError(f"prefetch_queue_depth must be positive, got {self.prefetch_queue_depth}.")
        if self.prefetch_queue_depth == 0:
            raise RuntimeError("prefetch_queue_depth must be at least 1, got 0.")
        if self.tensor_init_bytes < 0:
            raise RuntimeError(f"tensor_init_bytes must not be negative, got {self.tensor_init_bytes}.")

    def _check_shards(self) -> None:
        if self.num_shards <= self.shard_id:
            raise RuntimeError(
                f"num_shards ({self.num_shards}) must be greater than shard_id ({self.shard_id}): "
                f"shards are numbered from 0 to num_shards - 1."
            )
        if self.shard_id < 0:
            raise RuntimeError(f"shard_id must not be negative, got {self.shard_id}.")

    def _check_shuffling(self) -> None:
        if self.shuffle_after_epoch and self.random_shuffle:
            raise RuntimeError("shuffle_after_epoch and random_shuffle cannot both be true: omit one of them.")
        if self.shuffle_after_epoch and self.stick_to_shard:
            raise RuntimeError(
                "shuffle_after_epoch and stick_to_shard cannot both be true: shuffling changes the records of a shard."
            )
        if self.random_shuffle and self.initial_fill <= 0:
            raise RuntimeError(f"initial_fill must be at least 1, got {self.initial_fill}.")
        if self.shuffle_after_epoch_seed is not None and not self.shuffle_after_epoch:
            warn("shuffle_after_epoch_seed has no effect without shuffle_after_epoch=True.")

    @property
    def rotates(self) -> bool:
        """True if a rank reads a different shard in each epoch."""
        return not (self.stick_to_shard or self.shuffle_after_epoch)


def shared_arguments(constants: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reader's arguments that `LoaderOptions` defines, with defaults for omitted arguments."""
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
