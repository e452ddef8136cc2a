"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


def video(
    *,
    sequence_length: int,
    affine: bool = True,
    blocking: bool = False,
    bytes_per_sample_hint: Any = ...,
    device: str | None = None,
    last_sequence_policy: str = 'partial',
    name: str | None = None,
    no_copy: bool = False,
    preserve: Any = ...,
) -> DataNode:
    """Cut videos that `Pipeline.feed_input` gives into sequences, by the package av (extra ``video``)."""
    ...
