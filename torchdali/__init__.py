"""Data loading and augmentation with NVIDIA DALI's Python API, built on PyTorch alone."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import torchdali.ops  # noqa: F401  declares the operators
from torchdali.graph import DataNode, newaxis
from torchdali.operator import operator, reader, source
from torchdali.pipeline import OperatorConcurrency, Pipeline, StreamPolicy, pipeline_def
from torchdali.plugin.resharding import reshard

if TYPE_CHECKING:
    from torchdali.plugin.pytorch.from_torchvision import from_torchvision
    from torchdali.plugin.pytorch.loader import Loader

__version__ = "0.1.0"

__all__ = [
    "DataNode",
    "Loader",
    "OperatorConcurrency",
    "Pipeline",
    "StreamPolicy",
    "from_torchvision",
    "newaxis",
    "operator",
    "pipeline_def",
    "reader",
    "reshard",
    "source",
]

_LATE = {
    "Loader": "torchdali.plugin.pytorch.loader",
    "from_torchvision": "torchdali.plugin.pytorch.from_torchvision",
}


def __getattr__(name: str) -> Any:
    """Import a module of the package, or what is imported late, when it is first used."""
    if name in _LATE:
        return getattr(importlib.import_module(_LATE[name]), name)
    full = f"torchdali.{name}"
    if not name.startswith("_"):
        try:
            return importlib.import_module(full)
        except ModuleNotFoundError as error:
            if error.name != full:
                raise
    raise AttributeError(f"module 'torchdali' has no attribute {name!r}")
