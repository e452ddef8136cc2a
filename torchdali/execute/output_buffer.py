"""Output buffers of chains: a tensor for a batch, or page-locked memory for samples of any shapes."""

from __future__ import annotations

import math
import operator as op
import threading
from collections.abc import Callable, Sequence
from ctypes import memmove
from dataclasses import dataclass
from typing import Any

import torch

from torchdali.calls.running import check_form, fitting
from torchdali.forks import cached_property
from torchdali.tensors import TensorList
from torchdali.tensors._storage import Packed, Storage
from torchdali.tensors.buffer_pool import BufferPool

__all__ = ["Arena", "ArenaColumn", "OpenBuffer", "OutputBuffer", "filled"]

Send = Callable[[torch.Tensor, int], torch.Tensor]

_Tensor = torch.Tensor
_PIECE = 0.4  # of the room for a batch: what is copied to the device while the rest is computed
_LEAST_PIECE = 1 << 20  # bytes; a smaller one takes less time to copy than to start


class Arena:
    """Page-locked memory into which samples of any shapes are put as they come, by several threads.

    Args:
        flat: The memory.
        send: Starts the copy of the first so many elements to the device, and returns all of them there; called once,
            by the thread that fills the last gap before them, while others fill the rest.

    Attributes:
        sends: A first piece is sent; it is large enough.
        there: What `send` returned.
        sent: How many elements it was given.
    """

    def __init__(self, flat: torch.Tensor, send: Send | None = None) -> None:
        self.flat, self._used, self._lock = flat, 0, threading.Lock()
        self._size, self.itemsize, self.address = flat.numel(), flat.itemsize, flat.data_ptr()
        self._open: set[int] = set()
        self._send = send if flat.nbytes * _PIECE >= _LEAST_PIECE else None
        self.sends = self._send is not None
        self.there: torch.Tensor | None = None
        self.sent = 0

    @property
    def used(self) -> int:
        """Elements that are taken."""
        return min(self._used, self._size)

    def take(self, count: int) -> int:
        """Return the place of so many elements, or -1 where they do not fit."""
        with self._lock:  # workers take places side by side; what they write there is theirs alone
            place = self._used
            if place + count > self._size:
                return -1
            self._used = place + count
            if self.sends and count:
                self._open.add(place)
        return place

    def place_of(self, sample: Any) -> tuple[int, tuple[int, ...]] | None:
        """Return place and shape of a sample that lies here, which may be a tensor by now; None for others."""
        if not isinstance(sample, _Tensor):
            return sample  # type: ignore[no-any-return]
        place = (sample.data_ptr() - self.address) // self.itemsize
        here = 0 <= place < self._size and sample.dtype == self.flat.dtype
        return (place, tuple(sample.shape)) if here else None

    def filled(self, place: int) -> None:
        """Note that the elements at a place are there, and send the first piece if it is whole now."""
        if self._send is None or self.sent:  # once sent, for good
            return
        with self._lock:
            self._open.remove(place)
            whole = min(self._open, default=self._used)
            if self.sent or whole < self._size * _PIECE:
                return
            self.sent = whole
        # Nobody writes below `whole` again. The chain is not done before this thread is back, so `there` is seen.
        self.there = self._send(self.flat, whole)


class ArenaColumn(list):  # type: ignore[type-arg]
    """Results of a chain; each is copied into the arena by the worker that computed it, while it is in cache.

    What lies there is a place and a shape in the list, until `fill` makes tensors of it.
    """

    def __init__(self, arena: Arena, count: int) -> None:
        super().__init__([None] * count)
        self._arena, self._dtype = arena, arena.flat.dtype

    def __setitem__(self, i: Any, sample: Any) -> None:
        if isinstance(sample, _Tensor) and sample.dtype == self._dtype and sample.is_cpu:
            arena, elements = self._arena, sample.contiguous()
            place = arena.take(elements.numel())
            if place >= 0:
                # Torch takes three times as long for a small image.
                memmove(arena.address + place * arena.itemsize, elements.data_ptr(), elements.nbytes)
                if arena.sends and elements.nbytes:  # an empty sample has no place of its own
                    arena.filled(place)
                sample = place, tuple(sample.shape)
        list.__setitem__(self, i, sample)

    def fill(self) -> None:
        """Make tensors of the samples that lie in the arena."""
        flat = self._arena.flat
        for i, each in enumerate(self):
            if type(each) is tuple:
                place, shape = each
                sample = flat[place : place + math.prod(shape)].view(shape)
                list.__setitem__(self, i, sample)

    def packed(self, layout: str, info: Sequence[str] | None) -> TensorList | None:
        """Return the batch in the arena, with all of its memory.

        None where some samples did not fit, and where the samples have one shape, or several numbers of axes.
        """
        placed = self if set(map(type, self)) == {tuple} else list(map(self._arena.place_of, self))
        if None in placed:
            return None
        places, shapes = map(list, zip(*placed, strict=True))
        if shapes.count(shapes[0]) == len(shapes) or len(set(map(len, shapes))) > 1:
            return None
        layout = fitting(layout, len(shapes[0]))
        return TensorList.from_packed(self._arena.flat, places, shapes, layout, info)


@dataclass(frozen=True)
class OpenBuffer:
    """The output buffer of one batch.

    Attributes:
        size: Samples of the batch.
        whole: A tensor for all of them; None where its shape is not known.
        arena: Memory for samples of any shapes.
    """

    size: int
    whole: torch.Tensor | None = None
    arena: Arena | None = None

    @cached_property
    def parts(self) -> Sequence[torch.Tensor | None]:
        """The place of each sample."""
        return [None] * self.size if self.whole is None else self.whole.unbind(0)

    def column(self) -> list[Any]:
        """Return the list that the chain writes the results into."""
        return [None] * self.size if self.arena is None else ArenaColumn(self.arena, self.size)


class OutputBuffer:
    """Allocates where the results of one edge are written: a tensor with the shape of the batch before.

    A wrong guess costs nothing: an operator that cannot use its part returns a tensor of its own, and the batch is
    ragged, or is stacked once.

    Args:
        packs: Samples of different shapes go into one piece of memory too, since they are copied to a device next.
        send: Starts that copy for the first of them, see `Arena`.
    """

    def __init__(self, buffers: BufferPool, packs: bool = False, send: Send | None = None) -> None:
        self._buffers, self._packs, self._send = buffers, packs, send
        self._ragged: tuple[int, torch.dtype] | None = None
        self._guess: tuple[tuple[int, ...], torch.dtype] | None = None

    @property
    def sample(self) -> int:
        """Bytes of a sample of the batch before; 0 if they had several shapes."""
        guess = self._guess
        return 0 if guess is None else math.prod(guess[0]) * guess[1].itemsize

    def open(self, size: int, chunk: int = 0) -> OpenBuffer:
        """Return the buffer for a batch.

        Args:
            chunk: Samples of each tensor that the results come in. One tensor gets no buffer: it is the batch.
        """
        # Read once: this thread starts a batch, while a worker may close an earlier one and guess anew.
        guess, ragged = self._guess, self._ragged
        if ragged is not None and not chunk and size:
            elements, dtype = ragged
            return OpenBuffer(size, arena=Arena(self._buffers.empty((elements,), dtype), self._send))
        if guess is None or size == 0 or chunk >= size:
            return OpenBuffer(size)
        shape, dtype = guess
        return OpenBuffer(size, self._buffers.empty((size, *shape), dtype))

    def close(self, opened: OpenBuffer, done: list[Any], layout: str, info: Sequence[str] | None) -> TensorList:
        """Make the batch of the results of single samples."""
        packed = done.packed(layout, info) if isinstance(done, ArenaColumn) else None
        if packed is not None and opened.arena is not None:
            self._make_room(opened.arena.used, opened.arena.flat.dtype)
            return packed
        filled(done)
        if _is_filled(opened, done):
            return _batch_of(opened.whole, layout, info)
        first = next((d for d in done if d is not None), None)
        layout = layout if first is None else fitting(layout, first.ndim)
        if first is None or any(d is None or d.shape != first.shape or d.dtype != first.dtype for d in done):
            self._guess = None
            check_form(done)
            return self._ragged_batch(done, layout, info)
        self._ragged = None
        self._guess = tuple(first.shape), first.dtype
        stacked = torch.stack(done, out=self._buffers.empty((len(done), *first.shape), first.dtype))
        return TensorList.from_dense(stacked, layout, source_info=info)

    def _ragged_batch(self, done: list[Any], layout: str, info: Sequence[str] | None) -> TensorList:
        dtype = None if not done or done[0] is None else done[0].dtype
        alike = all(d is not None and d.dtype == dtype for d in done)
        if self._packs and alike and dtype is not None and dtype != torch.bfloat16:
            self._make_room(sum(d.numel() for d in done), dtype)
        return TensorList.from_samples(list(done), layout, source_info=info)

    def _make_room(self, elements: int, dtype: torch.dtype) -> None:
        """Choose the size of the next arena: a quarter more than a batch had. What does not fit costs a copy."""
        room = self._ragged[0] if self._ragged is not None else 0
        if not elements * 1.1 <= room <= elements * 2:
            room = elements + elements // 4
        self._guess, self._ragged = None, (room, dtype)

    def close_chunks(
        self, opened: OpenBuffer, chunks: Sequence[Storage], layout: str, info: Sequence[str] | None
    ) -> TensorList:
        """Make the batch of the results of chunks, each in one tensor."""
        tensors = [chunk.dense for chunk in chunks if chunk.dense is not None]
        if len(tensors) == len(chunks):
            return self._close_tensors(opened, tensors, layout, info)
        if len(chunks) == 1 and isinstance(chunks[0], Packed):
            self._guess = None
            return _of_packed(chunks[0], layout, info)
        return self.close(OpenBuffer(opened.size), [sample for chunk in chunks for sample in chunk], layout, info)

    def _close_tensors(
        self, opened: OpenBuffer, tensors: list[torch.Tensor], layout: str, info: Sequence[str] | None
    ) -> TensorList:
        if _lie_in(opened.whole, tensors):
            return _batch_of(opened.whole, layout, info)
        first = tensors[0]
        if any(each.shape[1:] != first.shape[1:] or each.dtype != first.dtype for each in tensors):
            return self.close(OpenBuffer(opened.size), [sample for each in tensors for sample in each], layout, info)
        self._guess = tuple(first.shape[1:]), first.dtype
        whole = first
        if len(tensors) > 1:
            memory = self._buffers.empty((opened.size, *first.shape[1:]), first.dtype)
            whole = torch.cat(tensors, out=memory)
        return _batch_of(whole, layout, info)


def filled(done: list[Any]) -> list[Any]:
    """Return the results of a chain as tensors, also those in an arena."""
    if isinstance(done, ArenaColumn):
        done.fill()
    return done


def _of_packed(packed: Packed, layout: str, info: Sequence[str] | None) -> TensorList:
    """Make the batch of the results of a chunk that holds all samples, which lie one after the other."""
    shapes, layout = packed.shape(), fitting(layout, packed.ndim())
    if packed.is_uniform():
        return TensorList.from_dense(packed.flat.view(len(packed), *shapes[0]), layout, info)
    if packed.rows is None:
        return TensorList.from_packed(packed.flat, packed.offsets, shapes, layout, info)
    batch = TensorList.from_rows(*packed.rows, layout)
    batch.set_source_infos(info)
    return batch


def _is_filled(opened: OpenBuffer, done: list[Any]) -> bool:
    """Return True if every result is in its part of the buffer."""
    return opened.whole is not None and len(done) == opened.size and all(map(op.is_, done, opened.parts))


def _lie_in(whole: torch.Tensor | None, tensors: Sequence[torch.Tensor]) -> bool:
    """Return True if tensors are the rows of another, in their order."""
    if whole is None or sum(map(len, tensors)) != len(whole):
        return False
    place = whole.data_ptr()
    for each in tensors:
        if each.data_ptr() != place or each.shape[1:] != whole.shape[1:] or each.dtype != whole.dtype:
            return False
        place += each.nbytes
    return whole.numel() > 0


def _batch_of(whole: torch.Tensor | None, layout: str, info: Sequence[str] | None) -> TensorList:
    assert whole is not None
    return TensorList.from_dense(whole, fitting(layout, whole.ndim - 1), source_info=info)
