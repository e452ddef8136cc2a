"""Make ``import nvidia.dali`` import torchdali.

This module is imported as a top-level module in processes that haven't imported torchdali yet.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

__all__ = ["alias_nvidia_dali"]

_DALI = "nvidia.dali"
_VERSION = "2.4.0"  # the version of DALI whose Python API torchdali has


class _Package(ModuleType):
    """The module ``nvidia.dali``: torchdali with DALI's version number, because scripts may check it."""

    __version__ = _VERSION

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("torchdali"), name)

    def __dir__(self) -> list[str]:
        return dir(importlib.import_module("torchdali"))


class _Alias(Loader):
    """Loader that imports a module of torchdali instead of a module of ``nvidia.dali``."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import system create a module, which `exec_module` then replaces."""

    def exec_module(self, module: ModuleType) -> None:
        if isinstance(module, _Package):  # called by `importlib.reload`
            return
        torchdali_name = "torchdali" + module.__name__.removeprefix(_DALI)
        if torchdali_name == "torchdali":
            importlib.import_module(torchdali_name)
            sys.modules[_DALI] = package = _Package(torchdali_name)
            package.__spec__ = module.__spec__
            return
        try:
            sys.modules[module.__name__] = importlib.import_module(torchdali_name)
        except ModuleNotFoundError as error:
            if error.name != torchdali_name:
                raise
            message = f"torchdali has no module {torchdali_name!r} for {module.__name__!r}"
            raise ModuleNotFoundError(message, name=module.__name__) from None


class _AliasFinder(MetaPathFinder):
    """Finder that maps ``nvidia.dali`` and its submodules to torchdali, even if the real DALI is installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name == "nvidia" and PathFinder.find_spec(name) is None:
            return ModuleSpec(name, None, is_package=True)
        if name == _DALI or name.startswith(f"{_DALI}."):
            return ModuleSpec(name, _Alias())
        return None


def alias_nvidia_dali() -> None:
    """Make ``import nvidia.dali`` import torchdali in this process, from now on.

    Raises:
        RuntimeError: the real ``nvidia.dali`` is already imported.
    """
    loaded = sys.modules.get(_DALI)
    if loaded is not None and not isinstance(loaded, _Package):
        raise RuntimeError(
            "nvidia.dali must not be imported before its alias is installed; call alias_nvidia_dali() first"
        )
    if not any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AliasFinder())
