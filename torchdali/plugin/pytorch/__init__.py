"""PyTorch: iterators over pipelines, and copies into torch tensors."""

from __future__ import annotations

from torchdali.plugin.base_iterator import LastBatchPolicy
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
    "feed_ndarray",
    "to_torch_type",
]
