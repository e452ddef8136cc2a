"""Resize images to the same size, mirror, normalize and transpose them on an accelerator, in two kernel launches.

The kernels combine `kernels.device.resize` and `kernels.device.normalize`. The resized uint8 values are kept in
registers and never written to memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.normalize import scaling_tensor
from torchdali.kernels.device.resize import Regions, build_table, lookup_table, resize_in_torch
from torchdali.kernels.device.tables import upload
from torchdali.kernels.memory import Array

__all__ = ["Finish", "resize_normalize_batch"]


class Finish(NamedTuple):
    """Mirroring and normalization after a resize.

    Attributes:
        flags: ``(N,)`` int32 on the device: nonzero to mirror the image horizontally. None to use `mirror`.
        mirror: If `flags` is None, True mirrors all images horizontally.
        scaling: Normalization; see `normalize_batch`.
        channel_first: True for the output ``(N, C, H, W)``, False for ``(N, H, W, C)``.
        dtype: Dtype of the output: float32 or float16.
    """

    flags: Tensor | None
    mirror: bool
    scaling: Any
    channel_first: bool
    dtype: torch.dtype


def resize_normalize_batch(
    flat: Tensor, offsets: Array, sides: Array, channels: int, regions: Regions, finish: Finish
) -> Tensor | None:
    """Resize images to uint8 images of the same size, and normalize them.

    Args:
        flat, offsets, sides, channels: See `resize_batch`; the images must be uint8.
        regions: The regions to resize; all outputs must have the same size.

    Returns:
        The normalized images; None if `resize_batch` would return None.
    """
    rows = build_table(offsets, sides, channels, regions)
    if rows is None:
        return None
    height, width = regions.size[:, 0].tolist()
    out: Tensor = torch.ops.torchdali.resize_normalize_batch(
        flat, upload(rows.table, flat.device), lookup_table(flat.device), rows.intermediate_size,
        rows.largest_intermediate, finish.flags, finish.mirror, scaling_tensor(finish.scaling, channels, flat.device),
        height, width, channels, finish.channel_first, finish.dtype == torch.float16,
    )  # fmt: skip
    return out


@define("resize_normalize")
def resize_normalize_in_torch(
    flat: Tensor, samples: Tensor, filters: Tensor, intermediate_size: int, largest_intermediate: int,
    flags: Tensor | None, mirror: bool, numbers: Tensor, height: int, width: int, channels: int, channel_first: bool,
    half: bool,
) -> Tensor:  # fmt: skip
    """Resize and normalize on the CPU. This is the reference implementation for the device's kernels."""
    values, count = height * width * channels, len(samples)
    rows = samples.clone()
    rows[:, 6] = torch.arange(count) * values
    images = resize_in_torch(
        flat, rows, filters, intermediate_size, largest_intermediate, count * values, values, channels, False
    )
    images = images.view(count, height, width, channels)
    flipped = torch.full((count,), mirror) if flags is None else flags != 0
    images = torch.where(flipped.view(-1, 1, 1, 1), images.flip(2), images)
    centre, factor, offset = numbers
    result = torch.addcmul(offset, images.float() - centre, factor)
    result = result.to(torch.float16) if half else result
    return result.permute(0, 3, 1, 2).contiguous() if channel_first else result
