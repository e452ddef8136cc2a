"""The reader of mixtures: several readers, each with a fixed share of an epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import numpy as np
import torch

from torchdali.calls.decorators import reader
from torchdali.calls.dispatch import bind
from torchdali.declaration.registry import Operator, registry
from torchdali.declaration.schema import OutputCount, shares
from torchdali.formats.remote import RemoteOptions
from torchdali.formats.urls import represent
from torchdali.reading.cursor import EpochOrder
from torchdali.reading.datasets import Dataset, Indices, LoaderOptions, Read, start_reads
from torchdali.reading.file_lists import list_identity
from torchdali.reading.mixture import Mixture, Weight, epoch_counts

__all__ = ["MixedDataset", "WeightedReader", "mixture"]


@dataclass(frozen=True, init=False, repr=False)
class WeightedReader:
    """A reader of a mixture, and its share of an epoch. See `fn.readers.mixture`.

    Pass at most one of `proportion`, `repeat` and `choose`.

    Args:
        reader: A reader of `fn`, for example ``fn.readers.webdataset``.
        proportion: Weight of the reader in an epoch, relative to the proportions of the other readers.
        repeat: How often an epoch contains each record: 2 for each record twice, 0.5 for half of the records.
        choose: Number of the reader's records in an epoch.
        arguments: Arguments of the reader, for example ``paths``. Pass arguments for shuffling and shards to the
            mixture instead.

    Raises:
        TypeError: `reader` isn't a reader of `fn`.
        ValueError: Several shares are passed, a share is not positive, or an argument belongs to the mixture or can't
            be used in a mixture.
        Exception: The errors that the reader raises for its arguments.
    """

    name: str
    weight: Weight
    settings: Mapping[str, Any]
    places: Mapping[str, Any] = field(compare=False)

    def __init__(
        self, reader: Any, /, *, proportion: float | None = None, repeat: float | None = None,
        choose: int | None = None, **arguments: Any,
    ) -> None:  # fmt: skip
        operator = getattr(reader, "operator", None)
        if not isinstance(operator, Operator) or operator.kind != "reader":
            raise TypeError(f"the sources of a mixture must be readers such as fn.readers.file, got {reader!r}")
        weight = Weight(proportion, repeat, choose)
        weight.check()
        misplaced = arguments.keys() & (LoaderOptions.__dataclass_fields__.keys() - {"dont_use_mmap"})
        if misplaced:
            raise ValueError(
                f"{', '.join(sorted(misplaced))} must be passed to fn.readers.mixture, not to one of its readers"
            )
        if arguments.get("workers"):
            raise ValueError("workers must be 0 in a mixture: its readers run in the pipeline's threads")
        parts: tuple[dict[str, Any], dict[str, Any]] = {}, {}
        for name, value in bind(operator, [], arguments).constants.items():
            is_location = name in operator.schema.paths or name in RemoteOptions.__dataclass_fields__
            parts[is_location][name] = value
        for name, value in (("name", operator.name), ("weight", weight), ("settings", parts[0]), ("places", parts[1])):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        shares_ = {name: value for name, value in self.weight._asdict().items() if value is not None}
        arguments = [f"{name}={represent(value)}" for name, value in {**shares_, **self.constants}.items()]
        return f"WeightedReader({', '.join([self.name, *arguments])})"

    @property
    def constants(self) -> dict[str, Any]:
        """All arguments of the reader: its settings, and the location of its data."""
        return {**self.settings, **self.places}

    @property
    def operator(self) -> Operator:
        """The declaration of the reader as an operator."""
        return registry[self.name]


class MixedDataset:
    """The records of several datasets, with indices that continue from one dataset to the next.

    Args:
        has_labels: For each dataset, True if the last output comes from the dataset's method `metadata`.
        mixture: Determines the records of each epoch.
        draws_shuffled: True if the mixture itself shuffles the records.
    """

    def __init__(
        self, datasets: Sequence[Any], has_labels: Sequence[bool], mixture: Mixture, draws_shuffled: bool
    ) -> None:  # fmt: skip
        self._datasets, self._has_labels, self._mixture = datasets, has_labels, mixture
        self.draw, self.draws_shuffled = mixture.draw, draws_shuffled
        self.remotes = tuple(remote for each in datasets for remote in getattr(each, "remotes", ()))
        self.bytes_ahead = max(getattr(each, "bytes_ahead", 0) for each in datasets)

    @property
    def is_busy(self) -> bool:
        """True if new requests must wait for earlier requests to end."""
        return any(remote.is_busy for remote in self.remotes)

    def byte_count(self, records: Indices) -> int:
        """Return the total size of the remote records in bytes."""
        counts = [
            self._datasets[part].byte_count(np.array([index]))
            for part, index in map(self._mixture.locate, records.tolist())
            if getattr(self._datasets[part], "bytes_ahead", 0)
        ]
        return sum(counts)

    def __len__(self) -> int:
        return len(self._mixture)

    def read_many(self, records: Sequence[int], epochs: Sequence[int]) -> list[Read]:
        """Start to read records; return one function per record that returns the record's outputs."""
        locations = [self._mixture.locate(record) for record in records]
        reads: list[Any] = [None] * len(records)
        for part, dataset in enumerate(self._datasets):
            selected = [i for i, (each, _) in enumerate(locations) if each == part]
            if selected:
                started = start_reads(dataset, [locations[i][1] for i in selected], [epochs[i] for i in selected])
                for i, read in zip(selected, started, strict=True):
                    reads[i] = partial(self._read_row, part, locations[i][1], read)
        return reads

    def read(self, index: int) -> tuple[torch.Tensor, ...]:
        """Return the outputs of a record, including its label."""
        part, local_index = self._mixture.locate(index)
        return self._read_row(part, local_index, partial(self._datasets[part].read, local_index))

    def _read_row(self, part: int, index: int, read: Read) -> tuple[torch.Tensor, ...]:
        row = tuple(read())
        if self._has_labels[part]:
            row += tuple(values[0] for values in self._datasets[part].metadata(np.array([index])))
        return row

    def identity(self, index: int | None = None) -> bytes | None:
        """Return the identity of a record; if `index` is None, return the identity of the lists of all datasets."""
        if index is None:
            return b"".join(list_identity(each) or bytes(8) for each in self._datasets)
        part, local_index = self._mixture.locate(index)
        get_identity = getattr(self._datasets[part], "identity", None)
        found: bytes | None = None if get_identity is None else get_identity(local_index)
        return found

    def info(self, index: int) -> str:
        """Return the name of a record in its own dataset."""
        part, local_index = self._mixture.locate(index)
        name: str = self._datasets[part].info(local_index)
        return name


def _first_source(arguments: Mapping[str, Any]) -> WeightedReader:
    sources = arguments["sources"]
    if not sources or not all(isinstance(each, WeightedReader) for each in sources):
        raise TypeError(f"sources must be a list of torchdali.WeightedReader, got {sources!r}")
    first: WeightedReader = sources[0]
    counts = [each.operator.count_outputs(each.constants) for each in sources]
    if len(set(counts)) > 1:
        raise ValueError(f"the sources of a mixture must have the same number of outputs, got {counts}")
    return first


def _count_outputs(arguments: Mapping[str, Any]) -> int | None:
    first = _first_source(arguments)
    count = first.operator.count_outputs(first.constants)
    return count if first.operator.returns_list(first.constants) else None


def _output_layouts(layouts: tuple[str, ...], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    first = _first_source(arguments)
    return first.operator.output_layouts(layouts, first.constants)


def _arrange_results(arguments: Mapping[str, Any], outputs: Any) -> Any:
    first = _first_source(arguments)
    rule = first.operator.options.results
    return outputs if rule is None else rule(first.constants, outputs)


def _reads_in_runs(dataset: Any) -> bool:
    return getattr(dataset, "runs", None) is not None


@reader(
    name="readers.mixture", outputs=_count_outputs, layout=_output_layouts, results=_arrange_results, marks=("view",)
)
def mixture(
    *,
    sources: list[Any],
    stratified: bool = False,
    epoch_size: int | None = None,
    **options: Annotated[Any, shares(LoaderOptions)],
) -> Annotated[Dataset, OutputCount(1)]:
    """Read several datasets as one, each with a fixed share of every epoch.

    DALI doesn't have this reader.

    ::

        images, labels = fn.readers.mixture(
            sources=[
                WeightedReader(fn.readers.file, proportion=3, file_root="photos"),
                WeightedReader(fn.readers.webdataset, proportion=1, paths=shards, ext=["jpg", "cls"]),
            ],
            random_shuffle=True,
        )

    In each dataset, an epoch continues where the previous epoch stopped. If an epoch reads a fifth of a dataset, five
    epochs read every record of the dataset once. Resuming, and the division among ranks, are as exact as for one
    reader.

    Args:
        sources: The readers, each a `torchdali.WeightedReader`. All readers must have the same outputs.
        stratified: Only with ``random_shuffle``. If True, the datasets are shuffled separately and then interleaved, so
            every batch has the requested shares. If False, the whole epoch is shuffled, so batches have the shares only
            on average.
        epoch_size: Number of samples in an epoch, for readers with proportions; by default the number of all records.

    Returns:
        The outputs of the first reader.

    Raises:
        TypeError: A source isn't a `WeightedReader`.
        ValueError: The shares contradict each other, a source's share is less than one sample, or the sources have
            different numbers of outputs.
        Exception: The errors that a reader raises.
    """
    shuffles = bool(options.get("random_shuffle"))
    if options.get("shuffle_after_epoch"):
        raise ValueError("shuffle_after_epoch must be False for a mixture: use random_shuffle")
    shared = {"random_shuffle": shuffles, "seed": options.get("seed")}
    datasets = [each.operator.implementation(**{**each.constants, **shared}) for each in sources]
    if shuffles and not stratified and any(map(_reads_in_runs, datasets)):
        raise ValueError("tables and shuffle_window need stratified=True")
    counts = epoch_counts([len(each) for each in datasets], [each.weight for each in sources], epoch_size)
    seed = 0 if options.get("seed") in (None, -1) or not stratified else int(options["seed"])
    order = LoaderOptions(random_shuffle=shuffles)
    orders = [EpochOrder.of(each, order, seed + i) for i, each in enumerate(datasets)]
    has_labels = [bool(each.operator.metadata) for each in sources]
    return MixedDataset(datasets, has_labels, Mixture(orders, counts), stratified)
