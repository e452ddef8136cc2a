"""Round float32 results to uint8."""

from __future__ import annotations

import torch
from torch import Tensor

from torchdali.kernels.memory import in_transform, prepare_out
from torchdali.kernels.opencv import opencv_for

__all__ = ["HALF_UP", "to_bytes"]

HALF_UP = 1e-5  # added to float32 values so that OpenCV rounds halves up and not to even numbers


def to_bytes(x: Tensor, out: Tensor | None = None) -> Tensor:
    """Convert float32 to uint8, with rounding (halves up, within float32's precision) and saturation.

    Args:
        x: Contiguous float32 tensor, which is overwritten.
        out: Tensor to which the result is written if it fits.
    """
    result = prepare_out(out, x.shape, torch.uint8, x.device)
    if (cv2 := opencv_for(x)) is not None:
        x.clamp_(0.0, 255.0)
        cv2.convertScaleAbs(x.view(1, -1).numpy(), result.view(1, -1).numpy(), 1.0, HALF_UP)
        return result
    # The conversion truncates, so 0.5 is added to round. On the CPU, converting via int16 is fastest.
    rounded = x.add_(0.5).clamp_(0.0, 255.0)
    rounded = rounded.to(torch.int16) if x.is_cpu else rounded
    return rounded.to(torch.uint8) if in_transform() else result.copy_(rounded)
