"""Reusable blocks of shared memory, in which PyTorch's worker processes send large batches.

Without blocks, PyTorch allocates new shared memory for each batch, and maps it in the worker and in the main process.
The system must clear this memory first, which takes time. With blocks, a worker uses the same memory for another batch
when the program has released all tensors of the first batch.
"""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from torchdali.dataloader._torch_internals import collate
from torchdali.tensors.buffer_pool import Lease, Loan

__all__ = ["BlockCollate", "ReceivedBlocks"]

_SPARE_BLOCKS = 4  # additional blocks per worker, for batches that the program still uses
_MIN_SIZE = 1 << 20  # smallest size in bytes of a batch in a block; for smaller batches, new memory is as fast


class ReceivedBlocks:
    """The main process's record of the blocks of all workers of a loop.

    Args:
        workers: Number of workers.
        batches: Number of batches that each worker prepares ahead.

    Attributes:
        in_use: Flags ``(workers, blocks)`` in shared memory: 1 if a block contains a batch. The block's worker sets the
            flag to 1, and the main process sets it to 0.
        key: Number that identifies the object in messages from workers.
    """

    def __init__(self, workers: int, batches: int) -> None:
        self.in_use = torch.zeros(workers, batches + _SPARE_BLOCKS, dtype=torch.uint8).share_memory_()
        self._blocks: dict[tuple[int, int], Tensor] = {}
        self._loans: dict[tuple[int, int], Loan] = {}
        self._returned: deque[Loan] = deque()
        self.key = next(_keys)
        _received[self.key] = self

    def open(
        self, block_id: tuple[int, int], block: Tensor | None, shape: tuple[int, ...], dtype: torch.dtype
    ) -> Tensor:
        """Return the batch in a block. The block becomes free when the program has released all tensors of the batch.

        Args:
            block_id: Index of the worker, and index of the block.
            block: The block's memory if the worker has just created the block; otherwise None.
            shape, dtype: Shape and dtype of the batch.
        """
        self._release()
        if block is not None:
            self._blocks[block_id] = block
        lease = self._blocks[block_id].numpy().view(Lease)
        # When the program releases the batch, Python calls the queue's `append`, which is C code. A function written in
        # Python could swallow an interrupt.
        self._loans[block_id] = loan = Loan(lease, self._returned.append)
        loan.number = block_id[0] * self.in_use.shape[1] + block_id[1]
        size = dtype.itemsize * torch.Size(shape).numel()
        return torch.from_numpy(lease)[:size].view(dtype).view(shape)

    def _release(self) -> None:
        for _ in range(len(self._returned)):
            loan = self._returned.popleft()
            block_id = divmod(loan.number, self.in_use.shape[1])
            if self._loans.get(block_id) is loan:
                del self._loans[block_id]
                self.in_use[block_id] = 0  # from now on, the worker may write to the block


_keys = itertools.count()
_received: weakref.WeakValueDictionary[int, ReceivedBlocks] = weakref.WeakValueDictionary()


class BlockCollate:
    """Collate function like PyTorch's `default_collate`, but large tensors are written to reusable blocks."""

    def __init__(self, received: ReceivedBlocks) -> None:
        # This reference keeps `received` alive as long as PyTorch's iterator refers to this collate function.
        self._received: ReceivedBlocks | None = received
        self._in_use, self._key = received.in_use, received.key
        self._blocks: dict[int, Tensor] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_received": None}

    def __call__(self, samples: Any) -> Any:
        return collate.collate(samples, collate_fn_map={**collate.default_collate_fn_map, Tensor: self._stack})

    def _stack(self, tensors: Any, *, collate_fn_map: Any = None) -> Any:
        first, worker = tensors[0], get_worker_info()
        size = len(tensors) * first.numel() * first.element_size()
        if worker is None or size < _MIN_SIZE or not all(_is_like(each, first) for each in tensors):
            return collate.collate_tensor_fn(tensors)
        free = (self._in_use[worker.id] == 0).nonzero()
        if not len(free):
            return collate.collate_tensor_fn(tensors)
        slot, shape = int(free[0]), (len(tensors), *first.shape)
        block = self._blocks.get(slot)
        is_new = block is None or block.numel() < size
        if block is None or block.numel() < size:
            block = self._blocks[slot] = torch.empty(size, dtype=torch.uint8).share_memory_()
        self._in_use[worker.id, slot] = 1
        torch.stack(tensors, out=block[:size].view(first.dtype).view(shape))
        return _BlockMessage(self._key, (worker.id, slot), block if is_new else None, shape, first.dtype)


def _is_like(tensor: Tensor, first: Tensor) -> bool:
    """Return True if a tensor can be stacked in a block with the first tensor of its batch."""
    is_plain = type(tensor) is Tensor and tensor.layout == torch.strided and tensor.is_cpu and not tensor.requires_grad
    has_flags = tensor.is_conj() or tensor.is_neg() or tensor.is_quantized
    return is_plain and not has_flags and tensor.shape == first.shape and tensor.dtype == first.dtype


class _BlockMessage:
    """A worker's message about a batch in a block. When the main process unpickles the message, it gets the batch."""

    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments

    def __reduce__(self) -> Any:
        return _receive, self._arguments


def _receive(
    key: int, block_id: tuple[int, int], block: Tensor | None, shape: tuple[int, ...], dtype: torch.dtype
) -> Any:
    received = _received.get(key)
    return None if received is None else received.open(block_id, block, shape, dtype)  # None after the end of the loop
