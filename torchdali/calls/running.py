"""Evaluate an operator over a batch.

Eager calls, debug mode and steps of a pipeline use `run_batch`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch

from torchdali.calls.chunk_function import ChunkFunction, Items
from torchdali.calls.layouts import assume_layout, number_of_axes, resolve_layouts
from torchdali.calls.preparing import prepare, unsupported_dtype
from torchdali.calls.results import check_size, collect
from torchdali.declaration.batching import Column
from torchdali.declaration.registry import Operator
from torchdali.errors import batch_level
from torchdali.kernels.memory import SMALL_SAMPLE
from torchdali.rng import BatchRng
from torchdali.tensors import TensorList

__all__ = ["FunctionCache", "to_column", "run_batch", "stack_if_small"]

_NO_NAMES: frozenset[str] = frozenset()

FunctionCache: TypeAlias = dict[tuple[tuple[str, ...], frozenset[str]], ChunkFunction]
"""Cache of prepared operators. The key has the inputs' layouts and the names of arguments that are passed per frame."""


def run_batch(
    declared: Operator,
    inputs: Sequence[TensorList | None],
    constants: Mapping[str, Any],
    per_sample: Mapping[str, TensorList],
    rng: BatchRng | None,
    size: int = 1,
    cache: FunctionCache | None = None,
) -> tuple[TensorList, ...]:
    """Run an operator over one batch, sample by sample or as a whole.

    This function defines an operator's results. All other code that runs an operator must return the same results.

    Args:
        constants: Converted arguments that are the same for all samples.
        per_sample: Arguments that are passed per sample.
        rng: Random numbers of the batch; None if the operator isn't random.
        size: Number of samples of the batch if the call has no inputs and no per-sample arguments.
        cache: Cache of prepared operators. Each cache is only for one operator with the same constants.
    """
    frames = _NO_NAMES
    if per_sample:
        frames = frozenset([k for k, v in per_sample.items() if declared.is_per_frame(k, v.layout())])
    layouts = resolve_layouts(declared, inputs)
    prepared = cache.get((layouts, frames)) if cache is not None else None
    if prepared is None:
        prepared = prepare(declared, constants, layouts, frames)
        if cache is not None and declared.options.make is None:
            cache[layouts, frames] = prepared
    arguments: dict[str, Any] = {
        name: to_column(value, name in frames).shape_values(declared.axes_of(name), name)
        for name, value in per_sample.items()
    }
    if declared.kind == "batch":
        for values in (*inputs, *arguments.values()):
            if values is not None:
                size = len(values)
                break
        if not size:
            return tuple(TensorList.from_samples([], layout) for layout in prepared.layouts)
        if rng is not None:
            arguments["rng"] = rng
        if declared.schema.needs_size:
            arguments["size"] = size
        _check_batches(declared, inputs)
        return check_size(collect(prepared.single(*inputs, **arguments), prepared.layouts), size)
    if prepared.on_device is not None and inputs and inputs[0] is not None:
        first = inputs[0]
        if first.device.type != "cpu" and len(first):
            results = prepared.on_device(*inputs, rng=rng, **arguments)
            if results is not NotImplemented:
                return collect(results, prepared.layouts)
    if rng is not None:
        arguments["rng"] = rng.samples()
    columns = [None if v is None else _items(v, prepared) for v in inputs]
    if any(c is not None for c in columns) or arguments:
        return collect(prepared(*columns, **arguments), prepared.layouts)
    return collect([prepared.single() for _ in range(size)], prepared.layouts)


def _items(batch: TensorList, chunk: ChunkFunction) -> Items:
    """Return the samples as one tensor if the operator accepts a tensor and a copy is cheap; otherwise as a list."""
    stacked = None
    if chunk.tensor is not None:
        may_be = batch.device.type != "cpu" and len(batch) and batch.is_dense_tensor()
        stacked = batch.stack() if may_be else stack_if_small(batch)
    return batch.samples() if stacked is None else stacked


def to_column(batch: TensorList, per_frame: bool) -> Column:
    """Return the values of a per-sample argument. The value is None if a sample doesn't exist in a branch.

    If `per_frame` is true, each value is a list with one value per frame.
    """
    dense = batch.dense()
    column = Column(_to_numbers(batch)) if dense is None else Column.of(dense)
    column.per_frame = per_frame
    column.uploaded = batch.uploaded
    return column


def _to_numbers(batch: TensorList) -> list[Any]:
    if any(sample is None for sample in batch.samples()):
        return [None if sample is None else sample.tolist() for sample in batch.samples()]
    return batch.tolist()


def _check_batches(declared: Operator, inputs: Sequence[TensorList | None]) -> None:
    """Check the dtypes and numbers of axes of the inputs of an operator over the batch."""
    for i, batch in enumerate(inputs):
        constraints = declared.schema.input(i).constraints
        if batch is None or not (constraints.dtypes or constraints.layouts):
            continue
        dtype = batch.torch_dtype
        if constraints.dtypes and dtype is not None and dtype not in constraints.dtypes and len(batch):
            raise batch_level(unsupported_dtype(declared.name, dtype, constraints.dtypes))
        ndim = number_of_axes(batch) if constraints.layouts else None
        if ndim is not None and all(len(layout) != ndim for layout in constraints.layouts):
            assume_layout(declared.name, constraints, ndim)


def stack_if_small(batch: TensorList) -> torch.Tensor | None:
    """Return a batch as one tensor if it is stored as one tensor, or if its samples are small and have one shape.

    Otherwise, return None.
    """
    if batch.dense() is None:
        samples = batch.samples()
        is_separate = len(samples) < 2 or any(sample is None for sample in samples)
        if is_separate or samples[0].nbytes > SMALL_SAMPLE or not batch.is_dense_tensor():
            return None
    return batch.stack()
