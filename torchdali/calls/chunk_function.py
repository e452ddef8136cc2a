"""Run an operator on several samples in one call: with its batched implementation, or sample by sample."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from torchdali.declaration.batching import MAX_CHUNK_BYTES
from torchdali.kernels.memory import SMALL_SAMPLE, Allocator, allocate, is_array
from torchdali.kernels.rearrange import copy_to, make_contiguous
from torchdali.tensors._storage import PackedSamples, arrays_of

__all__ = ["Implementation", "ChunkFunction", "Items", "store_result", "report", "reports", "raise_in_tests"]

Items: TypeAlias = torch.Tensor | Sequence[torch.Tensor]
"""The samples of an input: a tensor ``(N, ...)``, `PackedSamples`, a list, or `SeparateSamples` (NumPy arrays)."""

Implementation = Callable[..., Any]


def raise_in_tests(error: Exception) -> None:
    """Ignore that a batched implementation failed on samples that succeeded one by one. In tests, raise an error.

    Raises:
        RuntimeError: The environment variable ``TORCHDALI_BROKEN_BODIES`` is ``raise``.
    """
    if os.environ.get("TORCHDALI_BROKEN_BODIES") == "raise":
        raise RuntimeError(
            "a batched implementation failed, but the per-sample implementation succeeded for each sample"
        ) from error


class _Reports(threading.local):
    """The function to which this thread reports failures of batched implementations.

    Attributes:
        receiver: Function that is called with the exception. Code that runs implementations sets this attribute
            temporarily.
    """

    def __init__(self) -> None:
        self.receiver: Callable[[Exception], None] = raise_in_tests


reports = _Reports()


def report(error: Exception) -> None:
    """Report that a batched implementation failed on samples that succeeded one by one."""
    reports.receiver(error)


@dataclass
class ChunkFunction:
    """An operator with bound constants and layouts, which processes several samples together or one by one.

    Attributes:
        single: Implementation for one sample.
        layouts: Layouts of the outputs.
        tensor: Batched implementation for samples in one tensor; None if the operator has none.
        ragged: Batched implementation for samples of different shapes; None if the operator has none.
        dtypes: Dtypes of the first input that ``ragged`` accepts; empty for all.
        empty: Function that allocates memory for the results of ``ragged``. Without this function, ``ragged`` is called
            only for samples of at most `MAX_CHUNK_BYTES` in total.
        stacks: True to stack small results into one tensor even if the inputs aren't one tensor.
        on_device: Implementation for a whole batch on an accelerator; None if the operator has none.
    """

    single: Implementation
    layouts: tuple[str, ...]
    tensor: Implementation | None = None
    ragged: Implementation | None = None
    dtypes: frozenset[torch.dtype] = frozenset()
    empty: Allocator | None = None
    stacks: bool = False
    on_device: Implementation | None = None

    def __call__(
        self, *inputs: Items | None, out: torch.Tensor | Sequence[Any] | None = None, **arguments: Sequence[Any]
    ) -> Any:
        """Process several samples.

        Args:
            inputs: Samples of each input; None for an omitted input.
            out: Memory for the results: a tensor ``(N, ...)``, or one tensor per result. A result that doesn't fit is
                returned in new memory.
            arguments: For each per-sample argument, one value per sample; ``rng`` for random numbers.

        Returns:
            The samples of the output; for several outputs, a tuple.
        """
        result, failure = NotImplemented, None
        is_tensor = bool(inputs) and all(each is None or isinstance(each, torch.Tensor) for each in inputs)
        if self.tensor is not None and is_tensor and "rng" not in arguments:
            result = self._run_stacked(self.tensor, inputs, out, arguments)
        elif self.ragged is not None and not arguments and inputs[0] is not None and self._fits_ragged(inputs[0]):
            try:
                result = self.ragged(inputs[0], empty=self.empty or allocate)
            except Exception as error:  # the loop below raises the error again, with the sample's index
                failure = error
        if result is NotImplemented:
            result = self._run_one_by_one(inputs, out, arguments, is_tensor or self.stacks)
        if failure is not None:
            report(failure)
        return result

    def one_by_one(
        self, *inputs: Items | None, out: torch.Tensor | Sequence[Any] | None = None, **arguments: Sequence[Any]
    ) -> Any:
        """Process several samples like `__call__`, but without the batched implementations, and return lists."""
        return self._run_one_by_one(inputs, out, arguments, False)

    def _run_stacked(
        self, implementation: Implementation, inputs: Sequence[Any], out: Any, arguments: Mapping[str, Any]
    ) -> Any:
        out = out if isinstance(out, torch.Tensor) else None
        result = implementation(*inputs, out=out, **arguments)
        if (result is out and out is not None) or not isinstance(result, torch.Tensor):
            return result
        if any(result is each for each in inputs):
            result = result.clone()  # writing into the result must not change the input
        return result if out is None else store_result(out, result)

    def _fits_ragged(self, data: Any) -> bool:
        """Return whether ``ragged`` accepts the samples. They must be small, on the CPU, and of a supported dtype."""
        if not len(data):
            return False
        if isinstance(data, (PackedSamples, torch.Tensor)):
            if not is_array(data if isinstance(data, torch.Tensor) else data.flat):
                return False
            dtypes = [data.dtype]
        else:
            arrays = arrays_of(data)
            if arrays is None and not all(map(is_array, data)):
                return False
            if self.empty is None and sum(each.nbytes for each in arrays or data) > MAX_CHUNK_BYTES:
                return False
            dtypes = [each.dtype for each in data] if arrays is None else [data.dtype]
        return not self.dtypes or self.dtypes.issuperset(dtypes)

    def _run_one_by_one(self, inputs: Sequence[Any], out: Any, arguments: Mapping[str, Any], is_tensor: bool) -> Any:
        size = next((len(each) for each in (*inputs, *arguments.values()) if each is not None), 1)
        columns = [[None] * size if each is None else each for each in inputs]
        slots = None if out is None else list(out)
        if slots is not None:
            arguments = {**arguments, "out": slots}
        if arguments:
            count = len(inputs)
            rows = [
                self.single(*row[:count], **dict(zip(arguments, row[count:], strict=True)))
                for row in zip(*columns, *arguments.values(), strict=True)
            ]
        else:
            rows = list(map(self.single, *columns)) if columns else [self.single()]
        if not rows:
            return [] if len(self.layouts) == 1 else ([],) * len(self.layouts)
        if len(self.layouts) > 1:
            results = map(list, zip(*rows, strict=True))
            return tuple(map(_stack_small, results) if is_tensor else results)
        if not is_tensor:
            return rows
        if slots is not None and all(map(operator.is_, rows, slots)):
            return out
        return _stack_small(rows, out if isinstance(out, torch.Tensor) else None)


def _stack_small(samples: list[torch.Tensor], out: torch.Tensor | None = None) -> Items:
    """Copy samples of one shape into one tensor if they are small or fit into ``out``; otherwise return the list."""
    first = samples[0]
    if out is None and first.nbytes > SMALL_SAMPLE:
        return samples  # a copy of large samples costs more than one call per sample
    if any(each.shape != first.shape or each.dtype != first.dtype for each in samples):
        return samples
    fits = out is not None and out.shape[1:] == first.shape and out.dtype == first.dtype
    return torch.stack(samples, out=out if fits else None)


def store_result(slot: torch.Tensor | None, value: torch.Tensor) -> torch.Tensor:
    """Copy a result into its slot in the batch, and return the slot.

    Without a slot, or if the result has another shape or dtype, return the result itself.
    """
    if slot is not None and slot.shape == value.shape and slot.dtype == value.dtype:
        is_in_place = value.data_ptr() == slot.data_ptr() and value.is_contiguous()
        return slot if is_in_place else copy_to(slot, value)
    return make_contiguous(value)
