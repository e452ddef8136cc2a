"""Colors of classes in masks and boxes, and of values in spectrograms."""

from __future__ import annotations

import colorsys
import functools

import numpy as np
import numpy.typing as npt
import torch

__all__ = ["color_map", "class_color", "paint_mask"]

Array = npt.NDArray[np.uint8]
_GOLDEN = 0.618034  # hue step between consecutive classes, so that hues differ and do not repeat
_STOPS = ((6, 8, 32), (60, 22, 110), (150, 36, 118), (226, 74, 76), (252, 158, 52), (252, 250, 190))


@functools.cache
def class_color(class_index: int) -> tuple[int, int, int]:
    """Return the RGB color of a class; class 0 is red. `paint_mask` uses red for class 1."""
    red, green, blue = colorsys.hsv_to_rgb(class_index * _GOLDEN % 1.0, 0.85, 0.95)
    return round(red * 255), round(green * 255), round(blue * 255)


def paint_mask(mask: torch.Tensor) -> Array:
    """Convert a mask of class indices ``(H, W)`` to colors ``(H, W, 3)``; class 0, the background, is black."""
    class_indices, indices = np.unique(mask.numpy().astype(np.int64), return_inverse=True)
    palette = [(0, 0, 0) if class_index == 0 else class_color(int(class_index) - 1) for class_index in class_indices]
    return np.array(palette, np.uint8)[indices.reshape(mask.shape)]


def color_map(values: npt.NDArray[np.float32]) -> Array:
    """Convert values from 0 to 1 to colors from dark blue over purple and orange to light yellow."""
    positions = np.linspace(0, 1, len(_STOPS))
    stops = np.array(_STOPS, np.float64)
    channels = [np.interp(values, positions, stops[:, channel]) for channel in range(3)]
    return np.stack(channels, -1).round().astype(np.uint8)
