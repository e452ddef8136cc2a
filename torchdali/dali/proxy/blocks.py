"""Shared memory from a worker to the main process, used again when the main process is done with it.

Fresh shared memory costs more than its content: clearing and mapping its pages takes three times as long as
reading the files into it. So a worker keeps its blocks. The first byte of a block says that it is on its way or in
use; the main process clears it when the last tensor on the block is gone, whoever held that. A block that never
comes back is only not used again.
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

__all__ = ["Outgoing"]

_Bytes = npt.NDArray[np.uint8]
_HEADER = 64  # bytes; the data after it is aligned
_KEPT = 32  # blocks of a worker; more are in flight only if the main process hoards them


class Outgoing:
    """Bytes for another process, where they arrive as a tensor.

    Args:
        size: How many.
    """

    def __init__(self, size: int) -> None:
        self._block = _block(_HEADER + size)
        self.bytes: _Bytes = self._block.numpy()[_HEADER : _HEADER + size]

    def __reduce__(self) -> Any:
        return _arrive, (self._block, self.bytes.size)


# ---------------------------------------------------------------- in a worker

_own: list[torch.Tensor] = []
if hasattr(os, "register_at_fork"):  # two processes would take the same free block at once
    os.register_at_fork(after_in_child=_own.clear)


def _block(size: int) -> torch.Tensor:
    """Return a block, marked as in use: one that came back, or a new one."""
    free = [k for k, block in enumerate(_own) if not block[0]]
    for k in free:
        if len(_own[k]) >= size:
            _own[k][0] = 1
            return _own[k]
    fresh = _share(size + size // 4)  # the next batch may be larger
    fresh[0] = 1
    if free:
        _own[free[0]] = fresh
    elif len(_own) < _KEPT:
        _own.append(fresh)
    return fresh


def _share(size: int) -> torch.Tensor:
    storage: Any = torch.UntypedStorage._new_shared(size, device="cpu")
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (size,), (1,))


# ---------------------------------------------------------------- in the main process


_lent: dict[int, Loan] = {}
_returned: deque[Loan] = deque()


def _arrive(block: torch.Tensor, size: int) -> torch.Tensor:
    """Return the bytes of a block that came from a worker, and give back those that nobody holds any more."""
    with contextlib.suppress(IndexError):  # several threads may come here
        while True:
            loan = _returned.popleft()
            loan.block[0] = 0  # the worker may use it again
            del _lent[id(loan)]
    memory = block.numpy()
    lease = memory[_HEADER : _HEADER + size].view(Lease)
    # Not weakref.finalize: it runs Python code, where a Ctrl-C that comes just then would be lost.
    loan = Loan(lease, _returned.append)
    loan.block = memory
    _lent[id(loan)] = loan
    return torch.from_numpy(lease)
