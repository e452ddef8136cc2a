"""Where a kernel writes its result, and how what it computed in float32 becomes bytes there."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from torchdali.kernels.opencv import opencv_for

__all__ = ["HALF_UP", "place", "placed", "to_bytes"]

HALF_UP = 1e-5  # carries k + 0.5 upwards in float32, where rounding is to even


def place(
    out: Tensor | None, shape: Sequence[int], dtype: torch.dtype, device: torch.device
) -> Tensor:
    """Return `out` if a result of this kind fits there, otherwise an uninitialised tensor."""
    if out is not None and out.shape == shape and out.dtype == dtype and out.is_contiguous():
        return out
    return torch.empty(tuple(shape), dtype=dtype, device=device)


def placed(x: Tensor, out: Tensor | None) -> Tensor:
    """Return a result, copied to `out` if it fits there."""
    if out is None or out.shape != x.shape or out.dtype != x.dtype or x.requires_grad:
        return x
    return out.copy_(x)


def to_bytes(x: Tensor, offset: float = 0.0, out: Tensor | None = None) -> Tensor:
    """Return ``x + offset`` as uint8, rounded and saturated; halves go up, within a rounding error of float32.

    Args:
        x: float32 and contiguous; it is overwritten.
        offset: Is added.
        out: Where the result goes, if it fits.
    """
    made = place(out, x.shape, torch.uint8, x.device)
    if (cv2 := opencv_for(x)) is not None:
        x.clamp_(-offset, 255.0 - offset)
        cv2.convertScaleAbs(x.view(1, -1).numpy(), made.view(1, -1).numpy(), 1.0, offset + HALF_UP)
        return made
    # After the half, truncation rounds; the way over int16 is the fastest.
    return made.copy_(x.add_(offset + 0.5).clamp_(0.0, 255.0).to(torch.int16))
