"""Variables outside of them to which functions of the user write: a copy of the process would keep them to itself."""

from __future__ import annotations

import ast
import dis
import inspect
import textwrap
import types
from collections import deque
from collections.abc import Iterable, Iterator

from torchdali import pickling

__all__ = ["written_name"]

_CONTAINERS = (list, dict, set, deque, bytearray)
_WRITING = frozenset({
    "add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "pop", "popitem", "popleft",
    "remove", "reverse", "sort", "subtract", "update",
})  # fmt: skip
"""Methods of containers that change them, but for those with which a function remembers what it has computed."""


def written_name(functions: Iterable[types.FunctionType]) -> str:
    """Return the name of a variable to which one of the functions writes; empty if none is known.

    That is a global or a variable of an outer function that is bound anew; a container of which a method is called
    that changes it; an entry or an attribute that is added to (``counts[key] += 1``); an attribute that is set.
    """
    return next((name for function in functions for name in (*_bound(function), *_changed(function))), "")


def _bound(function: types.FunctionType) -> Iterator[str]:
    outside = set(function.__code__.co_freevars)
    for code in _codes(function.__code__):
        for each in dis.get_instructions(code):
            is_outside = each.opname.endswith("_DEREF") and each.argval in outside
            if each.opname.startswith(("STORE_", "DELETE_")) and (each.opname.endswith("_GLOBAL") or is_outside):
                yield each.argval


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _changed(function: types.FunctionType) -> Iterator[str]:
    """Yield the variables that stay bound to an object that is changed; none if there is no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return
    outside = _outside(function)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=target, attr=method)) if method in _WRITING:
                if isinstance(_value(target, outside), _CONTAINERS):
                    yield _base(target)
            case ast.AugAssign(target=ast.Attribute() | ast.Subscript() as target) if _base(target) in outside:
                yield _base(target)
            case ast.Assign(targets=[ast.Attribute() as target]) if _base(target) in outside:
                yield _base(target)


def _base(target: ast.AST) -> str:
    """Return the name with which an expression such as ``a.b[c]`` begins."""
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""


def _value(target: ast.AST, outside: dict[str, object]) -> object:
    """Return the value of an expression such as ``a.b``; None for others."""
    if isinstance(target, ast.Attribute):
        return getattr(_value(target.value, outside), target.attr, None)
    return outside.get(target.id) if isinstance(target, ast.Name) else None


def _outside(function: types.FunctionType) -> dict[str, object]:
    """Return the variables outside of a function that it reads."""
    code = function.__code__
    variables = {name: function.__globals__[name] for name in pickling.names_of(code) if name in function.__globals__}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            variables[name] = cell.cell_contents
        except ValueError:
            continue
    return {name: value for name, value in variables.items() if name not in (*code.co_varnames, *code.co_cellvars)}
