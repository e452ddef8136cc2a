"""Copy regions of a batch of samples of any sizes and types to canvases, on an accelerator, in one launch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import table, upload
from torchdali.kernels.memory import Array

__all__ = ["COLUMNS", "REGION", "compose_batch", "joined"]

COLUMNS = ("result", "height", "width", "regions", "count")
"""Of the table: where a canvas starts, in bytes, its lines, and the bytes of one; behind the rows of all canvases,
where its regions are, and how many."""

REGION = ("offset", "pitch", "y", "x", "height", "width")
"""Of a region: where it starts, in bytes, from one line to the next, where it goes, its lines, and the bytes of one."""


def compose_batch(flat: Tensor, canvases: Array, counts: Array, regions: Array, fill: Sequence[int] = (0,)) -> Tensor:
    """Copy regions to canvases; what comes later covers what came before.

    Args:
        flat: The elements of all samples, on a device.
        canvases: ``(N, 2)``: lines, and bytes of one.
        counts: Regions of each canvas, which follow one another.
        regions: ``(all regions, 6)``; see `REGION`.
        fill: Bytes that repeat along each line where there is no region.

    Returns:
        The elements of all canvases, one after the other.
    """
    sizes = canvases.prod(1)
    behind = np.concatenate((regions.reshape(-1), np.array(fill, np.int64)))
    rows = len(canvases) * len(COLUMNS)
    starts = rows + (np.cumsum(counts) - counts) * len(REGION)
    columns = table([np.cumsum(sizes) - sizes, *canvases.T, starts, counts])
    block = np.concatenate((columns.reshape(-1), behind))
    made: Tensor = torch.ops.torchdali.compose_batch(
        flat.view(torch.uint8), upload(block, flat.device), len(canvases), len(fill), int(sizes.sum()), int(sizes.max())
    )  # fmt: skip
    return made.view(flat.dtype)


@define("compose")
def compose_in_torch(flat: Tensor, block: Tensor, count: int, period: int, results: int, largest: int) -> Tensor:
    """Do `compose_batch` on the CPU."""
    out = torch.empty(results, dtype=torch.uint8)
    fill = block[len(block) - period :].to(torch.uint8)
    for result, height, width, first, many in block[: count * len(COLUMNS)].view(count, -1).tolist():
        canvas = out[result : result + height * width].view(height, width)
        canvas[:] = fill.repeat(-(-width // period))[:width]
        for start, pitch, y, x, h, w in block[first : first + 6 * many].view(-1, 6).tolist():
            canvas[y : y + h, x : x + w] = flat[start:].as_strided((h, w), (pitch, 1))
    return out


def joined(parts: Sequence[tuple[Tensor, Array, Array]], axis: int) -> Tensor:
    """Join samples along an axis.

    Args:
        parts: Of each input: its elements, on a device, where each sample starts, and the shapes, ``(N, axes)``, in
            which only this axis differs; all of them without it to stack samples before it.
        axis: All before it are lines.

    Returns:
        The elements of all results, one after the other.
    """
    flats = [flat for flat, _, _ in parts]
    size = flats[0].element_size()
    bases = np.cumsum([0, *(flat.numel() for flat in flats[:-1])])
    starts = np.stack([base + offsets for base, (_, offsets, _) in zip(bases, parts, strict=True)], 1)
    widths = np.stack([shapes[:, axis:].prod(1) for _, _, shapes in parts], 1)
    ends, lines = widths.cumsum(1), parts[0][2][:, :axis].prod(1)
    each = np.broadcast_to(lines[:, None], widths.shape)
    regions = np.stack((starts * size, widths * size, 0 * each, (ends - widths) * size, each, widths * size), 2)
    canvases = np.stack((lines, ends[:, -1] * size), 1)
    flat = torch.cat(flats) if len(flats) > 1 else flats[0]
    return compose_batch(flat, canvases, np.full(len(lines), len(parts)), regions)
