"""Convert the pixels of a file to the requested output type and dtype.

The pixels are ``(H, W, C)`` in the dtype of the file: uint8, uint16 or float32 with a full scale of 255, 65535 or 1.
The conversion rescales, unlike a cast: the uint8 value 100 becomes 25700 in uint16, and 0.392157 in float32.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from torchdali.codecs._image_orientation import flip_axes
from torchdali.kernels.convert import convert, full_scale

__all__ = ["DTYPES", "OUTPUT_TYPES", "Weights", "gray", "rescale", "to_output"]

OUTPUT_TYPES = ("RGB", "BGR", "GRAY", "YCbCr", "ANY_DATA")

DTYPES = (
    torch.uint8,
    torch.int8,
    torch.uint16,
    torch.int16,
    torch.uint32,
    torch.int32,
    torch.float32,
)


class Weights(NamedTuple):
    """Fixed-point weights for gray: ``(red * R + green * G + blue * B + offset) >> shift``."""

    red: int
    green: int
    blue: int
    offset: int
    shift: int


_BAND = 1 << 18  # maximum number of values that are converted at a time

_GRAY_FLOAT = (0.299, 0.587, 0.114)

_YCBCR = (
    (0.25678823529, 0.50412941176, 0.09790588235),
    (-0.14822289945, -0.29099278682, 0.43921568627),
    (0.43921568627, -0.36778831435, -0.07142737192),
)


def to_output(pixels: Tensor, output_type: str, dtype: torch.dtype, weights: Weights | None) -> Tensor:
    """Convert pixels to an output type and a dtype.

    Args:
        pixels: The file's pixels ``(H, W, C)``. One channel is gray; two channels are gray and alpha.
        output_type: One of `OUTPUT_TYPES`. ANY_DATA keeps the channels; other types drop alpha.
        dtype: Dtype of the result.
        weights: Fixed-point weights for the conversion to gray; None to convert in floating point and to round.

    Returns:
        ``(H, W, 1 or 3)``, or ``(H, W, C)`` for ANY_DATA.
    """
    height, width, channels = pixels.shape
    out_channels = channels if output_type == "ANY_DATA" else 1 if output_type == "GRAY" else 3
    if pixels.dtype == dtype and channels == out_channels and output_type not in ("BGR", "YCbCr"):
        return pixels
    rows = max(1, _BAND // (width * channels))
    if height <= rows:
        return _convert(pixels, output_type, dtype, weights)
    out = torch.empty((height, width, out_channels), dtype=dtype)  # small bands of rows have small intermediate results
    for top in range(0, height, rows):
        band = slice(top, top + rows)
        out[band] = _convert(pixels[band], output_type, dtype, weights)
    return out


def _convert(pixels: Tensor, output_type: str, dtype: torch.dtype, weights: Weights | None) -> Tensor:
    if output_type == "ANY_DATA":
        return rescale(pixels, dtype)
    if output_type == "GRAY":
        return rescale(gray(pixels, weights), dtype)
    if output_type == "YCbCr":
        return _ycbcr(_three_channels(pixels), dtype)
    pixels = rescale(_three_channels(pixels), dtype)
    return flip_axes(pixels, 2) if output_type == "BGR" else pixels


def rescale(pixels: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert to another dtype, from full scale to full scale; values are rounded and clamped."""
    if pixels.dtype == dtype:
        return pixels
    return convert(pixels.float() * _ratio(dtype, pixels.dtype), dtype)


def _ratio(target: torch.dtype, source: torch.dtype) -> Tensor:
    """Return the ratio of full scales, divided in single precision as in DALI."""
    return torch.tensor(full_scale(target), dtype=torch.float32) / full_scale(source)


def _three_channels(pixels: Tensor) -> Tensor:
    channels = pixels.shape[2]
    if channels == 3:
        return pixels
    if channels > 3:
        return pixels[:, :, :3].contiguous()
    return pixels[:, :, :1].expand(-1, -1, 3).contiguous()


def gray(pixels: Tensor, weights: Weights | None = None, *, rounded: bool = True) -> Tensor:
    """Convert to one gray channel in the pixels' dtype.

    Args:
        pixels: ``(H, W, C)``.
        weights: Fixed-point weights; None for floating point.
        rounded: If True, a floating-point result is rounded to the pixels' dtype; if False, the result is truncated.
    """
    if pixels.shape[2] < 3:
        return pixels[:, :, :1].contiguous()
    if weights is None or pixels.dtype == torch.float32:
        luma = _weighted_sum(pixels.float(), _GRAY_FLOAT)
        return convert(luma, pixels.dtype, rounding="round" if rounded else "truncate")[:, :, None]
    red, green, blue = pixels[:, :, :3].to(torch.int32).unbind(2)  # 65535 << 15 fits into int32
    luma = red * weights.red + green * weights.green + blue * weights.blue
    return (luma.add_(weights.offset) >> weights.shift).to(pixels.dtype)[:, :, None]


def _weighted_sum(pixels: Tensor, weights: tuple[float, float, float]) -> Tensor:
    """Return a weighted sum of three channels; each product is rounded to single precision before the addition."""
    red, green, blue = (pixels[:, :, i] * weights[i] for i in range(3))
    return red.add_(green).add_(blue)


def _ycbcr(pixels: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert to ITU-R BT.601 YCbCr with limited range.

    In uint8, luma is 16 to 235, and chroma is centered at 128; other dtypes are scaled.
    """
    ratio = torch.tensor(full_scale(dtype) / full_scale(pixels.dtype), dtype=torch.float32)
    middle = 0.5 if dtype.is_floating_point else (full_scale(dtype) + 1) / 2
    colors = pixels.float()
    planes = []
    for weights, offset in zip(_YCBCR, (middle / 8, middle, middle), strict=True):
        scaled = torch.tensor(weights, dtype=torch.float32) * ratio
        red, green, blue = scaled.tolist()
        planes.append(_weighted_sum(colors, (red, green, blue)).add_(offset))
    return convert(torch.stack(planes, dim=2), dtype)
