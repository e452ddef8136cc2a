"""Placeholders for packages that aren't installed, so that stubs can be generated without PyTorch.

A package is built before its dependencies are installed. Stubs contain only signatures and docstrings, which don't
depend on values of other packages. If a module imports a value from a missing package, any object can replace the
value.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["replace_missing"]

_PACKAGES = ("torch", "torchvision", "numpy", "PIL")  # packages that torchdali's modules import at the top of the file


def replace_missing() -> None:
    """Let Python import placeholders for the packages that aren't installed."""
    missing = {name for name in _PACKAGES if importlib.util.find_spec(name) is None}
    sys.meta_path.append(_PlaceholderFinder(missing))


class _Anything(type):
    """The metaclass of all objects in placeholder modules.

    The objects are classes, so that they can be annotations and base classes. Attributes, calls and operators of an
    object return another placeholder object.
    """

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(cls, name, _anything(name))  # stored, because the next access must return the same object
        return getattr(cls, name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        is_decorator = len(args) == 1 and isinstance(args[0], types.FunctionType)
        return args[0] if is_decorator else _anything(cls.__name__)

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __len__(cls) -> int:
        return 0

    def __index__(cls) -> int:
        return 0

    def __float__(cls) -> float:
        return 0.0


def _operation(cls: type, *operands: Any) -> Any:
    return _anything(cls.__name__)


for _name in (
    *("abs", "add", "and", "floordiv", "getitem", "invert", "lshift", "matmul", "mod", "mul", "neg", "or", "pow"),
    *("radd", "rmatmul", "rmul", "ror", "rshift", "rsub", "rtruediv", "sub", "truediv", "xor"),
):
    setattr(_Anything, f"__{_name}__", _operation)


def _anything(name: str) -> Any:
    return _Anything(name, (), {})


class _Placeholder(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, _anything(name))
        return getattr(self, name)


class _PlaceholderFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """An import finder that creates placeholder modules. Python asks it after all other finders."""

    def __init__(self, packages: set[str]) -> None:
        self._packages = packages

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        is_missing = fullname.partition(".")[0] in self._packages
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if is_missing else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Placeholder(spec.name)  # the spec says that the module is a package

    def exec_module(self, module: types.ModuleType) -> None:
        """Load nothing, because attributes are created on access."""
