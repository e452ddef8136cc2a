"""One batch in flight, and what a pipeline decides for all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from torchdali.execute.order import Signal
from torchdali.graph import DataNode, Node
from torchdali.loader import Cursor, Dataset, Indices, Keys
from torchdali.rng import BatchRng, mix
from torchdali.tensors import TensorList

__all__ = ["Batch", "Reader", "Settings", "known_outputs", "random_key"]

_NO_SEED = -1


@dataclass(frozen=True)
class Reader:
    """The runtime side of a reader: its records and the place in its epochs."""

    dataset: Dataset
    cursor: Cursor


@dataclass(frozen=True)
class Settings:
    """What a pipeline decides for its executor."""

    batch_size: int
    num_threads: int
    seed: int
    device: torch.device | None = None
    start_thread: Callable[[int], None] | None = None
    synchronous: bool = False
    memory_stats: bool = False


@dataclass(eq=False)
class Batch:
    """One batch in flight.

    Attributes:
        index: In the order in which batches are started; -1 before.
        kept: Which samples are left, where bad ones were left out or replaced; None for all.
        asked: Whether it was handed to what starts batches.
    """

    index: int
    size: int
    position: int
    values: dict[DataNode, TensorList] = field(default_factory=dict)
    keys: dict[Node, Keys] = field(default_factory=dict)
    info: list[str] | None = None
    kept: Sequence[int] | None = None
    state: dict[str, Any] = field(default_factory=dict)
    error: BaseException | None = None
    stage: int = 0
    ended: bool = False
    asked: bool = False
    outputs: tuple[TensorList, ...] = ()
    finished: Signal = field(default_factory=Signal)
    _rng: BatchRng | None = None

    def rng(self, key: int) -> BatchRng:
        """Return the random numbers of an operator."""
        if self._rng is None:
            self._rng = self._numbers(key)
            return self._rng
        return self._rng.of(key)

    def _numbers(self, key: int) -> BatchRng:
        if self.keys or self.kept is not None:
            return BatchRng(key, *self.sample_keys())
        return BatchRng.following(key, 0, self.position, self.size)

    def select(self, keep: list[int]) -> None:
        """Leave samples out, or take them again; what was computed for them is not changed."""
        self.keys = {
            n: Keys(k.records[keep], k.epochs[keep], k.padded[keep]) for n, k in self.keys.items()
        }
        self.info = None if self.info is None else [self.info[i] for i in keep]
        self.kept = keep if self.kept is None else [self.kept[i] for i in keep]
        self.size, self._rng = len(keep), None

    def original(self, sample: int) -> int:
        """Return the index that a sample had before others were left out."""
        return sample if self.kept is None else self.kept[sample]

    def sample_keys(self) -> tuple[Indices, Indices]:
        """Return epoch and record of each sample: those of the first reader, or the running number."""
        for keys in self.keys.values():
            return keys.epochs, keys.records
        places = np.arange(self.size) if self.kept is None else np.asarray(self.kept, np.int64)
        return np.zeros(self.size, np.int64), self.position + places

    def place(self, node: Node | None, sample: int | None = None) -> str:
        """Say what failed, on which sample, and on which of the user's lines."""
        parts = [f"operator {node.operator.name!r}" if node else "the pipeline", "failed"]
        if sample is not None:
            parts.append(f"on sample {self.original(sample)} of batch {self.index}")
            if self.info is not None:
                parts.append(f"({self.info[sample]})")
        else:
            parts.append(f"on batch {self.index}")
        where = f"\n  {node.where}" if node else ""
        return " ".join(parts) + where


def known_outputs(node: Node, dataset: Any, records: Indices) -> dict[DataNode, TensorList]:
    """Return the outputs of a reader that are known without reading."""
    count = node.operator.known
    if not count:
        return {}
    columns = map(TensorList.from_dense, dataset.known(records))
    return dict(zip(node.outputs[-count:], columns, strict=True))


def random_key(seed: int, node: Node) -> int:
    """Return the key of a random operator's numbers: of its own seed, or the pipeline's and its place."""
    own = node.constants.get("seed", _NO_SEED)
    return _mixed(seed, node.stream) if own == _NO_SEED else _mixed(own)


_mixed = functools.lru_cache(maxsize=1024)(mix)
