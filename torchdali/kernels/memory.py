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
    "IN_PLACE", "SMALL_SAMPLE", "Allocator", "Array", "BufferedResult", "Bytes", "ChunkImages", "DeviceShare", "Floats",
    "SharedBuffer", "allocate", "byte_planes", "copy_to_out", "copy_windows", "cut_windows", "in_transform", "is_array",
    "is_plain", "is_traced", "keep_freed_memory", "narrow", "prepare_out",
]  # fmt: skip

# ---------------------------------------------------------------- reused buffers

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
Array = npt.NDArray[Any]

SMALL_SAMPLE = 1 << 14  # in bytes; copying a smaller sample takes less time than a function call
_MAX_REUSED = 1 << 22  # in elements; a thread doesn't reuse larger buffers
_LARGE = 30 << 20  # in bytes; glibc ignores blocks of more than 32 MB, see `keep_freed_memory`
_LINE, _SHIFT = 64, 16  # size of a cache line, and offset of a plane from the start of a cache line, in bytes


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
    default, glibc returns a freed block to the system if the block's size exceeds a limit of some hundred kilobytes.
    The system then clears each page of the memory that the next chunk allocates, which takes time. glibc raises the
    limit permanently when the first large block is freed (see `M_MMAP_THRESHOLD` in mallopt(3)), so this function
    allocates and frees a large block. Nothing is written to the block, so it occupies no physical memory.
    """
    np.empty(_LARGE, np.uint8)


def byte_planes(channels: int, height: int, width: int) -> list[Bytes]:
    """Return memory for planes ``(H, W)``, into which OpenCV splits an image's channels.

    The planes are valid until the same thread calls this function again. The planes are deliberately not aligned for
    vector instructions, because OpenCV writes aligned planes to main memory instead of the cache. Reading aligned
    planes takes three times as long.
    """
    shape = channels, height, width
    if shape != _memory.shape:
        count = height * width
        pitch = count // _LINE * _LINE + _LINE + _SHIFT
        memory = np.empty(channels * pitch + _LINE, np.uint8)
        first = -memory.ctypes.data % _LINE + _SHIFT
        starts = range(first, first + channels * pitch, pitch)
        planes = [memory[start : start + count].reshape(height, width) for start in starts]
        if len(memory) > _MAX_REUSED:
            return planes
        _memory.shape, _memory.planes = shape, planes
    return _memory.planes


# ---------------------------------------------------------------- views

# PyTorch releases the GIL to create a view. This takes one microsecond, or ten if another thread waits for the GIL.
# NumPy holds the GIL and takes half a microsecond.


def narrow(x: Tensor, parts: dict[int, tuple[int, int]]) -> Tensor:
    """Return a view of a part of a tensor.

    Args:
        parts: Maps an axis to the start and the extent of the part. Axes that aren't in this dictionary are kept.
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
    """Return True inside a compiled graph or a transform such as `vmap`, where only torch operations are allowed."""
    return _is_compiling() or _transform() is not None


def is_plain(x: Tensor) -> bool:
    """Return whether a tensor is on the CPU, needs no gradient, and isn't part of a compiled graph or a transform."""
    return x.is_cpu and not x.requires_grad and not (_is_compiling() or _transform() is not None)


# ---------------------------------------------------------------- outputs

Allocator = Callable[[tuple[int, ...], torch.dtype], Tensor]
"""Function of shape and dtype that returns memory for a batch. When the user has released the batch, the memory can be
returned again for another batch."""


class DeviceShare(Protocol):
    """The share of a batch's images that a decoder on the device decodes."""

    @property
    def is_accepting(self) -> bool:
        """True while the device's decoder accepts images. If False, the CPU should decode all images."""

    def reserve(self, size: int) -> int:
        """Reserve `size` bytes for copies of files, and return the address of these bytes."""

    def add(self, files: Array, parts: Array, count: int) -> int:
        """Add `count` copied files to the share, and return the index of the first added file."""

    def add_file(self, data: Tensor) -> Tensor:
        """Add the bytes of one file to the share, and return the tensor that `file_data` returns for this file."""

    def file_data(self, index: int) -> Tensor:
        """Return the bytes of a file of the share, as the same tensor on each call."""

    def count_examined(self, count: int) -> None:
        """Record that callers decided for `count` more images of the batch whether to add them to the share."""


class SharedBuffer(Protocol):
    """A buffer to which several threads write results of any shapes. The results are later copied from this buffer.

    Attributes:
        share: The images that a decoder on the device decodes; None if the CPU decodes all images.
    """

    share: DeviceShare | None

    @property
    def address(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    def reserve(self, count: int) -> int:
        """Reserve `count` elements and return their offset, or -1 if they do not fit."""


IN_PLACE = object()
"""Returned instead of a tensor if the result was written to the caller's memory. Creating a tensor takes longer."""


class BufferedResult(NamedTuple):
    """A result in a `SharedBuffer`: its offset in elements, and its shape."""

    offset: int
    shape: tuple[int, ...]


class ChunkImages(Sequence[Any]):
    """The images of a chunk (some samples of a batch), which the CPU has decoded or the device is going to decode.

    The item for an image that the CPU decoded is a `BufferedResult`. For an image of a `DeviceShare`, the item is a
    tensor with the file's bytes.

    Attributes:
        parts: ``(N,)`` of the dtype `kernels.native.PARTS`: an image's position in the `SharedBuffer` if the CPU
            decoded the image, else its index in the share.
        start: Offset in the `SharedBuffer` that is added to all positions.
        first: Index in the share that is added to all indices.
    """

    __slots__ = ("_share", "first", "parts", "start")

    def __init__(self, parts: Array, start: int, first: int, share: DeviceShare | None) -> None:
        self.parts, self.start, self.first, self._share = parts, start, first, share

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, i: Any) -> Any:
        _, shape, offset, index = self.parts[i].item()
        if index >= 0 and self._share is not None:
            return self._share.file_data(self.first + index)
        return BufferedResult(self.start + offset, tuple(shape.tolist()))


def allocate(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Return newly allocated memory. This function is an `Allocator` that never reuses memory."""
    return torch.empty(shape, dtype=dtype)


def prepare_out(out: Tensor | None, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return `out` if it is contiguous and has the result's shape and dtype, otherwise an uninitialized tensor."""
    if out is not None and out.shape == shape and out.dtype == dtype and out.is_contiguous():
        return out
    return torch.empty(tuple(shape), dtype=dtype, device=device)


def copy_to_out(x: Tensor, out: Tensor | None) -> Tensor:
    """Copy a result to `out`, and return `out`.

    If `out` has another shape or dtype, or the result needs a gradient, return the result itself.
    """
    if out is None or out.shape != x.shape or out.dtype != x.dtype or x.requires_grad:
        return x
    return out.copy_(x)


# ---------------------------------------------------------------- windows of several arrays


def is_array(x: Tensor) -> bool:
    """Return whether NumPy can read a tensor without a copy."""
    return is_plain(x) and x.dtype not in (torch.bfloat16, torch.complex32)


def cut_windows(
    arrays: Array, axes: Sequence[int], starts: Sequence[Sequence[int]], extents: Sequence[int]
) -> Array | list[Array] | None:
    """Return one window of each of several arrays. All windows have the same extents.

    Args:
        arrays: ``(N, ...)``.
        axes: The axes of an array that are cut.
        starts: For each array, the start of its window on each axis. If there is a single item, the item applies to all
            arrays.
        extents: Extent of the windows, one number per axis.

    Returns:
        A view ``(N, ...)`` if `starts` has a single item, else a list of views. None if a window reaches outside its
        array.
    """
    shape = arrays.shape[1:]
    for axis, extent, axis_starts in zip(axes, extents, zip(*starts, strict=True), strict=True):
        if extent < 0 or min(axis_starts) < 0 or max(axis_starts) + extent > shape[axis]:
            return None
    if len(starts) == 1:
        part = _window_slices(axes, starts[0], extents, len(shape))
        windows: Array = arrays[(slice(None), *part)]
        return windows
    if sorted(axes) == [0, 1]:
        i, j = axes.index(0), axes.index(1)
        h, w = extents[i], extents[j]
        pairs = zip(arrays, starts, strict=True)
        return [array[start[i] : start[i] + h, start[j] : start[j] + w] for array, start in pairs]
    parts = [_window_slices(axes, start, extents, len(shape)) for start in starts]
    return [array[part] for array, part in zip(arrays, parts, strict=True)]


def _window_slices(axes: Sequence[int], starts: Sequence[int], extents: Sequence[int], ndim: int) -> tuple[slice, ...]:
    part = [slice(None)] * ndim
    for axis, start, extent in zip(axes, starts, extents, strict=True):
        part[axis] = slice(start, start + extent)
    return tuple(part)


def copy_windows(windows: Array | list[Array], dtype: torch.dtype, out: Tensor | None) -> Tensor:
    """Copy windows of equal shape to one tensor: `out` if it fits, else a new tensor."""
    shape = (len(windows), *windows[0].shape)
    tensor = prepare_out(out, shape, dtype, torch.device("cpu"))
    result = tensor.numpy()
    if isinstance(windows, np.ndarray):
        result[...] = windows
    else:
        for target, window in zip(result, windows, strict=True):
            target[...] = window
    return tensor
