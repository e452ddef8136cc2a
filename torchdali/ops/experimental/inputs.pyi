"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


class Video:
    """Cut videos that `Pipeline.feed_input` gives into sequences, by the package av (extra ``video``)."""
    def __init__(
        self,
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
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
