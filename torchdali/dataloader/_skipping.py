"""Iterators for ``bad_samples="skip"``, which omit samples with damaged or missing files from their batch."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torchdali.dataloader._iterators import AcceleratedIterator
from torchdali.dataloader._torch_internals import SingleProcessIterator, WorkerIterator, pin_memory
from torchdali.errors import DecodeError, warn

__all__ = ["ITERATORS", "SkippedSamples", "wrap_for_skipping"]

DAMAGED = (OSError, DecodeError, SyntaxError, EOFError, struct.error, zlib.error)
"""Errors that a damaged or missing file causes. All other errors are mistakes in the code, and are raised."""


class SkippedSamples:
    """The samples that the last loop over a loader has skipped.

    Attributes:
        descriptions: Index and reason of each skipped sample.
    """

    def __init__(self) -> None:
        self.descriptions: list[str] = []

    def extend(self, descriptions: Sequence[str]) -> None:
        """Add skipped samples. If no sample was skipped before in the loop, warn about the first sample."""
        if descriptions and not self.descriptions:
            warn(f"a bad sample was skipped (stats() lists all of them): {descriptions[0]}")
        self.descriptions += descriptions


class _UnreadableSample(NamedTuple):
    """Placeholder for a sample that can't be read. `description` is a text with the sample's index and the reason."""

    description: str


class _PartialBatch:
    """A batch without its bad samples.

    Attributes:
        data: The batch; None if all of its samples are bad.
        descriptions: Index and reason of each bad sample.
    """

    def __init__(self, data: Any, descriptions: list[str]) -> None:
        self.data, self.descriptions = data, descriptions

    def pin_memory(self, device: Any = None) -> _PartialBatch:
        """Copy the batch into pinned memory. PyTorch calls this method."""
        return _PartialBatch(pin_memory(self.data, device), self.descriptions)


class _CheckedDataset:
    """A wrapper of a dataset that returns `_UnreadableSample` for samples that can't be read."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: Any) -> Any:
        try:
            return self._dataset[index]
        except DAMAGED as error:
            return _UnreadableSample(f"sample {index}: {type(error).__name__}: {error}")

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        get_items = getattr(self._dataset, "__getitems__", None)
        if get_items is not None:
            try:
                return list(get_items(indices))
            except DAMAGED:  # the samples are read one by one below
                pass
        return [self[index] for index in indices]


class _GoodSampleCollate:
    """A wrapper of a collate function that passes only good samples to the function.

    Args:
        collate: The user's collate function, or PyTorch's.
        is_batched: True if the argument of the collate function is a list of samples.
    """

    def __init__(self, collate: Callable[[Any], Any], is_batched: bool) -> None:
        self._collate, self._is_batched = collate, is_batched

    def __call__(self, samples: Any) -> Any:
        sample_list = samples if self._is_batched else [samples]
        descriptions = [sample.description for sample in sample_list if isinstance(sample, _UnreadableSample)]
        if not descriptions:
            return self._collate(samples)
        good = [sample for sample in sample_list if not isinstance(sample, _UnreadableSample)]
        return _PartialBatch(self._collate(good) if good else None, descriptions)


def wrap_for_skipping(loader: Any) -> dict[str, Any]:
    """Return a loader's dataset and collate function, wrapped so that PyTorch's iterators can skip bad samples."""
    return {
        "dataset": _CheckedDataset(loader.dataset),
        "collate_fn": _GoodSampleCollate(loader.collate_fn, loader.batch_sampler is not None),
    }


class _SkippingMixin:
    """Mixin for iterators that replaces a `_PartialBatch` by its batch, and skips batches without good samples."""

    skipped: SkippedSamples

    def _next_data(self) -> Any:
        while isinstance(data := super()._next_data(), _PartialBatch):  # type: ignore[misc]
            self.skipped.extend(data.descriptions)
            if data.data is not None:
                return data.data
            self.progress.batches = self._position()  # type: ignore[attr-defined]
        return data


class _SkippingAcceleratedIterator(_SkippingMixin, AcceleratedIterator):
    """The accelerated iterator, extended to skip bad samples.

    The engine returns each batch with the positions of the bad samples.
    """

    def _collate(self, indices: list[int], values: list[Any]) -> Any:
        images, *bad = values
        good = [index for position, index in enumerate(indices) if not bad or position not in bad[0]]
        return super()._collate(good, [images]) if good else _PartialBatch(None, [])


class _SkippingSingleProcessIterator(_SkippingMixin, SingleProcessIterator):
    """PyTorch's iterator without workers, extended to skip bad samples."""


class _SkippingWorkerIterator(_SkippingMixin, WorkerIterator):
    """PyTorch's iterator with workers, extended to skip bad samples."""


ITERATORS = _SkippingAcceleratedIterator, _SkippingSingleProcessIterator, _SkippingWorkerIterator
