"""Warp images and volumes by affine maps, and compute the maps of rotations.

See `kernels.warp.sample` for the coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.folding import fold
from torchdali.kernels.warp.sample import TIE, Matrix, convert_fill, sample, sample_linear
from torchdali.kernels.warp.sample_opencv import warp_by_opencv

__all__ = ["affine_positions", "invert", "rotated_size", "rotation", "rotation_map", "warp_affine"]


def warp_affine(
    x: Tensor, matrix: Matrix, size: Sequence[int], *, linear: bool, fill: float | None,
    dtype: torch.dtype | None = None, out: Tensor | None = None, use_opencv: bool = True,
) -> Tensor:  # fmt: skip
    """Warp an image by an affine map from output positions to input positions: ``out(p) = in(M p)``.

    Args:
        x: ``(..., *spatial, C)``.
        matrix: Affine map from output positions to input positions.
        size: Spatial extents of the output.
        linear: True to interpolate linearly, False to use the pixel that contains the position.
        fill: Value outside of the image; None to repeat the edge.
        dtype: Dtype of the output; None for the input's dtype.
        out: Tensor to which the result may be written if it fits.
        use_opencv: True to use OpenCV if it is installed.
    """
    lengths = x.shape[-1 - len(size) : -1]
    dtype = dtype or x.dtype
    if not x.numel():
        shape = (*x.shape[: -1 - len(size)], *map(int, size), x.shape[-1])
        return torch.full(shape, fill or 0, device=x.device).to(dtype)
    if use_opencv and dtype == x.dtype and len(size) == 2:
        result = _by_opencv(x, matrix, size, linear, fill, out)
        if result is not None:
            return result
    if linear and len(size) == 2:
        return sample_linear(x, _affine_grid(matrix, size, lengths, x), fill, dtype)
    return sample(x, affine_positions(matrix, size, x.device), linear=linear, fill=fill, dtype=dtype)


def _by_opencv(
    x: Tensor,
    matrix: Matrix,
    size: Sequence[int],
    linear: bool,
    fill: float | None,
    out: Tensor | None,
) -> Tensor | None:
    tie = 0.0 if linear else TIE
    return warp_by_opencv(
        x, [(a, b, (a + b - 1) / 2 + t + tie) for a, b, t in matrix], size, out=out,
        mode="bilinear" if linear else "nearest", border="replicate" if fill is None else "constant",
        fill=(0.0 if fill is None else convert_fill(fill, x.dtype),),
    )  # fmt: skip


def _affine_grid(matrix: Matrix, size: Sequence[int], lengths: Sequence[int], x: Tensor) -> Tensor:
    """Return the input positions of all output pixels as a grid for `sample_linear`.

    x and y are computed as the real and imaginary parts of complex numbers, because this halves the number of
    operations.
    """
    (a, b, s), (c, d, t) = matrix
    width, height = 2 / lengths[1], 2 / lengths[0]
    float_dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    start = complex((a / 2 + b / 2 + s) * width - 1, (c / 2 + d / 2 + t) * height - 1)
    row = torch.arange(size[1], dtype=float_dtype, device=x.device) * complex(a * width, c * height)
    column = torch.arange(size[0], dtype=float_dtype, device=x.device) * complex(b * width, d * height) + start
    return torch.view_as_real(row + column[:, None])


def affine_positions(matrix: Matrix, size: Sequence[int], device: torch.device) -> list[Tensor]:
    """Return the input positions of all output pixels: one tensor per axis, x first."""
    positions = []
    for *factors, start in matrix:
        total: Tensor | None = None
        for axis, (factor, length) in enumerate(zip(reversed(factors), size, strict=True)):
            coordinates = torch.arange(0.5, length, dtype=torch.float32, device=device) * factor
            if axis == 0:
                coordinates += start
            shaped = coordinates.view(-1, *[1] * (len(size) - 1 - axis))
            total = shaped if total is None else total + shaped
        assert total is not None
        positions.append(total)
    return positions


@fold
def invert(matrix: Matrix) -> list[list[float]]:
    """Return the inverse of an affine map.

    Raises:
        RuntimeError: the matrix is singular.
    """
    if len(matrix) == 2:  # takes a fiftieth of the time of a library call
        (a, b, s), (c, d, t) = matrix
        if not (det := a * d - b * c):
            raise RuntimeError(f"the matrix must be invertible, got {[*map(list, matrix)]}")
        return [[d / det, -b / det, (b * t - d * s) / det], [-c / det, a / det, (c * s - a * t) / det]]
    square = torch.tensor([*map(list, matrix), [0.0, 0.0, 0.0, 1.0]], dtype=torch.float64)
    inverse: list[list[float]] = torch.linalg.inv(square)[:-1].tolist()
    return inverse


def rotation(angle: float, axis: Sequence[float] | None = None) -> list[list[float]]:
    """Return the matrix that rotates an image or a volume by an angle in degrees.

    An image is rotated counterclockwise as seen on the screen, where y points down. A volume is rotated around `axis`
    by the right-hand rule. On the screen, a rotation around the z axis is clockwise.
    """
    radians = _round_to_float32(math.radians(angle))
    c, s = math.cos(radians), math.sin(radians)
    if axis is None:
        return [[c, s], [-s, c]]
    c, s = _round_to_float32(c), _round_to_float32(s)
    norm = math.sqrt(sum(v * v for v in axis))
    x, y, z = (v / norm if norm else math.nan for v in axis)
    k = 1 - c
    return [
        [x * x * k + c, x * y * k - z * s, x * z * k + y * s],
        [x * y * k + z * s, y * y * k + c, y * z * k - x * s],
        [x * z * k - y * s, y * z * k + x * s, z * z * k + c],
    ]


def _round_to_float32(value: float) -> float:
    """Round to float32. The rounding changes some results of `rotated_size`, for example at 45 degrees."""
    return float(np.float32(value))


def rotated_size(matrix: Matrix, lengths: Sequence[int]) -> list[int]:
    """Return the size of the canvas that contains a rotated image or volume.

    As in DALI, the bounding box is rounded up, with a tolerance of 0.01. Then each output axis is compared with the
    input axis that is mainly rotated onto it. If one extent is odd and the other even, the output's extent grows by 1.

    Args:
        matrix: Matrix of the rotation; see `rotation`.
        lengths: Extents of the input.
    """
    extents = list(reversed(lengths))
    size = []
    for k, row in enumerate(matrix):
        parts = [abs(v) for v in row]
        extent = math.ceil(sum(p * n for p, n in zip(parts, extents, strict=True)) - 0.01)
        largest = max(parts)
        main = extents[k if parts[k] == largest else parts.index(largest)]
        size.append(extent + (extent - main) % 2)
    return size[::-1]


def rotation_map(matrix: Matrix, lengths: Sequence[int], size: Sequence[int]) -> list[list[float]]:
    """Return the affine map from output positions to input positions for a rotation around the center.

    Args:
        matrix: Matrix of the rotation; see `rotation`.
        lengths: Extents of the input.
        size: Extents of the output.
    """
    input_size, output_size = list(reversed(lengths)), list(reversed(size))
    return [
        [*row, n / 2 - sum(v * m / 2 for v, m in zip(row, output_size, strict=True))]
        for row, n in zip(zip(*matrix, strict=True), input_size, strict=True)
    ]
