"""Divide the images of a batch between the device's JPEG decoder, called the engine, and the CPU's threads.

The engine decodes a part of each batch's images. This part is the batch's *share*. The executor calls three methods:
`open_share` creates the share of a batch, `submit` passes the share to the engine, and `collect` returns the decoded
images. The CPU's threads examine each encoded image (*file*). They either decode the image, or copy the file into
pinned memory and add it to the share. When all images of a batch have been examined, a separate thread passes the share
to the engine. The engine decodes into a buffer on the device (an *arena*). The images that the CPU decoded are copied
into the same arena, so that the whole batch is in one block of memory.

An engine doesn't wait for earlier work on a stream. Therefore an arena is reused only after the host has *seen* the
event that was recorded after the arena's last use: the host has queried the event, or has waited for it. The files'
memory is not reused until the host has seen the event that was recorded after the engine's reads.
"""

from __future__ import annotations

import contextlib
import math
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from ctypes import memmove
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchdali.codecs._native import Files, decode_jpegs, examine
from torchdali.codecs.engines import SIDE, EngineOptions, JpegEngine, open_engine
from torchdali.codecs.images import decode
from torchdali.execute.device_stream import DeviceStream
from torchdali.execute.output_buffer import Arena, OpenBuffer
from torchdali.graph.nodes import DataNode
from torchdali.graph.plan import is_shared
from torchdali.kernels.memory import Array, BufferedResult, ChunkImages
from torchdali.kernels.native import PARTS
from torchdali.tensors import TensorList
from torchdali.tensors._foreign import on_stream
from torchdali.tensors.buffer_pool import BufferPool

__all__ = ["HardwareDecoding"]

_INITIAL_BYTES = 1 << 18  # the first batch reserves this number of bytes per sample for pixels, and as many for files
_PIXEL_ALIGNMENT = 256
_FILE_ALIGNMENT = 64
_NAME = "torchdali-engine"
_STATES = 3  # largest number of batches that the engine decodes at the same time
_HEADROOM = 1.2  # the engine's capacity is the expected number of images in a share, times this factor
_MAX_FAILURES = 3  # after this number of failed calls in a row, the engine is no longer used


class SharedFiles:
    """The files of one batch's share.

    Args:
        decoding: The engine and its thread.
        size: Number of images of the batch.
        files: Pinned memory for the files.
        cpu_elements: Number of elements to reserve in the arena on the device, after the engine's images, for images
            that the CPU decodes.
    """

    def __init__(self, decoding: HardwareDecoding, size: int, files: Arena, cpu_elements: int) -> None:
        self._decoding, self._unexamined, self._files, self.cpu_elements = decoding, size, files, cpu_elements
        # Until the share is submitted, the CPU's threads add to these attributes, under the lock. Then the attributes
        # belong to the engine's thread, and don't change any more.
        self._tables: list[tuple[Files, Array]] = []
        self._count = 0
        self._overflow: list[Tensor] = []
        self._views: dict[int, Tensor] = {}
        self._lock = threading.Lock()
        self._future: Future[Decoded | None] | None = None

    @property
    def is_accepting(self) -> bool:
        """True while the engine can be used."""
        return not self._decoding.disabled

    @property
    def memory(self) -> list[Tensor]:
        """The blocks of memory with the files."""
        return [self._files.flat, *self._overflow]

    @property
    def used(self) -> int:
        """Total number of bytes reserved for files."""
        return self._files.used + sum(map(len, self._overflow))

    def reserve(self, size: int) -> int:
        """Reserve `size` bytes for copies of files, and return the address of the first byte."""
        offset = self._files.reserve(size)
        if offset >= 0:
            return self._files.address + offset
        memory = torch.empty(size, dtype=torch.uint8, pin_memory=self._files.flat.is_pinned())
        with self._lock:
            self._overflow.append(memory)
        return memory.data_ptr()

    def add(self, files: Files, parts: Array, count: int) -> int:
        """Add files to the share, after their bytes were copied.

        Return the first file's index in the share; -1 if the share was already submitted.
        """
        with self._lock:
            if self._future is not None:
                return -1
            first, self._count = self._count, self._count + count
            self._tables.append((files, parts))
            return first

    def add_file(self, data: Tensor) -> Tensor:
        """Copy one file into pinned memory and add it to the share.

        Returns:
            The copy. If the share was already submitted, or if the share already contains `data`, `data` itself.
        """
        if any(data is view for view in list(self._views.values())):
            return data
        files = examine([data]).rows
        files["out"] = address = self.reserve(-(-data.numel() // _FILE_ALIGNMENT) * _FILE_ALIGNMENT)
        memmove(address, data.data_ptr(), data.numel())
        index = self.add(files, np.zeros(1, PARTS), 1)
        return data if index < 0 else self.file_data(index)

    def file_data(self, index: int) -> Tensor:
        """Return the bytes of a file of the share. Repeated calls return the same tensor."""
        with self._lock:
            if index not in self._views:
                self._views[index] = self._bytes_of(self._row(index))
            return self._views[index]

    def _bytes_of(self, file: Any) -> Tensor:
        address, length = int(file["out"]), int(file["length"])
        for flat in self.memory:
            first = address - flat.data_ptr()
            if 0 <= first < flat.numel():
                return flat[first : first + length]
        raise ValueError("a file's address is not in the memory of its batch")

    def _row(self, index: int) -> Any:
        for files, parts in self._tables:
            rows = np.flatnonzero(parts["index"] >= 0)
            if index < len(rows):
                return files[rows[index]]
            index -= len(rows)
        raise IndexError(index)

    def index_of(self, data: Any) -> int:
        """Return the index for which `file_data` returned the tensor `data`; -1 for other tensors."""
        return next((index for index, view in self._views.items() if view is data), -1)

    def table(self) -> Files:
        """Return the table of all files, with the addresses of their copies."""
        files, parts = map(np.concatenate, zip(*self._tables, strict=True))
        table: Files = files[parts["index"] >= 0]
        table["data"] = table["out"]
        return table

    def count_examined(self, count: int) -> None:
        """Record that some images of the batch were examined. After the last image, submit the share."""
        with self._lock:
            self._unexamined -= count
            ready = self._unexamined == 0
        if ready:
            self.submit()

    def submit(self) -> Future[Decoded | None]:
        """Submit the share to the engine's thread, unless it was already submitted. Return the future of the result."""
        with self._lock:
            if self._future is None:
                self._future = self._decoding.start(self, self._count)
            return self._future


class Decoded:
    """The images of a share that the engine decodes. Implements `DeviceImages`.

    Args:
        decoding: The engine and its memory.
        arena: Buffer on the device. The CPU's images are copied into it, after the engine's images.
        used: Number of elements in the arena for the engine's images.
        files: Table with a row per file. The column `out` has the start of the image in the arena; the column `code` is
            0 if the engine accepted the image.
        event: Event after the engine's writes; None if the device has no streams.
    """

    def __init__(self, decoding: HardwareDecoding, arena: Tensor, used: int, files: Files, event: Any) -> None:
        self._decoding, self.arena, self.used, self._files, self._event = decoding, arena, used, files, event
        self._share: SharedFiles | None = None

    def has(self, indices: Array) -> Array:
        """Return whether the engine accepted the images, as one bool per index in the share."""
        good: Array = self._files["code"][indices] == 0
        return good

    def release(self) -> None:
        """See `DeviceImages`."""
        self._decoding.recycle(self.arena, self._event)

    def join(
        self, buffer: OpenBuffer, batches: Sequence[TensorList], must_copy: bool
    ) -> tuple[Tensor, list[int], list[tuple[int, ...]], list[TensorList]]:
        """See `DeviceImages`."""
        indices, starts, shapes, overflow = self._table(buffer)
        assert buffer.arena is not None
        stream = self._decoding.device_stream
        stream.wait_for(self._event)
        elements, uploaded = self._append_cpu_images(buffer.arena, batches, must_copy)
        starts[indices < 0] += self.used
        starts[indices >= 0] = self._files["out"][indices[indices >= 0]]
        if overflow:
            flat = torch.cat([_upload(stream, pixels).reshape(-1) for pixels in overflow.values()])
            sizes = [pixels.numel() for pixels in overflow.values()]
            starts[list(overflow)] = elements.numel() + np.cumsum(sizes) - sizes
            elements = torch.cat([elements, flat])
        return elements, starts.tolist(), list(map(tuple, shapes.tolist())), uploaded

    def _append_cpu_images(
        self, arena: Arena, batches: Sequence[TensorList], must_copy: bool
    ) -> tuple[Tensor, list[TensorList]]:
        stream = self._decoding.device_stream
        target = self.arena[self.used :]
        if stream.stream is None:
            return torch.cat([self.arena[: self.used], arena.flat[: arena.used]]), []
        if target.numel() < arena.used:
            flat, uploaded = stream.copy_arena(arena, batches)
            return torch.cat([self.arena[: self.used], flat]), uploaded
        stream.copy_arena(arena, (), target)  # no small batches: users may need them when `target` is reused
        elements = self.arena[: self.used + arena.used]
        return (elements.clone() if must_copy else elements), []

    def _table(self, buffer: OpenBuffer) -> tuple[Array, Array, Array, dict[int, Tensor]]:
        """Describe all images of the batch.

        Returns:
            For each image, three arrays: the index in the share (-1 if the CPU decoded the image), the start in the
            CPU's arena, and the shape. Finally a dictionary with the pixels of images that didn't fit into the arena.
        """
        indices, starts = np.full(buffer.size, -1, np.int64), np.zeros(buffer.size, np.int64)
        shapes, overflow = np.zeros((buffer.size, 3), np.int64), {}
        for samples, stored in buffer.chunks():
            part = slice(samples.start, samples.stop)
            if isinstance(stored, ChunkImages):
                indices[part], shapes[part] = _indices(stored), stored.parts["shape"]
                starts[part] = stored.parts["place"] + stored.start
                continue
            for i, each in zip(samples, stored, strict=True):
                if isinstance(each, BufferedResult):
                    starts[i], shapes[i] = each
                elif _is_file(each):
                    assert self._share is not None
                    indices[i] = index = self._share.index_of(each)
                    shapes[i] = (*self._files[["height", "width"]][index].item(), 3)
                else:
                    overflow[i], shapes[i] = each, each.shape
        return indices, starts, shapes, overflow


def _upload(stream: DeviceStream, pixels: Tensor) -> Tensor:
    return stream.to_device(TensorList.from_samples([pixels])).samples()[0]


class HardwareDecoding:
    """The engine of a pipeline's device, its thread and its memory.

    Args:
        device_stream: The stream of the device that receives the pixels.
        buffers: Pool of memory for files and pixels.
        count: Number of images of the largest batch.
        threads: Number of the pipeline's threads.
        edges: The outputs (*edges*) of decoders and other per-sample operators.

    Attributes:
        disabled: True if the engine has failed or is closed. Then `open_share` creates no more shares.
    """

    def __init__(
        self, device_stream: DeviceStream, buffers: BufferPool, count: int, threads: int, edges: Sequence[DataNode]
    ) -> None:
        self.device_stream, self._buffers = device_stream, buffers
        self._work = _work_of([edge for edge in edges if is_shared(edge)], count, threads)
        self._engine: JpegEngine | None = None
        self._free: list[tuple[Tensor, Any]] = []
        self._lock = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._stream: Any = None
        self._events: list[Any] = [None] * _STATES
        self._next_state = self._file_capacity = self._failures = 0
        self._has_warned = False
        self.disabled = False

    # ---------------------------------------------------------------- for the executor

    def open_share(self, edge: DataNode, buffer: OpenBuffer) -> bool:
        """Create a batch's share of an operator's output. Return False if the engine doesn't decode this output.

        Args:
            edge: The operator's output.
            buffer: The buffer for the batch's results. The share becomes an attribute of the buffer's arena.
        """
        if self.disabled or not is_shared(edge):
            return False
        if buffer.arena is None:
            buffer.tensor, buffer.arena = None, Arena(self._buffers.empty((buffer.size * _INITIAL_BYTES,), torch.uint8))
        capacity = self._file_capacity or buffer.size * _INITIAL_BYTES
        files = Arena(self._buffers.empty((capacity,), torch.uint8))
        buffer.arena.share = SharedFiles(self, buffer.size, files, buffer.arena.flat.numel())
        return True

    def submit(self, batch: Iterable[OpenBuffer], callback: Callable[[bool], None]) -> None:
        """Submit the batch's remaining shares. Call `callback` when the engine's thread has processed all shares.

        Args:
            batch: The buffers of the batch's results.
            callback: Function that is called once, either with True in the engine's thread, or with False in the thread
                that called `submit`.
        """
        caller, shares = threading.get_ident(), [_share_of(buffer) for buffer in batch]
        remaining, lock = len(shares), threading.Lock()

        def count_done(_: Future[Decoded | None]) -> None:
            nonlocal remaining
            with lock:
                remaining -= 1
                last = remaining == 0
            if last:
                callback(threading.get_ident() != caller)

        for share in shares:
            share.submit().add_done_callback(count_done)

    def collect(self, edge: DataNode, buffer: OpenBuffer, failures: dict[int, BaseException]) -> OpenBuffer:
        """Wait until the engine has processed a batch's share. If the engine rejects an image, decode it on the CPU.

        Args:
            edge: The decoder's output.
            buffer: The results of the batch.
            failures: The errors by sample. If the CPU can't decode an image either, this method adds the error.

        Returns:
            The results. The attribute `device_images` contains the images that the engine decoded; None if the engine
            decoded no image.
        """
        share = _share_of(buffer)
        decoded = share.submit().result()
        if decoded is not None:
            decoded._share = share
        if failures or not _is_complete(buffer, decoded):
            results, rest = buffer.samples(), []
            for i, data in enumerate(results):
                index = share.index_of(data) if _is_file(data) else 0
                is_decoded = decoded is not None and index >= 0 and bool(decoded.has(np.array(index)))
                if _is_file(data) and not is_decoded and i not in failures:
                    rest.append(i)
            assert edge.source is not None
            self._decode_rest(results, rest, edge.source.constants.get("adjust_orientation", True), failures)
            buffer = buffer.replace_results(results)
        buffer.device_images = decoded
        return buffer

    def close(self) -> None:
        """End the engine's thread, and wait for the engine."""
        with self._lock:
            thread, self._thread, self.disabled = self._thread, None, True
        if thread is not None:
            # If the engine's thread drops the last reference to a pipeline, it runs this method itself.
            mine = threading.current_thread().name.startswith(_NAME)
            thread.shutdown(wait=not mine, cancel_futures=True)
        self._wait_for_all()  # after this call, the caller may release the files' memory

    # ---------------------------------------------------------------- in the engine's thread

    def start(self, share: SharedFiles, count: int) -> Future[Decoded | None]:
        """Decode a share in the engine's thread. The future's result is None if the engine decodes no image.

        Args:
            share: The share. From this call on, only the engine's thread may change it.
            count: Number of files of the share.
        """
        with self._lock:
            if not count or self.disabled:
                nothing: Future[Decoded | None] = Future()
                nothing.set_result(None)
                return nothing
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, _NAME)
            return self._thread.submit(self._in_context, share)

    def _in_context(self, share: SharedFiles) -> Decoded | None:
        try:
            with self.device_stream.context():
                return self._decode(share)
        except Exception as error:  # drivers raise various exceptions, and memory may be exhausted
            self._note_failure(error)
            return None

    def _decode(self, share: SharedFiles) -> Decoded | None:
        if not share.used * 1.1 <= self._file_capacity <= share.used * 2:
            self._file_capacity = share.used + share.used // 4
        engine = self._open_engine()
        if engine is None:
            return None
        files, state = share.table(), self._next_state
        sizes = -(-files["height"].astype(np.int64) * files["width"] * 3 // _PIXEL_ALIGNMENT) * _PIXEL_ALIGNMENT
        used = int(sizes.sum())
        files["out"] = sizes.cumsum() - sizes
        arena = self._allocate_arena(used + share.cpu_elements)
        self._next_state = (state + 1) % _STATES
        _wait_for(self._events[state])
        event = self._submit(engine, files, arena, state)
        if event is not None:
            self.device_stream.keep_until(share.memory, event)
        decoded = Decoded(self, arena, used, files, event)
        if not files["code"].all():
            return decoded
        decoded.release()
        return None

    def _submit(self, engine: JpegEngine, files: Files, arena: Tensor, state: int) -> Any:
        """Submit files to the engine. Return an event that is recorded afterwards, even if the engine's call failed."""
        stream = self._open_stream()
        with contextlib.nullcontext() if stream is None else on_stream(stream):
            try:
                engine.decode(files, arena, state, 0 if stream is None else stream.cuda_stream)
                failure = None
            except Exception as error:  # one image may have caused the failure, so the next call may succeed
                files["code"], failure = 1, error
        event = self._events[state] = self.device_stream.record(stream)
        if failure is None:
            self._failures = 0
        else:
            self._note_failure(failure)
        return event

    def _open_stream(self) -> Any:
        if self.device_stream.stream is not None and self._stream is None:
            self._stream = self.device_stream.new_stream()
        return self._stream

    def _open_engine(self) -> JpegEngine | None:
        if self._engine is None and not self.disabled:
            device = self.device_stream.device
            assert device is not None
            try:
                self._engine = open_engine(device, self._work)
            except Exception as error:  # drivers raise various exceptions
                self._disable(error)
        return self._engine

    def _note_failure(self, error: Exception) -> None:
        self._failures += 1
        if self._failures >= _MAX_FAILURES:
            self._disable(error)
        elif not self._has_warned:
            self._has_warned = True
            where = self.device_stream.device
            warnings.warn(f"the JPEG decoder on {where} failed on a batch: {error}; the CPU decoded it", stacklevel=2)

    def _disable(self, error: Exception) -> None:
        self._wait_for_all()  # the engine must not be destroyed while it decodes
        self._engine, self.disabled = None, True
        with self._lock:
            self._free.clear()
        warnings.warn(
            f"the JPEG decoder on {self.device_stream.device} does not work: {error}; the CPU decodes all images. "
            "hw_decoder_load=0 switches it off.",
            stacklevel=2,
        )

    def _wait_for_all(self) -> None:
        for event in self._events:
            _wait_for(event)

    # ---------------------------------------------------------------- the rest, and memory

    def _decode_rest(
        self, results: list[Any], rest: Sequence[int], upright: bool, failures: dict[int, BaseException]
    ) -> None:
        """Decode images on the CPU.

        Args:
            results: The batch's results. The method replaces the files' bytes by decoded pixels.
            rest: Indices of the images to decode.
            upright: True to apply the orientation that each file specifies.
            failures: Dictionary to which the method adds errors, by the image's index.
        """
        fancy = self._work.fancy
        images = decode_jpegs([results[i] for i in rest], upright, fancy=fancy) if rest else []
        for i, pixels in zip(rest, images, strict=True):
            try:
                if pixels is None:
                    pixels = decode(results[i], adjust_orientation=upright, fancy=fancy)
                results[i] = pixels
            except Exception as error:
                failures[i] = error

    def _allocate_arena(self, used: int) -> Tensor:
        """Return memory on the device that no kernel and no engine uses.

        The host must have seen the event after the memory's last use (see the module's docstring). If the memory is new
        from PyTorch's allocator, its last use is unknown. Then the method waits for the computing stream.
        """
        with self._lock:
            for k, (arena, event) in enumerate(self._free):
                if arena.numel() >= used and (event is None or event.query()):
                    return self._free.pop(k)[0]
            # Drop arenas that are too small, if no kernel uses them any more.
            self._free = [(a, e) for a, e in self._free if a.numel() >= used or not (e is None or e.query())]
            large = [k for k, (arena, _) in enumerate(self._free) if arena.numel() >= used]
            waited = self._free.pop(large[0]) if len(large) >= _STATES - 1 else None
        if waited is not None:  # the device is slower than the host, so another arena would not help
            _wait_for(waited[1])
            return waited[0]
        block = torch.empty(used + used // 4, dtype=torch.uint8, device=self.device_stream.device)
        stream = self._open_stream()
        if stream is not None:
            # If the batch fails, Python may free the tensor while the engine still writes to it. With `record_stream`,
            # PyTorch reuses the memory only after the engine's work.
            block.record_stream(stream)
        event = self.device_stream.record()
        if event is not None:
            event.synchronize()  # blocks the host, but only if no existing arena is large enough
        return block

    def recycle(self, arena: Tensor, event: Any) -> None:
        """Store an arena for a later batch, which uses the arena after all work that is now enqueued on the device."""
        self.device_stream.wait_for(event)
        last = self.device_stream.record()
        with self._lock:
            if not self.disabled:
                self._free.append((arena, last))


def _work_of(edges: Sequence[DataNode], count: int, threads: int) -> EngineOptions:
    """Return the largest workload that the engine receives per batch, for batches of at most `count` images."""
    constants = [edge.source.constants for edge in edges if edge.source is not None]
    share = max((float(each.get("hw_decoder_load", 0)) for each in constants), default=0.0)
    height, width = (
        max((int(each.get(f"preallocate_{name}_hint", 0)) for each in constants), default=0) or SIDE
        for name in ("height", "width")
    )
    fancy = all(each.get("jpeg_fancy_upsampling", True) for each in constants)
    return EngineOptions(min(count, math.ceil(count * share * _HEADROOM)), _STATES, fancy, threads, (height, width))


def _share_of(buffer: OpenBuffer) -> SharedFiles:
    share = None if buffer.arena is None else buffer.arena.share
    assert isinstance(share, SharedFiles)
    return share


def _indices(images: ChunkImages) -> Array:
    """Return each image's index in the batch's share; -1 for images that the CPU decoded."""
    indices: Array = images.parts["index"]
    return np.where(indices >= 0, indices + images.first, -1)


def _is_complete(buffer: OpenBuffer, decoded: Decoded | None) -> bool:
    """Return whether every image of a batch was decoded by the engine, or by the CPU into the CPU's arena."""
    for _, stored in buffer.chunks():
        if not isinstance(stored, ChunkImages):
            return False
        shared = _indices(stored)
        shared = shared[shared >= 0]
        if len(shared) and (decoded is None or not decoded.has(shared).all()):
            return False
    return True


def _is_file(sample: Any) -> bool:
    return isinstance(sample, Tensor) and sample.ndim == 1


def _wait_for(event: Any) -> None:
    """Wait until an event is done. Do nothing for None."""
    if event is not None and not event.query():
        event.synchronize()
