"""Matrices of the discrete cosine transforms of types I to IV.

Source: K. R. Rao, P. Yip, Discrete Cosine Transform, 1990. A transform without normalization is the plain sum of
products; SciPy's result is twice this sum.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.device_cache import device_cache

__all__ = ["cosine_matrix"]


@device_cache(maxsize=32)
def cosine_matrix(size: int, count: int, kind: int, orthonormal: bool, lifter: float, device: torch.device) -> Tensor:
    """Return the float32 matrix ``(count, size)`` that computes the first `count` coefficients of a transform.

    Args:
        size: Size of the input; at least 2 for type I.
        count: Number of coefficients.
        kind: Type of the transform, from 1 to 4.
        orthonormal: True to scale the transform so that it is orthonormal; not supported for type I.
        lifter: If not 0, coefficient i is multiplied by ``1 + lifter / 2 * sin(pi (i + 1) / lifter)``.
        device: Device of the matrix.
    """
    n, k = np.arange(size)[None, :], np.arange(count)[:, None]
    if kind == 1:
        matrix = np.cos(np.pi * n * k / (size - 1))
        matrix[:, [0, -1]] *= 0.5
    else:
        half_n, half_k = (0.0 if kind == 3 else 0.5), (0.0 if kind == 2 else 0.5)
        matrix = np.cos(np.pi / size * (n + half_n) * (k + half_k))
        if kind == 3:
            matrix[:, 0] *= 0.5
    if orthonormal:
        matrix *= math.sqrt(2.0 / size)
        if kind == 2:
            matrix[0] *= math.sqrt(0.5)
        if kind == 3:
            matrix[:, 0] *= math.sqrt(2.0)
    if lifter:
        matrix *= 1.0 + lifter / 2.0 * np.sin(np.pi * (k + 1) / lifter)
    return torch.from_numpy(matrix.astype(np.float32)).to(device)
