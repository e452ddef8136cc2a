"""Change the tones of 8-bit images: contrast stretching, contrast around the mean, and solarization.

PyTorch compares uint8 values slowly, but clamps them fast. So ``x >= t`` is computed as
``x.clamp(t - 1, t) - (t - 1)``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchdali.kernels.color.affine import affine_intensity
from torchdali.kernels.rounding import to_bytes

__all__ = [
    "contrast_around_mean", "contrast_each_around_mean", "solarize", "solarize_add", "solarize_add_each",
    "solarize_each", "stretch", "stretch_each",
]  # fmt: skip

_LUMA = (0.299, 0.587, 0.114)
_BELOW_HALF = 0.49999997  # added before a truncation, so that the truncation rounds


def stretch(image: Tensor) -> Tensor:
    """Stretch the intensities of each channel to 0..255: ``(in - min) * 255 / (max - min)``.

    Args:
        image: ``(H, W, C)`` uint8; a channel with only one value is unchanged.
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
    """Multiply the differences of all values from the image's mean luma by a factor.

    Args:
        image: ``(H, W, 3)`` uint8.
    """
    height, width, _ = image.shape
    sums = image.reshape(height, -1).to(torch.float32).sum(0).view(width, 3).sum(0).tolist()
    mean = sum(map(float.__mul__, sums, _LUMA)) / (height * width)
    return affine_intensity(image, factor, mean - factor * mean, torch.uint8)


def solarize(image: Tensor, threshold: int) -> Tensor:
    """Invert the uint8 values that aren't below a threshold: ``255 - in`` where ``in >= threshold``."""
    if threshold <= 0:
        return 255 - image
    if threshold > 255:
        return image
    mask = image.clamp(threshold - 1, threshold).sub_(threshold - 1).neg_()
    return mask.bitwise_xor_(image)


def solarize_add(image: Tensor, shift: int) -> Tensor:
    """Add a shift to all uint8 values below 128. The shift must also be below 128."""
    return image.clamp(127, 128).neg_().add_(128).mul_(shift).add_(image)


# ---------------------------------------------------------------- batches of equal shapes, on a device


def stretch_each(images: Tensor) -> Tensor:
    """Compute `stretch` for each image of ``(N, H, W, C)``."""
    low = images.amin((1, 2), keepdim=True).to(torch.float32)
    span = images.amax((1, 2), keepdim=True).to(torch.float32) - low
    low = low.where(span > 0, 0.0)
    factor = 255.0 / span.where(span > 0, 255.0)
    return ((images.to(torch.float32) - low) * factor).add_(_BELOW_HALF).to(torch.uint8)


def contrast_each_around_mean(images: Tensor, factors: Tensor) -> Tensor:
    """Compute `contrast_around_mean` for images ``(N, H, W, 3)``. The factors must broadcast against the images."""
    sums = images.sum((1, 2), keepdim=True, dtype=torch.int64).to(torch.float64).split(1, -1)
    mean = sum(each * share for each, share in zip(sums, _LUMA, strict=True)) / (images.shape[1] * images.shape[2])
    return to_bytes(torch.addcmul((mean - factors * mean).to(torch.float32), images.to(torch.float32), factors))


def solarize_each(images: Tensor, thresholds: Tensor) -> Tensor:
    """Compute `solarize` for thresholds that broadcast against the images. Thresholds needn't be integers."""
    return torch.where(images >= thresholds, 255 - images, images)


def solarize_add_each(images: Tensor, shifts: Tensor) -> Tensor:
    """Compute `solarize_add` for shifts that broadcast against the images."""
    return torch.where(images < 128, (images + shifts.to(torch.int32)).to(torch.uint8), images)
