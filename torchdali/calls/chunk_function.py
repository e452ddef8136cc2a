"""One operator on several samples in one call: by its body for them, or one by one."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from torchdali.declaration.batching import MOST_BYTES
from torchdali.kernels.memory import Empty, fresh, is_array
from torchdali.kernels.rearrange import copy_to, dense
from torchdali.tensors._storage import Packed, arrays_of

__all__ = ["Body", "ChunkFunction", "Items", "put"]

Items: TypeAlias = torch.Tensor | Sequence[torch.Tensor]
"""Samples: a tensor ``(N, ...)``, `Packed`, or a list; arrays are `Samples`."""

Body = Callable[..., Any]


@dataclass
class ChunkFunction:
    """An operator that does several samples in one call: by its body for them, if it has one, or one by one.

    Attributes:
        single: Does one sample.
        outputs: Number of outputs.
        tensor: Its body for samples in one tensor.
        ragged: Its body for samples of any shapes.
        dtypes: Of the first input, for which ``ragged`` was made; all, if there are none.
        empty: Gives ``ragged`` memory for its results, so that it takes samples of any size; otherwise it takes
            `MOST_BYTES` of them.
        stacks: Bring what is done one by one into one tensor, if the shapes are equal, also if the inputs were none.
        bytes: Of the first input, of a sample of the last call of ``ragged``, on average.
    """

    single: Body
    outputs: int
    tensor: Body | None = None
    ragged: Body | None = None
    dtypes: frozenset[torch.dtype] = frozenset()
    empty: Empty | None = None
    stacks: bool = False
    bytes: int = 0

    def __call__(
        self, *inputs: Items | None, out: torch.Tensor | Sequence[Any] | None = None, **arguments: Sequence[Any]
    ) -> Any:
        """Do several samples.

        Args:
            inputs: Samples of each input; None for one that is not there.
            out: Memory for the results: ``(N, ...)``, or a place for each. Results that do not fit are elsewhere.
            arguments: A value for each sample; random numbers are ``rng``.

        Returns:
            The samples of the output; for several outputs, a tuple.
        """
        result = NotImplemented
        is_tensor = bool(inputs) and all(each is None or isinstance(each, torch.Tensor) for each in inputs)
        if self.tensor is not None and is_tensor and "rng" not in arguments:
            result = self._of_tensors(self.tensor, inputs, out, arguments)
        elif self.ragged is not None and not arguments and inputs[0] is not None and self._fit(inputs[0]):
            with contextlib.suppress(Exception):  # a single sample raises it again, and says whose it is
                result = self.ragged(inputs[0], empty=self.empty or fresh)
        if result is NotImplemented:
            return self._one_by_one(inputs, out, arguments, is_tensor or self.stacks)
        return result

    def _of_tensors(self, body: Body, inputs: Sequence[Any], out: Any, arguments: Mapping[str, Any]) -> Any:
        out = out if isinstance(out, torch.Tensor) else None
        result = body(*inputs, out=out, **arguments)
        if (result is out and out is not None) or not isinstance(result, torch.Tensor):
            return result
        if any(result is each for each in inputs):
            result = result.clone()  # writing into the result must not change the input
        return result if out is None else put(out, result)

    def _fit(self, data: Any) -> bool:
        """Return whether the ragged body takes samples: by their types, and their size."""
        if isinstance(data, (Packed, torch.Tensor)):
            if not is_array(data if isinstance(data, torch.Tensor) else data.flat):
                return False
            kinds = [data.dtype]
        else:
            arrays = arrays_of(data)
            if arrays is None and not all(map(is_array, data)):
                return False
            total = sum(each.nbytes for each in arrays or data)
            self.bytes = total // max(1, len(data))  # a plain store: several threads say about the same
            if self.empty is None and total > MOST_BYTES:
                return False
            kinds = [each.dtype for each in data] if arrays is None else [data.dtype]
        return not self.dtypes or self.dtypes.issuperset(kinds)

    def _one_by_one(self, inputs: Sequence[Any], out: Any, arguments: Mapping[str, Any], is_tensor: bool) -> Any:
        size = next(len(each) for each in (*inputs, *arguments.values()) if each is not None)
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
            rows = list(map(self.single, *columns))
        if not rows:
            return [] if self.outputs == 1 else ([],) * self.outputs
        if self.outputs > 1:
            results = map(list, zip(*rows, strict=True))
            return tuple(map(_stacked, results) if is_tensor else results)
        if not is_tensor:
            return rows
        if places is not None and all(map(operator.is_, rows, places)):
            return out
        return _stacked(rows, out if isinstance(out, torch.Tensor) else None)


def _stacked(samples: list[torch.Tensor], out: torch.Tensor | None = None) -> Items:
    """Bring samples into one tensor, ``out`` if they fit; if their shapes differ, leave them as they are."""
    first = samples[0]
    if any(each.shape != first.shape or each.dtype != first.dtype for each in samples):
        return samples
    fits = out is not None and out.shape[1:] == first.shape and out.dtype == first.dtype
    return torch.stack(samples, out=out if fits else None)


def put(slot: torch.Tensor | None, value: torch.Tensor) -> torch.Tensor:
    """Copy a result to its place in the batch; if it has none or does not fit, return it for itself."""
    if slot is not None and slot.shape == value.shape and slot.dtype == value.dtype:
        return copy_to(slot, value)
    return dense(value)
