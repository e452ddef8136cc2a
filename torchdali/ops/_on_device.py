"""Common parts of operators on images that work on whole batches on an accelerator."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchdali.declaration.schema import Column
from torchdali.kernels.device.tables import has_kernels, upload
from torchdali.kernels.device.window import copy_windows
from torchdali.kernels.limits import check_pixels
from torchdali.kernels.memory import Array
from torchdali.kernels.window import fill_number
from torchdali.tensors import TensorList
from torchdali.tensors._storage import Packed

__all__ = [
    "Images",
    "batch_of",
    "cut_out",
    "each_element",
    "each_pixel",
    "elements_of",
    "floats_of",
    "images_of",
    "in_turn",
    "on_their_device",
    "span_of",
    "spans_of",
]

Window = tuple[Sequence[int], Sequence[int], Sequence[int]]
"""Axes, starts and extents."""


class Images(NamedTuple):
    """Images ``(H, W, C)`` of a batch, as kernels take them.

    Attributes:
        flat: All elements.
        offsets: Where each image starts, in elements.
        sides: ``(2, N)``: heights and widths.
        channels: Of all of them.
        uniform: They are one dense tensor.
    """

    flat: Tensor
    offsets: Array
    sides: Array
    channels: int
    uniform: bool


def images_of(batch: TensorList, layout: str, floats: bool = False) -> Images | None:
    """Return the images of a batch; None where these are not ``HWC``, or there are no kernels.

    Args:
        floats: Images of float32 will do, not only those of bytes.
    """
    taken = batch.torch_dtype == torch.uint8 or (floats and batch.torch_dtype == torch.float32)
    if layout != "HWC" or not taken or not has_kernels(batch.device):
        return None
    stored, dense = batch.stored(), batch.dense()
    if dense is not None:
        offsets, sides = _alike(tuple(dense.shape)) if dense.ndim == 4 and dense.numel() else (None, None)
        if offsets is None or sides is None:
            return None
        return Images(dense.reshape(-1), offsets, sides, dense.shape[3], True)
    if batch.ndim() != 3:
        return None
    heights, widths, channels = zip(*batch.shape(), strict=True)
    if channels.count(channels[0]) < len(channels) or not channels[0] or 0 in heights or 0 in widths:
        return None
    sides = np.array((heights, widths), np.int64)
    if isinstance(stored, Packed):
        flat, offsets = stored.flat, np.array(stored.offsets, np.int64)
    else:
        flat = torch.cat([s.reshape(-1) for s in batch.samples()])
        sizes = sides[0] * sides[1] * channels[0]
        offsets = sizes.cumsum() - sizes
    return Images(flat, offsets, sides, channels[0], False)


def floats_of(batch: TensorList) -> tuple[Tensor, Array, list[tuple[int, ...]]] | None:
    """Return what `elements_of` does, of float32 samples; None for samples of other types."""
    return elements_of(batch) if batch.torch_dtype == torch.float32 else None


def elements_of(batch: TensorList) -> tuple[Tensor, Array, list[tuple[int, ...]]] | None:
    """Return the elements of samples, where each starts, and their shapes; None where there are no kernels."""
    if not has_kernels(batch.device):
        return None
    stored, shapes = batch.stored(), batch.shape()
    if isinstance(stored, Packed):
        return stored.flat, np.array(stored.offsets, np.int64), shapes
    sizes = np.array(list(map(math.prod, shapes)), np.int64)
    return stored.packed()[1], sizes.cumsum() - sizes, shapes


def in_turn(flat: Tensor, shapes: list[tuple[int, ...]], layout: str) -> Tensor | TensorList:
    """Return samples that lie one after the other, as one tensor if all have the same shape."""
    if all(shape == shapes[0] for shape in shapes):
        return flat.view(-1, *shapes[0])
    sizes = np.array(list(map(math.prod, shapes)), np.int64)
    return TensorList.from_packed(flat, (sizes.cumsum() - sizes).tolist(), shapes, layout)


@functools.lru_cache(maxsize=64)
def _alike(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return where images of one size start in a batch ``(N, H, W, C)``, and their sides; not to be changed."""
    count, height, width, channels = shape
    offsets = np.arange(count, dtype=np.int64) * (height * width * channels)
    sides = np.array([[height], [width]], np.int64).repeat(count, 1)
    for each in (offsets, sides):
        each.setflags(write=False)
    return offsets, sides


def batch_of(flat: Tensor, sides: Array, channels: int) -> Tensor | TensorList:
    """Return images ``(H, W, C)`` that lie one after the other, as one tensor if all have the same sides.

    Args:
        flat: Their elements.
        sides: ``(2, N)``: heights and widths; ``(2, 1)`` where they are the same.
        channels: Of all images.
    """
    if sides.shape[1] == 1 or (sides == sides[:, :1]).all():
        return flat.view(-1, int(sides[0, 0]), int(sides[1, 0]), channels)
    counts = sides.prod(0) * channels
    shapes: list[tuple[int, ...]] = [(h, w, channels) for h, w in sides.T.tolist()]
    return TensorList.from_packed(flat, (np.cumsum(counts) - counts).tolist(), shapes, "HWC")


def each_element(batch: TensorList, function: Callable[[Tensor], Tensor]) -> Any:
    """Apply a function of single elements to samples of any shapes."""
    stored, layout = batch.stored(), batch.layout()
    if isinstance(stored, Packed):
        made = function(stored.flat)
        return TensorList.from_packed(made, list(stored.offsets), stored.shape(), layout)
    if batch.dense() is not None:
        return NotImplemented
    return in_turn(function(stored.packed()[1]), stored.shape(), layout)


def each_pixel(batch: TensorList, channels: int, function: Callable[[Tensor], Tensor]) -> Any:
    """Apply a function of pixels ``(1, n, channels)`` to images of any sizes that lie in one piece of memory.

    NotImplemented where they do not, or where an image has another number of channels.
    """
    stored = batch.stored()
    if not isinstance(stored, Packed) or not has_kernels(batch.device):
        return NotImplemented
    if any(shape[-1] != channels for shape in stored.shape()):
        return NotImplemented
    pixels = stored.flat.numel() // channels
    if any(offset % channels for offset in stored.offsets):
        return NotImplemented
    made = function(stored.flat[: pixels * channels].view(1, pixels, channels))
    count = made.shape[-1]
    offsets = [offset // channels * count for offset in stored.offsets]
    shapes = [(*shape[:-1], count) for shape in stored.shape()]
    return TensorList.from_packed(made.view(-1), offsets, shapes, batch.layout())


def spans_of(sides: Sequence[Sequence[int]], windows: Sequence[Window]) -> tuple[Array, Array] | None:
    """Return starts and extents of windows, ``(2, N)``, of images of such sides; None for windows of channels."""
    found = list(map(span_of, sides, windows))
    if None in found:
        return None
    starts, sizes = np.array(found, np.int64).transpose(1, 2, 0)
    return starts, sizes


def span_of(sides: Sequence[int], window: Window) -> tuple[list[int], list[int]] | None:
    """Return where a window of an image starts and its extents, of y and x; None for a window of channels."""
    start, size = [0, 0], list(sides)
    for axis, place, extent in zip(*window, strict=True):
        if axis > 1:
            return None
        start[axis], size[axis] = place, extent
    return start, size


def cut_out(images: Images, spans: tuple[Array, Array], policy: str, fill: Sequence[float]) -> Any:
    """Cut windows out; NotImplemented for those that the way sample by sample refuses, or continues."""
    starts, sizes = spans
    outside = ((starts < 0) | (starts + sizes > images.sides)).any()
    if (outside and policy != "pad") or (sizes <= 0).any() or len(fill) > 1:
        return NotImplemented
    check_pixels(sizes[:, sizes.prod(0).argmax()].tolist(), "the window")
    value = fill_number(fill[0], images.flat.dtype) if fill else 0
    flat = copy_windows(images.flat, images.offsets, images.sides, images.channels, starts, sizes, 0, value)
    return batch_of(flat, sizes, images.channels)


def on_their_device(value: Any, size: int, device: torch.device) -> Tensor:
    """Return the numbers of an argument, one a sample, as int32 on a device."""
    if isinstance(value, Column):
        there = value.uploaded
        if there is not None:
            there = there if there.dim() == 1 else there.reshape(-1)
            return there if there.dtype == torch.int32 else there.to(torch.int32)
        return upload(np.asarray(value.rows(np.int32)).reshape(-1), device)
    return torch.full((size,), int(value), dtype=torch.int32, device=device)
