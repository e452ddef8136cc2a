"""Memory of kernels: reused buffers, NumPy views, and outputs that are written in place."""

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

SMALL_SAMPLE = 1 << 14  # bytes; copies of smaller samples take less time than calls
_KEPT = 1 << 22  # elements; a thread doesn't reuse larger buffers
_LARGE = 30 << 20  # bytes; glibc raises the limit (see `keep_freed_memory`) only for blocks of up to 32 MB
_LINE, _SHIFT = 64, 16  # bytes: size of a cache line, and offset of a plane from the line's start


class _Planes(threading.local):
    """A thread's reused planes; see `byte_planes`."""

    def __init__(self) -> None:
        self.shape: tuple[int, int, int] | None = None
        self.planes: list[Bytes] = []


_memory = _Planes()


@functools.cache
def keep_freed_memory() -> None:
    """Make this process reuse freed memory for its next allocations instead of returning it to the system.

    Operators process a batch in chunks of several samples, and free their intermediate results after each chunk. By
    default, glibc returns freed memory to the system above a limit of some hundred kilobytes, and the system clears
    each page again for the next chunk. glibc raises the limit permanently when the first large block is freed (see
    `M_MMAP_THRESHOLD` in mallopt(3)), so this function allocates and frees a large block. The block is never written
    and thus occupies no physical memory.
    """
    np.empty(_LARGE, np.uint8)


def byte_planes(channels: int, height: int, width: int) -> list[Bytes]:
    """Return memory for planes ``(H, W)``, into which OpenCV splits an image's channels.

    The planes are valid until the same thread calls this function again. They are deliberately not aligned for vector
    instructions: OpenCV writes aligned planes to main memory instead of the cache, and the next step would take three
    times as long to read them.
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

# PyTorch releases the GIL to create a view. This takes one microsecond, or ten if another thread waits for the GIL.
# NumPy holds the GIL and takes half a microsecond.


def narrow(x: Tensor, parts: dict[int, tuple[int, int]]) -> Tensor:
    """Return a view of a part of a tensor.

    Args:
        parts: Start and extent of the part, by axis; axes without an entry aren't narrowed.
    """
    if x.dtype != torch.uint8 or not is_plain(x):
        for axis, (start, extent) in parts.items():
            x = x.narrow(axis, start, extent)
        return x
    part = [slice(None)] * x.ndim
    for axis, (start, extent) in parts.items():
        part[axis] = slice(start, start + extent)
    return torch.from_numpy(x.numpy()[tuple(part)])


# The checks below are called several times per sample, so they look up these functions once and don't call each other.
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
"""Function of shape and dtype that returns memory for a batch. The memory is reused after the user released it."""


class DeviceShare(Protocol):
    """The share of a batch's images that a decoder on the device decodes."""

    @property
    def takes(self) -> bool:
        """True while the device's decoder accepts images; if False, the CPU should decode all images."""

    def reserve(self, size: int) -> int:
        """Reserve `size` bytes for copies of files, and return their address."""

    def add(self, files: Array, parts: Array, count: int) -> int:
        """Add `count` copied files to the share, and return the index of the first added file."""

    def keep(self, data: Tensor) -> Tensor:
        """Add the bytes of one file to the share, and return the tensor that `data_of` returns for it."""

    def data_of(self, index: int) -> Tensor:
        """Return the bytes of a file; the same tensor on each call."""

    def count_examined(self, count: int) -> None:
        """Record that `count` more images of the batch were examined; after the last image, no file is added."""


class Room(Protocol):
    """A buffer to which several threads write results of any shapes, and from which the results are copied.

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
"""Placeholder for a result that was written to the caller's memory; creating a tensor would take too long."""


class Placed(NamedTuple):
    """A result in a `Room`: its offset in elements, and its shape."""

    place: int
    shape: tuple[int, ...]


class ChunkImages(Sequence[Any]):
    """The images of a chunk: a `Placed` for each decoded image, and the file's bytes for each image of a `DeviceShare`.

    Attributes:
        parts: ``(N,)`` of the dtype `kernels.native.PARTS`: each decoded image's position in the `Room`, and each other
            image's index in the share.
        place: Offset in the room that is added to all positions.
        first: Index in the share that is added to all indices.
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
    """Return newly allocated memory: an `Empty` that reuses nothing."""
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
    """Return whether NumPy can read a tensor without a copy."""
    return is_plain(x) and x.dtype not in (torch.bfloat16, torch.complex32)


def inside(
    arrays: Array, axes: Sequence[int], starts: Sequence[Sequence[int]], extents: Sequence[int]
) -> Array | list[Array] | None:
    """Return equally large windows of several arrays.

    Args:
        arrays: ``(N, ...)``.
        axes: The axes of an array that are cut.
        starts: For each array, the start of its window on each axis; a single item applies to all arrays.
        extents: Extent of the windows, one number per axis.

    Returns:
        A view ``(N, ...)``; or a list of views if each array has its own start; None if a window reaches outside its
        array.
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
