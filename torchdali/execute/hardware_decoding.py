"""Images of a batch that an engine of the device decodes, beside those that threads of the CPU do.

Decoders that share the work return the encoded bytes of the images that they leave. These are kept in page-locked
memory; as soon as all of a batch are there, a thread of the pipeline's own submits them to the engine, which writes
into an arena on the device. Behind its images is room for those of the CPU, so that a batch lies in one piece.

Engines do not keep to the order of streams: an arena is used again only when the host has *seen* the event behind its
last use, and files stay in their memory until the host has seen that of the engine.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchdali.codecs._native import Encoded, decode_together, encoded
from torchdali.codecs.engines import Engine, open_engine
from torchdali.codecs.images import decode
from torchdali.execute.device_stream import DeviceStream
from torchdali.execute.output_buffer import Arena
from torchdali.graph.nodes import DataNode
from torchdali.tensors import TensorList
from torchdali.tensors._foreign import on_stream
from torchdali.tensors._storage import Packed
from torchdali.tensors.buffer_pool import BufferPool

__all__ = ["ROOM", "Decoded", "HardwareDecoding", "LeftSamples", "is_shared", "mark", "when_submitted"]

ROOM = 1 << 18  # bytes of pixels, and of files, for a sample of the first batch
_ALIGNED = 256
_NAME = "torchdali-engine"
_STATES = 3  # batches that are on their way in the engine
_EMPTY = torch.empty((0, 0, 3), dtype=torch.uint8)
_SHARING = ("_decode_share", "_decode_seen", "_decode_random_seen")


class Decoded(NamedTuple):
    """Images in an arena on the device.

    Attributes:
        arena: Its elements.
        used: How many of them; behind these is room for the images of the CPU.
        places: By the number of an image: the file's bytes, where its image starts, and its shape.
        event: Behind the pixels; None without streams.
    """

    arena: Tensor
    used: int
    places: dict[int, tuple[Tensor, int, tuple[int, int, int]]]
    event: Any


class LeftSamples:
    """The samples of one batch that are left to the engine.

    Args:
        size: Samples of the batch.
        files: Page-locked memory for their bytes.
        behind: Elements to leave on the device behind the engine's.
    """

    def __init__(self, decoding: HardwareDecoding, size: int, files: Arena, behind: int) -> None:
        self._decoding, self._left, self.files, self.behind = decoding, size, files, behind
        # Threads of the chain add to it, each under the lock; once it is submitted, the engine's thread reads it, and
        # nobody adds.
        self.kept: dict[int, tuple[Tensor, Encoded]] = {}
        self._lock = threading.Lock()
        self._future: Future[Decoded | None] | None = None

    @property
    def takes(self) -> bool:
        """True as long as the engine works."""
        return not self._decoding.lost

    def keep(self, data: Any) -> Tensor:
        """Keep the bytes of a file, a tensor or where it lies, in page-locked memory; itself if they are there."""
        if isinstance(data, Tensor):
            if id(data) in self.kept:
                return data
            (data,) = encoded([data])
            assert data is not None  # or it would not have been left
        kept = self._copied(data)
        with self._lock:
            if self._future is None:  # else the CPU decodes it
                self.kept[id(kept)] = kept, data
        return kept

    def _copied(self, data: Encoded) -> Tensor:
        place = self.files.take(data.length)
        flat = self.files.flat
        kept = (
            torch.empty(data.length, dtype=torch.uint8, pin_memory=flat.is_pinned())
            if place < 0
            else flat[place : place + data.length]
        )
        ctypes.memmove(kept.data_ptr(), data.address, data.length)
        return kept

    def seen(self, count: int) -> None:
        """Note that so many samples were looked at; submit those that are left when all were."""
        with self._lock:
            self._left -= count
            ready = self._left == 0
        if ready:
            self.submit()

    def submit(self) -> Future[Decoded | None]:
        """Let the engine's thread submit them, once."""
        with self._lock:
            if self._future is None:
                self._future = self._decoding.submit(self)
            return self._future


class HardwareDecoding:
    """The engine of a pipeline's device, its thread and its memory.

    Args:
        device_stream: Where pixels go.
        buffers: Gives memory for files.
        count: Samples of the largest batch.
        threads: Of the pipeline.
        fancy: Upsample colors smoothly, as all that shares the engine does.

    Attributes:
        lost: It does not work; nothing more should be left to it.
    """

    def __init__(self, device_stream: DeviceStream, buffers: BufferPool, count: int, threads: int, fancy: bool) -> None:
        self._device_stream, self._buffers, self._count, self._threads = device_stream, buffers, count, threads
        self._fancy = fancy
        self._engine: Engine | None = None
        self._tried = False
        self._free: list[tuple[Tensor, Any]] = []
        self._lock = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._stream: Any = None
        self._states: list[Any] = [None] * _STATES
        self._turn = 0
        self._room = 0
        self.lost = False

    def left(self, size: int, behind: int) -> LeftSamples:
        """Return what keeps the samples of a batch that are left to the engine."""
        room = self._room or size * ROOM
        return LeftSamples(self, size, Arena(self._buffers.empty((room,), torch.uint8)), behind)

    def close(self) -> None:
        """End the thread, and wait for the engine."""
        with self._lock:
            thread, self._thread, self.lost = self._thread, None, True
        if thread is not None:
            mine = threading.current_thread().name.startswith(_NAME)  # it dropped the last reference to a pipeline
            thread.shutdown(wait=not mine, cancel_futures=True)
        for event in self._states:  # files are let go next
            _see(event)

    def submit(self, left: LeftSamples) -> Future[Decoded | None]:
        """Decode in the engine's thread; None for nothing."""
        with self._lock:
            if not left.kept or self.lost:
                nothing: Future[Decoded | None] = Future()
                nothing.set_result(None)
                return nothing
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, _NAME)
            return self._thread.submit(self._in_context, left)

    def _in_context(self, left: LeftSamples) -> Decoded | None:
        try:
            with self._device_stream.context():
                return self._submitted(left)
        except Exception as error:  # of memory, too: the CPU decodes what was left
            self._give_up(error)
            return None

    def _submitted(self, left: LeftSamples) -> Decoded | None:
        used = left.files.used
        if not used * 1.1 <= self._room <= used * 2:
            self._room = used + used // 4
        engine = self._opened()
        if engine is None:
            return None
        places, size = _places(left.kept)
        arena = self._arena(size + left.behind)
        state, self._turn = self._turn, (self._turn + 1) % _STATES
        _see(self._states[state])
        into = [arena[start : start + math.prod(shape)].view(shape) for _, start, shape in places.values()]
        files = [data for data, *_ in places.values()]
        stream = self._own_stream()
        with contextlib.nullcontext() if stream is None else on_stream(stream):
            try:
                good = engine.decode(files, into, state, 0 if stream is None else stream.cuda_stream)
            except Exception as error:  # drivers and libraries fail in ways of their own
                self._give_up(error)
                good = [False] * len(files)
        event = self._states[state] = self._device_stream.record(stream)
        if event is not None:
            self._device_stream.keep_until(left.files.flat, event)
            self._device_stream.keep_until(files, event)
        decoded = Decoded(arena, size, {i: places[i] for i, yes in zip(places, good, strict=True) if yes}, event)
        if decoded.places:
            return decoded
        self.give_back(decoded)
        return None

    def _own_stream(self) -> Any:
        device_stream = self._device_stream
        if device_stream.stream is not None and self._stream is None:
            self._stream = device_stream.new_stream()
        return self._stream

    def _opened(self) -> Engine | None:
        if not self._tried:
            self._tried = True
            device = self._device_stream.device
            assert device is not None
            try:
                self._engine = open_engine(device, self._count, self._threads, _STATES, self._fancy)
            except Exception as error:  # drivers and libraries fail in ways of their own
                self._give_up(error)
        return self._engine

    def _give_up(self, error: Exception) -> None:
        self._engine, self.lost = None, True
        warnings.warn(
            f"the decoder for JPEGs on {self._device_stream.device} does not work: {error}; the CPU decodes all "
            "images. With hw_decoder_load=0 it is not asked.",
            stacklevel=2,
        )

    def decode_rest(
        self, results: list[Any], decoded: Decoded | None, upright: bool, failures: dict[int, BaseException]
    ) -> None:
        """Decode on the CPU what was left to the engine, and what that did not decode.

        Args:
            results: Of the chain; images are put into it.
            upright: Turn images as their EXIF blocks say.
            failures: Errors of samples: those of which the CPU can make nothing, either, are added.
        """
        there = set() if decoded is None else {id(data) for data, *_ in decoded.places.values()}
        rest = [i for i, data in enumerate(results) if _is_encoded(data) and id(data) not in there]
        rest = [i for i in rest if i not in failures]
        images = decode_together([results[i] for i in rest], upright, fancy=self._fancy) if rest else []
        for i, pixels in zip(rest, images, strict=True):
            try:
                if pixels is None:
                    pixels = decode(results[i], adjust_orientation=upright, fancy=self._fancy)
                results[i] = pixels
            except Exception as error:
                failures[i] = error

    def joined(
        self, batch: TensorList, decoded: Decoded, numbers: Mapping[int, int], behind: bool, keeps: bool
    ) -> TensorList:
        """Put images together. Must run inside the device stream's `context`.

        Args:
            batch: Those of the CPU, on the device; empty ones in place of the others.
            decoded: The others.
            numbers: Which of them belongs to which sample of the batch.
            behind: They lie in the arena, behind the others.
            keeps: The batch may be kept: it needs memory of its own.
        """
        self._device_stream.wait_for(decoded.event)
        shapes, stored, dense = batch.shape(), batch.stored(), batch.dense()
        if isinstance(stored, Packed):
            flat, offsets = stored.flat, list(stored.offsets)
        else:
            parts = [s.reshape(-1) for s in batch.samples()] if dense is None else [dense.reshape(-1)]
            sizes = [math.prod(shape) for shape in shapes]
            flat, offsets = torch.cat(parts), [sum(sizes[:i]) for i in range(len(sizes))]
        first = decoded.used
        offsets = [start + first for start in offsets]
        for i, number in numbers.items():
            _, offsets[i], shapes[i] = decoded.places[number]
        if behind:
            whole = decoded.arena[: first + flat.numel()]
            whole = whole.clone() if keeps else whole
        else:
            whole = torch.cat([decoded.arena[:first], flat])
        return TensorList.from_packed(whole, offsets, shapes, batch.layout(), batch.source_infos)

    def _arena(self, used: int) -> Tensor:
        """Return memory that no kernel uses any more.

        Not fresh from torch's allocator, nor after an event that is only enqueued, see above.
        """
        with self._lock:
            for k, (arena, event) in enumerate(self._free):
                if arena.numel() >= used and (event is None or event.query()):
                    return self._free.pop(k)[0]
            # Those that are too small, and done, are not needed again.
            self._free = [(a, e) for a, e in self._free if a.numel() >= used or not (e is None or e.query())]
            large = [k for k, (arena, _) in enumerate(self._free) if arena.numel() >= used]
            waited = self._free.pop(large[0]) if len(large) >= _STATES - 1 else None
        if waited is not None:  # more would be memory for nothing: the device is behind
            _see(waited[1])
            return waited[0]
        block = torch.empty(used + used // 4, dtype=torch.uint8, device=self._device_stream.device)
        stream = self._own_stream()
        if stream is not None:
            block.record_stream(stream)  # of a batch that fails, it may be let go while the engine writes
        event = self._device_stream.record()
        if event is not None:
            event.synchronize()  # rare: only if no arena is large enough
        return block

    def give_back(self, decoded: Decoded) -> None:
        """Keep an arena for a later batch, which may write to it when what is enqueued now is done."""
        self._device_stream.wait_for(decoded.event)
        event = self._device_stream.record()
        with self._lock:
            self._free.append((decoded.arena, event))


def is_shared(edge: DataNode) -> bool:
    """Return whether a decoder on the device makes some of the samples of an edge."""
    node = edge.source
    if node is None or node.operator.name not in _SHARING or edge.index:
        return False
    return bool(node.constants.get("hw_decoder_load", 0) > 0)


def mark(results: list[Any], decoded: Decoded) -> dict[int, int]:
    """Put empty images in place of files that were decoded; return which is which.

    Samples that failed may have been dropped or replaced: a file is known by being the same object.
    """
    known = {id(data): number for number, (data, *_) in decoded.places.items()}
    numbers = {i: known[id(r)] for i, r in enumerate(results) if id(r) in known}
    for i in numbers:
        results[i] = _EMPTY
    return numbers


def when_submitted(batches: Sequence[LeftSamples], go_on: Callable[[bool], None]) -> None:
    """Submit what is left of batches, if that was not done, and go on when the engine's thread has.

    Args:
        go_on: Called once, in this thread or, if True, in the engine's.
    """
    here, left = threading.get_ident(), len(batches)
    lock = threading.Lock()

    def one(_: Future[Decoded | None]) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            go_on(threading.get_ident() != here)

    for batch in batches:
        batch.submit().add_done_callback(one)


def _is_encoded(sample: Any) -> bool:
    return isinstance(sample, Tensor) and sample.ndim == 1


def _see(event: Any) -> None:
    """Let the host see an event."""
    if event is not None and not event.query():
        event.synchronize()


def _places(kept: Mapping[int, tuple[Tensor, Encoded]]) -> tuple[dict[int, Any], int]:
    """Return where images go in an arena, and how much of it they take."""
    places: dict[int, tuple[Tensor, int, tuple[int, int, int]]] = {}
    used = 0
    for number, (data, header) in enumerate(kept.values()):
        places[number] = data, used, (header.height, header.width, 3)
        used += -(-header.height * header.width * 3 // _ALIGNED) * _ALIGNED
    return places, used
