"""Data loading and augmentation with NVIDIA DALI's Python API, built on PyTorch alone."""

from __future__ import annotations

import importlib
from typing import Any

from torchdali.graph import DataNode, newaxis
from torchdali.operator import operator, reader, source
from torchdali.pipeline import Pipeline, pipeline_def

__version__ = "0.1.0.dev0"

__all__ = [
    "DataNode",
    "Pipeline",
    "newaxis",
    "operator",
    "pipeline_def",
    "reader",
    "source",
]

_LAZY = {"auto_aug", "backend", "experimental", "fn", "math", "ops", "plugin", "types", "tensors"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"torchdali.{name}")
    raise AttributeError(f"module 'torchdali' has no attribute {name!r}")
