"""Replace ``torch.utils.data.DataLoader`` by torchdali's, as soon as torch is imported.

This module is imported as a top-level module in processes that haven't imported torchdali yet.
"""

from __future__ import annotations

import importlib
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

__all__ = ["replace_dataloader"]


class _TorchFinder(MetaPathFinder):
    """Finder for torch and torchdali, which replaces PyTorch's `DataLoader` after the import of torch.

    The finder imports torch before any module of torchdali. Otherwise, torchdali's `DataLoader` could be imported while
    another module of torchdali is only partly imported.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        callback = {"torch": _replace, "torchdali": _import_torch}.get(name)
        spec = None if callback is None else PathFinder.find_spec(name)
        loader: Any = None if spec is None else spec.loader
        if loader is None or callback is None:
            return spec
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            callback()

        loader.exec_module = exec_module
        return spec


def _import_torch() -> None:
    importlib.import_module("torch")


def _replace() -> None:
    own = importlib.import_module("torchdali").DataLoader
    for name in ("torch.utils.data", "torch.utils.data.dataloader"):
        vars(importlib.import_module(name))["DataLoader"] = own
    vars(importlib.import_module("torchdali.dataloader._reports"))["recording"] = True


def replace_dataloader() -> None:
    """Replace ``torch.utils.data.DataLoader`` by torchdali's in this process, from now on."""
    if "torch" in sys.modules or "torchdali" in sys.modules:
        _import_torch()
        _replace()
    elif not any(isinstance(finder, _TorchFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _TorchFinder())
