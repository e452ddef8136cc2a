"""Sources that get data from the user's code, which is a callable or an iterable.

`CallableSource` passes the position of the requested data to a callable. `IterableSource` reads the next items of an
iterable. In both classes, the method `fetch` returns the data for a `SampleRange`. A `BatchLoader` converts this data
to batches, in the main process or in a worker process.
"""

from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from torchdali.errors import note
from torchdali.ops._external_source.convert import DATASET_HINT, to_batch
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
    """A range of samples in one batch.

    Attributes:
        epoch: Index of the epoch.
        iteration: Index of the batch in the epoch.
        sample: Number of samples in the epoch before this batch.
        start: Index of the range's first sample in the batch.
        stop: Index after the range's last sample in the batch.
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
    """The number and the layouts of a source's outputs.

    If `count` is None, the source returns its only output directly. Otherwise, the source returns a sequence of `count`
    outputs.
    """

    count: int | None
    layouts: tuple[str, ...]

    def columns(self, data: Any) -> Columns:
        """Split a source's result, for one batch or one sample, into a list of outputs."""
        if self.count is None:
            return [data]
        if isinstance(data, Sequence) and len(data) < self.count:
            raise IndexError(f"the source must return num_outputs={self.count} values, got {len(data)}")
        try:
            return [data[k] for k in range(self.count)]
        except (TypeError, IndexError, KeyError) as error:
            hint = f"; {DATASET_HINT}" if isinstance(data, Mapping) else ""
            raise type(error)(
                f"the source must return a tuple of num_outputs={self.count} values, got {type(data).__name__}. A "
                f"source of batches returns one batch per output{hint}"
            ) from None

    def transpose(self, rows: Sequence[Any]) -> Columns:
        """Convert the source's results for several samples to one list of samples per output."""
        if self.count is None:
            return [list(rows)]
        if not rows:
            return [[] for _ in range(self.count)]
        return [list(column) for column in zip(*map(self.columns, rows), strict=True)]


class CallableSource:
    """Source that calls a function with the position of the requested batch or sample.

    Args:
        function: The function. Its argument is the index of the batch, a `BatchInfo` or a `SampleInfo`.
        batch: True if the function returns batches; False if the function returns samples and gets a `SampleInfo`.
        batch_info: True if a function that returns batches gets a `BatchInfo` instead of the index.
        outputs: Number and layouts of the outputs.
    """

    stateful = False
    position = Position()

    def __init__(self, function: Callable[[Any], Any], *, batch: bool, batch_info: bool, outputs: Outputs) -> None:
        self._function, self._batch_info, self._outputs = function, batch_info, outputs
        self.divisible = not batch

    def fetch(self, samples: SampleRange, batch: object = None) -> Columns:
        """Call the function for a range of samples; return the data, one item per output."""
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

    def is_own_error(self, samples: SampleRange, batch: object) -> bool:
        """Return True, because the requested batch causes every error that `fetch` raises; see `IterableSource`."""
        return True

    def release(self, batch: object) -> None:
        """Do nothing, because this source stores no data."""

    def seek(self, position: Position) -> None:
        """Do nothing, because any range can be requested at any time."""


@dataclass
class _Pass:
    """One pass over an iterable, from a call of ``iter()`` until the iterator ends.

    Attributes:
        indices: Iterator over the items' indices. Each request for an item consumes an index, even if the request
            raises an error.
        indexed_items: Iterator over pairs of an index and an item.
        starts: Number of passes that have been started, including this pass.
        ended: The batch in which the previous pass and the epoch ended; None if the epoch didn't end with the previous
            pass.
        from_calls: True if each item is the result of a call of the user's function.
        items: Number of items that the pass has yielded.
        stops: Number of times that the iterator was at its end when an item was requested.
    """

    indices: Iterator[int]
    indexed_items: Iterator[tuple[int, Any]]
    starts: int
    ended: object = None
    from_calls: bool = False
    items: int = 0
    stops: int = 0


def _count_requests(current: _Pass | None) -> int:
    """Return the number of items that were requested from the iterator of a pass."""
    return 0 if current is None else sys.maxsize - operator.length_hint(current.indices)


class IterableSource:
    """Source that reads batches or samples from an iterable.

    A single call of a C function moves an item from the iterator into the batch's list. Therefore, a keyboard interrupt
    at any point loses no item: if the batch is requested again, the batch contains the same data.

    Args:
        source: An iterable; or a factory, which is a generator function or a class that is called for each new
            iterator.
        factory: True if the source is a factory.
        cycle: Behavior at the end of the iterable. ``"no"`` ends the epoch and doesn't restart the iterable.
            ``"quiet"`` restarts the iterable immediately, but ends the epoch if the restarted iterable is empty.
            ``"raise"`` ends the epoch and restarts the iterable in the next epoch.
        batch: True if an item is a batch; False if an item is a sample.
        outputs: Number and layouts of the outputs.
    """

    stateful = True
    divisible = False

    def __init__(self, source: Any, *, factory: bool, cycle: str, batch: bool, outputs: Outputs) -> None:
        self._source, self._factory, self._cycle = source, factory, cycle
        self._batch, self._outputs = batch, outputs
        self._pass: _Pass | None = None
        self._fetched: tuple[object, list[tuple[int, Any]]] = None, []
        # The pass that was current when the batch in `_fetched` was first requested, and the number of items that were
        # requested from the pass until then.
        self._batch_start: tuple[_Pass | None, int] = None, 0

    def fetch(self, samples: SampleRange, batch: object = None) -> Columns:
        """Return the data of the next batch, one item per output.

        Args:
            samples: Range of the batch's samples.
            batch: Object that identifies the batch. Another call with the same object returns the same data. If
                None, every call returns new data.
        """
        if batch is None or self._fetched[0] is not batch:
            self._batch_start, self._fetched = (self._pass, _count_requests(self._pass)), (batch, [])
        fetched = self._fetched[1]
        while len(fetched) < self._count_items(samples):
            self._fetch_item(fetched, batch)
        if self._pass is not None and fetched:
            self._pass.items = fetched[-1][0] + 1
        if self._batch:
            return self._outputs.columns(fetched[0][1])
        return self._outputs.transpose([item for _, item in fetched])

    def is_own_error(self, samples: SampleRange, batch: object) -> bool:
        """Return True if the error that `fetch` has raised is caused by the requested batch or the iterable.

        Return False if the error came from outside, for example from an interrupt. `fetch` can then be called again.
        """
        (key, fetched), (first_pass, requested) = self._fetched, self._batch_start
        if key is not batch:
            return False
        if len(fetched) == self._count_items(samples) or self._pass is not (first_pass or self._pass):
            return True
        return _count_requests(self._pass) - requested > len(fetched)

    def _count_items(self, samples: SampleRange) -> int:
        return 1 if self._batch else samples.stop - samples.start

    def _fetch_item(self, fetched: list[tuple[int, Any]], batch: object) -> None:
        current = self._pass or self._start(self._create_iterator(0), 1)
        if batch is not None and current.ended is batch:
            raise StopIteration
        count = len(fetched)
        seed_sample(current.starts, fetched[-1][0] + 1 if fetched else current.items)
        fetched.extend(itertools.islice(current.indexed_items, 1))
        if len(fetched) > count:
            item = fetched[-1][1]
            if current.from_calls and isinstance(item, Iterator):  # the next items come from this iterator
                fetched.pop()
                self._pass = replace(current, indexed_items=zip(current.indices, item, strict=False), from_calls=False)
            return
        current.stops += 1
        is_empty = current.starts > 1 and _count_requests(current) == 1
        if self._cycle == "no" or (self._cycle == "quiet" and is_empty):
            raise StopIteration
        self._start(
            self._create_iterator(current.starts), current.starts + 1, batch if self._cycle == "raise" else None
        )
        if self._cycle == "raise":
            raise StopIteration

    def release(self, batch: object) -> None:
        """Free the data of a batch that won't be requested again. Any thread may call this method."""
        key, fetched = self._fetched
        if key is batch:
            fetched.clear()

    def _create_iterator(self, starts: int) -> Any:
        if isinstance(self._source, CallResults):
            return self._source
        seed_sample(starts, -1)
        return iter(self._source() if self._factory else self._source)

    def _start(self, iterator: Any, starts: int, ended: object = None) -> _Pass:
        from_calls = isinstance(iterator, CallResults)
        items = itertools.starmap(iterator.function, itertools.repeat(())) if from_calls else iterator
        indices = iter(range(sys.maxsize))
        self._pass = started = _Pass(indices, zip(indices, items, strict=False), starts, ended, from_calls)
        return started

    @property
    def position(self) -> Position:
        """Position of the next item."""
        current = self._pass
        return Position() if current is None else Position(current.items, current.stops, current.starts)

    def seek(self, position: Position) -> None:
        """Move to a position: restart the iterable if possible, and skip the items before the position.

        Raises:
            RuntimeError: the iterable is past the position and cannot restart, or ended before the position.
        """
        self._fetched = None, []
        iterator, current = self._create_iterator(max(position.starts - 1, 0)), self._pass
        if current is None or iterator is not self._source:
            current = self._start(iterator, position.starts)
        current.starts = position.starts
        while self.position != position:
            if current.items > position.items or current.stops > position.stops:
                raise RuntimeError(
                    f"the source returned {current.items} items and ended {current.stops} times; it "
                    f"cannot resume after {position.items} items and {position.stops} ends. A list or "
                    "a generator function can start again; an iterator needs a new pipeline"
                )
            seed_sample(current.starts, current.items)
            for _ in current.indexed_items:
                current.items += 1
                break
            else:
                current.stops += 1


@dataclass(frozen=True)
class CallResults:
    """Iterable over the results of a function without parameters.

    If a result is an iterator, the following items come from this iterator.
    """

    function: Callable[[], Any]


class BatchLoader:
    """Loads ranges of batches from a source, in the main process or in a worker process."""

    def __init__(self, data: CallableSource | IterableSource, outputs: Outputs, *, copy: bool) -> None:
        self.data, self._layouts, self._copy = data, outputs.layouts, copy

    def __call__(self, request: SampleRange | Position) -> WorkResult:
        """Load a range of a batch, or move the source to a position.

        Returns:
            The batches, one per output, and the source's new position as a dictionary. At the end of an epoch, None
            replaces the batches.
        """
        if isinstance(request, Position):
            self.data.seek(request)
            return (), asdict(request)
        try:
            columns = self.data.fetch(request)
        except StopIteration:
            return None, asdict(self.data.position)
        return self.batches(columns), asdict(self.data.position)

    def batches(self, columns: Columns) -> tuple[TensorList, ...]:
        """Convert each output's data to a batch."""
        return tuple(
            to_batch(column, layout, copy=self._copy) for column, layout in zip(columns, self._layouts, strict=True)
        )
