"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from builtins import bool as _bool
from collections import abc
from os import PathLike
from typing import Any, Literal, overload

import torch as _torch

from torchdali.experimental.dynamic._batch import Batch
from torchdali.experimental.dynamic._context import EvalContext
from torchdali.experimental.dynamic._device import DeviceLike
from torchdali.experimental.dynamic._dtypes import DType
from torchdali.experimental.dynamic._readers import Reader
from torchdali.experimental.dynamic._rng import RNG
from torchdali.experimental.dynamic._tensor import Tensor
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

@overload
def gaussian(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    mean: float | Tensor | Batch | _torch.Tensor = 0.0,
    stddev: float | Tensor | Batch | _torch.Tensor = 1.0,
    rng: RNG | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Add normally distributed noise: ``out = in + normal(mean, stddev)``, rounded and saturated.

    Args:
        data: Any shape.
        mean: Of the noise, in the units of the data.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        stddev: Standard deviation of the noise, in the units of the data.
    """
    ...

@overload
def gaussian(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    mean: float | Tensor | Batch | _torch.Tensor = 0.0,
    stddev: float | Tensor | Batch | _torch.Tensor = 1.0,
    rng: RNG | None = None,
    torch: _bool = False,
) -> Any:
    """Add normally distributed noise: ``out = in + normal(mean, stddev)``, rounded and saturated.

    Args:
        data: Any shape.
        mean: Of the noise, in the units of the data.
        seed: Of the random numbers; derived from the pipeline's seed by default.
        stddev: Standard deviation of the noise, in the units of the data.
    """
    ...

@overload
def salt_and_pepper(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    pepper_val: float | Tensor | Batch | _torch.Tensor | None = None,
    per_channel: _bool = False,
    prob: float | Tensor | Batch | _torch.Tensor = 0.05,
    salt_val: float | Tensor | Batch | _torch.Tensor | None = None,
    salt_vs_pepper: float | Tensor | Batch | _torch.Tensor = 0.5,
    rng: RNG | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Replace some pixels by the lightest or darkest value.

    Args:
        data: Any shape; pixels are the elements along a channel axis.
        pepper_val: The dark value; 0 of unsigned, the least of signed integers, -1 of floats when None.
        per_channel: Choose channels of a pixel independently.
        prob: Share of pixels that are replaced.
        salt_val: The light value; the greatest of integers, 1 of floats when None.
        salt_vs_pepper: Share of the light ones among them.
        seed: Of the random numbers; derived from the pipeline's seed by default.

    Raises:
        RuntimeError: a share outside of [0, 1].
    """
    ...

@overload
def salt_and_pepper(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    pepper_val: float | Tensor | Batch | _torch.Tensor | None = None,
    per_channel: _bool = False,
    prob: float | Tensor | Batch | _torch.Tensor = 0.05,
    salt_val: float | Tensor | Batch | _torch.Tensor | None = None,
    salt_vs_pepper: float | Tensor | Batch | _torch.Tensor = 0.5,
    rng: RNG | None = None,
    torch: _bool = False,
) -> Any:
    """Replace some pixels by the lightest or darkest value.

    Args:
        data: Any shape; pixels are the elements along a channel axis.
        pepper_val: The dark value; 0 of unsigned, the least of signed integers, -1 of floats when None.
        per_channel: Choose channels of a pixel independently.
        prob: Share of pixels that are replaced.
        salt_val: The light value; the greatest of integers, 1 of floats when None.
        salt_vs_pepper: Share of the light ones among them.
        seed: Of the random numbers; derived from the pipeline's seed by default.

    Raises:
        RuntimeError: a share outside of [0, 1].
    """
    ...

@overload
def shot(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    factor: float | Tensor | Batch | _torch.Tensor = 20.0,
    rng: RNG | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Add shot noise: ``out = factor * poisson(in / factor)``, rounded and saturated; 0 keeps the data.

    Args:
        data: Any shape; negative values give 0.
        factor: Variance is ``factor * in``; a negative one gives 0.
        seed: Of the random numbers; derived from the pipeline's seed by default.
    """
    ...

@overload
def shot(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    factor: float | Tensor | Batch | _torch.Tensor = 20.0,
    rng: RNG | None = None,
    torch: _bool = False,
) -> Any:
    """Add shot noise: ``out = factor * poisson(in / factor)``, rounded and saturated; 0 keeps the data.

    Args:
        data: Any shape; negative values give 0.
        factor: Variance is ``factor * in``; a negative one gives 0.
        seed: Of the random numbers; derived from the pipeline's seed by default.
    """
    ...
