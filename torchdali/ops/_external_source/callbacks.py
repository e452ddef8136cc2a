"""Callbacks: request a range of samples of one batch from the user's code.

`CallableSource` passes the position to a callable; `IterableSource` reads the next item of an iterable. Both turn a
`SampleRange` into data; a `BatchLoader` turns the data into batches, in this process or in a worker process.
"""

from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from torchdali.errors import note
from torchdali.ops._external_source.convert import OF_DATA_SET, to_batch
from torchdali.reading.sources import WorkResult
from torchdali.reading.user_random import seed_sample
from torchdali.tensors import TensorList
from torchdali.types import BatchInfo, SampleInfo

__all__ = [
    "BatchLoader",
    "CallResults",
    "CallableSource",
    "IterableSource",
    "Outputs",
    "Position",
    "SampleRange",
]

Columns = list[Any]


@dataclass(frozen=True)
class SampleRange:
    """The samples from ``start`` to ``stop`` of one batch.

    Attributes:
        epoch: Index of the epoch.
        iteration: Index of the batch in the epoch.
        sample: Number of samples of the epoch before this batch.
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
    """A position in an iterable.

    Attributes:
        items: Number of items that the iterable has yielded since its last start.
        stops: Number of times that the iterable has ended since its last start.
        starts: Number of starts, including the first.
    """

    items: int = 0
    stops: int = 0
    starts: int = 0


@dataclass(frozen=True)
class Outputs:
    """The count and the layouts of a source's outputs; a count of None means a single output, not in a sequence."""

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

    def transpose(self, rows: Sequence[Any]) -> Columns:
        """Return one list of samples per output."""
        if self.count is None:
            return [list(rows)]
        if not rows:
            return [[] for _ in range(self.count)]
        return [list(column) for column in zip(*map(self.columns, rows), strict=True)]


class CallableSource:
    """A callable whose argument is the position of the requested batch or sample.

    Args:
        function: The callable. Its argument is the index of the batch, a `BatchInfo` or a `SampleInfo`.
        batch: True if the function returns whole batches.
        batch_info: True if the argument is a `BatchInfo`.
    """

    stateful = False
    position = Position()

    def __init__(self, function: Callable[[Any], Any], *, batch: bool, batch_info: bool, outputs: Outputs) -> None:
        self._function, self._batch_info, self._outputs = function, batch_info, outputs
        self.divisible = not batch

    def draw(self, samples: SampleRange, batch: object = None) -> Columns:
        """Return the data of a range of a batch, one item per output; the same data for the same range."""
        if self.divisible:
            rows = [self._sample(samples, i) for i in range(samples.start, samples.stop)]
            return self._outputs.transpose(rows)
        seed_sample(samples.epoch, samples.iteration)
        position = BatchInfo(samples.iteration, samples.epoch) if self._batch_info else samples.iteration
        try:
            return self._outputs.columns(self._function(position))
        except AttributeError as error:
            if error.obj is position:
                note(
                    error,
                    "torchdali passes the index of the batch to the source; with batch=False it passes a SampleInfo "
                    "per sample, with batch_info=True a BatchInfo",
                )
            raise

    def _sample(self, samples: SampleRange, i: int) -> Any:
        seed_sample(samples.epoch, samples.sample + i)
        return self._function(SampleInfo(samples.sample + i, i, samples.iteration, samples.epoch))

    def is_past(self, samples: SampleRange, batch: object) -> bool:
        """Return True: an exception in `draw` is always the batch's, because the position determines the data."""
        return True

    def forget(self, batch: object) -> None:
        """No-op: the source stores no data."""

    def go_to(self, position: Position) -> None:
        """No-op: any range can be requested at any time."""


@dataclass
class _Pass:
    """One pass over an iterable.

    Attributes:
        numbers: Indices of the items. Each request to the iterator consumes an index, even if the iterator raises.
        numbered: Pairs of an index and an item.
        starts: Number of starts of the iterable, including the start of this pass.
        ended: The batch at which the previous pass and its epoch ended; None if no epoch ended.
        calls: True if the items are results of calls of the source.
        items: Number of items that the pass has yielded.
        stops: Number of times that the pass has ended.
    """

    numbers: Iterator[int]
    numbered: Iterator[tuple[int, Any]]
    starts: int
    ended: object = None
    calls: bool = False
    items: int = 0
    stops: int = 0


def _count_requests(given: _Pass | None) -> int:
    """Return how many items were requested from the iterator of a pass."""
    return 0 if given is None else sys.maxsize - operator.length_hint(given.numbers)


class IterableSource:
    """An iterable that yields batches, or samples.

    One call of a C function moves an item from the iterator into the list of its batch. So an asynchronous exception,
    such as an interrupt, loses no item: a second request for the same batch returns the same data.

    Args:
        source: An iterable; or a factory: a generator function or class, called for every new iterator.
        factory: True if the source is a factory.
        cycle: At the end of the iterable, ``"no"`` ends the epoch and doesn't restart the iterable; ``"quiet"``
            restarts it immediately; ``"raise"`` ends the epoch and restarts the iterable in the next epoch.
        batch: True if an item is a whole batch.
    """

    stateful = True
    divisible = False

    def __init__(self, source: Any, *, factory: bool, cycle: str, batch: bool, outputs: Outputs) -> None:
        self._source, self._factory, self._cycle = source, factory, cycle
        self._batch, self._outputs = batch, outputs
        self._pass: _Pass | None = None
        self._drawn: tuple[object, list[tuple[int, Any]]] = None, []
        # The pass at the start of that batch, and the number of requests to the pass until then.
        self._before: tuple[_Pass | None, int] = None, 0

    def draw(self, samples: SampleRange, batch: object = None) -> Columns:
        """Return the data of the next batch, one item per output.

        Args:
            samples: Range of the batch's samples.
            batch: Identifies the batch: a second call with it returns the same data. None always draws new data.
        """
        if batch is None or self._drawn[0] is not batch:
            self._before, self._drawn = (self._pass, _count_requests(self._pass)), (batch, [])
        drawn = self._drawn[1]
        while len(drawn) < self._count_items(samples):
            self._take_item(drawn, batch)
        if self._pass is not None and drawn:
            self._pass.items = drawn[-1][0] + 1
        if self._batch:
            return self._outputs.columns(drawn[0][1])
        return self._outputs.transpose([item for _, item in drawn])

    def is_past(self, samples: SampleRange, batch: object) -> bool:
        """Return True if an exception in `draw` is the batch's result; False if `draw` can draw the same data again."""
        (key, drawn), (before, asked) = self._drawn, self._before
        if key is not batch:
            return False
        if len(drawn) == self._count_items(samples) or self._pass is not (before or self._pass):
            return True
        return _count_requests(self._pass) - asked > len(drawn)

    def _count_items(self, samples: SampleRange) -> int:
        return 1 if self._batch else samples.stop - samples.start

    def _take_item(self, drawn: list[tuple[int, Any]], batch: object) -> None:
        current = self._pass or self._start(self._fresh(0), 1)
        if batch is not None and current.ended is batch:
            raise StopIteration
        count = len(drawn)
        seed_sample(current.starts, drawn[-1][0] + 1 if drawn else current.items)
        drawn.extend(itertools.islice(current.numbered, 1))
        if len(drawn) > count:
            item = drawn[-1][1]
            if current.calls and isinstance(item, Iterator):  # the next items come from this iterator
                drawn.pop()
                self._pass = replace(current, numbered=zip(current.numbers, item, strict=False), calls=False)
            return
        current.stops += 1
        if self._cycle == "no":
            raise StopIteration
        self._start(self._fresh(current.starts), current.starts + 1, batch if self._cycle == "raise" else None)
        if self._cycle == "raise":
            raise StopIteration

    def forget(self, batch: object) -> None:
        """Free the data of a batch that won't be requested again. Any thread may call this method."""
        key, drawn = self._drawn
        if key is batch:
            drawn.clear()

    def _fresh(self, starts: int) -> Any:
        if isinstance(self._source, CallResults):
            return self._source
        seed_sample(starts, -1)
        return iter(self._source() if self._factory else self._source)

    def _start(self, fresh: Any, starts: int, ended: object = None) -> _Pass:
        calls = isinstance(fresh, CallResults)
        items = itertools.starmap(fresh.function, itertools.repeat(())) if calls else fresh
        numbers = iter(range(sys.maxsize))
        self._pass = started = _Pass(numbers, zip(numbers, items, strict=False), starts, ended, calls)
        return started

    @property
    def position(self) -> Position:
        """Position of the next item."""
        current = self._pass
        return Position() if current is None else Position(current.items, current.stops, current.starts)

    def go_to(self, position: Position) -> None:
        """Restart the iterable if possible, and skip the items before a position.

        Raises:
            RuntimeError: the iterable is past the position and cannot restart, or it ended before the position.
        """
        self._drawn = None, []
        fresh, current = self._fresh(max(position.starts - 1, 0)), self._pass
        if current is None or fresh is not self._source:
            current = self._start(fresh, position.starts)
        current.starts = position.starts
        while self.position != position:
            if current.items > position.items or current.stops > position.stops:
                raise RuntimeError(
                    f"the source returned {current.items} items and ended {current.stops} times; it "
                    f"cannot resume after {position.items} items and {position.stops} ends. A list or "
                    "a generator function can start again; an iterator needs a new pipeline"
                )
            seed_sample(current.starts, current.items)
            for _ in current.numbered:
                current.items += 1
                break
            else:
                current.stops += 1


@dataclass(frozen=True)
class CallResults:
    """The results of a function without parameters; if it returns an iterator, the items of that iterator."""

    function: Callable[[], Any]


class BatchLoader:
    """Loader of ranges of batches, in this process or in a worker process."""

    def __init__(self, data: CallableSource | IterableSource, outputs: Outputs, *, copy: bool) -> None:
        self.data, self._layouts, self._copy = data, outputs.layouts, copy

    def __call__(self, request: SampleRange | Position) -> WorkResult:
        """Load a range of a batch, or move to a position in the data."""
        if isinstance(request, Position):
            self.data.go_to(request)
            return (), asdict(request)
        try:
            columns = self.data.draw(request)
        except StopIteration:
            return None, asdict(self.data.position)
        return self.batches(columns), asdict(self.data.position)

    def batches(self, columns: Columns) -> tuple[TensorList, ...]:
        """Convert each output's data to a batch."""
        return tuple(
            to_batch(column, layout, copy=self._copy) for column, layout in zip(columns, self._layouts, strict=True)
        )
