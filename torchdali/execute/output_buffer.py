"""Memory for the results of operators that process one sample after the other.

A batch's results are in one tensor if all samples have the same shape. Samples of different shapes can be in one block
of memory, an *arena*. A *chunk* is a group of consecutive samples that a thread processes together.
"""

from __future__ import annotations

import math
import operator as op
import threading
from collections.abc import Sequence
from ctypes import memmove
from typing import Any, Protocol

import torch

from torchdali.calls.chunk_function import store_result
from torchdali.calls.layouts import matching_layout
from torchdali.calls.results import check_uniform
from torchdali.forks import cached_property
from torchdali.kernels.memory import IN_PLACE, SMALL_SAMPLE, BufferedResult, ChunkImages, DeviceShare
from torchdali.tensors import TensorList
from torchdali.tensors._storage import Dense, PackedSamples, SampleStorage
from torchdali.tensors.buffer_pool import BufferPool

__all__ = ["Arena", "DeviceImages", "OpenBuffer", "OutputBuffer"]

_Tensor = torch.Tensor


class Arena:
    """A block of memory (pinned if there is a GPU) to which several threads append samples of any shapes.

    Args:
        flat: The memory as a one-dimensional tensor.

    Attributes:
        share: The encoded images that the device's hardware decoder decodes; None without a hardware decoder.
    """

    def __init__(self, flat: torch.Tensor) -> None:
        self.flat, self._used, self._lock = flat, 0, threading.Lock()
        self._size, self.itemsize, self.address = flat.numel(), flat.itemsize, flat.data_ptr()
        self.share: DeviceShare | None = None

    @property
    def used(self) -> int:
        """Number of elements in use."""
        return min(self._used, self._size)

    def reserve(self, count: int) -> int:
        """Reserve `count` consecutive elements, and return the first element's offset; -1 if they don't fit."""
        # The calling thread may write to the reserved elements without the lock.
        with self._lock:
            offset = self._used
            if offset + count > self._size:
                return -1
            self._used = offset + count
        return offset

    def put(self, sample: Any) -> Any:
        """Copy a sample to the arena.

        Returns:
            Offset and shape of the sample in the arena. If the sample doesn't fit, has another dtype than the arena or
            isn't on the CPU, the sample itself. If the sample is an encoded image for the hardware decoder, the result
            of `DeviceShare.add_file`.
        """
        if self.share is not None and isinstance(sample, _Tensor) and sample.ndim == 1:
            return self.share.add_file(sample)
        if not isinstance(sample, _Tensor) or sample.dtype != self.flat.dtype or not sample.is_cpu:
            return sample
        offset = (sample.data_ptr() - self.address) // self.itemsize
        if not 0 <= offset < self._size:
            elements = sample.contiguous()
            offset = self.reserve(elements.numel())
            if offset < 0:
                return sample
            # For a small image, torch's `copy_` would take three times as long.
            memmove(self.address + offset * self.itemsize, elements.data_ptr(), elements.nbytes)
        return BufferedResult(offset, tuple(sample.shape))

    def sample(self, stored: Any) -> Any:
        """Return the sample that `put` has stored; `stored` is the result of `put`."""
        if not isinstance(stored, BufferedResult):
            return stored
        offset, shape = stored
        return self.flat[offset : offset + math.prod(shape)].view(shape)

    def pack(self, stored: Sequence[Any], layout: str, info: Sequence[str] | None) -> TensorList | None:
        """Build a batch whose samples are views of the arena.

        Args:
            stored: The results of `put`, one per sample.
            layout: Layout of the samples.
            info: Origin of each sample.

        Returns:
            The batch. None if some samples aren't in the arena, if all samples have the same shape, or if the samples
            have different numbers of axes.
        """
        if set(map(type, stored)) != {BufferedResult}:
            return None
        offsets, shapes = map(list, zip(*stored, strict=True))
        if shapes.count(shapes[0]) == len(shapes) or len(set(map(len, shapes))) > 1:
            return None
        return TensorList.from_packed(self.flat, offsets, shapes, matching_layout(layout, len(shapes[0])), info)


class DeviceImages(Protocol):
    """Images of a batch that the device's hardware decoder decoded into memory of the device."""

    def join(
        self, buffer: OpenBuffer, batches: Sequence[TensorList], must_copy: bool
    ) -> tuple[torch.Tensor, list[int], list[tuple[int, ...]], list[TensorList]]:
        """Copy the images that the CPU decoded to the device, after the images that the hardware decoder decoded.

        The caller must use `DeviceStream.context`.

        Args:
            buffer: The results of the batch: encoded images that the hardware decoder decoded, images in the arena, and
                images that didn't fit into the arena.
            batches: Small batches that are copied together with the images if they fit into the arena.
            must_copy: True if the images must be copied to new memory, because they may still be used after the
                hardware decoder reuses its memory.

        Returns:
            The elements on the device, the start and the shape of each image, and the small batches that were copied.
        """

    def release(self) -> None:
        """Allow later batches to reuse the images' memory."""


class OpenBuffer:
    """The results of one batch for one output of an operator, and the memory for these results.

    Args:
        size: Number of samples of the batch.
        tensor: A tensor for the results, with one row per sample; None if the shape of the results is unknown. Threads
            use this attribute without a lock, because each thread writes only to the rows of its own chunks.
        arena: Memory for samples of any shapes, or None.
        device_images: Images that were decoded on the device, or None.
    """

    def __init__(
        self,
        size: int,
        tensor: torch.Tensor | None = None,
        arena: Arena | None = None,
        device_images: DeviceImages | None = None,
    ) -> None:
        self.size, self.tensor, self.arena, self.device_images = size, tensor, arena, device_images
        # The samples and results of each chunk. The keys are the chunks' first samples. Results in `tensor` are None.
        # No lock is needed, because each thread writes only the keys of its own chunks, and the dictionary is read only
        # after all chunks are done.
        self._chunks: dict[int, tuple[range, SampleStorage | Sequence[Any] | None]] = {}

    @cached_property
    def parts(self) -> Sequence[torch.Tensor | None]:
        """The rows of `tensor`, one per sample. Each row is None if `tensor` is None."""
        return [None] * self.size if self.tensor is None else self.tensor.unbind(0)

    def rows(self, samples: range) -> torch.Tensor | None:
        """Return the rows of `tensor` for a range of samples; None if `tensor` is None."""
        return None if self.tensor is None else self.tensor[samples.start : samples.stop]

    def store(self, samples: range, results: Any) -> None:
        """Store an operator's results for a chunk. If the results fit into `tensor` or the arena, copy them there.

        Args:
            samples: The samples of the chunk.
            results: A tensor, or a sequence with one item per sample.
        """
        self._chunks[samples.start] = samples, self._store_batch(samples, results)

    def _store_batch(self, samples: range, results: Any) -> SampleStorage | Sequence[Any] | None:
        if isinstance(results, PackedSamples):
            results = results.untranspose()
        if self.arena is not None:
            return results if isinstance(results, ChunkImages) else list(map(self.arena.put, results))
        if isinstance(results, PackedSamples):
            return results
        if isinstance(results, torch.Tensor):
            # Small results aren't copied into `tensor` here. `OutputBuffer.close` copies the results of all chunks in
            # one call. One call is faster than several calls, because each call releases the GIL.
            target = self.rows(samples) if results.nbytes > SMALL_SAMPLE else None
            stored = store_result(target, results)
            return None if stored is target else Dense(stored)
        if all(result is IN_PLACE for result in results):
            return None
        targets = self.parts[samples.start : samples.stop]
        each = [_store_in(target, result) for target, result in zip(targets, results, strict=True)]
        return None if self.tensor is not None and all(map(op.is_, each, targets)) else each

    def replace_results(self, results: Sequence[Any]) -> OpenBuffer:
        """Return a copy of this buffer with new results, one per sample."""
        buffer = OpenBuffer(len(results), arena=self.arena, device_images=self.device_images)
        buffer.store(range(len(results)), results)
        return buffer

    def chunks(self) -> list[tuple[range, Any]]:
        """Return the samples and the results of each chunk, in order."""
        return [self._chunks[first] for first in sorted(self._chunks)]

    def forget(self, samples: range) -> None:
        """Drop the results of a chunk."""
        self._chunks.pop(samples.start, None)

    def storages(self) -> list[SampleStorage] | None:
        """Return the storages of all chunks, in order.

        Return None if a chunk is missing, or if the results of a chunk are stored as separate samples.
        """
        chunks = self.chunks()
        if not chunks or sum(len(samples) for samples, _ in chunks) != self.size:
            return None
        if self.tensor is not None and all(stored is None for _, stored in chunks):
            return [Dense(self.tensor)]
        storages: list[SampleStorage] = []
        for samples, stored in chunks:
            target = self.rows(samples) if stored is None else None
            if target is not None:
                storages.append(Dense(target))
            elif isinstance(stored, SampleStorage):
                storages.append(stored)
            else:
                return None
        return storages

    def sample_results(self) -> list[Any]:
        """Return each sample's result as a tensor, or as an offset and shape in the arena; None for missing results."""
        results: list[Any] = [None] * self.size
        for samples, stored in self._chunks.values():
            results[samples.start : samples.stop] = (
                self.parts[samples.start : samples.stop] if stored is None else stored
            )
        return results

    def samples(self) -> list[Any]:
        """Return each sample's result as a tensor; None for missing results."""
        return self.sample_results() if self.arena is None else list(map(self.arena.sample, self.sample_results()))


class OutputBuffer:
    """Allocates the memory for the results of one output of an operator.

    The results' shape is guessed from the previous batch. A wrong guess costs little time: the operator then returns
    new tensors, and the batch is built from the new tensors.

    Args:
        buffers: Pool of memory.
        uses_packing: True if samples of different shapes are stored in an arena, because they will be copied to a
            device.
    """

    def __init__(self, buffers: BufferPool, uses_packing: bool = False) -> None:
        self._buffers, self._uses_packing = buffers, uses_packing
        self._ragged: tuple[int, torch.dtype] | None = None
        self._guess: tuple[tuple[int, ...], torch.dtype] | None = None

    @property
    def sample_bytes(self) -> int:
        """Bytes per sample in the previous batch; 0 if the shapes of its samples differed."""
        guess = self._guess
        return 0 if guess is None else math.prod(guess[0]) * guess[1].itemsize

    def open(self, size: int, chunk: int = 0) -> OpenBuffer:
        """Return a buffer for the results of a batch.

        Args:
            size: Number of samples of the batch.
            chunk: Number of samples per chunk if operators return a chunk's results as one tensor; otherwise 0. If a
                single chunk has all samples, its tensor becomes the batch, and this method allocates no memory.
        """
        # Read each attribute once, because another thread may change it while it closes an earlier batch.
        guess, ragged = self._guess, self._ragged
        if ragged is not None and not chunk and size:
            elements, dtype = ragged
            return OpenBuffer(size, arena=Arena(self._buffers.empty((elements,), dtype)))
        if guess is None or size == 0 or chunk >= size:
            return OpenBuffer(size)
        shape, dtype = guess
        return OpenBuffer(size, self._buffers.empty((size, *shape), dtype))

    def close(self, buffer: OpenBuffer, layout: str, info: Sequence[str] | None) -> TensorList:
        """Create the batch from the results, after all chunks are done."""
        if buffer.arena is not None:
            packed = buffer.arena.pack(buffer.sample_results(), layout, info)
            if packed is not None:
                self.set_capacity(buffer.arena.used, buffer.arena.flat.dtype)
                return packed
        storages = buffer.storages()
        if storages is None:
            return self._close_samples(buffer.samples(), layout, info)
        return self._close_storages(storages, layout, info)

    def _close_samples(self, samples: list[Any], layout: str, info: Sequence[str] | None) -> TensorList:
        first = next((d for d in samples if d is not None), None)
        layout = layout if first is None else matching_layout(layout, first.ndim)
        if first is None or any(d is None or d.shape != first.shape or d.dtype != first.dtype for d in samples):
            self._guess = None
            check_uniform(samples)
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
        tensor = tensors[0]
        if len(tensors) > 1:
            tensor = torch.cat(tensors, out=self._buffers.empty((sum(map(len, tensors)), *shape), dtype))
        return TensorList.from_dense(tensor, matching_layout(layout, tensor.ndim - 1), source_info=info)

    def _ragged_batch(self, samples: list[Any], layout: str, info: Sequence[str] | None) -> TensorList:
        dtype = None if not samples or samples[0] is None else samples[0].dtype
        alike = all(d is not None and d.dtype == dtype for d in samples)
        if self._uses_packing and alike and dtype is not None and dtype != torch.bfloat16:
            self.set_capacity(sum(d.numel() for d in samples), dtype)
        return TensorList.from_samples(list(samples), layout, source_info=info)

    def set_capacity(self, elements: int, dtype: torch.dtype) -> None:
        """Set the capacity of the next batch's arena to a quarter more than this batch needed.

        If the next batch is larger, the samples that don't fit are stored outside the arena.
        """
        capacity = self._ragged[0] if self._ragged is not None else 0
        if not elements * 1.1 <= capacity <= elements * 2:
            capacity = elements + elements // 4
        self._guess, self._ragged = None, (capacity, dtype)


def _store_in(target: torch.Tensor | None, result: Any) -> torch.Tensor | None:
    return target if result is IN_PLACE else None if result is None else store_result(target, result)


def _of_packed(packed: PackedSamples, layout: str, info: Sequence[str] | None) -> TensorList:
    """Create the batch from a storage that contains all samples."""
    shapes, layout = packed.shape(), matching_layout(layout, packed.ndim())
    if packed.is_uniform():
        return TensorList.from_dense(packed.flat.view(len(packed), *shapes[0]), layout, info)
    if packed.rows is None:
        return TensorList.from_packed(packed.flat, packed.offsets, shapes, layout, info)
    batch = TensorList.from_rows(*packed.rows, layout)
    batch.set_source_infos(info)
    return batch
