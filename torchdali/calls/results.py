"""Check the results of an operator, and collect them into batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchdali.calls.layouts import matching_layout
from torchdali.errors import batch_level
from torchdali.tensors import TensorList
from torchdali.tensors._storage import PackedSamples

__all__ = ["check_uniform", "check_outputs", "check_size", "collect"]


def collect(results: Any, layouts: tuple[str, ...]) -> tuple[TensorList, ...]:
    """Convert an implementation's results for a batch to `TensorList`s.

    Args:
        results: For one output, a tensor ``(N, ...)``, a list of tensors or a `TensorList`; for several outputs, a
            tuple.
        layouts: Layout of each output.
    """
    columns = results if isinstance(results, tuple) else (results,)
    check_count(len(columns), len(layouts))
    if len(columns) == 1:
        return (_collect(columns[0], layouts[0]),)
    return tuple(map(_collect, columns, layouts))


def _collect(column: Any, layout: str) -> TensorList:
    if isinstance(column, TensorList):
        return column
    if isinstance(column, PackedSamples):
        column = column.untranspose().samples()
    if isinstance(column, torch.Tensor):
        if column.ndim == 0:
            raise TypeError(
                "the operator must return tensors whose first dimension is the batch, got a tensor without dimensions"
            )
        return TensorList.from_dense(column, matching_layout(layout, column.ndim - 1))
    _check_samples(column)
    check_uniform(column)
    layout = matching_layout(layout, column[0].ndim) if column else layout
    if column and all(c.shape == column[0].shape for c in column):
        stacked = torch.stack(column) if len(column) > 1 else column[0].unsqueeze(0)
        return TensorList.from_dense(stacked, layout)
    return TensorList.from_samples(list(column), layout)


def check_uniform(samples: Sequence[torch.Tensor | None]) -> None:
    """Raise RuntimeError if the samples of a batch have different dtypes or numbers of axes."""
    formats = [(i, s.dtype, s.ndim) for i, s in enumerate(samples) if s is not None]
    for i, dtype, ndim in formats:
        first, first_dtype, first_ndim = formats[0]
        if dtype != first_dtype or ndim != first_ndim:
            raise batch_level(
                RuntimeError(
                    f"the samples of a batch must have one dtype and one number of axes; sample {i} has {dtype} and "
                    f"{ndim} axes, sample {first} has {first_dtype} and {first_ndim} axes"
                )
            )


def check_size(batches: tuple[TensorList, ...], size: int) -> tuple[TensorList, ...]:
    for batch in batches:
        if len(batch) != size:
            raise RuntimeError(
                f"the operator must return {pluralize(size, 'sample')}, one per sample of the batch, got {len(batch)}"
            )
    return batches


def check_outputs(function: Callable[..., Any], outputs: int) -> Callable[..., Any]:
    """Wrap a user's operator so that its results for each sample are checked.

    Without the check, later operators would fail.
    """

    def run(*inputs: Any, **arguments: Any) -> Any:
        result = function(*inputs, **arguments)
        if outputs == 1 and isinstance(result, torch.Tensor):
            return result
        results = result if isinstance(result, tuple) else (result,)
        check_count(len(results), outputs)
        for each in results:
            if not isinstance(each, torch.Tensor):
                raise TypeError(f"the operator must return a tensor, got {describe_type(each)}")
        return result if outputs > 1 else results[0]

    return run


def _check_samples(column: Any) -> None:
    if not isinstance(column, (list, tuple)):
        raise TypeError(
            f"the operator must return a TensorList, a list of tensors (one per sample), or one tensor whose first "
            f"dimension is the batch, got {describe_type(column)}"
        )
    for i, sample in enumerate(column):
        if not isinstance(sample, torch.Tensor):
            raise TypeError(f"the operator must return a tensor for sample {i}, got {describe_type(sample)}")


def check_count(count: int, declared: int) -> None:
    """Check that an operator returned the declared number of outputs."""
    if count != declared:
        raise TypeError(
            f"the operator returned {pluralize(count)}, but is declared to return {pluralize(declared)}; return "
            f"several outputs as a tuple, and annotate the tuple's type (-> tuple[torch.Tensor, torch.Tensor])"
        )


def pluralize(count: int, noun: str = "output") -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def describe_type(value: Any) -> str:
    """Describe a value for a message: "None", "an int", "a list"."""
    name = type(value).__name__
    article = "an" if name[0] in "aeiou" else "a"
    return "None" if value is None else f"{article} {name}"
