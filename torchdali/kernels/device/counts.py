"""Count the values of a batch of images of any sizes, and map them, on an accelerator, in one launch each."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import table, upload
from torchdali.kernels.memory import Array

__all__ = ["COLUMNS", "count_values", "map_values"]

COLUMNS = ("offset", "pixels", "result")
"""Of the table: where an image starts, in elements, its pixels, and where the result goes."""


def count_values(flat: Tensor, offsets: Array, pixels: Array, channels: int) -> tuple[Tensor, Tensor]:
    """Return the histograms of all channels, ``(N, channels, 256)`` int32, and the table for `map_values`.

    Args:
        flat: uint8, the elements of all images, on a device.
        offsets: Where each image starts.
        pixels: Of each image.
        channels: Of all images.
    """
    rows = table([offsets, pixels, (np.cumsum(pixels) - pixels) * channels])
    there = upload(rows, flat.device)
    made: Tensor = torch.ops.torchdali.count_values_batch(flat, there, int(pixels.max()), channels)
    return made, there


def map_values(flat: Tensor, samples: Tensor, tables: Tensor, pixels: Array) -> Tensor:
    """Look the values of images up.

    Args:
        flat: As above.
        samples: The table that `count_values` returned.
        tables: ``(N, channels, 256)`` uint8: what comes in the place of each value.
        pixels: Of each image.

    Returns:
        The elements of all results, one after the other.
    """
    channels = tables.shape[1]
    made: Tensor = torch.ops.torchdali.map_values_batch(
        flat,
        samples,
        tables.contiguous(),
        int(pixels.sum()) * channels,
        int(pixels.max()),
        channels,
    )
    return made


@define("count_values")
def count_in_torch(flat: Tensor, samples: Tensor, longest: int, channels: int) -> Tensor:
    """Do `count_values` on the CPU."""
    out = torch.empty((len(samples), channels, 256), dtype=torch.int32)
    for found, (start, pixels, _) in zip(out, samples.tolist(), strict=True):
        values = flat[start : start + pixels * channels].view(pixels, channels)
        for channel in range(channels):
            found[channel] = torch.bincount(values[:, channel], minlength=256)
    return out


@define("map_values")
def map_in_torch(flat: Tensor, samples: Tensor, tables: Tensor, results: int, longest: int, channels: int) -> Tensor:
    """Do `map_values` on the CPU."""
    out = torch.empty(results, dtype=torch.uint8)
    for maps, (start, pixels, result) in zip(tables, samples.tolist(), strict=True):
        values = flat[start : start + pixels * channels].view(pixels, channels)
        place = out[result : result + pixels * channels].view(pixels, channels)
        place.copy_(maps.T.gather(0, values.long()))
    return out
