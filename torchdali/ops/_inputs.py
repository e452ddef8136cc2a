"""Inputs of a pipeline: data that Python code makes."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from torchdali.operator import source as declare_source
from torchdali.schema import Data, DType
from torchdali.tensors import TensorList
from torchdali.types import BatchInfo, SampleInfo

__all__ = ["external_source"]


@declare_source(
    outputs=lambda arguments: arguments["num_outputs"],
    layout=lambda layouts, arguments: arguments["layout"] or "",
)
def external_source(
    *,
    source: Any = None,
    num_outputs: int | None = None,
    cycle: Any = None,
    layout: Any = None,
    dtype: DType | None = None,
    ndim: int | None = None,
    cuda_stream: Any = None,
    use_copy_kernel: Any = None,
    blocking: bool | None = None,
    batch: bool | None = None,
    repeat_last: bool = False,
    parallel: bool | None = None,
    no_copy: bool | None = None,
    prefetch_queue_depth: int | None = None,
    batch_info: bool | None = None,
) -> Data:
    """Take batches or samples from Python code.

    Args:
        source: A callable, an iterable or a generator function; None to use `Pipeline.feed_input`.
        num_outputs: The source returns that many outputs; None for a single one.
        cycle: What to do at the end of an iterable.
        layout: Of the outputs; one, or one an output.
        batch: Whether the source returns whole batches (the default) or single samples.
    """
    return PythonSource(source, num_outputs, cycle, layout or "", batch is not False)  # type: ignore[return-value]


class PythonSource:
    """Runtime side of `external_source`."""

    def __init__(self, source: Any, num_outputs: int | None, cycle: Any, layout: Any, batch: bool) -> None:
        self._source, self._outputs, self._cycle, self._batch = source, num_outputs, cycle, batch
        self._layouts = [layout] * (num_outputs or 1) if isinstance(layout, str) else list(layout)
        self._fed: deque[tuple[TensorList, ...]] = deque()
        self._iteration = self._epoch = 0
        self._iterator: Iterator[Any] | None = None

    def feed(self, data: Any, layout: str | None = None) -> None:
        """Queue one batch."""
        self._fed.append((_to_batch(data, layout or self._layouts[0]),))

    def next(self, batch_size: int) -> tuple[TensorList, ...]:
        """Return the next batch."""
        if self._source is None:
            return self._fed.popleft()
        data = self._call(batch_size)
        self._iteration += 1
        columns = (data,) if self._outputs is None else tuple(data)
        return tuple(_to_batch(c, layout) for c, layout in zip(columns, self._layouts, strict=True))

    def _call(self, batch_size: int) -> Any:
        if not callable(self._source) or inspect.isgeneratorfunction(self._source):
            if self._iterator is None:
                self._iterator = iter(self._source() if callable(self._source) else self._source)
            return next(self._iterator)
        if self._batch:
            return self._source() if _takes_nothing(self._source) else self._source(self._iteration)
        rows = [
            self._source(SampleInfo(self._iteration * batch_size + i, i, self._iteration, self._epoch))
            for i in range(batch_size)
        ]
        return rows if self._outputs is None else tuple(zip(*rows, strict=True))

    def reset(self) -> None:
        """Start the next epoch."""
        self._iteration, self._epoch, self._iterator = 0, self._epoch + 1, None

    def state(self) -> dict[str, Any]:
        """Return the position."""
        return {"iteration": self._iteration, "epoch": self._epoch}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a position."""
        self._iteration, self._epoch = state["iteration"], state["epoch"]


def _takes_nothing(function: Callable[..., Any]) -> bool:
    return not inspect.signature(function).parameters


def _to_batch(data: Any, layout: str) -> TensorList:
    if isinstance(data, TensorList):
        return data
    if isinstance(data, (list, tuple)):
        return TensorList.from_samples([_to_tensor(d) for d in data], layout)
    return TensorList.from_dense(_to_tensor(data), layout)


def _to_tensor(value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value.clone()
    return torch.from_numpy(np.array(value))


_ = BatchInfo
