"""Positions that make an image wave like water, or bulge like a sphere; as in `sample`."""

from __future__ import annotations

import torch
from torch import Tensor

from torchdali.kernels.warp.sample import Positions

__all__ = ["sphere_positions", "water_positions", "waves"]

_OUTSIDE = -1e6  # the position of values that are not numbers


def _plane(height: int, width: int, device: torch.device) -> Positions:
    y = torch.arange(height, dtype=torch.float32, device=device)[:, None]
    return torch.arange(width, dtype=torch.float32, device=device), y


def water_positions(
    height: int, width: int, device: torch.device, amplitude: tuple[float, float],
    frequency: tuple[float, float], phase: tuple[float, float],
) -> Positions:  # fmt: skip
    """Return the positions of a wavy surface; every pair is of x and y.

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

    Sine and cosine are rounded from more digits: a last bit decides where a position is a whole number.
    """
    x, y = _plane(height, width, device)
    across = torch.sin((frequency[0] * y[:, 0] + phase[0]).double()).float()
    down = torch.cos((frequency[1] * x + phase[1]).double()).float()
    return amplitude[0] * across, amplitude[1] * down


def sphere_positions(height: int, width: int, device: torch.device) -> Positions:
    """Return the positions of an image wrapped on a sphere: distances from the centre are squared."""
    x, y = _plane(height, width, device)
    x, y = x + (0.5 - width / 2), y + (0.5 - height / 2)
    scale = torch.hypot(x, y) / max(1, width // 2, height // 2)
    return scale * x + width / 2, scale * y + height / 2
