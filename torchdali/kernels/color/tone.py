"""Tone curves of 8-bit images: stretched contrast, contrast around the mean, solarization.

Comparisons of bytes are slow in torch, clamping is fast: ``x.clamp(t - 1, t) - (t - 1)`` is 1 from ``t`` on, else 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchdali.kernels.color.affine import affine_intensity
from torchdali.kernels.rounding import to_bytes

__all__ = [
    "adding_tables", "contrast_around_mean", "contrast_tables", "solarize", "solarize_add", "solarizing_tables",
    "stretch", "stretching_tables",
]  # fmt: skip

_LUMA = (0.299, 0.587, 0.114)
_BELOW_HALF = 0.49999997  # truncation after adding it rounds


def stretch(image: Tensor) -> Tensor:
    """Stretch the intensities of each channel to 0..255: ``(in - min) * 255 / (max - min)``.

    Args:
        image: ``(H, W, C)`` uint8; a channel of one value stays as it is.
    """
    height, width, channels = image.shape
    rows = image.reshape(height, -1)
    low = rows.amin(0).view(width, channels).amin(0).to(torch.float32)
    span = rows.amax(0).view(width, channels).amax(0).to(torch.float32) - low
    low = low.where(span > 0, 0.0)
    factor = 255.0 / span.where(span > 0, 255.0)
    wide = rows.to(torch.float32).sub_(low.repeat(width)).mul_(factor.repeat(width))
    return wide.add_(_BELOW_HALF).to(torch.int16).to(torch.uint8).view(image.shape)


def contrast_around_mean(image: Tensor, factor: float) -> Tensor:
    """Scale the distance of intensities from the mean luma of the image.

    Args:
        image: ``(H, W, 3)`` uint8.
    """
    height, width, _ = image.shape
    sums = image.reshape(height, -1).to(torch.float32).sum(0).view(width, 3).sum(0).tolist()
    mean = sum(map(float.__mul__, sums, _LUMA)) / (height * width)
    return affine_intensity(image, factor, mean - factor * mean, torch.uint8)


def solarize(image: Tensor, threshold: int) -> Tensor:
    """Invert the bytes from a threshold on: ``255 - in`` where ``in >= threshold``."""
    if threshold <= 0:
        return 255 - image
    if threshold > 255:
        return image
    mask = image.clamp(threshold - 1, threshold).sub_(threshold - 1).neg_()
    return mask.bitwise_xor_(image)


def solarize_add(image: Tensor, shift: int) -> Tensor:
    """Add a shift below 128 to the bytes below 128."""
    return image.clamp(127, 128).neg_().add_(128).mul_(shift).add_(image)


# ---------------------------------------------------------------- as tables: what comes in the place of each byte


def stretching_tables(counts: Tensor) -> Tensor:
    """Return what `stretch` does to channels with such histograms, ``(..., 256)``, as uint8 of the same shape."""
    values = torch.arange(256, device=counts.device)
    low = torch.where(counts > 0, values, 255).amin(-1, keepdim=True).to(torch.float32)
    span = torch.where(counts > 0, values, 0).amax(-1, keepdim=True).to(torch.float32) - low
    low = low.where(span > 0, 0.0)
    factor = 255.0 / span.where(span > 0, 255.0)
    wide = (values.to(torch.float32) - low) * factor + _BELOW_HALF
    return wide.clamp_(0.0, 255.0).to(torch.uint8)  # values that no pixel has may lie outside


def contrast_tables(counts: Tensor, factors: Tensor) -> Tensor:
    """Return what `contrast_around_mean` does to images.

    Args:
        counts: ``(N, 3, 256)``: the histograms of their channels.
        factors: ``(N,)`` float64.

    Returns:
        ``(N, 1, 256)`` uint8.
    """
    values = torch.arange(256, device=counts.device)
    pixels = counts[:, 0].sum(-1)
    sums = (counts.to(torch.float64) * values).sum(-1)
    mean = sum(sums[:, i] * share for i, share in enumerate(_LUMA)) / pixels
    offset = (mean - factors * mean).to(torch.float32)[:, None, None]
    return to_bytes(values.to(torch.float32) * factors.to(torch.float32)[:, None, None] + offset)


def solarizing_tables(thresholds: Tensor) -> Tensor:
    """Return what `solarize` does, ``(..., 256)`` uint8, for thresholds ``(..., 1)``, which may have fractions."""
    values = torch.arange(256, device=thresholds.device)
    return torch.where(values >= thresholds, 255 - values, values).to(torch.uint8)


def adding_tables(shifts: Tensor) -> Tensor:
    """Return what `solarize_add` does, ``(..., 256)`` uint8, for shifts ``(..., 1)``."""
    values = torch.arange(256, device=shifts.device)
    return torch.where(values < 128, values + shifts.to(torch.int64), values).to(torch.uint8)
