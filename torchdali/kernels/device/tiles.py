"""Equalize the tiles of a batch of images of any sizes, on an accelerator: a launch to count, one to map."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.color.histogram import blended, count_tiles, limited_tables, most_of
from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import table, upload
from torchdali.kernels.memory import Array

__all__ = ["COLUMNS", "equalize_tiles_batch"]

COLUMNS = ("offset", "height", "width", "tile_height", "tile_width")
"""Of the table: where an image starts, in elements, its extents and those of its tiles."""


def equalize_tiles_batch(
    flat: Tensor, offsets: Array, sides: Array, channels: int, tiles: tuple[int, int], clip_limit: float
) -> Tensor:  # fmt: skip
    """Equalize each channel by tiles whose contrast is limited, as `equalize_tiles` does.

    Args:
        flat: uint8, the elements of all images, on a device.
        offsets: Where each image starts.
        sides: ``(2, N)``: heights and widths.
        channels: Of all images.
        tiles: Down and across each image.
        clip_limit: Largest bin in units of the mean bin; no limit from 0 down.

    Returns:
        The elements of all results, in the places of those of the images.
    """
    count = np.array(tiles)[:, None]
    sizes = sides // count + (sides % count).any(0)
    places, pixels = sizes.prod(0), sizes.prod(0)
    rows = upload(table([offsets, *sides, *sizes]), flat.device)
    counts = torch.ops.torchdali.count_tiles_batch(
        flat, rows, int(places.max()) * tiles[0] * tiles[1] * channels, channels, *tiles
    )
    limits = [most_of(size, clip_limit) for size in pixels.tolist()]
    limit, scale = upload(np.stack((limits, 255.0 / pixels)), flat.device).view(2, -1, 1, 1, 1)
    tables = limited_tables(counts, limit.to(counts.dtype), scale.to(torch.float32))
    made: Tensor = torch.ops.torchdali.map_tiles_batch(
        flat, rows, tables, int(sides.prod(0).max()) * channels, channels, *tiles
    )
    return made


@define("count_tiles")
def count_in_torch(flat: Tensor, samples: Tensor, largest: int, channels: int, down: int, across: int) -> Tensor:
    """Return the histograms of all tiles, ``(N, tiles, channels, 256)`` int32, on the CPU."""
    out = torch.empty((len(samples), down * across, channels, 256), dtype=torch.int32)
    for found, (start, h, w, *_) in zip(out, samples.tolist(), strict=True):
        image = flat[start : start + h * w * channels].view(h, w, channels)
        counts, _ = count_tiles(torch.stack(image.unbind(-1)), down, across)
        found.copy_(counts.view(channels, -1, 256).transpose(0, 1))
    return out


@define("map_tiles")
def map_in_torch(
    flat: Tensor, samples: Tensor, tables: Tensor, largest: int, channels: int, down: int, across: int
) -> Tensor:  # fmt: skip
    """Map images by the tables of their tiles, on the CPU."""
    out = torch.empty_like(flat)
    for maps, (start, h, w, *size) in zip(tables, samples.tolist(), strict=True):
        image, made = (each[start : start + h * w * channels].view(h, w, channels) for each in (flat, out))
        planes = torch.stack(image.unbind(-1))
        made.copy_(blended(planes, maps.transpose(0, 1), (down, across), size).movedim(0, -1))
    return out
