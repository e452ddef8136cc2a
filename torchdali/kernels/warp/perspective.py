"""Sample images at any positions, with three interpolations and five border modes.

Positions are defined as in OpenCV: pixel centers are at integers, and x is before y.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from torchdali.kernels.convert import convert, convert_number
from torchdali.kernels.warp.sample import Matrix, interpolate, nearest_index, sample_nearest
from torchdali.kernels.warp.sample_opencv import warp_by_opencv

__all__ = ["BORDERS", "perspective_positions", "sample_at", "warp_perspective"]

BORDERS = ("constant", "replicate", "reflect", "reflect_101", "wrap")
_STEPS = 32  # `_quantize` rounds positions to 1/32 pixel


def warp_perspective(
    x: Tensor, matrix: Matrix, size: Sequence[int], *, mode: str, border: str = "constant",
    fill: Sequence[float] = (0.0,), out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Warp an image by a perspective: ``out(x, y) = in(u / w, v / w)`` with ``(u, v, w) = matrix (x, y, 1)``.

    Points at infinity (``w == 0``) have arbitrary values.

    Args:
        x: ``(..., H, W, C)``.
        matrix: 3x3 matrix.
        size: Height and width of the output.
        mode, border, fill: See `sample_at`.
        out: Tensor to which the result may be written if it fits.
    """
    if x.dtype == torch.uint8:
        result = warp_by_opencv(x, matrix, size, mode=mode, border=border, fill=fill, out=out)
        if result is not None:
            return result
    rounded = mode == "bilinear" and x.dtype == torch.int16
    if mode == "nearest" or border in ("wrap", "reflect_101") or rounded or len(set(fill)) > 1:
        u, v = perspective_positions(matrix, size[0], size[1], x.device)
        if rounded:  # as in DALI, only for this dtype
            u, v = _quantize(u), _quantize(v)
        return sample_at(x, (u, v), mode=mode, border=border, fill=fill)
    base = convert_number(float(fill[0]), x.dtype) if border == "constant" else 0.0
    grid = _perspective_grid(matrix, size, x.shape[-3:-1], x.device)
    return interpolate(x, grid, mode=mode, padding=_PADDING.get(border, "reflection"), base=base, dtype=x.dtype)


def _perspective_grid(matrix: Matrix, size: Sequence[int], lengths: Sequence[int], device: torch.device) -> Tensor:
    """Return the input positions of all output pixels as a grid for `interpolate`; see `affine._affine_grid`."""
    x = torch.arange(size[1], dtype=torch.float32, device=device)
    y = torch.arange(size[0], dtype=torch.float32, device=device)[:, None]
    columns = list(zip(*matrix, strict=True))
    height, width = lengths
    a, b, c = (
        complex(u * (2 / width) + w * (1 / width - 1), v * (2 / height) + w * (1 / height - 1)) for u, v, w in columns
    )
    g, h, i = matrix[2]
    return torch.view_as_real((x * a + (y * b + c)) * (x * g + (y * h + i)).reciprocal_())


def perspective_positions(matrix: Matrix, height: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the input positions, x and y, of all output pixels. Positions at infinity become (0, 0)."""
    x = torch.arange(width, dtype=torch.float32, device=device)
    y = torch.arange(height, dtype=torch.float32, device=device)[:, None]
    u, v, w = (x * a + (y * b + c) for a, b, c in matrix)
    scale = torch.where(w == 0, 0.0, w.reciprocal())
    return u.mul_(scale), v.mul_(scale)


def _quantize(position: Tensor) -> Tensor:
    """Round to steps of 1/32 pixel, as OpenCV does for some dtypes."""
    return (position * _STEPS).round_().mul_(1 / _STEPS)


def sample_at(
    x: Tensor,
    positions: tuple[Tensor, Tensor],
    *,
    mode: str,
    border: str = "constant",
    fill: Sequence[float] = (0.0,),
) -> Tensor:
    """Sample images at positions.

    Args:
        x: Images ``(..., H, W, C)`` of any real dtype; the result is rounded and saturated to the same dtype.
        positions: Tensors of x and y, each with the output's shape ``(h, w)``.
        mode: "nearest" (the pixel that contains the position), "bilinear", or "bicubic" (with the parameter -0.75).
        border: One of `BORDERS`.
        fill: Value outside of the image for the border mode "constant": one value, or one value per channel.

    Returns:
        ``(..., h, w, C)``.
    """
    colors = [convert_number(float(v), x.dtype) for v in fill]
    if mode == "nearest":
        return _nearest(x, positions, border, colors)
    base = colors[0] if border == "constant" else 0.0
    if border != "constant" or len(set(colors)) == 1:
        return _interpolate(x, positions, mode, border, base, x.dtype)
    fill_color = torch.tensor(colors, dtype=torch.float32, device=x.device)
    return convert(_interpolate(x - fill_color, positions, mode, border, 0.0, torch.float32) + fill_color, x.dtype)


_PADDING = {"constant": "zeros", "replicate": "border", "wrap": "border"}


def _interpolate(
    x: Tensor,
    positions: tuple[Tensor, Tensor],
    mode: str,
    border: str,
    base: float,
    dtype: torch.dtype,
) -> Tensor:
    u, v = positions
    if border == "wrap":  # interpolation reads at most two pixels beyond a position
        u, v = u.remainder(x.shape[-2]) + 2, v.remainder(x.shape[-3]) + 2
        x = _wrap_pad(x)
    height, width = x.shape[-3:-1]
    align_corners = border == "reflect_101" and min(height, width) > 1
    if align_corners:
        grid = torch.complex(u * (2 / (width - 1)) - 1, v * (2 / (height - 1)) - 1)
    else:
        grid = torch.complex(u * (2 / width) + (1 / width - 1), v * (2 / height) + (1 / height - 1))
    padding = _PADDING.get(border, "reflection")
    return interpolate(
        x,
        torch.view_as_real(grid),
        mode=mode,
        padding=padding,
        align_corners=align_corners,
        base=base,
        dtype=dtype,
    )


def _wrap_pad(x: Tensor) -> Tensor:
    """Pad each side with two pixels from the opposite side."""
    height, width = x.shape[-3:-1]
    rows = torch.arange(-2, height + 2, device=x.device).remainder(height)
    columns = torch.arange(-2, width + 2, device=x.device).remainder(width)
    return x[..., rows, :, :][..., columns, :]


def _nearest(x: Tensor, positions: tuple[Tensor, Tensor], border: str, colors: Sequence[float]) -> Tensor:
    constant = border == "constant"
    height, width = x.shape[-3:-1]
    rounded = [p.round() for p in positions]
    if border == "replicate" or (constant and len(set(colors)) == 1):
        index = nearest_index(rounded, (height, width), constant)
        return sample_nearest(x, index, colors[0] if constant else None, x.dtype)
    # Clamping positions far outside of the image changes the result only if the border mode repeats the image.
    column, row = (p.clamp_(-(2.0**30), 2.0**30).to(torch.int64) for p in rounded)
    index = _map_pixels(row, height, border) * width + _map_pixels(column, width, border)
    out = sample_nearest(x, index, None, x.dtype)
    if not constant:
        return out
    outside = (row < 0) | (row >= height) | (column < 0) | (column >= width)
    return torch.where(outside[..., None], torch.tensor(colors, dtype=x.dtype, device=x.device), out)


def _map_pixels(i: Tensor, length: int, border: str) -> Tensor:
    """Map indices, which may be outside of the image, to the indices of pixels, by a border mode."""
    if border == "wrap":
        return i.remainder(length)
    if border == "reflect":
        i = i.remainder(2 * length)
        return i.minimum(2 * length - 1 - i)
    if border == "reflect_101" and length > 1:
        i = i.remainder(2 * length - 2)
        return i.minimum(2 * length - 2 - i)
    return i.clamp(0, length - 1)
