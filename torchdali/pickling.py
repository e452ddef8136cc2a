"""Pickle functions by value if a new process can't import them.

A lambda, a nested function, or a function of an interactive session is pickled as its code, together with the globals
that it uses and the values of its closure. Everything else is pickled as usual. The process that pickles and the
process that unpickles must run the same version of Python.
"""

from __future__ import annotations

import builtins
import importlib
import io
import marshal
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

__all__ = ["Pickler", "dumps", "loads", "names_of", "pickle_by_value"]

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "_torchdali_pickle_by_value"


def pickle_by_value(fun: F) -> F:
    """Mark a function so that it is always pickled as its code, and return the function.

    Raises:
        TypeError: ``fun`` isn't a Python function.
    """
    if not isinstance(fun, types.FunctionType):
        raise TypeError(f"only functions can be pickled by value, got a {type(fun).__name__}")
    setattr(fun, _MARK, True)
    return fun


def dumps(obj: Any) -> bytes:
    """Pickle an object; functions that can't be imported are pickled by value."""
    target = io.BytesIO()
    Pickler(target, pickle.HIGHEST_PROTOCOL).dump(obj)
    return target.getvalue()


def loads(data: bytes) -> Any:
    """Load an object that `dumps` pickled."""
    return pickle.loads(data)


class Pickler(pickle.Pickler):
    """A pickler that pickles functions by value if they can't be imported."""

    def reducer_override(self, obj: Any) -> Any:
        """Return how to pickle a function by value, or a module by name; NotImplemented for other objects."""
        if isinstance(obj, types.FunctionType) and _is_pickled_by_value(obj):
            return _reduce_function(obj)
        if isinstance(obj, types.ModuleType):
            return importlib.import_module, (obj.__name__,)
        return NotImplemented


def _is_pickled_by_value(function: types.FunctionType) -> bool:
    module = sys.modules.get(function.__module__)
    if hasattr(function, _MARK) or module is None:
        return True
    if module.__name__ == "__main__" and not hasattr(module, "__file__"):
        return True  # the function belongs to an interactive session
    item: Any = module
    for name in function.__qualname__.split("."):
        item = getattr(item, name, None)
    return item is not function


def _reduce_function(function: types.FunctionType) -> tuple[Any, ...]:
    names = set(names_of(function.__code__))
    cells = [_content(cell) for cell in function.__closure__ or ()]
    state = {
        "globals": {k: v for k, v in function.__globals__.items() if k in names},
        "cells": cells,
        "defaults": function.__defaults__,
        "kwdefaults": function.__kwdefaults__,
        "dict": function.__dict__,
        "qualname": function.__qualname__,
    }
    code = marshal.dumps(function.__code__)
    return _make_function, (code, function.__module__, len(cells)), state, None, None, _fill_function


def names_of(code: types.CodeType) -> Iterator[str]:
    """Yield the global and attribute names that a code object, or a function nested in it, uses."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_of(constant)


def _content(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()  # the variable isn't assigned yet


def _make_function(code: bytes, module: str, cells: int) -> types.FunctionType:
    """Create a function without globals and closure values, which `_fill_function` then adds.

    There are two steps because the function may refer to itself.
    """
    space = {"__builtins__": builtins, "__name__": module}
    closure = tuple(types.CellType() for _ in range(cells))
    return types.FunctionType(marshal.loads(code), space, closure=closure)


def _fill_function(function: types.FunctionType, state: dict[str, Any]) -> None:
    function.__globals__.update(state["globals"])
    for cell, content in zip(function.__closure__ or (), state["cells"], strict=True):
        if content:
            cell.cell_contents = content[0]
    function.__defaults__, function.__kwdefaults__ = state["defaults"], state["kwdefaults"]
    function.__dict__.update(state["dict"])
    function.__qualname__ = state["qualname"]
