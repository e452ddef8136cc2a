"""Levels of signals: decibels, the part that is not silent, and preemphasis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.memory import Array, is_plain

__all__ = ["decibels", "decibels_of_rows", "nonsilent", "preemphasis"]

_LEAST = 2.0**-149  # the smallest float32


def decibels(x: Tensor, multiplier: float, reference: float | None, cutoff: float) -> Tensor:
    """Return ``multiplier * log10(max(x / reference, 10 ** (cutoff / multiplier)))``.

    Args:
        x: Any shape, float32.
        reference: None: the largest value, or 1 if that is not positive.
    """
    if is_plain(x):
        return decibels_of_rows(x.reshape(1, -1), [1], multiplier, reference, cutoff).view(x.shape)
    if reference is None:
        top = x.detach().amax() if x.numel() else x.new_ones(())
        ratio = x / torch.where(top > 0, top, torch.ones_like(top))
    else:
        ratio = x / reference
    return ratio.fmax(ratio.new_full((), _least(multiplier, cutoff))).log10() * multiplier


def _least(multiplier: float, cutoff: float) -> float:
    """Return the ratio of the cutoff, at least a little above 0, since the logarithm of 0 is infinite."""
    return max(10.0 ** (cutoff / multiplier), _LEAST) if multiplier else 0.0


def decibels_of_rows(
    x: Tensor, counts: Sequence[int], multiplier: float, reference: float | None, cutoff: float
) -> Tensor:
    """Compute `decibels` for several samples, the rows of one array.

    Args:
        x: ``(n, size)`` float32.
        counts: Rows of each sample, one at least.
    """
    least = _least(multiplier, cutoff)
    values = x.numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        if reference is None:
            starts = np.cumsum([0, *counts[:-1]])
            tops = np.fmax.reduceat(np.fmax.reduce(values, 1, initial=-np.inf), starts).astype(np.float64)
            tops[~(tops > 0)] = 1.0
            factors: Array = np.repeat((1.0 / tops).astype(np.float32), counts)[:, None]
        else:
            factors = np.asarray(1.0 / reference, np.float32)
        ratios = values * factors
        np.fmax(ratios, np.float32(least), out=ratios)
    return torch.from_numpy(ratios).log10_().mul_(multiplier)


def nonsilent(x: Tensor, window: int, cutoff: float, reference: float | None) -> tuple[int, int]:
    """Return start and length of the part that is louder than a cutoff: from its first to its last window.

    The power of a window is the mean of the squares of its samples.

    Args:
        x: ``(samples,)``, any real type.
        window: Samples of a window; all of the signal, if that is shorter.
        cutoff: In decibels relative to the reference.
        reference: A power; None: the power of the loudest window.
    """
    samples = len(x)
    window = min(window, samples)
    if not samples:
        return 0, 0
    sums = torch.zeros(samples + 1, dtype=torch.float64, device=x.device)
    torch.cumsum(x.double().square(), 0, out=sums[1:])
    power = (sums[window:] - sums[:-window]) / window
    if cutoff < -100.0:  # where the rounding of sums counts
        power = power * (_sounding(x, window) > 0)
    level = reference if reference is not None else float(power.max())
    loud = (power >= level * 10.0 ** (cutoff / 10.0)).nonzero()
    if not len(loud):
        return 0, 0
    first, last = int(loud[0]), int(loud[-1])
    return first, last - first + window


def _sounding(x: Tensor, window: int) -> Tensor:
    """Return how many samples of each window are not 0."""
    counts = torch.nn.functional.pad((x != 0).cumsum(0), (1, 0))
    return counts[window:] - counts[:-window]


def preemphasis(x: Tensor, coefficient: float, border: str) -> Tensor:
    """Return ``x[i] - coefficient * x[i - 1]``, over all samples in their order in memory.

    Args:
        x: Any shape, floating.
        border: The value before the first sample: ``"zero"``, ``"clamp"`` the sample itself,
            ``"reflect"`` the second one.
    """
    flat = x.reshape(-1)
    if not len(flat):
        return x.clone()
    before = {"zero": torch.zeros_like(flat[:1]), "clamp": flat[:1], "reflect": flat[1:2]}[border]
    if not len(before):
        before = flat[:1]  # one sample has no other
    shifted = torch.cat([before, flat[:-1]])
    return torch.sub(flat, shifted, alpha=coefficient).reshape(x.shape)
