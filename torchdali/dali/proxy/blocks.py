"""Reusable blocks of shared memory, in which a worker sends data to the main process.

The system must clear and map new shared memory; this takes three times as long as reading files into the memory.
Therefore, a worker keeps its blocks and uses them again. A worker sets the first byte of a block to 1 before it writes
data. The main process sets the byte to 0 when it has released all tensors in the block. While the byte is 1, the block
is not used again.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from torchdali.tensors.buffer_pool import Lease, Loan

__all__ = ["OutgoingBytes"]

_Bytes = npt.NDArray[np.uint8]
_HEADER = 64  # bytes before the data, so that the data is aligned
_MAX_BLOCKS = 32  # maximum number of blocks that a worker keeps; more are in use only if the program holds many batches


class OutgoingBytes:
    """Message with bytes for the main process. When the main process unpickles the message, it gets a uint8 tensor.

    Args:
        size: Number of bytes.
    """

    def __init__(self, size: int) -> None:
        self._block = _block(_HEADER + size)
        self.bytes: _Bytes = self._block.numpy()[_HEADER : _HEADER + size]

    def __reduce__(self) -> Any:
        return _receive, (self._block, self.bytes.size)


# ---------------------------------------------------------------- in a worker

_blocks: list[torch.Tensor] = []
if hasattr(os, "register_at_fork"):  # a forked process must not use its parent's blocks
    os.register_at_fork(after_in_child=_blocks.clear)


def _block(size: int) -> torch.Tensor:
    """Return a free block, or a new block if no free block is large enough. The block is marked as in use."""
    free = [k for k, block in enumerate(_blocks) if not block[0]]
    for k in free:
        if len(_blocks[k]) >= size:
            _blocks[k][0] = 1
            return _blocks[k]
    new_block = _allocate_shared(size + size // 4)  # the next batch may be larger
    new_block[0] = 1
    if free:
        _blocks[free[0]] = new_block
    elif len(_blocks) < _MAX_BLOCKS:
        _blocks.append(new_block)
    return new_block


def _allocate_shared(size: int) -> torch.Tensor:
    storage: Any = torch.UntypedStorage._new_shared(size, device="cpu")
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (size,), (1,))


# ---------------------------------------------------------------- in the main process


_loans: dict[int, Loan] = {}
_returned: deque[Loan] = deque()


def _receive(block: torch.Tensor, size: int) -> torch.Tensor:
    """Return the bytes of a worker's block, and release blocks that are no longer referenced."""
    with contextlib.suppress(IndexError):  # another thread may also empty `_returned`
        while True:
            loan = _returned.popleft()
            loan.block[0] = 0  # the worker may use the block again
            del _loans[id(loan)]
    memory = block.numpy()
    lease = memory[_HEADER : _HEADER + size].view(Lease)
    # `Loan` calls only `append`, which is C code. Python code, as in weakref.finalize, could swallow an interrupt.
    loan = Loan(lease, _returned.append)
    loan.block = memory
    _loans[id(loan)] = loan
    return torch.from_numpy(lease)
