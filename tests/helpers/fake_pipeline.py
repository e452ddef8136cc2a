"""A pipeline without operators, for tests of iterators.

It has the public methods of `torchdali.Pipeline` that iterators use, delivers the record indices of a
reader or the batches of a list, and fails the test if it is used incorrectly.
"""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torchdali.reading.cursor import Cursor, EpochOrder
from torchdali.reading.datasets import LoaderOptions, reader_meta
from torchdali.tensors import TensorListCPU

Outputs = tuple[TensorListCPU, ...]


def records_of(numbers: list[int]) -> Outputs:
    """One output: the record indices, of shape (1,) like a label."""
    dense = torch.tensor(numbers, dtype=torch.int32).reshape(-1, 1)
    return (TensorListCPU.from_dense(dense),)  # type: ignore[return-value]


class FakePipeline:
    """Delivers the batches that `produce` returns; its exceptions belong to the batch.

    Args:
        batch_size: Of a full batch.
        produce: Returns the next batch; StopIteration ends the epoch until `reset`.
        depth: Batches that the first `schedule_run` starts.
    """

    device_id = None
    is_restored_from_checkpoint = False

    def __init__(self, batch_size: int, produce: Callable[[], Outputs], depth: int = 2) -> None:
        self.max_batch_size = batch_size
        self.depth = depth
        self.built = self.stopped = False
        self.resets = 0
        self.meta: dict[str, dict[str, int]] = {}
        self._produce = produce
        self._flight: deque[tuple[Outputs | Exception, dict[str, Any]]] = deque()
        self._first = True
        self._held: Outputs | None = None
        self.taken = 0
        self._place: dict[str, Any] = {}
        self.external_context: dict[str, Any] = {}

    def build(self) -> None:
        self.built = True

    def reader_meta(self, name: str | None = None) -> Any:
        assert self.built
        if name is None:
            return self.meta
        if name not in self.meta:
            raise RuntimeError(f"unknown reader {name!r}")
        return self.meta[name]

    def schedule_run(self) -> None:
        for _ in range(self.depth if self._first else 1):
            self._flight.append(self._next())
        self._first = False
        assert len(self._flight) <= self.depth, "more batches in flight than the queue is deep"

    def _next(self) -> tuple[Outputs | Exception, dict[str, Any]]:
        found: Outputs | Exception
        try:
            found = StopIteration() if self.stopped else self._produce()
        except StopIteration as end:
            self.stopped = True
            found = end
        except Exception as error:
            found = error
        return found, self.place()

    def place(self) -> dict[str, Any]:
        """Position of the source after the batches produced so far."""
        return {}

    def share_outputs(self) -> Outputs:
        assert self._held is None, "the batch before was not released"
        assert self._flight, "nothing is scheduled"
        found, self._place = self._flight.popleft()
        self.taken += not isinstance(found, StopIteration)
        if isinstance(found, Exception):
            raise found
        self._held = found
        return found

    def share_next(self, taken: int) -> Outputs:
        """Return the batch after a number of batches, even if it was returned before."""
        if self.taken == taken:
            return self.share_outputs()
        assert self._held is not None and self.taken == taken + 1
        return self._held

    def empty(self) -> bool:
        """Return True if only the end of the epoch remains."""
        return not self._flight or isinstance(self._flight[0][0], StopIteration)

    def driven_by(self, api: Any) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    @property
    def in_flight(self) -> int:
        """Number of batches that were scheduled and not returned."""
        return len(self._flight)

    def release_outputs(self) -> None:
        self._held = None

    def reset(self) -> None:
        if self.stopped and self.empty():
            self.stopped, self._first = False, True
            self.resets += 1
            self._flight.clear()


class ReaderPipeline(FakePipeline):
    """A reader called ``"reader"`` over `size` records; the outputs are their indices."""

    def __init__(self, size: int, batch_size: int, depth: int = 2, **options: Any) -> None:
        loader = LoaderOptions(**options)
        self.cursor = Cursor(EpochOrder(size, loader, 0))
        super().__init__(batch_size, self._read, depth)
        self.meta["reader"] = reader_meta(size, loader)

        self._place = self.place()

    def _read(self) -> Outputs:
        return records_of(self.cursor.next_batch(self.max_batch_size).records.tolist())

    def place(self) -> dict[str, Any]:
        return self.cursor.state()

    def state_dict(self) -> dict[str, Any]:
        return self._place

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.cursor.restore(state)
        self._place = state
        self._flight.clear()
        self._first = True

    def restore_checkpoint(self, checkpoint: bytes) -> None:
        """Behave like a pipeline created with ``checkpoint=``."""
        state = json.loads(checkpoint)
        self.external_context = state.pop("external_context")
        self.load_state_dict(state)
        self.is_restored_from_checkpoint = True


class SourcePipeline(FakePipeline):
    """Batches of a list; `reset` restarts the list if `cycle`.

    An exception in the list is raised instead of a batch.
    """

    def __init__(
        self,
        batches: list[list[int] | Outputs | Exception],
        batch_size: int,
        cycle: bool = False,
        depth: int = 2,
    ) -> None:
        self._batches, self._cycle = batches, cycle
        self._iterator: Iterator[Any] = iter(batches)
        super().__init__(batch_size, self._pull, depth)

    def _pull(self) -> Outputs:
        found = next(self._iterator)
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, tuple) else records_of(found)

    def reset(self) -> None:
        if self.stopped and self._cycle:
            self._iterator = iter(self._batches)
        super().reset()
