"""Functions for image operators that process whole batches on an accelerator."""

from __future__ import annotations

import functools
from collections.abc import Sequence
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
from torchdali.tensors._storage import PackedSamples

__all__ = [
    "Images",
    "batch_of",
    "cut_out",
    "images_of",
    "int32_on_device",
    "span_of",
    "spans_of",
]

Window = tuple[Sequence[int], Sequence[int], Sequence[int]]
"""Axes, starts and extents of a window."""


class Images(NamedTuple):
    """The images ``(H, W, C)`` of a batch, as arguments for kernels.

    Attributes:
        flat: Elements of all images.
        offsets: Index of each image's first element.
        sides: Heights and widths ``(2, N)``.
        channels: Number of channels, the same for all images.
        uniform: True if the images are one dense tensor.
    """

    flat: Tensor
    offsets: Array
    sides: Array
    channels: int
    uniform: bool


def images_of(batch: TensorList, layout: str, floats: bool = False) -> Images | None:
    """Return the images of a batch; None if the kernels don't support the layout, dtype or device.

    Args:
        floats: True to also accept float32 images.
    """
    fits = batch.torch_dtype == torch.uint8 or (floats and batch.torch_dtype == torch.float32)
    if layout != "HWC" or not fits or not has_kernels(batch.device):
        return None
    stored, dense = batch.current_storage(), batch.dense()
    if dense is not None:
        offsets, sides = (
            _dense_offsets_and_sides(tuple(dense.shape)) if dense.ndim == 4 and dense.numel() else (None, None)
        )
        if offsets is None or sides is None:
            return None
        return Images(dense.reshape(-1), offsets, sides, dense.shape[3], True)
    if batch.ndim() != 3:
        return None
    heights, widths, channels = zip(*batch.shape(), strict=True)
    if channels.count(channels[0]) < len(channels) or not channels[0] or 0 in heights or 0 in widths:
        return None
    sides = np.array((heights, widths), np.int64)
    if isinstance(stored, PackedSamples):
        flat, offsets = stored.flat, np.array(stored.offsets, np.int64)
    else:
        flat = torch.cat([s.reshape(-1) for s in batch.samples()])
        sizes = sides[0] * sides[1] * channels[0]
        offsets = sizes.cumsum() - sizes
    return Images(flat, offsets, sides, channels[0], False)


@functools.lru_cache(maxsize=64)
def _dense_offsets_and_sides(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the offsets and the sides of the images of a batch ``(N, H, W, C)``. The arrays are read-only."""
    count, height, width, channels = shape
    offsets = np.arange(count, dtype=np.int64) * (height * width * channels)
    sides = np.array([[height], [width]], np.int64).repeat(count, 1)
    for array in (offsets, sides):
        array.setflags(write=False)
    return offsets, sides


def batch_of(flat: Tensor, sides: Array, channels: int) -> Tensor | TensorList:
    """Build a batch of consecutive images: one tensor if all images have the same size, else a `TensorList`.

    Args:
        flat: Elements of all images ``(H, W, C)``.
        sides: Heights and widths ``(2, N)``; ``(2, 1)`` if all images have the same size.
    """
    if sides.shape[1] == 1 or (sides == sides[:, :1]).all():
        return flat.view(-1, int(sides[0, 0]), int(sides[1, 0]), channels)
    counts = sides.prod(0) * channels
    shapes: list[tuple[int, ...]] = [(h, w, channels) for h, w in sides.T.tolist()]
    return TensorList.from_packed(flat, (np.cumsum(counts) - counts).tolist(), shapes, "HWC")


def spans_of(sides: Sequence[Sequence[int]], windows: Sequence[Window]) -> tuple[Array, Array] | None:
    """Return the starts and extents of windows, ``(2, N)`` each; None if a window selects channels.

    Args:
        sides: Height and width of each image.
        windows: One window per image.
    """
    spans = list(map(span_of, sides, windows))
    if None in spans:
        return None
    starts, sizes = np.array(spans, np.int64).transpose(1, 2, 0)
    return starts, sizes


def span_of(sides: Sequence[int], window: Window) -> tuple[list[int], list[int]] | None:
    """Return the start and the extent of a window, as y and x; None if the window selects channels."""
    start, size = [0, 0], list(sides)
    for axis, position, extent in zip(*window, strict=True):
        if axis > 1:
            return None
        start[axis], size[axis] = position, extent
    return start, size


def cut_out(images: Images, spans: tuple[Array, Array], policy: str, fill: Sequence[float]) -> Any:
    """Cut windows out of images.

    Return NotImplemented if the images must be processed one by one: if a window reaches outside of its image and the
    policy isn't "pad", if a window is empty, or if there are several fill values.

    Args:
        spans: Starts and extents of the windows; see `spans_of`.
        policy: Policy for windows that reach outside of the image; see `kernels.window.resolve_policy`.
        fill: Fill values for the policy "pad".
    """
    starts, sizes = spans
    outside = ((starts < 0) | (starts + sizes > images.sides)).any()
    if (outside and policy != "pad") or (sizes <= 0).any() or len(fill) > 1:
        return NotImplemented
    check_pixels(sizes[:, sizes.prod(0).argmax()].tolist(), "the window")
    value = fill_number(fill[0], images.flat.dtype) if fill else 0
    flat = copy_windows(images.flat, images.offsets, images.sides, images.channels, starts, sizes, value)
    return batch_of(flat, sizes, images.channels)


def int32_on_device(value: Any, size: int, device: torch.device) -> Tensor:
    """Return the values of an argument as an int32 tensor on a device, one value per sample."""
    if isinstance(value, Column):
        uploaded = value.uploaded
        if uploaded is not None:
            uploaded = uploaded if uploaded.dim() == 1 else uploaded.reshape(-1)
            return uploaded if uploaded.dtype == torch.int32 else uploaded.to(torch.int32)
        return upload(np.asarray(value.rows(np.int32)).reshape(-1), device)
    return torch.full((size,), int(value), dtype=torch.int32, device=device)
