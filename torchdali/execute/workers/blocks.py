"""Shared memory of batches: the process of the user owns it, its workers write into it.

A block has no name: its descriptor goes over the socket of each worker, and nothing stays behind, whoever dies.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from torchdali.execute.shared_memory import anonymous_file, mapped, view_of
from torchdali.tensors.buffer_pool import BufferPool, Bytes

__all__ = ["Place", "SharedBuffers", "Views"]

_PAGE = 4096


class Place(NamedTuple):
    """The place of a tensor: in a block, at an offset in bytes."""

    block: int
    offset: int
    shape: tuple[int, ...]
    dtype: torch.dtype


class SharedBuffers(BufferPool):
    """A pool of blocks that workers know, too.

    Args:
        pinned: Page-lock the memory, for asynchronous copies to a device.
        announce: Called with number, descriptor and size of a new block, before it is used.
        forget: Called with the number of a block that will not be used again.
    """

    _smallest = 0

    def __init__(
        self,
        pinned: bool,
        announce: Callable[[int, int, int], None],
        forget: Callable[[int], None],
    ) -> None:
        super().__init__(pinned)
        self._announce, self._forget = announce, forget
        self._numbers: dict[int, int] = {}  # by address
        self._memory: dict[int, Bytes] = {}  # by number
        self._made_blocks = self._first = 0

    def place(self, tensor: torch.Tensor) -> Place | None:
        """Return where a tensor of this pool lies; None for other memory."""
        start = tensor.untyped_storage().data_ptr()
        number = self._numbers.get(start)
        if number is None or not tensor.is_contiguous():
            return None
        return Place(number, tensor.data_ptr() - start, tuple(tensor.shape), tensor.dtype)

    def tensor(self, place: Place) -> torch.Tensor:
        """Return the tensor at a place that is in use."""
        block = torch.from_numpy(self._memory[place.block])
        return view_of(block, place.offset, place.shape, place.dtype)

    def renew(self) -> None:
        """Use no block again that there is: a worker has come that does not know them."""
        with self._lock:
            self._first = self._made_blocks
            self._collect()

    def _collect(self) -> None:
        super()._collect()
        free = self._free.blocks
        if free and self._first:
            old = [b for b in free if self._numbers[b.ctypes.data] < self._first]
            free[:] = [b for b in free if self._numbers[b.ctypes.data] >= self._first]
            self._dropped(old)

    def _block_size(self, size: int) -> int:
        return max(1, -(-size // _PAGE)) * _PAGE

    def _made(self, size: int) -> Bytes:
        descriptor = anonymous_file(size)
        try:
            block = mapped(descriptor, size)
            if self._pinned:
                block = np.asarray(_PageLocked(block))
            with self._lock:
                number = self._made_blocks
                self._made_blocks += 1
                self._numbers[block.ctypes.data], self._memory[number] = number, block
            # Every worker has the block in its queue of messages before a part that writes to it is made.
            self._announce(number, descriptor, size)
        finally:
            os.close(descriptor)
        return block

    def _dropped(self, blocks: list[Bytes]) -> None:
        for block in blocks:
            number = self._numbers.pop(block.ctypes.data)
            del self._memory[number]
            self._forget(number)


class _PageLocked:
    """The owner of page-locked memory: unlocks it when the last array or tensor on it is gone, before it is unmapped.

    Memory that is unmapped first stays locked at its old address. A block that comes to lie there cannot be locked, and
    copies from it would read the old one.

    Args:
        block: The memory. Arrays are made of this object by `np.asarray`.
    """

    def __init__(self, block: Bytes) -> None:
        self._block = block
        self.__array_interface__ = block.__array_interface__
        self._is_locked = _done("cudaHostRegister", block.ctypes.data, block.nbytes, 0)

    def __del__(self) -> None:
        if self._is_locked and not sys.is_finalizing():
            _done("cudaHostUnregister", self._block.ctypes.data)


def _done(function: str, *arguments: int) -> bool:
    """Call a function of CUDA's runtime; return whether it succeeded. Without it copies are slower, and right."""
    with contextlib.suppress(RuntimeError):
        if int(getattr(torch.cuda.cudart(), function)(*arguments)) == 0:
            return True
        # The runtime keeps the error for whoever asks next, which is torch, after any launch: let it be this one.
        torch.zeros(1, device="cuda")
    return False


class Views:
    """A worker's side: the blocks that it was told of."""

    def __init__(self) -> None:
        self._blocks: dict[int, torch.Tensor] = {}

    def add(self, number: int, descriptor: int, size: int) -> None:
        """Map a block; the descriptor is closed."""
        try:
            self._blocks[number] = torch.from_numpy(mapped(descriptor, size))
        finally:
            os.close(descriptor)

    def drop(self, number: int) -> None:
        """Forget a block; tensors that are in use keep it."""
        self._blocks.pop(number, None)

    def tensor(self, place: Place) -> torch.Tensor:
        """Return the tensor at a place."""
        return view_of(self._blocks[place.block], place.offset, place.shape, place.dtype)
