"""Iterators for ``bad_samples="skip"``, which omit samples with damaged or missing files from their batch."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torchdali.dataloader._iterators import AcceleratedIterator
from torchdali.dataloader._torch_internals import SingleProcessIterator, WorkerIterator, pin_memory
from torchdali.errors import DecodeError, warn

__all__ = ["ITERATORS", "Skipped", "skipping"]

DAMAGED = (OSError, DecodeError, SyntaxError, EOFError, struct.error, zlib.error)
"""Errors that a damaged or missing file causes. All other errors are mistakes in the code, and are raised."""


class Skipped:
    """The samples that the last loop over a loader has skipped.

    Attributes:
        lines: Index and reason of each skipped sample.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, lines: Sequence[str]) -> None:
        """Add skipped samples. If no sample was skipped before in the loop, warn about the first sample."""
        if lines and not self.lines:
            warn(f"a bad sample was skipped (stats() lists all of them): {lines[0]}")
        self.lines += lines


class _Bad(NamedTuple):
    """Placeholder for a sample that can't be read. `line` is a text with the sample's index and the reason."""

    line: str


class _Partial:
    """A batch without its bad samples.

    Attributes:
        data: The batch; None if all of its samples are bad.
        lines: Index and reason of each bad sample.
    """

    def __init__(self, data: Any, lines: list[str]) -> None:
        self.data, self.lines = data, lines

    def pin_memory(self, device: Any = None) -> _Partial:
        """Copy the batch into pinned memory. PyTorch calls this method."""
        return _Partial(pin_memory(self.data, device), self.lines)


class _CheckedDataset:
    """A wrapper of a dataset that returns `_Bad` for samples that can't be read."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: Any) -> Any:
        try:
            return self._dataset[index]
        except DAMAGED as error:
            return _Bad(f"sample {index}: {type(error).__name__}: {error}")

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        own = getattr(self._dataset, "__getitems__", None)
        if own is not None:
            try:
                return list(own(indices))
            except DAMAGED:  # the samples are read one by one below
                pass
        return [self[index] for index in indices]


class _CollateGood:
    """A wrapper of a collate function that passes only good samples to the function.

    Args:
        collate: The user's collate function, or PyTorch's.
        is_batched: True if the argument of the collate function is a list of samples.
    """

    def __init__(self, collate: Callable[[Any], Any], is_batched: bool) -> None:
        self._collate, self._is_batched = collate, is_batched

    def __call__(self, samples: Any) -> Any:
        rows = samples if self._is_batched else [samples]
        lines = [sample.line for sample in rows if isinstance(sample, _Bad)]
        if not lines:
            return self._collate(samples)
        good = [sample for sample in rows if not isinstance(sample, _Bad)]
        return _Partial(self._collate(good) if good else None, lines)


def skipping(loader: Any) -> dict[str, Any]:
    """Return a loader's dataset and collate function, wrapped so that PyTorch's iterators can skip bad samples."""
    return {
        "dataset": _CheckedDataset(loader.dataset),
        "collate_fn": _CollateGood(loader.collate_fn, loader.batch_sampler is not None),
    }


class _Unwrapping:
    """Mixin for iterators that replaces a `_Partial` by its batch, and skips batches without good samples."""

    skipped: Skipped

    def _next_data(self) -> Any:
        while isinstance(data := super()._next_data(), _Partial):  # type: ignore[misc]
            self.skipped.note(data.lines)
            if data.data is not None:
                return data.data
            self.progress.batches = self._position()  # type: ignore[attr-defined]
        return data


class _Accelerated(_Unwrapping, AcceleratedIterator):
    """The accelerated iterator, extended to skip bad samples.

    The engine returns each batch with the positions of the bad samples.
    """

    def _collate(self, indices: list[int], values: list[Any]) -> Any:
        images, *bad = values
        good = [index for position, index in enumerate(indices) if not bad or position not in bad[0]]
        return super()._collate(good, [images]) if good else _Partial(None, [])


class _SingleProcess(_Unwrapping, SingleProcessIterator):
    """PyTorch's iterator without workers, extended to skip bad samples."""


class _CheckedWorkers(_Unwrapping, WorkerIterator):
    """PyTorch's iterator with workers, extended to skip bad samples."""


ITERATORS = _Accelerated, _SingleProcess, _CheckedWorkers
