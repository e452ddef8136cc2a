"""The structure of a graph of operations, and the executor that runs all graphs with the same structure."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torchdali.execute.bad_samples import BadSamples
from torchdali.execute.batch import ReaderState, Settings
from torchdali.execute.executor import Executor
from torchdali.experimental.dynamic._given import VALUE_OPERATOR, ValueSource
from torchdali.graph.keys import key_of, value_key
from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.graph.plan import plan
from torchdali.graph.rewrite import copy_node, rewrite
from torchdali.reading.cursor import Keys
from torchdali.reading.sources import SourceBatch
from torchdali.tensors import TensorList

__all__ = ["Structure", "StructureRunner", "freeze", "structure_of"]


@dataclass(frozen=True, eq=False)
class Structure:
    """A graph of nodes, with a key that describes its structure.

    Attributes:
        nodes: The nodes; each node comes after the nodes whose outputs it uses.
        outputs: Edges (outputs of nodes) whose values are returned.
        inputs: Edges whose values are already computed, in the order in which the nodes first use them.
        key: A hashable key. One executor can run all graphs with equal keys.
    """

    nodes: Sequence[Node]
    outputs: Sequence[DataNode]
    inputs: Sequence[DataNode]
    key: Hashable


def structure_of(nodes: Sequence[Node], outputs: Sequence[DataNode], size: int) -> Structure:
    """Return the structure of a graph for a batch of ``size`` samples."""
    edge_numbers: dict[DataNode, tuple[int, int]] = {
        e: (i, e.index) for i, node in enumerate(nodes) for e in node.outputs
    }
    inputs: dict[DataNode, None] = {}

    def edge_number(edge: DataNode) -> tuple[int, int]:
        if edge not in edge_numbers:
            edge_numbers[edge] = (-1, len(inputs))
            inputs[edge] = None
        return edge_numbers[edge]

    keys = tuple(
        (
            key_of(node, edge_number, _constant_key, _IGNORED_CONSTANTS),
            node.device, node.lines[:1], len(node.outputs),
            id(node.constants.get("_dataset")),  # readers of different datasets must not share an executor
        )
        for node in nodes
    )  # fmt: skip
    return Structure(nodes, outputs, list(inputs), (size, keys, tuple(edge_numbers[e] for e in outputs)))


_IGNORED_CONSTANTS = ("_dataset",)


def freeze(value: Any) -> Hashable:
    """Convert a constant to a hashable key; an object that isn't hashable is represented by its identity."""
    return value_key(value, lambda each: (type(each), each) if isinstance(each, Hashable) else id(each))


def _constant_key(name: str, value: Any) -> Hashable:
    return freeze(value)


class _RecordQueue:
    """A substitute for a reader's position. The next records are those that `StructureRunner.start` has received."""

    epoch = -1  # belongs to no epoch, so that nothing is read ahead

    def __init__(self) -> None:
        self.keys: deque[Keys] = deque()

    def next_batch(self, batch_size: int) -> Keys:
        """Return the records of the oldest run that hasn't read its records yet."""
        return self.keys.popleft()

    def crosses_epoch(self, batch_size: int, epoch: int) -> bool:
        """Return False, because the next batch is unknown until `StructureRunner.start` is called."""
        return False

    def state(self) -> dict[str, Any]:
        """Return an empty state, because the dynamic mode's reader stores its own position."""
        return {}


class StructureRunner:
    """An executor for all graphs with the same structure.

    Args:
        structure: Structure of one of the graphs.
        num_threads: Number of threads.
        device: The accelerator, or None.
        size: Number of samples per batch.
        several: True if `start` must return before the batch is computed, so that several batches can be started.
    """

    def __init__(
        self,
        structure: Structure,
        num_threads: int,
        device: torch.device | None,
        size: int,
        several: bool = False,
    ) -> None:
        traced, input_nodes = _copy_structure(structure)
        planned = plan(rewrite(traced, exact=False, scaled=False, device=None))
        by_name = {node.name: node for node in planned.graph.nodes}
        self._inputs = [by_name[node.name] for node in input_nodes]
        sources = {node: ValueSource() for node in self._inputs}
        reading = [n for n in structure.nodes if n.operator.kind == "reader"]
        self._records = [_RecordQueue() for _ in reading]
        readers: dict[Node, Any] = {
            node: ReaderState(node.constants["_dataset"], self._records[i])  # type: ignore[arg-type]
            for i, node in enumerate(n for n in planned.graph.nodes if n.operator.kind == "reader")
        }
        settings = Settings(size, num_threads, 0, device, synchronous=not several, one_stream=True)
        self._executor = Executor(planned, settings, readers, sources, BadSamples())
        self.close = weakref.finalize(self, Executor.close, self._executor)

    def run(
        self, values: Sequence[TensorList], records: Sequence[Keys], keys: Sequence[int | None]
    ) -> tuple[TensorList, ...]:
        """Compute one batch, and return its outputs. After an exception, the runner must be closed; see `start`."""
        tag = object()
        self.start(tag, values, records, keys)
        return self.finish(tag)

    def start(
        self, tag: object, values: Sequence[TensorList], records: Sequence[Keys], keys: Sequence[int | None]
    ) -> None:
        """Start to compute a batch. After an exception, the runner must be closed.

        Args:
            tag: An object that identifies the batch; pass it to `finish`.
            values: Values of the input edges. Kernels on the current stream may still be writing the values.
            records: The batch's records, for each reader.
            keys: Key of the random numbers, for each random operator.
        """
        fed = {node: SourceBatch((value,)) for node, value in zip(self._inputs, values, strict=True)}
        for reader, batch_keys in zip(self._records, records, strict=True):
            reader.keys.append(batch_keys)
        self._executor.device_stream.wait_for_current()
        self._executor.schedule(random_keys=[key or 0 for key in keys], fed=fed, tag=tag)

    def finish(self, tag: object) -> tuple[TensorList, ...]:
        """Wait for the oldest started batch, and return its outputs.

        If the previous call already returned the batch with this ``tag``, return the outputs of that batch again.
        """
        previous = self._executor.taken
        return self._executor.pop(after=previous.number - (previous.tag is tag)).outcome.outputs


def _copy_structure(structure: Structure) -> tuple[Graph, list[Node]]:
    """Copy a structure into a graph; nodes of the operator `VALUE_OPERATOR` supply the values of the input edges."""
    new: dict[DataNode, DataNode] = {}
    input_nodes = []
    for i, edge in enumerate(structure.inputs):
        node = Node(
            operator=VALUE_OPERATOR,
            name=f"given_{i}",
            device=edge.device,
            inputs=(),
            constants={},
            per_sample={},
            lines=(),
        )
        node.outputs = (DataNode(node.name, edge.device, node),)
        new[edge] = node.outputs[0]
        input_nodes.append(node)
    copies = []
    random = 0
    for i, node in enumerate(structure.nodes):
        copy = copy_node(node, new)
        copy.rename(f"{node.operator.name}_{i}")
        copy.stream, copy.preserve = random, False
        random += node.operator.schema.random
        copies.append(copy)
    return Graph.of([new[e] for e in structure.outputs], [*input_nodes, *copies]), input_nodes
