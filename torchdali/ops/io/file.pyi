"""Generated from the operators' declarations by `python -m torchdali.stubs`; do not edit."""

from collections import abc
from typing import Any, TypeVar

import torch

from torchdali.graph import DataNode
from torchdali.tensors import TensorList
from torchdali.types import DALIDataType, DALIImageType, DALIInterpType

_T = TypeVar("_T", DataNode, TensorList, torch.Tensor)


class Read:
    """Read the files that the samples name."""
    def __init__(
        self,
        *,
        bytes_per_sample_hint: Any = ...,
        device: str | None = None,
        dont_use_mmap: bool = False,
        name: str | None = None,
        preserve: Any = ...,
        use_o_direct: bool = False,
    ) -> None: ...
    def __call__(self, *inputs: Any, **arguments: Any) -> Any: ...
