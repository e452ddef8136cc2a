"""The accelerator of a pipeline: its streams, and how batches cross over.

Everything of one pipeline that computes on the device runs on one stream of its own. Copies to the device
run on a second one, in parallel with the kernels of earlier batches, and the first waits for each of them. A batch is
handed to the user by an event: the stream that is current in the user's thread waits for it, and every
tensor is recorded on that stream, so that its memory is not reused while the user's kernels read it. With
``device_id="cpu"`` the same code runs on the CPU, without streams.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from torchdali.execute.output_buffer import Arena
from torchdali.tensors import TensorList
from torchdali.tensors._foreign import on_stream, stream_of
from torchdali.tensors._storage import PackedSamples

__all__ = ["DeviceStream", "resolve_device"]

_SMALL = 1 << 16  # bytes of data that is copied together with other data
_ALIGNED = 16  # bytes: each batch in a block begins at a multiple of this
_NOTHING = contextlib.nullcontext()


def resolve_device(device_id: int | str | None) -> torch.device | None:
    """Return the device that ``"gpu"`` means: ``cuda:N`` for a number, the CPU for ``"cpu"``, none for None.

    Raises:
        TypeError: anything else.
    """
    if device_id is None:
        return None
    if isinstance(device_id, int):
        return None if device_id < 0 else torch.device("cuda", device_id)
    try:
        device = torch.device(device_id)
    except (RuntimeError, TypeError):
        raise TypeError(
            f"device_id must be an integer, a torch device (for example 'cpu') or None, got {device_id!r}"
        ) from None
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", 0)
    return device


class DeviceStream:
    """The device stage of one executor.

    Args:
        device: Where it runs; None when the pipeline has no accelerator.
        priority: Priority of its streams; a lower number is more urgent, and above 0 is 0, as CUDA has it.
        one_stream: Copy on the stream that computes.
    """

    def __init__(self, device: torch.device | None, priority: int = 0, one_stream: bool = False) -> None:
        self.device = device
        self.stream: Any = None
        self._copies: Any = None
        self._priority = min(priority, 0)
        if device is not None and device.type == "cuda":
            if not torch.cuda.is_available():
                raise RuntimeError(
                    f"the pipeline's device must exist, got {device}, but no CUDA-capable GPU is available. Write "
                    "device_id='cpu', which runs \"gpu\" operators on the CPU, or device_id=None if there are none"
                )
            self.stream = self.new_stream()
            self._copies = self.stream if one_stream else self.new_stream()
        self._sent: deque[tuple[Any, Any]] = deque()
        self._lock = threading.Lock()

    @property
    def pins(self) -> bool:
        """True if host memory should be page-locked; ``DALI_RESTRICT_PINNED_MEM=1`` forbids it."""
        return self.stream is not None and os.environ.get("DALI_RESTRICT_PINNED_MEM") != "1"

    def context(self) -> Any:
        """Make the pipeline's stream and its device current in this thread."""
        return _NOTHING if self.stream is None else on_stream(self.stream)

    def to_device(self, batch: TensorList) -> TensorList:
        """Copy a batch to the device; itself if it is there. Must run inside `context`."""
        _wait_until_ready(batch)
        if self.device is None or batch.device == self.device:
            return batch
        if batch.uploaded is not None:
            return TensorList.from_dense(batch.uploaded, batch.layout(), batch.source_infos)
        if self.stream is None or batch.device.type != "cpu":
            return _move(batch, self.device)
        whole = batch.dense() is not None or isinstance(batch.current_storage(), PackedSamples)
        if self.pins and not whole and any(s is None for s in batch.samples()):
            return self._move_present(batch)
        source = _pin(batch) if self.pins else batch
        with on_stream(self._copies):
            moved = _move(source, self.device)
        copied = self.record(self._copies)
        # The copy reads pinned memory after this call returns: the batch must stay until the event after it is done.
        self.keep_until(batch, copied)
        self._wait_for_copies(_tensors(moved), copied)
        return moved

    def _move_present(self, batch: TensorList) -> TensorList:
        """Copy the samples that a branch has, together."""
        present = [s for s in batch.samples() if s is not None]
        moved = iter(self.to_device(TensorList.from_samples(present)).samples() if present else ())
        places = [s if s is None else next(moved) for s in batch.samples()]
        return TensorList.from_samples(places, batch.layout(), source_info=batch.source_infos)

    def _wait_for_copies(self, tensors: Iterable[torch.Tensor], copied: Any) -> None:
        """Let the stream that computes wait for the event after the copies of tensors."""
        if self._copies is self.stream:
            return
        self.stream.wait_event(copied)
        for tensor in tensors:
            # This is allocated on the stream of the copies. Without the next call, that stream could reuse the memory
            # while kernels still read it.
            tensor.record_stream(self.stream)

    def upload_together(self, batches: Iterable[TensorList]) -> list[TensorList]:
        """Copy small batches, which kernels are going to need, to the device in one piece. Must run inside `context`.

        Returns:
            The batches that have a copy now (see `TensorList.uploaded`); remove the copies when the batch is done.
        """
        assert self.device is not None
        small, size = _together(batches)
        if not small:
            return []
        block = torch.empty(size, dtype=torch.uint8, pin_memory=self.pins)
        _write(small, block, 0)
        # No reference is needed until the copy is done: torch's allocator of page-locked memory waits for copies
        # itself.
        if self.stream is None:
            there = block.to(self.device)
        else:
            with on_stream(self._copies):
                there = block.to(self.device, non_blocking=True)
            self._wait_for_copies([there], self.record(self._copies))
        return _set_uploaded(small, there, 0)

    def copy_arena(
        self, arena: Arena, batches: Iterable[TensorList], into: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, list[TensorList]]:
        """Copy the used part of an arena to the device. Must run inside `context`, once nobody else fills the arena.

        Args:
            batches: Small ones that go up in the same copy, if there is room for them.
            into: Memory on the device, which nothing uses.

        Returns:
            The elements of the arena on the device, and the list that `upload_together` returns.
        """
        small, size = _together(batches) if arena.flat.dtype == torch.uint8 else ([], 0)
        place = arena.take(size + _ALIGNED) if small else -1
        if place < 0:
            small = []
        behind = -(-place // _ALIGNED) * _ALIGNED
        _write(small, arena.flat, behind)
        source = arena.flat[: arena.used]
        with on_stream(self._copies):
            if into is None:
                there = source.to(self.device, non_blocking=True)
            else:
                there = into[: arena.used].copy_(source, non_blocking=True)
        copied = self.record(self._copies)
        self.keep_until(arena.flat, copied)
        self._wait_for_copies([there] if into is None else [], copied)
        return there, _set_uploaded(small, there, behind)

    def adopt(self, batch: TensorList) -> TensorList:
        """Copy a source's data to the device. Must run inside `context`."""
        here = self.stream is not None and batch.device == self.device
        moved = self.to_device(batch)
        if here:
            # The memory belongs to the source's stream, which must not use it again while ours reads it.
            for tensor in _tensors(batch):
                tensor.record_stream(self.stream)
        return moved

    def new_stream(self) -> Any:
        """Return another stream on the device, of the same priority."""
        make: Any = torch.cuda.Stream
        return make(self.device, priority=self._priority)

    def close(self) -> None:
        """Wait for copies that read pinned memory of this pipeline, before the memory is released.

        torch's allocator of pinned memory knows only of copies that begin where a block begins.
        """
        with self._lock:
            sent, self._sent = list(self._sent), deque()
        for event, _ in sent:
            if not event.query():
                event.synchronize()

    def wait_for(self, event: Any) -> None:
        """Let the stream that computes wait for an event, if there is one."""
        if event is not None:
            self.stream.wait_event(event)

    def wait_for_current(self) -> None:
        """Let the stream that computes wait for the work of this thread's current one."""
        if self.stream is not None:
            self.stream.wait_stream(torch.cuda.current_stream(self.device))

    def keep_until(self, memory: Any, event: Any) -> None:
        """Hold pinned memory until an event is done; it may be reused after that.

        Several threads send batches: without the lock, one could drop the entry that another has not asked about yet.
        """
        with self._lock:
            self._sent.append((event, memory))
            while self._sent and self._sent[0][0].query():
                self._sent.popleft()

    def record(self, stream: Any = None) -> Any:
        """Return an event after all work enqueued on a stream, by default the computing one; None without a device."""
        if self.stream is None:
            return None
        event = torch.cuda.Event(blocking=True)  # otherwise, a waiting thread keeps a core busy
        event.record(self.stream if stream is None else stream)
        return event

    def to_cpu(self, batch: TensorList) -> TensorList:
        """Copy a batch to the CPU and wait for it."""
        _wait_until_ready(batch)
        if batch.device.type == "cpu":
            return batch
        # Waits in this thread for the work enqueued on the current stream: inside `context`, the kernels of this batch.
        return _move(batch, torch.device("cpu"))

    def hand_over(self, batches: Iterable[TensorList], ready: Any, stream: Any = None) -> None:
        """Make the consumer's stream wait for a batch.

        Args:
            batches: Outputs of the batch.
            ready: From `record`, after the last kernel of the batch was enqueued. The stream doesn't wait for later
                batches that the pipeline may have enqueued.
            stream: A torch stream or the handle of one; the current stream of this thread by default.
        """
        if self.stream is None or self.device is None:
            return
        current = torch.cuda.current_stream(self.device) if stream is None else stream_of(stream, self.device)
        # In the user's thread, without waiting: kernels that it enqueues from now on start after the event.
        current.wait_event(ready)
        for batch in batches:
            if batch.device.type == "cuda":
                # The memory was allocated on the pipeline's stream. Without this, the allocator would give it to the
                # next batch as soon as the user drops the tensor, while kernels of the user's stream may still read
                # it.
                for tensor in _tensors(batch):
                    tensor.record_stream(current)


def _wait_until_ready(batch: TensorList) -> None:
    """Let the current stream wait for the stream of the user on which a source made a batch."""
    if batch.ready is not None:
        torch.cuda.current_stream(batch.device).wait_event(batch.ready)


def _tensors(batch: TensorList) -> Sequence[torch.Tensor]:
    """Return tensors that cover the memory of a batch."""
    dense, stored = batch.dense(), batch.current_storage()
    if isinstance(stored, PackedSamples):
        return [stored.flat]
    return [s for s in batch.samples() if s is not None] if dense is None else [dense]


_Small = tuple[TensorList, torch.Tensor, int]


def _together(batches: Iterable[TensorList]) -> tuple[list[_Small], int]:
    """Return the small batches, each with its start in a common block and its size, in bytes."""
    small, end = [], 0
    for batch in batches:
        dense = batch.dense()
        if dense is not None and dense.is_cpu and 0 < dense.nbytes <= _SMALL and dense.dtype != torch.bool:
            small.append((batch, dense.contiguous(), end))
            end += -(-dense.nbytes // _ALIGNED) * _ALIGNED
    return small, end


def _write(small: Iterable[_Small], block: torch.Tensor, behind: int) -> None:
    memory = block.data_ptr() + behind  # for so few bytes, torch's own copy takes ten times as long
    for _, dense, start in small:
        ctypes.memmove(memory + start, dense.data_ptr(), dense.nbytes)


def _set_uploaded(small: Iterable[_Small], there: torch.Tensor, behind: int) -> list[TensorList]:
    for batch, dense, start in small:
        part = there[behind + start : behind + start + dense.nbytes].view(dense.dtype)
        batch.set_uploaded(part if dense.dim() == 1 else part.view(dense.shape))
    return [batch for batch, _, _ in small]


def _pin(batch: TensorList) -> TensorList:
    """Return a batch in one piece of page-locked memory; copies from other memory would make the host wait."""
    layout, infos = batch.layout(), batch.source_infos
    dense, stored = batch.dense(), batch.current_storage()
    if dense is not None:
        return batch if dense.is_pinned() else TensorList.from_dense(dense.pin_memory(), layout, infos)
    if isinstance(stored, PackedSamples):
        return batch if stored.flat.is_pinned() else TensorList.from_packed(
            stored.flat.pin_memory(), stored.offsets, stored.shape(), layout, infos
        )  # fmt: skip
    samples = batch.samples()
    if not samples or any(s is None or s.dtype != samples[0].dtype for s in samples):
        return batch
    ends = list(itertools.accumulate(s.numel() for s in samples))
    flat = torch.empty(ends[-1], dtype=samples[0].dtype, pin_memory=True)
    starts = [0, *ends[:-1]]
    for sample, start in zip(samples, starts, strict=True):
        flat[start : start + sample.numel()].view(sample.shape).copy_(sample)
    return TensorList.from_packed(flat, starts, [tuple(s.shape) for s in samples], layout, infos)


def _move(batch: TensorList, device: torch.device) -> TensorList:
    def move(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(device, non_blocking=device.type != "cpu")

    dense, stored = batch.dense(), batch.current_storage()
    if dense is not None:
        return TensorList.from_dense(move(dense), batch.layout(), source_info=batch.source_infos)
    if isinstance(stored, PackedSamples):
        return TensorList.from_packed(
            move(stored.flat), stored.offsets, stored.shape(), batch.layout(), batch.source_infos
        )
    samples = [s if s is None else move(s) for s in batch.samples()]
    return TensorList.from_samples(samples, batch.layout(), source_info=batch.source_infos)
