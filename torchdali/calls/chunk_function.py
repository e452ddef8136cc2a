"""One operator on several samples in one call: by its body for them, or one by one."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from torchdali.declaration.batching import MOST_BYTES
from torchdali.kernels.memory import SMALL_SAMPLE, Empty, fresh, is_array
from torchdali.kernels.rearrange import copy_to, dense
from torchdali.tensors._storage import PackedSamples, arrays_of

__all__ = ["Body", "ChunkFunction", "Items", "put", "report", "reports", "unless_tested"]

Items: TypeAlias = torch.Tensor | Sequence[torch.Tensor]
"""Samples: a tensor ``(N, ...)``, `PackedSamples`, or a list; arrays are `SeparateSamples`."""

Body = Callable[..., Any]


def unless_tested(error: Exception) -> None:
    """Pass over a mistake in a body: its samples were done one by one. In the tests it is an error.

    Raises:
        RuntimeError: ``TORCHDALI_BROKEN_BODIES=raise`` is set.
    """
    if os.environ.get("TORCHDALI_BROKEN_BODIES") == "raise":
        raise RuntimeError("a body for several samples failed, and none of them fails alone") from error


class _Reports(threading.local):
    """Reports of mistakes in bodies that run in this thread.

    Attributes:
        receiver: Is called with the exception. The runner of implementations sets it, and restores the previous one.
    """

    def __init__(self) -> None:
        self.receiver: Callable[[Exception], None] = unless_tested


reports = _Reports()


def report(error: Exception) -> None:
    """Report that a body for several samples, or another fast path, failed although all samples succeed one by one."""
    reports.receiver(error)


@dataclass
class ChunkFunction:
    """An operator, ready for its constants and layouts: it does several samples by a body for them, or one by one.

    Attributes:
        single: Takes one sample of each input, per-sample arguments, rng, out.
        layouts: Layouts of the outputs.
        tensor: Its body for samples in one tensor.
        ragged: Its body for samples of any shapes.
        dtypes: Dtypes of the first input for which ``ragged`` was made; empty for all.
        empty: Gives ``ragged`` memory for its results, so that it takes samples of any size; otherwise it takes
            `MOST_BYTES` of them.
        stacks: Bring small samples that are done one by one into one tensor, also if the inputs were none.
        on_device: Takes the whole batch on an accelerator; None if the operator cannot.
    """

    single: Body
    layouts: tuple[str, ...]
    tensor: Body | None = None
    ragged: Body | None = None
    dtypes: frozenset[torch.dtype] = frozenset()
    empty: Empty | None = None
    stacks: bool = False
    on_device: Body | None = None

    def __call__(
        self, *inputs: Items | None, out: torch.Tensor | Sequence[Any] | None = None, **arguments: Sequence[Any]
    ) -> Any:
        """Do several samples.

        Args:
            inputs: Samples of each input; None for an input that was not given.
            out: Memory for the results: ``(N, ...)``, or a place for each. Results that do not fit are elsewhere.
            arguments: A value for each sample; random numbers are ``rng``.

        Returns:
            The samples of the output; for several outputs, a tuple.
        """
        result, failure = NotImplemented, None
        is_tensor = bool(inputs) and all(each is None or isinstance(each, torch.Tensor) for each in inputs)
        if self.tensor is not None and is_tensor and "rng" not in arguments:
            result = self._of_tensors(self.tensor, inputs, out, arguments)
        elif self.ragged is not None and not arguments and inputs[0] is not None and self._fit(inputs[0]):
            try:
                result = self.ragged(inputs[0], empty=self.empty or fresh)
            except Exception as error:  # a single sample raises it again, and says whose it is
                failure = error
        if result is NotImplemented:
            result = self._in_turn(inputs, out, arguments, is_tensor or self.stacks)
        if failure is not None:
            report(failure)
        return result

    def one_by_one(
        self, *inputs: Items | None, out: torch.Tensor | Sequence[Any] | None = None, **arguments: Sequence[Any]
    ) -> Any:
        """Do several samples as `__call__` does, without a body for several, and return lists."""
        return self._in_turn(inputs, out, arguments, False)

    def _of_tensors(self, body: Body, inputs: Sequence[Any], out: Any, arguments: Mapping[str, Any]) -> Any:
        out = out if isinstance(out, torch.Tensor) else None
        result = body(*inputs, out=out, **arguments)
        if (result is out and out is not None) or not isinstance(result, torch.Tensor):
            return result
        if any(result is each for each in inputs):
            result = result.clone()  # writing into the result must not change the input
        return result if out is None else put(out, result)

    def _fit(self, data: Any) -> bool:
        """Return whether the ragged body takes samples: by their number, types and size."""
        if not len(data):
            return False
        if isinstance(data, (PackedSamples, torch.Tensor)):
            if not is_array(data if isinstance(data, torch.Tensor) else data.flat):
                return False
            kinds = [data.dtype]
        else:
            arrays = arrays_of(data)
            if arrays is None and not all(map(is_array, data)):
                return False
            if self.empty is None and sum(each.nbytes for each in arrays or data) > MOST_BYTES:
                return False
            kinds = [each.dtype for each in data] if arrays is None else [data.dtype]
        return not self.dtypes or self.dtypes.issuperset(kinds)

    def _in_turn(self, inputs: Sequence[Any], out: Any, arguments: Mapping[str, Any], is_tensor: bool) -> Any:
        size = next((len(each) for each in (*inputs, *arguments.values()) if each is not None), 1)
        columns = [[None] * size if each is None else each for each in inputs]
        places = None if out is None else list(out)
        if places is not None:
            arguments = {**arguments, "out": places}
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
        if places is not None and all(map(operator.is_, rows, places)):
            return out
        return _stack_small(rows, out if isinstance(out, torch.Tensor) else None)


def _stack_small(samples: list[torch.Tensor], out: torch.Tensor | None = None) -> Items:
    """Copy small samples, or samples that fit into ``out``, into one tensor; leave others unchanged."""
    first = samples[0]
    if out is None and first.nbytes > SMALL_SAMPLE:
        return samples  # copying them costs more than processing them one by one
    if any(each.shape != first.shape or each.dtype != first.dtype for each in samples):
        return samples
    fits = out is not None and out.shape[1:] == first.shape and out.dtype == first.dtype
    return torch.stack(samples, out=out if fits else None)


def put(slot: torch.Tensor | None, value: torch.Tensor) -> torch.Tensor:
    """Copy a result to its place in the batch, unless it is there; if it has none or does not fit, return it."""
    if slot is not None and slot.shape == value.shape and slot.dtype == value.dtype:
        is_there = value.data_ptr() == slot.data_ptr() and value.is_contiguous()
        return slot if is_there else copy_to(slot, value)
    return dense(value)
