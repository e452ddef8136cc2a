"""Compute means and variances of images with OpenCV, which computes both in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from torchdali.kernels.memory import byte_planes
from torchdali.kernels.opencv import opencv_for

__all__ = ["Moments", "compute_moments", "pool"]


@dataclass(frozen=True)
class Moments:
    """Mean and variance of an image, or of each of its channels.

    Attributes:
        count: Number of values from which each mean was computed.
    """

    count: int
    means: tuple[float, ...]
    variances: tuple[float, ...]

    def about(self, means: Sequence[float]) -> Moments:
        """Return moments with these means. The variances become the mean squared distances from these means."""
        pairs = zip(self.variances, self.means, means, strict=True)
        return Moments(self.count, tuple(means), tuple(v + (m - center) ** 2 for v, m, center in pairs))


def compute_moments(x: Tensor, axes: Sequence[int]) -> Moments | None:
    """Return mean and variance of a tensor over axes; None if OpenCV isn't installed or doesn't support the arguments.

    Args:
        x: Tensor; only uint8 and float32 are supported.
        axes: Axes in any order. The axes must be all axes of the tensor, or all except the last axis.
    """
    whole = len(axes) == x.dim()
    channels = 1 if whole else x.shape[-1] if x.dim() else 0
    if not whole and (len(axes) != x.dim() - 1 or x.dim() - 1 in axes or channels > 4):
        return None
    if x.dtype not in (torch.uint8, torch.float32) or (cv2 := opencv_for(x)) is None:
        return None
    if x.numel() >= 1 << 31:  # OpenCV counts columns with a C int
        return None
    row = x.contiguous().view(1, -1, channels).numpy()
    count = row.shape[1]
    if whole and x.dtype == torch.float32:  # many times as fast as meanStdDev
        mean = cv2.sumElems(row)[0] / count
        return Moments(count, (mean,), (max(cv2.norm(row, cv2.NORM_L2SQR) / count - mean * mean, 0.0),))
    if channels in (2, 3, 4) and x.dtype == torch.uint8:  # three times as fast as meanStdDev of all channels
        planes = byte_planes(channels, 1, count)
        cv2.split(row, planes)
        pairs = [cv2.meanStdDev(plane) for plane in planes]
        means, deviations = (np.concatenate(part) for part in zip(*pairs, strict=True))
    else:
        means, deviations = cv2.meanStdDev(row)
    return Moments(count, tuple(means[:, 0].tolist()), tuple((deviations[:, 0] ** 2).tolist()))


def pool(moments: Sequence[Moments]) -> Moments:
    """Combine the moments of several sets of values to the moments of all values."""
    count = sum(m.count for m in moments)
    channels = range(len(moments[0].means))
    means = [sum(m.means[c] * m.count for m in moments) / count for c in channels]
    variances = [sum(v.variances[c] * v.count for v in (m.about(means) for m in moments)) / count for c in channels]
    return Moments(count, tuple(means), tuple(variances))
