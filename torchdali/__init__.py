"""Data loading and augmentation with NVIDIA DALI's Python API, built on PyTorch alone."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from torchdali.graph import DataNode, newaxis
from torchdali.operator import operator, reader, source
from torchdali.pipeline import OperatorConcurrency, Pipeline, StreamPolicy, pipeline_def

if TYPE_CHECKING:
    from torchdali.plugin.resharding import reshard

__version__ = "0.1.0.dev0"

__all__ = [
    "DataNode",
    "OperatorConcurrency",
    "Pipeline",
    "StreamPolicy",
    "newaxis",
    "operator",
    "pipeline_def",
    "reader",
    "reshard",
    "source",
]

_LAZY = {"auto_aug", "backend", "experimental", "fn", "math", "ops", "plugin", "types", "tensors"}


def __getattr__(name: str) -> Any:
    if name == "reshard":
        return importlib.import_module("torchdali.plugin.resharding").reshard
    if name in _LAZY:
        return importlib.import_module(f"torchdali.{name}")
    raise AttributeError(f"module 'torchdali' has no attribute {name!r}")
