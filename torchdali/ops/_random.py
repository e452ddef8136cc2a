"""Random numbers: distributions, drawn for a whole batch at once."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch

from torchdali.kernels.convert import convert
from torchdali.operator import operator
from torchdali.rng import BatchRng
from torchdali.schema import Column, Data, DType, PerSample, Takes, per_sample
from torchdali.tensors import TensorList

__all__ = ["coin_flip", "normal", "uniform"]

ShapeLike = Annotated[TensorList, Takes()]
Numbers = npt.NDArray[np.float64]


def _keep_layout(layouts: tuple[str, ...], arguments: Any) -> str:
    return layouts[0] if layouts else ""


@operator(name="random.uniform", over="batch", layout=_keep_layout)
def uniform(
    shape_like: ShapeLike | None = None,
    /,
    *,
    range: PerSample[list[float]] = [-1.0, 1.0],  # noqa: B006  never changed
    values: PerSample[list[float]] | None = None,
    shape: PerSample[list[int]] | None = None,
    dtype: DType | None = None,
    rng: BatchRng,
) -> Data:
    """Draw numbers from a range, or from a list of values, all equally likely.

    Args:
        shape_like: Take the shape from this input.
        range: ``[low, high)``; with an integer ``dtype`` the numbers are rounded, so that both ends occur.
        values: Draw from these instead.
        shape: Of each sample; 0D by default.
        dtype: float32 when None.
    """
    draws = _draw(rng.uniform, rng, shape_like, shape)
    if values is not None:
        choices = [np.asarray(v, np.float64) for v in per_sample(values, rng.size)]
        draws = [c[(d * len(c)).astype(np.int64)] for c, d in zip(choices, draws, strict=True)]
    else:
        ends = per_sample(range, rng.size)
        draws = [low + (high - low) * d for (low, high), d in zip(ends, draws, strict=True)]
    return _deliver(draws, dtype or torch.float32)


@operator(name="random.normal", over="batch", layout=_keep_layout)
def normal(
    shape_like: ShapeLike | None = None,
    /,
    *,
    mean: PerSample[float] = 0.0,
    stddev: PerSample[float] = 1.0,
    shape: PerSample[list[int]] | None = None,
    dtype: DType | None = None,
    rng: BatchRng,
) -> Data:
    """Draw numbers from the normal distribution.

    Args:
        shape_like: Take the shape from this input.
        mean: Of the distribution.
        stddev: Its standard deviation.
        shape: Of each sample; 0D by default.
        dtype: float32 when None; integers are rounded.
    """
    draws = _draw(rng.normal, rng, shape_like, shape)
    means, deviations = per_sample(mean, rng.size), per_sample(stddev, rng.size)
    draws = [m + s * d for m, s, d in zip(means, deviations, draws, strict=True)]
    return _deliver(draws, dtype or torch.float32)


@operator(name="random.coin_flip", over="batch", layout=_keep_layout)
def coin_flip(
    shape_like: ShapeLike | None = None,
    /,
    *,
    probability: PerSample[float] = 0.5,
    shape: PerSample[list[int]] | None = None,
    dtype: DType | None = None,
    rng: BatchRng,
) -> Data:
    """Draw 1 with a probability, otherwise 0.

    Args:
        shape_like: Take the shape from this input.
        probability: Of 1.
        shape: Of each sample; 0D by default.
        dtype: int32 when None.
    """
    draws = _draw(rng.uniform, rng, shape_like, shape)
    chances = per_sample(probability, rng.size)
    return _deliver([(d < p) * 1.0 for p, d in zip(chances, draws, strict=True)], dtype or torch.int32)


def _draw(draw: Any, rng: BatchRng, like: TensorList | None, shape: Any) -> list[Numbers]:
    """Draw numbers in the shape of each sample."""
    shapes = sample_shapes(like, shape, rng.size)
    counts = [int(np.prod(s, dtype=np.int64)) for s in shapes]
    rows = draw(max(counts, default=0))
    return [row[:n].reshape(s) for row, n, s in zip(rows, counts, shapes, strict=True)]


def sample_shapes(like: TensorList | None, shape: Any, size: int) -> list[tuple[int, ...]]:
    """Return the output shape of each sample: that of ``like``, or ``shape``; 0D by default."""
    if like is not None:
        return list(like.shape())
    if shape is None:
        return [()] * size
    values = per_sample(shape, size)
    if isinstance(shape, Column) and shape and not isinstance(shape[0], list):
        values = [[v] for v in shape]
    return [tuple(int(extent) for extent in v) for v in values]


def _deliver(draws: list[Numbers], dtype: torch.dtype) -> Any:
    """Convert to the element type; one dense tensor when all shapes are equal."""
    if all(d.shape == draws[0].shape for d in draws):
        return convert(torch.from_numpy(np.stack(draws)), dtype)
    return [convert(torch.from_numpy(np.ascontiguousarray(d)), dtype) for d in draws]
