"""Set a regular grid of squares in an image to zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device.tables import factors
from torchdali.kernels.memory import Array

__all__ = ["grid_mask", "grid_mask_each"]


def grid_mask(x: Tensor, tile: float, ratio: float, angle: float, shift_x: float, shift_y: float) -> Tensor:
    """Set a square in each tile of a regular grid to zero.

    Args:
        x: Images ``(..., H, W, C)``.
        tile: Side of a tile, in pixels.
        ratio: Ratio of a square's side to the tile's side.
        angle: Angle by which the grid is rotated, in radians.
        shift_x: Shift of the grid to the right, in pixels.
        shift_y: Shift of the grid downward, in pixels.
    """
    return _apply_mask(x, list(map(float, _mask_parameters(tile, ratio, angle, shift_x, shift_y))))


def grid_mask_each(x: Tensor, *numbers: Array) -> Tensor:
    """Compute `grid_mask` for images ``(N, H, W, C)``. Each of `numbers` is an argument with one number per image."""
    return _apply_mask(x, factors(np.stack(_mask_parameters(*numbers), -1), x).unbind(-1))


def _mask_parameters(tile: Any, ratio: Any, angle: Any, shift_x: Any, shift_y: Any) -> tuple[Any, ...]:
    """Return the parameters of `_mask`: cosine and sine in tiles per pixel, two shifts in tiles, and the ratio."""
    return np.cos(angle) / tile, np.sin(angle) / tile, shift_x / tile, shift_y / tile, ratio


def _apply_mask(x: Tensor, parameters: Sequence[Any]) -> Tensor:
    height, width, channels = x.shape[-3:]
    mask = _mask(height, width, parameters, x.device)
    if channels > 1:  # a mask of the image's own shape is applied many times faster than a broadcast mask
        mask = torch.stack([mask] * channels, -1)
        return x * mask
    return x * mask[..., None]


def _mask(height: int, width: int, parameters: Sequence[Any], device: torch.device) -> Tensor:
    """Return a mask ``(height, width)`` that is True outside of the squares, or one mask per image."""
    c, s, right, below, ratio = parameters
    columns = torch.arange(width, dtype=torch.float32, device=device)
    rows = torch.arange(height, dtype=torch.float32, device=device)[:, None]
    across = _cover(columns * c - right, rows * -s, ratio)
    down = _cover(columns * s - below, rows * c, ratio)
    return across.logical_and_(down).logical_not_()


def _cover(columns: Tensor, rows: Tensor, ratio: float | Tensor) -> Tensor:
    position = columns + rows
    return position.sub_(position.floor()) < ratio
