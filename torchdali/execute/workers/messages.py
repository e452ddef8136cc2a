"""Messages between the main process and its worker processes.

A *replica* is a worker process that computes batches. Large data is in *blocks* of shared memory, and the messages
contain the data's positions in these blocks.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from torchdali import pickling
from torchdali.errors import self_explanatory, strip_frames
from torchdali.execute.bad_samples import BadSample
from torchdali.execute.timings import Times
from torchdali.execute.workers.blocks import BlockOffset, SharedBuffers
from torchdali.reading.cursor import Keys
from torchdali.tensors import TensorList
from torchdali.tensors.buffer_pool import BufferPool

__all__ = [
    "SentDraw", "DroppedBlock", "Failure", "Inline", "BatchReply", "Ready", "Refused", "SentBatch", "SentBlock",
    "inline", "read", "read_failure", "receive", "send", "write", "write_failure",
]  # fmt: skip

_LARGE = 1 << 20  # bytes; arrays of at least this size are sent separately, without a copy
_memory = BufferPool()
_ALIGN = 64  # alignment, in bytes, of tensors in shared memory


class Inline(NamedTuple):
    """A small tensor whose bytes are in the message."""

    data: npt.NDArray[np.uint8]
    shape: tuple[int, ...]
    dtype: torch.dtype


_NOTHING = np.empty(0, np.uint8)


def inline(tensor: torch.Tensor) -> Inline:
    """Convert a tensor for a message. If the tensor isn't on the CPU, copy it to the CPU."""
    flat = tensor.detach().cpu().reshape(-1).resolve_conj().resolve_neg().contiguous()
    # A tensor without elements may have strides that `view` rejects.
    data = flat.view(torch.uint8).numpy() if flat.numel() else _NOTHING
    return Inline(data, tuple(tensor.shape), tensor.dtype)


def _restore_inline(sent: Inline) -> torch.Tensor:
    """Restore a tensor from the result of `inline`."""
    if not sent.data.size:
        return torch.empty(sent.shape, dtype=sent.dtype)
    data = sent.data if sent.data.flags.writeable else sent.data.copy()
    return torch.from_numpy(data).view(sent.dtype).view(sent.shape)


class SentBatch(NamedTuple):
    """A batch in a message.

    Attributes:
        layout: Layout of the samples.
        dtype: Dtype of the samples; None for an empty batch without a dtype.
        ndim: Number of axes of a sample; None for an empty batch without a dtype.
        dense: The batch as one tensor ``(samples, ...)``; None if `samples` has the samples.
        samples: The samples. If an operator is in a branch, samples outside of the branch are None.
        infos: The samples' origins (for example files); None if the receiver knows the origins.
    """

    layout: str
    dtype: torch.dtype | None
    ndim: int | None
    dense: Inline | BlockOffset | None
    samples: tuple[Inline | BlockOffset | None, ...] = ()
    infos: tuple[str, ...] | None = None

    def positions(self) -> list[BlockOffset]:
        """Return the positions of those tensors of the batch that are in shared memory."""
        return [each for each in (self.dense, *self.samples) if isinstance(each, BlockOffset)]

    def without_blocks(
        self, has_block: Callable[[int], bool], tensor: Callable[[BlockOffset], torch.Tensor]
    ) -> SentBatch:
        """Return the batch for a process that knows only some blocks of shared memory.

        If a tensor is in a block that the process doesn't know, the message contains the tensor's bytes.

        Args:
            has_block: Function that returns whether the process knows a block.
            tensor: Function that returns the tensor at a position in shared memory.
        """

        def reachable(each: Inline | BlockOffset | None) -> Inline | BlockOffset | None:
            return inline(tensor(each)) if isinstance(each, BlockOffset) and not has_block(each.block) else each

        if all(has_block(position.block) for position in self.positions()):
            return self
        return self._replace(dense=reachable(self.dense), samples=tuple(map(reachable, self.samples)))


def send(
    batch: TensorList, buffers: SharedBuffers, shared_tensors: list[torch.Tensor], with_infos: bool = False
) -> SentBatch:
    """Convert a batch for a message. Small batches become bytes, large batches become positions in shared memory.

    Args:
        batch: The batch.
        buffers: Shared memory. If large data isn't in shared memory, the function copies the data there.
        shared_tensors: List to which the function adds the tensors in shared memory. The caller must keep the list, and
            must not write to the tensors, until the receiving process has finished reading.
        with_infos: True to send the samples' origins.
    """
    infos = batch.source_infos if with_infos else None
    dense = batch.dense()
    samples: list[Any] = [dense] if dense is not None else batch.samples()
    present = [sample for sample in samples if sample is not None]
    if sum(sample.nbytes for sample in present) < buffers.smallest:
        moved: list[Inline | BlockOffset] = [inline(sample) for sample in present]
    elif dense is not None and (position := buffers.find(dense)) is not None:
        shared_tensors.append(dense)
        moved = [position]
    else:
        moved = _copy_tensors(present, buffers, shared_tensors)
    head = batch.layout(), batch.torch_dtype, batch.ndim() if batch.torch_dtype is not None else None
    names = None if infos is None else tuple(infos)
    if dense is not None:
        return SentBatch(*head, moved[0], (), names)
    remaining = iter(moved)
    return SentBatch(*head, None, tuple(None if s is None else next(remaining) for s in samples), names)


def _copy_tensors(
    tensors: Sequence[torch.Tensor], buffers: SharedBuffers, shared_tensors: list[torch.Tensor]
) -> list[Inline | BlockOffset]:
    """Copy tensors into one block of shared memory."""
    offsets, size = [], 0
    for tensor in tensors:
        offsets.append(size)
        size += -(-tensor.nbytes // _ALIGN) * _ALIGN
    memory = buffers.empty((size,), torch.uint8)
    shared_tensors.append(memory)
    start = buffers.find(memory)
    assert start is not None
    positions: list[Inline | BlockOffset] = []
    for tensor, offset in zip(tensors, offsets, strict=True):
        target = memory[offset : offset + tensor.nbytes].view(tensor.dtype).view(tensor.shape)
        target.copy_(tensor.detach())
        positions.append(BlockOffset(start.block, offset, tuple(tensor.shape), tensor.dtype))
    return positions


def receive(batch: SentBatch, tensor: Callable[[BlockOffset], torch.Tensor]) -> TensorList:
    """Build the batch from a message.

    Args:
        batch: The batch in the message.
        tensor: Function that returns the tensor at a position in shared memory.
    """

    def restore(each: Inline | BlockOffset) -> torch.Tensor:
        return tensor(each) if isinstance(each, BlockOffset) else _restore_inline(each)

    if batch.dense is not None:
        return TensorList.from_dense(restore(batch.dense), batch.layout, batch.infos)
    samples: list[Any] = [None if each is None else restore(each) for each in batch.samples]
    return TensorList.from_samples(samples, batch.layout, batch.dtype, batch.ndim, batch.infos)


@dataclass(frozen=True)
class SentDraw:
    """The message that requests a batch from a replica (a worker process that computes batches).

    Attributes:
        number: Number of the message.
        index, position, size: See `BatchDraw`.
        seed: Seed of the pipeline.
        random_keys: See `BatchRequest.random_keys`.
        keys: Keys of the records to read. The dictionary's keys are the readers' indices in the graph.
        values: The sources' data. The keys are the source's index in the graph and the index of the source's output.
        traced: True to record when each operator begins and ends; see `Profile.trace`.
        returned: Numbers of the replica's blocks that the main process no longer reads.
    """

    number: int
    index: int
    position: int
    size: int
    seed: int
    random_keys: Sequence[int] | None
    keys: Mapping[int, Keys]
    values: Mapping[tuple[int, int], SentBatch]
    traced: bool
    returned: tuple[int, ...]


@dataclass(frozen=True)
class BatchReply:
    """A replica's reply: a batch, or its error.

    Attributes:
        number: Number of the message that requested the batch.
        values: Outputs that the main process needs. The keys are the operator's index and the index of its output.
        original_indices: See `BatchDraw`.
        error: Error of the batch; None if the batch succeeded.
        bad: Samples that were skipped or replaced.
        budget: Pairs of a number of bad samples and an error; see `BatchOutcome.bad_samples`.
        times: Times of the operators.
        sizes: For each output, the bytes of the batch and of the largest sample; empty if memory isn't measured.
        warnings: Text, category, file and line of each warning since the previous reply.
    """

    number: int
    values: Mapping[tuple[int, int], SentBatch]
    original_indices: tuple[int, ...] | None
    error: Failure | None
    bad: tuple[BadSample, ...]
    budget: tuple[tuple[int, Failure], ...]
    times: Times
    sizes: Mapping[tuple[int, int], tuple[int, int]]
    warnings: tuple[tuple[str, type[Warning], str, int], ...]


class Failure(NamedTuple):
    """An exception in a message to the main process.

    Attributes:
        data: The pickled exception; None if it can't be pickled.
        message: Class and message of the exception.
        text: The traceback.
        attributes: Attributes of the exception that the pickled data lacks.
    """

    data: bytes | None
    message: str
    text: str
    attributes: Mapping[str, Any]


def write_failure(error: BaseException) -> Failure:
    """Convert an exception for a message."""
    data = None
    with contextlib.suppress(Exception):
        data = pickling.dumps(error)
        pickling.loads(data)
    cause = error.__cause__ or error
    lines = traceback.format_exception(type(cause), strip_frames(cause), cause.__traceback__)
    marks = {k: v for k, v in error.__dict__.items() if k in ("batch_level", "part", "__notes__")}
    return Failure(data, f"{type(error).__name__}: {error}", "".join(lines), marks)


def read_failure(failure: Failure, prefix: str = "") -> Exception:
    """Build the exception from a message. The exception's cause shows the worker's traceback.

    Args:
        failure: The exception in the message. If the exception couldn't be pickled, a RuntimeError replaces it.
        prefix: Text before the exception's class and message in the RuntimeError.
    """
    error: Any = None
    with contextlib.suppress(Exception):
        error = None if failure.data is None else pickling.loads(failure.data)
    if not isinstance(error, Exception):
        error = RuntimeError(prefix + failure.message)
    error.__dict__.update(failure.attributes)
    error.__cause__ = WorkerTraceback(failure.text)
    result: Exception = self_explanatory(error)
    return result


class WorkerTraceback(Exception):
    """Shows the traceback of an exception in a worker process. It is the cause of the main process's exception."""

    def __init__(self, text: str) -> None:
        super().__init__(f"in a worker process\n\n{text}")


class LargeMessage(NamedTuple):
    """A message whose large arrays are sent after the message.

    Attributes:
        data: The pickled message without the arrays.
        sizes: Sizes of the arrays, in bytes.
    """

    data: bytes
    sizes: tuple[int, ...]


def write(connection: Any, message: Any) -> None:
    """Send a message. Its large arrays are sent without a copy."""
    large: list[memoryview] = []

    def is_small(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= _LARGE:
            large.append(raw)
        return raw.nbytes < _LARGE

    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL, buffer_callback=is_small)
    if large:
        data = pickle.dumps(LargeMessage(data, tuple(raw.nbytes for raw in large)))
    connection.send_bytes(data)
    for raw in large:
        _transfer_all(functools.partial(os.write, connection.fileno()), raw)


def read(connection: Any) -> Any:
    """Receive a message. Large arrays are read into pooled memory, which is reused after the arrays are deleted."""
    message = pickle.loads(connection.recv_bytes())
    if not isinstance(message, LargeMessage):
        return message
    arrays = [_memory.empty((size,), torch.uint8).numpy() for size in message.sizes]
    for array in arrays:
        _transfer_all(lambda rest: os.readv(connection.fileno(), [rest]), array.data)
    return pickle.loads(message.data, buffers=arrays)


def _transfer_all(move: Callable[[memoryview], int], rest: memoryview) -> None:
    """Write all bytes of a buffer, or fill the buffer by reading, without the copies of a multiprocessing connection.

    Args:
        move: Function that writes or reads some of the bytes, and returns their number.
        rest: The buffer.

    Raises:
        EOFError: The other process has ended.
    """
    while rest:
        count = move(rest)
        if not count:
            raise EOFError
        rest = rest[count:]


class SentBlock(NamedTuple):
    """Message: the sender has created a block of shared memory. The block's file descriptor follows the message."""

    number: int
    size: int


class DroppedBlock(NamedTuple):
    """Message: the sender will not use a block again."""

    number: int


class Ready(NamedTuple):
    """Message: a replica has opened its readers and can receive requests.

    Attributes:
        sizes: Number of records of each reader. The keys are the readers' indices in the graph.
    """

    sizes: Mapping[int, int]


class Refused(NamedTuple):
    """Message: a replica can't start.

    Attributes:
        reason: The reason, for an error message.
    """

    reason: str
