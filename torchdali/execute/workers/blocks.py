"""Shared memory for batches that are sent between processes.

A *block* of shared memory belongs to one process, its owner. Only the owner writes to the block, and other processes
map the block to read it. The main process owns blocks with inputs of the worker processes, and each worker process owns
blocks with its results. The owner reuses a block after all processes have deleted their tensors in the block. A block
is an anonymous file. Its descriptor is sent over a socket, so no file remains if a process dies.
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

__all__ = ["LEDGER", "BlockOffset", "LocalBuffers", "SharedBuffers", "Views"]

LEDGER = -1  # number of a special block; a worker process writes the number of its current job to this block
_PAGE = 4096
_SMALLEST = 1 << 14  # bytes; smaller batches are sent over the pipe


class BlockOffset(NamedTuple):
    """The position of a tensor in shared memory: the block's number, and an offset in bytes."""

    block: int
    offset: int
    shape: tuple[int, ...]
    dtype: torch.dtype


class SharedBuffers(BufferPool):
    """A pool of blocks of shared memory that belong to this process.

    Args:
        announce: Function that is called with a new block's number, descriptor and size, before the block is used.
        forget: Function that is called with the number of a block that will not be used again.
    """

    _smallest = _SMALLEST

    def __init__(self, announce: Callable[[int, int, int], None], forget: Callable[[int], None]) -> None:
        super().__init__()
        self._announce, self._forget = announce, forget
        self._numbers: dict[int, int] = {}  # numbers of blocks, by address
        self._memory: dict[int, Bytes] = {}  # blocks, by number
        self._block_count = self._first = 0

    @property
    def smallest(self) -> int:
        """Size in bytes from which a batch is put into shared memory. Smaller batches are sent over the pipe."""
        return max(1, self._smallest)

    def find(self, tensor: torch.Tensor) -> BlockOffset | None:
        """Return the position of a tensor in this pool's blocks; None for a tensor in other memory."""
        start = tensor.untyped_storage().data_ptr()
        number = self._numbers.get(start)
        if number is None or not tensor.is_contiguous():
            return None
        return BlockOffset(number, tensor.data_ptr() - start, tuple(tensor.shape), tensor.dtype)

    def tensor(self, position: BlockOffset) -> torch.Tensor:
        """Return the tensor at a position in a block that is in use."""
        block = torch.from_numpy(self._memory[position.block])
        return view_of(block, position.offset, position.shape, position.dtype)

    def renew(self) -> None:
        """Use only new blocks from now on, because a new worker process doesn't know the existing blocks."""
        with self._lock:
            self._first = self._block_count
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
                number = self._block_count
                self._block_count += 1
                self._numbers[block.ctypes.data], self._memory[number] = number, block
            # Announce the block before it is used, so that other processes map it before they receive a batch in it.
            self._announce(number, descriptor, size)
        finally:
            os.close(descriptor)
        return block

    def _drop_block(self, blocks: list[Bytes]) -> None:
        for block in blocks:
            number = self._numbers.pop(block.ctypes.data)
            del self._memory[number]
            self._forget(number)


class LocalBuffers(SharedBuffers):
    """A pool of plain memory for a worker on another machine. Batches are sent over the connection."""

    smallest = sys.maxsize

    def __init__(self) -> None:
        super().__init__(_ignore, _ignore)

    def _make_block(self, size: int) -> Bytes:
        return np.empty(size, np.uint8)

    def _drop_block(self, blocks: list[Bytes]) -> None:
        pass


def _ignore(*_: int) -> None:
    pass


class _PinnedBlock:
    """Pins a block of memory, and unpins it before the memory is unmapped.

    `np.asarray` of this object returns an array that keeps this object alive. When the last array or tensor on the
    memory is deleted, the memory is unpinned. Otherwise, its address would stay pinned, and copies from a new block at
    the same address would read the old block.

    Args:
        block: The memory.
        device: The accelerator to which the memory is copied.
    """

    def __init__(self, block: Bytes, device: torch.device) -> None:
        self._block, self._device = block, device
        self.__array_interface__ = block.__array_interface__
        self._is_pinned = _call_cuda(device, "cudaHostRegister", block.ctypes.data, block.nbytes, 0)

    def __del__(self) -> None:
        if self._is_pinned and not sys.is_finalizing():
            _call_cuda(self._device, "cudaHostUnregister", self._block.ctypes.data)


def _call_cuda(device: torch.device, function: str, *arguments: int) -> bool:
    """Call a function of CUDA's runtime, and return whether it succeeded.

    If pinning fails, copies are slower, but correct.
    """
    with contextlib.suppress(RuntimeError), torch.cuda.device(device):
        if int(getattr(torch.cuda.cudart(), function)(*arguments)) == 0:
            return True
        # CUDA would report the error again when PyTorch launches the next kernel. The next line launches a kernel to
        # clear the error.
        torch.zeros(1, device=device)
    return False


class Views:
    """The blocks of another process, mapped in this process.

    Args:
        device: The accelerator to which the blocks are copied. If None, the blocks are not pinned.
    """

    def __init__(self, device: torch.device | None = None) -> None:
        self._device = device
        self._blocks: dict[int, Bytes] = {}
        self._loans: dict[int, Loan] = {}
        self._returned: deque[Loan] = deque()

    def add(self, number: int, descriptor: int, size: int) -> None:
        """Map a block, and close its descriptor."""
        try:
            block = map_file(descriptor, size)
            self._blocks[number] = block if self._device is None else np.asarray(_PinnedBlock(block, self._device))
        finally:
            os.close(descriptor)

    def record_job(self, number: int) -> None:
        """Write a job's number to the block `LEDGER` when this process begins the job.

        If this process dies, the main process reads this number.
        """
        ledger = self._blocks.get(LEDGER)
        if ledger is not None:
            ledger.view(np.int64)[0] = number

    def drop(self, number: int) -> None:
        """Forget a block. Tensors in the block keep its memory alive."""
        self._blocks.pop(number, None)

    def tensor(self, position: BlockOffset) -> torch.Tensor:
        """Return the tensor at a position in a mapped block."""
        return view_of(torch.from_numpy(self._blocks[position.block]), position.offset, position.shape, position.dtype)

    def lend(self, blocks: Iterable[int]) -> Callable[[BlockOffset], torch.Tensor]:
        """Return a function that creates tensors in these blocks.

        A block is returned to its owner after the last of these tensors was deleted.
        """
        leases: dict[int, torch.Tensor] = {}
        for number in set(blocks):
            lease = self._blocks[number].view(Lease)
            # `Loan` is used instead of `weakref.finalize`, because a Ctrl-C during a finalizer's Python code could be
            # lost. The entry in `_loans` must exist before the tensor, because `pop_returned` looks up the entry.
            self._loans[number] = loan = Loan(lease, self._returned.append)
            loan.number = number
            leases[number] = torch.from_numpy(lease)
        return lambda position: view_of(leases[position.block], position.offset, position.shape, position.dtype)

    @property
    def bytes_out(self) -> int:
        """Bytes of the blocks in which this process has tensors."""
        # The receiving thread may add entries at the same time. `list` copies the keys in one atomic step.
        return sum(self._blocks[number].nbytes for number in list(self._loans) if number in self._blocks)

    def pop_returned(self) -> tuple[int, ...]:
        """Return the numbers of the blocks that the owner may reuse: their tensors were deleted since the last call."""
        # Other threads only append entries, so the queue doesn't become shorter during this method.
        loans = [self._returned.popleft() for _ in range(len(self._returned))]
        return tuple(self._loans.pop(loan.number).number for loan in loans)
