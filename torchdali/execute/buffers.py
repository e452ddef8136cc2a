"""Memory of batches, reused when the user lets go of it.

A batch handed out is the user's own: its memory comes back only when the last tensor that shares it is
gone. That is known without asking torch: a tensor made from a NumPy array keeps the array alive, so a
finaliser on that array tells when.
"""

from __future__ import annotations

import threading
import weakref

import numpy as np
import numpy.typing as npt
import torch

__all__ = ["Buffers", "release_unused"]

_Bytes = npt.NDArray[np.uint8]
_POOLED = 1 << 20  # bytes; below it the allocator is as fast
_KEEP = 8  # free blocks; more would only be kept for a consumer that hoards in bursts


class _Lease(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """A view of a block that is out; its finaliser brings the block back."""


class Buffers:
    """A pool of memory blocks for batch tensors.

    Args:
        pinned: Page-lock the memory, for asynchronous copies to a device.
    """

    def __init__(self, pinned: bool = False) -> None:
        self._pinned = pinned
        self._free: list[_Bytes] = []
        self._lock = (
            threading.RLock()
        )  # a finaliser may run inside any allocation, this pool's included
        self.bytes_out = 0
        _pools.add(self)

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return an uninitialised tensor, in memory that nobody else holds."""
        size = dtype.itemsize
        for extent in shape:
            size *= extent
        if size < _POOLED:
            return torch.empty(shape, dtype=dtype, pin_memory=self._pinned)
        block = self._take(size)
        lease = block.view(_Lease)
        weakref.finalize(lease, self._give_back, block).atexit = False
        return torch.from_numpy(lease).view(dtype).view(shape)

    def _take(self, size: int) -> _Bytes:
        with self._lock:
            self.bytes_out += size
            for i, block in enumerate(self._free):
                if block.nbytes == size:
                    return self._free.pop(i)
        fresh: _Bytes = torch.empty(size, dtype=torch.uint8, pin_memory=self._pinned).numpy()
        return fresh

    def _give_back(self, block: _Bytes) -> None:
        with self._lock:
            self.bytes_out -= block.nbytes
            self._free.append(block)
            del self._free[:-_KEEP]

    def release(self) -> None:
        """Give free blocks back to the system."""
        with self._lock:
            self._free.clear()


_pools: weakref.WeakSet[Buffers] = weakref.WeakSet()


def release_unused() -> None:
    """Give the free blocks of all pools back to the system."""
    for pool in list(_pools):
        pool.release()
