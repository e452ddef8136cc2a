"""Correlate both axes of a batch of images of any sizes with windows, on an accelerator, in two launches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import bits, floats, table, upload
from torchdali.kernels.filters.linear import slide
from torchdali.kernels.memory import Array

__all__ = ["COLUMNS", "filter_batch"]

COLUMNS = ("offset", "height", "width", "result", "taps_y", "weights_y", "taps_x", "weights_x")
"""Of the table: where an image starts, in elements, its extents, where the result goes, and for each axis the length of
its window and where its weights are: behind the rows of all samples, as bits."""

Windows = Sequence[tuple[Sequence[float], Sequence[float]]]


def filter_batch(
    flat: Tensor, offsets: Array, sides: Array, channels: int, windows: Windows, dtype: torch.dtype
) -> Tensor:
    """Correlate rows and columns of images, whose borders are reflected without repeating the edge.

    Args:
        flat: uint8 or float32, the elements of all images, on a device.
        offsets: Where each image starts.
        sides: ``(2, N)``: heights and widths.
        channels: Of all images.
        windows: Of each image, for y and x: weights, odd in number, centred on the pixel.
        dtype: Of the results: float32, or uint8, rounded half up, and saturated.

    Returns:
        The elements of all results, one after the other.
    """
    counts = sides.prod(0) * channels
    places: dict[tuple[float, ...], int] = {}
    behind: list[float] = []
    found = np.empty((4, len(windows)), np.int64)
    start = len(windows) * len(COLUMNS)
    for i, pair in enumerate(windows):
        for axis, window in enumerate(pair):
            key = tuple(window)
            if key not in places:
                places[key] = start + len(behind)
                behind += key
            found[2 * axis : 2 * axis + 2, i] = len(key), places[key]
    rows = table([offsets, *sides, np.cumsum(counts) - counts, *found])
    block = np.concatenate((rows.reshape(-1), bits(np.array(behind, np.float32))))
    made: Tensor = torch.ops.torchdali.filter_batch(
        flat, upload(block, flat.device), len(windows), int(counts.sum()), int(counts.max()), channels,
        dtype == torch.uint8,
    )  # fmt: skip
    return made


@define("filter")
def filter_in_torch(
    flat: Tensor, block: Tensor, count: int, results: int, largest: int, channels: int, as_bytes: bool
) -> Tensor:  # fmt: skip
    """Do `filter_batch` on the CPU."""
    out = torch.empty(results, dtype=torch.uint8 if as_bytes else torch.float32)
    numbers = block.numpy()
    for row in numbers[: count * len(COLUMNS)].reshape(count, -1):
        start, h, w, result, *places = row.tolist()
        made = flat[start : start + h * w * channels].view(h, w, channels).float()
        for axis, (taps, place) in enumerate((places[:2], places[2:])):
            made = slide(made, axis, floats(numbers[place : place + taps]).tolist())
        place_of = out[result : result + h * w * channels].view(h, w, channels)
        place_of.copy_((made + 0.5).clamp_(0.0, 255.0) if as_bytes else made)
    return out
