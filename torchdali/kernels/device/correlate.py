"""Correlate a batch of images of any sizes with a window each, on an accelerator, in one launch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import table, upload
from torchdali.kernels.filters.linear import BORDERS, correlate
from torchdali.kernels.memory import Array

__all__ = ["COLUMNS", "correlate_batch"]

COLUMNS = ("offset", "height", "width", "result")
"""Of the table: where an image starts, in elements, its extents, and where the result goes."""


def correlate_batch(
    flat: Tensor,
    offsets: Array,
    sides: Array,
    channels: int,
    windows: Tensor,
    anchor: tuple[int, int],
    border: str,
    dtype: torch.dtype,
) -> Tensor:
    """Correlate images, as `correlate` does.

    Args:
        flat: uint8 or float32, the elements of all images, on a device.
        offsets: Where each image starts.
        sides: ``(2, N)``: heights and widths.
        channels: Of all images.
        windows: ``(N, h, w)`` float32, on the device.
        anchor: Element of the windows that lies on the pixel, y and x.
        border: One of `BORDERS`; what is constant is 0.
        dtype: Of the results: float32, or uint8, halves rounded to the even number, saturated.

    Returns:
        The elements of all results, one after the other.
    """
    counts = sides.prod(0) * channels
    rows = upload(table([offsets, *sides, np.cumsum(counts) - counts]), flat.device)
    made: Tensor = torch.ops.torchdali.correlate_batch(
        flat, rows, windows.contiguous(), int(counts.sum()), int(counts.max()), channels, *anchor,
        BORDERS.index(border), dtype == torch.uint8,
    )  # fmt: skip
    return made


@define("correlate")
def correlate_in_torch(
    flat: Tensor, samples: Tensor, windows: Tensor, results: int, largest: int, channels: int, y: int, x: int,
    border: int, as_bytes: bool,
) -> Tensor:  # fmt: skip
    """Do `correlate_batch` on the CPU."""
    out = torch.empty(results, dtype=torch.uint8 if as_bytes else torch.float32)
    for (start, h, w, result), window in zip(samples.tolist(), windows, strict=True):
        image = flat[start : start + h * w * channels].view(h, w, channels)
        made = correlate(image, (0, 1), window, (y, x), BORDERS[border], 0.0, True, out.dtype)
        out[result : result + made.numel()].view(made.shape).copy_(made)
    return out
