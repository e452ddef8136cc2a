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
def random_mask_pixel(
    input: Batch,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    foreground: int | Tensor | Batch | _torch.Tensor = 0,
    threshold: float | Tensor | Batch | _torch.Tensor = ...,
    value: int | Tensor | Batch | _torch.Tensor | None = None,
    rng: RNG | None = None,
    torch: Literal[False] = False,
) -> Batch:
    """Choose a pixel of a mask, all equally likely."""
    ...

@overload
def random_mask_pixel(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    foreground: int | Tensor | Batch | _torch.Tensor = 0,
    threshold: float | Tensor | Batch | _torch.Tensor = ...,
    value: int | Tensor | Batch | _torch.Tensor | None = None,
    rng: RNG | None = None,
    torch: _bool = False,
) -> Any:
    """Choose a pixel of a mask, all equally likely."""
    ...

def random_object_bbox(
    input: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    background: int | Tensor | Batch | _torch.Tensor = ...,
    cache_objects: _bool = False,
    class_weights: abc.Sequence[float] | float | Tensor | Batch | _torch.Tensor | None = None,
    classes: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    foreground_prob: float | Tensor | Batch | _torch.Tensor = 1.0,
    format: str = 'anchor_shape',
    ignore_class: _bool = False,
    k_largest: int | None = None,
    output_class: _bool = False,
    threshold: abc.Sequence[int] | int | Tensor | Batch | _torch.Tensor | None = None,
    rng: RNG | None = None,
    torch: _bool = False,
) -> Any:
    """Choose an object of a label map, and return the box around it."""
    ...

def select_masks(
    mask_ids: Any,
    polygons: Any,
    vertices: Any,
    /,
    *,
    batch_size: int | None = None,
    device: DeviceLike = None,
    reindex_masks: _bool = False,
    torch: _bool = False,
) -> Any:
    """Select polygons by the masks they belong to."""
    ...
