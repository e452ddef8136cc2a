"""The accelerator of a pipeline: its stream, and how batches cross over.

Everything of one pipeline that runs on the device runs on one stream of its own. A batch is handed to the
user by an event: the stream that is current in the user's thread waits for it, and every tensor is recorded
on that stream, so that its memory is not reused while the user's kernels read it. With
``device_id="cpu"`` the same code runs on the CPU, without streams.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from torchdali.tensors import TensorList
from torchdali.tensors._foreign import stream_of

__all__ = ["DeviceStream", "resolve_device"]

_NOTHING = contextlib.nullcontext()


def resolve_device(device_id: int | str | None) -> torch.device | None:
    """Return the device that ``"gpu"`` means: ``cuda:N`` for a number, the CPU for ``"cpu"``, none for None.

    Raises:
        ValueError: another string.
    """
    if device_id is None:
        return None
    if isinstance(device_id, int):
        return None if device_id < 0 else torch.device("cuda", device_id)
    device = torch.device(device_id)
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", 0)
    return device


class DeviceStream:
    """The device stage of one executor.

    Args:
        device: Where it runs; None when the pipeline has no accelerator.
    """

    def __init__(self, device: torch.device | None) -> None:
        self.device = device
        self.stream: Any = None
        if device is not None and device.type == "cuda":
            if not torch.cuda.is_available():
                raise RuntimeError(
                    f"the pipeline was given {device}, but no CUDA-capable GPU is available; use "
                    "device_id=None (CPU only) or device_id='cpu' (gpu operators on the CPU)"
                )
            self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._sent: deque[tuple[Any, TensorList]] = deque()
        self._lock = threading.Lock()

    @property
    def pins(self) -> bool:
        """True if host memory should be page-locked; ``DALI_RESTRICT_PINNED_MEM=1`` forbids it."""
        return self.stream is not None and os.environ.get("DALI_RESTRICT_PINNED_MEM") != "1"

    def context(self) -> Any:
        """Make the pipeline's stream current in this thread."""
        return _NOTHING if self.stream is None else torch.cuda.stream(self.stream)

    def to_device(self, batch: TensorList) -> TensorList:
        """Copy a batch to the device; itself if it is there. Must run inside `context`."""
        if self.device is None or batch.device == self.device:
            return batch
        moved = _move(batch, self.device)
        if self.stream is not None:
            # The copy reads pinned memory after this call returns: the batch must stay until the event behind it is
            # done.
            self._keep_until_copied(batch)
        return moved

    def adopt(self, batch: TensorList) -> TensorList:
        """Take what a source gave to the device. Must run inside `context`."""
        here = self.stream is not None and batch.device == self.device
        moved = self.to_device(batch)
        if here:
            # The memory belongs to the source's stream, which must not use it again while ours reads it.
            for tensor in _tensors(batch):
                tensor.record_stream(self.stream)
        return moved

    def _keep_until_copied(self, batch: TensorList) -> None:
        """Hold a pinned batch until its copy to the device is done; its memory may be reused after that.

        Several threads send batches: without the lock, one could drop the entry that another has not asked about yet.
        """
        event = self.record()
        with self._lock:
            self._sent.append((event, batch))
            while self._sent and self._sent[0][0].query():
                self._sent.popleft()

    def record(self) -> Any:
        """Return an event behind all that was enqueued so far; None without a stream."""
        if self.stream is None:
            return None
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record(self.stream)
        return event

    def to_cpu(self, batch: TensorList) -> TensorList:
        """Copy a batch to the CPU and wait for it."""
        if batch.device.type == "cpu":
            return batch
        # Waits in this thread for what the current stream has enqueued: inside `context`, the kernels of this batch.
        return _move(batch, torch.device("cpu"))

    def hand_over(self, batches: Iterable[TensorList], ready: Any, stream: Any = None) -> None:
        """Make the consumer's stream wait for a batch.

        Args:
            batches: Outputs of the batch.
            ready: From `record`, after the last kernel of the batch was enqueued. Later batches, which the pipeline
                may have enqueued behind it, are not waited for.
            stream: A torch stream or the handle of one; the current stream of this thread by default.
        """
        if self.stream is None or self.device is None:
            return
        current = (
            torch.cuda.current_stream(self.device)
            if stream is None
            else stream_of(stream, self.device)
        )
        # In the user's thread, without waiting: kernels that it enqueues from now on start behind the event.
        current.wait_event(ready)
        for batch in batches:
            if batch.device.type == "cuda":
                # The memory was allocated on the pipeline's stream. Without this, the allocator would give it to the
                # next batch as soon as the user drops the tensor, while kernels of the user's stream may still read
                # it.
                for tensor in _tensors(batch):
                    tensor.record_stream(current)


def _tensors(batch: TensorList) -> Sequence[torch.Tensor]:
    """Return tensors that cover the memory of a batch."""
    dense = batch.dense()
    return batch.samples() if dense is None else [dense]


def _move(batch: TensorList, device: torch.device) -> TensorList:
    def move(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(device, non_blocking=device.type != "cpu")

    dense = batch.dense()
    if dense is not None:
        return TensorList.from_dense(move(dense), batch.layout(), source_info=batch.source_infos)
    samples = [s if s is None else move(s) for s in batch.samples()]
    return TensorList.from_samples(samples, batch.layout(), source_info=batch.source_infos)
