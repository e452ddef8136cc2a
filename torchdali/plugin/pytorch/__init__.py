"""Iterators that deliver a pipeline's batches as PyTorch tensors, and functions that copy outputs to tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdali.plugin.base_iterator import LastBatchPolicy
from torchdali.plugin.pytorch import fn
from torchdali.plugin.pytorch._functions import TorchPythonFunction, as_operator
from torchdali.plugin.pytorch._iterators import (
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
)
from torchdali.plugin.pytorch.torch_utils import feed_ndarray, to_torch_type
from torchdali.submodules import on_first_use

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

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__)
