"""Draw from the beta distribution, given uniform random numbers.

A beta variate is ``X / (X + Y)`` for two gamma variates. Gamma variates are drawn with the rejection method of
Marsaglia and Tsang, "A simple method for generating gamma variables" (2000), with at most three attempts.
"""

from __future__ import annotations

import numpy as np

from torchdali.kernels.memory import Array

__all__ = ["DRAWS", "Gammas", "beta"]


_ATTEMPTS = 3
DRAWS = 2 * (3 * _ATTEMPTS + 1)
"""Number of uniform random numbers that are needed for one number of the beta distribution."""


class Gammas:
    """The two gamma distributions of a beta distribution, with precomputed constants.

    Args:
        alpha: First parameters of the beta distributions, above 0: ``(batch, 1)``, or ``(1, 1)`` for all samples.
        beta: Second parameters, above 0: ``(batch, 1)``, or ``(1, 1)`` for all samples.
    """

    def __init__(self, alpha: Array, beta: Array) -> None:
        self.shape = np.stack(np.broadcast_arrays(alpha.T, beta.T))  # (2, 1, batch): NumPy loops over the longest axis
        self.depth = self.shape + 2 / 3
        self.root = np.sqrt(9 * self.depth)
        self.log = np.log(self.depth)

    def betas(self, draws: Array) -> Array:
        """Compute numbers ``(batch, n)`` from uniform numbers ``(batch, n * DRAWS)``; see `beta`."""
        return beta(draws.reshape(len(draws), draws.shape[1] // DRAWS, DRAWS), self)


def beta(draws: Array, gammas: Gammas) -> Array:
    """Compute numbers of the beta distribution, as ``X / (X + Y)`` of two gamma variates.

    Args:
        draws: Uniform numbers in [0, 1), ``(batch, n, DRAWS)``.
        gammas: Parameters of the two gamma distributions.

    Returns:
        ``(batch, n)``, in [0, 1]. A number is NaN if no attempt was accepted, which happens about once in 20,000
        numbers.
    """
    transposed = draws.reshape(*draws.shape[:2], 2, DRAWS // 2).transpose(3, 2, 1, 0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        first, second = _log_gammas(np.ascontiguousarray(transposed), gammas)
        values: Array = 1 / (1 + np.exp(second - first))
    return values.T


def _log_gammas(draws: Array, gammas: Gammas) -> Array:
    """Return logarithms of gamma variates, ``(2, n, batch)``.

    The rejection method requires a shape parameter of at least 1. So this function draws a variate with the parameter
    ``shape + 1``, and multiplies it by ``u ** (1 / shape)``, where ``u`` is a uniform random number. The product is a
    variate with the parameter ``shape``.

    Args:
        draws: Uniform numbers ``(DRAWS / 2, 2, n, batch)``.
    """
    logs = np.log1p(-draws)
    radius, angle, test = (slice(1 + i, None, 3) for i in range(3))
    normal = np.sqrt(-2 * logs[radius]) * np.cos(2 * np.pi * draws[angle])
    v = 1 + normal / gammas.root
    v *= v * v
    log_v = np.log(v)  # NaN if v is negative; the attempt is then not accepted
    accepted = logs[test] < normal * normal / 2 + gammas.depth * (1 - v + log_v)
    first = np.full(log_v.shape[1:], np.nan)
    for attempt in reversed(range(_ATTEMPTS)):
        np.copyto(first, log_v[attempt], where=accepted[attempt])
    log_gammas: Array = first + gammas.log + logs[0] / gammas.shape
    return log_gammas
