"""A pipeline as a stage of Ray Data."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch

from torchdali.pipeline import Pipeline
from torchdali.tensors import TensorList, TensorListCPU, TensorListGPU

__all__ = ["RayStage"]


_STAGES: dict[str, tuple[Pipeline, threading.Lock]] = {}  # of this process, under _MAKING
_MAKING = threading.Lock()


class RayStage:
    """A pipeline whose inputs are fed, as a function of batches for ``ray.data.Dataset.map_batches``.

    Each process that runs it makes a pipeline of its own, once. Both forms work::

        ds.map_batches(RayStage(make, ["image"]), batch_size=64)
        ds.map_batches(RayStage, fn_constructor_args=(make, ["image"]), batch_size=64, concurrency=2)

    Random operators draw differently in every process: Ray decides where a batch runs, so their results differ from
    run to run.

    Args:
        make: Makes the pipeline. Its inputs, ``external_source(name=...)`` without a source, have the names of columns.
            Its ``batch_size`` is at least `map_batches`'s.
        output_map: A name for each output, the column that it becomes. Columns that are not inputs are passed on.
    """

    def __init__(self, make: Callable[[], Pipeline], output_map: Sequence[str]) -> None:
        self._make, self._output_map, self._key = make, list(output_map), uuid.uuid4().hex

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Run the pipeline on columns ``{name: array}``; bytes and ragged samples are arrays of objects.

        Raises:
            KeyError: an input has no column. ValueError: the pipeline has another number of outputs.
        """
        pipe, alone = self._pipeline()
        names = pipe.input_names
        missing = [name for name in names if name not in batch]
        if missing:
            raise KeyError(f"the inputs {missing} have no column; the batch has {sorted(batch)}")
        with alone:  # Ray may call from several threads, and outputs come in the order of the inputs
            outputs = pipe.run_alone({name: _samples(batch[name]) for name in names})
        if len(outputs) != len(self._output_map):
            raise ValueError(f"output_map names {self._output_map}, the pipeline has {len(outputs)} outputs")
        columns = {name: _column(each) for name, each in zip(self._output_map, outputs, strict=True)}
        return {k: v for k, v in batch.items() if k not in names} | columns

    def _pipeline(self) -> tuple[Pipeline, threading.Lock]:
        with _MAKING:  # the tasks of a process share a pipeline; a stage itself is pickled again for each
            if self._key not in _STAGES:
                pipe = self._make()
                pipe.build()
                _STAGES[self._key] = pipe, threading.Lock()
            return _STAGES[self._key]


def _samples(column: Any) -> Any:
    """Return a column as a batch for a source."""
    if column.dtype != object:
        return column
    return [np.frombuffer(v, np.uint8) if isinstance(v, bytes) else np.asarray(v) for v in column]


def _column(batch: TensorList) -> Any:
    """Return a batch as a column: an array, or an array of arrays of different shapes."""
    batch = cast("TensorListCPU | TensorListGPU", batch).as_cpu()
    if batch.is_dense_tensor():
        return _array(batch.stack())
    column = np.empty(len(batch), object)
    column[:] = [_array(each) for each in batch.samples()]
    return column


def _array(tensor: torch.Tensor) -> Any:
    return tensor if tensor.dtype is torch.bfloat16 else tensor.numpy()  # numpy has no such type
