"""Bundles: several samples of a chain that an operator does in one call.

The native path takes encoded samples of any sizes, and files by their paths, a call of C each for many. So a thread
holds the GIL once for a bundle, and Python's code and data stay in cache from one sample to the next. What it does
not do, the chain does as ever, sample by sample: it draws the same random numbers, and raises the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchdali.batching import BundledBody
from torchdali.graph import Node
from torchdali.loader import local_paths
from torchdali.plan import Chain, column, is_metadata

__all__ = ["Bundled", "BundleRun", "bundled"]

_MOST = 8  # samples of a bundle
_EACH = 2  # bundles for each thread, where a batch has as many


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

    def size(self, count: int, threads: int) -> int:
        """Choose how many samples of so many a thread takes in one call."""
        return max(1, min(_MOST, -(-count // (_EACH * threads))))


def bundled(
    chain: Chain, index: Mapping[Node, int], readers: Mapping[Node, Callable[[Any], Any]]
) -> Bundled | None:
    """Return how a chain does several samples in one call; None where it cannot."""
    *before, node = chain.nodes
    make, given = node.operator.bundled, set(node.per_sample)
    if (
        make is None
        or len(before) > 1
        or len(node.inputs) != 1
        or node.scope
        or not given <= {"mirror"}
    ):
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
        if (
            before[0] is not source
            or source.operator.kind != "reader"
            or source.per_sample
            or source.scope
        ):
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
        bundled: The chain.
        columns: Of the batch, as the chain's `bind` takes them.
        single: Runs the chain on one sample.
        size: Samples of the batch.
        bundle: Samples of a bundle.
        keep_going: Go on after a sample that fails.

    Attributes:
        count: Bundles of the batch.
        failures: Exceptions, by sample.
    """

    def __init__(
        self,
        bundled: Bundled,
        columns: Mapping[str, Any],
        single: Callable[[int], None],
        size: int,
        bundle: int,
        keep_going: bool,
    ) -> None:
        self._body, self._single, self._keep_going = bundled.body, single, keep_going
        self._size, self.bundle, self.count = size, bundle, -(-size // bundle)
        self._read = bundled.read
        self._paths = None if bundled.read is None else local_paths(bundled.read)
        self._data, self._slots = columns[bundled.data], columns[bundled.slot]
        self._rngs = None if bundled.rng is None else columns[bundled.rng]
        self._mirrors = None if bundled.mirror is None else columns[bundled.mirror]
        self._done = columns[bundled.done]
        self.failures: dict[int, BaseException] = {}

    def __call__(self, number: int) -> None:
        """Do a bundle."""
        first = number * self.bundle
        part = slice(first, min(first + self.bundle, self._size))
        try:
            results = self._body(
                self._sources(self._data[part]),
                self._slots[part],
                None if self._rngs is None else self._rngs[part],
                None if self._mirrors is None else self._mirrors[part],
            )
        except Exception:
            results = [None] * (part.stop - first)  # sample by sample, they tell why
        for i, result in enumerate(results, first):
            if result is None:
                self._do_single(i)
            else:
                self._done[i] = result

    def _sources(self, data: Sequence[Any]) -> Sequence[Any]:
        if self._read is None or self._paths is None:
            return data
        if not all(type(record) is int for record in data):
            return [None] * len(data)  # reading has begun elsewhere
        paths = self._paths(data)
        return paths if paths is not None else [self._read_one(record) for record in data]

    def _read_one(self, record: int) -> Any:
        assert self._read is not None
        try:
            return self._read(record)[0]
        except Exception:
            return None

    def _do_single(self, i: int) -> None:
        if self.failures and not self._keep_going:
            return
        if self._rngs is not None:
            self._rngs[i].restart()
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
