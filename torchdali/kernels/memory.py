"""Memory of kernels: reused buffers, views by NumPy, and outputs that are written in place."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = [
    "IN_PLACE", "SMALL_SAMPLE", "Array", "Bytes", "ChunkImages", "DeviceShare", "Empty", "Floats", "Placed", "Room",
    "byte_planes", "copy_windows", "fresh", "in_transform", "inside", "is_array", "is_plain", "is_traced",
    "keep_freed_memory", "narrow", "place", "place_result",
]  # fmt: skip

# ---------------------------------------------------------------- reused buffers

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
Array = npt.NDArray[Any]

SMALL_SAMPLE = 1 << 14  # bytes; below, calls cost more than copies, and above, leaving the cache costs more than calls
_KEPT = 1 << 22  # elements, up to which a thread keeps them
_LARGE = 30 << 20  # bytes; the limit follows blocks of up to 32 MB
_LINE, _SHIFT = 64, 16  # bytes: of a line of the cache, and from there to where a plane begins


class _Planes(threading.local):
    """One thread's memory for channels."""

    def __init__(self) -> None:
        self.shape: tuple[int, int, int] | None = None
        self.planes: list[Bytes] = []


_memory = _Planes()


@functools.cache
def keep_freed_memory() -> None:
    """Let this process keep the memory that it frees for its next allocations, instead of giving it back at once.

    Results between two operators are freed after each chunk. By default glibc gives them back to the system as soon as
    some hundred kilobytes are free, and the system clears each page again for the next chunk, which took a third of a
    spectrogram's time. The first large block that is freed raises this limit for good (`M_MMAP_THRESHOLD` in mallopt(3)
    tells how); in most programs a large tensor happens to be that block. This one is never written, so it takes no
    memory.
    """
    np.empty(_LARGE, np.uint8)


def byte_planes(channels: int, height: int, width: int) -> list[Bytes]:
    """Return memory ``(H, W)`` for the channels that OpenCV takes apart; valid until this thread asks again.

    No plane begins where a vector would, nor two of them alike: OpenCV writes aligned ones past the cache, from where
    the next step would have to fetch them at three times the cost.
    """
    shape = channels, height, width
    if shape != _memory.shape:
        count = height * width
        pitch = count // _LINE * _LINE + _LINE + _SHIFT
        memory = np.empty(channels * pitch + _LINE, np.uint8)
        first = -memory.ctypes.data % _LINE + _SHIFT
        starts = range(first, first + channels * pitch, pitch)
        planes = [memory[start : start + count].reshape(height, width) for start in starts]
        if len(memory) > _KEPT:
            return planes
        _memory.shape, _memory.planes = shape, planes
    return _memory.planes


# ---------------------------------------------------------------- views

# A view of a tensor made by PyTorch releases the GIL, for a microsecond of work; where another thread waits for the
# GIL, it costs ten. NumPy holds the GIL, and takes half the time.


def narrow(x: Tensor, parts: dict[int, tuple[int, int]]) -> Tensor:
    """Return the part of a tensor that is given by a start and an extent for some axes."""
    if x.dtype != torch.uint8 or not is_plain(x):
        for axis, (start, extent) in parts.items():
            x = x.narrow(axis, start, extent)
        return x
    part = [slice(None)] * x.ndim
    for axis, (start, extent) in parts.items():
        part[axis] = slice(start, start + extent)
    return torch.from_numpy(x.numpy()[tuple(part)])


# Asked several times a sample: the two functions stand here by name, and no function calls another.
_is_compiling = torch.compiler.is_compiling
_transform = torch._C._functorch.peek_interpreter_stack


def in_transform() -> bool:
    """Return True inside ``torch.func.vmap`` and the like, whose tensors have no memory to look at."""
    return not _is_compiling() and _transform() is not None


def is_traced() -> bool:
    """Return True where only operations of torch are allowed: in a compiled graph and in a transform."""
    return _is_compiling() or _transform() is not None


def is_plain(x: Tensor) -> bool:
    """True if a tensor is an array in memory and nothing else."""
    return x.is_cpu and not x.requires_grad and not (_is_compiling() or _transform() is not None)


# ---------------------------------------------------------------- outputs

Empty = Callable[[tuple[int, ...], torch.dtype], Tensor]
"""Returns memory for a batch, which is used again when the user is done with it."""


class DeviceShare(Protocol):
    """The images of a batch that a decoder on the device decodes."""

    @property
    def takes(self) -> bool:
        """True while the decoder works; else the CPU had better decode all images."""

    def reserve(self, size: int) -> int:
        """Return the address of so many bytes, for copies of files."""

    def add(self, files: Array, parts: Array, count: int) -> int:
        """Take the files that were copied, `count` of these, and return the index of the first one in the share."""

    def keep(self, data: Tensor) -> Tensor:
        """Take the bytes of one file; return them as `data_of` does."""

    def data_of(self, index: int) -> Tensor:
        """Return the bytes of a file, always the same tensor."""

    def count_examined(self, count: int) -> None:
        """Record that so many images were examined: after all of them, no file is added."""


class Room(Protocol):
    """Memory that several threads fill with results of any shapes, and from where they are copied on.

    Attributes:
        share: Takes the images that a decoder on the device decodes, if there is one.
    """

    share: DeviceShare | None

    @property
    def address(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    def take(self, count: int) -> int:
        """Return the place of so many elements, or -1 if they do not fit."""


IN_PLACE = object()
"""Replaces a result that was written into the caller's memory: a tensor for each result is as expensive as the image's
program."""


class Placed(NamedTuple):
    """One of several results, with its place in a room."""

    place: int
    shape: tuple[int, ...]


class ChunkImages(Sequence[Any]):
    """Images of a chunk, in a room or in the share of the device. As a sequence, `Placed` or the bytes of files.

    Attributes:
        parts: ``(N,)`` of the dtype `kernels.native.PARTS`; its places begin at `place` in the room, its indices at
            `first` in the share.
    """

    __slots__ = ("_share", "first", "parts", "place")

    def __init__(self, parts: Array, place: int, first: int, share: DeviceShare | None) -> None:
        self.parts, self.place, self.first, self._share = parts, place, first, share

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, number: Any) -> Any:
        _, shape, place, index = self.parts[number].item()
        if index >= 0 and self._share is not None:
            return self._share.data_of(self.first + index)
        return Placed(self.place + place, tuple(shape.tolist()))


def fresh(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Return memory that was not used before: an `Empty` without a pool."""
    return torch.empty(shape, dtype=dtype)


def place(out: Tensor | None, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return `out` if a result of this kind fits there, otherwise an uninitialised tensor."""
    if out is not None and out.shape == shape and out.dtype == dtype and out.is_contiguous():
        return out
    return torch.empty(tuple(shape), dtype=dtype, device=device)


def place_result(x: Tensor, out: Tensor | None) -> Tensor:
    """Return a result, copied to `out` if it fits there."""
    if out is None or out.shape != x.shape or out.dtype != x.dtype or x.requires_grad:
        return x
    return out.copy_(x)


# ---------------------------------------------------------------- windows of several arrays


def is_array(x: Tensor) -> bool:
    """True if NumPy can read a tensor."""
    return is_plain(x) and x.dtype not in (torch.bfloat16, torch.complex32)


def inside(
    arrays: Array, axes: Sequence[int], starts: Sequence[Sequence[int]], extents: Sequence[int]
) -> Array | list[Array] | None:
    """Return windows of one shape of several arrays.

    Args:
        arrays: ``(N, ...)``.
        axes: The axes of an array that are cut.
        starts: For each array or, if it is one, for all: one number per axis.
        extents: One number per axis.

    Returns:
        ``(N, ...)``, or a list if the windows are in several places; None if one reaches outside.
    """
    shape = arrays.shape[1:]
    for axis, extent, places in zip(axes, extents, zip(*starts, strict=True), strict=True):
        if extent < 0 or min(places) < 0 or max(places) + extent > shape[axis]:
            return None
    if len(starts) == 1:
        part = _part(axes, starts[0], extents, len(shape))
        windows: Array = arrays[(slice(None), *part)]
        return windows
    if sorted(axes) == [0, 1]:
        i, j = axes.index(0), axes.index(1)
        h, w = extents[i], extents[j]
        pairs = zip(arrays, starts, strict=True)
        return [array[at[i] : at[i] + h, at[j] : at[j] + w] for array, at in pairs]
    parts = [_part(axes, at, extents, len(shape)) for at in starts]
    return [array[part] for array, part in zip(arrays, parts, strict=True)]


def _part(axes: Sequence[int], starts: Sequence[int], extents: Sequence[int], ndim: int) -> tuple[slice, ...]:
    part = [slice(None)] * ndim
    for axis, start, extent in zip(axes, starts, extents, strict=True):
        part[axis] = slice(start, start + extent)
    return tuple(part)


def copy_windows(windows: Array | list[Array], dtype: torch.dtype, out: Tensor | None) -> Tensor:
    """Return windows of one shape as one tensor; in `out`, if it fits."""
    shape = (len(windows), *windows[0].shape)
    tensor = place(out, shape, dtype, torch.device("cpu"))
    result = tensor.numpy()
    if isinstance(windows, np.ndarray):
        result[...] = windows
    else:
        for target, window in zip(result, windows, strict=True):
            target[...] = window
    return tensor
