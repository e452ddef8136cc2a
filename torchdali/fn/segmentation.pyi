"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


def random_mask_pixel(
    mask: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    foreground: int | DataNode | TensorList = 0,
    name: str | None = None,
    preserve: Any = ...,
    seed: int = -1,
    threshold: float | DataNode | TensorList = ...,
    value: int | DataNode | TensorList | None = None,
) -> _T:
    """Choose a pixel of a mask, all equally likely."""
    ...

def random_object_bbox(
    mask: _T,
    /,
    *,
    background: int | DataNode | TensorList = ...,
    bytes_per_sample_hint: Any = ...,
    cache_objects: bool = False,
    class_weights: abc.Sequence[float] | float | DataNode | TensorList | None = None,
    classes: abc.Sequence[int] | int | DataNode | TensorList | None = None,
    device: str | None = None,
    foreground_prob: float | DataNode | TensorList = 1.0,
    format: str = 'anchor_shape',
    ignore_class: bool = False,
    k_largest: int | None = None,
    name: str | None = None,
    output_class: bool = False,
    preserve: Any = ...,
    seed: int = -1,
    threshold: abc.Sequence[int] | int | DataNode | TensorList | None = None,
) -> Any:
    """Choose an object of a label map, and return the box around it."""
    ...

def select_masks(
    mask_ids: _T,
    polygons: _T,
    vertices: _T,
    /,
    *,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    name: str | None = None,
    preserve: Any = ...,
    reindex_masks: bool = False,
) -> abc.Sequence[_T]:
    """Select polygons by the masks they belong to."""
    ...
