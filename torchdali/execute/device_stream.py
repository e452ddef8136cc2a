"""The accelerator of a pipeline: its streams, and the transfer of batches.

All kernels of a pipeline run on the pipeline's own stream, the *computing stream*. Copies to the device run on a second
stream, in parallel with the kernels of earlier batches. The computing stream waits for each copy.

An event is recorded after the last kernel of a batch. When the user takes the batch, the current stream of the user's
thread waits for this event. Every tensor of the batch is recorded on the user's stream, so that PyTorch doesn't reuse
the tensor's memory while the user's kernels read the tensor.

With ``device_id="cpu"``, the same code runs on the CPU, without streams.
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
from torchdali.tensors._foreign import on_stream, to_torch_stream
from torchdali.tensors._storage import PackedSamples

__all__ = ["DeviceStream", "resolve_device"]

_SMALL_BYTES = 1 << 16  # batches of at most this number of bytes are copied together
_ALIGNMENT = 16  # alignment, in bytes, of each batch in a block with several batches
_NO_CONTEXT = contextlib.nullcontext()


def resolve_device(device_id: int | str | None) -> torch.device | None:
    """Return the device on which a pipeline's ``"gpu"`` operators run.

    Args:
        device_id: The index of a GPU, a torch device such as ``"cpu"``, or None. If the environment variable
            ``TORCHDALI_DEVICE`` is ``cpu``, the CPU replaces every GPU.

    Returns:
        The device; None if `device_id` is None or negative.

    Raises:
        TypeError: `device_id` is not an index, a device or None.
        ValueError: ``TORCHDALI_DEVICE`` is neither empty nor ``cpu``.
    """
    if device_id is None:
        return None
    if isinstance(device_id, int):
        if device_id < 0:
            return None
        device_id = f"cuda:{device_id}"
    try:
        device = torch.device(device_id)
    except (RuntimeError, TypeError):
        raise TypeError(
            f"device_id must be an integer, a torch device (for example 'cpu') or None, got {device_id!r}"
        ) from None
    if device.type != "cuda":
        return device
    forced = os.environ.get("TORCHDALI_DEVICE", "")
    if forced not in ("", "cpu"):
        raise ValueError(f"the environment variable TORCHDALI_DEVICE must be 'cpu' or unset, got {forced!r}")
    return torch.device(forced or f"cuda:{device.index or 0}")


class DeviceStream:
    """The device of one executor, and its streams.

    Args:
        device: The device; None if the pipeline has no accelerator.
        priority: CUDA priority of the streams. Lower numbers are more urgent. Numbers above 0 count as 0.
        one_stream: True to run copies on the computing stream instead of a second stream.

    Attributes:
        stream: The computing stream; None on the CPU.
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
                    "device_id='cpu', or set TORCHDALI_DEVICE=cpu in the environment, to run \"gpu\" operators on the "
                    "CPU. Write device_id=None if the pipeline has no GPU operators"
                )
            self.stream = self.new_stream()
            self._copies = self.stream if one_stream else self.new_stream()
        self._pending_copies: deque[tuple[Any, Any]] = deque()
        self._lock = threading.Lock()

    @property
    def pins(self) -> bool:
        """True if memory for copies to the device is pinned.

        Memory is not pinned on the CPU, or if the environment variable ``DALI_RESTRICT_PINNED_MEM`` is ``1``.
        """
        return self.stream is not None and os.environ.get("DALI_RESTRICT_PINNED_MEM") != "1"

    def context(self) -> Any:
        """Return a context manager that makes the computing stream and its device current in this thread."""
        return _NO_CONTEXT if self.stream is None else on_stream(self.stream)

    def to_device(self, batch: TensorList) -> TensorList:
        """Copy a batch to the device. Return a batch that is already on the device unchanged.

        The caller must use `context`.
        """
        _wait_until_ready(batch)
        if self.device is None or batch.device == self.device:
            return batch
        if batch.uploaded is not None:
            return TensorList.from_dense(batch.uploaded, batch.layout(), batch.source_infos)
        if self.stream is None or batch.device.type != "cpu":
            return _move(batch, self.device)
        is_block = batch.dense() is not None or isinstance(batch.current_storage(), PackedSamples)
        if self.pins and not is_block and any(s is None for s in batch.samples()):
            return self._move_present(batch)
        source = _pin(batch) if self.pins else batch
        with on_stream(self._copies):
            moved = _move(source, self.device)
        copied = self.record(self._copies)
        # The copy may read pinned memory after this call returns, so the batch must exist until the copy is done.
        self.keep_until(batch, copied)
        self._wait_for_copies(_tensors(moved), copied)
        return moved

    def _move_present(self, batch: TensorList) -> TensorList:
        """Copy the samples that a branch computed, in one block. The other samples remain None."""
        present = [s for s in batch.samples() if s is not None]
        moved = iter(self.to_device(TensorList.from_samples(present)).samples() if present else ())
        samples = [s if s is None else next(moved) for s in batch.samples()]
        return TensorList.from_samples(samples, batch.layout(), source_info=batch.source_infos)

    def _wait_for_copies(self, tensors: Iterable[torch.Tensor], copied: Any) -> None:
        """Make the computing stream wait until tensors have been copied.

        Args:
            tensors: The tensors on the device.
            copied: Event after the copies, on the stream for copies.
        """
        if self._copies is self.stream:
            return
        self.stream.wait_event(copied)
        for tensor in tensors:
            # The tensor was allocated on the stream for copies, and the computing stream uses the tensor from here on.
            # Without the next call, PyTorch could reuse the memory for a new copy while kernels still read the tensor.
            tensor.record_stream(self.stream)

    def upload_small(self, batches: Iterable[TensorList]) -> list[TensorList]:
        """Copy small batches to the device in one block. The caller must use `context`.

        Returns:
            The batches that were copied. The attribute `uploaded` of each batch is the copy. The caller must reset the
            attribute when the copies are no longer used.
        """
        assert self.device is not None
        small, size = _choose_small(batches)
        if not small:
            return []
        block = torch.empty(size, dtype=torch.uint8, pin_memory=self.pins)
        _write(small, block, 0)
        # This method may drop the pinned block before the copy is done, because PyTorch's allocator of pinned memory
        # doesn't reuse the block until then.
        if self.stream is None:
            copy = block.to(self.device)
        else:
            with on_stream(self._copies):
                copy = block.to(self.device, non_blocking=True)
            self._wait_for_copies([copy], self.record(self._copies))
        return _set_uploaded(small, copy, 0)

    def copy_arena(
        self, arena: Arena, batches: Iterable[TensorList], target: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, list[TensorList]]:
        """Copy the used elements of an arena (a block of memory with samples) to the device.

        The caller must use `context`, and all writes to the arena must be done.

        Args:
            arena: The arena.
            batches: More batches to copy. Those batches that are small and fit into the arena become part of this copy.
            target: Memory on the device for the copy. No kernel may use this memory. None to allocate memory.

        Returns:
            The copied elements, and the batches that became part of the copy (see `upload_small`).
        """
        small, size = _choose_small(batches) if arena.flat.dtype == torch.uint8 else ([], 0)
        offset = arena.reserve(size + _ALIGNMENT) if small else -1
        if offset < 0:
            small = []
        base = -(-offset // _ALIGNMENT) * _ALIGNMENT
        _write(small, arena.flat, base)
        source = arena.flat[: arena.used]
        with on_stream(self._copies):
            if target is None:
                copy = source.to(self.device, non_blocking=True)
            else:
                copy = target[: arena.used].copy_(source, non_blocking=True)
        copied = self.record(self._copies)
        self.keep_until(arena.flat, copied)
        self._wait_for_copies([copy] if target is None else [], copied)
        return copy, _set_uploaded(small, copy, base)

    def adopt(self, batch: TensorList) -> TensorList:
        """Copy a source's data to the device, unless it is already there. The caller must use `context`."""
        was_on_device = self.stream is not None and batch.device == self.device
        moved = self.to_device(batch)
        if was_on_device:
            # The data was already on the device, in memory that was allocated on another stream. PyTorch must not reuse
            # this memory while the computing stream reads the data.
            for tensor in _tensors(batch):
                tensor.record_stream(self.stream)
        return moved

    def new_stream(self) -> Any:
        """Create a stream on the device, with this object's priority."""
        make: Any = torch.cuda.Stream
        return make(self.device, priority=self._priority)

    def close(self) -> None:
        """Wait for copies that read this pipeline's pinned memory. After this call, the memory may be released.

        PyTorch's allocator of pinned memory knows only of copies that begin at the start of a block.
        """
        with self._lock:
            pending, self._pending_copies = list(self._pending_copies), deque()
        for event, _ in pending:
            if not event.query():
                event.synchronize()

    def wait_for(self, event: Any) -> None:
        """Make the computing stream wait for an event. Do nothing for None."""
        if event is not None:
            self.stream.wait_event(event)

    def wait_for_current(self) -> None:
        """Make the computing stream wait for all work that is now enqueued on this thread's current stream."""
        if self.stream is not None:
            self.stream.wait_stream(torch.cuda.current_stream(self.device))

    def keep_until(self, memory: Any, event: Any) -> None:
        """Keep a reference to pinned memory until an event is done, so that the memory isn't reused earlier."""
        with self._lock:
            self._pending_copies.append((event, memory))
            while self._pending_copies and self._pending_copies[0][0].query():
                self._pending_copies.popleft()

    def record(self, stream: Any = None) -> Any:
        """Record an event on a stream (by default the computing stream). Return the event; None on the CPU."""
        if self.stream is None:
            return None
        event = torch.cuda.Event(blocking=True)  # with `blocking`, a thread that waits for the event sleeps
        event.record(self.stream if stream is None else stream)
        return event

    def to_cpu(self, batch: TensorList) -> TensorList:
        """Copy a batch to the CPU, and wait for the copy."""
        _wait_until_ready(batch)
        if batch.device.type == "cpu":
            return batch
        # The copy waits for the work on this thread's current stream (inside `context`, the computing stream).
        return _move(batch, torch.device("cpu"))

    def hand_over(self, batches: Iterable[TensorList], ready: Any, stream: Any = None) -> None:
        """Make the user's stream wait until a batch is computed. Then the batch belongs to the user.

        Args:
            batches: Outputs of the batch.
            ready: Event that was recorded after the last kernel of the batch.
            stream: The user's stream, as a torch stream or a handle; by default, this thread's current stream.
        """
        if self.stream is None or self.device is None:
            return
        current = torch.cuda.current_stream(self.device) if stream is None else to_torch_stream(stream, self.device)
        # This thread doesn't wait. Kernels that it enqueues on the user's stream from now on start after the event.
        current.wait_event(ready)
        for batch in batches:
            if batch.device.type == "cuda":
                # The memory was allocated on the pipeline's stream. Without `record_stream`, PyTorch could reuse the
                # memory as soon as the user drops the tensor, while kernels on the user's stream still read the tensor.
                for tensor in _tensors(batch):
                    tensor.record_stream(current)


def _wait_until_ready(batch: TensorList) -> None:
    """Make this thread's current stream wait until a batch's data has been written, if the batch has an event."""
    if batch.ready is not None:
        torch.cuda.current_stream(batch.device).wait_event(batch.ready)


def _tensors(batch: TensorList) -> Sequence[torch.Tensor]:
    """Return tensors that together cover the memory of a batch."""
    dense, stored = batch.dense(), batch.current_storage()
    if isinstance(stored, PackedSamples):
        return [stored.flat]
    return [s for s in batch.samples() if s is not None] if dense is None else [dense]


_Small = tuple[TensorList, torch.Tensor, int]


def _choose_small(batches: Iterable[TensorList]) -> tuple[list[_Small], int]:
    """Choose the small batches that can be copied in one block.

    Returns:
        A list with a tuple of the batch, its tensor and its start in the block for each of these batches; and the
        block's size in bytes.
    """
    small, end = [], 0
    for batch in batches:
        dense = batch.dense()
        if dense is not None and dense.is_cpu and 0 < dense.nbytes <= _SMALL_BYTES and dense.dtype != torch.bool:
            small.append((batch, dense.contiguous(), end))
            end += -(-dense.nbytes // _ALIGNMENT) * _ALIGNMENT
    return small, end


def _write(small: Iterable[_Small], block: torch.Tensor, base: int) -> None:
    memory = block.data_ptr() + base  # for so few bytes, torch's copy would take ten times as long as `memmove`
    for _, dense, start in small:
        ctypes.memmove(memory + start, dense.data_ptr(), dense.nbytes)


def _set_uploaded(small: Iterable[_Small], copy: torch.Tensor, base: int) -> list[TensorList]:
    for batch, dense, start in small:
        part = copy[base + start : base + start + dense.nbytes].view(dense.dtype)
        batch.set_uploaded(part if dense.dim() == 1 else part.view(dense.shape))
    return [batch for batch, _, _ in small]


def _pin(batch: TensorList) -> TensorList:
    """Return the batch in pinned memory. A copy from other memory to the device would make the host wait."""
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
