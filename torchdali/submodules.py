"""Import the modules of a package when they are first used as its attributes."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["import_submodule", "on_first_use"]


def import_submodule(package: str, name: str) -> ModuleType | None:
    """Import a module of a package; return None if the package has no module with this name."""
    full = f"{package}.{name}"
    if name.startswith("_"):
        return None
    spec = importlib.util.find_spec(full)
    return importlib.import_module(full) if spec is not None and spec.origin is not None else None


def on_first_use(package: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package that imports its modules when they are first used."""

    def __getattr__(name: str) -> Any:
        module = import_submodule(package, name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        return module

    return __getattr__
