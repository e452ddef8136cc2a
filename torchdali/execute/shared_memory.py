"""Batches in memory that a worker process fills and its parent reads, without a copy in between.

A block of shared memory has no name: its file descriptor goes over a socket, so that nothing stays behind,
whoever dies. The worker owns the blocks. The parent lends them out as tensors; the numbers of those that came
back go with its next request.
"""

from __future__ import annotations

import itertools
import mmap
import os
import socket
import tempfile
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from torchdali.tensors import TensorList

__all__ = ["Packed", "Reader", "Writer", "anonymous_file", "mapped", "socket_of", "view_of"]

_Bytes = npt.NDArray[np.uint8]
_ALIGN = 64  # bytes; a tensor begins at a multiple
_SMALLEST = 1 << 16  # bytes of a block
_KEEP = 4  # free blocks; a consumer that hoards in bursts would make them pile up


@dataclass(frozen=True)
class _Stored:
    """Position of one batch in a block: a dense tensor, or samples, each with offset and shape."""

    layout: str
    dtype: torch.dtype | None
    dense: bool
    tensors: tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Packed:
    """Message that goes over the pipe instead of batches.

    Attributes:
        block: Number of the block they are in; -1 if they have no bytes.
        fresh: Bytes of the block if the parent does not know it, else 0; its descriptor follows.
        dropped: Blocks that the worker will not use again.
    """

    block: int
    fresh: int
    dropped: tuple[int, ...]
    batches: tuple[_Stored, ...]


class Writer:
    """The worker's side.

    Args:
        connection: Descriptor of the socket to the parent.
    """

    def __init__(self, connection: int) -> None:
        self._socket = socket_of(connection)
        self._free: dict[int, _Bytes] = {}
        self._used: dict[int, _Bytes] = {}
        self._numbers = itertools.count()
        self._descriptor: int | None = None

    def free(self, blocks: Sequence[int]) -> None:
        """Take blocks back that the parent does not need any more."""
        for number in blocks:
            # The parent has dropped the last tensor on it before it sent the number: nobody reads the block any more.
            self._free[number] = self._used.pop(number)

    def write(self, batches: Sequence[TensorList]) -> Packed:
        """Copy batches into a block."""
        size, stored, pairs = 0, [], []
        for batch in batches:
            tensors = _tensors(batch)
            places = []
            for tensor in tensors:
                pairs.append((tensor, size))
                places.append((size, tuple(tensor.shape)))
                size += -(-tensor.nbytes // _ALIGN) * _ALIGN
            dense = batch.dense() is not None
            stored.append(_Stored(batch.layout(), batch.torch_dtype, dense, tuple(places)))
        if size == 0:
            return Packed(-1, 0, (), tuple(stored))
        number, fresh, dropped = self._take(size)
        # Nobody else reads this block: it is free or new, and the parent learns of it by the answer that follows.
        block = torch.from_numpy(self._used[number])
        for tensor, offset in pairs:
            if tensor.numel():  # torch looks at nothing else of an empty one but its strides, which may be any
                block[offset : offset + tensor.nbytes] = tensor.view(-1).view(torch.uint8)
        return Packed(number, fresh, dropped, tuple(stored))

    def _take(self, size: int) -> tuple[int, int, tuple[int, ...]]:
        """Choose the smallest free block that is large enough; make a new one in place of smaller ones."""
        fitting = [number for number, block in self._free.items() if block.nbytes >= size]
        if fitting:
            number, fresh = min(fitting, key=lambda n: self._free[n].nbytes), 0
            self._used[number] = self._free.pop(number)
            dropped = tuple(self._free)[_KEEP:]
        else:
            number, fresh = next(self._numbers), max(_SMALLEST, size + size // 4)
            self._descriptor = anonymous_file(fresh)
            self._used[number] = mapped(self._descriptor, fresh)
            dropped = tuple(self._free)
        for other in dropped:
            del self._free[other]
        return number, fresh, dropped

    def send_descriptor(self) -> None:
        """Send what follows a `Packed` with a fresh block."""
        assert self._descriptor is not None
        socket.send_fds(self._socket, [b"d"], [self._descriptor])
        os.close(self._descriptor)
        self._descriptor = None


class Reader:
    """The parent's side.

    Args:
        connection: Descriptor of the socket to the worker.
    """

    def __init__(self, connection: int) -> None:
        self._socket = socket_of(connection)
        self._blocks: dict[int, _Bytes] = {}
        self._lent: dict[int, _Loan] = {}
        self._returned: deque[_Loan] = deque()

    def returned(self) -> list[int]:
        """Return the numbers of the blocks that came back since the last call."""
        # Appended to by whatever thread drops a tensor; only this one takes out, so the length does not shrink
        # meanwhile.
        loans = [self._returned.popleft() for _ in range(len(self._returned))]
        return [self._lent.pop(loan.block).block for loan in loans]

    def read(self, packed: Packed) -> tuple[TensorList, ...]:
        """Return batches that share the memory of a block; it comes back when the last tensor is gone.

        Raises:
            EOFError: the worker died before it sent the block's descriptor.
        """
        for number in packed.dropped:
            del self._blocks[number]
        if packed.fresh:
            self._blocks[packed.block] = self._receive(packed.fresh)
        block = self._lend(packed.block) if packed.block >= 0 else torch.empty(0, dtype=torch.uint8)
        return tuple(_batch(block, stored) for stored in packed.batches)

    def _receive(self, size: int) -> _Bytes:
        _, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
        if not descriptors:
            raise EOFError
        try:
            return mapped(descriptors[0], size)
        finally:
            os.close(descriptors[0])

    def _lend(self, number: int) -> torch.Tensor:
        lease = self._blocks[number].view(_Lease)
        # In the watching thread. The entry in `_lent` is made before a tensor is, so that none comes back without one.
        # Not weakref.finalize: it runs Python code, where a Ctrl-C that comes just then would be lost.
        self._lent[number] = loan = _Loan(lease, self._returned.append)
        loan.block = number
        return torch.from_numpy(lease)

    def close(self) -> None:
        """Close the socket; tensors that are out stay whole."""
        self._socket.close()
        self._blocks.clear()


class _Lease(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """A view of a block that is out."""


class _Loan(weakref.ref[_Lease]):
    """Notes that a block came back: it is appended to a queue then."""

    __slots__ = ("block",)
    block: int


def _tensors(batch: TensorList) -> list[torch.Tensor]:
    dense = batch.dense()
    tensors = batch.samples() if dense is None else [dense]
    return [tensor.detach().cpu().contiguous() for tensor in tensors]


def _batch(block: torch.Tensor, stored: _Stored) -> TensorList:
    dtype = stored.dtype
    if dtype is None:
        return TensorList.from_samples([], stored.layout)
    tensors = [view_of(block, offset, shape, dtype) for offset, shape in stored.tensors]
    if stored.dense:
        return TensorList.from_dense(tensors[0], stored.layout)
    return TensorList.from_samples(tensors, stored.layout, dtype)


def view_of(block: torch.Tensor, offset: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor in a block, at an offset in bytes."""
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    return block[offset : offset + size].view(dtype).view(shape)


def socket_of(connection: int) -> socket.socket:
    """Return the socket of a connection, to send descriptors."""
    made = socket.socket(fileno=os.dup(connection))
    made.settimeout(None)  # or the user's default timeout would make the connection non-blocking
    return made


def mapped(descriptor: int, size: int) -> _Bytes:
    """Return the bytes of a file, mapped for reading and writing."""
    try:  # unlike `mmap`, this keeps no descriptor open: a consumer may hold thousands of blocks
        path = f"/proc/self/fd/{descriptor}"
        return torch.from_file(path, shared=True, size=size, dtype=torch.uint8).numpy()
    except RuntimeError:
        return np.frombuffer(mmap.mmap(descriptor, size), np.uint8)


def anonymous_file(size: int) -> int:
    """Return the descriptor of a file without a name, with all its bytes reserved.

    It lies in memory, where the system has such files, and not in ``/dev/shm``, whose size does not matter; otherwise
    in the folder for temporary files.

    Raises:
        MemoryError: there is no room; says how much was needed.
    """
    in_memory = hasattr(os, "memfd_create")
    if in_memory:
        descriptor = os.memfd_create("torchdali")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)  # or the first write beyond the room would kill the process
        else:
            os.ftruncate(descriptor, size)
    except OSError as error:
        os.close(descriptor)
        where = "memory" if in_memory else f"the folder {tempfile.gettempdir()} (TMPDIR chooses another)"
        raise MemoryError(
            f"{size / 2**20:.1f} MiB are needed for batches that processes share, and {where} has no room for them: "
            f"{error.strerror}. Use fewer or smaller batches, or num_processes=1"
        ) from None
    return descriptor
