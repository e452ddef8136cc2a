"""Data loading and augmentation with NVIDIA DALI's Python API, built on PyTorch alone.

Names are imported when they are first used, so that ``torchdali --help`` doesn't wait for torch, and ``torchdali
doctor`` works without torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchdali.calls.decorators import operator, reader, source
    from torchdali.dataloader import DataLoader
    from torchdali.formats.shared_value import Shared
    from torchdali.graph.nodes import DataNode, newaxis
    from torchdali.ops._readers.mixture import WeightedReader
    from torchdali.pipeline import OperatorConcurrency, Pipeline, StreamPolicy, pipeline_def
    from torchdali.plugin.pytorch.loader import Loader
    from torchdali.plugin.resharding import reshard
    from torchdali.reading.tar_stream import TarStream

__version__ = "0.1.0"

__all__ = [
    "DataLoader",
    "DataNode",
    "Loader",
    "OperatorConcurrency",
    "Pipeline",
    "Shared",
    "StreamPolicy",
    "TarStream",
    "WeightedReader",
    "newaxis",
    "operator",
    "pipeline_def",
    "reader",
    "reshard",
    "source",
]

_MODULES = {
    "DataLoader": "dataloader",
    "DataNode": "graph.nodes",
    "Loader": "plugin.pytorch.loader",
    "OperatorConcurrency": "types",
    "Pipeline": "pipeline",
    "Shared": "formats.shared_value",
    "StreamPolicy": "types",
    "TarStream": "reading.tar_stream",
    "WeightedReader": "ops._readers.mixture",
    "newaxis": "graph.nodes",
    "operator": "calls.decorators",
    "pipeline_def": "pipeline",
    "reader": "calls.decorators",
    "reshard": "plugin.resharding",
    "source": "calls.decorators",
}

_WITHOUT_PIPELINE = ("DataLoader",)  # names that don't need `torchdali.pipeline`
# Modules that `__getattr__` imports after `torchdali.pipeline`. That module doesn't import them from the package.
_AFTER_PIPELINE = ("auto_aug", "dynamic", "experimental", "fn", "math", "ops", "plugin")


def __getattr__(name: str) -> Any:
    """Import a top-level name, or a module of the package, when it is first used."""
    if name not in _WITHOUT_PIPELINE and (name in _MODULES or name in _AFTER_PIPELINE):
        # Threads that import different names wait for each other at this import.
        importlib.import_module("torchdali.pipeline")
    if name in _MODULES:
        value = getattr(importlib.import_module(f"torchdali.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
    full = f"torchdali.{name}"
    if not name.startswith("_"):
        try:
            return importlib.import_module(full)
        except ModuleNotFoundError as error:
            if error.name != full:
                raise
    raise AttributeError(f"module 'torchdali' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
