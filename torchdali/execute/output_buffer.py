"""Memory for the results of per-sample operators: one tensor per batch, or one block for samples of any shapes."""

from __future__ import annotations

import math
import operator as op
import threading
from collections.abc import Sequence
from ctypes import memmove
from typing import Any, Protocol

import torch

from torchdali.calls.chunk_function import put
from torchdali.calls.layouts import fitting
from torchdali.calls.results import check_form
from torchdali.forks import cached_property
from torchdali.kernels.memory import IN_PLACE, SMALL_SAMPLE, ChunkImages, DeviceShare, Placed
from torchdali.tensors import TensorList
from torchdali.tensors._storage import Dense, PackedSamples, SampleStorage
from torchdali.tensors.buffer_pool import BufferPool

__all__ = ["Arena", "DeviceImages", "OpenBuffer", "OutputBuffer"]

_Tensor = torch.Tensor


class Arena:
    """A block of memory to which several threads append samples of any shapes. It is usually pinned.

    Args:
        flat: The memory as a one-dimensional tensor.

    Attributes:
        share: The files that the device's hardware decoder decodes; None without a hardware decoder. See `memory.Room`.
    """

    def __init__(self, flat: torch.Tensor) -> None:
        self.flat, self._used, self._lock = flat, 0, threading.Lock()
        self._size, self.itemsize, self.address = flat.numel(), flat.itemsize, flat.data_ptr()
        self.share: DeviceShare | None = None

    @property
    def used(self) -> int:
        """Number of elements in use."""
        return min(self._used, self._size)

    def take(self, count: int) -> int:
        """Reserve a number of consecutive elements, and return their offset; -1 if they don't fit."""
        # The reserved range belongs to the calling thread, which may then write to it without the lock
        with self._lock:
            place = self._used
            if place + count > self._size:
                return -1
            self._used = place + count
        return place

    def put(self, sample: Any) -> Any:
        """Copy a sample to the arena.

        The thread that computed the sample calls this method while the sample is still in the CPU's cache.

        Returns:
            Offset and shape of the sample. If the sample doesn't fit, has another dtype or isn't on the CPU, the sample
            itself. If the device's hardware decoder will decode the sample, the result of `DeviceShare.keep`.
        """
        if self.share is not None and isinstance(sample, _Tensor) and sample.ndim == 1:
            return self.share.keep(sample)
        if not isinstance(sample, _Tensor) or sample.dtype != self.flat.dtype or not sample.is_cpu:
            return sample
        place = (sample.data_ptr() - self.address) // self.itemsize
        if not 0 <= place < self._size:
            elements = sample.contiguous()
            place = self.take(elements.numel())
            if place < 0:
                return sample
            # With `copy_` of torch, copying a small image would take three times as long.
            memmove(self.address + place * self.itemsize, elements.data_ptr(), elements.nbytes)
        return Placed(place, tuple(sample.shape))

    def sample(self, stored: Any) -> Any:
        """Return the sample for a result of `put`."""
        if not isinstance(stored, Placed):
            return stored
        place, shape = stored
        return self.flat[place : place + math.prod(shape)].view(shape)

    def pack(self, stored: Sequence[Any], layout: str, info: Sequence[str] | None) -> TensorList | None:
        """Build a batch whose samples are views of the arena.

        Args:
            stored: Result of `put`, for each sample.
            layout: Layout of the samples.
            info: Origin of each sample.

        Returns:
            The batch. None if some samples aren't in the arena, if all samples have the same shape, or if they have
            different numbers of axes.
        """
        if set(map(type, stored)) != {Placed}:
            return None
        places, shapes = map(list, zip(*stored, strict=True))
        if shapes.count(shapes[0]) == len(shapes) or len(set(map(len, shapes))) > 1:
            return None
        return TensorList.from_packed(self.flat, places, shapes, fitting(layout, len(shapes[0])), info)


class DeviceImages(Protocol):
    """Images of a batch that the device's hardware decoder decoded into memory of the device."""

    def join(
        self, opened: OpenBuffer, batches: Sequence[TensorList], keeps: bool
    ) -> tuple[torch.Tensor, list[int], list[tuple[int, ...]], list[TensorList]]:
        """Copy the batch's other images to the device, after the decoded images.

        Must run inside `DeviceStream.context`.

        Args:
            opened: All images of the batch: files that the hardware decoder decoded, images in the arena, and images
                that didn't fit into the arena.
            batches: Small batches to include in the same copy, if they fit.
            keeps: True if the batch needs its own memory, because it may be used after the decoder reuses its memory.

        Returns:
            The elements on the device, the start and the shape of each image, and the small batches that were copied.
        """

    def release(self) -> None:
        """Allow later batches to reuse the images' memory."""


class OpenBuffer:
    """The results of one batch for one edge (an output of an operator), and the memory for these results.

    Args:
        size: Number of samples of the batch.
        whole: A tensor for all samples; None if the shape of the samples is unknown. The attribute doesn't change after
            the buffer is opened, so threads read it without a lock. Each operator writes only to its chunk's rows.
        arena: Memory for samples of any shapes; None if it isn't needed.
        there: Images that were decoded on the device, or None.
    """

    def __init__(
        self,
        size: int,
        whole: torch.Tensor | None = None,
        arena: Arena | None = None,
        there: DeviceImages | None = None,
    ) -> None:
        self.size, self.whole, self.arena, self.there = size, whole, arena, there
        # The samples and results of each chunk, by its first sample; None for results in `whole`. No lock is needed:
        # each thread writes only the keys of its own chunks, and the dictionary is read only after all chunks are done.
        self._chunks: dict[int, tuple[range, SampleStorage | Sequence[Any] | None]] = {}

    @cached_property
    def parts(self) -> Sequence[torch.Tensor | None]:
        """The row of `whole` for each sample; None without `whole`."""
        return [None] * self.size if self.whole is None else self.whole.unbind(0)

    def place(self, samples: range) -> torch.Tensor | None:
        """Return the rows of `whole` for a range of samples; None without `whole`."""
        return None if self.whole is None else self.whole[samples.start : samples.stop]

    def store(self, samples: range, results: Any) -> None:
        """Store an operator's results for a range of samples. Results that fit are copied into the buffer's memory.

        Args:
            samples: The range.
            results: A tensor, or a sequence with one item per sample.
        """
        self._chunks[samples.start] = samples, self._stored_batch(samples, results)

    def _stored_batch(self, samples: range, results: Any) -> SampleStorage | Sequence[Any] | None:
        if isinstance(results, PackedSamples):
            results = results.straight()
        if self.arena is not None:
            return results if isinstance(results, ChunkImages) else list(map(self.arena.put, results))
        if isinstance(results, PackedSamples):
            return results
        if isinstance(results, torch.Tensor):
            # Small results aren't copied into `whole` here. At the end, one call copies the results of all chunks. This
            # is faster, because each call releases the GIL.
            place = self.place(samples) if results.nbytes > SMALL_SAMPLE else None
            stored = put(place, results)
            return None if stored is place else Dense(stored)
        if all(result is IN_PLACE for result in results):
            return None
        places = self.parts[samples.start : samples.stop]
        each = [_stored_in(place, result) for place, result in zip(places, results, strict=True)]
        return None if self.whole is not None and all(map(op.is_, each, places)) else each

    def replace_results(self, results: Sequence[Any]) -> OpenBuffer:
        """Return a buffer for the same edge with other results, one per sample."""
        buffer = OpenBuffer(len(results), arena=self.arena, there=self.there)
        buffer.store(range(len(results)), results)
        return buffer

    def chunks(self) -> list[tuple[range, Any]]:
        """Return the results of each chunk, in order."""
        return [self._chunks[first] for first in sorted(self._chunks)]

    def forget(self, samples: range) -> None:
        """Drop the results of a chunk."""
        self._chunks.pop(samples.start, None)

    def storages(self) -> list[SampleStorage] | None:
        """Return the storage of each chunk, in order.

        Return None if a result is missing, or if a chunk's results aren't in one storage.
        """
        chunks = self.chunks()
        if not chunks or sum(len(samples) for samples, _ in chunks) != self.size:
            return None
        if self.whole is not None and all(stored is None for _, stored in chunks):
            return [Dense(self.whole)]
        storages: list[SampleStorage] = []
        for samples, stored in chunks:
            place = self.place(samples) if stored is None else None
            if place is not None:
                storages.append(Dense(place))
            elif isinstance(stored, SampleStorage):
                storages.append(stored)
            else:
                return None
        return storages

    def sample_results(self) -> list[Any]:
        """Return each sample's stored result: a tensor, or an offset and shape in the arena; None if it is missing."""
        results: list[Any] = [None] * self.size
        for samples, stored in self._chunks.values():
            results[samples.start : samples.stop] = (
                self.parts[samples.start : samples.stop] if stored is None else stored
            )
        return results

    def samples(self) -> list[Any]:
        """Return the result of each sample as a tensor; None for missing results."""
        return self.sample_results() if self.arena is None else list(map(self.arena.sample, self.sample_results()))


class OutputBuffer:
    """Allocates the memory for the results of one edge. The shape is guessed from the previous batch.

    A wrong guess costs little: if a result doesn't fit into its row of the tensor, the operator returns a new tensor,
    and the batch is built from the new tensors.

    Args:
        buffers: Pool of memory.
        packs: True if samples of different shapes are also stored in one block of memory, because they will be copied
            to a device.
    """

    def __init__(self, buffers: BufferPool, packs: bool = False) -> None:
        self._buffers, self._packs = buffers, packs
        self._ragged: tuple[int, torch.dtype] | None = None
        self._guess: tuple[tuple[int, ...], torch.dtype] | None = None

    @property
    def sample(self) -> int:
        """Bytes per sample of the previous batch; 0 if its shapes differed.

        The size of chunks depends on this number.
        """
        guess = self._guess
        return 0 if guess is None else math.prod(guess[0]) * guess[1].itemsize

    def open(self, size: int, chunk: int = 0) -> OpenBuffer:
        """Return a buffer for the results of a batch.

        Args:
            size: Number of samples of the batch.
            chunk: Number of samples per chunk if operators return a chunk's results as one tensor; otherwise 0. If one
                chunk has all samples, its tensor becomes the batch, and no memory is allocated.
        """
        # Read each attribute once, because another thread that closes an earlier batch may change the guess.
        guess, ragged = self._guess, self._ragged
        if ragged is not None and not chunk and size:
            elements, dtype = ragged
            return OpenBuffer(size, arena=Arena(self._buffers.empty((elements,), dtype)))
        if guess is None or size == 0 or chunk >= size:
            return OpenBuffer(size)
        shape, dtype = guess
        return OpenBuffer(size, self._buffers.empty((size, *shape), dtype))

    def close(self, opened: OpenBuffer, layout: str, info: Sequence[str] | None) -> TensorList:
        """Create the batch from the results, after all chunks are done."""
        if opened.arena is not None:
            packed = opened.arena.pack(opened.sample_results(), layout, info)
            if packed is not None:
                self.make_room(opened.arena.used, opened.arena.flat.dtype)
                return packed
        storages = opened.storages()
        if storages is None:
            return self._close_samples(opened.samples(), layout, info)
        return self._close_storages(storages, layout, info)

    def _close_samples(self, samples: list[Any], layout: str, info: Sequence[str] | None) -> TensorList:
        first = next((d for d in samples if d is not None), None)
        layout = layout if first is None else fitting(layout, first.ndim)
        if first is None or any(d is None or d.shape != first.shape or d.dtype != first.dtype for d in samples):
            self._guess = None
            check_form(samples)
            return self._ragged_batch(samples, layout, info)
        self._ragged = None
        self._guess = tuple(first.shape), first.dtype
        stacked = torch.stack(samples, out=self._buffers.empty((len(samples), *first.shape), first.dtype))
        return TensorList.from_dense(stacked, layout, source_info=info)

    def _close_storages(self, storages: list[SampleStorage], layout: str, info: Sequence[str] | None) -> TensorList:
        if len(storages) == 1 and isinstance(storages[0], PackedSamples):
            self._guess = None
            return _of_packed(storages[0], layout, info)
        tensors = [each.dense for each in storages if each.dense is not None]
        forms = {(each.shape[1:], each.dtype) for each in tensors}
        if len(forms) > 1 or len(tensors) < len(storages):
            return self._close_samples([sample for each in storages for sample in each], layout, info)
        (shape, dtype) = forms.pop()
        self._guess = tuple(shape), dtype
        whole = tensors[0]
        if len(tensors) > 1:
            whole = torch.cat(tensors, out=self._buffers.empty((sum(map(len, tensors)), *shape), dtype))
        return TensorList.from_dense(whole, fitting(layout, whole.ndim - 1), source_info=info)

    def _ragged_batch(self, samples: list[Any], layout: str, info: Sequence[str] | None) -> TensorList:
        dtype = None if not samples or samples[0] is None else samples[0].dtype
        alike = all(d is not None and d.dtype == dtype for d in samples)
        if self._packs and alike and dtype is not None and dtype != torch.bfloat16:
            self.make_room(sum(d.numel() for d in samples), dtype)
        return TensorList.from_samples(list(samples), layout, source_info=info)

    def make_room(self, elements: int, dtype: torch.dtype) -> None:
        """Choose the capacity of the next arena: a quarter more than this batch used.

        If a larger batch follows, the samples that don't fit are stored outside the arena and copied later.
        """
        room = self._ragged[0] if self._ragged is not None else 0
        if not elements * 1.1 <= room <= elements * 2:
            room = elements + elements // 4
        self._guess, self._ragged = None, (room, dtype)


def _stored_in(place: torch.Tensor | None, result: Any) -> torch.Tensor | None:
    return place if result is IN_PLACE else None if result is None else put(place, result)


def _of_packed(packed: PackedSamples, layout: str, info: Sequence[str] | None) -> TensorList:
    """Create the batch from a storage that contains all samples."""
    shapes, layout = packed.shape(), fitting(layout, packed.ndim())
    if packed.is_uniform():
        return TensorList.from_dense(packed.flat.view(len(packed), *shapes[0]), layout, info)
    if packed.rows is None:
        return TensorList.from_packed(packed.flat, packed.offsets, shapes, layout, info)
    batch = TensorList.from_rows(*packed.rows, layout)
    batch.set_source_infos(info)
    return batch
