"""Bundles: several samples of a chain in one call, whatever their shapes.

The fast path takes encoded samples of any sizes, and files by their paths, a call of C each for many. So a thread
holds the GIL once for a bundle, and Python's code and data stay in cache from one sample to the next. What it does
not do, the chain does as ever, sample by sample: it draws the same random numbers, and raises the errors.

Another chain of small samples, of which an operator has a body for several of any shapes (short sounds), runs its own
calls on bundles: an item of a column is a list of samples there, and the other operators take them one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from torchdali.batching import MOST_BYTES, BundledBody, Lifted, Pieces
from torchdali.execute.timings import ChainTimings
from torchdali.graph import Node
from torchdali.kernels.rearrange import copy_to, dense
from torchdali.loader import local_paths, read_several, row
from torchdali.plan import Chain, column, is_metadata

__all__ = [
    "BundleRun", "Bundled", "ReadTogether", "Together", "bundled", "can_lift", "divide_pieces", "put",
    "put_together", "whole_pieces",
]  # fmt: skip

_MOST = 8  # samples of a bundle of images
_MOST_SMALL = 64  # samples of a bundle of small ones
_EACH = 2  # bundles for each thread, where a batch has as many

_Bundle = Callable[[range], Collection[int]]
"""Does a bundle, and returns the samples that are left to the chain."""


class Loop(Protocol):
    """The calls of a chain, see `compiled_chain.Loop`."""

    def bind(
        self, columns: Mapping[str, Any], blamed: dict[int, Node], mark: Callable[[int, int], None] | None
    ) -> Callable[[int], None]: ...


class Several(Protocol):
    """A way to do several samples of a chain in one call."""

    @property
    def rngs(self) -> tuple[str, ...]:
        """Columns of random numbers."""
        ...

    def size(self, count: int, threads: int) -> int:
        """Choose how many samples of so many a thread takes in one call."""
        ...

    def bind(self, columns: Mapping[str, Any], bundle: int, timings: ChainTimings | None = None) -> _Bundle:
        """Return what does a bundle of a batch, of so many samples."""
        ...


def _share(most: int, count: int, threads: int) -> int:
    return max(1, min(most, -(-count // (_EACH * threads))))


@dataclass
class Together:
    """A chain whose calls take bundles.

    Attributes:
        loop: The chain, for columns with an item a bundle.
        lifted: The operators that gain by it.
        rngs: Columns of random numbers.
    """

    loop: Loop
    lifted: Sequence[Lifted]
    rngs: tuple[str, ...]

    def size(self, count: int, threads: int) -> int:
        """Choose how many samples of so many a thread takes in one call: as many as fit into cache, by those before."""
        most = min(_MOST_SMALL, MOST_BYTES // max([1, *(each.bytes for each in self.lifted)]))
        return max(1, min(most, count)) if threads == 1 else _share(most, count, threads)

    def bind(self, columns: Mapping[str, Any], bundle: int, timings: ChainTimings | None = None) -> _Bundle:
        """Return what does a bundle of a batch, of so many samples."""
        items = {name: _Bundles(column, bundle) for name, column in columns.items()}
        run = self.loop.bind(items, {}, timings)

        def do(samples: range) -> Collection[int]:
            try:
                run(samples[0] // bundle)
            except Exception:
                return samples  # sample by sample, they tell why
            return ()

        return do


class ReadTogether:
    """A reader on lists of records: several in one call where it can, otherwise one by one.

    Args:
        read: The reader on one record.
        lent: What is read need be valid only until this thread reads again.
    """

    def __init__(self, read: Callable[..., Any], lent: bool = False) -> None:
        self._several, self._single = read_several(read), Lifted(lambda record: row(read(record)), several=True)
        self._lent = lent

    def __call__(self, records: Sequence[Any]) -> Any:
        """Read several records."""
        found = self._several(records, self._lent)
        return self._single(records) if found is None else (found,)


class _Bundles:
    """A column whose items are bundles of the items of another."""

    def __init__(self, column: Any, bundle: int) -> None:
        self._column, self._bundle = column, bundle

    def __getitem__(self, i: int) -> Any:
        return self._column[i * self._bundle : (i + 1) * self._bundle]

    def __setitem__(self, i: int, values: Sequence[Any]) -> None:
        if isinstance(values, Pieces) and type(self._column) is list:
            self._column[i * self._bundle] = values
            return
        for k, value in enumerate(values, i * self._bundle):
            self._column[k] = value


def put_together(slots: Sequence[Any], values: Sequence[Any]) -> Sequence[Any]:
    """Do for lists of samples what the ``put`` of a chain does; what lies in one tensor stays there."""
    if isinstance(values, Pieces):
        return values.straight()
    return list(map(put, slots, values))


def whole_pieces(done: list[Any], bundle: int) -> list[Pieces] | None:
    """Return the results of bundles of so many samples, if each is in one tensor; otherwise divide them."""
    found = done[::bundle]
    if all(isinstance(each, Pieces) for each in found):
        return found
    divide_pieces(done, bundle)
    return None


def divide_pieces(done: list[Any], bundle: int, slots: Sequence[torch.Tensor] | None = None) -> None:
    """Put the samples of a bundle where there is the tensor with all of them.

    Args:
        slots: Their places, to which they are copied.
    """
    for i in range(0, len(done), bundle):
        if isinstance(done[i], Pieces):
            end = i + len(done[i])
            done[i:end] = done[i] if slots is None else map(put, slots[i:end], done[i])


def put(slot: torch.Tensor | None, value: torch.Tensor) -> torch.Tensor:
    """Copy a result to its place in the batch; if it has none or does not fit, return it for itself."""
    if slot is not None and slot.shape == value.shape and slot.dtype == value.dtype:
        return copy_to(slot, value)
    return dense(value)


def can_lift(chain: Chain) -> bool:
    """Return True if the operators of a chain can take lists of samples, and one of them gains by it.

    What fails in a bundle runs again, so that none may have an effect or a memory.
    """
    gains = False
    for node in chain.nodes:
        options, declared = node.operator.options, node.operator
        gains = gains or (declared.together is not None and not node.per_sample)
        own = declared.body.__module__.partition(".")[0] != "torchdali"
        if node.scope or node.preserve or options.preserve or options.make is not None or own:
            return False
    return gains


@dataclass(frozen=True)
class Bundled:
    """A chain that does several samples in one call: an encoded input, or a reader, and one operator.

    Attributes:
        body: Of the operator.
        read: What reads a record; None where the input comes from elsewhere.
        data: Column of records, or of encoded samples.
        rng: Column of random numbers, if it takes some.
        mirror: Column of the argument ``mirror``, if it is given per sample.
        slot: Column of places for the results.
        done: Column of the results.
    """

    body: BundledBody
    read: Callable[[Any], Any] | None
    data: str
    rng: str | None
    mirror: str | None
    slot: str
    done: str

    @property
    def rngs(self) -> tuple[str, ...]:
        """Columns of random numbers."""
        return () if self.rng is None else (self.rng,)

    def size(self, count: int, threads: int) -> int:
        """Choose how many samples of so many a thread takes in one call."""
        return _share(_MOST, count, threads)

    def bind(self, columns: Mapping[str, Any], bundle: int, timings: ChainTimings | None = None) -> _Bundle:
        """Return what does a bundle of a batch, of so many samples."""
        data, slots = columns[self.data], columns[self.slot]
        rngs = None if self.rng is None else columns[self.rng]
        mirrors = None if self.mirror is None else columns[self.mirror]
        done = columns[self.done]
        paths = None if self.read is None else local_paths(self.read)

        def do(samples: range) -> Collection[int]:
            part = slice(samples.start, samples.stop)
            try:
                results = self.body(
                    self._sources(data[part], paths),
                    slots[part],
                    None if rngs is None else rngs[part],
                    None if mirrors is None else mirrors[part],
                )
            except Exception:
                return samples  # sample by sample, they tell why
            for i, result in zip(samples, results, strict=True):
                if result is not None:
                    done[i] = result
            return [i for i, result in zip(samples, results, strict=True) if result is None]

        return do

    def _sources(self, data: Sequence[Any], paths: Any) -> Sequence[Any]:
        if self.read is None or paths is None:
            return data
        if not all(type(record) is int for record in data):
            return [None] * len(data)  # reading has begun elsewhere
        found = paths(data)
        return found if found is not None else [self._read_one(record) for record in data]

    def _read_one(self, record: int) -> Any:
        assert self.read is not None
        try:
            return row(self.read(record))[0]
        except Exception:
            return None


def bundled(chain: Chain, index: Mapping[Node, int], readers: Mapping[Node, Callable[[Any], Any]]) -> Bundled | None:
    """Return how a chain does several samples in one call; None where it cannot."""
    *before, node = chain.nodes
    make, given = node.operator.bundled, set(node.per_sample)
    if make is None or len(before) > 1 or len(node.inputs) != 1 or node.scope or not given <= {"mirror"}:
        return None
    edge = node.inputs[0]
    source = None if edge is None else edge.source
    if (
        edge is None
        or source is None
        or list(map(id, chain.delivers)) != list(map(id, node.outputs))
        or is_metadata(edge)
    ):
        return None
    read = None
    if before:
        if before[0] is not source or source.operator.kind != "reader" or source.per_sample or source.scope:
            return None
        read, data = readers[source], column("key", index[source])
    else:
        data = column("input", index[source], edge.index)
    body = make({k: v for k, v in node.constants.items() if k != "seed"})
    if body is None:
        return None
    values = {value.edge: value for value in chain.values}
    mirror = None
    if given:
        value = values.get(node.per_sample["mirror"])
        if value is None or value.edge.source is None or value.kind != "number":
            return None
        mirror = column("number", index[value.edge.source], value.edge.index)
    k = index[node]
    rng = column("rng", k) if node.operator.schema.random else None
    return Bundled(body, read, data, rng, mirror, column("slot", k), column("done", k))


class BundleRun:
    """Runs a chain on one bundle a call.

    Args:
        several: How the chain does several samples.
        columns: Of the batch, as the chain's `bind` takes them.
        single: Runs the chain on one sample.
        size: Samples of the batch.
        bundle: Samples of a bundle.
        keep_going: Go on after a sample that fails.
        timings: Of the bundles; the fast path has none.

    Attributes:
        count: Bundles of the batch.
        failures: Exceptions, by sample.
    """

    def __init__(
        self,
        several: Several,
        columns: Mapping[str, Any],
        single: Callable[[int], None],
        size: int,
        bundle: int,
        keep_going: bool,
        timings: ChainTimings | None = None,
    ) -> None:
        self._do, self._single = several.bind(columns, bundle, timings), single
        self._keep_going, self._size = keep_going, size
        self.bundle, self.count = bundle, -(-size // bundle)
        self._rngs = [columns[name] for name in several.rngs]
        self.failures: dict[int, BaseException] = {}

    def __call__(self, number: int) -> None:
        """Do a bundle."""
        first = number * self.bundle
        for i in self._do(range(first, min(first + self.bundle, self._size))):
            self._do_single(i)

    def _do_single(self, i: int) -> None:
        if self.failures and not self._keep_going:
            return
        for rngs in self._rngs:
            rngs[i].restart()
        try:
            self._single(i)
        except BaseException as error:
            # Other threads write here too, under keys of their own.
            self.failures[i] = error

    def merged(self, failures: Mapping[int, BaseException]) -> dict[int, BaseException]:
        """Return all failures by sample.

        Args:
            failures: Of bundles as a whole, by their numbers.
        """
        found = {number * self.bundle: error for number, error in failures.items()}
        return {**found, **self.failures}
