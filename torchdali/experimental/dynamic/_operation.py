"""Calls that may not be computed yet, and their results."""

from __future__ import annotations

import itertools
import weakref
from typing import Protocol

from torchdali.experimental.dynamic._device import Device
from torchdali.experimental.dynamic._rng import RNG
from torchdali.graph.nodes import DataNode, Node
from torchdali.reading.cursor import Keys
from torchdali.tensors import TensorList

__all__ = ["Operation", "OperationResult", "operation_of"]

_serial = itertools.count()
# Both references are weak, so that an operation lives only as long as one of its results, or an operation that needs a
# result.
_of_node: weakref.WeakKeyDictionary[Node, weakref.ref[Operation]] = weakref.WeakKeyDictionary()


def operation_of(node: Node) -> Operation | None:
    """Return the operation of a node, or None for a node without an operation, such as a constant."""
    reference = _of_node.get(node)
    return None if reference is None else reference()


class Evaluator(Protocol):
    """The interface of contexts that compute operations."""

    def evaluate(self, operation: Operation, index: int) -> tuple[TensorList | None, ...]:
        """Compute at least the result at an index; set and return the operation's results."""
        ...


class StartedComputation(Protocol):
    """The interface of computations that were started."""

    def result(self) -> None:
        """Wait until the results are set, or raise the error."""


class Operation:
    """One call of an operator: a node of a graph, and the results after it was computed.

    Args:
        node: The node of the call. Its inputs are outputs of other operations' nodes.
        size: Number of samples.
        context: Context that computes the operation; None if the results are known.
        device: Device of the results.
        key: Key of the random numbers, for a random operator.
        records: Records that a reader delivers.
        rng: Generator from which the key was drawn.
        results: One batch per output, if they are known.

    Attributes:
        accessed: Outputs whose values were used.
        captured: True if the operation is a call in a captured loop, or the loop's data. In this case, a `LazyValue`
            keeps the reference to the operation's result.
        future: The computation that was started, or None.
        needs: Operations whose results this operation needs; empty after it was computed.
        serial: Sequence number of the call.
    """

    captured: bool
    context: Evaluator | None
    device: Device
    key: int | None
    node: Node
    records: Keys | None
    rng: RNG | None
    serial: int
    size: int

    __slots__ = (
        "__weakref__", "accessed", "captured", "context", "device", "future", "handles", "key", "needs", "node",
        "records", "results", "rng", "serial", "size",
    )  # fmt: skip

    def __init__(
        self,
        node: Node,
        size: int,
        context: Evaluator | None,
        device: Device,
        key: int | None = None,
        records: Keys | None = None,
        rng: RNG | None = None,
        results: tuple[TensorList | None, ...] | None = None,
    ) -> None:
        self.node, self.size, self.context, self.device = node, size, context, device
        self.key, self.records, self.rng, self.results = key, records, rng, results
        self.serial = next(_serial)
        self.accessed: set[int] = set()
        self.captured = False
        self.future: StartedComputation | None = None
        self.needs = () if results is not None else _needed_operations(node)
        # Results that are still referenced, by their `id`. An evaluation returns only these results.
        self.handles: weakref.WeakValueDictionary[int, OperationResult] = weakref.WeakValueDictionary()
        self.claim(node)

    def claim(self, node: Node) -> None:
        """Register a node as this operation's node."""
        _of_node[node] = weakref.ref(self)

    def referenced_outputs(self) -> set[int]:
        """Return the indices of the outputs that are still referenced."""
        # `valuerefs` copies the references atomically, because another thread may drop a result meanwhile.
        return {result.index for each in self.handles.valuerefs() if (result := each()) is not None}

    def finish(self, results: tuple[TensorList | None, ...]) -> None:
        """Set the results; an output that wasn't referenced is None."""
        self.results = results
        if None not in results:
            self.needs = ()


def _needed_operations(node: Node) -> tuple[Operation, ...]:
    """Return the operations whose results a node needs."""
    operations: dict[Operation, None] = {}
    nodes = list(node.parents())
    while nodes:
        parent = nodes.pop()
        operation = operation_of(parent)
        if operation is not None:
            operations[operation] = None
        else:
            nodes.extend(parent.parents())
    return tuple(operations)


class OperationResult:
    """One output of an operation."""

    index: int
    operation: Operation

    __slots__ = ("__weakref__", "index", "operation")

    def __init__(self, operation: Operation, index: int) -> None:
        self.operation, self.index = operation, index
        operation.handles[id(self)] = self

    @property
    def device(self) -> Device:
        return self.operation.device

    @property
    def edge(self) -> DataNode:
        """The result as an edge (an output of a node) of the graph."""
        return self.operation.node.outputs[self.index]

    def values(self) -> TensorList:
        """Compute the operation if necessary, and return the batch."""
        operation = self.operation
        operation.accessed.add(self.index)
        future = operation.future  # read once, because several threads may call this method
        if future is not None:
            try:
                future.result()
            except Exception:
                operation.future = None  # the next request computes the operation again
                raise
            operation.future = None
        results = operation.results
        if results is None or results[self.index] is None:
            assert operation.context is not None
            results = operation.context.evaluate(operation, self.index)
        batch = results[self.index]
        assert batch is not None
        return batch
