"""Reduce the leading axes of a batch of float samples of any sizes, on an accelerator, in one launch."""

from __future__ import annotations

import torch
from torch import Tensor

from torchdali.kernels.device.library import define
from torchdali.kernels.device.tables import bits, floats, table, upload
from torchdali.kernels.memory import Array

__all__ = ["COLUMNS", "KINDS", "MOST_CHANNELS", "reduce_batch"]

COLUMNS = ("offset", "count", "divisor")
"""Of the table: where a sample starts, in elements, how many elements a result is made of, and the divisor of their
sum."""

KINDS = ("sum", "squares", "min", "max")
"""The kinds of results; ``"squares"`` is the sum of squared distances."""

MOST_CHANNELS = 64  # a program reads every so many elements of a sample


def reduce_batch(
    flat: Tensor,
    offsets: Array,
    counts: Array,
    channels: int,
    kind: str,
    divisors: Array,
    means: Tensor | None = None,
) -> Tensor:
    """Reduce samples ``(count, channels)`` to ``(channels,)`` each.

    Args:
        flat: float32 or uint8, the elements of all samples, on a device.
        offsets: Where each sample starts.
        counts: Of each sample, at least 1.
        channels: Of all samples, up to `MOST_CHANNELS`.
        kind: One of `KINDS`.
        divisors: Of the sums of each sample.
        means: float32: what distances are measured from, one a sample or one a channel of each; 0 without.

    Returns:
        ``(N, channels)`` float32. The least and the greatest of values with a NaN are NaN.
    """
    rows = table([offsets, counts, bits(divisors)])
    made: Tensor = torch.ops.torchdali.reduce_batch(flat, upload(rows, flat.device), means, channels, KINDS.index(kind))
    return made


@define("reduce")
def reduce_in_torch(flat: Tensor, samples: Tensor, means: Tensor | None, channels: int, kind: int) -> Tensor:
    """Do `reduce_batch` on the CPU, sums in double precision."""
    out = torch.empty((len(samples), channels))
    middles = None if means is None else means.reshape(len(samples), -1)
    for i, row in enumerate(samples.numpy()):
        start, count = row[:2].tolist()
        values = flat[start : start + count * channels].view(count, channels).float()
        if KINDS[kind] in ("min", "max"):
            out[i] = values.amin(0) if KINDS[kind] == "min" else values.amax(0)
            continue
        if KINDS[kind] == "squares":
            values = (values if middles is None else values - middles[i]).square()
        out[i] = values.sum(0, dtype=torch.float64) / float(floats(row[2:])[0])
    return out
