"""Round float32 results to bytes."""

from __future__ import annotations

import torch
from torch import Tensor

from torchdali.kernels.memory import in_transform, place
from torchdali.kernels.opencv import opencv_for

__all__ = ["HALF_UP", "to_bytes"]

HALF_UP = 1e-5  # carries k + 0.5 upwards in float32, where rounding is to even


def to_bytes(x: Tensor, out: Tensor | None = None) -> Tensor:
    """Return `x` as uint8, rounded and saturated; halves go up, within a rounding error of float32.

    Args:
        x: float32 and contiguous; it is overwritten.
        out: Where the result goes, if it fits.
    """
    result = place(out, x.shape, torch.uint8, x.device)
    if (cv2 := opencv_for(x)) is not None:
        x.clamp_(0.0, 255.0)
        cv2.convertScaleAbs(x.view(1, -1).numpy(), result.view(1, -1).numpy(), 1.0, HALF_UP)
        return result
    # After the half, truncation rounds; the way over int16 is the fastest on the CPU.
    rounded = x.add_(0.5).clamp_(0.0, 255.0)
    rounded = rounded.to(torch.int16) if x.is_cpu else rounded
    return rounded.to(torch.uint8) if in_transform() else result.copy_(rounded)
