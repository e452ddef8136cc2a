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


from torchdali.experimental.dynamic._rng import RNG as RNG
from torchdali.experimental.dynamic._rng import get_default_rng as get_default_rng
from torchdali.experimental.dynamic._rng import set_seed as set_seed

def beta(
    shape_like: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    alpha: float | Tensor | Batch | _torch.Tensor = 1.0,
    beta: float | Tensor | Batch | _torch.Tensor = 1.0,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    rng: RNG | None = None,
    torch: _bool = False,
) -> Any:
    """Draw numbers in [0, 1] from the beta distribution, of density ``~ x^(alpha - 1) (1 - x)^(beta - 1)``."""
    ...

@overload
def choice(
    a: Batch,
    shape_like: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    p: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    rng: RNG | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Draw elements of a sample, with replacement."""
    ...

@overload
def choice(
    a: Any,
    shape_like: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    p: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    rng: RNG | None = None,
    torch: _bool = False,
) -> Any:
    """Draw elements of a sample, with replacement."""
    ...

def coin_flip(
    shape_like: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    probability: float | Tensor | Batch | _torch.Tensor = 0.5,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    rng: RNG | None = None,
    torch: _bool = False,
) -> Any:
    """Draw 1 with a probability, otherwise 0."""
    ...

def normal(
    shape_like: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    mean: float | Tensor | Batch | _torch.Tensor = 0.0,
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    stddev: float | Tensor | Batch | _torch.Tensor = 1.0,
    rng: RNG | None = None,
    torch: _bool = False,
) -> Any:
    """Draw numbers from the normal distribution."""
    ...

def uniform(
    shape_like: Any = None,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    dtype: DALIDataType | DType | _torch.dtype | None = None,
    range: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor = [-1.0, 1.0],
    shape: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    values: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    rng: RNG | None = None,
    torch: _bool = False,
) -> Any:
    """Draw numbers from a range, or from a list of values, all equally likely."""
    ...
