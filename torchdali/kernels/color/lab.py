"""Convert between RGB and 8-bit CIE L*a*b* (white point D65, sRGB primaries).

L is scaled to 0..255, and 128 is added to a and b. The conversion to Lab rounds in the same way as OpenCV's tables. The
conversion to RGB rounds to the nearest level. If OpenCV is installed, OpenCV is used for both conversions.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device_cache import device_cache
from torchdali.kernels.folding import fold
from torchdali.kernels.opencv import opencv_for

__all__ = ["lab_to_rgb", "rgb_to_lab"]

# Matrix from linear sRGB to XYZ; before use, each row is divided by the white point's coordinate.
_TO_XYZ = np.array(
    [
        [0.412453, 0.357580, 0.180423],
        [0.212671, 0.715160, 0.072169],
        [0.019334, 0.119193, 0.950227],
    ]
)
_WHITE = np.array([0.950456, 1.0, 1.088754])
_BITS = 12  # fractional bits of the matrix
_UNIT = 1 << 15  # value that represents 1 in the cube roots
_LEVELS = 255 * 8  # linear intensities are integers from 0 to this value: eight steps per level


def rgb_to_lab(x: Tensor) -> Tensor:
    """Convert a uint8 image ``(H, W, 3)`` from RGB to Lab. If OpenCV isn't used, leading axes are allowed."""
    if (cv2 := opencv_for(x)) is not None:
        return torch.from_numpy(cv2.cvtColor(x.contiguous().numpy(), cv2.COLOR_RGB2LAB))
    linear, roots, matrix = _forward_tables(x.device)
    light = linear.take(x.to(torch.int64)).to(torch.float64)
    xyz = (light @ matrix).to(torch.int64)  # integers below 2**53 are exact
    f = roots.take((xyz + (1 << (_BITS - 1))) >> _BITS)
    fx, fy, fz = f.unbind(-1)
    lightness = (116 * 255 + 50) // 100 * fy - (16 * 255 * _UNIT + 50) // 100
    lab = torch.stack([lightness, 500 * (fx - fy) + 128 * _UNIT, 200 * (fy - fz) + 128 * _UNIT], -1)
    return ((lab + _UNIT // 2) // _UNIT).clamp_(0, 255).to(torch.uint8)


@device_cache(maxsize=16)
@fold
def _forward_tables(device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Return two lookup tables and a matrix for `rgb_to_lab`.

    The first table has the linear intensity of each level, and the second the cube root of each intensity. The matrix
    converts linear RGB to XYZ, in integers.
    """
    level = np.arange(256) / 255
    linear = np.where(level <= 0.04045, level / 12.92, ((level + 0.055) / 1.055) ** 2.4)
    y = np.arange(256 * 12) / _LEVELS
    roots = np.where(y < 0.008856, 7.787 * y + 0.13793103448275862, np.cbrt(y))
    matrix = np.rint(_TO_XYZ / _WHITE[:, None] * (1 << _BITS))
    return (
        torch.from_numpy(np.rint(linear * _LEVELS).astype(np.int64)).to(device),
        torch.from_numpy(np.rint(roots * _UNIT).astype(np.int64)).to(device),
        torch.from_numpy(matrix.T.copy()).to(device),
    )


def lab_to_rgb(lightness: Tensor, lab: Tensor, out: Tensor) -> None:
    """Convert an image from Lab to RGB, with a new lightness channel. Colors that RGB can't represent are clipped.

    Args:
        lightness: New lightness ``(H, W)``, uint8.
        lab: Image ``(H, W, 3)``, uint8; its lightness channel may be overwritten.
        out: ``(H, W, 3)`` uint8, to which the result is written.
    """
    if (cv2 := opencv_for(lab)) is not None:
        changed = cv2.insertChannel(lightness.numpy(), lab.numpy(), 0)
        cv2.cvtColor(changed, cv2.COLOR_LAB2RGB, out.numpy())
        return
    a, b = lab[..., 1:].to(torch.float32).unbind(-1)
    fy = (lightness.to(torch.float32) * (100 / 255) + 16) / 116
    f = torch.stack([fy + (a - 128) / 500, fy, fy - (b - 128) / 200], -1)
    xyz = torch.where(f > 6 / 29, f**3, (f - 16 / 116) / 7.787)
    light = (xyz @ _backward_matrix(lab.device)).clamp_(0, 1)
    rgb = torch.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)
    out.copy_((rgb * 255).round_())


@device_cache(maxsize=16)
@fold
def _backward_matrix(device: torch.device) -> Tensor:
    matrix = np.linalg.inv(_TO_XYZ / _WHITE[:, None])
    return torch.from_numpy(matrix.T.astype(np.float32)).to(device)
