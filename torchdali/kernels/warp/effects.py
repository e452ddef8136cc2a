"""Positions for the water and sphere effects; see `sample` for their form."""

from __future__ import annotations

import torch
from torch import Tensor

from torchdali.kernels.warp.sample import Positions

__all__ = ["sphere_positions", "water_positions", "waves"]

_OUTSIDE = -1e6  # position that replaces NaN


def _plane(height: int, width: int, device: torch.device) -> Positions:
    y = torch.arange(height, dtype=torch.float32, device=device)[:, None]
    return torch.arange(width, dtype=torch.float32, device=device), y


def water_positions(
    height: int, width: int, device: torch.device, amplitude: tuple[float, float],
    frequency: tuple[float, float], phase: tuple[float, float],
) -> Positions:  # fmt: skip
    """Return the positions of a wavy surface; all pairs are (x, y).

    ``x + amplitude * sin(frequency * y + phase)``, ``y + amplitude * cos(frequency * x + phase)``
    """
    x, y = _plane(height, width, device)
    across, down = waves(height, width, device, amplitude, frequency, phase)
    return (x + across[:, None]).nan_to_num_(_OUTSIDE), (y + down).nan_to_num_(_OUTSIDE)


def waves(
    height: int, width: int, device: torch.device, amplitude: tuple[float, float],
    frequency: tuple[float, float], phase: tuple[float, float],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the offsets of `water_positions` to x, for each y, and to y, for each x.

    Sine and cosine are computed in float64 and rounded: if a position is near an integer, the last bit matters.
    """
    x, y = _plane(height, width, device)
    across = torch.sin((frequency[0] * y[:, 0] + phase[0]).double()).float()
    down = torch.cos((frequency[1] * x + phase[1]).double()).float()
    return amplitude[0] * across, amplitude[1] * down


def sphere_positions(height: int, width: int, device: torch.device) -> Positions:
    """Return the positions for an image on a sphere, for which the distances from the center are squared."""
    x, y = _plane(height, width, device)
    x, y = x + (0.5 - width / 2), y + (0.5 - height / 2)
    scale = torch.hypot(x, y) / max(1, width // 2, height // 2)
    return scale * x + width / 2, scale * y + height / 2
