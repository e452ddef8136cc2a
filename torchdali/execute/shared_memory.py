"""Batches in memory that a worker process fills and its parent reads, without a copy between them.

A block of shared memory has no name: its file descriptor goes over a socket, so that nothing can be left
behind, whoever dies. The worker owns the blocks; the parent lends them out as tensors and tells the worker
which ones came back when it next has something to say.
"""

from __future__ import annotations

import array
import mmap
import os
import socket
import tempfile
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from torchdali.tensors import TensorList

__all__ = ["Packed", "Reader", "Writer"]

_Bytes = npt.NDArray[np.uint8]
_ALIGNED = 64  # bytes; where a sample may begin
_SMALLEST = 1 << 16


@dataclass(frozen=True)
class _Piece:
    """A tensor in a block; ``shape`` of a sample, or of the dense batch."""

    offset: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class _Layout:
    """How one batch lies in a block."""

    layout: str
    dtype: torch.dtype | None
    dense: bool
    pieces: tuple[_Piece, ...]


@dataclass(frozen=True)
class Packed:
    """Batches in a block: what goes over the pipe instead of them.

    Attributes:
        block: Number of the block; negative if the batches have no bytes.
        fresh: Size of the block if the parent does not have it yet, else 0; its descriptor follows.
        dropped: Blocks that the worker will not use again.
    """

    block: int
    fresh: int
    dropped: tuple[int, ...]
    batches: tuple[_Layout, ...]


def _tensors(batch: TensorList) -> list[torch.Tensor]:
    dense = batch.dense()
    tensors = batch.samples() if dense is None else [dense]
    return [tensor.detach().cpu().contiguous() for tensor in tensors]


class Writer:
    """The worker's side: blocks, each in use until its number is given to `free`.

    Args:
        connection: Descriptor of the socket to the parent.
    """

    def __init__(self, connection: int) -> None:
        self._socket = socket.socket(fileno=os.dup(connection))
        self._free: dict[int, _Bytes] = {}
        self._used: dict[int, _Bytes] = {}
        self._count = 0
        self._descriptor = -1

    def free(self, blocks: Sequence[int]) -> None:
        """Take blocks back."""
        for block in blocks:
            self._free[block] = self._used.pop(block)

    def write(self, batches: Sequence[TensorList]) -> Packed:
        """Copy batches into a block."""
        tensors = [_tensors(batch) for batch in batches]
        size, layouts = 0, []
        for batch, each in zip(batches, tensors, strict=True):
            pieces = []
            for tensor in each:
                pieces.append(_Piece(size, tuple(tensor.shape)))
                size += -(-tensor.nbytes // _ALIGNED) * _ALIGNED
            dense = batch.dense() is not None
            layouts.append(_Layout(batch.layout(), batch.torch_dtype, dense, tuple(pieces)))
        if size == 0:
            return Packed(-1, 0, (), tuple(layouts))
        number, fresh, dropped = self._block(size)
        flat = torch.from_numpy(self._used[number])
        for tensor, piece in zip(_flat(tensors), _flat(each.pieces for each in layouts), strict=True):
            target = flat[piece.offset : piece.offset + tensor.nbytes]
            target.copy_(tensor.view(-1).view(torch.uint8))
        return Packed(number, fresh, dropped, tuple(layouts))

    def _block(self, size: int) -> tuple[int, int, tuple[int, ...]]:
        """Choose the smallest free block that is large enough, or make one in place of the free ones."""
        fitting = [(block.nbytes, number) for number, block in self._free.items() if block.nbytes >= size]
        if fitting:
            number = min(fitting)[1]
            self._used[number] = self._free.pop(number)
            return number, 0, ()
        dropped = tuple(self._free)
        self._free.clear()
        number, self._count = self._count, self._count + 1
        room = max(_SMALLEST, size + size // 4)
        self._descriptor = _anonymous_file(room)
        self._used[number] = np.frombuffer(mmap.mmap(self._descriptor, room), np.uint8)
        return number, room, dropped

    def send_descriptor(self) -> None:
        """Send what must follow a `Packed` with a fresh block."""
        socket.send_fds(self._socket, [b"d"], [self._descriptor])
        os.close(self._descriptor)
        self._descriptor = -1
