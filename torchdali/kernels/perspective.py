"""Sample images at any positions: three interpolations, five kinds of border.

Positions are those of OpenCV and of maps: whole numbers are pixel centres, x before y.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import grid_sample, pad

from torchdali.kernels.convert import convert, convert_number
from torchdali.kernels.warp import Matrix

__all__ = ["BORDERS", "perspective_positions", "sample_at"]

BORDERS = ("constant", "replicate", "reflect", "reflect_101", "wrap")
_STEPS = 32  # positions within a pixel, where they are rounded


def perspective_positions(matrix: Matrix, height: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return where a 3x3 matrix takes the pixels ``(x, y, 1)`` of the output.

    Points at infinity come to (0, 0).
    """
    x = torch.arange(width, dtype=torch.float32, device=device)
    y = torch.arange(height, dtype=torch.float32, device=device)[:, None]
    u, v, w = (x * a + (y * b + c) for a, b, c in matrix)
    scale = torch.where(w == 0, 0.0, w.reciprocal())
    return u.mul_(scale), v.mul_(scale)


def quantised(position: Tensor) -> Tensor:
    """Round to steps of 1/32 pixel, as OpenCV does for some types."""
    return (position * _STEPS).round_().mul_(1 / _STEPS)


def sample_at(
    x: Tensor, positions: tuple[Tensor, Tensor], *, mode: str, border: str = "constant", fill: Sequence[float] = (0.0,)
) -> Tensor:
    """Sample images at positions.

    Args:
        x: ``(..., H, W, C)``, any real dtype; the result has the same, rounded and saturated.
        positions: x and y, of the output's shape ``(h, w)``.
        mode: ``"nearest"`` (the pixel that contains the position), ``"bilinear"`` or ``"bicubic"`` (a = -0.75).
        border: One of `BORDERS`.
        fill: For ``"constant"``: one value or one a channel.

    Returns:
        ``(..., h, w, C)``.
    """
    colors = torch.tensor([convert_number(float(v), x.dtype) for v in fill], dtype=torch.float32, device=x.device)
    if mode == "nearest":
        return _nearest(x, positions, border, colors)
    kind = torch.float64 if x.dtype == torch.float64 else torch.float32
    lead, channels = x.shape[:-3], x.shape[-1]
    values = x.to(kind)
    filled = border == "constant" and bool(colors.any())
    if filled:  # what is outside is zero for `grid_sample`
        values = values - colors
    planes = values.movedim(-1, -3)
    planes = planes.reshape(1, -1, *planes.shape[-2:])
    out = _interpolated(planes, positions, mode, border).view(*lead, channels, *positions[0].shape).movedim(-3, -1)
    return convert(out + colors if filled else out, x.dtype).contiguous()


def _interpolated(planes: Tensor, positions: tuple[Tensor, Tensor], mode: str, border: str) -> Tensor:
    height, width = planes.shape[-2:]
    x, y = positions
    if border == "wrap":  # what interpolation reads is at most two pixels away
        planes = pad(planes, (2, 2, 2, 2), "circular") if min(height, width) >= 2 else _wrapped(planes)
        x, y = x.remainder(width) + 2, y.remainder(height) + 2
    padding = {"constant": "zeros", "replicate": "border", "wrap": "border"}.get(border, "reflection")
    height, width = planes.shape[-2:]
    corners = border == "reflect_101" and min(height, width) > 1
    if corners:
        grid = torch.complex(x * (2 / (width - 1)) - 1, y * (2 / (height - 1)) - 1)
    else:
        grid = torch.complex((x + 0.5) * (2 / width) - 1, (y + 0.5) * (2 / height) - 1)
    flat = torch.view_as_real(grid)[None].to(planes.dtype)
    return grid_sample(planes, flat, mode=mode, padding_mode=padding, align_corners=corners)


def _wrapped(planes: Tensor) -> Tensor:
    """Pad circularly by two, also where there is a single row or column."""
    height, width = planes.shape[-2:]
    rows = torch.arange(-2, height + 2, device=planes.device).remainder(height)
    columns = torch.arange(-2, width + 2, device=planes.device).remainder(width)
    return planes[..., rows, :][..., columns]


def _nearest(x: Tensor, positions: tuple[Tensor, Tensor], border: str, colors: Tensor) -> Tensor:
    height, width, channels = x.shape[-3:]
    # Far outside is as good as just outside, except where the image repeats.
    column, row = (p.round().clamp_(-(2.0**30), 2.0**30).to(torch.int64) for p in positions)
    index = _mapped(row, height, border) * width + _mapped(column, width, border)
    unsigned = x.dtype == torch.uint16  # not every PyTorch selects from it
    source = x.view(torch.int16) if unsigned else x
    pixels = source.reshape(*x.shape[:-3], -1, channels).index_select(-2, index.flatten())
    out = pixels.view(*x.shape[:-3], *index.shape, channels)
    if unsigned:
        out = out.view(x.dtype)
    if border != "constant":
        return out
    outside = (row < 0) | (row >= height) | (column < 0) | (column >= width)
    return torch.where(outside[..., None], convert(colors, x.dtype), out)


def _mapped(i: Tensor, length: int, border: str) -> Tensor:
    """Return the pixel that stands for each index."""
    if border == "wrap":
        return i.remainder(length)
    if border == "reflect":
        i = i.remainder(2 * length)
        return i.minimum(2 * length - 1 - i)
    if border == "reflect_101" and length > 1:
        i = i.remainder(2 * length - 2)
        return i.minimum(2 * length - 2 - i)
    return i.clamp(0, length - 1)
