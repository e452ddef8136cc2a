"""Compute the input positions of the water and sphere effects. See `kernels.warp.sample` for the coordinates."""

from __future__ import annotations

import torch
from torch import Tensor

from torchdali.kernels.warp.sample import Positions

__all__ = ["sphere_positions", "water_positions", "waves"]

_OUTSIDE = -1e6  # position that replaces NaN


def _coordinates(height: int, width: int, device: torch.device) -> Positions:
    y = torch.arange(height, dtype=torch.float32, device=device)[:, None]
    return torch.arange(width, dtype=torch.float32, device=device), y


def water_positions(
    height: int, width: int, device: torch.device, amplitude: tuple[float, float],
    frequency: tuple[float, float], phase: tuple[float, float],
) -> Positions:  # fmt: skip
    """Return the input positions of the output pixels for an image that is distorted by waves.

    The input position of the output pixel ``(x, y)`` is ``x + amplitude[0] * sin(frequency[0] * y + phase[0])`` and
    ``y + amplitude[1] * cos(frequency[1] * x + phase[1])``.
    """
    x, y = _coordinates(height, width, device)
    across, down = waves(height, width, device, amplitude, frequency, phase)
    return (x + across[:, None]).nan_to_num_(_OUTSIDE), (y + down).nan_to_num_(_OUTSIDE)


def waves(
    height: int, width: int, device: torch.device, amplitude: tuple[float, float],
    frequency: tuple[float, float], phase: tuple[float, float],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the waves of `water_positions`: the offset of x for each y, and the offset of y for each x.

    Sine and cosine are computed in float64, because the last bit matters for positions near an integer.
    """
    x, y = _coordinates(height, width, device)
    across = torch.sin((frequency[0] * y[:, 0] + phase[0]).double()).float()
    down = torch.cos((frequency[1] * x + phase[1]).double()).float()
    return amplitude[0] * across, amplitude[1] * down


def sphere_positions(height: int, width: int, device: torch.device) -> Positions:
    """Return the input positions of the output pixels for an image on a sphere.

    The distance of an input position from the center is proportional to the square of the output pixel's distance.
    """
    x, y = _coordinates(height, width, device)
    x, y = x + (0.5 - width / 2), y + (0.5 - height / 2)
    scale = torch.hypot(x, y) / max(1, width // 2, height // 2)
    return scale * x + width / 2, scale * y + height / 2
