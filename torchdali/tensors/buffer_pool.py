"""Memory of batches, reused when the user releases it.

A delivered batch belongs to the user: its memory comes back only when the last tensor that shares it is
gone. A tensor made from a NumPy array keeps the array alive, so a weak reference to that array notices it without
any hook into torch.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque

import numpy as np
import numpy.typing as npt
import torch

from torchdali.forks import ForkSafeLock, on_fork

__all__ = ["BufferPool", "Bytes", "Lease", "Loan", "release_unused"]

Bytes = npt.NDArray[np.uint8]
_POOLED = 1 << 20  # bytes; below it the allocator is as fast
_SPARE = 4  # a block is taken for data that fills it but for this part
_KEEP = 4  # free blocks; more would only be kept for a consumer that hoards in bursts


class Lease(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """A view of a block in use; it dies with the last tensor on the block."""


class Loan(weakref.ref[Lease]):
    """A weak reference that appends itself to a queue when its block is free again."""

    __slots__ = ("block", "number")
    block: Bytes
    number: int


class _FreeBlocks:
    """Blocks that nobody uses, and the lock of the pools that take from them."""

    def __init__(self) -> None:
        self.blocks: list[Bytes] = []
        self.lock = threading.Lock()


class BufferPool:
    """A pool of memory blocks for batch tensors; pools of plain memory share their free blocks.

    Args:
        pinned: Page-lock the memory, for asynchronous copies to a device.
    """

    _smallest = _POOLED

    def __init__(self, pinned: bool = False) -> None:
        self._pinned = pinned
        # Page-locked memory stays with the streams that copy from it.
        self._shared = not pinned and type(self) is BufferPool
        self._lent: dict[int, Loan] = {}
        self._returned: deque[Loan] = deque()
        with _adding:
            known = _plain.get("free") if self._shared else None
            self._free = _FreeBlocks() if known is None else known
            self._lock = self._free.lock
            if self._shared:
                _plain["free"] = self._free
            _pools[id(self)] = self

    @property
    def bytes_out(self) -> int:
        """Bytes of the blocks in use."""
        with self._lock:
            self._collect()
            # A copy in one step: `empty` adds to it without the lock.
            return sum(loan.block.nbytes for loan in list(self._lent.values()))

    @property
    def bytes_free(self) -> int:
        """Bytes of the free blocks."""
        with self._lock:
            self._collect()
            return sum(block.nbytes for block in self._free.blocks)

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return an uninitialised tensor, in memory that nobody else uses."""
        size = dtype.itemsize
        for extent in shape:
            size *= extent
        if size < self._smallest:
            return torch.empty(shape, dtype=dtype, pin_memory=self._pinned)
        block = self._take(self._block_size(size))
        lease = block.view(Lease)
        # Not weakref.finalize: it runs Python code, where a Ctrl-C that comes just then would be lost.
        loan = Loan(lease, self._returned.append)
        loan.block = block
        # Kept alive here: a weak reference that is gone calls nothing. Its callback only appends to a deque, which is
        # atomic: it runs in whatever thread drops the last tensor, even inside `_take`, where a lock would deadlock.
        self._lent[id(loan)] = loan
        memory = torch.from_numpy(lease)
        return (memory if lease.nbytes == size else memory[:size]).view(dtype).view(shape)

    def _block_size(self, size: int) -> int:
        """Return the bytes of the block for a tensor."""
        return size

    def _take(self, size: int) -> Bytes:
        with self._lock:
            self._collect()
            block = self._free_block(size)
            others = [] if block is not None or not self._shared else _all_pools()
            for pool in others:
                if block is None and pool._free is self._free:
                    pool._collect()
                    block = self._free_block(size)
            if block is not None:
                return block
        # Outside of the lock: page-locking takes long, and other threads may find a block meanwhile.
        return self._make_block(size)

    def _free_block(self, size: int) -> Bytes | None:
        free = self._free.blocks
        # The latest to come back may still be in cache. Batches of samples of any sizes take blocks of about their own.
        for i in reversed(range(len(free))):
            if size <= free[i].nbytes <= size + size // _SPARE:
                return free.pop(i)
        return None

    def _make_block(self, size: int) -> Bytes:
        """Return a new block."""
        return torch.empty(size, dtype=torch.uint8, pin_memory=self._pinned).numpy()

    def _drop_block(self, blocks: list[Bytes]) -> None:
        """Record that blocks will not be used again; called under the lock."""

    def _collect(self) -> None:
        """Move returned blocks to the free ones."""
        while self._returned:
            # Under the lock, so that two threads do not take the same block out.
            loan = self._returned.popleft()
            self._free.blocks.append(self._lent.pop(id(loan)).block)
        self._drop(max(0, len(self._free.blocks) - _KEEP))

    def _drop(self, count: int) -> None:
        if count:
            dropped = self._free.blocks[:count]
            del self._free.blocks[:count]
            self._drop_block(dropped)

    def release(self) -> None:
        """Give free blocks back to the system."""
        with self._lock:
            self._collect()
            self._drop(len(self._free.blocks))


_plain: weakref.WeakValueDictionary[str, _FreeBlocks] = weakref.WeakValueDictionary()
_pools: weakref.WeakValueDictionary[int, BufferPool] = weakref.WeakValueDictionary()
_adding = ForkSafeLock()


def _all_pools() -> list[BufferPool]:
    # Its references in one step: a pool may go in another thread meanwhile.
    return [pool for each in _pools.valuerefs() if (pool := each()) is not None]


def release_unused() -> None:
    """Give the free blocks of all pools back to the system."""
    for pool in _all_pools():
        pool.release()


def _forget() -> None:
    """Reset in a forked process: a thread of its parent may have held the locks of the pools."""
    _pools.clear()
    _plain.clear()


on_fork(_forget)
