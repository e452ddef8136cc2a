"""Memory for kernels: reused buffers, NumPy views, and outputs that are written in place."""

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

SMALL_SAMPLE = 1 << 14  # bytes; below, calls cost more than copies; above, cache misses cost more than calls
_KEPT = 1 << 22  # elements; a thread doesn't reuse larger buffers
_LARGE = 30 << 20  # bytes; glibc raises its limit only for blocks of up to 32 MB
_LINE, _SHIFT = 64, 16  # bytes: size of a cache line, and offset of a plane from the line's start


class _Planes(threading.local):
    """One thread's memory for channels."""

    def __init__(self) -> None:
        self.shape: tuple[int, int, int] | None = None
        self.planes: list[Bytes] = []


_memory = _Planes()


@functools.cache
def keep_freed_memory() -> None:
    """Make this process reuse freed memory for its next allocations instead of returning it to the system.

    Intermediate results of operators are freed after each chunk. By default, glibc returns freed memory to the system
    as soon as some hundred kilobytes are free, and the system clears each page again for the next chunk; this took a
    third of a spectrogram's time. The first large block that is freed raises glibc's limit permanently (see
    `M_MMAP_THRESHOLD` in mallopt(3)); in most programs, that block happens to be a large tensor. The block that is
    allocated here is never written, so it occupies no physical memory.
    """
    np.empty(_LARGE, np.uint8)


def byte_planes(channels: int, height: int, width: int) -> list[Bytes]:
    """Return planes ``(H, W)`` for the channels that OpenCV splits; valid until this thread calls the function again.

    The planes are deliberately not aligned for vectors: OpenCV writes aligned planes directly to memory, bypassing the
    cache, so that the next step would take three times as long to read them.
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

# PyTorch releases the GIL to create a view, which takes a microsecond, but ten if another thread waits for the GIL.
# NumPy holds the GIL and takes half the time.


def narrow(x: Tensor, parts: dict[int, tuple[int, int]]) -> Tensor:
    """Return a view of a part of a tensor; `parts` has the start and the extent for some axes."""
    if x.dtype != torch.uint8 or not is_plain(x):
        for axis, (start, extent) in parts.items():
            x = x.narrow(axis, start, extent)
        return x
    part = [slice(None)] * x.ndim
    for axis, (start, extent) in parts.items():
        part[axis] = slice(start, start + extent)
    return torch.from_numpy(x.numpy()[tuple(part)])


# Called several times per sample: the two functions are looked up once, and the checks below do not call each other.
_is_compiling = torch.compiler.is_compiling
_transform = torch._C._functorch.peek_interpreter_stack


def in_transform() -> bool:
    """Return True inside ``torch.func.vmap`` and similar transforms, whose tensors have no accessible memory."""
    return not _is_compiling() and _transform() is not None


def is_traced() -> bool:
    """Return True in a compiled graph and in a transform, where only torch operations are allowed."""
    return _is_compiling() or _transform() is not None


def is_plain(x: Tensor) -> bool:
    """Return whether a tensor is a plain array in main memory: no gradient, no compiled graph, no transform."""
    return x.is_cpu and not x.requires_grad and not (_is_compiling() or _transform() is not None)


# ---------------------------------------------------------------- outputs

Empty = Callable[[tuple[int, ...], torch.dtype], Tensor]
"""Returns memory for a batch, which is used again when the user is done with it."""


class DeviceShare(Protocol):
    """The images of a batch that a decoder on the device decodes."""

    @property
    def takes(self) -> bool:
        """True while the decoder works; if False, the CPU should decode all images."""

    def reserve(self, size: int) -> int:
        """Reserve `size` bytes for copies of files, and return their address."""

    def add(self, files: Array, parts: Array, count: int) -> int:
        """Add `count` copied files to the share, and return the index of the first added file."""

    def keep(self, data: Tensor) -> Tensor:
        """Add the bytes of one file to the share; return the same tensor as `data_of`."""

    def data_of(self, index: int) -> Tensor:
        """Return the bytes of a file; the same tensor on each call."""

    def count_examined(self, count: int) -> None:
        """Record that `count` more images were examined; after the last image, no more files are added."""


class Room(Protocol):
    """A buffer that several threads fill with results of any shapes, and from which the results are copied.

    Attributes:
        share: The images that a decoder on the device decodes; None without a decoder.
    """

    share: DeviceShare | None

    @property
    def address(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    def take(self, count: int) -> int:
        """Reserve `count` elements and return their offset, or -1 if they do not fit."""


IN_PLACE = object()
"""Replaces a result that was written into the caller's memory: a tensor for each result is as expensive as the image's
program."""


class Placed(NamedTuple):
    """A result in a `Room`: its offset in elements, and its shape."""

    place: int
    shape: tuple[int, ...]


class ChunkImages(Sequence[Any]):
    """Images of a chunk, each in a `Room` or in the device's share. The items are `Placed` or the bytes of files.

    Attributes:
        parts: ``(N,)`` of the dtype `kernels.native.PARTS`; its places are relative to `place` in the room, its indices
            to `first` in the share.
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
    """Return newly allocated memory: an `Empty` that uses no pool."""
    return torch.empty(shape, dtype=dtype)


def place(out: Tensor | None, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return `out` if it is contiguous and has the result's shape and dtype, otherwise an uninitialized tensor."""
    if out is not None and out.shape == shape and out.dtype == dtype and out.is_contiguous():
        return out
    return torch.empty(tuple(shape), dtype=dtype, device=device)


def place_result(x: Tensor, out: Tensor | None) -> Tensor:
    """Copy a result to `out` if it fits there and needs no gradient, and return `out`; otherwise return the result."""
    if out is None or out.shape != x.shape or out.dtype != x.dtype or x.requires_grad:
        return x
    return out.copy_(x)


# ---------------------------------------------------------------- windows of several arrays


def is_array(x: Tensor) -> bool:
    """Return whether NumPy can read a tensor."""
    return is_plain(x) and x.dtype not in (torch.bfloat16, torch.complex32)


def inside(
    arrays: Array, axes: Sequence[int], starts: Sequence[Sequence[int]], extents: Sequence[int]
) -> Array | list[Array] | None:
    """Return equally large windows of several arrays.

    Args:
        arrays: ``(N, ...)``.
        axes: The axes of an array that are cut.
        starts: Starts of the windows, one number per axis: an item for each array, or one item for all.
        extents: Extent of the windows, one number per axis.

    Returns:
        ``(N, ...)``, or a list if the windows have different starts; None if a window exceeds its array.
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
    """Copy windows of equal shape to one tensor: `out` if it fits, else a new tensor."""
    shape = (len(windows), *windows[0].shape)
    tensor = place(out, shape, dtype, torch.device("cpu"))
    result = tensor.numpy()
    if isinstance(windows, np.ndarray):
        result[...] = windows
    else:
        for target, window in zip(result, windows, strict=True):
            target[...] = window
    return tensor
