"""Apply the eight EXIF orientations to pixels and to windows (rectangles of an image).

To turn a stored image upright, this module transposes the image (only orientations 5 to 8), and then flips the image.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

__all__ = ["flip_axes", "stored_window", "turn", "upright_window"]

# For each orientation, the axes to flip after the transposition.
_FLIPS = {1: (), 2: (1,), 3: (0, 1), 4: (0,), 5: (), 6: (1,), 7: (0, 1), 8: (0,)}

Number = TypeVar("Number", int, float)


def turn(pixels: Tensor, orientation: int) -> Tensor:
    """Turn stored pixels ``(H, W, C)`` upright; the result is contiguous."""
    if orientation > 4:
        pixels = pixels.transpose(0, 1)
    axes = _FLIPS[orientation]
    return (flip_axes(pixels, axes) if axes else pixels).contiguous()


def flip_axes(pixels: Tensor, axes: int | tuple[int, ...]) -> Tensor:
    """Reverse pixels along axes, with NumPy, since torch before 2.7 cannot reverse uint16 tensors."""
    return torch.from_numpy(np.flip(pixels.numpy(), axes).copy())


def stored_window(
    window: tuple[int, int, int, int], upright_size: tuple[int, int], orientation: int
) -> tuple[int, int, int, int]:
    """Convert a window ``(y, x, h, w)`` of the upright image to a window of the stored image.

    `upright_size` is the height and width of the upright image.
    """
    y, x, h, w = _flip_region(window, upright_size, orientation)
    return (x, y, w, h) if orientation > 4 else (y, x, h, w)


def upright_window(
    window: tuple[float, float, float, float], stored_size: tuple[int, int], orientation: int
) -> tuple[float, float, float, float]:
    """Convert a window ``(y, x, h, w)`` of the stored image to a window of the upright image.

    `stored_size` is the height and width of the stored image.
    """
    if orientation > 4:
        y, x, h, w = window
        window, stored_size = (x, y, w, h), (stored_size[1], stored_size[0])
    return _flip_region(window, stored_size, orientation)


def _flip_region(
    window: tuple[Number, Number, Number, Number], size: tuple[int, int], orientation: int
) -> tuple[Number, Number, Number, Number]:
    y, x, h, w = window
    axes = _FLIPS[orientation]
    return size[0] - y - h if 0 in axes else y, size[1] - x - w if 1 in axes else x, h, w
