"""Convert numbers to intensity levels: bytes from 0 to 255."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

__all__ = ["Normalization", "levels", "to_color"]

Array = npt.NDArray[np.uint8]
_NOT_FINITE = (255, 0, 255)  # color of values that are not finite


@dataclass(frozen=True)
class Normalization:
    """A normalization that can be undone: ``out = (in - mean) / std``.

    Attributes:
        mean: One value, or one per channel.
        std: One value, or one per channel.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def undo(self, image: torch.Tensor) -> torch.Tensor:
        """Undo the normalization of an image ``(..., C)``."""
        return image * torch.tensor(self.std) + torch.tensor(self.mean)


def levels(images: Sequence[torch.Tensor], normalization: Normalization | None = None) -> list[Array]:
    """Convert images of any dtype to bytes.

    Bytes are unchanged. Other values are stretched to bytes: from the range 0 to 1 or 0 to 255, if the range contains
    all values of the batch; otherwise, from the range of the batch's smallest to largest value. Values that are not
    finite become magenta in images with three channels, and black in other images.

    Args:
        images: The images, each ``(..., H, W, C)``.
        normalization: Normalization of the images. For floats, the normalization is undone, and the values aren't
            stretched to the range of the batch.
    """
    if all(image.dtype == torch.uint8 for image in images):
        return [image.numpy() for image in images]
    floats = [image.float() for image in images]
    is_normalized = normalization is not None and all(image.is_floating_point() for image in images)
    if normalization is not None and is_normalized:
        floats = [normalization.undo(image) for image in floats]
    low, high = _find_range(floats)
    if is_normalized:
        low, high = 0.0, 1.0 if high <= 2.0 else 255.0
    elif low >= -0.01 and high <= 1.01:
        low, high = 0.0, 1.0
    elif low >= -1 and 8 < high <= 256:
        low, high = 0.0, 255.0
    return [_scale_levels(image, low, high) for image in floats]


def _find_range(images: Sequence[torch.Tensor]) -> tuple[float, float]:
    """Return the smallest and the largest finite number of all images."""
    flat = [image[image.isfinite()] for image in images]
    ranges = [(float(each.min()), float(each.max())) for each in flat if each.numel()]
    return min((low for low, _ in ranges), default=0.0), max((high for _, high in ranges), default=1.0)


def _scale_levels(image: torch.Tensor, low: float, high: float) -> Array:
    finite = image.isfinite()
    stretched = (torch.where(finite, image, low) - low) / ((high - low) or 1.0) * 255
    pixels: Array = stretched.round().clamp(0, 255).byte().numpy()
    missing = ~finite.all(-1).numpy()
    if pixels.shape[-1] == 3 and missing.any():
        pixels = pixels.copy()
        pixels[missing] = _NOT_FINITE
    return pixels


def to_color(pixels: Array) -> Array:
    """Convert any number of channels to ``(..., 3)``.

    One channel becomes gray. Of four or more channels, the first three are used.
    """
    channels = pixels.shape[-1]
    if channels == 1:
        return np.broadcast_to(pixels, (*pixels.shape[:-1], 3))
    if channels == 2:
        return np.concatenate([pixels, np.zeros_like(pixels[..., :1])], -1)
    return pixels[..., :3]
