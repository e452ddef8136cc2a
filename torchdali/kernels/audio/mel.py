"""Triangular filters on the mel scale.

Two formulas for the scale are supported. "slaney" (M. Slaney, Auditory Toolbox, Interval Research 1998-010) is linear
below 1 kHz and logarithmic above. "htk" (S. Young et al., The HTK Book) is ``mel = 1127 ln(1 + f / 700)``.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchdali.kernels.device_cache import device_cache
from torchdali.kernels.torch_threads import on_one_thread

__all__ = ["FORMULAS", "apply_filters", "mel_filters"]

Floats = npt.NDArray[np.float64]

_LINEAR = 200.0 / 3.0  # Hz per mel below 1 kHz
_BREAK = 1000.0 / _LINEAR  # mel at 1 kHz
_STEP = math.log(6.4) / 27.0  # step of the logarithm per mel above 1 kHz


def _slaney(hertz: float) -> float:
    return hertz / _LINEAR if hertz < 1000.0 else _BREAK + math.log(hertz / 1000.0) / _STEP


def _slaney_inverse(mel: Floats) -> Floats:
    above = 1000.0 * np.exp(_STEP * (np.maximum(mel, _BREAK) - _BREAK))
    return np.where(mel < _BREAK, mel * _LINEAR, above)


def _htk(hertz: float) -> float:
    return 1127.0 * math.log1p(hertz / 700.0)


def _htk_inverse(mel: Floats) -> Floats:
    return np.asarray(700.0 * np.expm1(mel / 1127.0))


FORMULAS = {"slaney": (_slaney, _slaney_inverse), "htk": (_htk, _htk_inverse)}


@device_cache(maxsize=32)
def mel_filters(
    bins: int,
    filters: int,
    sample_rate: float,
    low: float,
    high: float,
    formula: str,
    normalize: bool,
    device: torch.device,
) -> Tensor:
    """Return triangular filters whose corners are equidistant in mel, as a float32 matrix ``(filters, bins)``.

    Args:
        bins: Number of bins of a spectrum from 0 Hz to half the sample rate.
        filters: Number of filters.
        sample_rate: Sample rate in Hz.
        low: Start of the first filter in Hz.
        high: End of the last filter in Hz.
        formula: A key of `FORMULAS`.
        normalize: True to scale each filter to an area of 1 over Hz, False for a peak of 1.
        device: Device of the result.
    """
    to_mel, to_hertz = FORMULAS[formula]
    corners = to_hertz(np.linspace(to_mel(low), to_mel(high), filters + 2))[:, None]
    hertz = np.arange(bins) * (sample_rate / (2 * (bins - 1)) if bins > 1 else 0.0)
    left, middle, right = corners[:-2], corners[1:-1], corners[2:]
    rising, falling = (hertz - left) / (middle - left), (right - hertz) / (right - middle)
    triangles = np.maximum(np.minimum(rising, falling), 0.0)
    if normalize:
        triangles *= 2.0 / (right - left)
    return torch.from_numpy(triangles.astype(np.float32)).to(device)


_MIN_COLUMNS = 16  # with fewer columns, the last bit of a BLAS product may depend on the number of columns


def apply_filters(x: Tensor, filters: Tensor, axis: int) -> Tensor:
    """Multiply an axis of a tensor by a matrix. In the result, this axis has one value per row of the matrix."""
    return on_one_thread(_apply, x, filters, axis)


def _apply(x: Tensor, filters: Tensor, axis: int) -> Tensor:
    if x.ndim == 1:
        x = x.clone()  # the last bit of a BLAS product depends on alignment; new memory is always aligned equally
    if axis == x.ndim - 2:
        missing = _MIN_COLUMNS - x.shape[-1]
        if missing > 0:
            return (filters @ torch.nn.functional.pad(x, (0, missing)))[..., :-missing]
        return filters @ x
    if axis == x.ndim - 1:
        missing = _MIN_COLUMNS - x.shape[-2] if x.ndim > 1 else 0
        if missing > 0:
            return (torch.nn.functional.pad(x, (0, 0, 0, missing)) @ filters.t())[..., :-missing, :]
        return x @ filters.t()
    return (x.movedim(axis, -1) @ filters.t()).movedim(-1, axis)
