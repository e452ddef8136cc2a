"""PyTorch: iterators over pipelines, and copies into torch tensors."""

from __future__ import annotations

from torchdali.plugin.base_iterator import LastBatchPolicy
from torchdali.plugin.pytorch import fn
from torchdali.plugin.pytorch._functions import TorchPythonFunction, as_operator
from torchdali.plugin.pytorch._iterators import (
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
)
from torchdali.plugin.pytorch.torch_utils import feed_ndarray, to_torch_type

__all__ = [
    "DALIClassificationIterator",
    "DALIGenericIterator",
    "DALIRaggedIterator",
    "LastBatchPolicy",
    "TorchPythonFunction",
    "as_operator",
    "feed_ndarray",
    "fn",
    "to_torch_type",
]
