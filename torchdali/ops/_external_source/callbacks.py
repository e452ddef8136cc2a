"""Callbacks: the ways in which the user's code is asked for a range of samples of one batch.

`CallableSource` passes the position to a callable; `IterableSource` takes the next item of an iterable. Both turn a
`SampleRange` into data; a `BatchLoader` turns the data into batches, in this process or in a worker process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from torchdali.errors import note
from torchdali.ops._external_source.convert import OF_DATA_SET, to_batch
from torchdali.reading.sources import WorkResult
from torchdali.reading.user_random import seed_sample
from torchdali.tensors import TensorList
from torchdali.types import BatchInfo, SampleInfo

__all__ = [
    "CallableSource",
    "IterableSource",
    "BatchLoader",
    "Outputs",
    "SampleRange",
    "Position",
    "CallResults",
]

Columns = list[Any]


@dataclass(frozen=True)
class SampleRange:
    """The samples from ``start`` to ``stop`` of one batch.

    Attributes:
        epoch: Number of epochs before this one.
        iteration: Number of batches of this epoch before this one.
        sample: Number of samples of this epoch before this batch.
    """

    epoch: int
    iteration: int
    sample: int
    start: int
    stop: int

    def __str__(self) -> str:
        return f"samples {self.start} to {self.stop - 1} of batch {self.iteration} of epoch {self.epoch}"


@dataclass(frozen=True)
class Position:
    """A position in an iterable, counted since its last start.

    Attributes:
        items: Items that it has given.
        stops: Number of times that it has ended.
        starts: Number of restarts.
    """

    items: int = 0
    stops: int = 0
    starts: int = 0


@dataclass(frozen=True)
class Outputs:
    """The outputs of a source: their number (None for one that is not in a list) and their layouts."""

    count: int | None
    layouts: tuple[str, ...]

    def columns(self, data: Any) -> Columns:
        """Unpack the result of a source for one batch, or for one sample."""
        if self.count is None:
            return [data]
        if isinstance(data, Sequence) and len(data) < self.count:
            raise IndexError(f"the source returned {len(data)} outputs, and num_outputs is {self.count}")
        try:
            return [data[k] for k in range(self.count)]
        except (TypeError, IndexError, KeyError) as error:
            hint = f"; {OF_DATA_SET}" if isinstance(data, Mapping) else ""
            raise type(error)(
                f"the source returned {type(data).__name__}, and num_outputs is {self.count}: "
                f"return a tuple of as many, in a source of batches one batch an output{hint}"
            ) from None

    def transposed(self, rows: Sequence[Any]) -> Columns:
        """Return one list of samples an output."""
        if self.count is None:
            return [list(rows)]
        if not rows:
            return [[] for _ in range(self.count)]
        return [list(column) for column in zip(*map(self.columns, rows), strict=True)]


class CallableSource:
    """A callable that takes the position of the batch, or of the sample, to return.

    Args:
        function: Takes the number of the batch, or a `BatchInfo` or `SampleInfo`.
        batch: Whether it returns whole batches.
        batch_info: Whether it takes a `BatchInfo`.
    """

    stateful = False
    position = Position()

    def __init__(self, function: Callable[[Any], Any], *, batch: bool, batch_info: bool, outputs: Outputs) -> None:
        self._function, self._batch_info, self._outputs = function, batch_info, outputs
        self.divisible = not batch

    def draw(self, samples: SampleRange) -> Columns:
        """Return the data of a range of a batch, one item an output."""
        if self.divisible:
            rows = [self._sample(samples, i) for i in range(samples.start, samples.stop)]
            return self._outputs.transposed(rows)
        seed_sample(samples.epoch, samples.iteration)
        position = BatchInfo(samples.iteration, samples.epoch) if self._batch_info else samples.iteration
        try:
            return self._outputs.columns(self._function(position))
        except AttributeError as error:
            if error.obj is position:
                note(
                    error,
                    "the source is told the number of the batch; with batch=False it is told a SampleInfo for each "
                    "sample, with batch_info=True a BatchInfo",
                )
            raise

    def _sample(self, samples: SampleRange, i: int) -> Any:
        seed_sample(samples.epoch, samples.sample + i)
        return self._function(SampleInfo(samples.sample + i, i, samples.iteration, samples.epoch))

    def go_to(self, position: Position) -> None:
        """No-op: any range can be asked for at any time."""


class IterableSource:
    """An iterable that yields batches, or samples.

    Args:
        source: An iterable; or a factory: a generator function or class, called for every new iterator.
        factory: Whether it is one.
        cycle: At the end, ``"no"`` ends the epoch, and as a rule all that follow; ``"quiet"`` restarts;
            ``"raise"`` ends the epoch and restarts in the next one.
        batch: Whether an item is a whole batch.
    """

    stateful = True
    divisible = False

    def __init__(self, source: Any, *, factory: bool, cycle: str, batch: bool, outputs: Outputs) -> None:
        self._source, self._factory, self._cycle = source, factory, cycle
        self._batch, self._outputs = batch, outputs
        self._iterator: Iterator[Any] | None = None
        self._items = self._stops = self._starts = 0

    def draw(self, samples: SampleRange) -> Columns:
        """Return the data of the next batch, one item an output."""
        if self._batch:
            return self._outputs.columns(self._next())
        return self._outputs.transposed([self._next() for _ in range(samples.start, samples.stop)])

    def _next(self) -> Any:
        if self._iterator is None:
            self._start(self._fresh())
        try:
            item = self._item()
        except StopIteration:
            self._stops += 1
            if self._cycle == "no":
                raise
            self._start(self._fresh())
            if self._cycle == "raise":
                raise
            item = self._item()
        self._items += 1
        return item

    def _item(self) -> Any:
        assert self._iterator is not None
        seed_sample(self._starts, self._items)
        return next(self._iterator)

    def _fresh(self) -> Iterator[Any]:
        seed_sample(self._starts, -1)
        return iter(self._source() if self._factory else self._source)

    def _start(self, iterator: Iterator[Any]) -> None:
        self._iterator, self._items, self._stops = iterator, 0, 0
        self._starts += 1

    @property
    def position(self) -> Position:
        """Position of the next item."""
        return Position(self._items, self._stops, self._starts)

    def go_to(self, position: Position) -> None:
        """Restart, if that is possible, and skip the items before a position.

        Raises:
            RuntimeError: the iterable is past the position and cannot restart, or it does not repeat itself.
        """
        self._starts = max(position.starts - 1, 0)
        fresh = self._fresh()
        if fresh is not self._source or self._iterator is None:
            self._start(fresh)
        self._starts = position.starts
        while self.position != position:
            if self._items > position.items or self._stops > position.stops:
                raise RuntimeError(
                    f"the source returned {self._items} items and ended {self._stops} times; it "
                    f"cannot resume after {position.items} items and {position.stops} ends. A list or "
                    "a generator function can start again; an iterator needs a new pipeline"
                )
            seed_sample(self._starts, self._items)
            try:
                next(fresh)
                self._items += 1
            except StopIteration:
                self._stops += 1


class CallResults:
    """Iterator over the results of a function without parameters.

    If the function returns an iterator, over the items of that iterator.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._items: Iterator[Any] | None = None

    def __iter__(self) -> CallResults:
        return self

    def __next__(self) -> Any:
        if self._items is not None:
            return next(self._items)
        data = self._function()
        if not isinstance(data, Iterator):
            return data
        self._items = data
        return next(data)


class BatchLoader:
    """Loads ranges of batches; runs in this process or in a worker process."""

    def __init__(self, data: CallableSource | IterableSource, outputs: Outputs, *, copy: bool) -> None:
        self.data, self._layouts, self._copy = data, outputs.layouts, copy

    def __call__(self, request: SampleRange | Position) -> WorkResult:
        """Load a range of a batch, or go to a position in the data."""
        if isinstance(request, Position):
            self.data.go_to(request)
            return (), asdict(request)
        try:
            columns = self.data.draw(request)
        except StopIteration:
            return None, asdict(self.data.position)
        return self.batches(columns), asdict(self.data.position)

    def batches(self, columns: Columns) -> tuple[TensorList, ...]:
        """Make a batch of each output's data."""
        return tuple(
            to_batch(column, layout, copy=self._copy) for column, layout in zip(columns, self._layouts, strict=True)
        )
