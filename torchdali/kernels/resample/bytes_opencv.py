"""Weighted sums along the rows of byte images by OpenCV, where it is installed: images are turned, summed, turned back.

PyTorch sums whole lines of memory, which for columns of pixels have to be brought together first; OpenCV turns an
image at a quarter of the cost.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.memory import scratch
from torchdali.kernels.opencv import opencv_for
from torchdali.kernels.resample.weights import Axis, bags

__all__ = ["Finish", "sum_by_opencv"]

Finish = Callable[[Tensor], Tensor]


def sum_by_opencv(
    x: Tensor, axis: Axis, first_pass: bool, window: tuple[int, int] | None, finish: Finish
) -> Tensor | None:
    """Apply the taps of an axis to the columns of ``(H, W, C)`` uint8, or return None where this is not the way.

    Args:
        x: At most 4 channels; its rows are dense.
        axis: Of the columns.
        first_pass: As for `taps`.
        window: Likewise.
        finish: Is applied to the sums.

    Returns:
        ``(H, size, C)``, contiguous.
    """
    height, width, channels = x.shape
    if x.dtype != torch.uint8 or channels > 4 or x.stride()[1:] != (channels, 1):
        return None
    cv2 = opencv_for(x)
    if cv2 is None:
        return None
    turned = scratch((width, height * channels), "turned", torch.uint8)
    cv2.transpose(x.numpy(), turned.numpy().reshape(width, height, channels))
    lines = scratch(turned.shape, "rows").copy_(turned)
    pixels, starts, weights = bags(axis, first_pass, x.device, window, 1)
    sums = torch.embedding_bag(lines, pixels, starts, False, 0, False, weights)[0]  # 0: the sum
    found = finish(sums).numpy().reshape(-1, height, channels)
    out = np.empty((height, len(found), channels), found.dtype)
    return torch.from_numpy(cv2.transpose(found, out).reshape(out.shape))
