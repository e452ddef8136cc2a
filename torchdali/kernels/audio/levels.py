"""Convert signals to decibels, find their nonsilent part, and apply preemphasis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.memory import Array, is_plain

__all__ = ["decibels", "decibels_of_rows", "nonsilent", "preemphasis"]

_SMALLEST_FLOAT = 2.0**-149  # the smallest float32


def decibels(x: Tensor, multiplier: float, reference: float | None, cutoff: float) -> Tensor:
    """Return ``multiplier * log10(max(x / reference, 10 ** (cutoff / multiplier)))``.

    Args:
        x: float32 tensor of any shape.
        multiplier: Factor of the logarithm.
        reference: Value that corresponds to 0 dB. None uses the largest value of `x`, or 1 if no value is positive.
        cutoff: Minimum of the result, in decibels.
    """
    if is_plain(x):
        return decibels_of_rows(x.reshape(1, -1), [1], multiplier, reference, cutoff).view(x.shape)
    if reference is None:
        top = x.detach().amax() if x.numel() else x.new_ones(())
        ratio = x / torch.where(top > 0, top, torch.ones_like(top))
    else:
        ratio = x / reference
    return ratio.fmax(ratio.new_full((), _lowest_ratio(multiplier, cutoff))).log10() * multiplier


def _lowest_ratio(multiplier: float, cutoff: float) -> float:
    """Return the ratio that corresponds to the cutoff, but at least the smallest float32, to avoid log(0)."""
    return max(10.0 ** (cutoff / multiplier), _SMALLEST_FLOAT) if multiplier else 0.0


def decibels_of_rows(
    x: Tensor, counts: Sequence[int], multiplier: float, reference: float | None, cutoff: float
) -> Tensor:
    """Compute `decibels` for several samples, which are consecutive rows of one tensor.

    Args:
        x: Rows of all samples, ``(n, size)`` float32.
        counts: Number of rows of each sample, at least 1.
        multiplier, cutoff: See `decibels`.
        reference: Value that corresponds to 0 dB. None uses the largest value of each sample, or 1 if no value of the
            sample is positive.
    """
    lowest_ratio = _lowest_ratio(multiplier, cutoff)
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
        np.fmax(ratios, np.float32(lowest_ratio), out=ratios)
    return torch.from_numpy(ratios).log10_().mul_(multiplier)


def nonsilent(x: Tensor, window: int, cutoff: float, reference: float | None) -> tuple[int, int]:
    """Find the nonsilent part of a signal: from the first to the last window whose power reaches a cutoff.

    The power of a window is the mean of its squared samples.

    Args:
        x: ``(samples,)``, any real dtype.
        window: Number of samples per window; limited to the length of the signal.
        cutoff: Cutoff in decibels relative to the reference.
        reference: Reference power; None for the power of the loudest window.

    Returns:
        Start and length of the nonsilent part, in samples; (0, 0) if the whole signal is silent.
    """
    samples = len(x)
    window = min(window, samples)
    if not samples:
        return 0, 0
    sums = torch.zeros(samples + 1, dtype=torch.float64, device=x.device)
    torch.cumsum(x.double().square(), 0, out=sums[1:])
    power = (sums[window:] - sums[:-window]) / window
    if cutoff < -100.0:  # rounding errors may exceed this cutoff, so windows of zeros are excluded
        power = power * (_count_nonzero(x, window) > 0)
    level = reference if reference is not None else float(power.max())
    loud = (power >= level * 10.0 ** (cutoff / 10.0)).nonzero()
    if not len(loud):
        return 0, 0
    first, last = int(loud[0]), int(loud[-1])
    return first, last - first + window


def _count_nonzero(x: Tensor, window: int) -> Tensor:
    """Return the number of nonzero samples in each window."""
    counts = torch.nn.functional.pad((x != 0).cumsum(0), (1, 0))
    return counts[window:] - counts[:-window]


def preemphasis(x: Tensor, coefficient: float, border: str) -> Tensor:
    """Return ``x[i] - coefficient * x[i - 1]`` for all samples of a tensor, in row-major order.

    Args:
        x: Floating-point tensor of any shape.
        coefficient: Factor of the previous sample.
        border: The value before the first sample: 0 for ``"zero"``, the first sample for ``"clamp"``, the second sample
            for ``"reflect"``.
    """
    flat = x.reshape(-1)
    if not len(flat):
        return x.clone()
    previous = {"zero": torch.zeros_like(flat[:1]), "clamp": flat[:1], "reflect": flat[1:2]}[border]
    if not len(previous):
        previous = flat[:1]  # there is only one sample
    shifted = torch.cat([previous, flat[:-1]])
    return torch.sub(flat, shifted, alpha=coefficient).reshape(x.shape)
