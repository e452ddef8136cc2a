"""A pool of memory for batches. A batch's memory is reused after the user has released the batch.

Memory returns to the pool after the last tensor that shares it was deleted. PyTorch has no hook for this deletion. But
a tensor that was created from a NumPy array keeps the array alive. So the pool creates each tensor from an array, and
stores a weak reference to the array.
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
_MIN_POOLED = 1 << 20  # bytes; for smaller tensors, the allocator is as fast
_SPARE = 4  # a block may be larger than its tensor by at most 1/_SPARE of the tensor's size
_MAX_FREE_BLOCKS = 4  # more blocks would help only a program that releases many batches at a time


class Lease(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """A view of a block that tensors use.

    The tensors keep this object alive, so it is deleted together with the last tensor that shares the block.
    """


class Loan(weakref.ref[Lease]):
    """A weak reference to a `Lease`. When the lease is deleted, the loan appends itself to the pool's queue."""

    __slots__ = ("block", "number")
    block: Bytes
    number: int


class _FreeBlocks:
    """Blocks that no tensor uses, and a lock. All pools of plain (not pinned) memory share one object of this class."""

    def __init__(self) -> None:
        self.blocks: list[Bytes] = []
        self.lock = threading.Lock()


class BufferPool:
    """A pool of memory blocks for batch tensors. Pools of plain memory share their free blocks.

    Args:
        pinned: True to use pinned memory, for asynchronous copies to a device.
    """

    _smallest = _MIN_POOLED

    def __init__(self, pinned: bool = False) -> None:
        self._pinned = pinned
        # Pools don't share pinned memory, because each pipeline's streams copy from it.
        self._shared = not pinned and type(self) is BufferPool
        self._lent: dict[int, Loan] = {}
        self._returned: deque[Loan] = deque()
        with _registry_lock:
            existing = _plain.get("free") if self._shared else None
            self._free = _FreeBlocks() if existing is None else existing
            self._lock = self._free.lock
            if self._shared:
                _plain["free"] = self._free
            _pools[id(self)] = self

    @property
    def bytes_out(self) -> int:
        """Bytes of the blocks in use."""
        with self._lock:
            self._collect()
            # `list` copies the values in one step. This is needed because `empty` adds loans without the lock.
            return sum(loan.block.nbytes for loan in list(self._lent.values()))

    @property
    def bytes_free(self) -> int:
        """Bytes of the free blocks."""
        with self._lock:
            self._collect()
            return sum(block.nbytes for block in self._free.blocks)

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return an uninitialized tensor in memory that nothing else uses."""
        size = dtype.itemsize
        for extent in shape:
            size *= extent
        if size < self._smallest:
            return torch.empty(shape, dtype=dtype, pin_memory=self._pinned)
        block = self._obtain_block(self._block_size(size))
        lease = block.view(Lease)
        # `weakref.finalize` isn't used, because its callback is Python code, in which a Ctrl-C could be lost.
        loan = Loan(lease, self._returned.append)
        loan.block = block
        # The pool stores the weak reference, because Python calls the callback only if the reference still exists. The
        # callback runs in the thread that deletes the last tensor. This thread may already hold the pool's lock, so the
        # callback takes no lock. The callback only appends to a deque, which is atomic.
        self._lent[id(loan)] = loan
        memory = torch.from_numpy(lease)
        return (memory if lease.nbytes == size else memory[:size]).view(dtype).view(shape)

    def _block_size(self, size: int) -> int:
        """Return the number of bytes of the block for a tensor of `size` bytes. Subclasses may override this method."""
        return size

    def _obtain_block(self, size: int) -> Bytes:
        with self._lock:
            self._collect()
            block = self._free_block(size)
            pools = [] if block is not None or not self._shared else _all_pools()
            for pool in pools:
                if block is None and pool._free is self._free:
                    pool._collect()
                    block = self._free_block(size)
            if block is not None:
                return block
        # Create the block without the lock, because pinning takes long. Other threads may take free blocks meanwhile.
        return self._make_block(size)

    def _free_block(self, size: int) -> Bytes | None:
        free = self._free.blocks
        # Prefer the most recently returned block, which may still be in the CPU's cache. The size needs to be only
        # about right, because batches vary in size.
        for i in reversed(range(len(free))):
            if size <= free[i].nbytes <= size + size // _SPARE:
                return free.pop(i)
        return None

    def _make_block(self, size: int) -> Bytes:
        return torch.empty(size, dtype=torch.uint8, pin_memory=self._pinned).numpy()

    def _drop_block(self, blocks: list[Bytes]) -> None:
        """Do nothing. Subclasses may override this method, to use the removed blocks. The caller holds the lock."""

    def _collect(self) -> None:
        """Move the blocks of deleted tensors to the free blocks. The caller must hold the lock."""
        while self._returned:
            # The caller holds the lock, so two threads can't remove the same block.
            loan = self._returned.popleft()
            self._free.blocks.append(self._lent.pop(id(loan)).block)
        self._drop(max(0, len(self._free.blocks) - _MAX_FREE_BLOCKS))

    def _drop(self, count: int) -> None:
        if count:
            dropped = self._free.blocks[:count]
            del self._free.blocks[:count]
            self._drop_block(dropped)

    def release(self) -> None:
        """Release free blocks to the system."""
        with self._lock:
            self._collect()
            self._drop(len(self._free.blocks))


_plain: weakref.WeakValueDictionary[str, _FreeBlocks] = weakref.WeakValueDictionary()
_pools: weakref.WeakValueDictionary[int, BufferPool] = weakref.WeakValueDictionary()
_registry_lock = ForkSafeLock()


def _all_pools() -> list[BufferPool]:
    # `valuerefs` copies the references in one step, which is safe while another thread deletes a pool.
    return [pool for each in _pools.valuerefs() if (pool := each()) is not None]


def release_unused() -> None:
    """Release the free blocks of all pools to the system."""
    for pool in _all_pools():
        pool.release()


def _forget_pools() -> None:
    """Forget the pools in a forked process, because a thread of the parent may have held their locks."""
    _pools.clear()
    _plain.clear()


on_fork(_forget_pools)
