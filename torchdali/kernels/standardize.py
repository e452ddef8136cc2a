"""Normalize images by their mean and variance, which were computed before."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torchdali.kernels.color.affine import affine_intensity, affine_rgb
from torchdali.kernels.moments_opencv import Moments

__all__ = ["standardize"]

_STEEP = 300.0  # maximum mean, in standard deviations; with a larger mean, ``x * factor + offset`` is too inexact


def standardize(
    x: Tensor, moments: Moments, divisor: int, epsilon: float, scale: float, shift: float,
    dtype: torch.dtype, out: Tensor | None = None,
) -> Tensor | None:  # fmt: skip
    """Return ``(x - mean) / sqrt(variance + epsilon) * scale + shift``, or `shift` if ``variance + epsilon`` is 0.

    Args:
        x: Images ``(..., C)``.
        moments: Mean and variance: one value each, or one value per channel.
        divisor: Number by which the sum of squared differences is divided to get the variance, instead of the number of
            values. If `divisor` isn't positive, the variance is 0.
        epsilon: Value added to the variance.
        scale: Factor after the division.
        shift: Offset that is added last.
        dtype: Dtype of the result.
        out: Tensor to which the result is written if it fits.

    Returns:
        The result; None if a mean is so large that it must be subtracted before the values are scaled.
    """
    correction = moments.count / divisor if divisor > 0 else 0.0
    variances = [v * correction + epsilon for v in moments.variances]
    factors = [1 / math.sqrt(variance) if variance > 0 else 0.0 for variance in variances]
    if not all(abs(m * f) < _STEEP for m, f in zip(moments.means, factors, strict=True)):
        return None
    factors = [f * scale for f in factors]
    offsets = [shift - m * f for m, f in zip(moments.means, factors, strict=True)]
    if len(factors) == 1:
        return affine_intensity(x, factors[0], offsets[0], dtype, out)
    matrix = tuple(tuple(f if i == j else 0.0 for j in range(len(factors))) for i, f in enumerate(factors))
    return affine_rgb(x, matrix, offsets, dtype, out)
