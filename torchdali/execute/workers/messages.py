"""Messages between the process of the user and its replicas."""

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
    "Draw", "Drop", "Failure", "Inline", "Made", "Ready", "Refused", "SentBatch", "SentBlock", "inline", "read",
    "read_failure", "receive", "send", "write", "write_failure",
]  # fmt: skip

_LARGE = 1 << 20  # bytes; less is as fast within a message
_memory = BufferPool()
_ALIGN = 64  # bytes; a tensor in shared memory begins at a multiple


class Inline(NamedTuple):
    """A small tensor as its bytes."""

    data: npt.NDArray[np.uint8]
    shape: tuple[int, ...]
    dtype: torch.dtype


_NOTHING = np.empty(0, np.uint8)


def inline(tensor: torch.Tensor) -> Inline:
    """Return a tensor on the CPU as its bytes."""
    flat = tensor.detach().cpu().reshape(-1).resolve_conj().resolve_neg().contiguous()
    data = flat.view(torch.uint8).numpy() if flat.numel() else _NOTHING  # which may have any stride
    return Inline(data, tuple(tensor.shape), tensor.dtype)


def _restore_inline(sent: Inline) -> torch.Tensor:
    """Return the tensor that `inline` was given; its memory is its own."""
    if not sent.data.size:
        return torch.empty(sent.shape, dtype=sent.dtype)
    data = sent.data if sent.data.flags.writeable else sent.data.copy()
    return torch.from_numpy(data).view(sent.dtype).view(sent.shape)


class SentBatch(NamedTuple):
    """A batch on its way: one tensor ``(samples, ...)``, or a list with None for samples that a branch did not compute.

    Attributes:
        dtype, ndim: Dtype and number of axes of a sample, for a batch without samples.
        infos: Where the samples come from, if the receiver does not know.
    """

    layout: str
    dtype: torch.dtype | None
    ndim: int | None
    dense: Inline | BlockOffset | None
    samples: tuple[Inline | BlockOffset | None, ...] = ()
    infos: tuple[str, ...] | None = None

    def places(self) -> list[BlockOffset]:
        """Return the positions of its tensors in shared memory."""
        return [each for each in (self.dense, *self.samples) if isinstance(each, BlockOffset)]

    def without_blocks(self, known: Callable[[int], bool], tensor: Callable[[BlockOffset], torch.Tensor]) -> SentBatch:
        """Return the batch for a process that knows some blocks: data in other blocks is sent over the pipe."""

        def reachable(each: Inline | BlockOffset | None) -> Inline | BlockOffset | None:
            return inline(tensor(each)) if isinstance(each, BlockOffset) and not known(each.block) else each

        if all(known(place.block) for place in self.places()):
            return self
        return self._replace(dense=reachable(self.dense), samples=tuple(map(reachable, self.samples)))


def send(batch: TensorList, buffers: SharedBuffers, kept: list[torch.Tensor], with_infos: bool = False) -> SentBatch:
    """Return a batch in a form for another process: its bytes if it is small, or its place in shared memory.

    Args:
        buffers: Memory to copy other data to.
        kept: Gets the tensors in shared memory, which must stay as long as the other process reads them.
        with_infos: True to add the sources of the samples.
    """
    infos = batch.source_infos if with_infos else None
    dense = batch.dense()
    samples: list[Any] = [dense] if dense is not None else batch.samples()
    there = [sample for sample in samples if sample is not None]
    if sum(sample.nbytes for sample in there) < buffers.smallest:
        moved: list[Inline | BlockOffset] = [inline(sample) for sample in there]
    elif dense is not None and (place := buffers.place(dense)) is not None:
        kept.append(dense)
        moved = [place]
    else:
        moved = _copy_tensors(there, buffers, kept)
    head = batch.layout(), batch.torch_dtype, batch.ndim() if batch.torch_dtype is not None else None
    names = None if infos is None else tuple(infos)
    if dense is not None:
        return SentBatch(*head, moved[0], (), names)
    by_turn = iter(moved)
    return SentBatch(*head, None, tuple(None if s is None else next(by_turn) for s in samples), names)


def _copy_tensors(
    tensors: Sequence[torch.Tensor], buffers: SharedBuffers, kept: list[torch.Tensor]
) -> list[Inline | BlockOffset]:
    """Copy tensors into one block of shared memory."""
    offsets, size = [], 0
    for tensor in tensors:
        offsets.append(size)
        size += -(-tensor.nbytes // _ALIGN) * _ALIGN
    memory = buffers.empty((size,), torch.uint8)
    kept.append(memory)
    start = buffers.place(memory)
    assert start is not None
    places: list[Inline | BlockOffset] = []
    for tensor, offset in zip(tensors, offsets, strict=True):
        target = memory[offset : offset + tensor.nbytes].view(tensor.dtype).view(tensor.shape)
        target.copy_(tensor.detach())
        places.append(BlockOffset(start.block, offset, tuple(tensor.shape), tensor.dtype))
    return places


def receive(batch: SentBatch, tensor: Callable[[BlockOffset], torch.Tensor]) -> TensorList:
    """Return a batch that was sent.

    Args:
        tensor: Returns the tensor at a position in shared memory.
    """

    def restore(each: Inline | BlockOffset) -> torch.Tensor:
        return tensor(each) if isinstance(each, BlockOffset) else _restore_inline(each)

    if batch.dense is not None:
        return TensorList.from_dense(restore(batch.dense), batch.layout, batch.infos)
    samples: list[Any] = [None if each is None else restore(each) for each in batch.samples]
    return TensorList.from_samples(samples, batch.layout, batch.dtype, batch.ndim, batch.infos)


@dataclass(frozen=True)
class Draw:
    """A batch for a replica to make: the user's process has drawn its numbers.

    Attributes:
        number: Number of the message.
        index, position, size: See `BatchDraw`.
        seed: Seed of the pipeline.
        random_keys: See `BatchRequest.random_keys`.
        keys: Records to read, by index of the reader.
        values: The sources' data, by index of the source and number of its output.
        traced: Keep the interval of each operator, see `Profile.trace`.
        returned: Numbers of the replica's own blocks that are free again.
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
class Made:
    """A batch that a replica has made.

    Attributes:
        number: Number of the message that asked for it.
        values: Outputs that later stages or the user need, by index of the operator and number of its output.
        kept: See `BatchDraw`.
        error: Error of the batch, if it failed.
        bad: Samples that were left out or replaced, for the report.
        budget: How many of them at once, and the error of the first; see `BatchOutcome.bad_samples`.
        times: Times of the operators.
        sizes: Bytes of the batch and of its largest sample, by operator and output, if memory is counted.
        warnings: Text, class, file and line of the warnings meanwhile.
    """

    number: int
    values: Mapping[tuple[int, int], SentBatch]
    kept: tuple[int, ...] | None
    error: Failure | None
    bad: tuple[BadSample, ...]
    budget: tuple[tuple[int, Failure], ...]
    times: Times
    sizes: Mapping[tuple[int, int], tuple[int, int]]
    warnings: tuple[tuple[str, type[Warning], str, int], ...]


class Failure(NamedTuple):
    """An exception on its way to the process of the user.

    Attributes:
        data: Its pickle, if it has one.
    """

    data: bytes | None
    message: str
    text: str
    attributes: Mapping[str, Any]


def write_failure(error: BaseException) -> Failure:
    """Describe an exception."""
    data = None
    with contextlib.suppress(Exception):
        data = pickling.dumps(error)
        pickling.loads(data)
    cause = error.__cause__ or error
    lines = traceback.format_exception(type(cause), strip_frames(cause), cause.__traceback__)
    marks = {k: v for k, v in error.__dict__.items() if k in ("batch_level", "part", "__notes__")}
    return Failure(data, f"{type(error).__name__}: {error}", "".join(lines), marks)


def read_failure(failure: Failure, prefix: str = "") -> Exception:
    """Return the exception: of the same class if it could be pickled, with the worker's traceback as its cause.

    Args:
        prefix: Prefix of the message if it could not be pickled.
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
    """The traceback of an exception in a worker process; the cause of the exception in this one."""

    def __init__(self, text: str) -> None:
        super().__init__(f"in a worker process\n\n{text}")


class Large(NamedTuple):
    """A message with large arrays, whose bytes follow one after the other.

    Attributes:
        data: The message without them, pickled.
        sizes: Sizes of the arrays, in bytes.
    """

    data: bytes
    sizes: tuple[int, ...]


def write(connection: Any, message: Any) -> None:
    """Send a message; large arrays in it are not copied on their way."""
    apart: list[memoryview] = []

    def stays(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= _LARGE:
            apart.append(raw)
        return raw.nbytes < _LARGE

    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL, buffer_callback=stays)
    if apart:
        data = pickle.dumps(Large(data, tuple(raw.nbytes for raw in apart)))
    connection.send_bytes(data)
    for raw in apart:
        _all(functools.partial(os.write, connection.fileno()), raw)


def read(connection: Any) -> Any:
    """Receive a message; large arrays are in memory that is used again when the last of them is gone."""
    message = pickle.loads(connection.recv_bytes())
    if not isinstance(message, Large):
        return message
    arrays = [_memory.empty((size,), torch.uint8).numpy() for size in message.sizes]
    for array in arrays:
        _all(lambda rest: os.readv(connection.fileno(), [rest]), array.data)
    return pickle.loads(message.data, buffers=arrays)


def _all(move: Callable[[memoryview], int], rest: memoryview) -> None:
    """Write or read all bytes, in place: a connection of multiprocessing would copy them twice.

    Raises:
        EOFError: the other process is gone.
    """
    while rest:
        count = move(rest)
        if not count:
            raise EOFError
        rest = rest[count:]


class SentBlock(NamedTuple):
    """A block of shared memory of the sender; its descriptor follows."""

    number: int
    size: int


class Drop(NamedTuple):
    """A block that will not be used again."""

    number: int


class Ready(NamedTuple):
    """A replica has planned its graph and opened its readers, of these sizes."""

    sizes: Mapping[int, int]


class Refused(NamedTuple):
    """A replica cannot start, and why."""

    reason: str
