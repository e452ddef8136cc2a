"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from builtins import bool as _bool
from collections import abc
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
    """Add normally distributed noise: ``out = in + normal(mean, stddev)``, rounded and saturated."""
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
    """Add normally distributed noise: ``out = in + normal(mean, stddev)``, rounded and saturated."""
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
    """Replace some pixels by the lightest or darkest value."""
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
    """Replace some pixels by the lightest or darkest value."""
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
    """Add shot noise: ``out = factor * poisson(in / factor)``, rounded and saturated; 0 keeps the data."""
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
    """Add shot noise: ``out = factor * poisson(in / factor)``, rounded and saturated; 0 keeps the data."""
    ...
