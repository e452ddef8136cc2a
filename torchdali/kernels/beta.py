"""Numbers of the beta distribution, computed from uniform ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["DRAWS", "beta"]

Array = npt.NDArray[Any]

_ATTEMPTS = 3
DRAWS = 2 * (3 * _ATTEMPTS + 1)
"""Uniform numbers that each number takes."""


def beta(draws: Array, alpha: Array, beta: Array) -> Array:
    """Compute ``X / (X + Y)`` of two gamma variates.

    Args:
        draws: ``(..., DRAWS)``, in [0, 1).
        alpha: Positive, of as many axes as the result.
        beta: The same.

    Returns:
        ``(...)``, in [0, 1]; NaN where no attempt was accepted, which is about once in 20,000 numbers.
    """
    shapes = np.empty((*draws.shape[:-1], 2))
    shapes[..., 0], shapes[..., 1] = alpha, beta
    logarithms = _log_gamma(draws.reshape(-1, DRAWS // 2), shapes.reshape(-1, 1))
    sides = logarithms.reshape(shapes.shape)
    with np.errstate(over="ignore"):
        found: Array = 1 / (1 + np.exp(sides[..., 1] - sides[..., 0]))
    return found


def _log_gamma(draws: Array, shape: Array) -> Array:
    """Return logarithms of gamma variates (Marsaglia and Tsang, "A simple method for generating gamma variables").

    One of ``shape + 1`` and a power of another uniform number are one of ``shape``, however small that is.

    Args:
        draws: ``(n, DRAWS / 2)``.
        shape: ``(n, 1)``.
    """
    logs = np.log1p(-draws)
    radius, angle, test = (slice(1 + i, None, 3) for i in range(3))
    d = shape + 2 / 3
    normal = np.sqrt(-2 * logs[:, radius]) * np.cos(2 * np.pi * draws[:, angle])
    v = 1 + normal / np.sqrt(9 * d)
    v *= v * v
    with np.errstate(invalid="ignore", divide="ignore"):  # v is not positive: not accepted
        log_v = np.log(v)
        accepted = logs[:, test] < normal * normal / 2 + d * (1 - v + log_v)
    log_v[~accepted] = np.nan
    first = log_v[np.arange(len(draws)), accepted.argmax(1)]
    found: Array = first + np.log(d[:, 0]) + logs[:, 0] / shape[:, 0]
    return found
