"""Grids of masked squares."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["grid_mask"]


def grid_mask(
    x: Tensor, tile: float, ratio: float, angle: float, shift_x: float, shift_y: float
) -> Tensor:
    """Set the squares of a grid to zero.

    Args:
        x: ``(..., H, W, C)``.
        tile: Period of the grid, in pixels.
        ratio: Side of the squares in units of the period.
        angle: By which the grid is turned, in radians.
        shift_x: Of the grid, in pixels.
        shift_y: The same downwards.
    """
    height, width, channels = x.shape[-3:]
    c, s = math.cos(angle) / tile, math.sin(angle) / tile
    columns = torch.arange(width, dtype=torch.float32, device=x.device)
    rows = torch.arange(height, dtype=torch.float32, device=x.device)[:, None]
    across = _covered(columns * c - shift_x / tile, rows * -s, ratio)
    down = _covered(columns * s - shift_y / tile, rows * c, ratio)
    keep = across.logical_and_(down).logical_not_()
    if (
        channels > 1
    ):  # one value an element: a mask of the image's own shape is applied many times faster
        keep = torch.stack([keep] * channels, -1)
        return x * keep
    return x * keep[..., None]


def _covered(columns: Tensor, rows: Tensor, ratio: float) -> Tensor:
    place = columns + rows
    return place.sub_(place.floor()) < ratio
