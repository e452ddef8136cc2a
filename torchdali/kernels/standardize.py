"""Scale images to a mean and a variance."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torchdali.kernels.color.affine import affine_intensity, affine_rgb
from torchdali.kernels.moments_opencv import Moments

__all__ = ["standardize"]

_STEEP = 300.0  # maximum mean in standard deviations; for larger means, float32 must subtract the mean first


def standardize(
    x: Tensor, moments: Moments, divisor: int, epsilon: float, scale: float, shift: float,
    dtype: torch.dtype, out: Tensor | None = None,
) -> Tensor | None:  # fmt: skip
    """Return ``(x - mean) / sqrt(variance + epsilon) * scale + shift``; a zero divisor gives ``shift``.

    Args:
        x: ``(..., C)``.
        moments: One value, or one per channel.
        divisor: Divisor of the variance instead of the count; if 0 or less, the variance is 0.
        epsilon: Added to the variance.
        scale: Factor after the division.
        shift: Offset that is added last.
        dtype: Dtype of the result.
        out: Tensor to which the result is written if it fits.

    Returns:
        The result; None if the means are so large that float32 must subtract them before scaling.
    """
    share = moments.count / divisor if divisor > 0 else 0.0
    roots = [v * share + epsilon for v in moments.variances]
    factors = [1 / math.sqrt(root) if root > 0 else 0.0 for root in roots]
    if not all(abs(m * f) < _STEEP for m, f in zip(moments.means, factors, strict=True)):
        return None
    factors = [f * scale for f in factors]
    offsets = [shift - m * f for m, f in zip(moments.means, factors, strict=True)]
    if len(factors) == 1:
        return affine_intensity(x, factors[0], offsets[0], dtype, out)
    matrix = tuple(tuple(f if i == j else 0.0 for j in range(len(factors))) for i, f in enumerate(factors))
    return affine_rgb(x, matrix, offsets, dtype, out)
