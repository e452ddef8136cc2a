"""Shared memory of batches: one process owns a block and writes to it, others read it.

A block has no name: its descriptor is sent over a socket, so nothing remains if a process dies. The process of the user
owns the sources' data; each replica owns the batches that it made, until the last tensor on them is gone.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import torch

from torchdali.execute.shared_memory import anonymous_file, map_file, view_of
from torchdali.tensors.buffer_pool import BufferPool, Bytes, Lease, Loan

__all__ = ["LEDGER", "BlockOffset", "OwnBuffers", "SharedBuffers", "Views"]

LEDGER = -1  # number of the block in which a replica writes which job it began last
_PAGE = 4096
_SMALLEST = 1 << 14  # bytes; less goes over the pipe


class BlockOffset(NamedTuple):
    """The place of a tensor: in a block, at an offset in bytes."""

    block: int
    offset: int
    shape: tuple[int, ...]
    dtype: torch.dtype


class SharedBuffers(BufferPool):
    """A pool of blocks that other processes know, too.

    Args:
        announce: Called with number, descriptor and size of a new block, before it is used.
        forget: Called with the number of a block that will not be used again.
    """

    _smallest = _SMALLEST

    def __init__(self, announce: Callable[[int, int, int], None], forget: Callable[[int], None]) -> None:
        super().__init__()
        self._announce, self._forget = announce, forget
        self._numbers: dict[int, int] = {}  # by address
        self._memory: dict[int, Bytes] = {}  # by number
        self._made_blocks = self._first = 0

    @property
    def smallest(self) -> int:
        """Size of a batch, in bytes, from which it is sent in shared memory; smaller ones are sent over the pipe."""
        return max(1, self._smallest)

    def place(self, tensor: torch.Tensor) -> BlockOffset | None:
        """Return the position of a tensor of this pool; None for other memory."""
        start = tensor.untyped_storage().data_ptr()
        number = self._numbers.get(start)
        if number is None or not tensor.is_contiguous():
            return None
        return BlockOffset(number, tensor.data_ptr() - start, tuple(tensor.shape), tensor.dtype)

    def tensor(self, place: BlockOffset) -> torch.Tensor:
        """Return the tensor at a place that is in use."""
        block = torch.from_numpy(self._memory[place.block])
        return view_of(block, place.offset, place.shape, place.dtype)

    def renew(self) -> None:
        """Don't reuse any existing block: a new process does not know them."""
        with self._lock:
            self._first = self._made_blocks
            self._collect()

    def _collect(self) -> None:
        super()._collect()
        free = self._free.blocks
        if free and self._first:
            old = [b for b in free if self._numbers[b.ctypes.data] < self._first]
            free[:] = [b for b in free if self._numbers[b.ctypes.data] >= self._first]
            self._drop_block(old)

    def _block_size(self, size: int) -> int:
        return max(1, -(-size // _PAGE)) * _PAGE

    def _make_block(self, size: int) -> Bytes:
        descriptor = anonymous_file(size)
        try:
            block = map_file(descriptor, size)
            with self._lock:
                number = self._made_blocks
                self._made_blocks += 1
                self._numbers[block.ctypes.data], self._memory[number] = number, block
            # The others have the block in their queues of messages before a batch that is in it.
            self._announce(number, descriptor, size)
        finally:
            os.close(descriptor)
        return block

    def _drop_block(self, blocks: list[Bytes]) -> None:
        for block in blocks:
            number = self._numbers.pop(block.ctypes.data)
            del self._memory[number]
            self._forget(number)


class OwnBuffers(SharedBuffers):
    """A pool of plain memory, for a process on another machine: batches go over the connection."""

    smallest = sys.maxsize

    def __init__(self) -> None:
        super().__init__(_not_announced, _not_announced)

    def _make_block(self, size: int) -> Bytes:
        return np.empty(size, np.uint8)

    def _drop_block(self, blocks: list[Bytes]) -> None:
        pass


def _not_announced(*_: int) -> None:
    pass


class _PageLocked:
    """The owner of page-locked memory: unlocks it when the last array or tensor on it is gone, before it is unmapped.

    Memory that is unmapped first stays locked at its old address. A block that is mapped there cannot be locked, and
    copies from it would read the old one.

    Args:
        block: The memory. Arrays are made of this object by `np.asarray`.
        device: The accelerator that copies it.
    """

    def __init__(self, block: Bytes, device: torch.device) -> None:
        self._block, self._device = block, device
        self.__array_interface__ = block.__array_interface__
        self._is_locked = _done(device, "cudaHostRegister", block.ctypes.data, block.nbytes, 0)

    def __del__(self) -> None:
        if self._is_locked and not sys.is_finalizing():
            _done(self._device, "cudaHostUnregister", self._block.ctypes.data)


def _done(device: torch.device, function: str, *arguments: int) -> bool:
    """Call a function of CUDA's runtime; return whether it succeeded. Without it copies are slower, and right."""
    with contextlib.suppress(RuntimeError), torch.cuda.device(device):
        if int(getattr(torch.cuda.cudart(), function)(*arguments)) == 0:
            return True
        # The runtime keeps the error for whoever asks next, which is torch, after any launch: let it be this one.
        torch.zeros(1, device=device)
    return False


class Views:
    """The other side: the blocks that a process was told of.

    Args:
        device: The accelerator for whose copies they are page-locked; None if they are not.
    """

    def __init__(self, device: torch.device | None = None) -> None:
        self._device = device
        self._blocks: dict[int, Bytes] = {}
        self._lent: dict[int, Loan] = {}
        self._returned: deque[Loan] = deque()

    def add(self, number: int, descriptor: int, size: int) -> None:
        """Map a block; the descriptor is closed."""
        try:
            block = map_file(descriptor, size)
            self._blocks[number] = block if self._device is None else np.asarray(_PageLocked(block, self._device))
        finally:
            os.close(descriptor)

    def note(self, number: int) -> None:
        """Write down which job was begun, where the process of the user sees it: if this one dies, that may be why."""
        ledger = self._blocks.get(LEDGER)
        if ledger is not None:
            ledger.view(np.int64)[0] = number

    def drop(self, number: int) -> None:
        """Forget a block; tensors that are in use keep it."""
        self._blocks.pop(number, None)

    def tensor(self, place: BlockOffset) -> torch.Tensor:
        """Return the tensor at a place."""
        return view_of(torch.from_numpy(self._blocks[place.block]), place.offset, place.shape, place.dtype)

    def lend(self, blocks: Iterable[int]) -> Callable[[BlockOffset], torch.Tensor]:
        """Return a function that makes tensors in some blocks; a block is given back when its last tensor is gone."""
        leases: dict[int, torch.Tensor] = {}
        for number in set(blocks):
            lease = self._blocks[number].view(Lease)
            # weakref.finalize isn't used, because it runs Python code, in which a Ctrl-C could be lost. The entry is
            # made before the tensor, so that no tensor is given back without an entry.
            self._lent[number] = loan = Loan(lease, self._returned.append)
            loan.number = number
            leases[number] = torch.from_numpy(lease)
        return lambda place: view_of(leases[place.block], place.offset, place.shape, place.dtype)

    @property
    def bytes_out(self) -> int:
        """Bytes of the blocks in use."""
        # A copy in one step: the receiving thread adds to it.
        return sum(self._blocks[number].nbytes for number in list(self._lent) if number in self._blocks)

    def take_returned(self) -> tuple[int, ...]:
        """Return the numbers of the blocks that came back since the last call."""
        # Appended to by whatever thread drops a tensor; only this one takes out, so the length does not shrink.
        loans = [self._returned.popleft() for _ in range(len(self._returned))]
        return tuple(self._lent.pop(loan.number).number for loan in loans)
