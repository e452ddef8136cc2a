"""Memory that the operators of a pipeline deliver."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from torchdali.graph import DataNode, Node
from torchdali.tensors import TensorList

__all__ = ["MemoryStats"]


class MemoryStats:
    """Sizes of the last batch of each output, and of the largest sample so far."""

    def __init__(self) -> None:
        self._last: dict[DataNode, int] = {}
        self._largest: dict[DataNode, int] = {}
        self._lock = threading.Lock()

    def record(self, batches: Mapping[DataNode, TensorList]) -> None:
        """Note the sizes of what a stage delivered."""
        for edge, batch in batches.items():
            sizes = [s.nbytes for s in batch.samples() if s is not None]
            # Several batches may end a stage at once, each in its own thread: without the lock, one's largest sample
            # could overwrite the other's.
            with self._lock:
                self._last[edge] = sum(sizes)
                self._largest[edge] = max(self._largest.get(edge, 0), *sizes, 0)

    def summary(self) -> dict[str, dict[str, list[int]]]:
        """Return the sizes in bytes, by operator: ``{name: {measure: [one an output]}}``."""
        return {
            f"{node.device.upper()}_{node.name}": self._of(node)
            for node in {edge.source: None for edge in list(self._last)}
            if node is not None
        }

    def _of(self, node: Node) -> dict[str, list[int]]:
        last = [self._last.get(edge, 0) for edge in node.outputs]
        largest = [self._largest.get(edge, 0) for edge in node.outputs]
        return {
            "real_memory_size": last,
            "max_real_memory_size": largest,
            "reserved_memory_size": list(last),
            "max_reserved_memory_size": list(largest),
        }
