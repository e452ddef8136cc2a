"""Crop, mirror, normalize and transpose a batch of images of any sizes on an accelerator, in one kernel launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import upload
from torchdali.kernels.device_cache import device_cache

__all__ = ["COLUMNS", "normalize_batch", "scaling_tensor"]

COLUMNS = ("offset", "width", "y", "x")
"""Columns of the kernel's table, which has one row per image. The columns are the image's offset in elements, the
image's width, and the first row and column of the window."""


def normalize_batch(
    flat: Tensor, samples: Tensor, flags: Tensor | None, mirror: bool, scaling: Any, size: tuple[int, int],
    channels: int, channel_first: bool, dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    """Crop windows of the same size from images, and normalize them.

    Args:
        flat: Elements of all images ``(H, W, C)``, on a device.
        samples: The kernel's table ``(N, len(COLUMNS))``, int64.
        flags: ``(N,)`` int32: nonzero to mirror the image horizontally. None to use `mirror`.
        mirror: If `flags` is None, True mirrors all images horizontally.
        scaling: Centre, factor and offset as a `normalize.Affine`; None for no normalization.
        size: Height and width of the windows.
        channels: Number of channels of each image.
        channel_first: True for the output ``(N, C, H, W)``, False for ``(N, H, W, C)``.
        dtype: Dtype of the output: float32 or float16.
    """
    numbers = scaling_tensor(scaling, channels, flat.device)
    result: Tensor = torch.ops.torchdali.normalize_batch(
        flat,
        samples,
        flags,
        mirror,
        numbers,
        *size,
        channels,
        channel_first,
        dtype == torch.float16,
    )
    return result


@device_cache(maxsize=64)
def scaling_tensor(scaling: Any, channels: int, device: torch.device) -> Tensor:
    """Return the centre, factor and offset of each channel as a tensor ``(3, channels)`` on a device."""
    parameters = ((0.0,), (1.0,), (0.0,)) if scaling is None else (scaling.centre, scaling.factor, scaling.offset)
    rows = [np.broadcast_to(np.array(values, np.float32), (channels,)) for values in parameters]
    return upload(np.stack(rows), device)


@define("normalize")
def normalize_in_torch(
    flat: Tensor, samples: Tensor, flags: Tensor | None, mirror: bool, numbers: Tensor, height: int, width: int,
    channels: int, channel_first: bool, half: bool,
) -> Tensor:  # fmt: skip
    """Normalize a batch on the CPU. This is the reference implementation for the device's kernel."""
    dtype = torch.float16 if half else torch.float32
    result = torch.empty((len(samples), height, width, channels), dtype=dtype)
    centre, factor, offset = numbers
    mirrored = [mirror] * len(samples) if flags is None else flags.tolist()
    for target, (start, pitch, y, x), flag in zip(result, samples.tolist(), mirrored, strict=True):
        rows = flat[start + y * pitch * channels :][: ((height - 1) * pitch + x + width) * channels]
        strides = (pitch * channels, channels, 1)
        window = rows.as_strided((height, width, channels), strides, rows.storage_offset() + x * channels)
        window = window.flip(1) if flag else window
        target.copy_(torch.addcmul(offset, window.float() - centre, factor))
    return result.permute(0, 3, 1, 2).contiguous() if channel_first else result
