"""`RayStage`: a pipeline as a stage of Ray Data."""

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


_STAGES: dict[str, tuple[Pipeline, threading.Lock]] = {}  # the pipelines of this process; protected by _LOCK
_LOCK = threading.Lock()


class RayStage:
    """A function for ``ray.data.Dataset.map_batches`` that feeds each batch to a pipeline and returns its outputs.

    Each process that runs the stage creates its own pipeline once. You can pass the stage to Ray in two ways::

        ds.map_batches(RayStage(make, ["image"]), batch_size=64)
        ds.map_batches(RayStage, fn_constructor_args=(make, ["image"]), batch_size=64, concurrency=2)

    Random operators draw different numbers in every process. Ray decides which process gets a batch, so the results of
    random operators differ from run to run.

    Args:
        make: Function that creates the pipeline. The pipeline's inputs are its ``external_source(name=...)`` nodes
            without the argument ``source``; each name must be the name of a column. The pipeline's ``batch_size`` must
            be at least the ``batch_size`` of `map_batches`.
        output_map: Name of the new column for each output. The inputs' columns are removed, and all other columns are
            returned unchanged.
    """

    def __init__(self, make: Callable[[], Pipeline], output_map: Sequence[str]) -> None:
        self._make, self._output_map, self._key = make, list(output_map), uuid.uuid4().hex

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Run the pipeline on a batch of Ray Data; return the batch with the outputs.

        Args:
            batch: Columns ``{name: array}``. A column of bytes, or of arrays with different shapes, is an object array.

        Raises:
            KeyError: the column of an input is missing.
            ValueError: the pipeline's number of outputs isn't the number of names in `output_map`.
        """
        pipe, lock = self._open_pipeline()
        names = pipe.input_names
        missing = [name for name in names if name not in batch]
        if missing:
            raise KeyError(f"the batch must have a column for each input: {missing} are missing, got {sorted(batch)}")
        with lock:  # Ray may call this method in several threads, which must not get each other's outputs
            outputs = pipe.run_alone({name: _to_samples(batch[name]) for name in names})
        if len(outputs) != len(self._output_map):
            raise ValueError(f"output_map must name the pipeline's {len(outputs)} outputs, got {self._output_map}")
        columns = {name: _to_column(each) for name, each in zip(self._output_map, outputs, strict=True)}
        return {k: v for k, v in batch.items() if k not in names} | columns

    def _open_pipeline(self) -> tuple[Pipeline, threading.Lock]:
        with _LOCK:  # the tasks of a process share a pipeline, although Ray pickles the stage again for each task
            if self._key not in _STAGES:
                pipe = self._make()
                pipe.build()
                _STAGES[self._key] = pipe, threading.Lock()
            return _STAGES[self._key]


def _to_samples(column: Any) -> Any:
    if column.dtype != object:
        return column
    return [np.frombuffer(v, np.uint8) if isinstance(v, bytes) else np.asarray(v) for v in column]


def _to_column(batch: TensorList) -> Any:
    """Convert a batch to a column: one array, or an object array of arrays if the samples' shapes differ."""
    batch = cast("TensorListCPU | TensorListGPU", batch).as_cpu()
    if batch.is_dense_tensor():
        return _to_array(batch.stack())
    column = np.empty(len(batch), object)
    column[:] = [_to_array(each) for each in batch.samples()]
    return column


def _to_array(tensor: torch.Tensor) -> Any:
    return tensor if tensor.dtype is torch.bfloat16 else tensor.numpy()  # NumPy doesn't support bfloat16
