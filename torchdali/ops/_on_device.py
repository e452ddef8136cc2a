"""Common parts of operators on images that work on whole batches on an accelerator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.device.tables import has_kernels, upload
from torchdali.kernels.device.window import copy_windows
from torchdali.kernels.limits import check_pixels
from torchdali.kernels.window import fill_number
from torchdali.schema import Column
from torchdali.tensors import TensorList
from torchdali.tensors._storage import Packed

__all__ = [
    "Images",
    "batch_of",
    "cut_out",
    "each_element",
    "images_of",
    "on_their_device",
    "spans_of",
]

Array = npt.NDArray[Any]
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


def images_of(batch: TensorList, layout: str) -> Images | None:
    """Return the images of a batch; None where these are no bytes ``HWC``, or there are no kernels."""
    if layout != "HWC" or batch.torch_dtype != torch.uint8 or not has_kernels(batch.device):
        return None
    stored, dense = batch.stored(), batch.dense()
    known = batch.shape() if dense is None else [tuple(dense.shape[1:])]
    shapes = np.array(known, np.int64).repeat(1 if dense is None else len(dense), 0)
    if (
        shapes.ndim != 2
        or shapes.shape[1] != 3
        or not shapes.all()
        or (shapes[:, 2] != shapes[0, 2]).any()
    ):
        return None
    sizes = shapes.prod(1)
    if isinstance(stored, Packed):
        flat, offsets = stored.flat, np.array(stored.offsets, np.int64)
    else:
        samples = batch.samples() if dense is None else []
        flat = torch.cat([s.reshape(-1) for s in samples]) if dense is None else dense.reshape(-1)
        offsets = np.cumsum(sizes) - sizes
    sides = np.ascontiguousarray(shapes[:, :2].T)
    return Images(flat, offsets, sides, int(shapes[0, 2]), dense is not None)


def batch_of(flat: Tensor, sides: Array, channels: int) -> Tensor | TensorList:
    """Return images ``(H, W, C)`` that lie one after the other, as one tensor if all have the same sides."""
    if (sides == sides[:, :1]).all():
        return flat.view(-1, int(sides[0, 0]), int(sides[1, 0]), channels)
    counts = sides.prod(0) * channels
    shapes: list[tuple[int, ...]] = [(h, w, channels) for h, w in sides.T.tolist()]
    return TensorList.from_packed(flat, (np.cumsum(counts) - counts).tolist(), shapes, "HWC")


def each_element(batch: TensorList, function: Callable[[Tensor], Tensor]) -> Any:
    """Apply a function of single elements to samples of any shapes that lie in one piece of memory."""
    stored = batch.stored()
    if not isinstance(stored, Packed):
        return NotImplemented
    return TensorList.from_packed(
        function(stored.flat), list(stored.offsets), stored.shape(), batch.layout()
    )


def spans_of(
    sides: Sequence[Sequence[int]], windows: Sequence[Window]
) -> tuple[Array, Array] | None:
    """Return starts and extents of windows, ``(2, N)``, of images of such sides; None for windows of channels."""
    starts, sizes = [[0, 0] for _ in sides], [list(each) for each in sides]
    for start, size, (axes, places, extents) in zip(starts, sizes, windows, strict=True):
        for axis, place, extent in zip(axes, places, extents, strict=True):
            if axis > 1:
                return None
            start[axis], size[axis] = place, extent
    return np.array(starts, np.int64).T, np.array(sizes, np.int64).T


def cut_out(images: Images, spans: tuple[Array, Array], policy: str, fill: Sequence[float]) -> Any:
    """Cut windows out; NotImplemented for those that the way sample by sample refuses, or continues."""
    starts, sizes = spans
    outside = ((starts < 0) | (starts + sizes > images.sides)).any()
    if (outside and policy != "pad") or (sizes <= 0).any() or len(fill) > 1:
        return NotImplemented
    check_pixels(sizes[:, sizes.prod(0).argmax()].tolist(), "the window")
    value = int(fill_number(fill[0], torch.uint8)) if fill else 0
    flat = copy_windows(
        images.flat, images.offsets, images.sides, images.channels, starts, sizes, 0, value
    )
    return batch_of(flat, sizes, images.channels)


def on_their_device(value: Any, size: int, device: torch.device) -> Tensor:
    """Return the numbers of an argument, one a sample, as int32 on a device."""
    if isinstance(value, Column):
        if value.uploaded is not None:
            return value.uploaded.reshape(-1).to(torch.int32)
        return upload(np.asarray(value.rows(np.int32)).reshape(-1), device)
    return torch.full((size,), int(value), dtype=torch.int32, device=device)
