"""Convert audio samples between dtypes, and scale them from the full range of one dtype to the other's full range.

Silence is 0 in signed dtypes, and the middle of the range in unsigned dtypes. Floats range from -1 to 1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchdali.kernels.convert import convert, full_scale

__all__ = ["from_unit", "rescale_to"]


def rescale_to(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert samples to float32 values in the range of a dtype. If `x` has this dtype, the values don't change."""
    if x.dtype == dtype:
        return x.to(torch.float32)
    return _scale(_to_unit(x), dtype)


def from_unit(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert floats from -1 to 1 to a dtype, with rounding and saturation."""
    return x if dtype == x.dtype else convert(_scale(x, dtype), dtype)


def _to_unit(x: Tensor) -> Tensor:
    if x.dtype.is_floating_point:
        return x
    scale = full_scale(x.dtype)
    if x.dtype.is_signed:
        return x.to(torch.float32) * (1.0 / scale)
    return x.to(torch.float32) * (2.0 / scale) - 1.0


def _scale(x: Tensor, dtype: torch.dtype) -> Tensor:
    scale = full_scale(dtype)
    return x * scale if dtype.is_signed else (x + 1.0) * (0.5 * scale)
