"""Compute the distortion of images by JPEG compression, without encoding them.

The results are the same as from libjpeg with baseline JPEG (ITU-T T.81, with the quantization tables of its annex K).
The steps are: conversion to YCbCr, reduction of chroma to half height and width, cosine transform of 8x8 blocks,
rounding of the coefficients to multiples of the table's values, and the inverse steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.device.tables import upload
from torchdali.kernels.device_cache import device_cache
from torchdali.kernels.folding import fold

__all__ = ["distort", "distort_each"]

_BLOCK = 8

_LUMA = """
16 11 10 16 24 40 51 61 12 12 14 19 26 58 60 55 14 13 16 24 40 57 69 56 14 17 22 29 51 87 80 62
18 22 37 56 68 109 103 77 24 35 55 64 81 104 113 92 49 64 78 87 103 121 120 101 72 92 95 98 112 100 103 99
"""
_CHROMA = """
17 18 24 47 99 99 99 99 18 21 26 66 99 99 99 99 24 26 56 99 99 99 99 99 47 66 99 99 99 99 99 99
99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99
"""

# Color conversions in units of 2**-16: factors and offset of each channel. The conversion to YCbCr rounds halves of
# chroma down.
_TO_YCC = (
    ((19595, 38470, 7471), 1 << 15),
    ((-11059, -21709, 32768), (128 << 16) + (1 << 15) - 1),
    ((32768, -27439, -5329), (128 << 16) + (1 << 15) - 1),
)
_TO_RGB = (
    ((65536, 0, 91881), 1 << 15),
    ((65536, -22554, -46802), 1 << 15),
    ((65536, 116130, 0), 1 << 15),
)

# The first half of each row of the integer cosine transform, which is ``8192 * sqrt(8)`` times the orthonormal
# transform. The second half mirrors the first half, with the opposite sign in odd rows. The values are sums of 13-bit
# constants, as in Loeffler, Ligtenberg and Moschytz, "Practical fast 1-D DCT algorithms with 11 multiplications", 1989.
_WAVES = """
8192 8192 8192 8192
11363 9633 6437 2260
10703 4433 -4433 -10703
9633 -2259 -11362 -6436
8192 -8192 -8192 8192
6437 -11362 2261 9633
4433 -10704 10704 -4433
2260 -6436 9633 -11363
"""


def distort(x: Tensor, quality: int) -> Tensor:
    """Return images after JPEG compression and decompression.

    Args:
        x: RGB images ``(..., H, W, 3)``, uint8.
        quality: JPEG quality, from 1 to 100.
    """
    return _distort(x, _tables(quality, x.device))


def distort_each(x: Tensor, qualities: Sequence[int]) -> Tensor:
    """Compute `distort` for images ``(N, H, W, 3)`` with one quality per image."""
    tables = np.stack([_scale_table(quality) for quality in qualities], 1)
    return _distort(x, upload(tables[:, :, None, None], x.device))


def _distort(x: Tensor, tables: Tensor) -> Tensor:
    height, width = x.shape[-3:-1]
    luma, blue, red = _convert(x.to(torch.int32).unbind(-1), _TO_YCC)
    luma = _quantize(luma, tables[0])[..., :height, :width]
    size = (height + 1) // 2, (width + 1) // 2
    blue, red = (_double(_quantize(_halve(chroma), tables[1])[..., : size[0], : size[1]]) for chroma in (blue, red))
    chroma = [plane[..., :height, :width] - 128 for plane in (blue, red)]
    return torch.stack(_convert((luma, *chroma), _TO_RGB), -1).clamp_(0, 255).to(torch.uint8)


def _convert(planes: Sequence[Tensor], matrix: Sequence[tuple[Sequence[int], int]]) -> list[Tensor]:
    a, b, c = planes
    return [(a * u + b * v + c * w + offset) >> 16 for (u, v, w), offset in matrix]


def _extend(x: Tensor, rows: int, columns: int) -> Tensor:
    """Repeat the last row and column until height and width are multiples of `rows` and `columns`."""
    for axis, multiple in ((-2, rows), (-1, columns)):
        missing = -x.shape[axis] % multiple
        if missing:
            last = x.narrow(axis, x.shape[axis] - 1, 1)
            x = torch.cat([x, *[last] * missing], axis)
    return x


def _halve(x: Tensor) -> Tensor:
    """Return the means of 2x2 pixels, with halves alternately rounded down and up."""
    x = _extend(x, 2, 2 * _BLOCK)  # only to the right up to a whole block; at the bottom, `_quantize` extends the means
    pairs = x[..., 0::2, :] + x[..., 1::2, :]
    total = pairs[..., 0::2] + pairs[..., 1::2]
    total[..., 0::2] += 1
    total[..., 1::2] += 2
    return total >> 2


def _double(x: Tensor) -> Tensor:
    """Double height and width.

    On each axis, a new pixel is the sum of 3/4 of the nearest pixel and 1/4 of the second nearest pixel.
    """
    if x.shape[-1] <= 2:  # as in libjpeg, the pixels are only repeated
        return x.repeat_interleave(2, -2).repeat_interleave(2, -1)
    total = _blend_neighbours(x, -2)
    total = _blend_neighbours(total, -1)
    total[..., 0::2] += 8
    total[..., 1::2] += 7
    return total >> 4


def _blend_neighbours(x: Tensor, axis: int) -> Tensor:
    last = x.shape[axis] - 1
    before = torch.cat([x.narrow(axis, 0, 1), x.narrow(axis, 0, last)], axis)
    after = torch.cat([x.narrow(axis, 1, last), x.narrow(axis, last, 1)], axis)
    axis += x.dim()
    return torch.stack([x * 3 + before, x * 3 + after], axis + 1).flatten(axis, axis + 1)


def _quantize(x: Tensor, table: Tensor) -> Tensor:
    """Transform blocks, round the coefficients to multiples of the table's values, and invert the transform."""
    waves = _waves(x.device)
    x = _extend(x, _BLOCK, _BLOCK) - 128
    rows, columns = x.shape[-2] // _BLOCK, x.shape[-1] // _BLOCK
    blocks = x.view(*x.shape[:-2], rows, _BLOCK, columns, _BLOCK).transpose(-3, -2)
    # float64 represents the sums exactly. The sums are rounded in the same steps as in libjpeg's integer transform.
    coefficients = _shift_rounded(waves @ _shift_rounded(blocks.to(torch.float64) @ waves.T, 11), 15)
    levels = (coefficients.abs() + table * 4).div_(table * 8, rounding_mode="floor")
    coefficients = levels.copysign_(coefficients).mul_(table)
    pixels = _shift_rounded(_shift_rounded(waves.T @ coefficients, 11) @ waves, 18)
    pixels = pixels.add_(128).clamp_(0, 255).to(torch.int32)
    return pixels.transpose(-3, -2).flatten(-2, -1).flatten(-3, -2)


def _shift_rounded(x: Tensor, bits: int) -> Tensor:
    """Divide by a power of two and round, halves up."""
    return x.mul_(0.5**bits).add_(0.5).floor_()


@device_cache(maxsize=16)
@fold
def _waves(device: torch.device) -> Tensor:
    return torch.from_numpy(_transform()).to(device)


def _transform() -> npt.NDArray[np.float64]:
    half = np.array(_WAVES.split(), np.float64).reshape(_BLOCK, _BLOCK // 2)
    sign = np.array([1.0, -1.0] * (_BLOCK // 2))[:, None]
    return np.concatenate([half, half[:, ::-1] * sign], 1)


def _base_tables() -> npt.NDArray[np.int64]:
    return np.array([[int(v) for v in text.split()] for text in (_LUMA, _CHROMA)])


@device_cache(maxsize=256)
def _tables(quality: int, device: torch.device) -> Tensor:
    """Return the quantization tables of luma and chroma, ``(2, 8, 8)``."""
    return torch.from_numpy(_scale_table(quality)).to(device)


def _scale_table(quality: int) -> npt.NDArray[np.float64]:
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    steps = ((_base_tables() * percent + 50) // 100).clip(1, 255).reshape(2, _BLOCK, _BLOCK)
    return steps.astype(np.float64)
