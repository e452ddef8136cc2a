"""Divide the images of a batch between the device's JPEG engine and the CPU's threads.

The executor uses three methods: `accepts` opens the engine's share of a batch, `submit` submits it to the engine, and
`collect` returns the decoded images. The CPU's threads copy the files of the share into pinned memory. As soon as all
images of a batch were examined, a separate thread submits the share to the engine, which decodes into a buffer on the
device. The buffer has capacity for the CPU's images after the engine's images, so a batch is one piece of memory.

Engines don't follow the order of streams. So a device buffer is reused only after the host has *seen* the event that
follows its last use, and the files' memory is retained until the host has seen the engine's event.
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

from torchdali.codecs._native import Files, decode_together, examine
from torchdali.codecs.engines import SIDE, EngineWork, JpegEngine, open_engine
from torchdali.codecs.images import decode
from torchdali.execute.device_stream import DeviceStream
from torchdali.execute.output_buffer import Arena, OpenBuffer
from torchdali.graph.nodes import DataNode
from torchdali.graph.plan import is_shared
from torchdali.kernels.memory import Array, ChunkImages, Placed
from torchdali.kernels.native import PARTS
from torchdali.tensors import TensorList
from torchdali.tensors._foreign import on_stream
from torchdali.tensors.buffer_pool import BufferPool

__all__ = ["HardwareDecoding"]

_ROOM = 1 << 18  # bytes per sample that the first batch reserves for pixels, and again for files
_ALIGNED = 256
_FILE_ALIGNED = 64
_NAME = "torchdali-engine"
_STATES = 3  # batches that the engine is decoding
_MORE = 1.2  # the engine's capacity, as a multiple of the expected images of its share
_MOST_FAILURES = 3  # failed calls in a row, after which the engine is no longer used


class SharedFiles:
    """The files of one batch that the engine decodes.

    Args:
        size: Number of images of the batch.
        files: Pinned memory for the files.
        behind: Number of elements to reserve on the device after the engine's images.
    """

    def __init__(self, decoding: HardwareDecoding, size: int, files: Arena, behind: int) -> None:
        self._decoding, self._unseen, self._files, self.behind = decoding, size, files, behind
        # The chain's threads append to these attributes under the lock. After the submission, no thread appends, and
        # the engine's thread reads them.
        self._tables: list[tuple[Files, Array]] = []
        self._count = 0
        self._more: list[Tensor] = []
        self._views: dict[int, Tensor] = {}
        self._lock = threading.Lock()
        self._future: Future[Decoded | None] | None = None

    @property
    def takes(self) -> bool:
        """True while the engine works."""
        return not self._decoding.lost

    @property
    def memory(self) -> list[Tensor]:
        """The buffers of all files."""
        return [self._files.flat, *self._more]

    @property
    def used(self) -> int:
        """Total number of bytes reserved for files."""
        return self._files.used + sum(map(len, self._more))

    def reserve(self, size: int) -> int:
        """Reserve a number of bytes for copies of files, and return their address."""
        place = self._files.take(size)
        if place >= 0:
            return self._files.address + place
        memory = torch.empty(size, dtype=torch.uint8, pin_memory=self._files.flat.is_pinned())
        with self._lock:
            self._more.append(memory)
        return memory.data_ptr()

    def add(self, files: Files, parts: Array, count: int) -> int:
        """Add copied files, and return the index of the first file; -1 if the share was already submitted."""
        with self._lock:
            if self._future is not None:
                return -1
            first, self._count = self._count, self._count + count
            self._tables.append((files, parts))
            return first

    def keep(self, data: Tensor) -> Tensor:
        """Copy and add one file; return its bytes as `data_of` does, or unchanged if the share was submitted."""
        if any(data is view for view in list(self._views.values())):
            return data
        files = examine([data]).rows
        files["out"] = address = self.reserve(-(-data.numel() // _FILE_ALIGNED) * _FILE_ALIGNED)
        memmove(address, data.data_ptr(), data.numel())
        index = self.add(files, np.zeros(1, PARTS), 1)
        return data if index < 0 else self.data_of(index)

    def data_of(self, index: int) -> Tensor:
        """Return the bytes of a file, always the same tensor."""
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
        raise ValueError("a file is not in the memory of its batch")

    def _row(self, index: int) -> Any:
        for files, parts in self._tables:
            rows = np.flatnonzero(parts["index"] >= 0)
            if index < len(rows):
                return files[rows[index]]
            index -= len(rows)
        raise IndexError(index)

    def index_of(self, data: Any) -> int:
        """Return the index of a file by its bytes, which must be the tensor of `data_of`; else -1."""
        return next((index for index, view in self._views.items() if view is data), -1)

    def table(self) -> Files:
        """Return the table of all files, with the addresses of their copies."""
        files, parts = map(np.concatenate, zip(*self._tables, strict=True))
        table: Files = files[parts["index"] >= 0]
        table["data"] = table["out"]
        return table

    def count_examined(self, count: int) -> None:
        """Record that a number of images were examined; submit the share after the last image."""
        with self._lock:
            self._unseen -= count
            ready = self._unseen == 0
        if ready:
            self.submit()

    def submit(self) -> Future[Decoded | None]:
        """Submit the share in the engine's thread, once; return its future."""
        with self._lock:
            if self._future is None:
                self._future = self._decoding.start(self, self._count)
            return self._future


class Decoded:
    """The images of a batch that the engine decodes, by their index in `SharedFiles`; see `DeviceImages`.

    Args:
        arena: Buffer on the device. The CPU's images are appended after the first `used` elements.
        files: Table of the files: `out` is the start of an image, `code` is 0 if the engine accepted the image.
        event: Event after the engine's writes; None without streams.
    """

    def __init__(self, decoding: HardwareDecoding, arena: Tensor, used: int, files: Files, event: Any) -> None:
        self._decoding, self.arena, self.used, self._files, self._event = decoding, arena, used, files, event
        self._share: SharedFiles | None = None

    def has(self, indices: Array) -> Array:
        """Return for each index whether the engine accepted the image."""
        good: Array = self._files["code"][indices] == 0
        return good

    def release(self) -> None:
        """See `DeviceImages`."""
        self._decoding.give_back(self.arena, self._event)

    def join(
        self, opened: OpenBuffer, batches: Sequence[TensorList], keeps: bool
    ) -> tuple[Tensor, list[int], list[tuple[int, ...]], list[TensorList]]:
        """See `DeviceImages`."""
        indices, starts, shapes, others = self._table(opened)
        assert opened.arena is not None
        stream = self._decoding.device_stream
        stream.wait_for(self._event)
        whole, uploaded = self._with_cpu_images(opened.arena, batches, keeps)
        starts[indices < 0] += self.used
        starts[indices >= 0] = self._files["out"][indices[indices >= 0]]
        if others:
            flat = torch.cat([_upload(stream, pixels).reshape(-1) for pixels in others.values()])
            sizes = [pixels.numel() for pixels in others.values()]
            starts[list(others)] = whole.numel() + np.cumsum(sizes) - sizes
            whole = torch.cat([whole, flat])
        return whole, starts.tolist(), list(map(tuple, shapes.tolist())), uploaded

    def _with_cpu_images(
        self, arena: Arena, batches: Sequence[TensorList], keeps: bool
    ) -> tuple[Tensor, list[TensorList]]:
        stream = self._decoding.device_stream
        into = self.arena[self.used :]
        if stream.stream is None:
            return torch.cat([self.arena[: self.used], arena.flat[: arena.used]]), []
        if into.numel() < arena.used:
            flat, uploaded = stream.copy_arena(arena, batches)
            return torch.cat([self.arena[: self.used], flat]), uploaded
        stream.copy_arena(arena, (), into)  # without small batches: users may hold them, and `into` is reused
        whole = self.arena[: self.used + arena.used]
        return (whole.clone() if keeps else whole), []

    def _table(self, opened: OpenBuffer) -> tuple[Array, Array, Array, dict[int, Tensor]]:
        """Return all images' indices in the share, starts in the CPU's arena and shapes, and the images in no arena."""
        indices, starts = np.full(opened.size, -1, np.int64), np.zeros(opened.size, np.int64)
        shapes, others = np.zeros((opened.size, 3), np.int64), {}
        for samples, stored in opened.chunks():
            part = slice(samples.start, samples.stop)
            if isinstance(stored, ChunkImages):
                indices[part], shapes[part] = _indices(stored), stored.parts["shape"]
                starts[part] = stored.parts["place"] + stored.place
                continue
            for i, each in zip(samples, stored, strict=True):
                if isinstance(each, Placed):
                    starts[i], shapes[i] = each
                elif _is_file(each):
                    assert self._share is not None
                    indices[i] = index = self._share.index_of(each)
                    shapes[i] = (*self._files[["height", "width"]][index].item(), 3)
                else:
                    others[i], shapes[i] = each, each.shape
        return indices, starts, shapes, others


def _upload(stream: DeviceStream, pixels: Tensor) -> Tensor:
    return stream.to_device(TensorList.from_samples([pixels])).samples()[0]


class HardwareDecoding:
    """The engine of a pipeline's device, its thread and its memory.

    Args:
        device_stream: The stream of the device that receives the pixels.
        buffers: Pool of memory for files and pixels.
        count: Number of images of the largest batch.
        threads: Number of the pipeline's threads.
        edges: All edges that chains deliver.

    Attributes:
        lost: True if the engine doesn't work or is closed, and must not receive more images.
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
        self._turn = self._room = self._failures = 0
        self._has_warned = False
        self.lost = False

    # ---------------------------------------------------------------- for the executor

    def accepts(self, edge: DataNode, opened: OpenBuffer) -> bool:
        """Open a batch's share, and return whether the engine decodes a share of an edge's images.

        Args:
            opened: The results of the batch. This method stores the share in their arena, which it adds if necessary.
        """
        if self.lost or not is_shared(edge):
            return False
        if opened.arena is None:
            opened.whole, opened.arena = None, Arena(self._buffers.empty((opened.size * _ROOM,), torch.uint8))
        room = self._room or opened.size * _ROOM
        files = Arena(self._buffers.empty((room,), torch.uint8))
        opened.arena.share = SharedFiles(self, opened.size, files, opened.arena.flat.numel())
        return True

    def submit(self, batch: Iterable[OpenBuffer], then: Callable[[bool], None]) -> None:
        """Submit the shares of a batch that were not submitted, and call `then` when the engine's thread has run.

        Args:
            then: Called once. Its argument is True in the engine's thread, and False in this thread.
        """
        here, shares = threading.get_ident(), [_share_of(opened) for opened in batch]
        missing, lock = len(shares), threading.Lock()

        def one(_: Future[Decoded | None]) -> None:
            nonlocal missing
            with lock:
                missing -= 1
                last = missing == 0
            if last:
                then(threading.get_ident() != here)

        for share in shares:
            share.submit().add_done_callback(one)

    def collect(self, edge: DataNode, opened: OpenBuffer, failures: dict[int, BaseException]) -> OpenBuffer:
        """Wait for the engine's images of a batch; decode the images that the engine skipped on the CPU.

        Args:
            opened: The results of the batch.
            failures: The errors by sample. This method adds the errors of images that the CPU can't decode either.

        Returns:
            The results with the CPU's images. Their attribute `there` has the engine's images, or is None.
        """
        share = _share_of(opened)
        decoded = share.submit().result()
        if decoded is not None:
            decoded._share = share
        if failures or not _is_complete(opened, decoded):
            results, rest = opened.samples(), []
            for i, data in enumerate(results):
                index = share.index_of(data) if _is_file(data) else 0
                taken = decoded is not None and index >= 0 and bool(decoded.has(np.array(index)))
                if _is_file(data) and not taken and i not in failures:
                    rest.append(i)
            assert edge.source is not None
            self._decode_rest(results, rest, edge.source.constants.get("adjust_orientation", True), failures)
            opened = opened.replace_results(results)
        opened.there = decoded
        return opened

    def close(self) -> None:
        """End the thread, and wait for the engine."""
        with self._lock:
            thread, self._thread, self.lost = self._thread, None, True
        if thread is not None:
            # The engine's thread itself may have dropped the last reference to a pipeline.
            mine = threading.current_thread().name.startswith(_NAME)
            thread.shutdown(wait=not mine, cancel_futures=True)
        self._see_all()  # the caller releases the files' memory next

    # ---------------------------------------------------------------- in the engine's thread

    def start(self, share: SharedFiles, count: int) -> Future[Decoded | None]:
        """Decode in the engine's thread; the future's result is None if there is nothing to decode."""
        with self._lock:
            if not count or self.lost:
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
        except Exception as error:  # drivers and libraries raise various errors; memory may be exhausted
            self._note_failure(error)
            return None

    def _decode(self, share: SharedFiles) -> Decoded | None:
        if not share.used * 1.1 <= self._room <= share.used * 2:
            self._room = share.used + share.used // 4
        engine = self._open_engine()
        if engine is None:
            return None
        files, state = share.table(), self._turn
        sizes = -(-files["height"].astype(np.int64) * files["width"] * 3 // _ALIGNED) * _ALIGNED
        used = int(sizes.sum())
        files["out"] = sizes.cumsum() - sizes
        arena = self._arena(used + share.behind)
        self._turn = (state + 1) % _STATES
        _see(self._events[state])
        event = self._submit(engine, files, arena, state)
        if event is not None:
            self.device_stream.keep_until(share.memory, event)
        decoded = Decoded(self, arena, used, files, event)
        if not files["code"].all():
            return decoded
        decoded.release()
        return None

    def _submit(self, engine: JpegEngine, files: Files, arena: Tensor, state: int) -> Any:
        """Submit files; return the event after the engine's writes, also if the call failed."""
        stream = self._own_stream()
        with contextlib.nullcontext() if stream is None else on_stream(stream):
            try:
                engine.decode(files, arena, state, 0 if stream is None else stream.cuda_stream)
                failure = None
            except Exception as error:  # the next call may succeed: a single image can make the whole call fail
                files["code"], failure = 1, error
        event = self._events[state] = self.device_stream.record(stream)
        if failure is None:
            self._failures = 0
        else:
            self._note_failure(failure)
        return event

    def _own_stream(self) -> Any:
        if self.device_stream.stream is not None and self._stream is None:
            self._stream = self.device_stream.new_stream()
        return self._stream

    def _open_engine(self) -> JpegEngine | None:
        if self._engine is None and not self.lost:
            device = self.device_stream.device
            assert device is not None
            try:
                self._engine = open_engine(device, self._work)
            except Exception as error:  # drivers and libraries raise various errors
                self._give_up(error)
        return self._engine

    def _note_failure(self, error: Exception) -> None:
        self._failures += 1
        if self._failures >= _MOST_FAILURES:
            self._give_up(error)
        elif not self._has_warned:
            self._has_warned = True
            where = self.device_stream.device
            warnings.warn(f"the JPEG decoder on {where} failed on a batch: {error}; the CPU decoded it", stacklevel=2)

    def _give_up(self, error: Exception) -> None:
        self._see_all()  # otherwise the engine's states would be destroyed while they decode
        self._engine, self.lost = None, True
        with self._lock:
            self._free.clear()
        warnings.warn(
            f"the JPEG decoder on {self.device_stream.device} does not work: {error}; the CPU decodes all images. "
            "hw_decoder_load=0 switches it off.",
            stacklevel=2,
        )

    def _see_all(self) -> None:
        for event in self._events:
            _see(event)

    # ---------------------------------------------------------------- the rest, and memory

    def _decode_rest(
        self, results: list[Any], rest: Sequence[int], upright: bool, failures: dict[int, BaseException]
    ) -> None:
        """Decode images on the CPU: replace files by pixels in `results`, or add the errors to `failures`."""
        fancy = self._work.fancy
        images = decode_together([results[i] for i in rest], upright, fancy=fancy) if rest else []
        for i, pixels in zip(rest, images, strict=True):
            try:
                if pixels is None:
                    pixels = decode(results[i], adjust_orientation=upright, fancy=fancy)
                results[i] = pixels
            except Exception as error:
                failures[i] = error

    def _arena(self, used: int) -> Tensor:
        """Return memory that no kernel uses.

        The host must have seen the event after the memory's last use. This includes memory that torch's allocator
        returns; see the module's docstring.
        """
        with self._lock:
            for k, (arena, event) in enumerate(self._free):
                if arena.numel() >= used and (event is None or event.query()):
                    return self._free.pop(k)[0]
            # Drop arenas that are too small, unless a kernel still uses them.
            self._free = [(a, e) for a, e in self._free if a.numel() >= used or not (e is None or e.query())]
            large = [k for k, (arena, _) in enumerate(self._free) if arena.numel() >= used]
            waited = self._free.pop(large[0]) if len(large) >= _STATES - 1 else None
        if waited is not None:  # more arenas would only waste memory: the device is slower than the host
            _see(waited[1])
            return waited[0]
        block = torch.empty(used + used // 4, dtype=torch.uint8, device=self.device_stream.device)
        stream = self._own_stream()
        if stream is not None:
            block.record_stream(stream)  # if the batch fails, the memory may be released while the engine writes
        event = self.device_stream.record()
        if event is not None:
            event.synchronize()  # rare: only if no arena is large enough
        return block

    def give_back(self, arena: Tensor, event: Any) -> None:
        """Store an arena for a later batch, which may write to it after all work that is now enqueued."""
        self.device_stream.wait_for(event)
        last = self.device_stream.record()
        with self._lock:
            if not self.lost:
                self._free.append((arena, last))


def _work_of(edges: Sequence[DataNode], count: int, threads: int) -> EngineWork:
    """Return the engine's workload for its share of batches of `count` images."""
    constants = [edge.source.constants for edge in edges if edge.source is not None]
    share = max((float(each.get("hw_decoder_load", 0)) for each in constants), default=0.0)
    height, width = (
        max((int(each.get(f"preallocate_{name}_hint", 0)) for each in constants), default=0) or SIDE
        for name in ("height", "width")
    )
    fancy = all(each.get("jpeg_fancy_upsampling", True) for each in constants)
    return EngineWork(min(count, math.ceil(count * share * _MORE)), _STATES, fancy, threads, (height, width))


def _share_of(opened: OpenBuffer) -> SharedFiles:
    share = None if opened.arena is None else opened.arena.share
    assert isinstance(share, SharedFiles)
    return share


def _indices(images: ChunkImages) -> Array:
    """Return the images' indices in the share of the batch; -1 for images that the CPU decoded."""
    indices: Array = images.parts["index"]
    return np.where(indices >= 0, indices + images.first, -1)


def _is_complete(opened: OpenBuffer, decoded: Decoded | None) -> bool:
    """Return whether all images are decoded and in arenas."""
    for _, stored in opened.chunks():
        if not isinstance(stored, ChunkImages):
            return False
        shared = _indices(stored)
        shared = shared[shared >= 0]
        if len(shared) and (decoded is None or not decoded.has(shared).all()):
            return False
    return True


def _is_file(sample: Any) -> bool:
    return isinstance(sample, Tensor) and sample.ndim == 1


def _see(event: Any) -> None:
    """Wait until the host has seen that an event is done."""
    if event is not None and not event.query():
        event.synchronize()
