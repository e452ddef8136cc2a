"""Measure the memory of operators' outputs."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from torchdali.graph.nodes import DataNode, Graph, Node
from torchdali.tensors import TensorList

__all__ = ["MemoryStats"]


class MemoryStats:
    """The size of each operator's outputs in the last batch, and the size of the largest sample so far."""

    def __init__(self) -> None:
        self._last: dict[DataNode, int] = {}
        self._largest: dict[DataNode, int] = {}
        self._lock = threading.Lock()

    def record(self, batches: Mapping[DataNode, TensorList]) -> None:
        """Record the sizes of a stage's outputs."""
        for edge, batch in batches.items():
            sizes = [s.nbytes for s in batch.samples() if s is not None]
            # Several threads may record the sizes of different batches at the same time. Without the lock, one thread
            # could overwrite a larger maximum of another thread.
            with self._lock:
                self._last[edge] = sum(sizes)
                self._largest[edge] = max(self._largest.get(edge, 0), *sizes, 0)

    def last(self, node: Node) -> int:
        """Return the number of bytes of a node's outputs in the last batch; 0 if the number is unknown."""
        return sum(self._last.get(edge, 0) for edge in node.outputs)

    def pop(self) -> dict[DataNode, tuple[int, int]]:
        """Return the recorded sizes, and clear them.

        A worker process sends the sizes to the main process, which calls `add`.
        """
        with self._lock:
            sizes = {edge: (size, self._largest[edge]) for edge, size in self._last.items()}
            self._last.clear()
            self._largest.clear()
        return sizes

    def add(self, sizes: Mapping[DataNode, tuple[int, int]]) -> None:
        """Record sizes that another process measured."""
        with self._lock:
            for edge, (last, largest) in sizes.items():
                self._last[edge], self._largest[edge] = last, max(self._largest.get(edge, 0), largest)

    def summary(self, graph: Graph) -> dict[str, dict[str, list[int]]]:
        """Return the sizes in bytes of all operators' outputs, as ``{name: {measure: [one value per output]}}``.

        If an operator's samples are passed directly to the next operator, they never form a batch, and the sizes are 0.
        """
        if not self._last:
            return {}
        sizes = {}
        for node in graph.nodes:
            for part in node.parts[:-1]:
                sizes[_key(part)] = self._sizes([])
            sizes[_key(node.parts[-1] if node.parts else node)] = self._sizes(node.outputs)
        for i, edge in enumerate(graph.outputs):
            sizes[f"{edge.device.upper()}_output_{i}"] = self._sizes([edge])
        return sizes

    def _sizes(self, edges: Sequence[DataNode]) -> dict[str, list[int]]:
        last = [self._last.get(edge, 0) for edge in edges] or [0]
        largest = [self._largest.get(edge, 0) for edge in edges] or [0]
        return {
            "real_memory_size": last,
            "max_real_memory_size": largest,
            "reserved_memory_size": list(last),
            "max_reserved_memory_size": list(largest),
        }


def _key(node: Node) -> str:
    """Return the key of a node in `summary`: its device, and its name or the operator's name."""
    name = node.name
    if name.startswith("__"):
        name = f"__{node.operator.class_name}_{name.rpartition('_')[2]}"
    return f"{node.device.upper()}_{name}"
