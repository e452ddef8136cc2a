"""The common parts of readers: data sets, and the arguments that all of them take."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt
import torch

from torchdali.errors import warn

__all__ = [
    "Dataset", "Indices", "LoaderOptions", "RecordNames", "begun", "check_dataset", "lacking",
    "local_paths", "owning_read", "read_several", "reader_meta", "row", "shard_start", "shared_arguments",
    "source_namer",
]  # fmt: skip

Indices = npt.NDArray[np.int64]


class Dataset(Protocol):
    """The records of a reader, with random access.

    `read` is called by several worker threads at once and must be thread-safe. A reader declared with ``metadata=n``
    has n outputs more than `read` returns: those of ``metadata(records) -> tuple[Tensor, ...]``, each ``(N, ...)``
    for N records; labels, as a rule.

    Where a record takes long to come, from a network or another process, ``begin(records) -> Sequence | None`` is
    called when a batch is drawn, some batches ahead: it starts what it can and returns at once, for each record what
    `read` is called with in place of its index. None stands for the indices. ``begin_in_epochs(records, epochs)`` is
    called in its place if there is one: for code of the user whose random numbers differ from epoch to epoch.

    Where a record is a file, ``local_paths(records) -> Sequence[str] | None`` names the files, for those who read
    several at once; None where they are not all on this machine.

    ``read_several(records, lent) -> Sequence[Tensor] | None`` returns what `read` does for a few records of one output
    in one call; if they are only lent, in memory that the thread's next call may use again. None, or an error, means
    that `read` must do it.

    Where a record is of a file of this machine, ``identity(index) -> bytes | None`` names it by what changes with it:
    path, size and time of change, and its place in the file. `fn.cache` needs that. None if there is no such file, of
    which `read` then tells more.

    Where something else may stand in for an output that a record does not have, ``lacks(index, output) -> str`` says
    so, for the message about a batch whose samples differ; empty for other records.

    Of a reader declared with ``writes``, `read` takes ``out``, a tensor where its first output is delivered from, or
    None; it returns ``out`` if it wrote there.
    """

    def __len__(self) -> int: ...

    def read(self, index: int) -> tuple[torch.Tensor, ...]:
        """Return the outputs of one record."""
        ...

    def info(self, index: int) -> str:
        """Name a record in error messages, by its file as a rule.

        Where ``source_info(index)`` is there, it is what samples of the first output say of their source instead; or
        ``component_info(index, output)``, of each output.
        """
        ...


def check_dataset(dataset: Any) -> None:
    """Raise TypeError where an object has not the methods of a `Dataset`."""
    missing = [name for name in ("__len__", "read", "info") if not hasattr(dataset, name)]
    if missing:
        names = ", ".join(missing)
        raise TypeError(f"a reader returns a data set, and {type(dataset).__name__!r} has no {names}")


def row(found: Any) -> Sequence[Any]:
    """Return what `read` of a data set returned, if it is a tuple.

    Raises:
        TypeError: it is a single tensor or array, which would be taken for as many outputs as its first axis is long.
    """
    if type(found) is not tuple and isinstance(found, (torch.Tensor, np.ndarray)):
        raise TypeError(
            f"`read` of a data set returns a tuple of tensors, one an output, not a {type(found).__name__} of shape "
            f"{tuple(found.shape)}: for one output, return (tensor,)"
        )
    outputs: Sequence[Any] = found
    return outputs


def owning_read(dataset: Any, delivered: Collection[int] | None = None) -> Callable[..., tuple[torch.Tensor, ...]]:
    """Return `read` of a data set whose results are the caller's to change.

    What a data set with ``shares_memory`` returns may be views of a mapped file: written to, they would
    change what is read in later epochs.

    Args:
        dataset: Of the reader.
        delivered: Numbers of the outputs that leave the pipeline as they are; None for all.
    """
    read: Callable[..., tuple[torch.Tensor, ...]] = dataset.read
    if not getattr(dataset, "shares_memory", False) or (delivered is not None and not delivered):
        return read

    def read_copies(index: int, **given: Any) -> tuple[torch.Tensor, ...]:
        return tuple(
            output.clone() if delivered is None or i in delivered else output
            for i, output in enumerate(row(read(index, **given)))
        )

    return read_copies


def local_paths(read: Callable[..., Any]) -> Callable[[Sequence[Any]], Sequence[str] | None]:
    """Return the `local_paths` of a data set by its `read`, or a function that returns None; see `Dataset`."""
    dataset = getattr(read, "__self__", None)
    found = getattr(dataset, "local_paths", None)
    return found if found is not None else lambda records: None


def read_several(read: Callable[..., Any]) -> Callable[[Sequence[Any], bool], Sequence[Any] | None]:
    """Return the `read_several` of a data set by its `read`, or a function that returns None; see `Dataset`."""
    dataset = getattr(read, "__self__", None)
    found = getattr(dataset, "read_several", None)
    return found if found is not None else lambda records, lent: None


class RecordNames(Sequence[str]):
    """Names of the records of a batch, found when somebody asks for one.

    Args:
        name: Names a record.
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
        """Become a list where it is copied or sent: the data set stays."""
        return list, (list(self),)


def source_namer(dataset: Any, output: int) -> Callable[[int], str] | None:
    """Return what tells where an output of a record comes from, as `source_info` of a sample says; None if nothing."""
    component: Any = getattr(dataset, "component_info", None)
    if component is not None:
        return functools.partial(component, output=output)
    name: Callable[[int], str] = getattr(dataset, "source_info", dataset.info)
    return None if output else name


def begun(dataset: Any, records: Sequence[int], epochs: Sequence[int]) -> Sequence[Any]:
    """Let a data set start to read records, and return what to call `read` with for each of them."""
    if hasattr(dataset, "begin_in_epochs"):
        begun_records: Sequence[Any] = dataset.begin_in_epochs(records, epochs)
        return begun_records
    begin = getattr(dataset, "begin", None)
    started: Sequence[Any] | None = None if begin is None else begin(records)
    return records if started is None else started


def lacking(dataset: Any, records: Sequence[int], output: int) -> tuple[int, str] | None:
    """Return which of some records lacks an output, and what its data set says about it; None if none does."""
    lacks = getattr(dataset, "lacks", None)
    if lacks is None:
        return None
    with contextlib.suppress(Exception):  # another error is on its way
        return next(((i, text) for i, record in enumerate(records) if (text := lacks(record, output))), None)
    return None


@dataclass(frozen=True)
class LoaderOptions:
    """The arguments that all readers share, with DALI's names and defaults.

    Args:
        shard_id: Which shard this reader walks first, ``0 .. num_shards - 1``.
        num_shards: Into how many shards the epoch is divided.
        stick_to_shard: Walk the same shard in every epoch, where otherwise the shards rotate.
        pad_last_batch: Repeat the last record until the shard has ``ceil(N / num_shards)`` samples
            and the last batch is full.
        random_shuffle: Shuffle every epoch as a whole (within its shard with ``stick_to_shard``).
        initial_fill: Size of DALI's shuffle window. Accepted; a whole epoch is shuffled here.
        seed: Of the shuffling; -1 and None take the pipeline's.
        prefetch_queue_depth: Batches that DALI's reader reads ahead of its pipeline. Accepted; here
            the pipeline's own queue depth decides how much is read ahead.
        read_ahead: Accepted; whole files are read at once in any case.
        lazy_init: List the files, or read the index, with the first batch instead of when the pipeline is built.
        dont_use_mmap: Read files with plain reads, never by mapping them into memory.
        skip_cached_images: Accepted; nothing is cached between decoder and reader.
        tensor_init_bytes: First size of DALI's sample buffers. Accepted; sizes are exact here.
        shuffle_after_epoch: Shuffle all records anew for each epoch, in the same way on all ranks
            and for every pipeline seed; each rank then keeps its shard number.
        shuffle_after_epoch_seed: Selects another series of such shuffles.

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
                "shuffle_after_epoch and stick_to_shard cannot both be true: "
                "every such shuffle changes the records of a shard."
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
    """Return the arguments of `LoaderOptions` among those of a reader, with the defaults of those left out."""
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
